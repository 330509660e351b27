"""Networks: modules, their functions without state, and starting values."""
# ruff: noqa: F403 - modules say in __all__ what is public

import importlib

from toytorch.nn import (
    attention,
    common_types,
    functional,
    init,
    modules,
    parallel,
    parameter,
    utils,
)
from toytorch.nn.modules import *
from toytorch.nn.parallel import DataParallel
from toytorch.nn.parameter import Buffer, Parameter, UninitializedBuffer, UninitializedParameter

__all__ = [
    "Buffer",
    "DataParallel",
    "Parameter",
    "UninitializedBuffer",
    "UninitializedParameter",
    "attention",
    "common_types",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
] + modules.__all__


def __getattr__(name: str) -> object:
    """Finds what is imported when first named."""
    if name == "grad":
        return importlib.import_module("toytorch.nn.grad")
    raise AttributeError(f"module 'torch.nn' has no attribute '{name}'")
