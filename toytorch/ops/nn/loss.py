"""Losses that are ops of their own, because their gradient is cheaper than that of their parts."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt, reduced, worthwhile
from toytorch.core.memory_order import kept, placed
from toytorch.core.op import Op
from toytorch.core.record import refuse_gradients
from toytorch.core.tensor import Tensor
from toytorch.core.views import of_its_own
from toytorch.facts import dtype as types
from toytorch.facts.dtype import from_numpy_dtype, promote_types
from toytorch.facts.hints import Array, ArrayModule, Shape
from toytorch.facts.size import broadcast_pair
from toytorch.loops.runtime.jit import SMALLEST
from toytorch.ops.at_once import at_once
from toytorch.ops.define import in_own_type, internal
from toytorch.ops.nn.linear_maps import tied

# What is left of a loss per element, in a record's `fused`.
REDUCED = "loss if reduction == 'none' else sum(loss) / count if reduction == 'mean' else sum(loss)"


MSE = "d = self - target; loss = d * d; " + REDUCED


def _mse(xp: ArrayModule, a: Array, b: Array, reduction: str) -> Any:
    broadcast_pair(a.shape, b.shape)
    half, lying = None, [a, b]
    if a.dtype != b.dtype or a.dtype.char not in "fd":
        a, b, half = _same_type(a, b)
        own = a.dtype if half is None else half  # what is of this type PyTorch does not copy
        lying = [g if g.dtype == own else n for g, n in zip(lying, (a, b))]
    if worthwhile(a, SMALLEST) and reduction in ("mean", "sum"):
        made = attempt(xp, "folded", MSE, {"self": a, "target": b}, {"reduction": reduction})
        if made is not None:
            return made if half is None else made.astype(half)
    d = xp.subtract(a, b)
    loss = _mse_of(xp, d, reduction)
    if reduction == "none" and loss.ndim > 1:
        loss = placed(loss, *lying)
    return loss if half is None else loss.astype(half)


def as_number(factor: float, g: Tensor) -> float:
    """A factor of a gradient as PyTorch's kernels have it: a number of the gradient's half type."""
    return float(g.dtype.numpy.type(factor)) if g.dtype.itemsize == 2 else factor


def _same_type(a: Any, b: Any) -> tuple[Any, Any, Any]:
    """Both in their common type, and that type if it is one that is computed in float32."""
    common = promote_types(from_numpy_dtype(a.dtype), from_numpy_dtype(b.dtype))
    if not common.is_floating_point:
        raise NotImplementedError(f"\"mse_cpu\" not implemented for '{common.legacy}'")
    half = common.numpy if common.itemsize == 2 else None
    work = np.float32 if half is not None else common.numpy
    return kept(a.astype(work), a), kept(b.astype(work), b), half


def _mse_of(xp: ArrayModule, d: Array, reduction: str) -> Any:
    if reduction == "none":
        return d * d
    if reduction not in ("mean", "sum"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    total = xp.sum(d * d)
    if reduction == "sum":
        return total
    return total / d.dtype.type(d.size) if d.size else d.dtype.type("nan")


def _mse_share(g: Tensor, a: Tensor, b: Tensor, reduction: str) -> Any:
    if types.bool in (a.dtype, b.dtype):
        a, b = (t.to(o.dtype) if t.dtype is types.bool else t for t, o in ((a, b), (b, a)))
    factor = 2 / max(math.prod(broadcast_pair(a.shape, b.shape)), 1) if reduction == "mean" else 2
    made = at_once({}, "sloped", a, b, "(x - t) * p * g", float(factor), g)
    if made:
        return made[0]
    return (g * ((a - b) * as_number(factor, g))).contiguous()  # as PyTorch writes it, in rows


mse = in_own_type(
    "mse_loss(Tensor self, Tensor target, str reduction='mean') -> Tensor",
    _mse,
    forms="",
    d_self=lambda g, self, target, reduction: _mse_share(g, self, target, reduction),
    d_target=lambda g, self, target, reduction: _mse_share(g, target, self, reduction),
    amp="float32",
    fresh=True,
    fused=MSE,
    one_backward=True,
    doc="Squared error (input - target)², its mean or its sum.",
)


def _rows(logs: Array) -> Any:
    """(N, C, d…) as (N·d…, C)."""
    moved = np.moveaxis(logs, 1, -1)
    return moved.reshape(math.prod(moved.shape[:-1]), logs.shape[1])


def _nll(
    xp: ArrayModule, logs: Array, target: Array, weight: Array | None, ignore: int, reduction: str
) -> Any:
    classes = logs.shape[1]
    if logs.ndim == 2 and weight is None and reduction == "mean" and ignore < 0:
        loss = attempt(xp, "picked_loss", logs, target)
        if loss is not None:
            return loss
    if (
        logs.ndim == 2
        and weight is None
        and reduction == "mean"
        and ignore < 0
        and target.size
        and reduced(np.minimum, xp, target) >= 0
        and reduced(np.maximum, xp, target) < classes
    ):  # every class known: the usual case
        total = xp.add.reduce(logs[xp.arange(target.size), target])
        return 0 - total / logs.dtype.type(target.size)
    if reduction not in ("none", "sum", "mean"):
        raise ValueError(f"{reduction} is not a valid value for reduction")
    each = attempt(xp, "likelihoods", logs, target, weight, ignore)
    if each is None:
        each = _likelihoods(xp, logs, target, weight, ignore)
    loss, scale = each
    if reduction == "none":
        return loss
    total = reduced(np.add, xp, loss) + 0
    return total if reduction == "sum" else total / reduced(np.add, xp, scale)


def _likelihoods(
    xp: ArrayModule, logs: Array, target: Array, weight: Array | None, ignore: int
) -> tuple[Array, Array]:
    """-w[t]·x[t] of each target, and w[t], both 0 where it is ignored."""
    rows, classes = _rows(logs), logs.shape[1]
    flat = target.reshape(-1)
    known = flat != ignore
    safe = xp.where(known, flat, 0)
    asked = safe if classes else flat[known]  # what is ignored stands for class 0
    if asked.size and (int(asked.min()) < 0 or int(asked.max()) >= classes):
        bad = asked[(asked < 0) | (asked >= classes)]
        raise IndexError(f"Target {int(bad[0])} is out of bounds.")
    if not classes:  # every target is ignored
        rows = xp.zeros((rows.shape[0], 1), logs.dtype)
    picked = -rows[xp.arange(rows.shape[0]), safe]
    scale = known.astype(logs.dtype) if weight is None else xp.where(known, weight[safe], 0)
    loss = xp.where(known, picked * scale, 0).astype(logs.dtype)
    return loss.reshape(target.shape), scale


nll_loss = internal(
    "nll_loss(Tensor self, Tensor target, Tensor? weight, int ignore_index, str reduction) "
    "-> Tensor",
    _nll,
    on_card="nll_loss_forward self target weight",
    d_self=lambda g, self, target, weight, ignore_index, reduction: tied(
        nll_backward.function(g, tuple(self.shape), target, weight, ignore_index, reduction), self
    ),
    variant=lambda self, *_: 0 if self.ndim < 3 else "NllLoss2DBackward0",
    amp="float32",
    halves="halves nll_loss",
    fresh=True,
    doc="Negative log-likelihood, -Σ w[t]·x[t], from log-probabilities (N, C, d…).",
)


def _nll_backward(
    xp: ArrayModule,
    g: Array,
    shape: Shape,
    target: Array,
    weight: Array | None,
    ignore: int,
    reduction: str,
) -> Any:
    flat = target.reshape(-1)
    if len(shape) == 2 and weight is None and reduction == "mean" and ignore < 0 and flat.size:
        full = xp.zeros(shape, g.dtype)
        if attempt(xp, "put_picked", full, flat, g):
            return full
        if flat.min() >= 0:
            full[xp.arange(flat.size), flat] = -g / g.dtype.type(flat.size)
            return full
    if not shape[1]:
        return xp.zeros(shape, g.dtype)  # every target was ignored
    known = flat != ignore
    total: Any = 1
    if reduction == "mean":
        total = xp.sum(known) if weight is None else xp.sum(weight[flat[known]])
    total = xp.asarray(total, dtype=g.dtype)
    made = attempt(xp, "put_likelihoods", g, tuple(shape), target, weight, ignore, total)
    if made is not None:
        return made
    flat, at = flat[known], xp.arange(flat.size)[known]
    scale = (1 if weight is None else weight[flat]) / total
    full = xp.zeros((known.size, shape[1]), g.dtype)
    full[at, flat] = -(g.reshape(-1)[known] if reduction == "none" else g) * scale
    moved = full.reshape(shape[0], *shape[2:], shape[1])
    return xp.moveaxis(moved, -1, 1)


nll_backward: Op = internal(
    "nll_loss_backward(Tensor grad_output, int[] shape, Tensor target, Tensor? weight, "
    "int ignore_index, str reduction) -> Tensor",
    _nll_backward,
    d_grad_output=lambda g, target, weight, ignore_index, reduction: nll_loss.function(
        g, target, weight, ignore_index, reduction
    ),
    fresh=True,
    halves="halves nll_loss_backward",
    doc="The gradient of nll_loss.",
)


TARGETS = (types.int64, types.uint8)


def nll(
    input: Tensor, target: Tensor, weight: Tensor | None, ignore_index: int, reduction: str
) -> Tensor:
    """nll_loss with PyTorch's checks, for (C), (N, C) and (N, C, d…)."""
    shape, wanted = input._array.shape, target._array.shape
    ndim = len(shape)
    if not ndim:
        raise ValueError("Expected 1 or more dimensions (got 0)")
    single = ndim == 1
    batch = wanted[0] if wanted else 0
    if not single and shape[0] != batch:
        raise ValueError(
            f"Expected input batch_size ({shape[0]}) to match target batch_size ({batch})."
        )
    if ndim < 3 and len(wanted) > 1:
        raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
    if single and wanted and batch != 1 and target.dtype in TARGETS:
        raise ValueError(f"For 1D input, 1D target must have size 1, but got target size: {batch}")
    if single:
        whole = target.dtype in TARGETS  # others are refused below
        input, target = input.unsqueeze(0), target.reshape(1) if whole else target.reshape(-1)[:1]
        shape, wanted = input._array.shape, target._array.shape
    expected = (shape[0], *shape[2:])
    if ndim == 4 and len(wanted) != 3:
        raise RuntimeError(
            "only batches of spatial targets supported (3D tensors) but got targets of dimension: "
            f"{len(wanted)}"
        )
    if wanted != expected and ndim == 4 and target._dtype in TARGETS:
        raise RuntimeError(f"size mismatch (got input: {list(shape)} , target: {list(wanted)}")
    if wanted != expected and ndim != 4:
        raise RuntimeError(f"Expected target size {list(expected)}, got {list(target.shape)}")
    if target._dtype not in TARGETS:
        raise RuntimeError(
            "expected target dtype to be Long or Byte, but got " + target.dtype.legacy
        )
    if ndim > 2 and target.dtype is types.uint8:
        raise RuntimeError("expected scalar type Long but found Byte")
    if weight is not None:
        if weight.ndim != 1 or weight.numel() != input.shape[1]:
            raise RuntimeError(
                f"weight tensor should be defined either for all {input.shape[1]} classes or no "
                f"classes but got weight tensor of shape: {list(weight.shape)}"
            )
        refuse_gradients("nll_loss_forward" if ndim < 3 else "nll_loss2d_forward", weight=weight)
    if input._dtype.rank != 2:
        kernel = "nll_loss_out_frame" if ndim < 3 else "nll_loss2d_forward_out_frame"
        raise NotImplementedError(f"\"{kernel}\" not implemented for '{input.dtype.legacy}'")
    if weight is not None and weight.dtype is not input.dtype:
        raise RuntimeError(
            f"expected scalar type {input.dtype.legacy} but found {weight.dtype.legacy}"
        )
    loss = nll_loss.function(input, target, weight, ignore_index, reduction)
    return of_its_own(loss.squeeze(0)) if single and reduction == "none" else loss
