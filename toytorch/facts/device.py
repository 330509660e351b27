"""Where a tensor's memory lives."""

from __future__ import annotations

import functools
import re
from typing import Any

from toytorch.facts import state

__all__ = [
    "channels_last", "channels_last_3d", "contiguous_format", "device", "jagged", "layout",
    "memory_format", "preserve_format", "sparse_bsc", "sparse_bsr", "sparse_coo", "sparse_csc",
    "sparse_csr", "strided",
]  # fmt: skip

# What programs may name. Memory is on the first two, shapes alone on "meta"; the others are refused
# where something should be put there (`backends.base.of_kind`).
KINDS = (
    "cpu", "cuda", "ipu", "xpu", "mkldnn", "opengl", "opencl", "ideep", "hip", "ve", "fpga", "maia", "xla",
    "lazy", "vulkan", "mps", "meta", "hpu", "mtia", "privateuseone",
)  # fmt: skip


class device:
    """A place for tensors, like `torch.device`.

    >>> device("cuda:1"), device("cpu").type, device("cuda", 0) == device("cuda:0")
    (device(type='cuda', index=1), 'cpu', True)
    >>> device("cuda:01")
    Traceback (most recent call last):
    RuntimeError: Invalid device string: 'cuda:01'
    """

    __slots__ = ("index", "type")
    index: int | None
    type: str

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            type, index = type.type, type.index
        elif isinstance(type, int) and not isinstance(type, bool):
            type, index = "cuda", type
            if index < 0:
                raise RuntimeError("Device index must not be negative")
            if not accelerated():
                raise RuntimeError("Cannot access accelerator device when none is available.")
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {type.__class__.__name__}")
        name, number = parsed(type)
        if number is not None:
            if index is not None:
                raise RuntimeError(
                    f"type (string) must not include an index because index was "
                    f"passed explicitly: {type}"
                )
            index = number
        self.type, self.index = name, index

    def __repr__(self) -> str:
        where = "" if self.index is None else f", index={self.index}"
        return f"device(type='{self.type}'{where})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __reduce__(self) -> Any:
        return device, (self.type, self.index)

    def __enter__(self) -> device:
        """Within the context, new tensors for which no device is named go here."""
        local = state.local
        local.outer_devices = (*local.outer_devices, local.default_device)
        local.default_device = self
        return self

    def __exit__(self, *exc: object) -> None:
        local = state.local
        *outer, local.default_device = local.outer_devices
        local.outer_devices = tuple(outer)


def on_cpu(where: Any) -> bool:
    """Whether new tensors go to this machine's memory: if it is named, or nothing is."""
    if where is None:
        return state.local.default_device is None
    return bool(where.type == "cpu" if where.__class__ is device else where == "cpu")


def accelerated() -> bool:
    """Whether there is a card that a number can stand for: `backends.base` puts its own answer here."""
    return False


def given(where: Any, otherwise: Any) -> Any:
    """The device that a caller named, of which 0 is one, or another where none is named."""
    return otherwise if where is None else where


@functools.lru_cache(64)
def parsed(text: str) -> tuple[str, int | None]:
    """The kind and the index in a device's string."""
    if not text:
        raise RuntimeError("Device string must not be empty")
    name, found, number = text.partition(":")
    if not re.fullmatch("[A-Za-z_]+", name):
        raise RuntimeError(f"Invalid device string: '{text}'")
    if name not in KINDS:
        raise RuntimeError(
            f"Expected one of {', '.join(KINDS)} device type at start of device string: {name}"
        )
    if found and not re.fullmatch(r"0|[1-9]\d*", number):
        raise RuntimeError(f"Invalid device string: '{text}'")
    return name, int(number) if found else None


cpu = device("cpu")


class layout:
    """How elements lie in memory, like `torch.layout`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> str:
        return self.name  # there is one object of each

    def __repr__(self) -> str:
        return f"torch.{self.name}"


class memory_format:
    """The order of dimensions in memory, like `torch.memory_format`."""

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"torch.{self.name}"


strided = layout("strided")
sparse_coo = layout("sparse_coo")
sparse_csr, sparse_csc = layout("sparse_csr"), layout("sparse_csc")
sparse_bsr, sparse_bsc = layout("sparse_bsr"), layout("sparse_bsc")
jagged = layout("jagged")


def layout_name(of: layout) -> str:
    """What PyTorch's errors call a layout.

    >>> layout_name(sparse_csr), layout_name(sparse_coo)
    ('SparseCsr', 'Sparse')
    """
    return "Sparse" if of is sparse_coo else of.name.title().replace("_", "")


contiguous_format = memory_format("contiguous_format")
preserve_format = memory_format("preserve_format")
channels_last = memory_format("channels_last")
channels_last_3d = memory_format("channels_last_3d")
