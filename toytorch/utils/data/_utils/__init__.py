"""Parts of the loader under the names where programs look for them."""

from toytorch.utils.data._utils import collate, pin_memory, worker

__all__ = ["collate", "pin_memory", "worker"]
