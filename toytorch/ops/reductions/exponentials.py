"""Log-sum-exp, softmax and its logarithm, and vector norms."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt, reduced, worthwhile
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.dtype import from_numpy_dtype, promote_types
from toytorch.facts.hints import Array, ArrayModule, DType, Ints
from toytorch.facts.size import cannot_broadcast, wrap_dim
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops.define import reduction
from toytorch.ops.reductions.reduce import _need_float, axes, kept, zero_where

LOG_SUM_EXP = (
    "top = fmax(self); top = top if abs(top) < inf else 0; log(sum(exp(self - top))) + top"
)


def _logsumexp(xp: ArrayModule, a: Array, dim: Ints, keepdim: bool) -> Any:
    a = a.astype(np.float32) if a.dtype.kind in "biu" else a
    over = axes(dim, a.ndim)
    if not a.size:
        return xp.log(xp.sum(xp.exp(a), axis=over, keepdims=keepdim))
    if a.ndim:
        if dim in ((), []) and not keepdim:  # PyTorch's steps keep all dimensions then
            raise cannot_broadcast((), (1,) * a.ndim)
        made = attempt(xp, "folded", LOG_SUM_EXP, {"self": a}, {}, over, keepdim)
        if made is not None:
            return made
    top = xp.amax(a.real, axis=over, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0)
    total = xp.log(xp.sum(xp.exp(a - top), axis=over, keepdims=keepdim))
    return total + (top if keepdim else top.squeeze(over))


def of_real_part(x: Tensor, dim: Ints, keepdim: bool) -> Any:
    """log Re Σ eˣ over dimensions, without overflow: what a real out= makes of complex numbers."""
    array: Any = x._array
    over = axes(dim, array.ndim)
    top = np.amax(array.real, axis=over, keepdims=True) if array.size else 0
    top = np.where(np.isfinite(top), top, 0).astype(array.real.dtype)
    total = np.log(np.sum(np.exp(array - top), axis=over, keepdims=True).real) + top
    return wrap(total if keepdim else total.squeeze(over))


logsumexp = reduction(
    "logsumexp(Tensor self, int[] dim, bool keepdim=False) -> Tensor",
    _logsumexp,
    d_self=lambda g, self, dim, keepdim, result: (
        kept(g, self.shape, dim, keepdim) * (self - kept(result, self.shape, dim, keepdim)).exp()
    ),
    batch="along",
    fused=LOG_SUM_EXP,
    halves="halves logsumexp",
    doc="log Σ eˣ without overflow.",
)


def _shifted(xp: ArrayModule, a: Array, dim: int, name: str) -> Any:
    if not a.size:
        return a.copy(), 0
    if a.dtype.kind in "biuc":
        kind = from_numpy_dtype(a.dtype).legacy
        last = "_lastdim" if wrap_dim(dim, a.ndim) >= a.ndim - 1 else ""
        raise NotImplementedError(f"\"{name}{last}_kernel_impl\" not implemented for '{kind}'")
    d = wrap_dim(dim, a.ndim)
    if a.ndim == 0:
        return a - a, None
    return a - xp.amax(a, axis=d, keepdims=True), d


SOFTMAX = "e = exp(self - fmax(self)); e / sum(e)"
LOG_SOFTMAX = "c = self - fmax(self); c - log(sum(exp(c)))"


def _across(xp: ArrayModule, text: str, a: Array, dim: int) -> Any:
    """A softmax along a dimension that is not the last, or None."""
    return attempt(xp, "folded", text, {"self": a}, {}, (dim,), False, True)


def _softmax(xp: ArrayModule, a: Array, dim: int, dtype: DType | None) -> Any:
    if dtype is None:
        y = attempt(xp, "softmax", a, dim)
        if y is not None:
            return y
    d = wrap_dim(dim, a.ndim)
    a = a if dtype is None else a.astype(dtype.numpy, copy=False)
    if a.ndim and a.size and a.dtype.char in "fd":
        last = d == a.ndim - 1
        y = attempt(xp, "softmax", a, dim) if last else _across(xp, SOFTMAX, a, d)
        if y is not None:
            return y
        e = xp.exp(a - reduced(np.maximum, xp, a, dim, True))
        e /= xp.add.reduce(e, axis=dim, keepdims=True)
        return e
    z, d = _shifted(xp, a, dim, "softmax")
    if not z.size:
        return z
    e = xp.exp(z)
    if z.ndim:
        e /= xp.sum(e, axis=d, keepdims=True)
    return e


def _log_softmax(xp: ArrayModule, a: Array, dim: int, dtype: DType | None) -> Any:
    if dtype is None:
        y = attempt(xp, "log_softmax", a, dim)
        if y is not None:
            return y
    a = a if dtype is None else a.astype(dtype.numpy, copy=False)
    if a.dtype.char in "fd" and a.size and -a.ndim <= dim < a.ndim:
        d = dim % a.ndim
        last = d == a.ndim - 1
        y = attempt(xp, "log_softmax", a, dim) if last else _across(xp, LOG_SOFTMAX, a, d)
        if y is not None:
            return y
        z = a - reduced(np.maximum, xp, a, dim, True)
        z -= xp.log(xp.add.reduce(xp.exp(z), axis=dim, keepdims=True))
        return z
    wrap_dim(dim, a.ndim)
    z, d = _shifted(xp, a, dim, "log_softmax")
    return z - xp.log(xp.sum(xp.exp(z), axis=d, keepdims=True)) if z.ndim and z.size else z


softmax = reduction(
    "softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    _softmax,
    d_self="_softmax_backward_data(g, result, dim)",
    of_reals="_softmax",
    batch="along",
    names="same",
    fused=SOFTMAX,
    doc="eˣ/Σeˣ along a dimension.",
    out_type="same",
    out_history="none",
)
log_softmax = reduction(
    "log_softmax(Tensor self, int dim, dtype? dtype=None) -> Tensor",
    _log_softmax,
    batch="along",
    names="same",
    fused=LOG_SOFTMAX,
    halves="halves log_softmax",
    doc="log of softmax, without overflow.",
    d_self="_log_softmax_backward_data(g, result, dim)",
    of_reals="_log_softmax",
    out_type="same",
    out_history="none",
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
    forms="function",
    d_grad_output=lambda g, output, dim: g - (g * output.exp()).sum(dim, True),
    d_output=lambda g, grad_output, output, dim: -g * output.exp() * grad_output.sum(dim, True),
    batch="along",
    fused="grad_output - exp(output) * sum(grad_output)",
    doc="The gradient of log_softmax, g - eʸ·Σg.",
)


def check_norm_type(name: str, own: DType, asked: DType) -> None:
    """Refuses a norm's dtype= that is no float, is not as complex as the operand, or narrower."""
    if asked.rank < 2:
        raise RuntimeError(
            f"{name}: dtype should be floating point or complex, but got {asked.legacy}"
        )
    if own.is_complex is not asked.is_complex and own.rank > 1:
        kind = "complex" if own.is_complex else "real"
        raise RuntimeError(
            f"{name}: dtype should be {kind} for {kind} inputs, but got {asked.legacy}"
        )
    if promote_types(own, asked) is not asked:
        raise RuntimeError(
            f"{name}: the dtype of the input ({own.legacy}) should be convertible without "
            f"narrowing to the specified dtype ({asked.legacy})"
        )


