"""Stochastic gradient descent."""

from __future__ import annotations

from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.backends.sparse import SparseArray
from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.optim.optimizer import (
    Group,
    Optimizer,
    Params,
    State,
    check_positive,
    named,
    number,
    raw,
)
from toytorch.optim.rule import Rule

STEP = Rule("p = p - lr * g", "p g", "lr")
DECAYED = Rule("p = p - lr * (g + decay * p)", "p g", "lr decay")
MOMENTUM = Rule("v = momentum * v + share * g\np = p - lr * v", "p g v", "lr momentum share")
NESTEROV = Rule(
    "v = momentum * v + share * g\np = p - lr * (g + momentum * v)", "p g v", "lr momentum share"
)


class SGD(Optimizer):
    """Steps against the gradient, with momentum:

        g ← ∇ + weight_decay·p;  v ← momentum·v + (1 - dampening)·g;  p ← p - lr·v

    With `nesterov`, p ← p - lr·(g + momentum·v). Sutskever et al. 2013; `torch.optim.SGD`.
    """

    sparse = "yes"

    def __init__(
        self,
        params: Params,
        lr: Tensor | float = 1e-3,
        momentum: float = 0,
        dampening: float = 0,
        weight_decay: float = 0,
        nesterov: bool = False,
        *,
        maximize: bool = False,
        foreach: bool | None = None,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_positive(learning_rate=lr, momentum=momentum, weight_decay=weight_decay)
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("Nesterov momentum requires a momentum and zero dampening")
        hyper = "lr momentum dampening weight_decay nesterov maximize foreach differentiable fused"
        super().__init__(params, named(locals(), hyper))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if grad._array.__class__ is SparseArray:
            self.update_sparse(param, grad, state, group)
            return
        p, g, lr = raw(param, group), raw(grad, group), number(group["lr"], group)
        decay, momentum = float(group["weight_decay"]), float(group["momentum"])
        g = -g if group["maximize"] else g
        if not momentum:
            if decay:
                DECAYED(p, g, lr, decay)
            else:
                STEP(p, g, lr)
            bump(param)
            return
        g = g + decay * p if decay else g
        buffer = state.get("momentum_buffer")
        if buffer is None:
            buffer = state["momentum_buffer"] = grad.detach().clone()
            with no_grad():
                raw(buffer, group)[...] = g
            if group["differentiable"]:  # the first gradient is a constant, as PyTorch has it
                v = raw(buffer, group)
                g = g + momentum * v if group["nesterov"] else v
                STEP(p, g, lr)
            else:
                STEP(p, g, lr * (1 + momentum) if group["nesterov"] else lr)
        else:
            v, share = raw(buffer, group), 1 - float(group["dampening"])
            rule = NESTEROV if group["nesterov"] else MOMENTUM
            rule(p, g, v, lr, momentum, share)
        bump(param)

    def update_sparse(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        """`update` for a sparse gradient: only the rows that it has entries for change."""
        g: Any = -grad if group["maximize"] else grad
        if group["weight_decay"]:
            g = g.add(param, alpha=float(group["weight_decay"]))
        momentum = float(group["momentum"])
        if momentum and "momentum_buffer" not in state:
            state["momentum_buffer"] = g.clone()
        elif momentum:
            share = 1 - float(group["dampening"])
            state["momentum_buffer"].mul_(momentum).add_(g, alpha=share)
        if momentum:
            buffer = state["momentum_buffer"]
            g = g.add(buffer, alpha=momentum) if group["nesterov"] else buffer
        param.add_(g, alpha=-float(group["lr"]))
