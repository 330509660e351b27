"""How tensors look in print: PyTorch's format to the letter."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import strided
from toytorch.facts.dtype import PAIR
from toytorch.facts.hints import Array
from toytorch.facts.package import is_ours


@dataclass(frozen=True)
class Options:
    """What `set_printoptions` sets."""

    precision: int = 4
    threshold: float = 1000
    edgeitems: int = 3
    linewidth: int = 80
    sci_mode: bool | None = None


PROFILES = {
    "default": Options(),
    "short": Options(precision=2, edgeitems=2),
    "full": Options(threshold=math.inf),
}
_options = Options()


def set_printoptions(
    precision: int | None = None,
    threshold: float | None = None,
    edgeitems: int | None = None,
    linewidth: int | None = None,
    profile: str | None = None,
    sci_mode: bool | None = None,
) -> None:
    """Sets how tensors are printed, like `torch.set_printoptions`.

    >>> set_printoptions(precision=2); Tensor([1.2345]); set_printoptions(profile="default")
    tensor([1.23])
    """
    global _options
    if profile is not None:
        _options = PROFILES.get(profile, _options)  # other names say nothing
    given: dict[str, Any] = {
        "precision": precision,
        "threshold": threshold,
        "edgeitems": edgeitems,
        "linewidth": linewidth,
    }
    _options = replace(_options, **{k: v for k, v in given.items() if v is not None})
    _options = replace(_options, sci_mode=sci_mode)


def get_printoptions() -> dict[str, Any]:
    """The options in force."""
    return dict(vars(_options))


@contextmanager
def printoptions(**kwargs: object) -> Iterator[None]:
    """Sets print options for a while."""
    global _options
    before = _options
    set_printoptions(**{**vars(before), **kwargs})
    try:
        yield
    finally:
        _options = before


class Format:
    """One format for all the numbers of a tensor, chosen from their range."""

    def __init__(self, array: Array) -> None:
        self.floating = array.dtype.kind == "f"
        self.whole, self.scientific, self.width = True, False, 1
        if not self.floating:
            self.width = max((len(str(v)) for v in array.reshape(-1).tolist()), default=1)
            return
        values = array.reshape(-1)
        values = values[np.isfinite(values) & (values != 0)]
        if not values.size:
            return
        size = np.abs(values.astype(np.float64))
        top, bottom = float(size.max()), float(size.min())
        self.whole = bool((np.ceil(values) == values).all())
        self.scientific = (
            top / bottom > 1000.0 or top > 1.0e8 or (not self.whole and bottom < 1.0e-4)
        )
        if _options.sci_mode is not None:
            self.scientific = _options.sci_mode
        p = _options.precision
        if self.scientific:
            texts = (f"{v:.{p}e}" for v in values.tolist())
        elif self.whole:
            texts = (f"{v:.0f}." for v in values.tolist())
        else:
            texts = (f"{v:.{p}f}" for v in values.tolist())
        self.width = max(self.width, max(len(t) for t in texts))

    def __call__(self, value: float) -> str:
        if not self.floating:
            text = str(value)
        elif self.scientific:
            text = f"{value:{self.width}.{_options.precision}e}"
        elif self.whole:
            text = f"{value:.0f}" + ("." if math.isfinite(value) else "")
        else:
            text = f"{value:.{_options.precision}f}"
        return text.rjust(self.width)


class ComplexFormat:
    """A format for the real parts and one for the imaginary parts."""

    def __init__(self, array: Array) -> None:
        self.real, self.imag = Format(array.real), Format(array.imag)
        self.width = self.real.width + self.imag.width + 1

    def __call__(self, value: complex) -> str:
        imag = (self.imag(value.imag) + "j").lstrip()
        return self.real(value.real) + ("" if imag[0] in "+-" else "+") + imag


def edges(array: Array) -> Any:
    """Only the elements that a summary shows."""
    n = _options.edgeitems
    for d in range(array.ndim):
        if array.shape[d] > 2 * n:
            keep = np.r_[:n, array.shape[d] - n : array.shape[d]]
            array = array.take(keep, axis=d)
    return array


def lines_of(array: Array, indent: int, summarize: bool, form: ComplexFormat | Format) -> str:
    """The elements in nested brackets."""
    n = _options.edgeitems
    cut = summarize and array.ndim and array.shape[0] > 2 * n
    if array.ndim == 0:
        return str(form(array.item()))
    if array.ndim == 1:
        per_line = max(1, (_options.linewidth - indent) // (form.width + 2))
        if summarize and not n:
            items = ["..."]
        elif cut:
            items = [*map(form, array[:n].tolist()), " ...", *map(form, array[-n:].tolist())]
        else:
            items = [form(v) for v in array.tolist()]
        rows = [", ".join(items[i : i + per_line]) for i in range(0, len(items), per_line)]
        return "[" + (",\n" + " " * (indent + 1)).join(rows) + "]"
    if cut:
        parts = (
            [lines_of(a, indent + 1, summarize, form) for a in array[:n]]
            + ["..."]
            + [lines_of(a, indent + 1, summarize, form) for a in array[-n:]]
        )
    else:
        parts = [lines_of(a, indent + 1, summarize, form) for a in array]
    between: str = "," + "\n" * (array.ndim - 1) + " " * (indent + 1)
    return "[" + between.join(parts) + "]"


def body(array: Array, indent: int) -> str:
    """The numbers of a tensor."""
    if (
        array.dtype.kind == "V"
        or (array.dtype.itemsize == 2 and array.dtype.kind == "f")
        or array.dtype.type.__module__ == "ml_dtypes"
    ):
        array = array.astype(np.complex64 if array.dtype.kind == PAIR else np.float32)
    summarize = array.size > _options.threshold
    shown = edges(array) if summarize else array
    form = ComplexFormat(shown) if array.dtype.kind == "c" else Format(shown)
    return lines_of(array, indent, summarize, form)


def with_suffixes(text: str, suffixes: list[str], indent: int, new_line: bool = False) -> str:
    """The text with its properties, on new lines where they would not fit (or from a new one)."""
    parts, length = [text], len(text) - text.rfind("\n") + 1
    for suffix in suffixes:
        if length + len(suffix) + 2 > _options.linewidth or new_line:
            parts.append(",\n" + " " * indent + suffix)
            length, new_line = indent + len(suffix), False
        else:
            parts.append(", " + suffix)
            length += len(suffix) + 2
    return "".join(parts) + ")"


def sparse_body(array: Any, indent: int, hidden: bool = False) -> str:
    """The indices and values of a sparse tensor."""
    parts = []
    for name, part in array.parts():
        start = f"{name}=tensor("
        if hidden:
            parts.append(f"{start}..., size={tuple(part.shape)})")
            continue
        part = base.of_array(part).to_numpy(part)
        text = body(part, indent + len(start)) if part.size else f"[], size={tuple(part.shape)}"
        parts.append(start + text + ")")
    return (",\n" + " " * indent).join(parts)


def tensor_repr(tensor: Tensor) -> str:
    """What `repr(tensor)` shows."""
    cls, suffixes = type(tensor), list[str]()
    plain = cls is Tensor or is_ours(cls.__module__)
    prefix = "tensor(" if plain else f"{cls.__name__}("
    device = tensor.device
    if device.type != "cpu":
        suffixes.append(f"device='{device}'")
    default = types.get_default_dtype()
    known = (default, types.default_complex(), types.int64, types.bool)
    sparse = tensor.layout is not strided
    hidden = device.type == "meta"
    array = (
        tensor._array if sparse or hidden else base.of_array(tensor._array).to_numpy(tensor._array)
    )
    if sparse:
        suffixes.append(f"size={tuple(array.shape)}")
        if not hidden:
            suffixes.append(f"nnz={array.nnz}")
        if tensor.dtype not in known:
            suffixes.append(f"dtype={tensor.dtype}")
        suffixes.append(f"layout={tensor.layout}")
        text = sparse_body(array, len(prefix), hidden)
    elif hidden:
        suffixes.append(f"size={tuple(array.shape)}")
        if tensor.dtype is not default:
            suffixes.append(f"dtype={tensor.dtype}")
        text = "..."
    elif not array.size:
        if array.ndim != 1:
            suffixes.append(f"size={tuple(array.shape)}")
        if tensor.dtype is not default:
            suffixes.append(f"dtype={tensor.dtype}")
        text = "[]"
    else:
        if tensor.dtype not in known:
            suffixes.append(f"dtype={tensor.dtype}")
        text = body(array, len(prefix))
    if tensor._grad_edge is not None:
        try:
            suffixes.append(f"grad_fn=<{type(tensor.grad_fn).__name__}>")
        except RuntimeError:  # a view whose base has changed since in a way it cannot follow
            suffixes.append("grad_fn=<Invalid>")
    elif tensor._requires_grad:
        suffixes.append("requires_grad=True")
    if tensor._names is not None:
        suffixes.append(f"names={tensor._names!r}")
    for level, tangent in (tensor._tangents or {}).items():
        if level in state.local.modes:  # within it
            suffixes.append(f"tangent={tangent!r}")
    shown = with_suffixes(prefix + text, suffixes, len(prefix), tensor.is_sparse)
    of_user = getattr(tensor, "_is_param", False) and not is_ours(cls.__module__)
    return f"Parameter({shown})" if of_user else shown


def wrapped_repr(tensor: Tensor, transforms: tuple[Any, ...]) -> str:
    """What a function sees of a tensor inside of `vmap`, `grad` and their kin."""
    for level in range(len(transforms), 0, -1):
        found = transforms[level - 1].within(tensor)
        if found is not None:
            name, place, inner = found
            text = textwrap.indent(wrapped_repr(inner, transforms[: level - 1]), "    ")
            return f"{name}(lvl={level}, {place}value=\n{text}\n)"
    return tensor_repr(tensor)


def _repr(self: Tensor, *, tensor_contents: Any = None) -> str:
    return wrapped_repr(self, state.local.transforms)


Tensor.__repr__ = _repr  # type: ignore[method-assign,assignment]  # tensor.py knows no printing