NORM = (
    "sqrt(sum(self * self)) if ord == 2 else sum(abs(self)) if ord == 1 "
    "else max(abs(self)) if ord == inf else min(abs(self)) if ord == -inf "
    "else sum(1 if self != 0 else 0) if ord == 0 else sum(abs(self) ** ord) ** (1 / ord)"
)


def check_order(name: str, ord: object) -> None:
    """Refuses a complex order of a norm."""
    if isinstance(ord, complex):
        raise RuntimeError(f"{name}: Expected a non-complex scalar as the order of norm.")


def _vector_norm(
    xp: ArrayModule, a: Array, ord: float, dim: Ints | None, keepdim: bool, dtype: DType | None
) -> Any:
    _need_float("linalg.vector_norm", a)
    check_order("linalg.vector_norm", ord)
    if dtype is not None:
        check_norm_type("linalg.vector_norm", from_numpy_dtype(a.dtype), dtype)
        a = a.astype(dtype.numpy)
    over = axes(dim, a.ndim)
    if (ord < 0 or ord == math.inf) and not all(a.shape[d] for d in over):
        place = next(d for d in over if not a.shape[d])
        if not dim:
            where = "an empty tensor"
        else:
            where = f"the dimension {place}because this dimension is empty"
        raise RuntimeError(
            f"linalg.vector_norm cannot compute the {ord:g} norm on {where} "
            f"{'because' if not dim else 'and'} the operation does not have an identity"
        )
    if (
        ord
        and (ord == ord or a.ndim == 1 or dim is None)
        and (1 in a.shape or (not a.ndim and dim in (None, (), [])))
        and all(a.shape[d] == 1 for d in over)
    ):
        return xp.sum(xp.abs(a), axis=over, keepdims=keepdim)  # one element, which no power rounds
    if worthwhile(a, SMALLEST) and ord:
        made = attempt(xp, "folded", NORM, {"self": a}, {"ord": ord}, over, keepdim)
        if made is not None:
            return made
    if ord == 2 and a.dtype.kind != "c":
        return xp.sqrt(xp.add.reduce(a * a, axis=over, keepdims=keepdim))
    size = xp.abs(a)
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
    g: Tensor, self: Tensor, ord: float, dim: Ints | None, keepdim: bool, result: Tensor
) -> Any:
    g, norm = kept(g, self.shape, dim, keepdim), kept(result, self.shape, dim, keepdim)
    if ord == 0:
        return None
    if ord == 1:
        return self.sgn() * g
    if ord == 2:  # written to in place, which keeps the order of memory
        return g * zero_where(norm, self / norm, True)
    size = self.abs()
    if math.isinf(ord):
        mask = (size == norm) | size.isnan()
        return self.sgn() * ((g / mask.sum(list(axes(dim, self.ndim)), True)) * mask)
    if ord < 1:
        scaled = self.sgn() * (size ** (ord - 1)).masked_fill_(size == 0, 0)
        return scaled * g * norm ** (1 - ord)
    share = zero_where(norm, g / norm ** (ord - 1), True)
    if ord < 2:
        return self.sgn() * size ** (ord - 1) * share
    return self * size ** (ord - 2) * share


vector_norm = reduction(
    "linalg_vector_norm(Tensor self, Scalar ord=2, int[]? dim=None, bool keepdim=False, *, "
    "dtype? dtype=None) -> Tensor",
    _vector_norm,
    d_self=_norm_gradient,
    holomorphic=False,
    batch="along",
    fused=NORM,
    overload="default",
    doc="(Σ|x|ᵖ)^{1/p} over dimensions.",
    out_type="same",
)
