"""Losses of pairs of elements, input and target: one kernel, and a slope for the gradient.

Each record takes reduction="mean", "sum" or "none" last. With loss ℓ(x, t) and a gradient g, the
gradient of x is g·∂ℓ/∂x, divided by the number of elements for the mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.generic import attempt, reduced
from toytorch.core.memory_order import kept, placed
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, beside, wrap
from toytorch.facts.dtype import cannot_cast, from_numpy_dtype, promote_types
from toytorch.facts.hints import Array, ArrayModule, Fn, Scalar
from toytorch.facts.size import broadcast_pair, cannot_broadcast
from toytorch.ops.at_once import at_once
from toytorch.ops.define import in_own_type, internal, watched
from toytorch.ops.indexing.by_index import where
from toytorch.ops.linalg.matmul import kinds
from toytorch.ops.nn.loss import REDUCED, as_number


def reduced_array(xp: ArrayModule, loss: Array, reduction: str) -> Any:
    """A loss per element, its mean or its sum."""
    if reduction == "none":
        return loss
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    kind = loss.dtype
    half = kind.itemsize == 2 and kind.kind in "fV"
    total = xp.sum(loss, dtype=np.float32 if half else None)
    if reduction == "mean":  # of nothing, both parts of a complex number are NaN
        total = total / total.dtype.type(loss.size) if loss.size else total * math.nan
    return total.astype(kind) if half else total


def share(g: Tensor, slope: Tensor, reduction: str) -> Any:
    """The gradient of an input: g times the slope, shared out for a mean."""
    if g.dtype.itemsize == 2:
        return slope * as_number(1 / max(slope.numel(), 1) if reduction == "mean" else 1, g) * g
    return slope * (g / max(slope.numel(), 1) if reduction == "mean" else g)


def slope_at_once(
    g: Tensor, x: Tensor, t: Tensor, reduction: str, text: str, p: float = 1.0
) -> Any:
    """`share` of a slope, which `text` says of x, t and a number p, by one loop; or None."""
    count = x.numel() if reduction == "mean" else 1
    made = at_once({}, "sloped", x, t, f"{text} * g", float(p), g, count)
    return made[0] if made else None


def share_last(g: Tensor, slope: Tensor, reduction: str) -> Any:
    """`share`, which in half types divides by the number of elements in the end."""
    if g.dtype.itemsize == 2:
        return slope * g / max(slope.numel(), 1) if reduction == "mean" else slope * g
    return share(g, slope, reduction)


def _common(name: str, arrays: Sequence[Array | None]) -> Any:
    """The operands in their common type, which must be one of floating-point numbers."""
    kind = None
    for a in arrays:
        if a is not None:
            here = from_numpy_dtype(a.dtype)
            kind = here if kind is None else promote_types(kind, here)
    if kind is None or not kind.is_floating_point:
        raise NotImplementedError(f"\"{name}\" not implemented for '{kind.legacy if kind else ''}'")
    return [a if a is None or a.dtype == kind.numpy else a.astype(kind.numpy) for a in arrays]


def _in_place_of(target: Array, *arrays: Array | None) -> list[Any]:
    """Operands in the type in which they are computed, whose result will stand where the target's
    elements are: refused where these cannot hold it."""
    to = common = from_numpy_dtype(target.dtype)
    for a in arrays:
        if a is not None:
            common = promote_types(common, from_numpy_dtype(a.dtype))
    if common.rank > to.rank:
        raise cannot_cast(common, to)
    wide = np.dtype("float32") if common.itemsize == 2 and common.rank == 2 else common.numpy
    return [a if a is None else a.astype(wide, copy=False) for a in arrays]


def same_type(x: Any, t: Any) -> None:
    """Refuses a target of another type."""
    if x.dtype != t.dtype:
        mine, theirs = kinds(x, t)
        raise RuntimeError(f"Found dtype {theirs.legacy} but expected {mine.legacy}")


def _loss(
    name: str,
    params: str,
    kernel: Fn,
    kernel_name: str,
    doc: str,
    first: bool = False,
    same: bool = False,
    **slopes: Any,
) -> Op:
    """A record from a kernel (xp, x, t, *parameters) of each element; its result has the common
    type, or that of the `first` operand. Those of two types are refused where they have to be the
    `same`."""

    text = slopes.get("fused")
    words = tuple(part.split()[-1].split("=")[0] for part in params.split(",") if part)

    def forward(xp: ArrayModule, x: Any, t: Any, *rest: Any) -> Any:
        if text is not None and x.ndim and rest[-1] in ("mean", "sum"):
            given = {**dict(zip(words, rest)), "reduction": rest[-1]}
            made = attempt(xp, "folded", text, {"self": x, "target": t}, given)
            if made is not None:
                return made
        shape = broadcast_pair(x.shape, t.shape)
        arrays = [r for r in rest[:-1] if r is None or isinstance(r, xp.ndarray)]
        for a in arrays:
            shape = shape if a is None else broadcast_pair(shape, a.shape)
        numbers = rest[len(arrays) : -1]
        kind = x.dtype
        if same:
            same_type(x, t)
        given = x
        if first:
            x, t = _in_place_of(x, x, t)
        x, t = _common(kernel_name, [x, t])
        made = kernel(xp, x, t, *arrays, *numbers)
        if first or same:  # which PyTorch allocates like the first, spread out
            given = given if given.shape == made.shape else xp.broadcast_to(given, made.shape)
            made = kept(made.astype(kind, copy=False), given)
        elif rest[-1] == "none":
            made = placed(made, x, t)
        return reduced_array(xp, made, rest[-1])

    return internal(
        f"{name}(Tensor self, Tensor target{params}, str reduction='mean') -> Tensor",
        forward,
        upcast=not first,
        amp="float32",
        checks=(lambda _, args: same_type(*args[:2])) if same else None,
        doc=doc,
        **slopes,
    )


BOOL_SUBTRACTION = (
    "Subtraction, the `-` operator, with two bool tensors is not supported. Use the `^` or "
    "`logical_xor()` operator instead."
)
BOOL_NEGATION = (
    "Negation, the `-` operator, on a bool tensor is not supported. If you are trying to invert a "
    "mask, use the `~` or `logical_not()` operator instead."
)

# -- between squares and distances ----------------------------------------------------------------


def _smooth_l1(xp: ArrayModule, x: Array, t: Array, beta: float) -> Any:
    kind = x.dtype.type
    d = xp.abs(x - t)
    return xp.where(d < beta, d * d * kind(0.5 / beta), d - kind(0.5 * beta))


def _smooth_l1_gradient(g: Tensor, x: Tensor, t: Tensor, beta: float, reduction: str) -> Any:
    made = slope_at_once(g, x, t, reduction, "minimum(maximum((x - t) / p, -1), 1)", beta)
    if made is not None:
        return made
    # As PyTorch's kernel writes it, in rows; so do the next ones.
    return share(g, ((x - t) / beta).clamp(-1, 1), reduction).contiguous()


smooth_l1 = _loss(
    "smooth_l1_loss",
    ", float beta=1",
    _smooth_l1,
    "smooth_l1_cpu",
    "d²/2β where d = |x - t| is below β, d - β/2 above; Girshick 2015.",
    fused="d = abs(self - target); "
    "loss = d * d * (0.5 / beta) if d < beta else d - 0.5 * beta; " + REDUCED,
    rounds_once="float16 bfloat16",
    one_backward=True,
    d_self=lambda g, self, target, beta, reduction: _smooth_l1_gradient(
        g, self, target, beta, reduction
    ),
    d_target=lambda g, self, target, beta, reduction: _smooth_l1_gradient(
        g, target, self, beta, reduction
    ),
)


def _huber(xp: ArrayModule, x: Array, t: Array, delta: float) -> Any:
    kind = x.dtype.type
    d = xp.abs(x - t)
    return xp.where(d <= delta, d * d * kind(0.5), kind(delta) * (d - kind(0.5 * delta)))


def _huber_gradient(g: Tensor, x: Tensor, t: Tensor, delta: float, reduction: str) -> Any:
    if x.dtype is not t.dtype:
        raise RuntimeError(f"Found dtype {t.dtype.legacy} but expected {x.dtype.legacy}")
    made = slope_at_once(g, x, t, reduction, "minimum(maximum(x - t, -p), p)", delta)
    if made is not None:
        return made
    return share(g, (x - t).clamp(-delta, delta), reduction).contiguous()


huber = _loss(
    "huber_loss",
    ", float delta=1",
    _huber,
    "huber_cpu",
    "d²/2 where d = |x - t| is below δ, δ(d - δ/2) above; Huber 1964.",
    fused="d = abs(self - target); "
    "loss = d * d * 0.5 if d <= delta else delta * (d - 0.5 * delta); " + REDUCED,
    first=True,
    one_backward=True,
    d_self=lambda g, self, target, delta, reduction: _huber_gradient(
        g, self, target, delta, reduction
    ),
    d_target=lambda g, self, target, delta, reduction: _huber_gradient(
        g, target, self, delta, reduction
    ),
)

# -- probabilities --------------------------------------------------------------------------------


def _weighted(loss: Array | Tensor, weight: Array | Tensor | None) -> Any:
    return loss if weight is None else loss * weight


def _cross_entropy(xp: ArrayModule, x: Array, t: Array, weight: Array | None) -> Any:
    for name, a in ("input", x), ("target", t):
        if a.size and not (
            reduced(np.minimum, xp, a) >= 0 and reduced(np.maximum, xp, a) <= 1  # NaN is neither
        ):
            raise RuntimeError(f"all elements of {name} should be between 0 and 1")
    loss = (t - 1) * xp.maximum(xp.log1p(-x), -100) - t * xp.maximum(xp.log(x), -100)
    loss = loss.astype(x.dtype)
    if weight is None:
        return loss
    loss, weight = _in_place_of(x, loss, weight)
    return loss * weight


def _cross_entropy_gradient(
    g: Tensor, x: Tensor, t: Tensor, weight: Tensor | None, reduction: str
) -> Any:
    if weight is None:
        made = slope_at_once(g, x, t, reduction, "(x - t) / maximum((1 - x) * x, 1e-12)")
        if made is not None:
            return made
    slope = (x - t) / ((1 - x) * x).clamp_min(1e-12)
    return share(g, _weighted(slope, weight), reduction)


cross_entropy_of_two = _loss(
    "binary_cross_entropy",
    ", Tensor? weight=None",
    _cross_entropy,
    "binary_cross_entropy",
    "-t·log(x) - (1 - t)·log(1 - x), the logarithms held above -100.",
    same=True,
    one_backward=True,
    d_self=lambda g, self, target, weight, reduction: _cross_entropy_gradient(
        g, self, target, weight, reduction
    ),
    d_target=lambda g, self, weight, reduction: share(
        g, _weighted((-self).log1p() - self.log(), weight), reduction
    ),
)


WITH_LOGITS = (
    "low = minimum(self, 0) - log1p(exp(-abs(self))); hit = 1 if pos_weight is None else "
    "(pos_weight - 1) * target + 1; loss = (1 - target) * self - hit * low; loss = loss if weight "
    "is None else loss * weight; " + REDUCED
)


def _with_logits(
    xp: ArrayModule,
    x: Array,
    t: Array,
    weight: Array | None,
    pos_weight: Array | None,
    reduction: str,
) -> Any:
    kind = from_numpy_dtype(x.dtype)
    if not kind.is_floating_point:
        raise NotImplementedError(f"\"log_sigmoid_cpu\" not implemented for '{kind.legacy}'")
    if t.dtype == bool or (pos_weight is not None and pos_weight.dtype == bool):
        raise RuntimeError(BOOL_SUBTRACTION)
    for a in (weight, pos_weight):
        if a is not None and (shape := broadcast_pair(a.shape, t.shape)) != t.shape:
            raise cannot_broadcast(t.shape, shape)
    if x.ndim and reduction in ("mean", "sum"):
        arrays = {"self": x, "target": t, "weight": weight, "pos_weight": pos_weight}
        made = attempt(xp, "folded", WITH_LOGITS, arrays, {"reduction": reduction})
        if made is not None:
            return made
    wide, y, *weights = _in_place_of(t, x, t, weight, pos_weight)  # there it is computed
    half = t.dtype if x.dtype == t.dtype and t.dtype.itemsize == 2 else None
    loss = _logits_loss(xp, half, x.dtype, wide, y, *weights).astype(t.dtype, copy=False)
    return reduced_array(xp, placed(loss, t, x), reduction)


def _logits_loss(
    xp: ArrayModule,
    half: Any,
    own: Any,
    x: Array,
    t: Array,
    weight: Array | None,
    pos_weight: Array | None,
) -> Any:
    """The loss of each element; numbers of a half type are rounded to it after each step, and the
    logarithm of the sigmoid to the logits' own type."""

    def step(a: Any) -> Any:
        return a if half is None else a.astype(half).astype(a.dtype)

    def like_logits(a: Any) -> Any:
        return a.astype(own).astype(a.dtype) if own.itemsize == 2 else a

    real = x.real
    # Of x; of -x it is that - x.
    log_sigmoid = like_logits(xp.minimum(real, 0) - xp.log1p(xp.exp(-xp.abs(real))))
    if pos_weight is not None:
        log_sigmoid = like_logits(step(step(step(pos_weight - 1) * t) + 1) * log_sigmoid)
    loss = step(step(1 - t) * x) - log_sigmoid
    return _weighted(loss if weight is None else step(loss), weight)


