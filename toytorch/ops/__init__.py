"""All op records, by name: `toytorch.ops.mul` is the record, `toytorch.mul` the function."""

import importlib
import importlib.machinery
import os
import pkgutil
from typing import Any

from toytorch.core import printing
from toytorch.core.op import Op, registry
from toytorch.ops.namespaces import namespace

__all__ = ["Op", "load_library", "loaded_libraries", "printing", "registry"]


# Modules that few programs need, and one that asks for all records: whoever needs them imports them.
LATER = {
    "aten_calls",
    "aten_forms",
    "creation.sobol",
    "nn.grid_points",
    "reductions.equals",
    "reference",
    "sparse.compress",
    "sparse.compressed",
    "sparse.compressed_create",
    "sparse.compressed_kernels",
    "sparse.older",
    "special.of_numbers",
    "special.taylor",
}

for _module in pkgutil.walk_packages(__path__, f"{__name__}."):
    if _module.name.removeprefix(f"{__name__}.") not in LATER:
        importlib.import_module(_module.name)

RUNNERS = ("setup", "teardown")  # by what runs tests
loaded_libraries: set[str] = set()


def load_library(path: Any) -> None:
    """Takes in a library's operators, where toytorch has written them for tensors of its own.

    `torchvision/_C.so` is `toytorch.compat.libraries.torchvision._C`. Raises OSError for others,
    which are compiled for PyTorch's own C++.
    """
    folder, file = os.path.split(os.path.realpath(path))
    ours = f"toytorch.compat.libraries.{os.path.basename(folder)}.{file.partition('.')[0]}"
    try:
        importlib.import_module(ours)  # seldom wanted, and made of what lies above
    except ModuleNotFoundError as lacking:
        if not ours.startswith(str(lacking.name)):
            raise
        raise OSError(f"Could not load this library: {os.path.join(folder, file)}") from None


def __getattr__(name: str) -> Any:
    if name in registry:
        return registry[name]
    if name == "reference":  # seldom wanted, and imports much
        return importlib.import_module("toytorch.ops.reference")
    # Names with "__", and functions of these names, are looked for in every module.
    asked = not name.startswith(("__", "pytest")) and not name.lower().startswith(RUNNERS)
    if asked and importlib.machinery.PathFinder.find_spec(f"{__name__}.{name}", __path__) is None:
        globals()[name] = namespace(name)  # operators of one's own, looked for once
        return globals()[name]
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
