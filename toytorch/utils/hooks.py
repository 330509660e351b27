"""What PyTorch has for hooks: the handle that removes one, and a mark."""

from typing import Any

from toytorch.facts.node import RemovableHandle


def unserializable_hook(f: Any) -> Any:
    """Marks a hook of a tensor: no warning when the tensor is saved without it."""
    f.__torch_unserializable__ = True
    return f


__all__ = ["RemovableHandle", "unserializable_hook"]
