"""Functions that the language states in its own words: one text each, for every generator.

A primitive that stands here has no instructions of its own. NumPy's function of it is the text run
as Python, a compiled loop has its steps in place (`parse.steps_of`), CUDA C has them as a
`__device__` function. The words of a text are those of programs, without the signs that NumPy's
arrays refuse (`if`, `and`, `not`); `polynomial(NAME, r)` is Horner's scheme with a row of
`special_coefficients`. It reads `x` and assigns `y`.

    >>> print(DEFINED["ndtri"].text("float32").splitlines()[0])
    q = x - 0.5
"""

from __future__ import annotations

from dataclasses import dataclass

WIDE = "float64"


@dataclass(frozen=True)
class Defined:
    """What a function is.

    cost    roughly, in additions
    wide    the lines for float64 numbers
    narrow  those for float32 numbers, where these are not computed in float64 as well
    """

    cost: int
    wide: str
    narrow: str = ""

    def text(self, type: str) -> str:
        """The lines for arguments of a type."""
        chosen = self.wide if type == WIDE else self.narrow
        lines = [line.strip() for line in (chosen or self.wide).strip().splitlines()]
        if not chosen:
            lines = [f"x = {WIDE}(x)", *lines, f"y = {type}(y)"]
        return "\n".join(lines)


# The inverse of erf and of Φ. In the middle they are x times a ratio of polynomials of 0.85² - x², as
# in M. J. Wichura, "Algorithm AS 241", Applied Statistics 37 (1988), from whom the limit 0.85 is, too.
# In the tails, where y is left of 1 or 0, s = √(-log y) is close, and a ratio of polynomials of s or
# 1/s is taken off. The polynomials are chosen before the division, so there is one.
ERFINV = """
    size = abs(x)
    near = size < 0.85
    r = 0.7225 - x * x
    s = sqrt(-log((1 - size) / 2))
    {tail}
    above = where(near, size * polynomial(ERFINV_ABOVE, r), above)
    below = where(near, polynomial(ERFINV_BELOW, r), below)
    ratio = above / below
    y = where(near, ratio, s - ratio)
    y = copysign(where(size == 1, inf, y), x)
"""
NDTRI = """
    q = x - 0.5
    near = abs(q) < 0.425
    r = 0.7225 - 4 * (q * q)
    least = minimum(x, 1 - x)
    s = sqrt(-log(least))
    {tail}
    above = where(near, abs(q) * polynomial(NDTRI_ABOVE, r), above)
    below = where(near, polynomial(ERFINV_BELOW, r), below)
    ratio = above / below
    y = where(near, ratio, 1.4142135623730951 * (s - ratio))
    y = where(least == 0, inf, y)
    y = where(q < 0, -y, y)
"""
NARROW_TAIL = """
    v = s - 1.6
    above = polynomial(TAIL_ABOVE, v)
    below = polynomial(TAIL_BELOW, v)
"""
WIDE_TAIL = """
    u = 1 / s
    v = u - 0.25
    w = u - 0.03125
    far = s > 4
    above = where(far, polynomial(FAR_ABOVE, w), polynomial(MIDDLE_ABOVE, v))
    below = where(far, polynomial(FAR_BELOW, w), polynomial(MIDDLE_BELOW, v))
"""
DEFINED = {
    "erfinv": Defined(60, ERFINV.format(tail=WIDE_TAIL), ERFINV.format(tail=NARROW_TAIL)),
    "ndtri": Defined(60, NDTRI.format(tail=WIDE_TAIL), NDTRI.format(tail=NARROW_TAIL)),
}
