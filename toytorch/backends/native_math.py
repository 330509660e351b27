"""Functions that a processor does not have, as arithmetic that LLVM can run on whole vectors.

exp: x = n·ln 2 + r, eˣ = 2ⁿ·p(r), with the approximations of Moshier's Cephes library; erf: Cody,
"Rational Chebyshev approximations for the error function", Math. Comp. 23 (1969), and for float32
N. Juffa's two polynomials (2012), which need no division and err by about 1 unit in the last place.
"""

from __future__ import annotations

import math
from typing import Any

EXP_F = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1,
         5.0000001201e-1)
EXP_P = (1.26177193074810590878e-4, 3.02994407707441961300e-2, 9.99999999999999999910e-1)
EXP_Q = (3.00198505138664455042e-6, 2.52448340349684104192e-3, 2.27265548208155028766e-1, 2.0)
# ln 2 in two parts: n times the first is exact.
LN2 = {"f": (0.693359375, -2.12194440e-4), "d": (0.6931457519531250, 1.42860682030941723212e-6)}
ROUND = {"f": 12582912.0, "d": 6755399441055744.0}  # 1.5·2²³, 1.5·2⁵²: adding it rounds
LARGEST = {"f": 130.0, "d": 1000.0}  # beyond, eˣ is infinite, and e⁻ˣ zero
ERF_NEAR = (-5.96761703e-4, 4.99119423e-3, -2.67681349e-2, 1.12819925e-1, -3.76125336e-1,
            1.28379166e-1)
ERF_FAR = (-1.72853470e-5, 3.83197126e-4, -3.88396438e-3, 2.42546219e-2, -1.06777877e-1,
           -6.34846687e-1, -1.28717512e-1)
ERF_P = (1.85777706184603153e-1, 3.16112374387056560e0, 1.13864154151050156e2,
         3.77485237685302021e2, 3.20937758913846947e3)
ERF_Q = (1.0, 2.36012909523441209e1, 2.44024637934444173e2, 1.28261652607737228e3,
         2.84423683343917062e3)
ERFC_P = (5.64188496988670089e-1, 8.88314979438837594e0, 6.61191906371416295e1,
          2.98635138197400131e2, 8.81952221241769090e2, 1.71204761263407058e3,
          2.05107837782607147e3, 1.23033935479799725e3)
ERFC_Q = (1.0, 1.57449261107098347e1, 1.17693950891312499e2, 5.37181101862009858e2,
          1.62138957456669019e3, 3.29079923573345963e3, 4.36261909014324716e3,
          3.43936767414372164e3, 1.23033935480374942e3)
ERFC_SMALL = 2.15311535474403846e-8


class Math:
    """The functions over one kind of number ("f" or "d")."""

    def __init__(self, ir: Any, b: Any, real: Any) -> None:
        self.ir, self.b, self.real = ir, b, real
        self.kind = "f" if isinstance(real, ir.FloatType) else "d"
        self.bits = ir.IntType(32 if self.kind == "f" else 64)
        self.mantissa = 23 if self.kind == "f" else 52
        self.bias = 127 if self.kind == "f" else 1023

    def poly(self, coefficients: Any, x: Any) -> Any:
        """Horner's scheme, the highest power first."""
        total = self.real(coefficients[0])
        for c in coefficients[1:]:
            total = self.fma(total, x, self.real(c))
        return total

    def fma(self, x: Any, y: Any, z: Any) -> Any:
        """x·y + z; one instruction where the processor has it."""
        flags = ("contract",)
        return self.b.fadd(self.b.fmul(x, y, flags=flags), z, flags=flags)

    def within(self, x: Any, low: float, high: float) -> Any:
        """x cut to [low, high]; NaN stays."""
        b, real = self.b, self.real
        x = b.select(b.fcmp_ordered("<", x, real(low)), real(low), x)
        return b.select(b.fcmp_ordered(">", x, real(high)), real(high), x)

    def exp(self, x: Any) -> Any:
        """eˣ to the last bit or the one before it."""
        b, real, kind = self.b, self.real, self.kind
        x = self.within(x, -LARGEST[kind], LARGEST[kind])
        magic = real(ROUND[kind])
        shifted = b.fadd(b.fmul(x, real(1 / math.log(2))), magic)
        n = b.fsub(shifted, magic)
        r = x
        for part in LN2[kind]:
            r = self.fma(b.fneg(n), real(part), r)
        if kind == "f":
            p = self.fma(b.fmul(self.poly(EXP_F, r), r), r, r)
            p = b.fadd(p, real(1.0))
        else:
            square = b.fmul(r, r)
            px = b.fmul(self.poly(EXP_P, square), r)
            p = b.fdiv(px, b.fsub(self.poly(EXP_Q, square), px))
            p = self.fma(p, real(2.0), real(1.0))
        # 2ⁿ in two factors, so that results below the smallest normal number come out right.
        number = b.sub(b.bitcast(shifted, self.bits), b.bitcast(magic, self.bits))
        half = b.ashr(number, self.bits(1))
        return b.fmul(b.fmul(p, self.power_of_two(half)),
                      self.power_of_two(b.sub(number, half)))

    def power_of_two(self, n: Any) -> Any:
        """2ⁿ for an integer n, by its bits."""
        b = self.b
        bits = b.shl(b.add(n, self.bits(self.bias)), self.bits(self.mantissa))
        return b.bitcast(bits, self.real)

    def erf(self, x: Any) -> Any:
        """2/√π ∫₀ˣ e^{-t²} dt."""
        b, real = self.b, self.real
        size = b.select(b.fcmp_ordered("<", x, real(0.0)), b.fneg(x), x)
        if self.kind == "f":
            near = self.fma(self.poly(ERF_NEAR, b.fmul(x, x)), x, x)
            far = self.within(size, 0.9, 6.0)
            y = self.fma(self.poly(ERF_FAR, far), far, b.fneg(far))
            y = b.fsub(real(1.0), self.exp(y))
            y = b.select(b.fcmp_ordered("<", x, real(0.0)), b.fneg(y), y)
            y = b.select(b.fcmp_ordered(">", size, real(0.927734375)), y, near)
            return b.select(b.fcmp_unordered("uno", x, x), x, y)
        low = self.within(size, 0.0, 0.46875)
        square = b.fmul(low, low)
        small = b.fdiv(b.fmul(low, self.poly(ERF_P, square)), self.poly(ERF_Q, square))
        high = self.within(size, 0.46875, 6.0)  # 1 - erf(6) is 2e-17
        ratio = b.fdiv(self.poly((ERFC_SMALL, *ERFC_P), high), self.poly(ERFC_Q, high))
        big = b.fsub(real(1.0), b.fmul(self.exp(b.fneg(b.fmul(high, high))), ratio))
        y = b.select(b.fcmp_ordered("<=", size, real(0.46875)), small, big)
        y = b.select(b.fcmp_ordered("<", x, real(0.0)), b.fneg(y), y)
        return b.select(b.fcmp_unordered("uno", x, x), x, y)
