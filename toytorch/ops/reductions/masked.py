"""Reductions, scans and normalisations that leave masked elements out: `torch.masked`.

Where the mask is False an element is replaced by the value that changes nothing: 0 for a sum, 1 for
a product, -∞ for a maximum. What has no such value (mean, variance) also counts what is left.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import DType, Fn, Ints
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import public
from toytorch.ops.indexing.by_index import where
from toytorch.ops.overloads import logsumexp as plain_logsumexp
from toytorch.ops.reductions import exponentials
from toytorch.ops.reductions.order_statistics import nanmedian


def _lowest(kind: DType, sign: int) -> Any:
    """The value below (sign 1) or above (sign -1) all others of a type."""
    if kind.is_floating_point or kind.is_complex:
        return -sign * math.inf
    if kind is types.bool:
        return sign < 0
    limits = np.iinfo(kind.numpy)
    return int(limits.min if sign > 0 else limits.max)


def _bool_mask(input: Tensor, mask: Tensor) -> Any:
    """The mask in the shape of the input."""
    if mask.ndim > input.ndim:
        raise IndexError(
            "_input_mask expected broadcastable mask (got mask dimensionality higher "
            "than of the input)"
        )
    mask = mask if mask.dtype is types.bool else mask.bool()
    return mask.expand(input.shape)


def _filled(input: Tensor, mask: Tensor | None, value: float) -> Any:
    """The input with `value` where the mask is False."""
    if mask is None:
        return input
    return where.function(_bool_mask(input, mask), input, input.new_full((), value))


def _dims(dim: Ints | str | None, ndim: int) -> tuple[int, ...]:
    """The dimensions to reduce: all of them for None and ()."""
    if dim is None or (isinstance(dim, (tuple, list)) and not len(dim)):
        return tuple(range(ndim))
    found = []
    for d in (dim,) if isinstance(dim, int) else tuple(dim):
        d = wrap_dim(d, ndim)
        if d in found:
            raise RuntimeError(f"dim={d} appears multiple times in the list of dims")
        found.append(d)
    return tuple(sorted(found)) if ndim else ()


def _wide(input: Tensor, dtype: DType | None) -> Any:
    """The type of a sum: the one asked for, int64 for small integers."""
    return dtype or (types.int64 if input.dtype.rank < 2 else input.dtype)


def _published(name: str, function: Fn, doc: str) -> Any:
    """A function of `torch.masked` that another one has made."""
    return public(f"masked.{name}", tensor_first=False, doc=doc)(function)


def _reduction(reduce: Fn) -> Any:
    """The public function of `reduce(input, dim, keepdim, dtype, mask)`, with its name and text."""

    def function(
        input: Tensor,
        dim: Ints | None = None,
        *,
        keepdim: bool = False,
        dtype: DType | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        return reduce(input, dim, bool(keepdim), dtype, mask)

    return _published(reduce.__name__, function, reduce.__doc__ or "")


# -- sums and products ----------------------------------------------------------------------------


@_reduction
def sum(
    input: Tensor, dim: Ints | None, keepdim: bool, dtype: DType | None, mask: Tensor | None
) -> Tensor:
    """Σ of the elements that the mask shows.

    >>> torch.masked.sum(torch.tensor([1., 2., 4.]), mask=torch.tensor([True, False, True]))
    tensor(5.)
    """
    return _filled(input, mask, 0).sum(_dims(dim, input.ndim), keepdim, dtype=_wide(input, dtype))


@_reduction
def prod(
    input: Tensor, dim: Ints | None, keepdim: bool, dtype: DType | None, mask: Tensor | None
) -> Tensor:
    """Π of the elements that the mask shows."""
    result = _filled(input, mask, 1).to(_wide(input, dtype))
    if not input.ndim and dim is not None and dim != ():
        return result.prod()  # in memory of its own
    for d in reversed(_dims(dim, input.ndim)):
        result = result.prod(d, keepdim=keepdim)
    return result


def _running(name: str, what: str, neutral: int) -> Any:
    def function(
        input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
    ) -> Tensor:
        kind = dtype or input.dtype
        return getattr(_filled(input, mask, neutral), name)(dim, dtype=kind).to(kind)

    return _published(name, function, f"Running {what} of the elements that the mask shows.")


cumsum, cumprod = _running("cumsum", "sum", 0), _running("cumprod", "product", 1)


# -- extremes -------------------------------------------------------------------------------------


def _extreme(name: str, sign: int) -> Any:
    def reduce(
        input: Tensor, dim: Ints | None, keepdim: bool, dtype: DType | None, mask: Tensor | None
    ) -> Tensor:
        filled = _filled(input, mask, _lowest(input.dtype, sign))
        over = dim if name.startswith("arg") else _dims(dim, input.ndim)
        made = getattr(filled, name)(over, keepdim)
        return made.to(dtype or input.dtype)  # of places too, as PyTorch

    reduce.__name__ = name
    reduce.__doc__ = f"`{name}` of the elements that the mask shows."
    return _reduction(reduce)


amax, amin = _extreme("amax", 1), _extreme("amin", -1)
argmax, argmin = _extreme("argmax", 1), _extreme("argmin", -1)


@public("masked.median", tensor_first=False)
def median(
    input: Tensor,
    dim: int = -1,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The middle (the lower of two) of the elements that the mask shows."""
    d = wrap_dim(dim, input.ndim)
    if input.dtype.is_floating_point:
        found = nanmedian(_filled(input, mask, math.nan), d, keepdim)
        return found.values
    made = nanmedian(_filled(input.float(), mask, math.nan), d, keepdim).values
    if bool(made.isnan().any()):
        raise ValueError(
            "masked median expects no fully masked out rows if dtype is not floating point"
        )
    return made.to(dtype or input.dtype)


