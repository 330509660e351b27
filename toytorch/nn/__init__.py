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


def factory_kwargs(kwargs: dict[str, object] | None) -> dict[str, object]:
    """The options of a module that its tensors are made with: device, dtype and memory_format.

    They may stand under "factory_kwargs" instead, where a name has another meaning for the module.
    Raises TypeError for other names, or one that is there twice. Like `torch.nn.factory_kwargs`.

    >>> torch.nn.factory_kwargs({"dtype": torch.float64})
    {'dtype': torch.float64}
    """
    names = {"device", "dtype", "memory_format"}
    rest = dict(kwargs or {})
    inner = rest.pop("factory_kwargs", None)
    found = dict(inner) if isinstance(inner, dict) else {}
    if rest.keys() - names:
        raise TypeError(f"unexpected kwargs {rest.keys() - names}")
    for name, value in rest.items():
        if name in found:
            raise TypeError(f"{name} specified twice, in **kwargs and in factory_kwargs")
        found[name] = value
    return found


def __getattr__(name: str) -> object:
    """Finds what is imported when first named."""
    if name in ("grad", "quantized"):
        return importlib.import_module(f"toytorch.nn.{name}")
    raise AttributeError(f"module 'torch.nn' has no attribute '{name}'")
