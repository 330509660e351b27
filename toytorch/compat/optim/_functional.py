"""Steps of optimizers as functions of lists: what `torch.optim._functional` has.

    adam(params, grads, exp_avgs, exp_avg_sqs, max_exp_avg_sqs, state_steps, amsgrad=False, beta1=0.9, …)

makes one step of `Adam`'s rule. Optimizers that other people write call these with state of their own.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

from toytorch import optim

# function: its class; the lists of the state, behind params and grads; what follows by position; by keyword
FORMS = {
    "adadelta": (
        "Adadelta", "square_avgs acc_deltas state_steps",
        "capturable foreach differentiable has_complex", "lr rho eps weight_decay maximize",
    ),
    "adagrad": (
        "Adagrad", "state_sums state_steps", "fused grad_scale found_inf has_sparse_grad foreach "
        "differentiable has_complex", "lr weight_decay lr_decay eps maximize",
    ),
    "adam": (
        "Adam", "exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps", "foreach capturable differentiable "
        "fused grad_scale found_inf has_complex decoupled_weight_decay",
        "amsgrad beta1 beta2 lr weight_decay eps maximize",
    ),
    "adamax": (
        "Adamax", "exp_avgs exp_infs state_steps",
        "foreach maximize differentiable capturable has_complex", "eps beta1 beta2 lr weight_decay",
    ),
    "adamw": (
        "AdamW", "exp_avgs exp_avg_sqs max_exp_avg_sqs state_steps", "foreach capturable "
        "differentiable fused grad_scale found_inf has_complex",
        "amsgrad beta1 beta2 lr weight_decay eps maximize",
    ),
    "asgd": (
        "ASGD", "axs mus etas state_steps", "foreach maximize differentiable capturable has_complex",
        "lambd lr t0 alpha weight_decay",
    ),
    "nadam": (
        "NAdam", "exp_avgs exp_avg_sqs mu_products state_steps", "decoupled_weight_decay foreach "
        "capturable differentiable has_complex maximize",
        "beta1 beta2 lr weight_decay momentum_decay eps",
    ),
    "radam": (
        "RAdam", "exp_avgs exp_avg_sqs state_steps", "decoupled_weight_decay foreach differentiable "
        "capturable has_complex maximize", "beta1 beta2 lr weight_decay eps",
    ),
    "rmsprop": (
        "RMSprop", "square_avgs grad_avgs momentum_buffer_list state_steps",
        "foreach maximize differentiable capturable has_complex",
        "lr alpha eps weight_decay momentum centered",
    ),
    "rprop": (
        "Rprop", "prevs step_sizes state_steps",
        "foreach capturable maximize differentiable has_complex",
        "step_size_min step_size_max etaminus etaplus",
    ),
    "sgd": (
        "SGD", "momentum_buffer_list", "has_sparse_grad foreach fused grad_scale found_inf",
        "weight_decay momentum lr dampening nesterov maximize",
    ),
    "sparse_adam": ("SparseAdam", "exp_avgs exp_avg_sqs state_steps", "", "eps beta1 beta2 lr maximize"),
}  # fmt: skip
# None by default; the other options are False.
UNSET = ("foreach", "fused", "grad_scale", "found_inf")
# what a class calls in one, of what a function is given by parts
PAIRS = {
    "betas": ("beta1", "beta2"),
    "step_sizes": ("step_size_min", "step_size_max"),
    "etas": ("etaminus", "etaplus"),
}


def key_of(name: str) -> str:
    """What an optimizer's state calls an element of a list: "step" of "state_steps"."""
    return name.removeprefix("state_").removesuffix("_list").removesuffix("s")


def signature_of(lists: Sequence[str], options: Sequence[str], by_name: Sequence[str]) -> Any:
    """PyTorch's signature of such a function."""
    kind = inspect.Parameter
    found = [kind(name, kind.POSITIONAL_OR_KEYWORD) for name in lists]
    for name in options:
        default = None if name in UNSET else False
        found.append(kind(name, kind.POSITIONAL_OR_KEYWORD, default=default))
    return inspect.Signature([*found, *(kind(name, kind.KEYWORD_ONLY) for name in by_name)])


def form(name: str) -> Callable[..., None]:
    """The function of this name."""
    kind, *words = FORMS[name]
    lists, options, by_name = (each.split() for each in words)
    rule: Any = getattr(optim, kind)
    grads = "d_p_list" if name == "sgd" else "grads"
    signature = signature_of(["params", grads, *lists], options, by_name)

    def step(*args: object, **kwargs: object) -> None:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        given = bound.arguments
        if given.get("grad_scale") is not None or given.get("found_inf") is not None:
            raise AssertionError("Expected grad_scale and found_inf to be None")
        group = {"decoupled_weight_decay": rule is optim.AdamW, **given}
        group |= {
            whole: tuple(given[part] for part in parts)
            for whole, parts in PAIRS.items()
            if parts[0] in given
        }
        group = {"differentiable": False, "maximize": False, **group}
        if name == "rprop":
            group["lr"] = None  # which only the first step reads, and the state is there
        optimizer = rule.__new__(rule)
        for i, (param, grad) in enumerate(zip(given["params"], given[grads])):
            state = {key_of(n): given[n][i] for n in lists if given[n]}
            state = {key: value for key, value in state.items() if value is not None}
            if name == "sparse_adam":  # which is told the number of this step, not of the last one
                state["step"] -= 1
            optimizer.update(param, grad, state, group)
            if name == "sgd" and given["momentum"]:
                given[lists[0]][i] = state["momentum_buffer"]

    step.__name__ = step.__qualname__ = name
    step.__doc__ = f"One step of `torch.optim.{kind}` for lists of parameters, gradients and state."
    vars(step)["__signature__"] = signature
    return step


globals().update({name: form(name) for name in FORMS})
__all__ = list(FORMS)
