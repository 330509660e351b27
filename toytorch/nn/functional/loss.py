"""Losses: of numbers, probabilities, classes, rankings and alignments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.autograd.modes import no_grad
from toytorch.core.record import refuse_gradients
from toytorch.core.tensor import Tensor, beside
from toytorch.core.views import counted
from toytorch.facts import warned
from toytorch.facts.composed import cast_to
from toytorch.facts.dtype import no_kernel, promote_types
from toytorch.facts.hints import Fn, Scalar
from toytorch.facts.size import broadcast_pair, cannot_broadcast
from toytorch.nn.functional.distance import pairwise_distance
from toytorch.nn.functional.reduction import legacy_reduction, reduced
from toytorch.ops.define import tensor_first
from toytorch.ops.elementwise.activation import log_sigmoid
from toytorch.ops.elementwise.limits import minimum
from toytorch.ops.indexing.by_index import where
from toytorch.ops.nn import loss_pairs as pairs
from toytorch.ops.nn.loss import mse
from toytorch.ops.nn.loss_ctc import ctc_loss as ctc_record
from toytorch.ops.nn.windows import sizes_text
from toytorch.ops.shaping.reshape import broadcast_tensors

__all__ = [
    "binary_cross_entropy", "binary_cross_entropy_with_logits", "cosine_embedding_loss", "ctc_loss",
    "gaussian_nll_loss", "hinge_embedding_loss", "huber_loss", "kl_div", "l1_loss",
    "margin_ranking_loss", "mse_loss", "multi_margin_loss", "multilabel_margin_loss",
    "multilabel_soft_margin_loss", "poisson_nll_loss", "smooth_l1_loss", "soft_margin_loss",
    "triplet_margin_loss", "triplet_margin_with_distance_loss",
]  # fmt: skip


def _paired(input: Tensor, target: Tensor) -> tuple[Tensor, ...]:
    """Input and target in one shape; a warning where they had two."""
    if tuple(input.shape) == tuple(target.size()):
        return input, target
    warned.at_call(
        f"Using a target size ({target.shape}) that is different to the input size "
        f"({input.shape}). This will likely lead to incorrect results due to "
        "broadcasting. Please ensure they have the same size."
    )
    return broadcast_tensors(input, target)


def _check_weight(weight: Tensor | None, input: Tensor) -> None:
    if weight is not None and tuple(weight.shape) != tuple(input.shape):
        raise ValueError("Weights and input must have the same size.")


def _weighted(loss: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """A weighted loss per element, reduced; the mean is by the sum of weights."""
    if weight is None:
        return reduced(loss, reduction)
    weighted = loss * weight
    if reduction == "mean":
        return weighted.sum() / weight.sum()
    return reduced(weighted, reduction)


# -- of numbers -----------------------------------------------------------------------------------


def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """(input - target)², its mean or its sum."""
    given = input
    input, target = _paired(input, target)
    _check_weight(weight, given)
    reduction = legacy_reduction(reduction, size_average, reduce)
    if weight is not None:
        return _weighted(mse.function(input, target, "none"), weight, reduction)
    return mse.function(input, target, reduction)


@cast_to("float32")
def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """|input - target|, its mean or its sum."""
    given = input
    input, target = _paired(input, target)
    _check_weight(weight, given)
    return _weighted(
        (input - target).abs(), weight, legacy_reduction(reduction, size_average, reduce)
    )


def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """d²/2β where d = |input - target| is below β, d - β/2 above; Girshick 2015."""
    input, target = _paired(input, target)
    reduction = legacy_reduction(reduction, size_average, reduce)
    if beta < 0:
        raise RuntimeError("smooth_l1_loss does not support negative values for beta.")
    if beta == 0:
        return reduced((input - target).abs(), reduction)
    common = promote_types(input.dtype, target.dtype)
    input, target = input.to(common), target.to(common)
    return pairs.smooth_l1.function(input, target, beta, reduction)


def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """d²/2 where d = |input - target| is below δ, δ(d - δ/2) above; Huber 1964."""
    given = input
    input, target = _paired(input, target)
    _check_weight(weight, given)
    if delta <= 0:
        raise RuntimeError("huber_loss does not support non-positive values for delta.")
    if weight is not None:
        return reduced(pairs.huber.function(input, target, delta, "none") * weight, reduction)
    return pairs.huber.function(input, target, delta, reduction)


# -- of probabilities -----------------------------------------------------------------------------


def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """-t·log(x) - (1 - t)·log(1 - x) for probabilities x."""
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"Using a target size ({target.shape}) that is different to the input size"
            f" ({input.shape}) is deprecated. Please ensure they have the same size."
        )
    if weight is not None:
        refuse_gradients("binary_cross_entropy", weight=weight)
        weight = weight.expand(target.shape)
        if weight.dtype.itemsize < input.dtype.itemsize:
            weight = weight.to(input.dtype)  # the loss is multiplied in place
    return pairs.cross_entropy_of_two.function(
        input, target, weight, legacy_reduction(reduction, size_average, reduce)
    )


def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """binary_cross_entropy of sigmoid(x), without overflow."""
    if tuple(target.shape) != tuple(input.shape):
        raise ValueError(
            f"Target size ({target.shape}) must be the same as input size ({input.shape})"
        )
    refuse_gradients("binary_cross_entropy_with_logits", weight=weight, pos_weight=pos_weight)
    return pairs.with_logits.function(
        input, target, weight, pos_weight, legacy_reduction(reduction, size_average, reduce)
    )


def entropy_of_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    pos_weight: Tensor | None = None,
    reduction: str = "mean",
) -> Tensor:
    """binary_cross_entropy_with_logits where the input broadcasts to the target's shape."""
    shape = broadcast_pair(tuple(target.shape), tuple(input.shape))
    if shape != tuple(target.shape):
        raise cannot_broadcast(target.shape, shape)
    return pairs.with_logits.function(input, target, weight, pos_weight, reduction)


