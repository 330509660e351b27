"""Helpers for modules and their parameters."""

from toytorch.nn.utils import stateless

__all__ = ["stateless"]
