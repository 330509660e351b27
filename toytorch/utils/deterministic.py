"""`fill_uninitialized_memory`, as an attribute of this module.

Where it is True, as it is at first, and `torch.use_deterministic_algorithms(True)` was called, new
memory from `torch.empty` and its kin holds NaN or the largest integer. Like
`torch.utils.deterministic`.
"""

from __future__ import annotations

import sys
from types import ModuleType

from toytorch import settings


class _Deterministic(ModuleType):
    @property
    def fill_uninitialized_memory(self) -> bool:
        """Whether new memory is filled."""
        return settings.fills_uninitialized_memory()

    @fill_uninitialized_memory.setter
    def fill_uninitialized_memory(self, mode: bool) -> None:
        if type(mode) is not bool:
            raise RuntimeError(
                f"torch.utils.deterministic.fill_uninitialized_memory must be a bool, not {type(mode)}"
            )
        settings.fill_uninitialized_memory(mode)


sys.modules[__name__].__class__ = _Deterministic
