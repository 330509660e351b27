"""Reductions that compare: largest and smallest elements, where they stand, any and all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt, counting, reduced, taken
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import PAIR, from_numpy_dtype, no_kernel
from toytorch.facts.hints import Array, ArrayModule, Ints, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops import aten_words, named_dims
from toytorch.ops.define import reduction
from toytorch.ops.indexing.along_dim import scattered
from toytorch.ops.reductions.reduce import axes, kept

MANY = 4096  # elements, up to which what counts is the number of NumPy's functions


def _refuse_empty(
    name: str, a: Array, dim: Ints | None, kernel: str = "", called: str = "()"
) -> None:
    """Refuses to compare nothing, and complex numbers: for want of a kernel, if one is named."""
    over = axes(dim, a.ndim)
    for d in over:
        if a.shape[d] == 0:
            if dim is None or (not isinstance(dim, int) and not len(dim)):
                raise RuntimeError(
                    f"{name}{called}: Expected reduction dim to be specified for input.numel() == "
                    "0. Specify the reduction dim with the 'dim' argument."
                )
            raise IndexError(f"{name}{called}: Expected reduction dim {d} to have non-zero size.")
    if a.dtype.kind == "c" and kernel:
        if a.size:
            raise no_kernel(kernel, a.dtype)
    elif a.dtype.kind == "c":
        raise RuntimeError(f"{name}: does not support complex input")


def _extreme(name: str) -> Any:
    def kernel(xp: ArrayModule, a: Array, dim: Ints | None, keepdim: bool) -> Any:
        _refuse_empty(name, a, dim, f"{name[1:]}_values_cpu")
        over = axes(dim, a.ndim)
        made = attempt(xp, "extreme_of_rows", name[1:], a) if over == (a.ndim - 1,) else None
        if made is not None:
            return made[..., None] if keepdim else made
        return getattr(xp, name)(a, axis=over, keepdims=keepdim)

    return kernel


def _share_ties(g: Tensor, self: Tensor, dim: Ints | None, keepdim: bool, result: Tensor) -> Any:
    mask = self == kept(result, self.shape, dim, keepdim)
    count = mask.sum(list(axes(dim, self.ndim)), True)
    return kept(g, self.shape, dim, keepdim) * mask.to(g.dtype) / count.to(g.dtype)


def share_ties_of_all(g: Tensor, self: Tensor, result: Tensor) -> Any:
    """The gradient of one element, shared by all that are equal to it; NaN counts as equal."""
    mask = (self == result) | (self.isnan() & result.isnan())
    return g * mask.to(g.dtype) / mask.sum().to(g.dtype)


amax = reduction(
    "amax(Tensor self, int[] dim=[], bool keepdim=False) -> Tensor",
    _extreme("amax"),
    d_self=_share_ties,
    of_reals="amax",
    batch="along",
    fused="max(self)",
    doc="Maximum over dimensions; ties share the gradient.",
    out_type="matched",
)
amin = reduction(
    "amin(Tensor self, int[] dim=[], bool keepdim=False) -> Tensor",
    _extreme("amin"),
    d_self=_share_ties,
    of_reals="amin",
    batch="along",
    fused="min(self)",
    doc="Minimum over dimensions; ties share the gradient.",
    out_type="matched",
)


def _all_extreme(name: str, ufunc: np.ufunc) -> Any:
    def kernel(xp: ArrayModule, a: Array) -> Any:
        if not a.size or a.dtype.kind == "c":
            _refuse_empty(name, a, None, f"{name}_all")
        made = attempt(xp, "extreme", end, a)
        return reduced(ufunc, xp, a) if made is None else made

    end = "most" if ufunc is np.maximum else "least"
    return kernel


def edge_of_nothing(like: Tensor, largest: bool) -> Any:
    """What max (the lowest number of its type) and min (the highest) put into out= where there are
    no elements; without out= they refuse."""
    kind = like.dtype
    if kind.rank > 1:
        return like.new_full((), np.inf if largest else -np.inf)
    if kind.kind == "b":
        return like.new_full((), largest)
    info = np.iinfo(kind.numpy)
    return like.new_full((), info.max if largest else info.min)


def _aminmax(xp: ArrayModule, a: Array, dim: int | None, keepdim: bool) -> Any:
    if dim is None and not a.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the "
            "operation has no identity."
        )
    if dim is None and a.__class__ is np.ndarray and a.dtype.kind != "c" and not keepdim:
        made = attempt(xp, "ends", a)
        return (np.minimum.reduce(a, None), np.maximum.reduce(a, None)) if made is None else made
    _refuse_empty("aminmax", a, dim, "aminmax_cpu")
    over = axes(dim, a.ndim)
    low, high = (reduced(ufunc, xp, a, over, keepdim) for ufunc in (np.minimum, np.maximum))
    return low, high


def _aminmax_gradient(
    gs: Sequence[Tensor],
    self: Tensor,
    dim: int | None,
    keepdim: bool,
    result0: Tensor,
    result1: Tensor,
) -> Any:
    parts = [
        _share_ties(g, self, dim, keepdim, r)
        for g, r in zip(gs, (result0, result1))
        if g is not None
    ]
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


aminmax = reduction(
    "aminmax(Tensor self, *, int? dim=None, bool keepdim=False) -> (Tensor min, Tensor max)",
    _aminmax,
    d_self=_aminmax_gradient,
    forms="out",
    apart=lambda self, dim, _: () if dim is None else (self,),
    out_type="same",
    doc="The smallest and the largest element, over all or one dimension.",
)


def _extreme_of_all(name: str, ufunc: np.ufunc, doc: str) -> Op:
    return reduction(
        f"{name}(Tensor self) -> Tensor",
        _all_extreme(name, ufunc),
        forms="out",
        node=f"{name.capitalize()}Backward1",
        d_self=share_ties_of_all,
        names=named_dims.none,
        fused=f"{name}(self)",
        doc=f"The {doc} element.",
    )


max_all = _extreme_of_all("max", np.maximum, "largest")
min_all = _extreme_of_all("min", np.minimum, "smallest")


def _with_indices(name: str) -> Any:
    first = "arg" + name  # of NaN the first

    def kernel(xp: ArrayModule, a: Array, dim: int, keepdim: bool) -> Any:
        d = wrap_dim(dim, a.ndim)
        if a.ndim == 0:
            if a.dtype.kind == "c":
                raise RuntimeError(f"{name}(): does not support complex input")
            return a.copy(), xp.zeros((), np.int64)
        _refuse_empty(name, a, dim)
        if a.__class__ is np.ndarray and a.ndim == 2 and d == 1 and not keepdim and a.size < MANY:
            index = getattr(a, first)(1)
            return a[counting(len(a)), index], index
        index = getattr(xp, first)(a, axis=d, keepdims=True).astype(np.int64, copy=False)
        values = taken(xp, a, index, d)
        return (values, index) if keepdim else (values.squeeze(d), index.squeeze(d))

    return kernel


def back_to_place(
    gs: Sequence[Tensor], self_shape: Sizes, dim: int, keepdim: bool, result1: Tensor
) -> Any:
    """The gradient of one element of each row, put where it was."""
    return scattered.function(gs[0], self_shape, dim, result1)


def _along(name: str, doc: str) -> Op:
    return reduction(
        f"{name}.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
        _with_indices(name),
        forms="method out",
        d_self=back_to_place,
        batch="along",
        apart="partly",
        out_type="same",
        doc=f"{doc} along a dimension and where it is.",
    )


max_dim, min_dim = _along("max", "Maximum"), _along("min", "Minimum")


def _arg(name: str) -> Any:
    def kernel(xp: ArrayModule, a: Array, dim: int | None, keepdim: bool) -> Any:
        if a.dtype.kind == "b":
            raise RuntimeError(f"{name}(): does not support bool input")
        if a.dtype.kind == "c":
            raise RuntimeError(f"{name}: does not support complex input")
        if dim is not None:
            dim = wrap_dim(dim, a.ndim)
        if a.size == 0 and (dim is None or a.shape[dim] == 0):
            if dim is None:
                raise IndexError(
                    f"{name}(): Expected reduction dim to be specified for input.numel() == 0."
                )
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        if a.ndim == 0:
            return xp.zeros((), np.int64)
        if a.__class__ is np.ndarray and not keepdim:
            return getattr(a, name)(dim)
        return xp.asarray(getattr(xp, name)(a, axis=dim, keepdims=keepdim), dtype=np.int64)

    return kernel


argmax = reduction(
    "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    _arg("argmax"),
    upcast=False,
    batch="along",
    doc="Where the maximum is.",
    out_type="same",
)
argmin = reduction(
    "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    _arg("argmin"),
    upcast=False,
    batch="along",
    doc="Where the minimum is.",
    out_type="same",
)


def _any_all(name: str, ufunc: np.ufunc) -> Any:
    def kernel(xp: ArrayModule, a: Array, dim: Ints | None, keepdim: bool) -> Any:
        a = a != 0 if a.dtype.kind == PAIR else a  # of which NumPy asks the real parts
        if dim is None and not keepdim and a.dtype == np.bool_:
            return reduced(ufunc, xp, a)
        over = (
            tuple(range(a.ndim))
            if dim is None
            else (() if isinstance(dim, (list, tuple)) and not dim else axes(dim, a.ndim))
        )
        result = getattr(xp, name)(a, axis=over, keepdims=keepdim)
        return result.astype(np.uint8) if a.dtype == np.uint8 else result

    return kernel


all = reduction(
    "all(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    _any_all("all", np.logical_and),
    upcast=False,
    overload=aten_words.along,
    doc="Whether all elements are non-zero.",
    out_type="truth",
)
any = reduction(
    "any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    _any_all("any", np.logical_or),
    upcast=False,
    overload=aten_words.along,
    doc="Whether some element is non-zero.",
    out_type="truth",
)
count_nonzero = reduction(
    "count_nonzero(Tensor self, int[]? dim=None) -> Tensor",
    lambda xp, a, dim: xp.asarray(
        xp.count_nonzero(a, axis=None if dim is None else axes(dim, a.ndim)), dtype=np.int64
    ),
    upcast=False,
    forms="function method",
    overload=aten_words.listed,
    doc="How many elements are non-zero.",
)


def _hash(xp: ArrayModule, a: Array, dim: Ints | None, keepdim: bool, mode: int) -> Any:
    if mode:
        raise RuntimeError(f"Unknown hash_tensor mode: {mode}")
    _refuse_empty("hash_tensor", a, dim, "xor_sum_cpu", "")
    kind = from_numpy_dtype(a.dtype)
    if kind.storage_only or (a.dtype.kind == "u" and a.itemsize > 1):
        raise no_kernel("xor_sum_cpu", a.dtype)
    bits = a.astype(np.float64 if kind.rank == 2 else np.int64).view(np.uint64)
    for d in axes(dim, a.ndim):
        rows = xp.moveaxis(bits, d, 0)
        while len(rows) > 1:  # the first half with the second, and one that is left over
            half = len(rows) // 2
            rows = xp.concatenate([rows[:half] ^ rows[half : 2 * half], rows[2 * half :]])
        bits = xp.moveaxis(rows, 0, d)
    return bits if keepdim else bits.squeeze(axes(dim, a.ndim))


hash_tensor = reduction(
    "hash_tensor(Tensor self, int[]? dim=[], *, bool keepdim=False, int mode=0) -> Tensor",
    _hash,
    forms="function method out",
    upcast=False,
    doc="The bits of all elements, as numbers of 64 bits, joined by exclusive or.",
    out_type="hash",
)

# -- norms and exponentials -----------------------------------------------------------------------
