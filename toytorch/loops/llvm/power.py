"""xʸ: e^(y·log x), with the logarithm as a pair of numbers, so that 709 times its error is little.

float32 needs no pair: float64's own logarithm has bits to spare.
"""

from __future__ import annotations

from typing import Any

from toytorch.facts.hints import Value
from toytorch.loops.language import coefficients as c
from toytorch.loops.llvm.elementary import Elementary


class Power(Elementary):
    """Elementary functions with `pow`."""

    def pow(self, x: Value, y: Value) -> Any:
        if self.type == "float32":
            wide = self.of("float64")
            x, y = self.b.fpext(x, wide.real), self.b.fpext(y, wide.real)
            size = wide.exp(wide.mul(y, wide.log(wide.abs(x))))
            return self.b.fptrunc(wide.power_edges(x, y, size), self.real)
        high, low = self.log_pair(self.abs(x))
        p, lost = self.two_product(y, high)
        lost = self.fma(y, low, lost)
        usual = self.less(self.abs(p), self.num(800))
        lost = self.select(usual, lost, self.num(0))
        e = self.exp(p)
        size = self.select(self.less(e, self.num(float("inf"))), self.fma(e, lost, e), e)
        return self.power_edges(x, y, size)

    def log_pair(self, x: Value) -> tuple[Any, Any]:
        """log x for x > 0 as the sum of two numbers, to 2⁻⁶⁵ of its size."""
        k, m = self.split_log(x)
        b = self.b
        f = b.fsub(m, self.num(1))
        u = b.fadd(f, self.num(2))
        u_lost = b.fsub(f, b.fsub(u, self.num(2)))
        s = b.fdiv(f, u)
        product, product_lost = self.two_product(s, u)
        left = b.fsub(b.fsub(f, product), product_lost)
        s_lost = b.fdiv(b.fsub(left, b.fmul(s, u_lost)), u)
        z, z_lost = self.two_product(s, s)
        z_lost = b.fadd(z_lost, b.fmul(self.num(2), b.fmul(s, s_lost)))
        # (2/3)·s³ as a pair
        third, third_rest = self.num(2 / 3), self.num(3.700743415417188e-17)
        a, a_lost = self.two_product(z, third)
        a_lost = b.fadd(a_lost, b.fadd(b.fmul(z_lost, third), b.fmul(z, third_rest)))
        cube, cube_lost = self.two_product(a, s)
        cube_lost = b.fadd(cube_lost, b.fadd(b.fmul(a_lost, s), b.fmul(a, s_lost)))
        rest = self.mul(self.mul(self.mul(z, z), s), self.poly(c.LOG_REST, z))
        ln2, ln2_rest = map(self.num, c.LN2["float64"])
        total, lost = self.two_sum(b.fmul(k, ln2), b.fmul(self.num(2), s))
        total, more = self.two_sum(total, cube)
        lost = b.fadd(lost, more)
        for term in (b.fmul(k, ln2_rest), b.fmul(self.num(2), s_lost), cube_lost, rest):
            total, more = self.two_sum(total, term)
            lost = b.fadd(lost, more)
        usual = b.and_(self.less(self.num(0), x), self.less(x, self.num(float("inf"))))
        edge = self.log_edges(x, x)
        return self.select(usual, total, edge), self.select(usual, lost, self.num(0))

    def power_edges(self, x: Value, y: Value, size: Any) -> Any:
        """|x|ʸ with its sign, and C's answers for 0, ±1, ∞ and NaN."""
        one, b = self.num(1), self.b
        nan, inf = self.num(float("nan")), self.num(float("inf"))
        half = self.mul(y, self.num(0.5))
        whole = self.equal(self.intrinsic("rint", y), y)
        odd = b.and_(whole, b.not_(self.equal(self.intrinsic("rint", half), half)))
        negative = self.less(x, self.num(0))
        finite = self.less(self.abs(x), inf)
        size = self.select(b.and_(b.and_(negative, finite), b.not_(whole)), nan, size)
        size = self.select(odd, self.copysign(size, x), size)
        unordered = self.unordered(x, y)
        size = self.select(unordered, nan, size)
        steady = b.and_(self.equal(self.abs(x), one), self.equal(self.abs(y), inf))
        always = b.or_(b.or_(self.equal(x, one), self.equal(y, self.num(0))), steady)
        return self.select(always, one, size)
