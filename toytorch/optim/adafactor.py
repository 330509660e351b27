"""Adafactor: Adam's scale from the sums of rows and columns."""

from __future__ import annotations

import math
from collections.abc import Sequence

from toytorch.backends import base
from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import finfo
from toytorch.ops.creation.create import zeros_like
from toytorch.ops.creation.from_data import tensor
from toytorch.optim.optimizer import Group, Optimizer, State, count, named


class Adafactor(Optimizer):
    """A rule for large matrices that keeps a number for each row and column, not for each element.

        R, C ← running means of g² over rows and columns;  u = g/√(R·C/mean(R))
        p ← p - max(ε₂, rms(p))·min(lr, 1/√t)·u/max(1, rms(u)/d)

    Shazeer and Stern 2018; `torch.optim.Adafactor`.
    """

    def __init__(
        self,
        params: Sequence[Tensor],
        lr: float = 1e-2,
        beta2_decay: float = -0.8,
        eps: tuple[float | None, float] = (None, 1e-3),
        d: float = 1.0,
        weight_decay: float = 0.0,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
    ) -> None:
        for refused, message in (
            (not isinstance(lr, Tensor) and lr < 0, f"Learning rate should be >= 0 but is: {lr}"),
            (beta2_decay > 0, f"beta2_decay should be <= 0 but is: {beta2_decay}"),
            (eps[0] is not None and eps[0] < 0, f"epsilon1 should be >= 0 but is: {eps[0]}"),
            (eps[1] < 0, f"epsilon2 should be >= 0 but is: {eps[1]}"),
            (d < 1, f"Clipping threshold d should be >= 1 but is: {d}"),
            (weight_decay < 0, f"weight_decay should be >= 0 but is: {weight_decay}"),
        ):
            if refused:
                raise ValueError(message)
        hyper = "lr beta2_decay eps d weight_decay foreach maximize"
        super().__init__(params, named(locals(), hyper))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if param.is_complex():
            raise RuntimeError("Adafactor does not support complex parameters")
        factored = grad.ndim > 1
        if not state:
            state["step"] = tensor(0.0)
            if factored:
                shape = list(grad.shape)
                state["row_var"] = grad.new_zeros([*shape[:-1], 1])
                state["col_var"] = grad.new_zeros([*shape[:-2], 1, shape[-1]])
            else:
                state["variance"] = zeros_like(grad)
        t, p, g, lr = count(state), param._array, grad._array, float(group["lr"])
        xp = base.of_array(p).xp
        smallest, least = group["eps"]
        smallest = finfo(param.dtype).eps if smallest is None else smallest
        size = math.sqrt(max(p.size, 1))
        alpha = max(least, float(xp.linalg.norm(p)) / size) * min(lr, 1 / math.sqrt(t))
        if group["weight_decay"]:
            p *= 1 - lr * group["weight_decay"]
        g, share = -g if group["maximize"] else g, t ** group["beta2_decay"]
        squares = g * g
        if factored:
            rows, columns = state["row_var"]._array, state["col_var"]._array
            rows += (squares.mean(-1, keepdims=True) - rows) * share
            columns += (squares.mean(-2, keepdims=True) - columns) * share
            variance = rows @ columns
            variance /= xp.maximum(rows.mean(-2, keepdims=True), smallest)
        else:
            kept = state["variance"]._array
            kept += (squares - kept) * share
            variance = kept
        step = g / xp.sqrt(xp.maximum(variance, smallest * smallest))
        p -= step * (alpha / max(1.0, float(xp.linalg.norm(step)) / (size * group["d"])))
        bump(param)
