"""Bessel functions of orders 0 and 1, the Airy function, and orthogonal polynomials.

Iₙ and Jₙ are texts of the loop language (`toytorch.loops.language.defined`), the others functions of
numbers (`of_numbers`).
"""

from __future__ import annotations

from typing import Any

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.ops.define import of_floats
from toytorch.ops.elementwise.operand_checks import numbers, one_tensor
from toytorch.ops.special.error_gamma import by_number

# -- modified functions I -------------------------------------------------------------------------


def _i1_slope(self: Tensor, result: Tensor) -> Any:
    """I₁' = I₀ - I₁/x, and 1/2 at 0."""
    zero = self == 0
    return (self.i0() - result / self.masked_fill(zero, 1)).masked_fill(zero, 0.5)


def _i1e_slope(self: Tensor, result: Any) -> Any:
    zero = self == 0
    safe = self.masked_fill(zero, 1)
    return (i0e.function(self) - result * (self.sgn() + safe.reciprocal())).masked_fill(zero, 0.5)


i0 = of_floats(
    "i0(Tensor self) -> Tensor",
    formula="bessel_i0(self)",
    checks=numbers("i0_vml_cpu"),
    d_self=lambda g, self: g * i1.function(self),
    doc="The modified Bessel function I₀.",
)
i0e: Op = of_floats(
    "special_i0e(Tensor self) -> Tensor",
    formula="bessel_i0e(self)",
    checks=numbers("i0e_cpu"),
    d_self=lambda g, self, result: g * (i1e.function(self) - self.sgn() * result),
    doc="e^{-|x|}·I₀(x).",
)
i1: Op = of_floats(
    "special_i1(Tensor self) -> Tensor",
    formula="bessel_i1(self)",
    checks=numbers("i1_cpu"),
    d_self=lambda g, self, result: g * _i1_slope(self, result),
    doc="The modified Bessel function I₁.",
)
i1e: Op = of_floats(
    "special_i1e(Tensor self) -> Tensor",
    formula="bessel_i1e(self)",
    checks=numbers("i1e_cpu"),
    d_self=lambda g, self, result: g * _i1e_slope(self, result),
    doc="e^{-|x|}·I₁(x).",
)
for _name, _order in (("i0", 0), ("i1", 1)):
    of_floats(
        f"special_modified_bessel_{_name}(Tensor self) -> Tensor",
        formula=f"bessel_i{_order}(self)",
        checks=numbers(f"modified_bessel_{_name}_cpu", halves=False),
        doc=f"The modified Bessel function I{'₀₁'[_order]}.",
    )

# -- modified functions K -------------------------------------------------------------------------

for _order in (0, 1):
    for _scaled, _prefix, _argument, _factor in ((0, "", "self", ""), (1, "scaled_", "x", "eˣ·")):
        _name = f"{_prefix}modified_bessel_k{_order}"
        of_floats(
            f"special_{_name}(Tensor {_argument}) -> Tensor",
            by_number("modified_bessel_k", _order, _scaled),
            checks=numbers(f"{_name}_cpu", halves=False),
            doc=f"{_factor}K{'₀₁'[_order]}(x).",
        )

# -- J and Y --------------------------------------------------------------------------------------

for _order in (0, 1):
    of_floats(
        f"special_bessel_j{_order}(Tensor self) -> Tensor",
        formula=f"bessel_j{_order}(self)",
        checks=numbers(f"bessel_j{_order}_cpu", halves=False),
        doc=f"The Bessel function J{'₀₁'[_order]}.",
    )
    of_floats(
        f"special_bessel_y{_order}(Tensor self) -> Tensor",
        by_number("bessel_y", _order),
        checks=numbers(f"bessel_y{_order}_cpu", halves=False),
        doc=f"The Bessel function Y{'₀₁'[_order]}.",
    )


of_floats(
    "special_spherical_bessel_j0(Tensor x) -> Tensor",
    formula="0.0 if isinf(x) else 1.0 if x == 0 else sin(x) / x",
    checks=numbers("spherical_bessel_j0_cpu", halves=False),
    doc="The spherical Bessel function j₀, sin(x)/x.",
)

# -- Airy's function ------------------------------------------------------------------------------

of_floats(
    "special_airy_ai(Tensor x) -> Tensor",
    by_number("airy"),
    checks=numbers("airy_ai_cpu", halves=False),
    doc="Airy's function Ai, a solution of y'' = xy.",
)

# -- orthogonal polynomials -----------------------------------------------------------------------
#
# Their recurrences stand in `of_numbers`. PyTorch gives these functions no derivatives.

FAMILIES = {  # in the order of their numbers
    "chebyshev_polynomial_t": "Tₙ, cos(nθ) at x = cos θ",
    "chebyshev_polynomial_u": "Uₙ, sin((n+1)θ)/sin θ at x = cos θ",
    "chebyshev_polynomial_v": "Vₙ, cos((n+½)θ)/cos(θ/2) at x = cos θ",
    "chebyshev_polynomial_w": "Wₙ, sin((n+½)θ)/sin(θ/2) at x = cos θ",
    "hermite_polynomial_h": "Hermite's polynomial of the weight e^{-x²}",
    "hermite_polynomial_he": "Hermite's polynomial of the weight e^{-x²/2}",
    "laguerre_polynomial_l": "Laguerre's polynomial",
    "legendre_polynomial_p": "Legendre's polynomial",
}
for _family, (_name, _doc) in enumerate(FAMILIES.items()):
    for _prefix in ("", "shifted_") if _name.startswith("chebyshev") else ("",):
        _full = f"special_{_prefix}{_name}"
        of_floats(
            f"{_full}(Operand x, Operand n) -> Tensor",
            by_number("polynomial", _family, bool(_prefix), wide=True),
            checks=one_tensor(_full, numbers(f"{_prefix}{_name}_cpu", halves=False)),
            doc=f"{_doc}{', of 2x - 1' if _prefix else ''}.",
        )
