"""Losses of classes, from scores or log-probabilities."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.composed import cast_to
from toytorch.nn.functional.lookup import linear
from toytorch.nn.functional.reduction import legacy_reduction
from toytorch.ops.define import asks
from toytorch.ops.nn.loss import nll
from toytorch.ops.reductions import exponentials

__all__ = ["cross_entropy", "linear_cross_entropy", "nll_loss"]


@asks
def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-input[target], weighted by class; from log-probabilities."""
    reduction = legacy_reduction(reduction, size_average, reduce)
    return nll(input, target, weight, ignore_index, reduction)


@asks
@cast_to("float32")
def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """-Σ p·log softmax(input): from scores and class numbers, or probabilities.

    >>> cross_entropy(torch.zeros(1, 4), torch.tensor([2]))
    tensor(1.3863)
    """
    reduction = legacy_reduction(reduction, size_average, reduce)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing:g}")
    axis = 0 if input._array.ndim == 1 else 1
    probabilities = target._array.shape == input._array.shape
    if probabilities and not target.dtype.is_floating_point:
        raise RuntimeError(
            "Expected floating point type for target with class probabilities, got "
            f"{target.dtype.legacy}"
        )
    logs = exponentials.log_softmax.function(input, axis, None)
    if probabilities:
        if ignore_index >= 0:
            raise RuntimeError("ignore_index is not supported for floating point target")
        return _soft_targets(logs, target, weight, reduction, label_smoothing, axis)
    loss = nll(logs, target, weight, ignore_index, reduction)
    if not label_smoothing:
        return loss
    classes = input.shape[axis]
    spread = -(logs if weight is None else logs * _along(weight, logs, axis)).sum(axis)
    array = target._array
    here = array.__class__ is np.ndarray and state.fast_path is not state.SLOW
    whole = here and weight is None and bool((array != ignore_index).all())
    if not whole:
        known = target.ne(ignore_index)
        spread = spread.masked_fill(~known, 0)
    if reduction == "mean" and whole:
        spread = spread.mean()
    elif reduction == "mean":
        if weight is None:
            total = known.sum()
        else:
            total = weight[target.masked_fill(~known, 0)].masked_fill(~known, 0).sum()
        spread = spread.sum() / total
    elif reduction == "sum":
        spread = spread.sum()
    return (1 - label_smoothing) * loss + spread * (label_smoothing / classes)


def _along(weight: Tensor, like: Tensor, axis: int) -> Any:
    return weight.reshape([-1 if d == axis else 1 for d in range(like.ndim)])


def _soft_targets(
    logs: Tensor, target: Tensor, weight: Tensor | None, reduction: str, smoothing: float, axis: int
) -> Tensor:
    if smoothing:
        target = target * (1 - smoothing) + smoothing / logs.shape[axis]
    weighted = logs * target
    if weight is not None:
        weighted = weighted * _along(weight, logs, axis)
    if reduction == "none":
        return -weighted.sum(axis)
    if reduction == "mean" and not logs.numel():
        return -weighted.sum().fill_(math.nan)
    total = -weighted.sum()
    return total / (logs.numel() // logs.shape[axis]) if reduction == "mean" else total


def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: Any = None,
) -> Tensor:
    """cross_entropy of a linear layer: input (N, in), linear_weight (C, …, in).

    `options` says in PyTorch how to save memory; here the result is the same without.
    """
    if input.ndim not in (1, 2):
        raise RuntimeError(f"expected input with dimensionality 1 or 2, got {input.ndim}")
    if linear_weight.ndim < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.ndim}"
        )
    classes, *places, features = linear_weight.shape
    if input.shape[-1] != features:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), "
            f"got {input.shape[-1]} and {features}, respectively"
        )
    shape = (classes, *places)
    if linear_bias is not None and tuple(linear_bias.shape) != shape:
        raise RuntimeError(f"expected linear_bias shape {shape}, got {tuple(linear_bias.shape)}")
    if places and input.ndim == 1:
        raise RuntimeError(
            "K-dimensional loss defined by linear_weight shape "
            f"{tuple(linear_weight.shape)} requires batched input, (N, {features}), "
            f"got unbatched input with shape {tuple(input.shape)}"
        )
    if tuple(target.shape) == (*input.shape[:-1], *shape) and ignore_index is not None:
        raise RuntimeError("ignore_index cannot be specified when target contains probabilities")
    flat = linear_bias if linear_bias is None else linear_bias.reshape([-1])
    logits = linear(input, linear_weight.reshape([-1, features]), flat)
    logits = logits.reshape([*input.shape[:-1], *shape])
    more: Any = {"ignore_index": -100 if ignore_index is None else ignore_index}
    more |= {"reduction": reduction, "label_smoothing": label_smoothing}
    return cross_entropy(logits, target, weight, **more)
