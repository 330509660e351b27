"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from toytorch.backends import base
from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.optim.optimizer import Optimizer, check_positive


class SGD(Optimizer):
    """Steps against the gradient, with momentum:

        g ← ∇ + weight_decay·p;  v ← momentum·v + (1 - dampening)·g;  p ← p - lr·v

    With `nesterov`, p ← p - lr·(g + momentum·v). Sutskever et al. 2013; `torch.optim.SGD`.
    """

    def __init__(self, params: Any, lr: Any = 1e-3, momentum: float = 0, dampening: float = 0,
                 weight_decay: float = 0, nesterov: bool = False, *, maximize: bool = False,
                 foreach: bool | None = None, differentiable: bool = False,
                 fused: bool | None = None) -> None:
        check_positive(learning_rate=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        super().__init__(params, {
            "lr": lr, "momentum": momentum, "dampening": dampening, "weight_decay": weight_decay,
            "nesterov": nesterov, "maximize": maximize, "foreach": foreach,
            "differentiable": differentiable, "fused": fused})

    def update(self, param: Tensor, grad: Tensor, state: dict[str, Any],
               group: dict[str, Any]) -> None:
        p, g, lr = param._array, grad._array, float(group["lr"])
        xp = base.of_array(p).xp
        momentum = group["momentum"]
        if group["maximize"]:
            g = -g
        if group["weight_decay"]:
            g = g + group["weight_decay"] * p
        if momentum:
            buffer = state.get("momentum_buffer")
            if buffer is None:
                buffer = state["momentum_buffer"] = grad.detach().clone()
                buffer._array[...] = g
            else:
                v = buffer._array
                v *= momentum
                v += g if not group["dampening"] else (1 - group["dampening"]) * g
            g = g + momentum * buffer._array if group["nesterov"] else buffer._array
        p -= xp.multiply(g, lr)
        bump(param)
