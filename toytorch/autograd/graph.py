"""The classes of the backward graph, under PyTorch's names."""

from toytorch.core.node import AccumulateGrad, Handle, Node

__all__ = ["AccumulateGrad", "Handle", "Node"]