def _with_logits_slope(
    self: Tensor, target: Tensor, weight: Tensor | None, pos_weight: Array | None
) -> Any:
    if pos_weight is None:
        return _weighted(self.sigmoid() - target, weight)
    hit = pos_weight * target
    return _weighted((hit + 1 - target) * self.sigmoid() - hit, weight)


def _with_logits_target(self: Tensor, weight: Tensor | None, pos_weight: Array | None) -> Any:
    if pos_weight is None:
        return _weighted(-self, weight)
    from toytorch.ops.elementwise.activation import (
        log_sigmoid,  # the name means something else in this file
    )

    log = log_sigmoid.function
    return _weighted(log(-self) - pos_weight * log(self), weight)


with_logits = in_own_type(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, "
    "Tensor? pos_weight=None, str reduction='mean') -> Tensor",
    _with_logits,
    forms="",
    amp="float32",
    fused=WITH_LOGITS,
    of_reals="binary_cross_entropy_with_logits",
    doc="binary_cross_entropy of sigmoid(x), without overflow.",
    d_self=lambda g, self, target, weight, pos_weight, reduction: share_last(
        g, _with_logits_slope(self, target, weight, pos_weight), reduction
    ),
    d_target=lambda g, self, weight, pos_weight, target_shape, reduction: share(
        g, _with_logits_target(self, weight, pos_weight).expand(target_shape), reduction
    ),
)


