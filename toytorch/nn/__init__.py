"""Networks: modules, their functions without state, and starting values."""
# ruff: noqa: F403 - modules say in __all__ what is public

from toytorch.nn import functional, init, modules, parameter, utils
from toytorch.nn.modules import *
from toytorch.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer", "Parameter", "UninitializedBuffer", "UninitializedParameter", "functional", "init",
    "modules", "parameter", "utils",
] + modules.__all__
