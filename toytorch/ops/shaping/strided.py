"""Views with strides of one's own choice, and the layouts of writes through views."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.backends import base, generic, no_elements
from toytorch.core.tensor import Tensor
from toytorch.facts.composed import composed
from toytorch.facts.hints import Array, ArrayModule, Shape, Sizes
from toytorch.facts.size import need_room
from toytorch.ops import batching
from toytorch.ops.define import general, on_tensors, view


def refuse_endless(size: Shape) -> None:
    """Refuses sizes whose product is no number of elements, even of one that is shown often."""
    if math.prod(size) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")


def _as_strided(
    xp: ArrayModule, a: Array, size: Sizes, stride: Sizes, storage_offset: int | None
) -> Any:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(n < 0 for n in size):
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(size)} and "
            f"strides={list(stride)}"
        )
    if storage_offset is not None and storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got "
            f"strides: {list(stride)}"
        )
    refuse_endless(size)
    backend = base.of_array(a)
    flat = backend.flat(a)
    flat = flat if flat.dtype == a.dtype else flat.view(a.dtype)
    if storage_offset is None:
        if a.size:
            storage_offset = (backend.data_ptr(a) - backend.data_ptr(flat)) // a.itemsize
        else:
            storage_offset = no_elements.offset(a, flat)
    need_room(size, stride, storage_offset, a.itemsize, flat.nbytes)
    return backend.as_strided(flat, tuple(size), tuple(stride), storage_offset)


def _as_strided_gradient(
    g: Tensor,
    self_layout: tuple[int | tuple[int, ...], ...],
    size: Shape,
    stride: Shape,
    storage_offset: Any,
) -> Any:
    shape, strides, at = self_layout
    offset = 0 if storage_offset is None else storage_offset - at
    return scattered(g, shape, strides, tuple(size), tuple(stride), offset)


def scattered(g: Tensor, owner: Any, *geometry: Any) -> Tensor:
    """A view's gradient put where the view lies in its base; of nothing PyTorch gives zeros that
    have no history."""
    return g.new_zeros(owner) if 0 in (*g.shape, *owner) else g._scatter_strided(owner, *geometry)


on_tensors(_strided_gradient=scattered)


as_strided = view(
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    _as_strided,
    d_self=_as_strided_gradient,
    batch=batching.strided,
    doc="Any layout over the same memory.",
)
composed(reads="memory")(as_strided)  # its places are counted from where the storage begins

# -- the layouts of writes through views (see core/inplace.py) ------------------------------------


def _both(
    xp: ArrayModule,
    dtype: npt.DTypeLike,
    owner: Shape,
    owner_strides: Shape,
    shape: Shape,
    strides: Shape,
    offset: int,
) -> Any:
    """Fresh memory seen as a base and as a view of it."""

    def end(sizes: Shape, steps: Shape, start: int) -> int:
        return start + sum((n - 1) * s for n, s in zip(sizes, steps)) + 1 if 0 not in sizes else 1

    low = min(0, offset)
    size = max(end(owner, owner_strides, -low), end(shape, strides, offset - low))
    memory = xp.zeros(size, dtype)
    backend = base.of_array(memory)
    return (
        backend.as_strided(memory, owner, owner_strides, -low),
        backend.as_strided(memory, shape, strides, offset - low),
    )


def _gather_strided(xp: ArrayModule, g: Array, *geometry: Any) -> Any:
    full, part = _both(xp, g.dtype, *geometry)
    full[...] = g
    return part.copy()


def _scatter_strided(
    xp: ArrayModule,
    g: Array,
    owner: Shape,
    owner_strides: Shape,
    shape: Shape,
    strides: Shape,
    offset: int,
) -> Any:
    # Several elements of a view may be one of the base; their gradients add up. Several elements of
    # the base may be one of memory (an expanded base); each then gets its share.
    places, part = _both(xp, np.int64, owner, owner_strides, shape, strides, offset)
    memory = base.of_array(places).flat(places)
    memory[...] = xp.arange(memory.size)
    total = xp.zeros(memory.size, g.dtype)
    generic.at(xp, "add", total, part.reshape(-1), g.reshape(-1))
    counts = xp.bincount(places.reshape(-1), minlength=memory.size)
    if (counts > 1).any():
        total /= xp.maximum(counts, 1).astype(total.real.dtype)
    return base.of_array(total).as_strided(total, owner, owner_strides, max(0, -offset))


def _fill_strided(xp: ArrayModule, g: Array, part: Array, *geometry: Any) -> Any:
    full, window = _both(xp, g.dtype, *geometry)
    full[...] = g
    window[...] = part
    return full.copy("K")  # a gradient that lies as the base does


GEOMETRY = "int[] owner, int[] owner_stride, int[] size, int[] stride, int offset"
gather_strided = general(
    f"_gather_strided(Tensor self, {GEOMETRY}) -> Tensor",
    _gather_strided,
    forms="method out",
    d_self=lambda g, owner, owner_stride, size, stride, offset: g._scatter_strided(
        owner, owner_stride, size, stride, offset
    ),
    doc="The part of a base-shaped gradient that a view shows.",
)
scatter_strided = general(
    f"_scatter_strided(Tensor self, {GEOMETRY}) -> Tensor",
    _scatter_strided,
    forms="method out",
    d_self=lambda g, owner, owner_stride, size, stride, offset: g._gather_strided(
        owner, owner_stride, size, stride, offset
    ),
    doc="A view's gradient put where the view lies in its base.",
)
fill_strided = general(
    f"_fill_strided(Tensor self, Tensor part, {GEOMETRY}) -> Tensor",
    _fill_strided,
    forms="method out",
    d_self=lambda g, part, owner, owner_stride, size, stride, offset: g._fill_strided(
        part * 0, owner, owner_stride, size, stride, offset
    ),
    d_part=lambda g, owner, owner_stride, size, stride, offset: g._gather_strided(
        owner, owner_stride, size, stride, offset
    ),
    doc="A base-shaped gradient with the part that a view shows replaced.",
)

# -- several views at once ------------------------------------------------------------------------
