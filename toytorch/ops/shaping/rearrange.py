"""Ops that make new memory out of old elements: joining, repeating, turning."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import generic
from toytorch.core.memory_order import assign, has_channels_last, in_format, kept, row_major
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import from_numpy_dtype, no_kernel, promote
from toytorch.facts.hints import Array, ArrayModule, Ints, Shape, Sizes
from toytorch.facts.size import wrap_dim, wrap_dims
from toytorch.loops.llvm.builder import BLOCK
from toytorch.ops import batching, named_dims
from toytorch.ops.define import in_own_type
from toytorch.ops.shaping.copies import MANY


def _common(xp: ArrayModule, arrays: Sequence[Array]) -> Any:
    """The arrays in the type in which they meet (PyTorch's rules, 0-d arrays counting less)."""
    if all(a.dtype == arrays[0].dtype for a in arrays):
        return arrays
    dims = tuple(from_numpy_dtype(a.dtype) for a in arrays if a.ndim)
    zeros = tuple(from_numpy_dtype(a.dtype) for a in arrays if not a.ndim)
    common = promote(dims, zeros, ()).numpy
    return [a.astype(common) for a in arrays]


def alike(arrays: Sequence[Array], d: int | None = None) -> bool:
    """Whether arrays have one type and one shape, but for the size of a dimension."""
    shape, kind = arrays[0].shape, arrays[0].dtype
    for a in arrays[1:]:
        if a.dtype is not kind and a.dtype != kind:
            return False
        own = a.shape
        if own != shape and (
            d is None
            or len(own) != len(shape)
            or own[:d] != shape[:d]
            or own[d + 1 :] != shape[d + 1 :]
        ):
            return False
    return True


def _joined(xp: ArrayModule, arrays: Sequence[Array], d: int) -> Any:
    """Arrays of one type along a dimension."""
    several = arrays[0].size * len(arrays) >= MANY // 4
    made = generic.attempt(xp, "joined", arrays, d) if several else None
    if made is None:
        host = arrays[0].__class__ is np.ndarray
        made = (generic.concatenate if host else xp.concatenate)(arrays, d)
    return made


def need_list(name: str, tensors: Any) -> None:
    """Refuses one tensor where several are to be joined."""
    if not isinstance(tensors, (list, tuple)):
        raise TypeError(
            f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor"
        )


def _cat(xp: ArrayModule, tensors: Sequence[Array], dim: int) -> Any:
    if tensors.__class__ in (list, tuple) and tensors:
        first = tensors[0]
        if -first.ndim <= dim < first.ndim and alike(tensors, dim % first.ndim):
            return _joined(xp, tensors, dim)
    need_list("cat", tensors)
    if not tensors:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    for i, a in enumerate(tensors):
        if a.ndim == 0:
            raise RuntimeError(f"zero-dimensional tensor (at position {i}) cannot be concatenated")
    real = [a for a in tensors if a.shape != (0,)]  # empty 1-d tensors are ignored, a legacy rule
    first = real[0] if real else tensors[0]
    d = wrap_dim(dim, first.ndim) if real else 0
    for i, a in enumerate(tensors):
        if a.shape == (0,):
            continue
        if a.ndim != first.ndim:
            raise RuntimeError(
                f"Tensors must have same number of dimensions: got {first.ndim} and {a.ndim}"
            )
        for k, (m, n) in enumerate(zip(first.shape, a.shape)):
            if m != n and k != d:
                raise RuntimeError(
                    f"Sizes of tensors must match except in dimension {d}. Expected "
                    f"size {m} but got size {n} for tensor number {i} in the list."
                )
    arrays = _common(xp, list(tensors))
    kept = [a for a in arrays if a.shape != (0,)]
    return _joined(xp, kept, d) if kept else arrays[0].copy()


def _cat_gradient(g: Tensor, tensors_shape: Sequence[Sizes], dim: int) -> list[Any]:
    pieces, start = [], 0
    for shape in tensors_shape:
        if tuple(shape) == (0,):
            pieces.append(g.new_zeros(0))
            continue
        n = shape[dim % g.ndim]
        pieces.append(g.narrow(dim, start, n))
        start += n
    return pieces


cat = in_own_type(
    "cat(Tensor[] tensors, int dim=0) -> Tensor",
    _cat,
    forms="function out",
    apart=True,
    out_type="joined",
    d_tensors=_cat_gradient,
    memory="format",
    amp="widest",
    batch="along",
    names=named_dims.joined,
    doc="Tensors joined along a dimension they have.",
)


def _stack(xp: ArrayModule, tensors: Sequence[Array], dim: int) -> Any:
    need_list("stack", tensors)
    if not tensors:
        raise RuntimeError("stack expects a non-empty TensorList")
    shape = tensors[0].shape
    d = wrap_dim(dim, len(shape) + 1)
    if not alike(tensors):
        for i, a in enumerate(tensors):
            if a.shape != shape:
                raise RuntimeError(
                    f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 "
                    f"and {list(a.shape)} at entry {i}"
                )
        tensors = _common(xp, tensors)
    if d < len(shape) > 3 and all(
        a.__class__ is np.ndarray and has_channels_last(a) for a in tensors
    ):
        joined = in_format(np.concatenate(tensors, d), True)  # as they would be joined
        return joined.reshape(*shape[:d], len(tensors), *shape[d:])
    if d == 0 and shape:
        return row_major(_joined(xp, tensors, 0)).reshape(len(tensors), *shape)
    wide = (*shape[:d], 1, *shape[d:])
    if d == len(shape) and len(tensors) > BLOCK and tensors[0].size >= MANY:
        rows = _joined(xp, tensors, 0).reshape(len(tensors), -1)  # quicker to turn than to mix
        return row_major(rows.T).reshape(*shape, len(tensors))
    return row_major(_joined(xp, [a.reshape(wide) for a in tensors], d))


stack = in_own_type(
    "stack(Tensor[] tensors, int dim=0) -> Tensor",
    _stack,
    on_card="cat tensors",
    forms="function out",
    apart="views",
    out_type="stacked",
    d_tensors=lambda g, dim: list(g.unbind(dim)),
    amp="widest",
    batch="along",
    fresh=True,
    doc="Tensors joined along a new dimension.",
)


def _repeat(xp: ArrayModule, a: Array, repeats: Sequence[int]) -> Any:
    if len(repeats) < a.ndim:
        raise RuntimeError(
            "Number of dimensions of repeat dims can not be smaller than number of "
            "dimensions of tensor"
        )
    if any(n < 0 for n in repeats):
        sizes = [n * r for n, r in zip((1,) * (len(repeats) - a.ndim) + a.shape, repeats)]
        for n in sizes:
            if n < 0:
                raise RuntimeError(f"Trying to create tensor with negative dimension {n}: {sizes}")
        return xp.zeros(sizes, a.dtype)
    if a.__class__ is np.ndarray and a.ndim and a.size * math.prod(repeats) >= MANY:
        return _tiled(a, repeats)
    made = xp.tile(a, repeats)
    return made if made.size or a.__class__ is not np.ndarray else np.zeros(made.shape, a.dtype)


def _tiled(a: Array, repeats: Sequence[int]) -> Any:
    """NumPy's `tile` of many elements: copies along dimensions of their own."""
    shape = (1,) * (len(repeats) - a.ndim) + a.shape
    made = np.empty([n * r for n, r in zip(shape, repeats)], a.dtype)
    pairs = [size for pair in zip(repeats, shape) for size in pair]
    apart = a.reshape([size for n in shape for size in (1, n)])
    assign(made.reshape(pairs), np.broadcast_to(apart, pairs))
    return made


def _repeat_gradient(g: Tensor, self_shape: Sizes, repeats: Sequence[int]) -> Any:
    if 0 in repeats:
        return g.new_zeros(self_shape)
    shape = (1,) * (len(repeats) - len(self_shape)) + tuple(self_shape)
    split = [n for pair in zip(repeats, shape) for n in pair]
    return g.reshape(split).sum(list(range(0, len(split), 2))) if split else g


repeat = in_own_type(
    "repeat(Tensor self, int... repeats) -> Tensor",
    _repeat,
    forms="method",
    d_self=_repeat_gradient,
    memory="rows",
    batch=batching.repeated,
    doc="The tensor repeated along every dimension.",
)


@functools.lru_cache(256)
def backwards(ndim: int, dims: tuple[int, ...]) -> tuple[slice, ...]:
    """The index that turns these dimensions around."""
    wrapped = wrap_dims(dims, ndim)
    return tuple(slice(None, None, -1) if d in wrapped else slice(None) for d in range(ndim))


def _flip(xp: ArrayModule, a: Array, dims: Sequence[int]) -> Any:
    if not a.ndim:
        wrap_dims(tuple(dims), 0)
    if not a.ndim or not dims:
        return a.copy()
    made = a[backwards(a.ndim, tuple(dims))]
    return row_major(made) if a.__class__ is np.ndarray and a.size >= MANY else made.copy()


flip = in_own_type(
    "flip(Tensor self, int... dims) -> Tensor",
    _flip,
    forms="function method",
    d_self=lambda g, dims: g.flip(dims),
    memory="kept",
    batch="along",
    names="same",
    doc="Dimensions run backwards.",
)


def _rot90(xp: ArrayModule, a: Array, k: int, dims: Sizes) -> Any:
    if not k:
        return row_major(a.copy())
    turned = kept(_flip(xp, a, dims if k == 2 else dims[1:] if k == 1 else dims[:1]), a)
    return turned if k == 2 else turned.swapaxes(*dims)


rot90: Op = in_own_type(
    "rot90(Tensor self, int k, int[] dims) -> Tensor",
    _rot90,
    forms="",
    d_self=lambda g, k, dims: rot90.function(g, -k % 4, dims),
    batch="along",
    fresh=True,
    doc="The plane of two dimensions turned by 0 to 3 times 90 degrees.",
)


def _roll(xp: ArrayModule, a: Array, shifts: Ints, dims: Ints) -> Any:
    shifts = (shifts,) if isinstance(shifts, int) else tuple(shifts)
    dims = (dims,) if isinstance(dims, int) else tuple(dims or ())
    if not shifts:
        raise RuntimeError("`shifts` required")
    if not dims:
        if len(shifts) > 1:
            raise RuntimeError(f"shifts and dimensions must align. shifts: {len(shifts)}, dims:0")
        return row_major(xp.roll(a, shifts[0]))
    if not a.size and len(shifts) == len(dims):
        return kept(a.copy(), a)
    if len(shifts) != len(dims):
        raise RuntimeError(
            f"shifts and dimensions must align. shifts: {len(shifts)}, dims:{len(dims)}"
        )
    dims = tuple(wrap_dim(d, a.ndim, False) for d in dims)
    if len(dims) > 1 or a.size < MANY or a.__class__ is not np.ndarray or has_channels_last(a):
        # As the parts joined again, of which none may be empty, lie: with channels last, or in rows.
        last = a.ndim > 3 and all(n % a.shape[d] for n, d in zip(shifts, dims))
        return in_format(xp.roll(a, shifts, dims), last and has_channels_last(a))
    made, d = np.empty(a.shape, a.dtype), dims[0]
    shift, before = shifts[0] % a.shape[d], (slice(None),) * d
    for to, source in ((slice(shift, None), slice(-shift)), (slice(shift), slice(-shift, None))):
        if shift:
            assign(made[(*before, to)], a[(*before, source)])
    return made if shift else row_major(a.copy())


roll = in_own_type(
    "roll(Tensor self, int[] shifts, int[] dims=[]) -> Tensor",
    _roll,
    forms="function method",
    d_self=lambda g, shifts, dims: g.roll(
        -shifts if isinstance(shifts, int) else tuple(-s for s in shifts), dims
    ),
    names="same",
    doc="Elements moved along, the last ones coming in again at the front.",
)


def interleaved(xp: ArrayModule, a: Array, times: Array | int, d: int) -> Any:
    """Every element along a dimension repeated as often as all others, or as it says for each."""
    made = generic.attempt(xp, "interleaved", a, times, d) if np.size(times) == 1 else None
    return xp.repeat(a, times, d) if made is None else made


def _repeat_interleave(xp: ArrayModule, a: Array, repeats: Array, dim: int | None) -> Any:
    if dim is None:
        a, dim = a.reshape(-1), 0
    d = wrap_dim(dim, a.ndim)
    if hasattr(repeats, "dtype"):
        if repeats.dtype not in (np.int32, np.int64) and repeats.size:
            raise no_kernel("repeat_interleave_cpu", repeats.dtype)
        if repeats.ndim > 1:
            raise RuntimeError("repeat_interleave only accept 1D vector as repeat")
        if repeats.ndim == 1 and repeats.size not in (1, a.shape[d]):
            raise RuntimeError(
                "repeats must have the same size as input along dim, but got repeats.size(0) = "
                f"{repeats.size} and input.size({d}) = {a.shape[d]}"
            )
    if xp.any(xp.asarray(repeats) < 0):
        raise RuntimeError("Repeats must be non-negative")
    return interleaved(xp, a, repeats, d)


def _interleave_gradient(g: Tensor, self_shape: Shape, repeats: Tensor, dim: Any) -> Any:
    shape = (math.prod(self_shape),) if dim is None or not self_shape else tuple(self_shape)
    d = 0 if dim is None else dim % len(shape)
    counts = repeats.tolist() if hasattr(repeats, "tolist") else repeats
    counts = counts if isinstance(counts, list) else [counts]
    if len(counts) == 1:
        runs = g.reshape([*shape[: d + 1], counts[0], *shape[d + 1 :]])
        return runs.sum(d + 1).reshape(self_shape)
    index = g.new_tensor(np.repeat(np.arange(shape[d]), counts)).long()
    return g.new_zeros(shape).index_add(d, index, g).reshape(self_shape)


repeat_interleave = in_own_type(
    "repeat_interleave(Tensor self, Tensor repeats, int? dim=None) -> Tensor",
    _repeat_interleave,
    forms="",
    d_self=_interleave_gradient,
    data_dependent=True,
    doc="Every element repeated where it stands.",
)


@functools.lru_cache(64)
def inside(lower: bool, rows: int, columns: int, diagonal: int) -> Array:
    """Where a triangle is, in a small matrix. It is only to be read."""
    return np.tri(rows, columns, diagonal if lower else diagonal - 1, bool) == lower


def _triangle(name: str, lower: bool) -> Op:
    def kernel(xp: ArrayModule, a: Array, diagonal: int) -> Any:
        if a.ndim < 2:
            raise RuntimeError(f"{name}: input tensor must have at least 2 dimensions")
        made = generic.attempt(xp, "triangle", a, lower, diagonal) if a.size >= MANY else None
        if a.__class__ is np.ndarray and made is None:
            rows, columns = a.shape[-2:]
            return generic.where(inside(lower, rows, columns, diagonal), a, np.zeros((), a.dtype))
        return getattr(xp, name)(a, diagonal) if made is None else made

    record: Op = in_own_type(
        f"{name}(Tensor self, int diagonal=0) -> Tensor",
        kernel,
        forms="function method inplace out",
        overlap=True,
        d_self=lambda g, diagonal: record.function(g, diagonal),
        memory="rows",
        batch="leading",
        names="same",
        fresh=True,
        doc=f"The {'lower' if lower else 'upper'} triangle; zeros "
        f"{'above' if lower else 'below'} a diagonal.",
        out_type="same",
    )
    return record


tril, triu = _triangle("tril", True), _triangle("triu", False)


def _diag_embed(xp: ArrayModule, a: Array, offset: int, dim1: int, dim2: int) -> Any:
    ndim = a.ndim + 1
    d1, d2 = wrap_dim(dim1, ndim), wrap_dim(dim2, ndim)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    n = a.shape[-1] + abs(offset)
    shape = list(a.shape[:-1])
    for d in sorted((d1, d2)):
        shape.insert(d, n)
    full = xp.zeros(shape, a.dtype)
    rows = xp.arange(a.shape[-1]) + max(-offset, 0)
    xp.moveaxis(full, (d1, d2), (-2, -1))[..., rows, rows + offset] = a
    return full


diag_embed = in_own_type(
    "diag_embed(Tensor self, int offset=0, int dim1=-2, int dim2=-1) -> Tensor",
    _diag_embed,
    forms="function method",
    d_self=lambda g, offset, dim1, dim2: g.diagonal(offset, dim1, dim2),
    doc="Matrices with the last dimension on a diagonal.",
)
