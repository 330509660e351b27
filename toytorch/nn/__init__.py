"""Networks: modules, their functions without state, and starting values."""

import importlib

from toytorch.facts.package import show as _show
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

_path = globals()["__path__"]
_path.append(f"{_path[0]}/../compat/nn")  # `toytorch.nn._reduction`

_show(
    globals(),
    "attention",
    "common_types",
    "functional",
    "init",
    "modules",
    "parallel",
    "parameter",
    "utils",
)


def __getattr__(name: str) -> object:
    """Finds what is imported when first named."""
    if name in ("grad", "quantized"):
        return importlib.import_module(f"toytorch.nn.{name}")
    raise AttributeError(f"module 'torch.nn' has no attribute '{name}'")
