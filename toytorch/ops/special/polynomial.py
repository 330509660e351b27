"""Orthogonal polynomials: Chebyshev, Hermite, Laguerre, Legendre.

Their recurrences stand in `of_numbers`. PyTorch gives these functions no derivatives.
"""

from __future__ import annotations

from toytorch.ops.define import special_function
from toytorch.ops.elementwise.operand_checks import numbers, one_tensor
from toytorch.ops.special.error_gamma import by_number

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
        special_function(
            f"{_full}(Operand x, Operand n) -> Tensor",
            by_number("polynomial", _family, bool(_prefix), wide=True),
            forms="function out",
            checks=one_tensor(_full, numbers(f"{_prefix}{_name}_cpu", halves=False)),
            doc=f"{_doc}{', of 2x - 1' if _prefix else ''}.",
        )
