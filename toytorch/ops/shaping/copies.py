"""Ops that copy: as they are, in another type, from other tensors, or one number everywhere."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends import base, generic
from toytorch.backends.no_elements import lying
from toytorch.core.formulas import filled_tensor
from toytorch.core.memory_order import copied, dense_strides, in_rows, kept, walk, with_layout
from toytorch.core.scalars import as_filling
from toytorch.core.tensor import Tensor, strides_of
from toytorch.facts import warned
from toytorch.facts.dtype import PAIR
from toytorch.facts.hints import Array, ArrayModule, DType, MemoryFormat
from toytorch.facts.size import broadcast_pair, copy_order
from toytorch.loops.runtime.jit import address_of
from toytorch.ops import aten_words
from toytorch.ops.define import in_own_type
from toytorch.ops.shaping.view import _expand

MANY = 4096  # elements, from which it is worth asking for a kernel
CHANNELS_LAST = {"channels_last": 4, "channels_last_3d": 5}  # and the dimensions these are for


def _clone(xp: ArrayModule, a: Array, memory_format: MemoryFormat | None) -> Any:
    if memory_format is None and a.__class__ is np.ndarray and a.nbytes < MANY:
        made = a.copy("K")
        return made if made.strides == a.strides else kept(made, a)
    form = "preserve_format" if memory_format is None else memory_format.name
    if form == "contiguous_format":
        return in_rows(a)
    if form in CHANNELS_LAST:
        rank = CHANNELS_LAST[form]
        if a.ndim != rank:
            raise RuntimeError(f"required rank {rank} tensor to use {form} format")
        if not a.size and a.__class__ is np.ndarray:
            order = [0, *range(2, rank), 1]
            return with_layout(a.copy(), dense_strides(a.shape, order, a.itemsize))
        return xp.moveaxis(in_rows(xp.moveaxis(a, 1, -1)), -1, 1)
    made = generic.attempt(xp, "copy", a)
    if made is not None:
        return made
    made = copied(a)
    return made if made.strides == a.strides else kept(made, a)


clone = in_own_type(
    "clone(Tensor self, *, memory_format? memory_format=None) -> Tensor",
    _clone,
    forms="function method",
    d_self="g",
    batch="leading",
    names="same",
    fresh=True,
    fused="self",
    doc="A copy in fresh memory.",
)


# Types to which NumPy converts as PyTorch does, from all but complex numbers.
ALIKE = frozenset(f"{kind}{bits}" for kind in ("int", "float") for bits in (32, 64)) | {"bool"}


def _cast(xp: Any, a: Any, dtype: Any) -> Any:
    if dtype.name in ALIKE and a.size < MANY and a.dtype.kind not in "cW" and a.flags.c_contiguous:
        made = a.astype(dtype._numpy)
        return made if made.size > 1 and 1 not in a.shape else kept(made, a)
    return kept(_cast_elements(xp, a, dtype), a)


def _cast_elements(xp: Any, a: Any, dtype: DType) -> Any:
    if a.dtype.kind == PAIR:
        a = a.astype(np.complex64, order=copy_order(a))
    if a.dtype.kind == "c" and dtype.rank == 0:
        return a.astype(bool, order=copy_order(a))  # whether any part of it is not 0
    if a.dtype.kind == "c" and dtype.rank < 3:
        warned.at_call("Casting complex values to real discards the imaginary part")
        a = a.real
    if a.dtype == np.float64 and dtype.name == "float16":
        a = a.astype(np.float32, order=copy_order(a))  # PyTorch rounds twice
    if dtype.name == "float8_e4m3fn" and a.dtype != dtype.numpy:  # has no infinity, and saturates
        a = xp.clip(a, -448, 448)
    if a.size >= MANY:
        made = generic.attempt(xp, "cast", a, np.dtype(dtype.numpy))
        if made is not None:
            return made
    if a.dtype.kind == "f" and dtype.rank == 1 and dtype.name == "uint8":
        return a.astype(np.int64, order=copy_order(a)).astype(np.uint8)
    return a.astype(dtype.numpy, order=copy_order(a))


cast = in_own_type(
    "_to_copy(Tensor self, *, dtype dtype) -> Tensor",
    _cast,
    d_self=lambda g: g,
    batch="leading",
    names="same",
    fresh=True,
    sparse="sums",
    fused="self",
    doc="The values in another type.",
)


def _copy(xp: ArrayModule, a: Array, src: Array, non_blocking: bool) -> Any:
    if src.dtype.kind == PAIR and a.dtype != src.dtype:
        src = src.astype(np.complex64)
    if src.dtype.kind == "c" and a.dtype.kind not in "cbW":
        src = src.real
    if base.queued and base.hands_over(a, src) and _apart(a, src):
        return _copy_across(a, src, non_blocking)
    if src.shape != a.shape:
        if broadcast_pair(a.shape, src.shape) != a.shape:
            return _expand(xp, src, a.shape)  # raises PyTorch's error
        src = xp.broadcast_to(src, a.shape)
    plain = a.__class__ is src.__class__ is np.ndarray and a.dtype == src.dtype
    if plain and a.size > 1 and np.may_share_memory(a, src):
        return _copy_along(a, src)
    return src


def _copy_along(a: Array, src: Array) -> Any:
    """Writes over memory that is read, too, element after element in the order of memory, as PyTorch
    does: after `x[:, 1:] = x[:, :-1]` a row is one number. Where both lie side by side, its loops read 64
    bytes before they write them."""
    if a.strides == src.strides and address_of(a) < address_of(src):
        return src  # each element is read before it is written over
    shared: Any = np.shares_memory  # whose stub knows but two of the numbers that it takes
    try:
        if not shared(a, src, 1000):
            return src
    except np.exceptions.TooHardError:
        pass  # as if it did, then
    d, s = a.squeeze(), src[tuple(0 if n == 1 else slice(None) for n in a.shape)]
    order = walk(d, s)
    d, s, inner = d.transpose(order), s.transpose(order), 1
    while inner < d.ndim and all(
        x.strides[-inner - 1] == x.strides[-inner] * x.shape[-inner] for x in (d, s)
    ):
        inner += 1
    lead = d.shape[: d.ndim - inner]
    d, s = (
        lying(x, (*lead, math.prod(x.shape[len(lead) :])), (*x.strides[: len(lead)], x.strides[-1]))
        for x in (d, s)
    )
    n, side_by_side = d.shape[-1], d.strides[-1] == s.strides[-1] == d.itemsize
    step = 64 // d.itemsize if side_by_side else 1
    starts = (*range(0, n - n % step, step), *range(n - n % step, n))
    reach = n * max(d.strides[-1], s.strides[-1]) + abs(address_of(a) - address_of(src))
    apart = d.strides[:-1] == s.strides[:-1] and min(d.strides[:-1], default=reach) >= reach
    for row in [()] if apart else np.ndindex(lead):  # rows by themselves are written at once
        to, of = (x[(*row, ...)] for x in (d, s))
        for i, end in zip(starts, (*starts[1:], n)):
            to[..., i:end] = of[..., i:end]
    return a


def _apart(a: Array, src: Array) -> bool:
    """Whether two arrays, of which a device keeps the time, are on different devices."""
    return a.__class__ is not src.__class__ or (
        base.of_array(a).device(a) != base.of_array(src).device(src)
    )


def _copy_across(a: Array, src: Array, non_blocking: bool) -> Any:
    """Writes elements of one device to another's memory; the array written to."""
    if src.shape != a.shape and broadcast_pair(a.shape, src.shape) != a.shape:
        raise RuntimeError(f"output with shape {list(a.shape)} cannot hold {list(src.shape)}")
    backend: Any = max((base.of_array(x) for x in (a, src)), key=lambda b: b.name != "cpu")
    backend.copy_across(a, src, non_blocking)
    return a