@cast_to("float32")
@tensor_first
def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """t·(log t - x) for log-probabilities x; "batchmean" divides the sum by the batch."""
    if input.is_complex() or target.is_complex():
        raise RuntimeError("kl_div: Complex inputs not supported.")
    if not (input.is_floating_point() and target.is_floating_point()):
        raise RuntimeError("kl_div: Integral inputs not supported.")
    if reduction == "mean" and size_average is None and reduce is None:
        warned.at_call(
            "reduction: 'mean' divides the total loss by both the batch size and the "
            "support size.'batchmean' divides only by the batch size, and aligns with the"
            " KL div math definition.'mean' will be changed to behave the same as "
            "'batchmean' in the next major release."
        )
    loss = target.exp() * (target - input) if log_target else target.xlogy(target) - target * input
    if reduction == "batchmean" and size_average is None and reduce is None:
        total = loss.sum()
        return total / input.shape[0] if input.ndim else total
    return reduced(loss, legacy_reduction(reduction, size_average, reduce))


@cast_to("float32")
@tensor_first
def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-8,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """eˣ - t·x, or x - t·log(x + eps); `full` adds Stirling's formula for log t!."""
    loss = input.exp() - target * input if log_input else input - target * (input + eps).log()
    if full:
        stirling = target * target.log() - target + (target * (2 * math.pi)).log() * 0.5
        loss = loss + stirling.masked_fill(target <= 1, 0)
    return reduced(loss, legacy_reduction(reduction, size_average, reduce))


