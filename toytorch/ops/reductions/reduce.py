"""Ops that take dimensions together: sums, means, extremes, norms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from toytorch.backends.base import attempt
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.size import wrap_dim, wrap_dims
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops import batching, named_dims
from toytorch.ops.define import reduction, view
from toytorch.ops.shaping.rearrange import cat

if TYPE_CHECKING:
    from toytorch.backends.sparse import SparseArray
    from toytorch.core.tensor import Tensor


def axes(dim: Sequence[int] | int | None, ndim: int) -> tuple[int, ...]:
    """The dimensions to take together: all of them for None or an empty list."""
    if dim is None or (isinstance(dim, (tuple, list)) and not dim):
        return tuple(range(ndim))
    found = wrap_dims(dim, ndim) if isinstance(dim, int) else wrap_dims(tuple(dim), ndim)
    return () if ndim == 0 else found


def spread_over(
    g: Tensor, shape: tuple[int, ...], dim: Sequence[int] | int | None, keepdim: bool
) -> Any:
    """A gradient of a reduction, over the shape that was reduced."""
    if not keepdim and shape:
        for d in sorted(axes(dim, len(shape))):
            g = g.unsqueeze(d)
    return g.expand(shape)


def kept(value: Any, shape: tuple[int, ...], dim: Sequence[int] | int | None, keepdim: bool) -> Any:
    """A result of a reduction with its reduced dimensions put back as 1."""
    if not keepdim and shape:
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
    dim: Sequence[int] | int | None,
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
    xp: ArrayModule, a: Array, dim: Sequence[int] | int | None, keepdim: bool, dtype: DType | None
) -> Any:
    if dim is None and dtype is None and not keepdim and a.size >= SMALLEST:  # the usual call
        made = attempt(xp, "sum", a)
        if made is not None:
            return made
    kind = sum_type(a, dtype)
    if a.size >= SMALLEST:
        made = _large(xp, a, dim, keepdim, kind)
        if made is not None:
            return made
    if dim.__class__ is int and -a.ndim <= dim < a.ndim:
        return xp.add.reduce(a, axis=dim, keepdims=keepdim, dtype=kind)
    return xp.add.reduce(a, axis=axes(dim, a.ndim), keepdims=keepdim, dtype=kind)


def by_dim(self: Tensor, dim: Sequence[int] | int | None = None, *rest: bool | None) -> int:
    """PyTorch's overload number: 0 for all dimensions, 1 where some are named."""
    return 0 if dim is None else 1


def _spread(
    xp: ArrayModule,
    g: Array,
    shape: tuple[int, ...],
    dim: Sequence[int] | int | None,
    keepdim: bool,
) -> Any:
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
    function=False,
    method=False,
    d_self=lambda g, self_shape, dim, keepdim: g.sum(dim, keepdim).reshape(self_shape),
    batch=batching.spread_sum,
    doc="A result of a reduction over the shape that was reduced: the gradient of a sum.",
)
sum = reduction(
    "sum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _sum,
    variant=by_dim,
    d_self="_spread(g, self_shape, dim, keepdim)",
    batch="along",
    fused="sum(self)",
    doc="Sum over dimensions; integers are added as int64.",
)


def _nansum(
    xp: ArrayModule, a: Array, dim: Sequence[int] | int | None, keepdim: bool, dtype: DType | None
) -> Any:
    if a.dtype.kind == "c":
        raise RuntimeError("nansum on CPU does not support complex inputs")
    if a.dtype.kind == "f":
        a = xp.where(xp.isnan(a), a.dtype.type(0), a)
    return _sum(xp, a, dim, keepdim, dtype)


nansum = reduction(
    "nansum(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _nansum,
    d_self=lambda g, self, dim, keepdim: spread_over(g, self.shape, dim, keepdim).masked_fill(
        self.isnan(), 0
    ),
    doc="Sum over dimensions with NaN left out.",
)


