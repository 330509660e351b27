"""Ops that take dimensions together: sums, means, extremes, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from toytorch.backends.generic import attempt, reduced, some, worthwhile
from toytorch.backends.sparse import SparseArray
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.dtype import from_numpy_dtype, no_kernel
from toytorch.facts.hints import Array, ArrayModule, DType, Ints, Sizes
from toytorch.facts.size import wrap_dim, wrap_dims
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops import aten_words, batching
from toytorch.ops.at_once import at_once
from toytorch.ops.define import reduction, view
from toytorch.ops.shaping.rearrange import cat


def axes(dim: Ints | None, ndim: int) -> tuple[int, ...]:
    """The dimensions to take together: all of them for None or an empty list."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    if dim.__class__ is int and 0 <= dim < ndim:
        return (dim,)
    found = wrap_dims(dim, ndim) if isinstance(dim, int) else wrap_dims(tuple(dim), ndim)
    return () if ndim == 0 else found


def spread_over(g: Tensor, shape: Sizes, dim: Ints | None, keepdim: bool) -> Any:
    """A gradient of a reduction, over the shape that was reduced."""
    return kept(g, shape, dim, keepdim).expand(shape)


def kept(value: Any, shape: Sizes, dim: Ints | None, keepdim: bool) -> Any:
    """A result of a reduction with its reduced dimensions put back as 1; one number stays as it is,
    which any shape takes."""
    if not keepdim and value.ndim:
        for d in sorted(axes(dim, len(shape))):
            value = value.unsqueeze(d)
    return value


def sum_type(array: SparseArray | Array, dtype: DType | None) -> Any:
    """NumPy's type for the result of a sum: the one asked for, or int64 for integers."""
    if dtype is not None:
        return dtype.numpy
    return np.int64 if array.dtype.kind in "biu" else array.dtype


def _need_float(name: str, array: Array) -> None:
    if array.dtype.kind in "biu":
        raise RuntimeError(f"{name} only support floating point and complex dtypes")


def _large(
    xp: ArrayModule,
    a: Array,
    dim: Ints | None,
    keepdim: bool,
    kind: npt.DTypeLike,
    mean: bool = False,
) -> Any:
    """A sum or a mean in one compiled pass, where there is one for these dimensions; else None."""
    if kind != a.dtype:
        return None
    over = axes(dim, a.ndim)
    made = attempt(xp, "sum", a, over, mean)
    if made is not None and keepdim:
        return made.reshape([1 if d in over else n for d, n in enumerate(a.shape)])
    return made


def _sum(
    xp: ArrayModule, a: Array, dim: Ints | None, keepdim: bool = False, dtype: DType | None = None
) -> Any:
    if dim is None and dtype is None and not keepdim and a.size >= SMALLEST:  # the usual call
        made = attempt(xp, "sum", a)
        if made is not None:
            return made
    elif dim is None and dtype is None and not keepdim and a.ndim and a.dtype.char in "fd":
        return xp.add.reduce(a, None)
    kind = sum_type(a, dtype)
    if worthwhile(a, SMALLEST):
        made = _large(xp, a, dim, keepdim, kind)
        if made is not None:
            return made
    if dim.__class__ is int and -a.ndim <= dim < a.ndim:
        return xp.add.reduce(a, axis=dim, keepdims=keepdim, dtype=kind)
    return xp.add.reduce(a, axis=axes(dim, a.ndim), keepdims=keepdim, dtype=kind)


def _of_halves(
    a: Array,
    dim: Ints | None = None,
    keepdim: bool = False,
    dtype: DType | None = None,
    mean: bool = False,
) -> Any:
    """The sum or mean of many numbers of a half type in float32, which one pass widens; else None."""
    if dtype is not None or a.size < SMALLEST:
        return None
    made = _large(np, a, dim, keepdim, a.dtype, mean)
    return None if made is None else np.asarray(made, order="C")


def by_dim(self: Tensor, dim: Ints | None = None, *rest: bool | None) -> int:
    """PyTorch's overload number: 0 for all dimensions, 1 where some are named."""
    return 0 if dim is None else 1


def _spread(xp: ArrayModule, g: Array, shape: Sizes, dim: Ints | None, keepdim: bool) -> Any:
    if not g.ndim:  # every element is the one there is
        made = attempt(xp, "repeat", g, shape)
        if made is not None:
            return made
    if not keepdim and len(shape):
        over = axes(dim, len(shape))
        g = g.reshape([1 if d in over else n for d, n in enumerate(shape)])
    return xp.broadcast_to(g, tuple(shape))


