"""Adam, and Adam with decoupled weight decay."""

from __future__ import annotations

from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.ops.creation.create import zeros_like
from toytorch.ops.creation.from_data import tensor
from toytorch.optim.optimizer import (
    Group,
    Optimizer,
    Params,
    State,
    check_betas,
    check_positive,
    count,
    named,
    number,
    operands,
    raw,
)
from toytorch.optim.rule import Rule

MEANS = "m = m + (g - m) * share\nv = beta2 * v + g * g * share2\n"
ADAM = Rule(
    MEANS + "p = p - m * step / (sqrt(v) * scale + eps)",
    "p g m v",
    "share beta2 share2 step scale eps",
)
AMSGRAD = Rule(
    MEANS + "most = maximum(most, v)\np = p - m * step / (sqrt(most) * scale + eps)",
    "p g m v most",
    "share beta2 share2 step scale eps",
)


class Adam(Optimizer):
    """Steps scaled by running means of the gradient and of its square:

        m ← β₁m + (1 - β₁)g;  v ← β₂v + (1 - β₂)g²;  p ← p - lr·m̂/(√v̂ + ε)

    where m̂ = m/(1 - β₁ᵗ) and v̂ = v/(1 - β₂ᵗ). Kingma and Ba 2015; `torch.optim.Adam`.
    """

    decoupled = False
    sparse = ", please consider SparseAdam instead"

    def __init__(
        self,
        params: Params,
        lr: float | Tensor = 1e-3,
        betas: tuple[float | Tensor, float | Tensor] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        amsgrad: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
        fused: bool | None = None,
        decoupled_weight_decay: bool = False,
    ) -> None:
        check_positive(learning_rate=lr, epsilon=eps, weight_decay=weight_decay)
        check_betas(betas)
        if isinstance(betas[0], Tensor) != isinstance(betas[1], Tensor):
            raise ValueError("betas must be either both floats or both Tensors")
        for name, value in (("lr", lr), ("betas[0]", betas[0])):
            if isinstance(value, Tensor) and foreach and not capturable:
                raise ValueError(
                    f"{name} as a Tensor is not supported for capturable=False and foreach=True"
                )
        decoupled_weight_decay = decoupled_weight_decay or self.decoupled
        hyper = "lr betas eps weight_decay amsgrad maximize foreach capturable differentiable fused"
        super().__init__(params, named(locals(), hyper + " decoupled_weight_decay"))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            state["step"] = tensor(0.0)
            state["exp_avg"], state["exp_avg_sq"] = zeros_like(param), zeros_like(param)
            if group["amsgrad"]:
                state["max_exp_avg_sq"] = zeros_like(param)
        t, lr = count(state), number(group["lr"], group)
        beta1, beta2 = (number(beta, group) for beta in group["betas"])
        arrays = operands(param, grad, group, state["exp_avg"], state["exp_avg_sq"])
        step, scale = lr / (1 - beta1**t), (1 - beta2**t) ** -0.5
        numbers = 1 - beta1, beta2, 1 - beta2, step, scale, group["eps"]
        if group["amsgrad"]:
            AMSGRAD(*arrays, raw(state["max_exp_avg_sq"], group), *numbers)
        else:
            ADAM(*arrays, *numbers)
        bump(param)


class AdamW(Adam):
    """Adam whose weight decay acts on the parameter, not the gradient.

    p ← p·(1 - lr·weight_decay), then Adam's step. Loshchilov and Hutter 2019; `torch.optim.AdamW`.
    """

    decoupled = True

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 1e-2,
        amsgrad: bool = False,
        **options: bool,
    ) -> None:
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, **options)
