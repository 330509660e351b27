"""Relatives of Adam: Adamax, NAdam, RAdam, and SparseAdam for rows of tables."""

from __future__ import annotations

import math

from toytorch.core.inplace import bump
from toytorch.core.tensor import Tensor
from toytorch.ops.creation.create import ones, zeros_like
from toytorch.ops.creation.from_data import tensor
from toytorch.optim.adam import MEANS
from toytorch.optim.optimizer import (
    Group,
    Optimizer,
    Params,
    State,
    check_betas,
    check_positive,
    count,
    named,
    noted,
    number,
    operands,
)
from toytorch.optim.rule import Rule

ADAMAX = Rule(
    "m = m + (g - m) * share\nu = maximum(beta2 * u, maximum(g, -g) + eps)\np = p - step * m / u",
    "p g m u",
    "share beta2 eps step",
)
NADAM = Rule(
    MEANS + "p = p - (step * g + ahead * m) / (sqrt(v) * scale + eps)",
    "p g m v",
    "share beta2 share2 step ahead scale eps",
)
RADAM = Rule(MEANS + "p = p - step * m / (sqrt(v) + eps)", "p g m v", "share beta2 share2 step eps")
RADAM_EARLY = Rule(MEANS + "p = p - step * m", "p g m v", "share beta2 share2 step")


class Adamax(Optimizer):
    """Adam with the largest of the last gradients instead of the root of their mean square:

        m ← β₁m + (1 - β₁)g;  u ← max(β₂u, |g| + ε);  p ← p - lr/(1 - β₁ᵗ)·m/u

    Kingma and Ba 2015; `torch.optim.Adamax`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        foreach: bool | None = None,
        *,
        maximize: bool = False,
        differentiable: bool = False,
        capturable: bool = False,
    ) -> None:
        check_positive(learning_rate=lr, epsilon=eps, weight_decay=weight_decay)
        check_betas(betas)
        hyper = "lr betas eps weight_decay foreach maximize differentiable capturable"
        super().__init__(params, named(locals(), hyper))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            state.update(step=tensor(0.0), exp_avg=zeros_like(param), exp_inf=zeros_like(param))
        t, (beta1, beta2) = count(state), group["betas"]
        arrays = operands(param, grad, group, state["exp_avg"], state["exp_inf"])
        step = number(group["lr"], group) / (1 - beta1**t)
        ADAMAX(*arrays, 1 - beta1, beta2, group["eps"], step)
        bump(param)


class NAdam(Optimizer):
    """Adam with Nesterov's momentum: the step looks ahead to the next mean of gradients.

        μₜ = β₁(1 - ½·0.96^{t·momentum_decay})
        p ← p - lr·((1 - μₜ)/(1 - Πμ)·g + μₜ₊₁/(1 - μₜ₊₁Πμ)·m)/(√v̂ + ε)

    Dozat 2016; `torch.optim.NAdam`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 2e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive(
            learning_rate=lr, epsilon=eps, weight_decay=weight_decay, momentum_decay=momentum_decay
        )
        check_betas(betas)
        hyper = "lr betas eps weight_decay momentum_decay decoupled_weight_decay maximize foreach "
        super().__init__(params, named(locals(), hyper + "capturable differentiable"))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            state.update(
                step=tensor(0.0),
                mu_product=ones(()),
                exp_avg=zeros_like(param),
                exp_avg_sq=zeros_like(param),
            )
        t, (beta1, beta2), lr = count(state), group["betas"], number(group["lr"], group)
        now, following = (
            beta1 * (1 - 0.5 * 0.96 ** (s * group["momentum_decay"])) for s in (t, t + 1)
        )
        product = noted(state, "mu_product")
        if group["differentiable"]:
            product *= now
        else:
            product._array[...] *= now
        product = number(product, group)
        arrays = operands(param, grad, group, state["exp_avg"], state["exp_avg_sq"])
        step, ahead = lr * (1 - now) / (1 - product), lr * following / (1 - product * following)
        scale = 1 / math.sqrt(1 - beta2**t)
        NADAM(*arrays, 1 - beta1, beta2, 1 - beta2, step, ahead, scale, group["eps"])
        bump(param)


