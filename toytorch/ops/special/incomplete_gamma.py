"""Incomplete gamma functions, the multivariate gamma function, Hurwitz's zeta function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.ops.define import of_floats, public
from toytorch.ops.elementwise.operand_checks import number_place, numbers, one_tensor, only_floats
from toytorch.ops.special.error_gamma import by_number

# -- incomplete gamma functions -------------------------------------------------------------------


def _density(self: Tensor, other: Any) -> Any:
    """The derivative of P(a, x) by x."""
    return ((self - 1) * other.log() - other - self.lgamma()).exp()


def _no_shape_derivative(name: str) -> Any:
    def refuse(g: Tensor) -> Any:
        raise NotImplementedError(f"the derivative for '{name}' is not implemented.")

    return refuse


igamma = of_floats(
    "igamma(Tensor self, Tensor other) -> Tensor",
    by_number("incomplete_gamma", True),
    promotion="default",
    checks=only_floats("igamma_cpu"),
    d_self=_no_shape_derivative("igamma: input"),
    d_other=lambda g, self, other: g * _density(self, other),
    doc="P(a, x) = ∫₀ˣ tᵃ⁻¹e⁻ᵗ dt / Γ(a).",
)
igammac = of_floats(
    "igammac(Tensor self, Tensor other) -> Tensor",
    by_number("incomplete_gamma", False),
    promotion="default",
    checks=only_floats("igammac_cpu"),
    d_self=_no_shape_derivative("igammac: input"),
    d_other=lambda g, self, other: -g * _density(self, other),
    doc="Q(a, x) = 1 - P(a, x).",
)

# -- multivariate gamma ---------------------------------------------------------------------------


def _mvlgamma(xp: ArrayModule, a: Array, p: int) -> Any:
    if p < 1:
        raise RuntimeError("p has to be greater than or equal to 1")
    return by_number("mvlgamma", p)(xp, a)


def _no_truth_values(common: DType, args: Sequence[Any]) -> None:
    if args[0].dtype.rank == 0:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if common.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{common.legacy}'")


def _mvlgamma_slope(self: Tensor, p: int) -> Any:
    slope = self.digamma()
    for i in range(1, p):
        slope = slope + (self - i / 2).digamma()
    return slope


mvlgamma = of_floats(
    "mvlgamma(Tensor self, int p) -> Tensor",
    _mvlgamma,
    checks=_no_truth_values,
    d_self=lambda g, self, p: g * _mvlgamma_slope(self, p),
    apart="never",
    memory="rows",
    doc="log Γ_p(x) = log π^{p(p-1)/4} + Σ_{i<p} log Γ(x - i/2).",
)
public("special.multigammaln")(mvlgamma.function)

# -- zeta -----------------------------------------------------------------------------------------


zeta: Op = of_floats(
    "special_zeta(Operand self, Operand other) -> Tensor",
    by_number("zeta", wide=True),
    forms="function out",
    words={"self": "self"},
    checks=one_tensor("special_zeta", numbers("zeta_cpu", halves=False)),
    d_self=_no_shape_derivative("zeta"),
    d_other=lambda g, self, other: g * (-self * zeta.function(self + 1, other)),
    variant=number_place,
    doc="Hurwitz's zeta function, ζ(s, q) = Σₖ (q + k)⁻ˢ.",
)
