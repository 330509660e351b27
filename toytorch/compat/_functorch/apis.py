"""Transforms as programs call them."""

from toytorch.func import grad, grad_and_value, vmap

__all__ = ["grad", "grad_and_value", "vmap"]
