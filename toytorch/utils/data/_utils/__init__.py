"""Parts of the loader under the names where programs look for them."""

from toytorch.utils.data._utils import collate

__all__ = ["collate"]
