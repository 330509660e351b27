"""Names that a file of PyTorch's has because it imports them.

Programs import a class from where an editor found it: `from torch.optim.lr_scheduler import Optimizer`,
`from torch.distributions.normal import Distribution`, `from torch.nn.modules.module import Any`. Our
files import other things; so what they lack is looked up where theirs take it from.
"""

from __future__ import annotations

import collections
import importlib
import math
import numbers
import typing
from collections import abc
from types import ModuleType
from typing import Any

OF_PYTHON = (typing, abc, collections, numbers)
NUMBERS = {"inf": math.inf, "nan": math.nan}
# packages of PyTorch's: modules of theirs whose functions, too, the other files import
HELPERS = {
    "torch.cuda.amp": ("torch.amp.grad_scaler",),
    "torch.distributions": ("torch.distributions.utils",),
    "torch.nn.modules": ("torch.nn.init", "torch.nn.parameter"),
    "torch.optim": ("torch.optim.optimizer",),
    "torch.utils.data": ("torch.utils.data.sampler", "torch.utils.data.dataset"),
}


def imported(module: str, name: str) -> Any:
    """A name that PyTorch's file `module` may have imported; AttributeError for others."""
    if not name.startswith("_"):
        package = module.rpartition(".")[0]
        for place in HELPERS.get(package, ()):
            helper = importlib.import_module(place)
            if (
                place != module
                and name in vars(helper)
                and not isinstance(vars(helper)[name], ModuleType)
            ):
                return vars(helper)[name]
        while package:
            found = getattr(importlib.import_module(package), name, None)
            if isinstance(found, type):
                return found
            package = package.rpartition(".")[0]
        for each in OF_PYTHON:
            if name in each.__all__:
                return getattr(each, name)
        if name in NUMBERS:
            return NUMBERS[name]
    raise AttributeError(f"module '{module}' has no attribute '{name}'")
