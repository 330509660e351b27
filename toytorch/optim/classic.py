"""Averaged stochastic gradient descent, and steps by the sign of the gradient alone."""

from __future__ import annotations

from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.ops.creation.create import full_like, ones, zeros_like
from toytorch.ops.creation.from_data import tensor
from toytorch.optim.optimizer import (
    Group,
    Optimizer,
    Params,
    State,
    check_positive,
    count,
    named,
    noted,
    operands,
)
from toytorch.optim.rule import Rule

ASGD_STEP = Rule("p = p * keep - eta * g\na = a + (p - a) * mu", "p g a", "keep eta mu")
RPROP = Rule(
    "t = g * o\n"
    "f = up if t > 0 else (down if t < 0 else 1)\n"
    "s = s * f\n"
    "s = low if s < low else (high if s > high else s)\n"
    "o = 0 if t < 0 else g\n"
    "p = p - (s if o > 0 else (-s if o < 0 else 0))",
    "p g o s",
    "up down low high",
)


class ASGD(Optimizer):
    """Stochastic gradient descent, and from step t0 on the mean of all parameters so far:

        p ← (1 - λη)p - η·g;  η = lr/(1 + λ·lr·t)^α;  a ← a + (p - a)/max(1, t - t0)

    The mean is `state[p]["ax"]`. Polyak and Juditsky 1992; `torch.optim.ASGD`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lambd: float = 1e-4,
        alpha: float = 0.75,
        t0: float = 1e6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_positive(learning_rate=lr, weight_decay=weight_decay)
        hyper = "lr lambd alpha t0 weight_decay foreach maximize differentiable capturable"
        super().__init__(params, named(locals(), hyper))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        lr, lambd = float(group["lr"]), group["lambd"]
        if not state:
            state.update(step=tensor(0.0), eta=tensor(lr), mu=ones(()), ax=zeros_like(param))
        t, eta, mu = count(state), noted(state, "eta")._array, noted(state, "mu")._array
        step = float(eta)
        ASGD_STEP(*operands(param, grad, group, state["ax"]), 1 - lambd * step, step, float(mu))
        eta[...] = lr / (1 + lambd * lr * t) ** group["alpha"]
        mu[...] = 1 / max(1, t - group["t0"])
        bump(param)


class Rprop(Optimizer):
    """A step size for each number, larger while its gradient keeps its sign:

        s ← s·η₊ where the sign is the last one's, s·η₋ where it is not; p ← p - sign(g)·s

    Where the sign changed, the number stays for one step. For gradients of whole data sets.
    Riedmiller and Braun 1993; `torch.optim.Rprop`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50),
        *,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive(learning_rate=lr)
        if not 0.0 < etas[0] < 1.0 < etas[1]:
            raise ValueError(f"Invalid eta values: {etas[0]}, {etas[1]}")
        hyper = "lr etas step_sizes foreach maximize differentiable capturable"
        super().__init__(params, named(locals(), hyper))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            lr = float(group["lr"])
            state.update(
                step=tensor(0.0),
                prev=zeros_like(param),
                step_size=full_like(param.detach(), complex(lr, lr) if param.is_complex() else lr),
            )
        count(state)
        down, up = group["etas"]
        arrays = operands(param, grad, group, state["prev"], state["step_size"])
        RPROP(*arrays, up, down, *map(float, group["step_sizes"]))
        bump(param)
