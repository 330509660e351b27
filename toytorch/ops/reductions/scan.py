"""Running sums, products, extremes and logarithms of sums along a dimension."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends.generic import accumulate, attempt
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import finfo
from toytorch.facts.hints import Array, ArrayModule, DType, Fn
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import general
from toytorch.ops.indexing.along_dim import scattered
from toytorch.ops.indexing.by_index import type_name, where
from toytorch.ops.reductions.reduce import sum_type
from toytorch.ops.shaping.rearrange import cat


def _refuse_masks(name: str, a: Array, kind: Any) -> None:
    """Refuses truth values as results, where there are any."""
    if kind == np.bool_ and a.size:
        raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")


def _cumprod(xp: ArrayModule, a: Array, dim: int, dtype: DType | None) -> Any:
    d, kind = wrap_dim(dim, a.ndim), sum_type(a, dtype)
    if a.ndim == 0:
        return a.astype(kind)
    _refuse_masks("cumprod", a, kind)
    if a.dtype.kind == "f" and kind == a.dtype:
        made = attempt(xp, "running_product", a, d)
        if made is not None:
            return made
    if a.__class__ is np.ndarray and kind == np.float32:  # PyTorch multiplies in float64 on the CPU
        with np.errstate(over="ignore"):
            return np.multiply.accumulate(a, d, np.float64).astype(kind)
    if np.dtype(kind).kind == "c":  # 1 is the first factor, which shows beside infinities
        ones = xp.ones_like(a[(*(slice(None),) * d, slice(1))], dtype=kind)
        made = xp.cumprod(xp.concatenate([ones, a], d), axis=d, dtype=kind)
        return made[(*(slice(None),) * d, slice(1, None))].copy()
    return wide_scan(xp.cumprod, a, d, kind)


def wide_scan(scan: Fn, a: Array, d: int, kind: Any) -> Any:
    """An array module's scan; of bfloat16, for which CuPy has none, in float32."""
    if a.__class__ is np.ndarray or np.dtype(kind).kind != "V":
        return scan(a, axis=d, dtype=kind)
    return scan(a.astype(np.float32), axis=d).astype(kind)


def _cumsum(xp: ArrayModule, a: Array, dim: int, dtype: DType | None) -> Any:
    d, kind = wrap_dim(dim, a.ndim), sum_type(a, dtype)
    if a.ndim == 0:
        return a.astype(kind)
    if dtype is not None:
        _refuse_masks("cumsum", a, kind)
    if a.dtype.kind == "f" and kind == a.dtype:
        made = attempt(xp, "running_sum", a, d)
        if made is not None:
            return made
    if a.__class__ is np.ndarray and kind == np.float32:  # PyTorch adds up in float64 on the CPU
        return np.add.accumulate(a, d, np.float64).astype(kind)
    return wide_scan(xp.cumsum, a, d, kind)


def _running(name: str, kernel: Fn, what: str, gradient: Fn) -> Op:
    return general(
        f"{name}(Tensor self, int dim, *, dtype? dtype=None) -> Tensor",
        kernel,
        forms="function method inplace out",
        d_self=gradient,
        memory="rows",
        batch="along",
        names="same",
        fresh=True,
        out_type="given",
        apart="partly",
        doc=f"Running {what} along a dimension.",
    )


def _cumsum_gradient(g: Tensor, dim: int) -> Any:
    return g if g.ndim == 0 else g.flip(dim).cumsum(dim).flip(dim)


cumsum = _running("cumsum", _cumsum, "sum", _cumsum_gradient)


def _cumprod_gradient(g: Tensor, self: Tensor, dim: int, result: Tensor) -> Any:
    if self.ndim == 0 or self.numel() < 2 or self.shape[dim] == 1:
        return g
    if self._batches is None and not bool((self == 0).any()):
        return (g * result).flip(dim).cumsum(dim).flip(dim) / self
    # d out_j / d x_i = Π_{k≤j, k≠i} x_k: a column for each i, running on from what stands before i.
    n, parts = self.shape[dim], []
    ones = self.narrow(dim, 0, 1) * 0 + 1
    for i in range(n):
        before = self.narrow(dim, 0, i).prod(dim, True) if i else ones
        if i == n - 1:
            after = [before]
        else:
            after = [before, before * self.narrow(dim, i + 1, n - i - 1).cumprod(dim)]
        parts.append((g.narrow(dim, i, n - i) * cat(after, dim)).sum(dim, True))
    return cat(parts, dim)


cumprod = _running("cumprod", _cumprod, "product", _cumprod_gradient)


