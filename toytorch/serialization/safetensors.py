"""The safetensors layout: the length of a header, a header in JSON, the bytes of the tensors.

8 bytes   the length of the header, little-endian
header    {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, …}
bytes     every tensor row-major, one after the other, without gaps
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as types
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Array
from toytorch.serialization.atomic import replacing

LARGEST_HEADER = 100_000_000
KINDS = {
    "F64": types.float64, "F32": types.float32, "F16": types.float16, "BF16": types.bfloat16,
    "I64": types.int64, "I32": types.int32, "I16": types.int16, "I8": types.int8, "U8": types.uint8,
    "U16": types.uint16, "U32": types.uint32, "U64": types.uint64, "F8_E4M3": types.float8_e4m3fn,
    "F8_E5M2": types.float8_e5m2, "BOOL": types.bool, "C64": types.complex64,
}  # fmt: skip
NAMES = {kind: name for name, kind in KINDS.items()}


class SafetensorError(Exception):
    """A file that does not keep to the layout."""


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The tensors as the bytes of a file.

    >>> load(save({"a": torch.ones(2)}))
    {'a': tensor([1., 1.])}
    """
    return b"".join(_pieces(tensors, metadata))


def save_file(
    tensors: Mapping[str, Tensor],
    filename: str | os.PathLike[str],
    metadata: Mapping[str, str] | None = None,
) -> None:
    """Writes the tensors to a file, which is the old one or the whole new one at any moment."""
    pieces = _pieces(tensors, metadata)
    with replacing(filename) as file:
        for piece in pieces:
            file.write(piece)


def _pieces(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None) -> list[Any]:
    """The header, and the bytes of each tensor."""
    if not isinstance(tensors, Mapping):
        raise ValueError(f"Expected a dict of [str, torch.Tensor] but received {type(tensors)}")
    seen: dict[Any, str] = {}
    for name, tensor in tensors.items():
        _check(name, tensor, seen)
    header: dict[str, Any] = {}
    if metadata is not None:
        if not all(isinstance(v, str) for pair in metadata.items() for v in pair):
            raise SafetensorError("metadata must be a dict from str to str")
        header["__metadata__"] = dict(metadata)
    # Wide elements first, so that every tensor is aligned to its own element size.
    order = sorted(tensors.items(), key=lambda pair: (-pair[1].dtype.itemsize, pair[0]))
    pieces, at = [], 0
    for name, tensor in order:
        array = base.of_array(tensor._array).to_numpy(tensor._array)
        pieces.append(memoryview(array.reshape(-1).view(np.uint8)))
        header[name] = {
            "dtype": NAMES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [at, at + array.nbytes],
        }
        at += array.nbytes
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little") + text, *pieces]


def _check(name: str, tensor: Tensor | int, seen: dict[Any, str]) -> None:
    """Refuses what the layout cannot hold."""
    if not isinstance(name, str) or name == "__metadata__":
        raise ValueError(f"a tensor cannot be called {name!r}")
    if not isinstance(tensor, Tensor):
        raise ValueError(
            f"Key `{name}` is invalid, expected torch.Tensor but received {type(tensor)}"
        )
    if tensor.is_sparse:
        raise ValueError(
            f"You are trying to save a sparse tensor: `{name}` which this library does not "
            "support. You can make it a dense tensor before saving with `.to_dense()` but be aware "
            "this might make a much larger file than needed."
        )
    if tensor.dtype not in NAMES:
        raise SafetensorError(f"`{name}`: safetensors has no name for {tensor.dtype}")
    if not tensor.is_contiguous():
        raise ValueError(
            f"You are trying to save a non contiguous tensor: `{name}` which is not allowed. It "
            "either means you are trying to save tensors which are reference of each other in "
            "which case it's recommended to save only the full tensors, and reslice at load time, "
            "or simply call `.contiguous()` on your tensor to pack it before saving."
        )
    if tensor.numel():
        address = tensor.untyped_storage().data_ptr()
        if address in seen:
            raise RuntimeError(
                "Some tensors share memory, this will lead to duplicate memory on disk and "
                f"potential differences when loading them again: [{{'{seen[address]}', '{name}'}}]"
            )
        seen[address] = name


