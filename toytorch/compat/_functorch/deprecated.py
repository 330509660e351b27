"""What `functorch` offers: the functions of `torch.func`, with a warning."""

from __future__ import annotations

import functools
import importlib
import warnings
from collections.abc import Callable
from typing import Any

from toytorch import func

of_modules = importlib.import_module("toytorch._functorch.make_functional")


def older(function: Any, newer: str = "") -> Callable[..., Any]:
    """A function that says, when it is called, which one to use instead."""
    name = function.__name__
    text = (
        "We've integrated functorch into PyTorch. As the final step of the integration, "
        f"`functorch.{name}` is deprecated as of PyTorch 2.0 and will be deleted in a future version "
        f"of PyTorch >= 2.3. Please use `{newer or f'torch.func.{name}'}` instead; see the PyTorch 2.0 "
        "release notes and/or the `torch.func` migration guide for more details "
        "https://pytorch.org/docs/main/func.migrating.html"
    )

    @functools.wraps(function)
    def called(*args: Any, **kwargs: Any) -> Any:
        warnings.warn(text, FutureWarning, stacklevel=2)
        return function(*args, **kwargs)

    return called


vmap = older(func.vmap, "torch.vmap")
grad = older(func.grad)
grad_and_value = older(func.grad_and_value)
vjp = older(func.vjp)
jvp = older(func.jvp)
jacrev = older(func.jacrev)
jacfwd = older(func.jacfwd)
hessian = older(func.hessian)
functionalize = older(func.functionalize)
make_functional = older(of_modules.make_functional, "torch.func.functional_call")
make_functional_with_buffers = older(
    of_modules.make_functional_with_buffers, "torch.func.functional_call"
)
combine_state_for_ensemble = older(
    of_modules.combine_state_for_ensemble, "torch.func.stack_module_state"
)