def _running_extreme(name: str, most: bool) -> Op:

    def kernel(xp: ArrayModule, a: Array, dim: int) -> Any:
        if not a.size:  # before PyTorch asks which dimension
            return a.copy(), xp.zeros(a.shape, np.int64)
        if a.ndim == 0 and dim not in (0, -1):
            raise IndexError(
                f"cum{name[:3]}(): Expected reduction dim -1 or 0 for scalar but got {dim}"
            )
        d = wrap_dim(dim, a.ndim)
        if a.ndim == 0:
            return a.copy(), xp.zeros((), np.int64)
        if a.dtype.kind == "c":
            kernel_name = f"cum{name[:3]}_cpu"
            raise NotImplementedError(f"\"{kernel_name}\" not implemented for '{type_name(a)}'")
        made = attempt(xp, "running_extreme", most, a, d)
        if made is not None:
            return made
        values = accumulate(xp, name, a, d)
        places = xp.arange(a.shape[d]).reshape([-1 if i == d else 1 for i in range(a.ndim)])
        new = (a == values) | (xp.isnan(a) if a.dtype.kind == "f" else False)
        return values, accumulate(xp, "maximum", xp.where(new, places, 0), d)

    return general(
        f"cum{name[:3]}(Tensor self, int dim) -> (Tensor values, Tensor indices)",
        kernel,
        d_self=lambda gs, self, dim, result1: scattered.function(
            gs[0], self.shape, dim, result1, True
        ),
        of_reals=f"cum{name[:3]}",
        memory="rows",
        out_type="expected",
        batch="along",
        names="same",
        doc=f"Running {name} and where it is.",
    )


cummax, cummin = _running_extreme("maximum", True), _running_extreme("minimum", False)


# -- the logarithm of a running sum ---------------------------------------------------------------


def _logcumsumexp(xp: ArrayModule, a: Array, dim: int) -> Any:
    d = wrap_dim(dim, a.ndim)
    if a.dtype.kind in "biu":
        raise NotImplementedError(f"\"logcumsumexp_out_cpu\" not implemented for '{type_name(a)}'")
    if a.ndim == 0 or not a.size:
        return a.copy()
    if a.dtype.kind != "c":
        wide = a.astype(np.float64) if a.dtype.itemsize < 8 else a
        return accumulate(xp, "logaddexp", wide, d).astype(a.dtype)
    rows = xp.moveaxis(a, d, 0)
    total = xp.empty_like(rows)
    sum_of = xp.full_like(rows[0], -math.inf)  # the logarithm of nothing, 0
    for i in range(len(rows)):
        sum_of = total[i] = _log_add_exp(xp, rows[i], sum_of)
    return xp.moveaxis(total, 0, d)


def _log_add_exp(xp: ArrayModule, x: Array, y: Array) -> Any:
    """log(eˣ + eʸ) of complex numbers: a number that is not one makes all of it nan, two zeros
    (real parts of -∞) leave the second, and of two infinities e^∞ is summed as it is."""
    below, unknown = x.real < y.real, xp.isnan(x) | xp.isnan(y)
    low, high = xp.where(below, x, y), xp.where(below, y, x)
    alike = ~xp.isfinite(low.real) & (low.real == high.real)
    plain = high + xp.log1p(xp.exp(low - high))
    large = xp.log(xp.exp(x) + xp.exp(y))
    made = xp.where(alike, xp.where(low.real < 0, low, large), plain)
    return xp.where(unknown, complex(math.nan, math.nan), made).astype(x.dtype)


NARROW = 500.0  # e^x can be told from 0 and ∞ over such a range


def _sums_of_what_follows(shares: Tensor, self: Tensor, dim: int) -> Any:
    """Σ_{j≥i} e^{sⱼ}·e^{xᵢ}, from logarithms."""
    return (logcumsumexp.function(shares.flip(dim), dim).flip(dim) + self).exp()


def _logcumsumexp_gradient(g: Tensor, self: Tensor, dim: int, result: Tensor) -> Any:
    """gᵢ = Σ_{j≥i} gⱼ·e^{xᵢ-yⱼ}."""
    if self.ndim == 0 or not self.numel():
        return g
    seen = result.detach()
    real = seen.real if seen.dtype.is_complex else seen
    odd = (~real.isfinite()).any()
    if odd._batches is None and bool(odd):  # infinities go the way that PyTorch's formula takes
        if g.dtype.is_complex:
            return _sums_of_what_follows(g.log() - result, self, dim)
        size, least = g.abs().log(), finfo(g.dtype).min
        above = _sums_of_what_follows(where.function(g > 0, size, least) - result, self, dim)
        return above - _sums_of_what_follows(where.function(g < 0, size, least) - result, self, dim)
    top, low = real.amax(dim, True), real.amin(dim, True)
    narrow = ((top - low) < NARROW).all()
    if narrow._batches is None and bool(narrow):
        return (g * (top - result).exp()).flip(dim).cumsum(dim).flip(dim) * (self - top).exp()
    n = self.shape[dim]  # the sum of what comes after, scaled step by step
    sums = [g.narrow(dim, n - 1, 1)]
    for i in range(n - 2, -1, -1):
        factor = (result.narrow(dim, i, 1) - result.narrow(dim, i + 1, 1)).exp()
        sums.append(g.narrow(dim, i, 1) + sums[-1] * factor)
    return cat(sums[::-1], dim) * (self - result).exp()


logcumsumexp: Op = general(
    "logcumsumexp(Tensor self, int dim) -> Tensor",
    _logcumsumexp,
    d_self=_logcumsumexp_gradient,
    memory="rows",
    batch="along",
    names="same",
    apart="partly",
    doc="log Σ eˣ over the elements so far.",
    out_type="expected",
)