view(
    "_spread(Tensor self, int[] shape, int[]? dim, bool keepdim) -> Tensor",
    _spread,
    d_self=lambda g, self_shape, dim, keepdim: g.sum(dim, keepdim).reshape(self_shape),
    batch=batching.spread_sum,
    doc="A result of a reduction over the shape that was reduced: the gradient of a sum.",
)
sum = reduction(
    "sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _sum,
    variant=by_dim,
    d_self="_spread(g, self_shape, dim, keepdim)",
    upcast=_of_halves,
    batch="along",
    fused="sum(self)",
    alone="given",
    out_type="given",
    doc="Sum over dimensions; integers are added as int64.",
)


def _nansum(xp: ArrayModule, a: Array, dim: Ints | None, keepdim: bool, dtype: DType | None) -> Any:
    axes(dim, a.ndim)  # which comes first
    if a.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if dtype is not None and dtype.is_complex and a.size and a.dtype.kind == "f":
        raise no_kernel("nansum_cpu", dtype.numpy)
    whole = dtype is not None and dtype.rank < 2  # which holds no NaN to look for
    if a.__class__ is np.ndarray and a.dtype.kind == "f" and a.flags.c_contiguous and not whole:
        made = _sum(xp, a, dim, keepdim, dtype)  # which is NaN where there was one
        if not some(made != made):
            return made
    if a.dtype.kind == "f":
        a = xp.where(xp.isnan(a), a.dtype.type(0), a)
    return _sum(xp, a, dim, keepdim, dtype)


nansum = reduction(
    "nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _nansum,
    d_self=lambda g, self, dim, keepdim: spread_over(g, self.shape, dim, keepdim) * ~self.isnan(),
    fused="sum(self if self == self else 0)",
    out_type="given",
    overload="default",
    doc="Sum over dimensions with NaN left out.",
)


def _mean(xp: ArrayModule, a: Array, dim: Ints | None, keepdim: bool, dtype: DType | None) -> Any:
    kind = a.dtype if dtype is None else np.dtype(dtype.numpy)
    if kind.kind in "biu":
        raise RuntimeError(
            f"mean(): could not infer output dtype. {'Input' if dtype is None else 'Optional'} "
            f"dtype must be either a floating point or complex dtype. Got: {from_numpy_dtype(kind).legacy}"
        )
    made = _large(xp, a, dim, keepdim, kind, True) if worthwhile(a, SMALLEST) else None
    if made is not None:
        return made
    over = axes(dim, a.ndim)
    count = a.size if len(over) == a.ndim else math.prod([a.shape[d] for d in over])
    made = xp.add.reduce(a, axis=over, keepdims=keepdim, dtype=kind)
    if kind.char in "fd" and count:
        return made / kind.type(count)
    return made / xp.asarray(count).astype(made.dtype)


def _count(shape: Sizes, dim: Ints | None) -> int:
    return math.prod(shape[d] for d in axes(dim, len(shape))) if shape else 1


def _mean_gradient(g: Tensor, self_shape: Sizes, dim: Ints | None, keepdim: bool) -> Any:
    over = axes(dim, len(self_shape))
    made = at_once({}, "spread_mean", g, tuple(self_shape), over, keepdim)
    if made:
        return made[0]
    return spread_over(g, self_shape, dim, keepdim) / _count(self_shape, dim)


mean = reduction(
    "mean(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _mean,
    variant=by_dim,
    d_self=_mean_gradient,
    upcast=partial(_of_halves, mean=True),
    batch="along",
    fused="sum(self) / count",
    alone="given",
    out_type="fractions",
    overload=aten_words.one_word("dim"),
    doc="Arithmetic mean over dimensions.",
)


def _prod(xp: ArrayModule, a: Array, dim: int | None, keepdim: bool, dtype: DType | None) -> Any:
    if dim is not None:
        dim = wrap_dim(dim, a.ndim)
    axis = None if dim is None or a.ndim == 0 else dim
    if worthwhile(a, SMALLEST) and dtype is None:
        over = None if axis is None else (axis,)
        made = attempt(xp, "folded", "prod(self)", {"self": a}, {}, over, keepdim)
        if made is not None:
            return made
    return xp.prod(a, axis=axis, keepdims=keepdim and a.ndim > 0, dtype=sum_type(a, dtype))


