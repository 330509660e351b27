"""Passes over graphs of `torch.fx`."""

from toytorch.fx.passes import shape_prop

__all__ = ["shape_prop"]
