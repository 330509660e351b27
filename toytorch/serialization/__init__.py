"""Files: tensors and containers of them, in the layouts of PyTorch and of safetensors."""

import importlib
from pickle import PicklingError, UnpicklingError
from typing import Any

from toytorch.facts.package import show as _show
from toytorch.serialization import safetensors
from toytorch.serialization.allowed import (
    add_safe_globals,
    clear_safe_globals,
    get_safe_globals,
    safe_globals,
)
from toytorch.serialization.api import load, save
from toytorch.serialization.archive import DamagedArchive
from toytorch.serialization.looking import get_unsafe_globals_in_checkpoint
from toytorch.serialization.skipping import skip_data

_show(globals(), "safetensors")


def normalize_storage_type(storage_type: type) -> Any:
    """The class `torch.FloatStorage` or the like that a storage's class is named after."""
    return getattr(importlib.import_module("toytorch"), storage_type.__name__)