def _mean(
    xp: ArrayModule, a: Array, dim: Sequence[int] | int | None, keepdim: bool, dtype: DType | None
) -> Any:
    kind = a.dtype if dtype is None else np.dtype(dtype.numpy)
    if kind.kind in "biu":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a "
            f"floating point or complex dtype. Got: {from_numpy_dtype(kind).legacy}"
        )
    over = axes(dim, a.ndim)
    count = math.prod(a.shape[d] for d in over)
    made = _large(xp, a, dim, keepdim, kind, True) if a.size >= SMALLEST else None
    if made is not None:
        return made
    made = xp.sum(a, axis=over, keepdims=keepdim, dtype=kind)
    return made / xp.asarray(count).astype(made.dtype)


def _count(shape: tuple[int, ...], dim: Sequence[int] | int | None) -> int:
    return math.prod(shape[d] for d in axes(dim, len(shape))) if shape else 1


mean = reduction(
    "mean(Tensor self, int[]? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _mean,
    variant=by_dim,
    d_self=lambda g, self_shape, dim, keepdim: spread_over(
        g / _count(self_shape, dim), self_shape, dim, keepdim
    ),
    batch="along",
    fused="sum(self) / count",
    doc="Arithmetic mean over dimensions.",
)


def _prod(xp: ArrayModule, a: Array, dim: int | None, keepdim: bool, dtype: DType | None) -> Any:
    if dim is not None:
        dim = wrap_dim(dim, a.ndim)
    axis = None if dim is None or a.ndim == 0 else dim
    return xp.prod(a, axis=axis, keepdims=keepdim and a.ndim > 0, dtype=sum_type(a, dtype))


def _prod_gradient(g: Tensor, self: Tensor, dim: int | None, keepdim: bool, result: Tensor) -> Any:
    if self.ndim == 0:
        return g
    if dim is None:
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
    before = _cat([ones, self.narrow(dim, 0, n - 1)], dim).cumprod(dim)
    after = _cat([ones, self.flip(dim).narrow(dim, 0, n - 1)], dim).cumprod(dim).flip(dim)
    return g * (before * after)


def _cat(tensors: Sequence[Tensor], dim: int) -> Any:
    return cat.function(tensors, dim)


prod = reduction(
    "prod(Tensor self, int? dim=None, bool keepdim=False, *, dtype? dtype=None) -> Tensor",
    _prod,
    variant=by_dim,
    d_self=_prod_gradient,
    amp="float32",
    batch="along",
    fused="prod(self)",
    doc="Product over a dimension; integers are multiplied as int64.",
)


def _var(
    xp: ArrayModule, a: Array, dim: Sequence[int] | int | None, correction: int, keepdim: bool
) -> Any:
    _need_float("std and var", a)
    over = axes(dim, a.ndim)
    count = math.prod(a.shape[d] for d in over)
    centre = a - (xp.sum(a, axis=over, keepdims=True) / a.dtype.type(count) if count else xp.nan)
    squares = xp.abs(centre) ** 2 if a.dtype.kind == "c" else centre * centre
    total = xp.sum(squares, axis=over, keepdims=keepdim)
    degrees = max(count - correction, 0)
    return total / total.dtype.type(degrees)


def _var_gradient(
    g: Tensor, self: Tensor, dim: Sequence[int] | int | None, correction: int, keepdim: bool
) -> Any:
    count = _count(self.shape, dim)
    degrees = max(count - correction, 0)
    over = list(axes(dim, self.ndim))
    g = spread_over(g, self.shape, dim, keepdim)
    centred = self - self.mean(over, True)
    return g * (2.0 / degrees if degrees else math.nan) * centred


var = reduction(
    "var(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> Tensor",
    _var,
    d_self=_var_gradient,
    holomorphic=False,
    function=False,
    method=False,
    batch="along",
    doc="Variance, Σ(x - mean)²/(n - correction).",
)


