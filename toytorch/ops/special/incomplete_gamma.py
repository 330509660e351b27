"""Incomplete gamma functions, the multivariate gamma function, Hurwitz's zeta function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, beside
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
    if p > 1 << 20:  # PyTorch makes room for all terms, or refuses for want of it
        np.empty((p, *a.shape), a.dtype)
    if a.dtype.itemsize > 2:
        return by_number("mvlgamma", p)(xp, a)
    # PyTorch rounds each x - i/2, of which some become poles, each logarithm, and their sum.
    places = a[..., None] + (xp.arange(1 - p, 1) / 2).astype(a.dtype)
    terms = by_number("mvlgamma", 1)(xp, places.astype(np.float32)).astype(a.dtype)
    total = terms.astype(np.float32).sum(-1).astype(a.dtype)
    return total + xp.asarray(p * (p - 1) * math.log(math.pi) / 4).astype(a.dtype)


def _no_truth_values(common: DType, args: Sequence[Any]) -> None:
    if args[0].dtype.rank == 0:
        raise RuntimeError("The input tensor may not be a boolean tensor.")
    if common.is_complex:
        raise NotImplementedError(f"\"arange_cpu\" not implemented for '{common.legacy}'")


def _mvlgamma_slope(self: Tensor, p: int) -> Any:
    places = beside(self, (np.arange(1 - p, 1) / 2).astype(self.dtype.numpy))
    return (places + self.unsqueeze(-1)).digamma().sum(-1)


mvlgamma = of_floats(
    "mvlgamma(Tensor self, int p) -> Tensor",
    _mvlgamma,
    in_halves=True,
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
    words={"self": "self"},
    checks=one_tensor("special_zeta", numbers("zeta_cpu", halves=False)),
    d_self=_no_shape_derivative("zeta"),
    d_other=lambda g, self, other: g * (-self * zeta.function(self + 1, other)),
    variant=number_place,
    doc="Hurwitz's zeta function, ζ(s, q) = Σₖ (q + k)⁻ˢ.",
)
