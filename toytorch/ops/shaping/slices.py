"""Views of a part: narrow, slices, select, diagonals and windows, and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.no_elements import cut, lying, strided
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, Shape, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import general, view


def _narrow(xp: ArrayModule, a: Array, dim: int, start: Any, length: int) -> Any:
    if a.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if hasattr(start, "dtype") and (start.ndim or start.dtype.kind not in "iu"):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    if not -n <= start <= n:
        raise IndexError(
            f"start out of range (expected to be in range of [{-n}, {n}], but got {start})"
        )
    begin = start + n if start < 0 else start
    if begin + length > n:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({n}).")
    return cut(a, d, begin, begin + length)


def _slice_gradient(g: Tensor, self_shape: Sizes, dim: int, start: int, length: int) -> Any:
    n = self_shape[dim]
    start = int(start) % n if int(start) < 0 else int(start)
    return slice_backward.function(g, self_shape, dim, start, start + length, 1)


narrow = view(
    "narrow(Tensor self, int dim, int start, int length) -> Tensor",
    _narrow,
    d_self=_slice_gradient,
    node="SliceBackward0",
    batch="along",
    names="same",
    sparse="strides",
    doc="A range of one dimension.",
)


def _slice(
    xp: ArrayModule, a: Array, dim: int, start: int | None, end: int | None, step: int
) -> Any:
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    d = wrap_dim(dim, a.ndim)
    start, end, step = slice(start, end, step).indices(a.shape[d])
    return cut(a, d, start, max(start, end), step)


slice_ = view(
    "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    _slice,
    forms="",
    d_self="slice_backward(g, self_shape, dim, start, end, step)",
    batch="along",
    names="same",
    sparse="strides",
    overload="Tensor",
    doc="Elements start, start+step … before end of one dimension.",
)


def _slice_backward(
    xp: ArrayModule, g: Array, shape: Shape, dim: int, start: int | None, end: int | None, step: int
) -> Any:
    full = xp.zeros(shape, g.dtype)
    full[(slice(None),) * (dim % len(shape)) + (slice(start, end, step),)] = g
    return full


slice_backward: Op = general(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int? end, int step)"
    " -> Tensor",
    _slice_backward,
    forms="function out",
    d_grad_output=lambda g, dim, start, end, step: slice_.function(g, dim, start, end, step),
    doc="Zeros with a slice filled in: the gradient of slice.",
)


def _select(xp: ArrayModule, a: Array, dim: int, index: int) -> Any:
    if a.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    if dim == 0 and index.__class__ is int and -a.shape[0] <= index < a.shape[0]:
        return a[index, ...]
    d = wrap_dim(dim, a.ndim)
    if not -a.shape[d] <= index < a.shape[d]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size "
            f"{list(a.shape)} at dimension {d}"
        )
    return a[(slice(None),) * d + (slice(index, index + 1 or None),)].squeeze(d)


def _select_backward(xp: ArrayModule, g: Array, shape: Shape, dim: int, index: int) -> Any:
    full = xp.zeros(shape, g.dtype)
    full[(slice(None),) * (dim % len(shape)) + (index,)] = g
    return full


select = view(
    "select(Tensor self, int dim, int index) -> Tensor",
    _select,
    d_self="select_backward(g, self_shape, dim, index)",
    batch="along",
    names="reduced",
    overload="int",
    doc="One place of a dimension.",
)
select_backward: Op = general(
    "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    _select_backward,
    forms="function out",
    d_grad_output=lambda g, dim, index: select.function(g, dim, index),
    doc="Zeros with one place filled in: the gradient of select.",
)


def _diagonal(xp: ArrayModule, a: Array, offset: int, dim1: int, dim2: int) -> Any:
    d1, d2 = wrap_dim(dim1, a.ndim), wrap_dim(dim2, a.ndim)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, cols = a.shape[d1], a.shape[d2]
    some = min(rows + min(offset, 0), cols - max(offset, 0)) > 0  # else nothing is skipped, either
    if a.__class__ is np.ndarray and some and a.flags.writeable:
        seen = a.diagonal(offset, d1, d2)  # which NumPy gives to read only
        seen.flags.writeable = True
        return seen
    skip = (slice(None),) * d1
    a1 = a[(*skip, slice(min(-offset, rows), None))] if offset < 0 else a
    start = (slice(None),) * d2
    a1 = a1[(*start, slice(min(offset, cols), None))] if offset > 0 else a1
    n = min(a1.shape[d1], a1.shape[d2])
    rest = [i for i in range(a.ndim) if i not in (d1, d2)]
    shape = [a1.shape[i] for i in rest] + [n]
    if not n:
        return lying(a, shape, [*(a.strides[i] for i in rest), a.strides[d1] + a.strides[d2]])
    strides = [a1.strides[i] for i in rest] + [a1.strides[d1] + a1.strides[d2]]
    return strided(xp, a1, shape, strides)


diagonal = view(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    _diagonal,
    d_self="diagonal_backward(g, self_shape, offset, dim1, dim2)",
    batch="along",
    sparse="strides",
    doc="A diagonal of two dimensions.",
)


def _diagonal_backward(
    xp: ArrayModule, g: Array, shape: Sizes, offset: int, dim1: int, dim2: int
) -> Any:
    full = xp.zeros(shape, g.dtype)
    _diagonal(xp, full, offset, dim1, dim2)[...] = g
    return full


diagonal_backward: Op = general(
    "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) "
    "-> Tensor",
    _diagonal_backward,
    forms="function out",
    d_grad_output=lambda g, offset, dim1, dim2: diagonal.function(g, offset, dim1, dim2),
    doc="Zeros with a diagonal filled in: the gradient of diagonal.",
)


def _unfold(xp: ArrayModule, a: Array, dimension: int, size: int, step: int) -> Any:
    d = wrap_dim(dimension, a.ndim)
    n = a.shape[d] if a.ndim else 1
    if size < 0:
        raise RuntimeError(f"size is {size} but must be >= 0")
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if a.ndim == 0:
        return a.reshape(1)[:size]
    count = (n - size) // step + 1
    shape, strides = a.shape, a.strides
    shape = (*shape[:d], count, *shape[d + 1 :], size)
    strides = (*strides[:d], strides[d] * step, *strides[d + 1 :], strides[d])
    if 0 in shape:
        return lying(a, shape, strides)
    if a.__class__ is np.ndarray and a.flags.c_contiguous:
        return np.ndarray(shape, a.dtype, a, 0, strides)  # a fifth of the time
    return strided(xp, a, shape, strides)


def _unfold_backward(
    xp: ArrayModule, g: Array, shape: Shape, dimension: int, size: int, step: int
) -> Any:
    full = xp.zeros(shape, g.dtype)
    if not shape:
        return full + g.sum()
    d = dimension % len(shape)
    for i in range(size):
        count = g.shape[d]
        place = (slice(None),) * d + (slice(i, i + (count - 1) * step + 1, step),)
        full[place] += g[..., i]
    return full


unfold = view(
    "unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    _unfold,
    forms="method",
    d_self=lambda g, self_shape, dimension, size, step: unfold_backward.function(
        g, self_shape, dimension, size, step
    ),
    batch="along",
    sparse="strides",
    doc="Sliding windows over a dimension, in a new last dimension.",
)
unfold_backward: Op = general(
    "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
    _unfold_backward,
    forms="function out",
    d_grad_in=lambda g, dim, size, step: g.unfold(dim, size, step),
    doc="Windows added back to where they came from: the gradient of unfold.",
)