def _std(
    xp: ArrayModule, a: Array, dim: Sequence[int] | int | None, correction: int, keepdim: bool
) -> Any:
    return xp.sqrt(_var(xp, a, dim, correction, keepdim))


def _std_gradient(
    g: Tensor,
    self: Tensor,
    dim: Sequence[int] | int | None,
    correction: int,
    keepdim: bool,
    result: Tensor,
) -> Any:
    share = (g / (2 * result)).masked_fill(result == 0, 0)
    return _var_gradient(share, self, dim, correction, keepdim)


std = reduction(
    "std(Tensor self, int[]? dim=None, *, Scalar correction=1, bool keepdim=False) -> Tensor",
    _std,
    d_self=_std_gradient,
    holomorphic=False,
    function=False,
    method=False,
    batch="along",
    doc="Standard deviation, the root of the variance.",
)

# -- extremes -------------------------------------------------------------------------------------


def _refuse_empty(name: str, a: Array, dim: Sequence[int] | int | None) -> None:
    over = axes(dim, a.ndim)
    for d in over:
        if a.shape[d] == 0:
            if dim is None or (not isinstance(dim, int) and not len(dim)):
                raise RuntimeError(
                    f"{name}(): Expected reduction dim to be specified for "
                    "input.numel() == 0. Specify the reduction dim with the 'dim' "
                    "argument."
                )
            raise IndexError(f"{name}(): Expected reduction dim {d} to have non-zero size.")
    if a.dtype.kind == "c":
        raise RuntimeError(f"{name}: does not support complex input")


def _extreme(name: str) -> Any:
    def kernel(xp: ArrayModule, a: Array, dim: Sequence[int] | int | None, keepdim: bool) -> Any:
        _refuse_empty(name, a, dim)
        return getattr(xp, name)(a, axis=axes(dim, a.ndim), keepdims=keepdim)

    return kernel


def _share_ties(
    g: Tensor, self: Tensor, dim: Sequence[int] | int | None, keepdim: bool, result: Tensor
) -> Any:
    mask = self == kept(result, self.shape, dim, keepdim)
    count = mask.sum(list(axes(dim, self.ndim)), True)
    return kept(g, self.shape, dim, keepdim) * mask.to(g.dtype) / count.to(g.dtype)


amax = reduction(
    "amax(Tensor self, int[] dim=[], bool keepdim=False) -> Tensor",
    _extreme("amax"),
    d_self=_share_ties,
    batch="along",
    fused="max(self)",
    doc="Maximum over dimensions; ties share the gradient.",
)
amin = reduction(
    "amin(Tensor self, int[] dim=[], bool keepdim=False) -> Tensor",
    _extreme("amin"),
    d_self=_share_ties,
    batch="along",
    fused="min(self)",
    doc="Minimum over dimensions; ties share the gradient.",
)


def _all_extreme(name: str) -> Any:
    def kernel(xp: ArrayModule, a: Array) -> Any:
        _refuse_empty(name[1:], a, None)
        return getattr(xp, name)(a)

    return kernel


def _aminmax(xp: ArrayModule, a: Array, dim: int | None, keepdim: bool) -> Any:
    if dim is None and not a.size:
        raise RuntimeError(
            "aminmax(): cannot compute aminmax over an empty dimension as the "
            "operation has no identity."
        )
    _refuse_empty("aminmax", a, dim)
    if a.dtype.kind == "c":
        raise NotImplementedError("\"aminmax_cpu\" not implemented for 'ComplexFloat'")
    over = axes(dim, a.ndim)
    return xp.amin(a, axis=over, keepdims=keepdim), xp.amax(a, axis=over, keepdims=keepdim)


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
    results=(True, True),
    function=False,
    method=False,
    apart="memory and type",
    doc="The smallest and the largest element, over all or one dimension.",
)
max_all = reduction(
    "max(Tensor self) -> Tensor",
    _all_extreme("amax"),
    function=False,
    method=False,
    node="MaxBackward1",
    d_self=lambda g, self, result: _share_ties(g, self, None, False, result),
    names=named_dims.none,
    fused="max(self)",
    doc="The largest element.",
)
min_all = reduction(
    "min(Tensor self) -> Tensor",
    _all_extreme("amin"),
    function=False,
    method=False,
    node="MinBackward1",
    d_self=lambda g, self, result: _share_ties(g, self, None, False, result),
    names=named_dims.none,
    fused="min(self)",
    doc="The smallest element.",
)