def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | float,
    full: bool = False,
    eps: float = 1e-6,
    reduction: str = "mean",
) -> Tensor:
    """(log v + (x - t)²/v)/2 for variances v, held above eps; Nix and Weigend 1994."""
    spread: Any = var if isinstance(var, Tensor) else input.new_full(input.shape, var)
    if not spread.is_meta and bool((spread < 0).any()):
        raise ValueError("var has negative entry/entries")
    if tuple(spread.shape) != tuple(input.shape):
        if tuple(input.shape[:-1]) == tuple(spread.shape):
            spread = spread.unsqueeze(-1)
        elif (
            input.ndim != spread.ndim
            or sum(v for n, v in zip(input.shape, spread.shape) if n != v) != 1
        ):
            raise ValueError("var is of incorrect size")
    if reduction not in ("none", "mean", "sum"):
        raise ValueError(f"{reduction} is not valid")
    held = spread.clone()
    with no_grad():  # the limit has no gradient
        held.clamp_(min=eps)
    loss = (held.log() + (input - target).square() / held) * 0.5
    if not full:
        return reduced(loss, reduction)
    loss = loss + 0.5 * math.log(2 * math.pi)
    return counted(loss, 1) if reduction == "none" else reduced(loss, reduction)


# -- of signs and rankings ------------------------------------------------------------------------


@tensor_first
def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """log(1 + e^{-t·x}) for targets of 1 and -1."""
    refuse_gradients("soft_margin_loss", target=target)
    return pairs.soft_margin.function(
        input, target, legacy_reduction(reduction, size_average, reduce)
    )


@cast_to("float32")
@tensor_first
def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """x where the target is 1, max(0, margin - x) where it is -1."""
    if not (input.is_floating_point() or input.is_complex()):
        margin = int(margin)  # whole numbers stay what they are
    nothing = input.new_zeros(input.shape)
    near = where.function(target.ne(1), (margin - input).clamp_min(0), nothing)
    loss = near + where.function(target.ne(-1), input, nothing)
    return reduced(loss, legacy_reduction(reduction, size_average, reduce))


