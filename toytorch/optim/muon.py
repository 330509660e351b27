"""Muon: steps along orthogonal matrices."""

from __future__ import annotations

import math
from typing import Any

from toytorch.backends import base
from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.creation.create import zeros_like
from toytorch.optim.optimizer import Group, Optimizer, Params, State, named


def short(xp: ArrayModule, x: Array) -> Any:
    """float32 numbers rounded to the 16 bits of bfloat16, half to even, as float32."""
    bits = xp.ascontiguousarray(x, "float32").view("uint32")
    rounded = bits + (0x7FFF + ((bits >> 16) & 1)).astype("uint32")
    return (rounded & 0xFFFF0000).astype("uint32").view("float32")


def orthogonal(
    xp: ArrayModule, g: Array, coefficients: tuple[float, float, float], steps: int, eps: float
) -> Any:
    """A matrix with the singular vectors of g and singular values near 1.

    Newton and Schulz's iteration X ← aX + (bA + cA²)X with A = X·Xᵀ, from X = g/‖g‖; the
    coefficients make small singular values grow as fast as possible. It needs no decomposition.
    Like PyTorch's, it computes in bfloat16, which the steps forgive.
    """
    if steps >= 100:
        raise ValueError("Number of steps must be less than 100 for computational efficiency")
    if len(coefficients) != 3:
        raise ValueError("Coefficients must be a tuple of exactly 3 values")
    a, b, c = coefficients
    tall = g.shape[0] > g.shape[1]
    x = short(xp, g.T if tall else g)
    x = short(xp, x / short(xp, xp.maximum(xp.linalg.norm(x), eps).reshape(1)))
    for _ in range(steps):
        gram = short(xp, x @ x.T)
        x = short(xp, a * x + short(xp, b * gram + c * (gram @ gram)) @ x)
    return x.T if tall else x


class Muon(Optimizer):
    """Momentum, made orthogonal, for the matrices inside a network:

        m ← βm + (1 - β)g;  p ← (1 - lr·weight_decay)p - lr'·orthogonal(m)

    Vectors and tables are better left to AdamW. Jordan et al. 2024; `torch.optim.Muon`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        weight_decay: float = 0.1,
        momentum: float = 0.95,
        nesterov: bool = True,
        ns_coefficients: tuple[float, float, float] = (3.4445, -4.775, 2.0315),
        eps: float = 1e-7,
        ns_steps: int = 5,
        adjust_lr_fn: str | None = None,
    ) -> None:
        for name, value in (
            ("Learning rate", lr),
            ("momentum", momentum),
            ("weight decay", weight_decay),
        ):
            if not isinstance(value, Tensor) and value < 0:
                raise ValueError(f"{name} should be >= 0 but is: {value}")
        if adjust_lr_fn not in (None, "original", "match_rms_adamw"):
            raise ValueError(f"Adjust learning rate function {adjust_lr_fn} is not supported")
        hyper = "lr weight_decay momentum nesterov ns_coefficients eps ns_steps adjust_lr_fn"
        super().__init__(params, named(locals(), hyper))
        for group in self.param_groups:
            for p in group["params"]:
                if p.ndim != 2:
                    raise ValueError(
                        "Muon only supports 2D parameters whereas we found a parameter"
                        f" with size: {p.size()}"
                    )

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if param.is_complex():
            raise RuntimeError("Muon does not support complex parameters")
        if not state:
            state["momentum_buffer"] = zeros_like(grad)
        if grad.ndim != 2:
            raise ValueError("Param gradient must be a 2D matrix")
        p, g, mean = param._array, grad._array, state["momentum_buffer"]._array
        lr, momentum = float(group["lr"]), group["momentum"]
        mean += (g - mean) * (1 - momentum)
        along = g + (mean - g) * momentum if group["nesterov"] else mean
        step = orthogonal(
            base.of_array(p).xp, along, group["ns_coefficients"], group["ns_steps"], group["eps"]
        )
        rows, columns = p.shape
        if group["adjust_lr_fn"] == "match_rms_adamw":
            scale = 0.2 * math.sqrt(max(rows, columns))
        else:
            scale = math.sqrt(max(1, rows / columns))
        p *= 1 - lr * group["weight_decay"]
        p -= (lr * scale * step).astype(p.dtype)
        bump(param)