def _soft_margin_slope(x: Tensor, t: Tensor) -> Any:
    """-t·z/(1 + z) for z = e^{-t·x}, each step rounded to the type of x, as it is computed there."""
    z = (-t * x).to(x.dtype).exp()
    return (-t * z).to(x.dtype) / (z + 1)


def _refuse_target(g: Tensor) -> Any:
    raise RuntimeError(
        "The function 'soft_margin_loss' is not differentiable with respect to "
        "argument 'target'. This input cannot have requires_grad True."
    )


def _soft_margin(xp: ArrayModule, x: Array, t: Array, reduction: str) -> Any:
    if x.dtype == bool:
        raise RuntimeError(BOOL_NEGATION)
    y, wide = _in_place_of(x, t, x)
    shape = broadcast_pair(x.shape, t.shape)
    if shape != x.shape:  # it is computed where -x is
        raise cannot_broadcast(x.shape, shape)
    if x.dtype.kind in "iu":
        kind = from_numpy_dtype(x.dtype)
        raise RuntimeError(
            f"result type Float can't be cast to the desired output type {kind.legacy}"
        )
    power = (-y * wide).astype(x.dtype, copy=False)  # each step is rounded to the type of x
    power = xp.exp(power.astype(y.dtype)).astype(x.dtype, copy=False)
    loss = xp.log1p(power.astype(y.dtype)).astype(x.dtype, copy=False)
    loss = placed(loss, x)  # which PyTorch allocates for -x
    return reduced_array(xp, loss, reduction)


