"""Functions of tensors by the name that PyTorch's own modules use: `torch._VF.lstm`."""

from typing import Any

import toytorch


def __getattr__(name: str) -> Any:
    return getattr(toytorch, name)
