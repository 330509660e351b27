"""Pictures as data: the data sets that come with toytorch."""

from toytorch.vision import datasets

__all__ = ["datasets"]