soft_margin = in_own_type(
    "soft_margin_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor",
    _soft_margin,
    forms="",
    amp="float32",
    doc="log(1 + e^{-t·x}) for targets t of 1 and -1.",
    one_backward=True,
    d_self=lambda g, self, target, reduction: share(g, _soft_margin_slope(self, target), reduction),
    d_target=_refuse_target,
    of_reals="soft_margin_loss",
)

# -- classes --------------------------------------------------------------------------------------


def above_zero(z: Tensor) -> Any:
    """What is above 0; NaN, which is not, counts as 0."""
    return where.function(z > 0, z, z.new_zeros(()))


@watched
def margins(x: Tensor, target: Tensor, p: Scalar, margin: float, weight: Tensor | None) -> Any:
    """Σ_{j ≠ y} max(0, margin - x[y] + x[j])ᵖ·w[y]/C for rows x of scores and classes y."""
    y = target.unsqueeze(-1)
    z = above_zero(margin - x.gather(-1, y) + x)  # at 0 nothing flows back
    z = z if p == 1 else z * z
    if weight is not None:
        z = z * weight[y]
    rest = beside(x, np.arange(x.shape[-1])) != y
    return where.function(rest, z, z.new_zeros(())).sum(-1) / x.shape[-1]


@watched
def label_margins(x: Tensor, target: Tensor) -> tuple[Any, Any]:
    """Σ_{i in, j out} max(0, 1 - x[i] + x[j])/C for rows, and which classes are in.

    The classes of a row are listed in `target` up to the first -1.
    """
    classes = target._array
    xp = base.of_array(classes).xp
    listed = xp.cumsum(classes < 0, -1) == 0
    safe = xp.where(listed, classes, 0)
    # Those that are not listed name a class further, which is cut off.
    count = classes.shape[-1]
    named = xp.where(listed, classes, count)[..., None] == xp.arange(count)
    inside = named.any(-2)
    z = above_zero(1 - x.gather(-1, wrap(safe)).unsqueeze(-1) + x.unsqueeze(-2))
    counted = wrap(listed[..., :, None] & ~inside[..., None, :])
    loss = where.function(counted, z, z.new_zeros(())).sum([-2, -1]) / x.shape[-1]
    return loss, wrap(inside)
