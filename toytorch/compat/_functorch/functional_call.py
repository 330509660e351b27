"""Modules that are called with parameters given."""

from toytorch.func import functional_call, stack_module_state

__all__ = ["functional_call", "stack_module_state"]
