"""Linear and bilinear maps."""

from __future__ import annotations

import math

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.modules.lazy import LazyModuleMixin
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter, UninitializedParameter
from toytorch.ops.creation.create import empty


class Identity(Module):
    """Passes its input on."""

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__()

    def forward(self, input: Tensor) -> Tensor:
        return input


class Linear(Module):
    """y = x·Wᵀ + b; x: (…, in), y: (…, out), W: (out, in), b: (out).

    Weights and biases start uniform in ±1/√in.

    >>> Linear(3, 2)
    Linear(in_features=3, out_features=2, bias=True)
    """

    in_features: int
    out_features: int
    weight: Tensor

    def __init__(
        self,
        in_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.in_features, self.out_features = in_features, out_features
        self.weight = Parameter(empty((out_features, in_features), device=device, dtype=dtype))
        made = Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new starting values."""
        init.kaiming_uniform_(self.weight, a=math.sqrt(5))
        if self.bias is not None:
            bound = 1 / math.sqrt(self.in_features) if self.in_features > 0 else 0
            init.uniform_(self.bias, -bound, bound)

    def forward(self, input: Tensor) -> Tensor:
        return F.linear(input, self.weight, self.bias)

    extra_repr = shows("in_features out_features bias?")


class NonDynamicallyQuantizableLinear(Linear):
    """The output projection of attention: a Linear under the name PyTorch prints."""


class Bilinear(Module):
    """y = x₁ᵀ·A·x₂ + b; A: (out, in1, in2)."""

    def __init__(
        self,
        in1_features: int,
        in2_features: int,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        if in1_features <= 0:
            raise ValueError(f"in1_features must be > 0, but got {in1_features}")
        self.in1_features, self.in2_features = in1_features, in2_features
        self.out_features = out_features
        self.weight = Parameter(
            empty((out_features, in1_features, in2_features), device=device, dtype=dtype)
        )
        made = Parameter(empty(out_features, device=device, dtype=dtype)) if bias else None
        self.register_parameter("bias", made)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draws new starting values, uniform in ±1/√in1."""
        bound = 1 / math.sqrt(self.weight.size(1))
        for p in (self.weight, self.bias):
            if p is not None:
                init.uniform_(p, -bound, bound)

    def forward(self, input1: Tensor, input2: Tensor) -> Tensor:
        return F.bilinear(input1, input2, self.weight, self.bias)

    extra_repr = shows("in1_features in2_features out_features bias?")


class LazyLinear(LazyModuleMixin, Linear, cls_to_become=Linear):
    """A Linear that takes in_features from its first input."""

    weight: UninitializedParameter

    def __init__(
        self,
        out_features: int,
        bias: bool = True,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__(0, 0, False, device, dtype)
        self.out_features = out_features
        self.weight = UninitializedParameter(device=device, dtype=dtype)
        if bias:
            self.bias = UninitializedParameter(device=device, dtype=dtype)

    def reset_parameters(self) -> None:
        if not self.has_uninitialized_params() and self.in_features != 0:
            super().reset_parameters()

    def initialize_parameters(self, input: Tensor) -> None:
        if self.has_uninitialized_params():
            self.in_features = input.shape[-1]
            self.weight.materialize((self.out_features, self.in_features))
            if self.bias is not None:
                self.bias.materialize((self.out_features,))
            self.reset_parameters()
        if self.in_features == 0:
            self.in_features = self.weight.shape[-1]
