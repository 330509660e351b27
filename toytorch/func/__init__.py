"""Transforms of functions, like `torch.func`."""

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
from toytorch.nn.utils.stateless import functional_call, stack_module_state

__all__ = [
    "functional_call",
    "grad",
    "grad_and_value",
    "hessian",
    "jacfwd",
    "jacrev",
    "jvp",
    "linearize",
    "stack_module_state",
    "vjp",
    "vmap",
]
