"""Pictures: data sets, transforms and networks, under torchvision's names where it has them."""

from toytorch.vision import datasets, models, transforms

__all__ = ["datasets", "models", "transforms"]
