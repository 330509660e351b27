"""Orthogonal polynomials by their recurrences: Chebyshev, Hermite, Laguerre, Legendre.

Each family starts with p₀ = 1 and a line p₁, and makes pₖ₊₁ of x, pₖ and pₖ₋₁. Degrees are given
element by element, so all degrees up to the largest are run through, and each element keeps the one
it asked for. PyTorch gives these functions no derivatives.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import special_function
from toytorch.ops.elementwise.operand_checks import numbers, one_tensor
from toytorch.ops.special.error_gamma import by_number


def _twice(k: int, x: Array, p: Array, q: Array) -> Any:
    return 2 * x * p - q


# name: (p₁, the rule for pₖ₊₁, what it is)
FAMILIES: dict[str, tuple[Any, Any, str]] = {
    "chebyshev_polynomial_t": (lambda x: x, _twice, "Tₙ, cos(nθ) at x = cos θ"),
    "chebyshev_polynomial_u": (lambda x: 2 * x, _twice, "Uₙ, sin((n+1)θ)/sin θ at x = cos θ"),
    "chebyshev_polynomial_v": (
        lambda x: 2 * x - 1,
        _twice,
        "Vₙ, cos((n+½)θ)/cos(θ/2) at x = cos θ",
    ),
    "chebyshev_polynomial_w": (
        lambda x: 2 * x + 1,
        _twice,
        "Wₙ, sin((n+½)θ)/sin(θ/2) at x = cos θ",
    ),
    "hermite_polynomial_h": (
        lambda x: 2 * x,
        lambda k, x, p, q: 2 * x * p - 2 * k * q,
        "Hermite's polynomial of the weight e^{-x²}",
    ),
    "hermite_polynomial_he": (
        lambda x: x,
        lambda k, x, p, q: (x - 1) * (x + 1) if k == 1 else x * p - k * q,
        "Hermite's polynomial of the weight e^{-x²/2}",
    ),
    "laguerre_polynomial_l": (
        lambda x: 1 - x,
        lambda k, x, p, q: ((2 * k + 1 - x) * p - k * q) / (k + 1),
        "Laguerre's polynomial",
    ),
    "legendre_polynomial_p": (
        lambda x: x,
        lambda k, x, p, q: ((2 * k + 1) * x * p - k * q) / (k + 1),
        "Legendre's polynomial",
    ),
}


def wider(kind: np.dtype[Any]) -> Any:
    """A type with more digits, where the processor has one: the recurrences lose some."""
    return np.longdouble if kind == np.float64 else np.float64


def _polynomial(family: int, first: Any, step: Any, shifted: bool, bounded: bool) -> Any:
    @by_number("polynomial", family, shifted, wide=False)
    def kernel(xp: ArrayModule, x: Array, degree: Array) -> Any:
        with np.errstate(all="ignore"):
            kind = x.dtype
            degree = xp.where(abs(degree) < 2.0**63, degree, -1)  # as none of an int64 is
            if bounded:  # beyond these degrees PyTorch gives up
                high = degree > (512 if kind == np.float64 else 128)
                if high.any():
                    made = kernel(xp, x, xp.where(high, 0, degree))
                    return xp.where(high, np.nan, made).astype(kind)
            x, n = xp.broadcast_arrays(x, degree.astype(int))
            x = x.astype(wider(kind) if x.__class__ is np.ndarray else np.float64)
            x = 2 * x - 1 if shifted else x
            before, now = xp.ones_like(x), first(x)
            value = xp.where(n < 0, 0.0, xp.where(n == 0, before, now))
            most = np.finfo(kind).max
            for k in range(1, int(n.max()) if n.size else 0):
                before, now = now, step(k, x, now, before)
                # What the type does not hold is infinite in PyTorch, and from then on often NaN.
                now = xp.where(xp.abs(now) > most, xp.copysign(np.inf, now), now)
                value = xp.where(n == k + 1, now, value)
                if k % 1024 == 0 and not (n[now == now] > k).any():  # all that is left is NaN
                    return xp.where(n > k, np.nan, value).astype(kind)
            return value.astype(kind)

    return kernel


for _family, (_name, (_first, _step, _doc)) in enumerate(FAMILIES.items()):
    for _prefix in ("", "shifted_") if _name.startswith("chebyshev") else ("",):
        _full = f"special_{_prefix}{_name}"
        special_function(
            f"{_full}(Operand x, Operand n) -> Tensor",
            _polynomial(_family, _first, _step, bool(_prefix), _name.startswith("hermite")),
            forms="function out",
            checks=one_tensor(_full, numbers(f"{_prefix}{_name}_cpu", halves=False)),
            doc=f"{_doc}{', of 2x - 1' if _prefix else ''}.",
        )