def _prod_gradient(g: Tensor, self: Tensor, dim: int | None, keepdim: bool, result: Tensor) -> Any:
    if self.ndim == 0:
        return g
    if self._dtype is not g._dtype:  # dtype= was given
        self = self.to(g._dtype)
    if dim is None:
        if self._batches is None and not bool((self == 0).any()):
            return g * result / self
        flat = _prod_gradient(g, self.reshape(-1), 0, False, result)
        return flat.reshape(self.shape)
    g, result = kept(g, self.shape, dim, keepdim), kept(result, self.shape, dim, keepdim)
    if self._batches is None and not bool((self == 0).any()):
        return g * result / self
    # With zeros, the product of the others: running products from both ends.
    ones = self.narrow(dim, 0, 1) * 0 + 1
    n = self.shape[dim]
    if n == 1:
        return g * ones
    before = cat.function([ones, self.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = cat.function([ones, self.flip(dim).narrow(dim, 0, n - 1)], dim).cumprod(dim).flip(dim)
    return g * (before * after)


prod = reduction(
    "prod(Tensor self, int? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _prod,
    variant=by_dim,
    d_self=_prod_gradient,
    amp="float32",
    batch="along",
    fused="prod(self)",
    alone="no None",
    out_type="given",
    out_needs="dim",
    overload=aten_words.one_word("dim_int"),
    doc="Product over a dimension; integers are multiplied as int64.",
)


SPREAD = (
    "d = self - sum(self) / count; "
    "v = sum(d * d) / (count - correction if count > correction else 0); "
)


def _var(xp: ArrayModule, a: Array, dim: Ints | None, correction: int, keepdim: bool) -> Any:
    _need_float("std and var", a)
    over = axes(dim, a.ndim)
    count = a.size if len(over) == a.ndim else math.prod([a.shape[d] for d in over])
    if count > correction and (len(over) < a.ndim or worthwhile(a, SMALLEST)):
        given = {"correction": correction}
        made = attempt(xp, "folded", SPREAD + "v", {"self": a}, given, over, keepdim)
        if made is not None:
            return made
    elif len(over) == a.ndim and not keepdim and correction.__class__ is int:
        made = attempt(xp, "spread", a, max(a.size - correction, 0), False)
        if made is not None:
            return made
    mean = xp.add.reduce(a, axis=over, keepdims=True) / a.dtype.type(count) if count else xp.nan
    centre = a - mean
    squares = xp.abs(centre) ** 2 if a.dtype.kind == "c" else centre * centre
    total = xp.add.reduce(squares, axis=over, keepdims=keepdim)
    degrees = max(0, count - correction) if count else 0  # of nothing, NaN; less NaN, 0
    return total / total.dtype.type(degrees)


def _var_gradient(g: Tensor, self: Tensor, dim: Ints | None, correction: int, keepdim: bool) -> Any:
    # No dimensions are all of them; but PyTorch's derivative counts one number then.
    alone = dim is not None and not isinstance(dim, int) and not dim and self.ndim
    degrees = (1 if alone else _count(self.shape, dim)) - correction
    over = list(axes(dim, self.ndim))
    g = kept(g, self.shape, dim, keepdim)  # what is broadcast leaves the order of memory alone
    centred = self - self.mean(over, True)
    if degrees <= 0 and (dim is None or not self.ndim):  # as PyTorch; along dimensions it differs
        steep = (centred == 0).to(g.dtype) * 0 + math.inf
        return g * steep.masked_fill(centred == 0, math.nan)
    return g * (2.0 / degrees if degrees else math.inf) * centred


def _in_type_of_out(common: Any, args: tuple[Any, ...]) -> None:
    """Refuses an out= in whose type PyTorch, which computes in that, has no kernel."""
    x, dim = args[0], args[1]
    if common is None or common.rank < 2 or x.dtype.rank != 2 or not x._array.size:
        return
    alone = math.prod(_left(x._array.shape, axes(dim, x._array.ndim))) == 1
    if alone and x.dtype.reduced and not common.reduced:
        raise RuntimeError(f"std_var_all: Unsupported dtype {x.dtype.legacy}")
    if not alone and common.rank > 2:
        raise no_kernel("std_cpu", common.numpy)


var = reduction(
    "var(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> Tensor",
    _var,
    d_self=_var_gradient,
    holomorphic=False,
    forms="out",
    batch="along",
    fused=SPREAD + "v",
    out_type="alike",
    checks=_in_type_of_out,
    doc="Variance, Σ(x - mean)²/(n - correction).",
)


def _std(xp: ArrayModule, a: Array, dim: Ints | None, correction: int, keepdim: bool) -> Any:
    if dim is None and not keepdim and correction.__class__ is int:
        made = attempt(xp, "spread", a, max(a.size - correction, 0), True)
        if made is not None:
            return made
    made = xp.sqrt(_var(xp, a, dim, correction, keepdim))
    if a.dtype != np.float32:
        return made
    large = xp.isinf(made)
    if reduced(np.logical_or, xp, large) if large.ndim else large:
        # The squares do not fit, though the root may.
        return _std(xp, a.astype(np.float64), dim, correction, keepdim).astype(np.float32)
    return made


def zero_where(size: Tensor, quotient: Tensor, in_place: bool = False) -> Any:
    """A quotient by something of this size, with zeros where that is 0: the same tensor, where nobody
    looks on and nothing is 0."""
    array = size._array
    if state.fast_path is not state.SLOW and array.__class__ is np.ndarray and array.all():
        return quotient
    return (quotient.masked_fill_ if in_place else quotient.masked_fill)(size == 0, 0)


def _std_gradient(
    g: Tensor, self: Tensor, dim: Ints | None, correction: int, keepdim: bool, result: Tensor
) -> Any:
    share = zero_where(result, g / (2 * result))
    return _var_gradient(share, self, dim, correction, keepdim)


std = reduction(
    "std(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> Tensor",
    _std,
    d_self=_std_gradient,
    holomorphic=False,
    forms="out",
    batch="along",
    fused=SPREAD + "sqrt(v)",
    out_type="alike",
    checks=_in_type_of_out,
    doc="Standard deviation, the root of the variance.",
)


def _left(shape: Sizes, over: tuple[int, ...]) -> list[int]:
    return [n for d, n in enumerate(shape) if d not in over]


def _running_mean(xp: ArrayModule, a: Array, dim: Any, keepdim: bool) -> Any:
    """A mean as a running update finds it: NaN, if anything comes after an infinity; of complex
    numbers each part by itself."""
    if a.dtype.kind == "c":
        parts = [_running_mean(xp, part, dim, keepdim) for part in (a.real, a.imag)]
        whole = xp.empty(parts[0].shape, a.dtype)
        whole.real, whole.imag = parts
        return whole
    mean = _mean(xp, a, dim, keepdim, None)
    if not xp.isinf(mean).any():
        return mean
    over = axes(dim, a.ndim)
    rows = xp.moveaxis(a, over, range(-len(over), 0)).reshape(*_left(a.shape, over), -1)
    late = xp.isinf(rows[..., :-1]).any(-1).reshape(mean.shape)
    return xp.where(late, mean.dtype.type(math.nan), mean)


def _with_mean(
    name: str, spread: Any, xp: ArrayModule, a: Array, dim: Any, correction: int, keepdim: bool
) -> tuple[Any, Any]:
    _need_float(name, a)
    mean = _running_mean(xp, a, dim, keepdim)
    return spread(xp, a, dim, correction, keepdim), mean


def _gradient_with_mean(
    of_spread: Any,
    gs: Sequence[Tensor | None],
    self: Tensor,
    dim: Ints | None,
    correction: int,
    keepdim: bool,
    *result: Tensor,
) -> Any:
    spread, mean = getattr(gs, "given", gs)  # zeros in the place of None would be differentiated
    parts = []
    if spread is not None:
        parts.append(of_spread(spread, self, dim, correction, keepdim, *result))
    if mean is not None:
        parts.append(spread_over(mean, self.shape, dim, keepdim) / _count(self.shape, dim))
    return parts[0] if len(parts) == 1 else parts[0] + parts[1]


var_mean = reduction(
    "var_mean(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> "
    "(Tensor, Tensor)",
    partial(_with_mean, "var_mean", _var),
    d_self=lambda gs, self, dim, correction, keepdim: _gradient_with_mean(
        _var_gradient, gs, self, dim, correction, keepdim
    ),
    holomorphic=False,
    forms="",
    batch="along",
    doc="Variance and mean.",
)
std_mean = reduction(
    "std_mean(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> "
    "(Tensor, Tensor)",
    partial(_with_mean, "std_mean", _std),
    d_self=lambda gs, self, dim, correction, keepdim, result0: _gradient_with_mean(
        _std_gradient, gs, self, dim, correction, keepdim, result0
    ),
    holomorphic=False,
    forms="",
    batch="along",
    doc="Standard deviation and mean.",
)

# -- extremes -------------------------------------------------------------------------------------