# -- logarithms of sums ---------------------------------------------------------------------------


@_reduction
def logsumexp(
    input: Tensor, dim: Ints | None, keepdim: bool, dtype: DType | None, mask: Tensor | None
) -> Tensor:
    """log Σ eˣ of the elements that the mask shows."""
    filled = _filled(input, mask, _lowest(input.dtype, 1))
    made = plain_logsumexp(filled, _dims(dim, input.ndim), keepdim)
    return made.to(dtype or input.dtype)


@public("masked.logaddexp", tensor_first=False)
def logaddexp(
    input: Tensor,
    other: Tensor,
    *,
    dtype: DType | None = None,
    input_mask: Tensor | None = None,
    other_mask: Tensor | None = None,
) -> Tensor:
    """log(eᵃ + eᵇ), without what the masks hide."""
    a = _filled(input, input_mask, -math.inf)
    b = _filled(other, other_mask, -math.inf)
    return a.logaddexp(b).to(dtype or input.dtype)


# -- means, variances and norms -------------------------------------------------------------------


def _shown(input: Tensor, dim: Ints | None, keepdim: bool, mask: Tensor | None) -> Any:
    """How many elements the mask shows."""
    if mask is not None:
        seen = _bool_mask(input, mask)
    else:
        seen = input.new_ones(input.shape, dtype=types.bool)
    return seen.sum(_dims(dim, input.ndim), keepdim)


@_reduction
def mean(
    input: Tensor, dim: Ints | None, keepdim: bool, dtype: DType | None, mask: Tensor | None
) -> Tensor:
    """The mean of the elements that the mask shows; NaN where it shows none."""
    if (dtype or input.dtype).rank < 2:
        raise ValueError(
            f"mean(): Could not infer output dtype. {'Input' if dtype is None else 'Optional'} "
            f"dtype must be either a floating point or complex dtype. Got: {dtype or input.dtype}"
        )
    total = sum(input, dim, keepdim=keepdim, dtype=dtype, mask=mask)
    return total / _shown(input, dim, keepdim, mask)


def _deviation(name: str, what: str, root: bool) -> Any:
    def function(
        input: Tensor,
        dim: Ints | None = None,
        unbiased: bool | None = None,
        *,
        correction: int | None = None,
        keepdim: bool = False,
        dtype: DType | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        if unbiased is not None and correction is not None:
            raise AssertionError("Only one of unbiased and correction may be given")
        if correction is None:
            correction = 0 if unbiased is False else 1
        kind = dtype or (input.dtype if input.dtype.rank > 1 else types.float32)
        work = kind if kind.rank > 1 else types.float32
        total = sum(input, dim, keepdim=True, dtype=kind, mask=mask)
        centred = input - total / _shown(input, dim, True, mask)
        squares = centred * centred.conj() if centred.dtype.is_complex else centred * centred
        count = _shown(input, dim, bool(keepdim), mask)
        degrees = (count - correction).clamp(min=0) if correction else count
        spread = sum(squares, dim, keepdim=keepdim, dtype=work, mask=mask)
        variance = (spread / degrees).to(kind)  # Σ(x - mean)²/(n - correction)
        return variance.sqrt() if root else variance

    return _published(name, function, f"The {what} of the elements that the mask shows.")


var = _deviation("var", "variance", root=False)
std = _deviation("std", "standard deviation", root=True)


@public("masked.norm", tensor_first=False)
def norm(
    input: Tensor,
    ord: float = 2.0,
    dim: Ints | None = None,
    *,
    keepdim: bool = False,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The p-norm of the elements that the mask shows."""
    filled = _filled(input, mask, math.inf if ord == -math.inf else 0)
    return exponentials.vector_norm.function(
        filled, ord, _dims(dim, input.ndim), bool(keepdim), dtype=dtype or input.dtype
    )


# -- normalisations -------------------------------------------------------------------------------


def _soft(name: str, what: str, op: Op, sign: int = 1) -> Any:
    def function(
        input: Tensor, dim: int, *, dtype: DType | None = None, mask: Tensor | None = None
    ) -> Tensor:
        filled = _filled(input, mask, _lowest(input.dtype, sign))
        return op.function(filled if sign > 0 else -filled, dim, dtype or input.dtype)

    return _published(name, function, f"{what} over the elements that the mask shows.")


softmax = _soft("softmax", "eˣ/Σeˣ", exponentials.softmax)
log_softmax = _soft("log_softmax", "log of softmax", exponentials.log_softmax)
softmin = _soft("softmin", "e⁻ˣ/Σe⁻ˣ", exponentials.softmax, -1)


@public("masked.normalize", tensor_first=False)
def normalize(
    input: Tensor,
    ord: float,
    dim: int,
    *,
    eps: float = 1e-12,
    dtype: DType | None = None,
    mask: Tensor | None = None,
) -> Tensor:
    """The elements that the mask shows, divided by their norm (or eps, if that is larger)."""
    filled = _filled(input, mask, 0)
    size = norm(input, ord, dim, keepdim=True, dtype=dtype, mask=mask)
    limit = size.new_full((), eps)
    return filled / size.maximum(limit)