def first_nan_or(name: str, xp: ArrayModule, a: Array, dim: int) -> Any:
    """The index of an extreme along a dimension; the first NaN is the extreme of all."""
    return getattr(xp, "arg" + name)(a, axis=dim)


def _with_indices(name: str) -> Any:
    def kernel(xp: ArrayModule, a: Array, dim: int, keepdim: bool) -> Any:
        d = wrap_dim(dim, a.ndim)
        if a.ndim == 0:
            if a.dtype.kind == "c":
                raise RuntimeError(f"{name}(): does not support complex input")
            return a.copy(), xp.zeros((), np.int64)
        _refuse_empty(name, a, dim)
        index = xp.expand_dims(first_nan_or(name, xp, a, d), d)
        values = xp.take_along_axis(a, index, d)
        if not keepdim:
            values, index = values.squeeze(d), index.squeeze(d)
        return values, index.astype(np.int64)

    return kernel


def put_at(g: Tensor | None, shape: tuple[int, ...], dim: int, index: Tensor, keepdim: bool) -> Any:
    """Zeros of a shape with g written at an index along a dimension."""
    if not shape:
        return g
    g, index = kept(g, shape, dim, keepdim), kept(index, shape, dim, keepdim)
    return g.new_zeros(shape).scatter(dim, index, g)


max_dim = reduction(
    "max.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    _with_indices("max"),
    function=False,
    results=(True, False),
    d_self=lambda gs, self_shape, dim, keepdim, result1: put_at(
        gs[0], self_shape, dim, result1, keepdim
    ),
    batch="along",
    doc="Maximum along a dimension and where it is.",
)
min_dim = reduction(
    "min.dim(Tensor self, int dim, bool keepdim=False) -> (Tensor values, Tensor indices)",
    _with_indices("min"),
    function=False,
    results=(True, False),
    d_self=lambda gs, self_shape, dim, keepdim, result1: put_at(
        gs[0], self_shape, dim, result1, keepdim
    ),
    batch="along",
    doc="Minimum along a dimension and where it is.",
)


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
                    f"{name}(): Expected reduction dim to be specified for "
                    "input.numel() == 0. Specify the reduction dim with the 'dim' "
                    "argument."
                )
            raise IndexError(f"{name}(): Expected reduction dim {dim} to have non-zero size.")
        if a.ndim == 0:
            return xp.zeros((), np.int64)
        return xp.asarray(getattr(xp, name)(a, axis=dim, keepdims=keepdim), dtype=np.int64)

    return kernel


argmax = reduction(
    "argmax(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    _arg("argmax"),
    upcast=False,
    batch="along",
    doc="Where the maximum is.",
)
argmin = reduction(
    "argmin(Tensor self, int? dim=None, bool keepdim=False) -> Tensor",
    _arg("argmin"),
    upcast=False,
    batch="along",
    doc="Where the minimum is.",
)


def _any_all(name: str) -> Any:
    def kernel(xp: ArrayModule, a: Array, dim: Sequence[int] | int | None, keepdim: bool) -> Any:
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
    _any_all("all"),
    upcast=False,
    doc="Whether all elements are non-zero.",
)
any = reduction(
    "any(Tensor self, int[]? dim=None, bool keepdim=False) -> Tensor",
    _any_all("any"),
    upcast=False,
    doc="Whether some element is non-zero.",
)
count_nonzero = reduction(
    "count_nonzero(Tensor self, int[]? dim=None) -> Tensor",
    lambda xp, a, dim: xp.asarray(
        xp.count_nonzero(a, axis=None if dim is None else axes(dim, a.ndim)), dtype=np.int64
    ),
    upcast=False,
    out=False,
    doc="How many elements are non-zero.",
)

