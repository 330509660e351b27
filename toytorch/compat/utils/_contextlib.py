"""Contexts that are decorators, too: the class of `no_grad`, under PyTorch's names."""

from __future__ import annotations

from typing import Any

from toytorch.autograd.modes import Mode as _DecoratorContextManager

__all__ = ["_DecoratorContextManager", "_NoParamDecoratorContextManager"]


class _NoParamDecoratorContextManager(_DecoratorContextManager):
    """One that takes nothing, so it may decorate without parentheses."""

    def __new__(cls, orig_func: Any = None) -> Any:
        made = super().__new__(cls)
        return made if orig_func is None else made(orig_func)
