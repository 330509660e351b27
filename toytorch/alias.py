"""toytorch under PyTorch's name: programs that say `import torch` run unchanged.

    python -m toytorch train.py --epochs 3

The name is given to this process only, and only if PyTorch itself has not been imported.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Any


class Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds `torch.nn` where `toytorch.nn` is: one module under two names."""

    def __init__(self) -> None:
        self.specs: dict[ModuleType, Any] = {}

    def find_spec(self, fullname: str, path: Sequence[str] | None = None,
                  target: ModuleType | None = None) -> importlib.machinery.ModuleSpec | None:
        if fullname != "torch" and not fullname.startswith("torch."):
            return None
        return importlib.machinery.ModuleSpec(fullname, self)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        own = "toy" + spec.name
        try:
            module = importlib.import_module(own)
        except ModuleNotFoundError as error:
            if error.name != own:
                raise
            raise ModuleNotFoundError(lacking(spec.name), name=spec.name) from None
        self.specs[module] = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Runs nothing: the module was run under its own name, and keeps what it says of it."""
        module.__spec__ = self.specs.pop(module)


def lacking(name: str) -> str:
    """What to say of a part that toytorch does not have."""
    from toytorch import LACKING
    why = LACKING.get(name.split(".")[1])
    return f"No module named '{name}' (toytorch has no {why or 'part of this name'})"


def install() -> Any:
    """Gives toytorch the name `torch` in this process; returns the package.

    Raises RuntimeError if PyTorch has been imported already: two packages cannot have one name.
    """
    import toytorch
    found = sys.modules.get("torch")
    if found is not None and found is not toytorch:
        raise RuntimeError("toytorch cannot take the name torch: PyTorch has been imported already")
    if found is None:
        sys.meta_path.insert(0, Alias())
        importlib.import_module("torch")
    return toytorch
