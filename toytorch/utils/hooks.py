"""The handle that a registered hook is removed with, under the name where programs look for it."""

from toytorch.core.node import Handle as RemovableHandle

__all__ = ["RemovableHandle"]
