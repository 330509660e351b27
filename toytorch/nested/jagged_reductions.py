"""Sums and their kin of jagged nested tensors.

Over the ragged dimension alone, parts are filled up with what changes nothing; over it and the
batch, the values are reduced as they are; over others, the result is nested.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.facts.size import wrap_dim
from toytorch.nested.jagged import NestedTensor, like, to_padded
from toytorch.nested.jagged_rules import name_of, pointwise, rule

NEUTRAL: dict[str, Any] = {"sum": 0, "prod": 1, "any": False, "all": True, "mean": 0.42}
# Filled up with the largest number, their kin with the smallest.
LARGEST = ("min", "amin", "argmin")


def _number(kind: str, dtype: Any) -> float:
    """What fills parts up for an extreme."""
    if dtype is torch.bool:
        return kind in LARGEST
    facts = torch.finfo(dtype) if dtype.is_floating_point else torch.iinfo(dtype)
    return facts.max if kind in LARGEST else facts.min


@rule("sum", "prod", "any", "all", "min", "max", "amin", "amax", "argmin", "argmax")
def reduced(
    func: Fn, input: NestedTensor, dim: object = None, keepdim: bool = False, **kwargs: object
) -> Any:
    """Over all elements, or over some dimensions."""
    name = name_of(func)
    if isinstance(dim, Tensor):
        return pointwise(func, name, (input, dim), kwargs)  # max of two
    if dim is None or dim in ((), []):
        found = func(input._values, **kwargs)
        return found.unsqueeze(input._ragged_idx) if keepdim else found
    neutral = NEUTRAL[name] if name in NEUTRAL else _number(name, input.dtype)
    return over(func, name, neutral, input, dim, keepdim, **kwargs)


def over(
    func: Fn,
    name: str,
    neutral: Any,
    input: NestedTensor,
    dim: Any,
    keepdim: bool,
    **kwargs: object,
) -> Any:
    """Over dimensions that are named."""
    several = isinstance(dim, (tuple, list))
    r = input._ragged_idx
    dims = [wrap_dim(d, input.dim()) for d in (dim if several else (dim,))]
    inner = tuple(dict.fromkeys(r - 1 if d == 0 else d - 1 for d in dims))
    others = any(d not in (0, r) for d in dims)
    if r in dims and input._lengths is not None:
        raise RuntimeError(
            f"{name}(): reducing across the ragged dimension is not supported for non-contiguous "
            "nested tensors with holes"
        )
    if 0 in dims and r not in dims:
        raise RuntimeError(
            f"{name}(): reducing along the batch dimension but not the ragged dimension is not "
            "supported for nested tensors"
        )
    if r in dims and 0 not in dims:
        if others:
            raise RuntimeError(
                f"{name}(): reducing along a ragged and non-batch dimension is not supported for "
                "nested tensors"
            )
        known = input._maybe_max_seqlen
        length = int(input._values.shape[0]) if known is None else known
        full = to_padded(input, neutral, length)
        return func(full, [r] if several else r, keepdim, **kwargs)
    found = func(input._values, inner if several else inner[0], keepdim, **kwargs)
    if r in dims:
        return mapped(found, lambda t: t.unsqueeze(0)) if keepdim else found
    left = r - sum(d < r - 1 for d in inner) * (not keepdim)
    return mapped(found, lambda t: like(input, t, left))


def mapped(found: Any, make: Callable[[Tensor], Any]) -> Any:
    """The result, or each of several, made into something."""
    if isinstance(found, Tensor):
        return make(found)
    return type(found)(*(make(t) for t in found))


@rule("mean")
def mean(
    func: Fn, input: NestedTensor, dim: object = None, keepdim: bool = False, **kwargs: object
) -> Any:
    """The mean; over the ragged dimension, each part's sum by its own length."""
    if dim is None or dim in ((), []):
        return func(input._values, **kwargs)
    dims = [wrap_dim(d, input.dim()) for d in (dim if isinstance(dim, (tuple, list)) else (dim,))]
    r = input._ragged_idx
    if r not in dims or 0 in dims:
        return over(func, "mean", NEUTRAL["mean"], input, tuple(dims), keepdim, **kwargs)
    assert all(d in (0, r) for d in dims), (
        "Cannot reduce on both ragged and non-batch dimensions without also reducing on batch"
    )
    total = over(torch.sum, "mean", 0, input, (r,), True, **kwargs)
    lengths = input._offsets.diff() if input._lengths is None else input._lengths
    found = total / lengths.view(-1, *[1] * (total.dim() - 1))
    return found if keepdim else found.squeeze(r)