def _same_place(self: Tensor, src: Any, non_blocking: bool = False) -> bool:
    """Whether a copy would put every element where it is."""
    a, b = self._array, src._array
    if not (a.__class__ is b.__class__ is np.ndarray and a.size and b.dtype == a.dtype):
        return False
    return a.shape == b.shape and strides_of(a) == strides_of(b) and address_of(a) == address_of(b)


copy = in_own_type(
    "copy(Tensor self, Tensor src, bool non_blocking=False) -> Tensor",
    _copy,
    forms="inplace",
    across="between",
    overlap=_same_place,
    node="CopyBackwards",
    d_self=lambda g: g.new_zeros(g._array.shape),  # whose own history is still walked
    d_src=lambda g: g,
    names="same",
    doc="Writes the elements of src, cast and broadcast.",
)


def _fill(xp: ArrayModule, a: Array, value: Any) -> Any:
    if getattr(value, "ndim", 0):
        raise RuntimeError(
            "fill_ only supports 0-dimension value tensor but got tensor with "
            f"{value.ndim} dimensions."
        )
    if hasattr(value, "dtype") and value.__class__ is np.ndarray:
        if value.dtype.kind == "c" and a.dtype.kind not in "cW":
            value = value.real  # of a tensor, what has no place is left out
        value = value.astype(a.dtype)  # as C converts it, and `copy_`
    return xp.full(a.shape, as_filling(xp, value, a.dtype, a.size), a.dtype)


fill = in_own_type(
    "fill(Tensor self, Operand value) -> Tensor",
    _fill,
    forms="function inplace",
    d_self=lambda g: filled_tensor(g, 0),
    overlap=lambda self, value: not hasattr(value, "dtype"),
    variant=lambda self, value: 3 if hasattr(value, "dtype") else 2,
    d_value=lambda g: g.sum(),
    memory="kept",
    names="same",
    overload=aten_words.number_at(1),
    doc="Every element set to a value.",
)
zero = in_own_type(
    "zero(Tensor self) -> Tensor",
    lambda xp, a: xp.zeros(a.shape, a.dtype),
    forms="inplace",
    overlap=True,
    d_self=lambda g: filled_tensor(g, 0),
    names="same",
    doc="Every element set to 0.",
)