class RAdam(Optimizer):
    """Adam that waits with dividing until the variance of its divisor is known well enough:

        ρₜ = ρ_∞ - 2t·β₂ᵗ/(1 - β₂ᵗ), with ρ_∞ = 2/(1 - β₂) - 1
        p ← p - lr·r·m̂/(√v̂ + ε) where ρₜ > 5, with r² = (ρₜ-4)(ρₜ-2)ρ_∞/((ρ_∞-4)(ρ_∞-2)ρₜ)
        p ← p - lr·m̂ before

    Liu et al. 2020; `torch.optim.RAdam`.
    """

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0,
        decoupled_weight_decay: bool = False,
        *,
        foreach: bool | None = None,
        maximize: bool = False,
        capturable: bool = False,
        differentiable: bool = False,
    ) -> None:
        check_positive(learning_rate=lr, epsilon=eps, weight_decay=weight_decay)
        check_betas(betas)
        hyper = "lr betas eps weight_decay maximize foreach capturable decoupled_weight_decay "
        super().__init__(params, named(locals(), hyper + "differentiable"))

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not state:
            state.update(step=tensor(0.0), exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        t = count(state)
        beta1, beta2 = (number(beta, group) for beta in group["betas"])
        arrays = operands(param, grad, group, state["exp_avg"], state["exp_avg_sq"])
        step, rest = number(group["lr"], group) / (1 - beta1**t), 1 - beta2**t
        shares = 1 - beta1, beta2, 1 - beta2
        most = 2 / (1 - beta2) - 1
        rho = most - 2 * t * beta2**t / rest
        if rho > 5:
            rectified = math.sqrt((rho - 4) * (rho - 2) * most / ((most - 4) * (most - 2) * rho))
            RADAM(*arrays, *shares, step * rectified * math.sqrt(rest), group["eps"])
        else:
            RADAM_EARLY(*arrays, *shares, step)
        bump(param)


class SparseAdam(Optimizer):
    """Adam for sparse gradients: only the rows in the gradient, and their means, change.

    `torch.optim.SparseAdam`; for tables made with `nn.Embedding(..., sparse=True)`.
    """

    sparse = "yes"

    def __init__(
        self,
        params: Params,
        lr: float = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        maximize: bool = False,
    ) -> None:
        if not isinstance(lr, Tensor) and not lr > 0:
            raise ValueError(f"Invalid learning rate: {lr}")
        if not eps > 0:
            raise ValueError(f"Invalid epsilon value: {eps}")
        check_betas(betas)
        super().__init__(params, named(locals(), "lr betas eps maximize"))
        for kind, refuses in (
            ("Sparse", "requires dense parameter tensors"),
            ("Complex", "does not support complex parameters"),
        ):
            found = [
                [i, j]
                for i, group in enumerate(self.param_groups)
                for j, p in enumerate(group["params"])
                if (p.is_sparse if kind == "Sparse" else p.is_complex())
            ]
            if found:
                raise ValueError(f"{kind} params at indices {found}: SparseAdam {refuses}")

    def update(self, param: Tensor, grad: Tensor, state: State, group: Group) -> None:
        if not grad.is_sparse:
            raise RuntimeError(
                "SparseAdam does not support dense gradients, please consider Adam instead"
            )
        if not state:
            state.update(step=0, exp_avg=zeros_like(param), exp_avg_sq=zeros_like(param))
        state["step"] += 1
        t, (beta1, beta2) = state["step"], group["betas"]
        found = grad.coalesce()
        where, g = tuple(found.indices()._array), found.values()._array
        g = -g if group["maximize"] else g
        if not g.size:
            return
        m, v = state["exp_avg"]._array, state["exp_avg_sq"]._array
        mean, square = m[where], v[where]
        mean += (g - mean) * (1 - beta1)
        square += (g * g - square) * (1 - beta2)
        m[where], v[where] = mean, square
        step = number(group["lr"], group) * math.sqrt(1 - beta2**t) / (1 - beta1**t)
        param._array[where] -= step * mean / (square**0.5 + group["eps"])
        bump(param)