@cast_to("float32")
@tensor_first
def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin - t·(x₁ - x₂)) for targets of 1 and -1."""
    reduction = legacy_reduction(reduction, size_average, reduce)
    if not input1.ndim == input2.ndim == target.ndim:
        raise RuntimeError(
            "margin_ranking_loss : All input tensors should have same dimension but got sizes: "
            f"input1: {input1.shape}, input2: {input2.shape}, target: {target.shape} "
        )
    return ranked_apart(input1, input2, target, margin, reduction)


@cast_to("float32")
def ranked_apart(
    input1: Tensor, input2: Tensor, target: Tensor, margin: float = 0.0, reduction: str = "mean"
) -> Tensor:
    """margin_ranking_loss of operands of whatever shapes broadcast."""
    loss = (-target * (input1 - input2) + float(margin)).clamp_min(0)
    return reduced(loss, reduction) if reduction != "none" else counted(loss, 1)


@cast_to("float32")
@tensor_first
def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """1 - cos where the target is 1, max(0, cos - margin) where it is -1."""
    reduction = legacy_reduction(reduction, size_average, reduce)
    if target.ndim not in (0, 1):
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if input1.ndim != target.ndim + 1 or input2.ndim != target.ndim + 1:
        raise RuntimeError(
            f"{target.ndim}D target tensor expects {target.ndim + 1}D input tensors, but found "
            f"inputs with sizes {sizes_text(input1.shape)} and {sizes_text(input2.shape)}."
        )
    dot = (input1 * input2).sum(-1)
    square1 = (input1 * input1).sum(-1) + 1e-12
    square2 = (input2 * input2).sum(-1) + 1e-12
    cosine = dot / (square1 * square2).sqrt()
    same = (1 - cosine).masked_fill(target.ne(1), 0)
    other = (cosine - margin).clamp_min(0).masked_fill(target.ne(-1), 0)
    return reduced(same + other, reduction)


def _check_margin(margin: float) -> None:
    """Refuses what only the functions of Python refuse."""
    if margin <= 0:
        raise ValueError(f"margin must be greater than 0, got {margin}")


def _of_triplets(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    distance: Fn,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Any:
    """max(0, margin + d(a, p) - d(a, n)), whatever the margin."""
    if not anchor.ndim == positive.ndim == negative.ndim:
        raise RuntimeError(
            "The anchor, positive, and negative tensors are expected to have the "
            f"same number of dimensions, but got: anchor {anchor.ndim}D, positive "
            f"{positive.ndim}D, and negative {negative.ndim}D inputs"
        )
    near, far = distance(anchor, positive), distance(anchor, negative)
    if swap:
        far = minimum.function(far, distance(positive, negative))
    return reduced((margin + near - far).clamp_min(0), reduction)


def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Fn | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + d(a, p) - d(a, n)) with a distance of one's own."""
    if reduction not in ("mean", "sum", "none"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    _check_margin(margin)
    distance = pairwise_distance if distance_function is None else distance_function
    return _of_triplets(anchor, positive, negative, distance, margin, swap, reduction)


@cast_to("float32")
@tensor_first
def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-6,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """max(0, margin + ‖a - p‖ - ‖a - n‖); Balntas et al. 2016."""
    _check_margin(margin)
    how = legacy_reduction(reduction, size_average, reduce)
    return triplet_of_norms(
        anchor, positive, negative, p=p, eps=eps, margin=margin, swap=swap, reduction=how
    )


@cast_to("float32")
def triplet_of_norms(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    p: float = 2,
    eps: float = 1e-6,
    **options: Any,
) -> Tensor:
    """The triplet loss of any margin, as C++ takes it; options are those of `_of_triplets`."""

    def distance(x: Tensor, y: Tensor) -> Any:
        return pairwise_distance(x, y, p, eps)

    return _of_triplets(anchor, positive, negative, distance, **options)


# -- of several classes at once -------------------------------------------------------------------


def _check_scores(input: Tensor) -> None:
    if input.ndim > 2 or 0 in input.shape[1:] or (input.ndim < 2 and not input.numel()):
        raise RuntimeError(
            "Expected non-empty vector or matrix with optional 0-dim batch size, but"
            f" got: {sizes_text(input.shape)}"
        )


@cast_to("float32")
@tensor_first
def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: Scalar = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ_{j ≠ y} max(0, margin - x[y] + x[j])ᵖ/C for classes y."""
    reduction = legacy_reduction(reduction, size_average, reduce)
    if p not in (1, 2):
        raise ValueError("only p == 1 and p == 2 supported")
    if weight is not None and weight.ndim != 1:
        raise ValueError("weight must be one-dimensional")
    _check_scores(input)
    rows = input if input.ndim == 2 else input.reshape([1, -1])
    if target.ndim > 1 or target.numel() != rows.shape[0]:
        raise RuntimeError(
            "multi_margin_loss: target tensor should be 1-D with size equal to the number of input "
            f"samples (batch size). Expected target size [{rows.shape[0]}], but got "
            f"{sizes_text(target.shape)}. Input has shape {sizes_text(input.shape)}."
        )
    if weight is not None and weight.numel() != rows.shape[1]:
        raise RuntimeError(
            f"inconsistent weight size, expected {rows.shape[1]} but got {sizes_text(weight.shape)}"
        )
    if not input.numel():  # PyTorch asks nothing more, and gives back what it has not computed
        return _of_nothing(input, reduction)
    _need_long_floats("multi_margin_loss_cpu_kernel", input)
    if target.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.legacy}")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.legacy} but found {weight.dtype.legacy}"
        )
    refuse_gradients("multi_margin_loss", weight=weight)
    loss = pairs.margins(rows, target.reshape([-1]), p, margin, weight)
    return reduced(loss.reshape(target.shape) if reduction == "none" else loss, reduction)


def _of_nothing(input: Tensor, reduction: str) -> Tensor:
    """The loss of no rows: zeros, in the type of whole numbers, too."""
    rows = input.sum(-1, dtype=input.dtype)
    return rows if reduction == "none" else rows.sum(dtype=input.dtype)


def _need_long_floats(kernel: str, input: Tensor) -> None:
    """Refuses what is no float32 or float64, as a kernel that exists for these alone."""
    if input.dtype.name not in ("float32", "float64"):
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.legacy}'")


@cast_to("float32")
@tensor_first
def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Σ_{i in, j out} max(0, 1 - x[i] + x[j])/C; the classes that are in end with a -1."""
    reduction = legacy_reduction(reduction, size_average, reduce)
    _check_scores(input)
    if tuple(target.shape) != tuple(input.shape) and not (input.ndim == 0 and target.numel() == 1):
        raise RuntimeError(
            f"inconsistent target size: {sizes_text(target.shape)} for input of "
            f"size: {sizes_text(input.shape)}"
        )
    if not input.numel():
        return _of_nothing(input, reduction)
    if target.dtype.is_complex:  # the range of classes is looked up first
        raise no_kernel("min_all", np.dtype(target.dtype.numpy))
    _need_long_floats("multilabel_margin_loss_forward_out_frame", input)
    if target.dtype.name != "int64":
        raise RuntimeError(f"expected scalar type Long but found {target.dtype.legacy}")
    rows = input if input.ndim == 2 else input.reshape([1, -1])
    loss, _ = pairs.label_margins(rows, target.reshape(rows.shape))
    return reduced(loss if input.ndim == 2 else loss.reshape([]), reduction)


def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The mean over classes of binary_cross_entropy_with_logits."""
    log = log_sigmoid.function
    loss = -(target * log(input) + (1 - target) * log(-input))
    loss = loss if weight is None else loss * weight
    classes = input.ndim - 1  # the target may have more dimensions
    return reduced(
        loss.sum(classes) / input.shape[classes], legacy_reduction(reduction, size_average, reduce)
    )


# -- of alignments --------------------------------------------------------------------------------


@tensor_first
def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """-log of the probability of a text under all its alignments; Graves et al. 2006.

    log_probs (T, N, C); targets (N, S), or the texts one after the other.
    """
    for given in (input_lengths, target_lengths):
        if not isinstance(given, (Tensor, tuple, list)):
            kind = type(given).__name__
            raise TypeError(
                f"ctc_loss() received an invalid combination of arguments - lengths are {kind}, but "
                "expected a Tensor or a tuple of ints"
            )
    steps, lengths = (
        (
            v.to(log_probs.device)  # PyTorch lets the lengths stay on the CPU
            if isinstance(v, Tensor)
            else beside(log_probs, np.asarray(v, np.int64).reshape(-1))
        )
        for v in (input_lengths, target_lengths)
    )
    for name, v in (("input_lengths", steps), ("target_lengths", lengths)):
        if v.dtype.rank != 1:
            raise RuntimeError(f"{name} must be integral")
    single = log_probs.ndim != 3
    logs = log_probs.unsqueeze(1) if single else log_probs
    texts = (targets.unsqueeze(0) if single and targets.ndim == 1 else targets).long()
    if texts.ndim not in (1, 2):
        raise RuntimeError(
            f"Expected 1 to 2 dimensions, but got {texts.ndim}-dimensional tensor for argument #2 "
            "'targets' (while checking arguments for ctc_loss_allocate_outputs)"
        )
    loss = ctc_record.function(
        logs, texts, steps.reshape([-1]), lengths.reshape([-1]), blank, zero_infinity
    )
    if zero_infinity:
        loss = loss.masked_fill(loss == math.inf, 0)
    if reduction == "mean":
        return (loss / lengths.reshape([-1]).clamp_min(1).to(loss.dtype)).mean()
    loss = reduced(loss, reduction)
    return loss.squeeze(0) if single and reduction == "none" else loss