# -- norms and exponentials -----------------------------------------------------------------------


def _logsumexp(xp: ArrayModule, a: Array, dim: Sequence[int] | int, keepdim: bool) -> Any:
    a = a.astype(np.float32) if a.dtype.kind in "biu" else a
    over = axes(dim, a.ndim)
    if not a.size:
        return xp.log(xp.sum(xp.exp(a), axis=over, keepdims=keepdim))
    top = xp.amax(a.real, axis=over, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    total = xp.log(xp.sum(xp.exp(a - top), axis=over, keepdims=keepdim))
    return total + (top if keepdim else top.squeeze(over))


logsumexp = reduction(
    "logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor",
    _logsumexp,
    d_self=lambda g, self, dim, keepdim, result: (
        kept(g, self.shape, dim, keepdim) * (self - kept(result, self.shape, dim, keepdim)).exp()
    ),
    batch="along",
    doc="log Σ eˣ without overflow.",
)


def _shifted(xp: ArrayModule, a: Array, dim: int, name: str) -> Any:
    if not a.size:
        return a.copy(), 0
    if a.dtype.kind in "biuc":
        kind = from_numpy_dtype(a.dtype).legacy
        raise NotImplementedError(f"\"{name}_lastdim_kernel_impl\" not implemented for '{kind}'")
    d = wrap_dim(dim, a.ndim)
    if a.ndim == 0:
        return a - a, None
    return a - xp.amax(a, axis=d, keepdims=True), d


def _softmax(xp: ArrayModule, a: Array, dim: int, dtype: DType | None) -> Any:
    wrap_dim(dim, a.ndim)
    y = attempt(xp, "softmax", a, dim) if dtype is None else None
    if y is not None:
        return y
    z, d = _shifted(xp, a if dtype is None else a.astype(dtype.numpy), dim, "softmax")
    if not z.size:
        return z
    e = xp.exp(z)
    if z.ndim:
        e /= xp.sum(e, axis=d, keepdims=True)
    return e


def _log_softmax(xp: ArrayModule, a: Array, dim: int, dtype: DType | None) -> Any:
    if dtype is None and a.dtype.char in "fd" and a.size and -a.ndim <= dim < a.ndim:
        y = attempt(xp, "log_softmax", a, dim)
        if y is not None:
            return y
        z = a - xp.maximum.reduce(a, axis=dim, keepdims=True)
        z -= xp.log(xp.add.reduce(xp.exp(z), axis=dim, keepdims=True))
        return z
    wrap_dim(dim, a.ndim)
    z, d = _shifted(xp, a if dtype is None else a.astype(dtype.numpy), dim, "log_softmax")
    return z - xp.log(xp.sum(xp.exp(z), axis=d, keepdims=True)) if z.ndim and z.size else z


softmax = reduction(
    "softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    _softmax,
    d_self="_softmax_backward_data(g, result, dim)",
    batch="along",
    names="same",
    fused="e = exp(self - fmax(self)); e / sum(e)",
    doc="eˣ/Σeˣ along a dimension.",
)
log_softmax = reduction(
    "log_softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    _log_softmax,
    batch="along",
    names="same",
    fused="c = self - fmax(self); c - log(sum(exp(c)))",
    doc="log of softmax, without overflow.",
    d_self="_log_softmax_backward_data(g, result, dim)",
)


def _softmax_backward(xp: ArrayModule, g: Array, y: Array, dim: int) -> Any:
    made = attempt(xp, "softmax_backward", g, y, dim)
    if made is not None:
        return made
    weighted = g * y
    return (
        weighted - y * xp.sum(weighted, axis=dim, keepdims=True) if g.ndim else (xp.zeros_like(g))
    )


def _softmax_share_output(g: Tensor, grad_output: Tensor, output: Tensor, dim: int) -> Any:
    """y ↦ u·y - y·Σu·y, with u the gradient that came: its derivative, applied to g."""
    inner = (grad_output * output).sum(dim, True)
    return g * (grad_output - inner) - grad_output * (g * output).sum(dim, True)


reduction(
    "_softmax_backward_data(Tensor grad_output, Tensor output, int dim) -> Tensor",
    _softmax_backward,
    function=False,
    method=False,
    out=False,
    d_grad_output=lambda g, output, dim: g * output - output * (g * output).sum(dim, True),
    d_output=_softmax_share_output,
    batch="along",
    fused="(grad_output - sum(grad_output * output)) * output",
    doc="The gradient of softmax, y·(g - Σg·y).",
)


def _log_softmax_backward(xp: ArrayModule, g: Array, y: Array, dim: int) -> Any:
    made = attempt(xp, "log_softmax_backward", g, y, dim)
    if made is not None:
        return made
    return g - xp.exp(y) * xp.sum(g, axis=dim, keepdims=True) if g.ndim else xp.zeros_like(g)


reduction(
    "_log_softmax_backward_data(Tensor grad_output, Tensor output, int dim) -> Tensor",
    _log_softmax_backward,
    method=False,
    out=False,
    d_grad_output=lambda g, output, dim: g - (g * output.exp()).sum(dim, True),
    d_output=lambda g, grad_output, output, dim: -g * output.exp() * grad_output.sum(dim, True),
    batch="along",
    fused="grad_output - exp(output) * sum(grad_output)",
    doc="The gradient of log_softmax, g - eʸ·Σg.",
)


def _vector_norm(
    xp: ArrayModule,
    a: Array,
    ord: float,
    dim: Sequence[int] | int | None,
    keepdim: bool,
    dtype: DType | None,
) -> Any:
    a = a if dtype is None else a.astype(dtype.numpy)
    _need_float("linalg.vector_norm", a)
    over, size = axes(dim, a.ndim), xp.abs(a)
    if ord == 2:
        return xp.sqrt(xp.sum(size * size, axis=over, keepdims=keepdim))
    if ord == 1:
        return xp.sum(size, axis=over, keepdims=keepdim)
    if ord == 0:
        return xp.sum(size != 0, axis=over, keepdims=keepdim).astype(size.dtype)
    if math.isinf(ord):
        return (xp.amax if ord > 0 else xp.amin)(size, axis=over, keepdims=keepdim)
    return xp.sum(size**ord, axis=over, keepdims=keepdim) ** (1 / ord)


def _norm_gradient(
    g: Tensor,
    self: Tensor,
    ord: float,
    dim: Sequence[int] | int | None,
    keepdim: bool,
    result: Tensor,
) -> Any:
    g, norm = kept(g, self.shape, dim, keepdim), kept(result, self.shape, dim, keepdim)
    if ord == 0:
        return g * (self * 0)
    if ord == 1:
        return g * self.sgn()
    if ord == 2:
        return g * (self / norm).masked_fill(norm == 0, 0)
    if math.isinf(ord):
        mask = self.abs() == norm
        return self.sgn() * mask * (g / mask.sum(list(axes(dim, self.ndim)), True))
    size = self.abs()
    return g * (self.sgn() * size ** (ord - 1) * norm ** (1 - ord)).masked_fill(
        (norm == 0) | (size == 0), 0
    )


vector_norm = reduction(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    _vector_norm,
    d_self=_norm_gradient,
    method=False,
    holomorphic=False,
    batch="along",
    doc="(Σ|x|ᵖ)^{1/p} over dimensions.",
)
