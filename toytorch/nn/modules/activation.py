"""Activations of each element by itself."""

from __future__ import annotations

from typing import Any

from toytorch.core.public_modules import finder
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import Device, DType
from toytorch.facts.parts import Stated, shows
from toytorch.nn import functional as F
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import full

__all__ = [
    "CELU", "ELU", "GELU", "SELU", "Hardshrink", "Hardsigmoid", "Hardswish", "Hardtanh",
    "LeakyReLU", "LogSigmoid", "Mish", "PReLU", "RReLU", "ReLU", "ReLU6", "SiLU", "Sigmoid",
    "Softplus", "Softshrink", "Softsign", "Tanh", "Tanhshrink", "Threshold",
]  # fmt: skip


class _Plain(Stated, Module):
    """An activation that is a function of its input alone."""

    function: Any = None

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input)


class InPlace(_Plain):
    """An activation that may write into its input."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        return type(self).function(input, self.inplace)

    extra_repr = shows("", if_true="inplace")


class ReLU(InPlace, function=F.relu):
    """max(x, 0); Nair and Hinton 2010.

    >>> ReLU(inplace=True)
    ReLU(inplace=True)
    """


class RReLU(Module):
    """A leaky relu with random slopes in training; Xu et al. 2015."""

    def __init__(self, lower: float = 1 / 8, upper: float = 1 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower, self.upper, self.inplace = lower, upper, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)

    extra_repr = shows("lower upper", if_true="inplace")


class Hardtanh(Module):
    """x held between two limits."""

    def __init__(
        self,
        min_val: float = -1.0,
        max_val: float = 1.0,
        inplace: bool = False,
        min_value: float | None = None,
        max_value: float | None = None,
    ) -> None:
        super().__init__()
        for old, new, given in (
            ("min_value", "min_val", min_value),
            ("max_value", "max_val", max_value),
        ):
            if given is not None:
                warned.at_call(
                    f"keyword argument `{old}` is deprecated and renamed to `{new}`", FutureWarning
                )
        self.min_val = min_val if min_value is None else min_value
        self.max_val = max_val if max_value is None else max_value
        self.inplace = inplace
        if not self.max_val > self.min_val:
            raise AssertionError("max_val must be larger than min_val")

    def forward(self, input: Tensor) -> Tensor:
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)

    extra_repr = shows("min_val max_val", if_true="inplace")


class ReLU6(Hardtanh):
    """min(max(x, 0), 6)."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)

    extra_repr = shows("", if_true="inplace")


class Threshold(Module):
    """x above a threshold, a fixed value below."""

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold, self.value, self.inplace = threshold, value, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.threshold(input, self.threshold, self.value, self.inplace)

    extra_repr = shows("threshold value", if_true="inplace")


class LeakyReLU(Module):
    """x above 0, negative_slope·x below; Maas et al. 2013."""

    def __init__(self, negative_slope: float = 0.01, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope, self.inplace = negative_slope, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.leaky_relu(input, self.negative_slope, self.inplace)

    extra_repr = shows("negative_slope", if_true="inplace")


class PReLU(Module):
    """A leaky relu whose slopes are learned; He et al. 2015."""

    def __init__(
        self,
        num_parameters: int = 1,
        init: float = 0.25,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.num_parameters, self.init = num_parameters, init
        self.weight = Parameter(
            full((num_parameters,), init, device=device, dtype=dtype or Tensor().dtype)
        )

    def reset_parameters(self) -> None:
        """The first slopes again."""
        from toytorch.nn import init  # the name means something else in this file

        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        return F.prelu(input, self.weight)

    extra_repr = shows("num_parameters")


class ELU(Module):
    """x above 0, α(eˣ - 1) below; Clevert et al. 2016."""

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha, self.inplace = alpha, inplace

    def forward(self, input: Tensor) -> Tensor:
        return F.elu(input, self.alpha, self.inplace)

    extra_repr = shows("alpha", if_true="inplace")


class CELU(ELU):
    """x above 0, α(e^{x/α} - 1) below; Barron 2017."""

    def forward(self, input: Tensor) -> Tensor:
        return F.celu(input, self.alpha, self.inplace)


class SELU(InPlace, function=F.selu):
    """An elu that keeps mean 0 and variance 1; Klambauer et al. 2017."""


class SiLU(InPlace, function=F.silu):
    """x·sigmoid(x); Elfwing et al. 2018."""


class Mish(InPlace, function=F.mish):
    """x·tanh(softplus(x)); Misra 2019."""


class Hardswish(InPlace, function=F.hardswish):
    """x·hardsigmoid(x); Howard et al. 2019."""

    extra_repr = Module.extra_repr


class Hardsigmoid(InPlace, function=F.hardsigmoid):
    """min(max(x + 3, 0), 6)/6; Courbariaux et al. 2015."""

    extra_repr = Module.extra_repr


class GELU(Module):
    """x·Φ(x); Hendrycks and Gimpel 2016."""

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        return F.gelu(input, approximate=self.approximate)

    extra_repr = shows("approximate!r")


class Tanh(_Plain, function=F.tanh):
    """Hyperbolic tangent."""


class Sigmoid(_Plain, function=F.sigmoid):
    """1/(1 + e⁻ˣ)."""


class LogSigmoid(_Plain, function=F.logsigmoid):
    """log of sigmoid."""


class Softplus(Module):
    """log(1 + e^{βx})/β, and x where βx is above a threshold."""

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta, self.threshold = beta, threshold

    def forward(self, input: Tensor) -> Tensor:
        return F.softplus(input, self.beta, self.threshold)

    extra_repr = shows("beta threshold")


class Softsign(_Plain, function=F.softsign):
    """x/(1 + |x|)."""


class Tanhshrink(_Plain, function=F.tanhshrink):
    """x - tanh x."""


class Hardshrink(Module):
    """x, and 0 near 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.hardshrink(input, self.lambd)

    extra_repr = shows("=lambd")


class Softshrink(Module):
    """x moved towards 0 by lambd, and 0 near 0."""

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        return F.softshrink(input, self.lambd)

    extra_repr = shows("=lambd")


__getattr__ = finder(__name__)
