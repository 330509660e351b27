"""Sums, products, means and extremes of what lands on one place: scatter_reduce, index_reduce."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends import generic
from toytorch.core.memory_order import in_rows
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import state, warned
from toytorch.facts.dtype import dtype, from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import general
from toytorch.ops.indexing.along_dim import back_to_source, check_slices, cut, places
from toytorch.ops.indexing.by_index import add_at, type_name

# Where a reduction starts if what was there before does not count.
NEUTRAL = {"sum": 0, "mean": 0, "prod": 1, "amax": -np.inf, "amin": np.inf}


def _neutral(how: str, kind: np.dtype[Any]) -> Any:
    if how in ("amax", "amin") and kind.kind != "f":
        limits = (False, True) if kind.kind == "b" else (np.iinfo(kind).min, np.iinfo(kind).max)
        return limits[how == "amin"]
    return NEUTRAL[how]


def reduce_at(
    xp: ArrayModule, flat: Array, at: Array, values: Array, how: str, include: bool
) -> None:
    """Reduces values into flat[at], which are counted or not."""
    touched = xp.unique(at)
    if not include:
        flat[touched] = _neutral(how, flat.dtype)
    if how in ("sum", "mean"):
        add_at(xp, flat, at, values)
    else:
        name = {"prod": "multiply", "amax": "maximum", "amin": "minimum"}[how]
        generic.at(xp, name, flat, at, values)
    if how == "mean":
        counts = xp.bincount(at, minlength=flat.size)[touched] + include
        sums = flat[touched]
        if flat.dtype.kind in "iu":
            flat[touched] = xp.floor_divide(sums, counts)
        else:
            flat[touched] = sums / counts.astype(flat.dtype)


KERNELS = {"sum": "plus", "mean": "plus", "prod": "times", "amax": "most", "amin": "least"}


def reduced_by_kernel(
    xp: ArrayModule, a: Array, d: int, i: Array, src: Array, how: str, include: bool
) -> Any:
    """The reduction in one pass over the index, or None where there is no kernel for these arrays, or
    an index is outside."""
    if not (a.ndim == i.ndim == src.ndim > 0 and i.shape == src.shape and i.size):
        return None

    def meet(kind: str, target: Array, values: Array) -> Any:
        return generic.attempt(xp, "combine", kind, target, d, i, values)

    result = in_rows(a)
    neutral = None if include else np.full(i.shape, _neutral(how, a.dtype), a.dtype)
    if neutral is not None and not meet("set", result, neutral):
        return None
    if not meet(KERNELS[how], result, src):
        return None
    if how == "mean":
        count = np.full(a.shape, int(include))
        if not meet("plus", count, np.ones(i.shape, np.int64)):
            return None
        count[count == 0] = 1
        count = count.astype(a.dtype)
        return result // count if a.dtype.kind == "i" else result / count
    return result


def no_extremes(kernel: str, a: Array) -> None:
    """Refuses complex numbers, of which none is the largest."""
    if a.dtype.kind == "c":
        # PyTorch's class of error, and its words.
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{type_name(a)}'")


def same_of_source(a: Any, src: Any) -> None:
    """Refuses values of another type than what they are put into has."""
    if src.dtype != a.dtype:
        raise RuntimeError("scatter(): Expected self.dtype to be equal to src.dtype")


def same_of_slices(a: Any, source: Any) -> None:
    """Refuses slices of another type than what they are put into has."""
    if source.dtype != a.dtype:
        x, y = (
            (t.dtype if isinstance(t.dtype, dtype) else from_numpy_dtype(t.dtype)).legacy
            for t in (a, source)
        )
        raise RuntimeError(
            f"index_reduce_(): self ({x}) and source ({y}) must have the same scalar type"
        )


def _scatter_reduce(
    xp: ArrayModule, a: Array, dim: int, i: Array, src: Array, how: str, include: bool
) -> Any:
    if how not in NEUTRAL:
        raise RuntimeError(
            f"reduce argument must be either sum, prod, mean, amax or amin, got {how}"
        )
    d = wrap_dim(dim, a.ndim)
    same_of_source(a, src)
    made = reduced_by_kernel(xp, a, d, i, src, how, include)
    if made is not None:
        return made
    flat = places("scatter", xp, a, dim, i, src)
    result = in_rows(a)
    if i.size:
        if how in ("amax", "amin"):
            no_extremes(f"scatter_gather_tensor_cpu_reduce_{how}", a)
        reduce_at(xp, result.reshape(-1), flat.reshape(-1), cut(src, i).reshape(-1), how, include)
    return result


# -- derivatives ----------------------------------------------------------------------------------


def _ties(
    self: Tensor, dim: int, index: Tensor, part: Tensor, result: Tensor
) -> tuple[Any, Any, Any]:
    """Where self and the source are the extreme, and how many share it."""
    mine = (self == result).to(result.dtype)
    theirs = (part == result.gather(dim, index)).to(result.dtype)
    return mine, theirs, mine.scatter_add(dim, index, theirs)


def _number(g: Tensor, dim: int, index: Tensor, include: bool) -> Any:
    """How many values met at each place (1 where none did)."""
    start = g.new_ones(g.shape) if include else g.new_zeros(g.shape)
    ones = g.new_ones(index.shape)
    count = start.scatter_add(dim, index, ones)
    return count.masked_fill(count == 0, 1)


def _to_self(
    g: Tensor,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
    result: Tensor,
) -> Any:
    if reduce == "mean":
        g = g / _number(g, dim, index, include_self)
    elif reduce == "prod":
        others = self.masked_fill(self == 0, 1)
        product = others.scatter_reduce(dim, index, src, "prod", include_self=include_self)
        # Where self is 0 its slope is the product of what came from the source.
        g = g * product / others
    elif reduce in ("amax", "amin"):
        mine, _, count = _ties(self, dim, index, src, result)
        g = mine * g / count
    return g if include_self else g.scatter(dim, index, 0)


def _share(
    g: Tensor,
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor,
    reduce: str,
    include_self: bool,
    result: Tensor,
    name: str,
) -> Any:
    """The gradient of the source, which an op calls by a name; refused where it cannot be
    differentiated again."""
    if reduce in ("sum", "mean"):
        g = g / _number(g, dim, index, include_self) if reduce == "mean" else g
        return back_to_source(g, dim, index, src.shape, "ScatterReduce")
    if reduce in ("amax", "amin"):
        _, theirs, count = _ties(self, dim, index, src, result)
        # As in PyTorch, self counts among those that share, whether it was asked or not.
        return theirs * (g / count).gather(dim, index)
    zero = src == 0
    count = g.new_zeros(g.shape).scatter_add(dim, index, zero.to(g.dtype)).gather(dim, index)
    found = (zero & (count > 1)).any()
    several = state.local.grad and found._batches is None and bool(found)
    alone = zero & (count == 1)  # a single zero: its slope is the product of all the others
    others = self.scatter_reduce(
        dim, index, src.masked_fill(alone, 1), "prod", include_self=include_self
    )
    slope = (g * others).gather(dim, index).masked_fill(~alone, 0) + (
        (g * result).gather(dim, index) / src.masked_fill(zero, 1)
    ).masked_fill(zero, 0)
    if several:
        from toytorch.core.barriers import DelayedError  # seldom needed

        op, source = name.split()
        refusal = (
            f"{op}(): Double backward is unsupported for {source} when >1 zeros in {source} are "
            "scattered to the same position in self"
        )
        return DelayedError(refusal, 1)(slope)
    return slope


scatter_reduce: Op = general(
    "scatter_reduce(Tensor self, int dim, Tensor index, Tensor src, str reduce, *, "
    "bool include_self=True) -> Tensor",
    _scatter_reduce,
    apart="own in place",
    forms="function method inplace out",
    d_self=_to_self,
    d_src=lambda g, self, dim, index, src, reduce, include_self, result: _share(
        g, self, dim, index, src, reduce, include_self, result, "scatter_reduce src"
    ),
    of_reals="scatter_reduce",
    doc="self[index[i][j]][j] and all src[i][j] that meet there as their sum, prod, mean, amax or "
    "amin (for dim=0).",
    out_type="same",
    checks=lambda _, args: same_of_source(args[0], args[3]),
)

# -- with an index vector -------------------------------------------------------------------------


def _spread_index(index: Tensor, dim: int, shape: Sizes) -> Any:
    """An index vector as the index of each element of a source."""
    if not shape:
        return index.reshape(())
    d = dim % len(shape)
    return index.reshape([-1 if k == d else 1 for k in range(len(shape))]).expand(shape)


def _index_reduce(
    xp: ArrayModule, a: Array, dim: int, i: Array, source: Array, how: str, include: bool
) -> Any:
    if how not in ("prod", "mean", "amax", "amin"):
        raise RuntimeError(
            f"index_reduce(): Expected reduce to be one of prod, mean, amax or amin but got {how}."
        )
    d = wrap_dim(dim, a.ndim)
    if i.ndim > 1:
        raise IndexError(
            "index_reduce_(): Index is supposed to be a vector, but got dim: "
            f"{i.ndim} with type: {type_name(i)} and size: {list(i.shape)}"
        )
    if i.dtype.kind != "i" or i.dtype.itemsize < 4:
        raise RuntimeError(
            f"index_reduce_(): Expected dtype int32/int64 for index but got: {type_name(i)}"
        )
    same_of_slices(a, source)
    check_slices("index_reduce_", a, d, i, source)
    warned.once("index_reduce() is in beta and the API may change at any time.")
    if how in ("amax", "amin") and i.size:
        no_extremes("maximum_cpu" if how == "amax" else "minimum_cpu", a)
    n = a.shape[d] if a.ndim else 1
    if i.size and (int(i.min()) < 0 or int(i.max()) >= n):
        raise IndexError("index out of range in self")
    shape = [-1 if k == d else 1 for k in range(source.ndim)]
    wide = xp.broadcast_to(i.reshape(shape), source.shape)
    return _scatter_reduce(xp, a, dim, wide, source, how, include)


index_reduce = general(
    "index_reduce(Tensor self, int dim, Tensor index, Tensor source, str reduce, *, "
    "bool include_self=True) -> Tensor",
    _index_reduce,
    apart="in place",
    forms="function method inplace out",
    d_self=lambda g, self, dim, index, source, reduce, include_self, result: _to_self(
        g, self, dim, _spread_index(index, dim, source.shape), source, reduce, include_self, result
    ),
    d_source=lambda g, self, dim, index, source, reduce, include_self, result: _share(
        g,
        self,
        dim,
        _spread_index(index, dim, source.shape),
        source,
        reduce,
        include_self,
        result,
        "index_reduce source",
    ),
    of_reals="index_reduce",
    doc="Slices of source and those of self that index names as their prod, mean, amax or amin.",
    out_type="same",
    checks=lambda _, args: same_of_slices(args[0], args[3]),
)
