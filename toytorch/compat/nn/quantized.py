"""`torch.nn.quantized`: the module that stands for sums and products in networks to be quantized.

The others hold integers; they have names alone.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import toytorch as torch
from toytorch.compat._absent import attribute
from toytorch.core.tensor import Tensor
from toytorch.nn import Identity, Module


class FloatFunctional(Module):
    """Operations as methods, so that what they give can be observed; without observers, plain ones.

    >>> FloatFunctional().add(torch.ones(2), torch.ones(2))
    tensor([2., 2.])
    """

    def __init__(self) -> None:
        super().__init__()
        self.activation_post_process = Identity()

    def forward(self, x: Tensor) -> Tensor:
        raise RuntimeError(
            "FloatFunctional is not intended to use the 'forward'. Please use the underlying operation"
        )

    def add(self, x: Tensor, y: Tensor) -> Any:
        return self.activation_post_process(torch.add(x, y))

    def add_scalar(self, x: Tensor, y: float) -> Any:
        return torch.add(x, y)

    def mul(self, x: Tensor, y: Tensor) -> Any:
        return self.activation_post_process(torch.mul(x, y))

    def mul_scalar(self, x: Tensor, y: float) -> Any:
        return torch.mul(x, y)

    def cat(self, x: Sequence[Tensor], dim: int = 0) -> Any:
        return self.activation_post_process(torch.cat(x, dim))

    def add_relu(self, x: Tensor, y: Tensor) -> Any:
        return self.activation_post_process(torch.relu(torch.add(x, y)))

    def matmul(self, x: Tensor, y: Tensor) -> Any:
        return self.activation_post_process(torch.matmul(x, y))


__getattr__ = functools.partial(attribute, "torch.ao.nn.quantized")
