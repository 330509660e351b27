"""Shapes in annotations, by jaxtyping."""

import torch
from jaxtyping import Float
from torch import Tensor


def f(x: Float[Tensor, "a b"]) -> Float[Tensor, "a"]:  # noqa: F722, F821 - a shape
    return x.sum(1)


print(
    f(torch.ones(2, 3)),
    isinstance(torch.ones(2, 3), Float[Tensor, "a b"]),
    isinstance(torch.ones(2), Float[Tensor, "a b"]),
)