def load(data: bytes) -> dict[str, Tensor]:
    """The tensors in the bytes of a file."""
    return _load(np.frombuffer(data, np.uint8), "<bytes>", "cpu")


def load_file(filename: str | os.PathLike[str], device: str = "cpu") -> dict[str, Tensor]:
    """The tensors in a file, on a device."""
    return _load(np.fromfile(filename, np.uint8), os.fspath(filename), device)


def load_metadata(filename: str | os.PathLike[str]) -> dict[str, str]:
    """The metadata in a file's header."""
    data = np.fromfile(filename, np.uint8)
    return _header(data, os.fspath(filename))[0].get("__metadata__", {})


def _load(data: Array, name: str, device: str) -> dict[str, Tensor]:
    header, start = _header(data, name)
    where = device_class(device)
    found: dict[str, Tensor] = {}
    for key, entry in header.items():
        if key == "__metadata__":
            continue
        kind, shape, begin, end = _entry(key, entry, name)
        array = data[start + begin : start + end].copy().view(kind.numpy).reshape(shape)
        found[key] = wrap(
            array if where.type == "cpu" else base.of_device(where).from_numpy(array), kind
        )
    return found


def _header(data: Array, name: str) -> tuple[dict[str, Any], int]:
    """The header, checked as a whole, and where the tensors' bytes start."""
    if len(data) < 8:
        raise SafetensorError(f"{name}: Error while deserializing header: header too small")
    length = int.from_bytes(data[:8].tobytes(), "little")
    if length > LARGEST_HEADER:
        raise SafetensorError(f"{name}: Error while deserializing header: header too large")
    if length > len(data) - 8:
        raise SafetensorError(f"{name}: Error while deserializing header: invalid header length")
    try:
        header = json.loads(
            data[8 : 8 + length].tobytes().decode("utf-8"), object_pairs_hook=_without_repeats
        )
    except (ValueError, RecursionError) as error:
        raise SafetensorError(f"{name}: Error while deserializing header: {error}") from None
    if not isinstance(header, dict):
        raise SafetensorError(f"{name}: Error while deserializing header: it is no JSON object")
    metadata = header.get("__metadata__", {})
    if not (isinstance(metadata, dict) and all(isinstance(v, str) for v in metadata.values())):
        raise SafetensorError(f"{name}: the metadata are not a dict of texts")
    _check_spans(header, len(data) - 8 - length, name)
    return header, 8 + length


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name is there twice")
    return made


def _entry(key: str, entry: Any, name: str) -> tuple[types.dtype, tuple[int, ...], int, int]:
    """(dtype, shape, first byte, byte behind the last) of a tensor."""
    try:
        kind, shape, (begin, end) = entry["dtype"], entry["shape"], entry["data_offsets"]
        if kind not in KINDS:
            raise ValueError(f"dtype {kind!r} is not known")
        if len(shape) > 64 or any(type(n) is not int or n < 0 for n in (*shape, begin, end)):
            raise ValueError("sizes and offsets must be numbers that are not negative")
        if end - begin != math.prod(shape) * KINDS[kind].itemsize:
            raise ValueError(f"{end - begin} bytes cannot hold {kind} of shape {shape}")
    except (KeyError, TypeError, ValueError) as error:
        raise SafetensorError(f"{name}: tensor {key[:200]!r}: {error!r}") from None
    return KINDS[kind], tuple(shape), begin, end


def _check_spans(header: dict[str, Any], length: int, name: str) -> None:
    """The tensors must fill the rest of the file, each byte once."""
    at = 0
    spans = [(*_entry(k, e, name)[2:], k) for k, e in header.items() if k != "__metadata__"]
    for begin, end, key in sorted(spans):
        if begin != at:
            raise SafetensorError(
                f"{name}: tensor {key[:200]!r} starts at byte {begin}, but the "
                f"one before it ends at {at}"
            )
        at = end
    if at != length:
        raise SafetensorError(f"{name}: its tensors take {at} bytes, but there are {length}")


__all__ = ["SafetensorError", "load", "load_file", "load_metadata", "save", "save_file"]
