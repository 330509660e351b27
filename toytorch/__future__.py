"""How modules convert their parameters from some version on, like `torch.__future__`.

>>> layer = torch.nn.Linear(2, 2)
>>> before = layer.weight
>>> torch.__future__.set_overwrite_module_params_on_conversion(True)
>>> layer.double().weight is before
False
>>> torch.__future__.set_overwrite_module_params_on_conversion(False)
"""

from __future__ import annotations

from toytorch.core import swap


def set_overwrite_module_params_on_conversion(value: bool) -> None:
    """Whether `module.to(...)` and its kin put new parameters in the place of those there are."""
    swap.overwrite = value


def get_overwrite_module_params_on_conversion() -> bool:
    """Whether they do."""
    return swap.overwrite


def set_swap_module_params_on_conversion(value: bool) -> None:
    """Whether parameters and new ones become each other, so that whoever holds one has the new."""
    swap.swap = value


def get_swap_module_params_on_conversion() -> bool:
    """Whether they do."""
    return swap.swap
