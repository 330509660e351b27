"""Transforms by calls of the function."""

from toytorch.func import functionalize, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp

__all__ = ["functionalize", "grad", "grad_and_value", "hessian", "jacfwd", "jacrev", "jvp", "vjp"]
