"""Transforms of functions, like `torch.func`."""

from collections.abc import Callable
from typing import Any

from toytorch.autograd.transforms import (
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
)
from toytorch.autograd.vmap import vmap
from toytorch.facts.hints import Fn
from toytorch.func.rearrange import rearrange
from toytorch.nn.modules.batchnorm import _BatchNorm
from toytorch.nn.modules.module import Module
from toytorch.nn.utils.stateless import functional_call, stack_module_state

__all__ = [
    "debug_unwrap", "functional_call", "functionalize", "grad", "grad_and_value", "hessian",
    "jacfwd", "jacrev", "jvp", "linearize", "rearrange", "replace_all_batch_norm_modules_",
    "stack_module_state", "vjp", "vmap",
]  # fmt: skip


def functionalize(func: Fn, *, remove: str = "mutations") -> Fn:
    """The function as it is: writes in place are recorded as they are, and need not be taken out."""
    if remove not in ("mutations", "mutations_and_views"):
        raise RuntimeError(
            "functionalize(f, remove='mutations'): received invalid argument for remove="
            f"{remove}. Valid options are: remove='mutations' and remove='mutations_and_views'"
        )
    return func


def debug_unwrap(tensor: Any, *, recurse: bool = True) -> Any:
    """What is in a tensor inside of a transform: for printing."""
    return tensor.detach()


def replace_all_batch_norm_modules_(root: Module) -> Module:
    """Makes batch norms use the statistics of the batch alone, which transforms can follow; in place.

    >>> replace_all_batch_norm_modules_(torch.nn.BatchNorm1d(2)).running_mean is None
    True
    """
    for module in root.modules():
        if isinstance(module, _BatchNorm) and module.track_running_stats:
            for name in ("running_mean", "running_var", "num_batches_tracked"):
                setattr(module, name, None)
            module.track_running_stats = False
    return root
