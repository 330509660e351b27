"""Steps divided by running sizes of the gradient: Adagrad, Adadelta, RMSprop."""

from __future__ import annotations

from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.ops.creation.create import full_like, zeros_like
from toytorch.ops.creation.from_data import tensor
from toytorch.optim.optimizer import (
    Group,
    Optimizer,
    Params,
    State,
    check_positive,
    count,
    named,
    number,
    operands,
    raw,
)
from toytorch.optim.rule import Rule

ADAGRAD = Rule("s = s + g * g\np = p - lr * g / (sqrt(s) + eps)", "p g s", "lr eps")
ADADELTA = Rule(
    "s = rho * s + share * g * g\n"
    "d = sqrt(u + eps) / sqrt(s + eps) * g\n"
    "u = rho * u + share * d * d\n"
    "p = p - lr * d",
    "p g s u",
    "lr rho share eps",
)
RMSPROP = Rule(
    "s = alpha * s + share * g * g\nb = momentum * b + g / (sqrt(s) + eps)\np = p - lr * b",
    "p g s b",
    "lr alpha share eps momentum",
)
RMSPROP_PLAIN = Rule(
    "s = alpha * s + share * g * g\np = p - lr * g / (sqrt(s) + eps)", "p g s", "lr alpha share eps"
)
CENTERED = Rule(
    "s = alpha * s + share * g * g\n"
    "m = m + (g - m) * share\n"
    "b = momentum * b + g / (sqrt(s - m * m) + eps)\n"
    "p = p - lr * b",
    "p g s m b",
    "lr alpha share eps momentum",
)
CENTERED_PLAIN = Rule(
    "s = alpha * s + share * g * g\n"
    "m = m + (g - m) * share\n"
    "p = p - lr * g / (sqrt(s - m * m) + eps)",
    "p g s m",
    "lr alpha share eps",
)


class Adagrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients:

        s ← s + g²;  p ← p - lr/(1 + (t - 1)·lr_decay)·g/(√s + ε)

    Duchi, Hazan and Singer 2011; `torch.optim.Adagrad`. Sparse gradients change their rows only.
    """

    sparse = "yes"

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        lr_decay: float = 0,
        weight_decay: float = 0,
        initial_accumulator_value: float = 0,
        eps: float = 1e-10,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
    ) -> None:
        check_positive(
            learning_rate=lr,
            lr_decay=lr_decay,
            weight_decay=weight_decay,
            initial_accumulator_value=initial_accumulator_value,
            epsilon=eps,
        )
        hyper = "lr lr_decay eps weight_decay initial_accumulator_value foreach maximize "
        super().__init__(params, named(locals(), hyper + "differentiable fused"))
        for group in self.param_groups:
            for p in group["params"]:
                self._begin(p, self.state[p])

    def _begin(self, param: Tensor, state: State) -> None:
        """The state of a parameter before its first step."""
        start = self.defaults["initial_accumulator_value"]
        start = complex(start, start) if param.is_complex() else start
        state.update(step=tensor(0.0), sum=full_like(param.detach(), start))

    def share_memory(self) -> None:
        """Puts the state into memory that other processes can see."""
        for state in self.state.values():
            state["sum"].share_memory_()

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            self._begin(param, state)
        lr = number(group["lr"], group) / (1 + (count(state) - 1) * group["lr_decay"])
        if grad.is_sparse:
            if group["weight_decay"]:
                raise RuntimeError("weight_decay option is not compatible with sparse gradients")
            found = grad.coalesce()
            rows, g = found.indices()._array, found.values()._array
            where, sums = tuple(rows), state["sum"]._array
            sums[where] += g * g
            step = lr * g / (sums[where] ** 0.5 + group["eps"])
            param._array[where] += step if group["maximize"] else -step
        else:
            ADAGRAD(*operands(param, grad, group, state["sum"]), lr, group["eps"])
        bump(param)


class Adadelta(Optimizer):
    """Steps in units of the last steps, divided by gradients in units of the last gradients:

        s ← ρs + (1 - ρ)g²;  d = √(u + ε)/√(s + ε)·g;  u ← ρu + (1 - ρ)d²;  p ← p - lr·d

    Zeiler 2012; `torch.optim.Adadelta`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1.0,
        rho: float = 0.9,
        eps: float = 1e-6,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        capturable: bool = False,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive(learning_rate=lr, epsilon=eps, weight_decay=weight_decay)
        if not 0.0 <= rho <= 1.0:
            raise ValueError(f"Invalid rho value: {rho}")
        hyper = "lr rho eps weight_decay maximize capturable foreach differentiable"
        super().__init__(params, named(locals(), hyper))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            state.update(
                step=tensor(0.0), square_avg=zeros_like(param), acc_delta=zeros_like(param)
            )
        count(state)
        rho, lr = group["rho"], number(group["lr"], group)
        arrays = operands(param, grad, group, state["square_avg"], state["acc_delta"])
        ADADELTA(*arrays, lr, rho, 1 - rho, group["eps"])
        bump(param)


class RMSprop(Optimizer):
    """Steps divided by the root of a running mean of squared gradients:

        s ← αs + (1 - α)g²;  b ← momentum·b + g/(√s + ε);  p ← p - lr·b

    `centered` subtracts the square of a running mean of g from s. Hinton 2012, lecture 6e of his
    course; `torch.optim.RMSprop`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-2,
        alpha: float = 0.99,
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum: float = 0,
        centered: bool = False,
        capturable: bool = False,
        foreach: bool | None = None,
        maximize: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive(
            learning_rate=lr, epsilon=eps, momentum=momentum, weight_decay=weight_decay, alpha=alpha
        )
        hyper = (
            "lr momentum alpha eps centered weight_decay capturable foreach maximize differentiable"
        )
        super().__init__(params, named(locals(), hyper))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        centered, momentum = group["centered"], group["momentum"]
        if not state:
            state.update(step=tensor(0.0), square_avg=zeros_like(param))
            if momentum > 0:
                state["momentum_buffer"] = zeros_like(param)
            if centered:
                state["grad_avg"] = zeros_like(param)
        count(state)
        arrays = operands(param, grad, group, state["square_avg"])
        if centered:
            arrays.append(raw(state["grad_avg"], group))
        alpha = group["alpha"]
        numbers = [number(group["lr"], group), alpha, 1 - alpha, group["eps"]]
        if momentum > 0:
            rule = CENTERED if centered else RMSPROP
            rule(*arrays, raw(state["momentum_buffer"], group), *numbers, momentum)
        else:
            (CENTERED_PLAIN if centered else RMSPROP_PLAIN)(*arrays, *numbers)
        bump(param)
