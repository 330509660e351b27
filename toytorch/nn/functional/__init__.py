"""Networks' functions without state, like `torch.nn.functional`: one file for each family."""

import importlib

from toytorch.nn.functional.activation import *
from toytorch.nn.functional.attention import *
from toytorch.nn.functional.classes import *
from toytorch.nn.functional.conv import *
from toytorch.nn.functional.distance import *
from toytorch.nn.functional.drop import *
from toytorch.nn.functional.lookup import *
from toytorch.nn.functional.loss import *
from toytorch.nn.functional.normalize import *
from toytorch.nn.functional.pool import *
from toytorch.nn.functional.reduction import *
from toytorch.nn.functional.vision import *


def __getattr__(name: str) -> object:
    """Finds what is imported when first named."""
    if name == "grad":
        return importlib.import_module("toytorch.nn.grad")
    raise AttributeError(f"module 'torch.nn.functional' has no attribute '{name}'")
