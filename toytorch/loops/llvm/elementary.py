"""exp, log, tanh and the like as arithmetic, which LLVM runs on whole vectors.

A call of the C library works on one number at a time, 17 to 50 times slower. Every function here
is within 5 units in the last place (most within 2) of the true value for all numbers, subnormal
ones, infinities and NaN included. float32's rarer functions are computed in float64.

The methods are the usual ones: an argument is split so that a short polynomial does the rest
(W. J. Cody and W. Waite, "Software Manual for the Elementary Functions", 1980; P. T. P. Tang,
"Table-driven implementation of the exponential function", 1989, without the table; the logarithm
as in FreeBSD's msun).
"""

from __future__ import annotations

from typing import Any

from toytorch.facts.hints import Fn, Value
from toytorch.loops.language import coefficients as c
from toytorch.loops.llvm.emit import Emit

WIDENED = ("tan", "erfc", "asin", "acos", "atan", "atan2", "sinh", "cosh")


class Elementary(Emit):
    """The functions over float32 or float64 numbers.

    slow   whether sine, cosine, tangent and remainders are the C library's where that is needed: for
           angles beyond `coefficients.ANGLE_LIMIT` and for large quotients; `large` collects whether
           there was such a number
    """

    slow = False
    large: Any = None

    def call(self, name: str, *args: Value) -> Any:
        """A function by its name; by way of float64 where that is how float32 does it."""
        if self.type == "float32" and name in WIDENED:
            other = self.of("float64")
            wide = [self.b.fpext(a, other.real) for a in args]
            return self.b.fptrunc(getattr(other, name)(*wide), self.real)
        return getattr(self, name)(*args)

    # -- exponentials -----------------------------------------------------------------------------

    def split_exp(self, x: Value) -> tuple[Any, Any]:
        """n (as shifted number) and r with x = n·ln 2 + r, |r| ≤ ln 2 / 2."""
        shifted = self.add(self.mul(x, self.num(c.LOG2_E)), self.magic)
        n = self.sub(shifted, self.magic)
        r = x
        for part in c.LN2[self.type]:
            r = self.fma(self.neg(n), self.num(part), r)
        return shifted, r

    def scale(self, p: Value, shifted: Value) -> Any:
        """p·2ⁿ, by two factors, so that results below the smallest normal number come out right."""
        n = self.b.sub(self.bits_of(shifted), self.bits_of(self.magic))
        if self.processor.scales:
            return self.ldexp(p, n)
        half = self.b.ashr(n, self.int(1))
        first = self.mul(p, self.power_of_two(half))
        return self.mul(first, self.power_of_two(self.b.sub(n, half)))

    def exp(self, x: Value) -> Any:
        # To scale down to zero takes processors a hundred times as long, and masks hold many -inf.
        zero, most = self.num(0), self.num(c.EXP_LIMIT[self.type])
        gone = self.less(x, self.num(c.EXP_ZERO[self.type]))
        x = self.select(gone, zero, self.select(self.less(most, x), most, x))
        if self.type == "float32" and not self.processor.scales:
            return self.select(gone, zero, self.exp_by_squares(x))
        shifted, r = self.split_exp(x)
        square = self.mul(r, r)
        p = self.fma(self.poly(c.EXP[self.type], r), square, r)
        return self.select(gone, zero, self.scale(self.add(p, self.num(1)), shifted))

    def exp_by_squares(self, x: Value) -> Any:
        """eˣ = eʳ·2ᵏ·2ᵏ, with x = k·2 ln 2 + r: 2ᵏ is never out of range, and |r| ≤ ln 2.

        A longer polynomial, and fewer instructions in all, where none of them scales by 2ⁿ.
        """
        magic = self.num(c.ROUND[self.type] + self.bias)
        shifted = self.fma(x, self.num(c.LOG2_E / 2), magic)
        k, r = self.sub(shifted, magic), x
        for part in c.LN2[self.type]:
            r = self.fma(self.neg(k), self.num(2 * part), r)
        p = self.fma(self.poly(c.EXP_WIDE, r), self.mul(r, r), r)
        power = self.number_of(self.b.shl(self.bits_of(shifted), self.int(self.mantissa)))
        return self.mul(self.fma(p, power, power), power)

    def exp2(self, x: Value) -> Any:
        limit = 1.5 * c.EXP_LIMIT[self.type]
        x = self.within(x, -limit, limit)
        shifted = self.add(x, self.magic)
        r = self.sub(x, self.sub(shifted, self.magic))
        p = self.fma(self.poly(c.EXP2[self.type], r), r, self.num(1))
        return self.scale(p, shifted)

    def expm1(self, x: Value) -> Any:
        low, high = c.EXPM1_RANGE[self.type]
        y = self.expm1_within(self.within(x, low, high))
        return self.select(self.equal(x, self.num(0)), x, y)

    def expm1_within(self, x: Value) -> Any:
        """eˣ - 1 = 2·(2ⁿ⁻¹·(eʳ - 1) + (2ⁿ⁻¹ - ½)), where 2ⁿ⁻¹ never overflows."""
        shifted, r = self.split_exp(x)
        q = self.fma(self.poly(c.EXP[self.type], r), self.mul(r, r), r)
        n = self.b.sub(self.bits_of(shifted), self.bits_of(self.magic))
        half = self.power_of_two(self.b.sub(n, self.int(1)))
        y = self.fma(q, half, self.sub(half, self.num(0.5)))
        return self.add(y, y)

    def sigmoid(self, x: Value) -> Any:
        small = self.exp(self.neg(self.abs(x)))
        top = self.select(self.less(x, self.num(0)), small, self.num(1))
        return self.div(top, self.add(small, self.num(1)))

    def tanh(self, x: Value) -> Any:
        size = self.abs(x)
        doubled = self.within(self.add(size, size), 0.0, c.TANH_LIMIT[self.type])
        t = self.expm1_within(doubled)
        y = self.copysign(self.div(t, self.add(t, self.num(2))), x)
        return self.select(self.less(size, self.num(c.TANH_SAME[self.type])), x, y)

    def sinh(self, x: Value) -> Any:
        size = self.abs(x)
        t = self.expm1(size)
        y = self.mul(self.num(0.5), self.add(t, self.div(t, self.add(t, self.num(1)))))
        y = self.select(self.less(self.num(20), size), self.half_exp(size), y)
        return self.copysign(y, x)

    def cosh(self, x: Value) -> Any:
        size = self.abs(x)
        e = self.exp(self.within(size, 0.0, 40.0))
        y = self.mul(self.num(0.5), self.add(e, self.div(self.num(1), e)))
        return self.select(self.less(self.num(20), size), self.half_exp(size), y)

    def half_exp(self, x: Value) -> Any:
        """eˣ / 2, also where eˣ overflows."""
        root = self.exp(self.mul(x, self.num(0.5)))
        return self.mul(self.mul(root, self.num(0.5)), root)

    # -- logarithms -------------------------------------------------------------------------------

    def split_log(self, x: Value) -> tuple[Any, Any]:
        """k and m with x = 2ᵏ·m, m from √½ to √2."""
        shift = self.mantissa + 2
        tiny = self.less(x, self.num(c.SMALLEST[self.type]))
        x = self.select(tiny, self.mul(x, self.num(2.0**shift)), x)
        bits = self.bits_of(x)
        root = self.bits_of(self.num(0.5**0.5))
        n = self.b.ashr(self.b.sub(bits, root), self.int(self.mantissa))
        m = self.number_of(self.b.sub(bits, self.b.shl(n, self.int(self.mantissa))))
        n = self.b.sub(n, self.b.select(tiny, self.int(shift), self.int(0)))
        k = self.sub(self.number_of(self.b.add(n, self.bits_of(self.magic))), self.magic)
        return k, m

    def log_parts(self, f: Value) -> tuple[Any, Any]:
        """f²/2 and s·(f²/2 + R), of which log(1 + f) = f - (f²/2 - s·(f²/2 + R)) is made."""
        s = self.div(f, self.add(f, self.num(2)))
        z = self.mul(s, s)
        square = self.mul(self.mul(f, f), self.num(0.5))
        rest = self.mul(z, self.poly(c.LOG[self.type], z))
        return square, self.mul(s, self.add(square, rest))

    def log_edges(self, x: Value, y: Value) -> Any:
        """y, or what the logarithm is of 0, of negative numbers, of ∞ and of NaN."""
        y = self.select(self.equal(x, self.num(float("inf"))), x, y)
        edge = self.select(
            self.equal(x, self.num(0)), self.num(float("-inf")), self.num(float("nan"))
        )
        return self.select(self.less(self.num(0), x), y, edge)

    def split_parts(self, x: Value) -> tuple[Any, Any, Any, Any]:
        """k, f, f²/2 and the rest with x = 2ᵏ·(1 + f) (see `log_parts`)."""
        k, m = self.split_log(x)
        f = self.sub(m, self.num(1))
        return k, f, *self.log_parts(f)

    def log(self, x: Value) -> Any:
        k, f, square, rest = self.split_parts(x)
        return self.log_edges(x, self.log_sum(k, f, square, rest))

    def log_sum(
        self, k: Value, f: Value, square: Value, rest: Value, lower: Value | None = None
    ) -> Any:
        """k·ln 2 + f - (square - rest), small terms first."""
        high, low = map(self.num, c.LN2[self.type])
        low = self.mul(k, low) if lower is None else self.fma(k, low, lower)
        inner = self.sub(self.sub(square, self.add(rest, low)), f)
        return self.sub(self.mul(k, high), inner)

    def log2(self, x: Value) -> Any:
        k, f, square, rest = self.split_parts(x)
        natural = self.sub(f, self.sub(square, rest))
        return self.log_edges(x, self.fma(natural, self.num(c.LOG2_E), k))

    def log10(self, x: Value) -> Any:
        k, f, square, rest = self.split_parts(x)
        natural = self.sub(f, self.sub(square, rest))
        high, low = map(self.num, c.LOG10_2[self.type])
        y = self.fma(natural, self.num(c.LOG10_E), self.mul(k, low))
        return self.log_edges(x, self.add(self.mul(k, high), y))

    def log1p(self, x: Value) -> Any:
        one = self.num(1)
        u = self.add(x, one)
        lost = self.select(
            self.less(one, x), self.sub(one, self.sub(u, x)), self.sub(x, self.sub(u, one))
        )
        k, m = self.split_log(u)
        near = self.equal(k, self.num(0))
        f = self.select(near, x, self.sub(m, one))
        lost = self.select(near, self.num(0), self.div(lost, u))
        square, rest = self.log_parts(f)
        y = self.log_edges(u, self.log_sum(k, f, square, rest, lost))
        return self.select(self.equal(x, self.num(0)), x, y)

    # -- angles -----------------------------------------------------------------------------------

    def split_angle(self, x: Value) -> tuple[Any, Any]:
        """r and the quadrant n with x = n·π/2 + r, |r| ≤ π/4, for |x| up to ANGLE_LIMIT."""
        if self.type == "float32":
            wide = self.of("float64")
            r, n = wide.split_angle(self.b.fpext(x, wide.real))
            return self.b.fptrunc(r, self.real), self.b.trunc(n, self.whole)
        shifted = self.add(self.mul(x, self.num(1 / c.HALF_PI)), self.magic)
        n = self.sub(shifted, self.magic)
        r = x
        for part in c.HALF_PI_PARTS:
            r = self.fma(self.neg(n), self.num(part), r)
        return r, self.bits_of(shifted)

    def sine_of(self, r: Value) -> Any:
        z = self.mul(r, r)
        return self.fma(self.mul(self.poly(c.SIN[self.type], z), z), r, r)

    def cosine_of(self, r: Value) -> Any:
        z = self.mul(r, r)
        rest = self.mul(self.mul(z, z), self.poly(c.COS[self.type], z))
        # 1 - z/2 is rounded; what it lost is added to the rest.
        half = self.mul(z, self.num(0.5))
        w = self.sub(self.num(1), half)
        return self.add(w, self.add(self.sub(self.sub(self.num(1), w), half), rest))

    def quadrant(self, x: Value, ahead: int) -> Any:
        """sin(x + ahead·π/2)."""
        r, n = self.split_angle(x)
        n = self.b.add(n, self.int(ahead))
        odd = self.b.trunc(n, self.bit)
        y = self.select(odd, self.cosine_of(r), self.sine_of(r))
        sign = self.b.shl(self.b.and_(n, self.int(2)), self.int(self.width - 2))
        return self.number_of(self.b.xor(self.bits_of(y), sign))

    def angle(self, name: str, x: Value, fast: Fn) -> Any:
        """The fast function, which notes large angles, or in the slow version the C library's."""
        if self.slow:
            wide = self.of("float64")
            made = wide.library(name, x if self.type == "float64" else self.b.fpext(x, wide.real))
            return made if self.type == "float64" else self.b.fptrunc(made, self.real)
        self.note(self.less(self.num(c.ANGLE_LIMIT), self.abs(x)))
        return fast()

    def sin(self, x: Value) -> Any:
        y = self.angle("sin", x, lambda: self.quadrant(x, 0))
        return self.select(self.equal(x, self.num(0)), x, y)

    def cos(self, x: Value) -> Any:
        return self.angle("cos", x, lambda: self.quadrant(x, 1))

    def tan(self, x: Value) -> Any:
        def fast() -> Any:
            r, n = self.split_angle(x)
            s, k = self.sine_of(r), self.cosine_of(r)
            odd = self.b.trunc(n, self.bit)
            return self.div(self.select(odd, self.neg(k), s), self.select(odd, s, k))

        y = self.angle("tan", x, fast)
        return self.select(self.equal(x, self.num(0)), x, y)

    def atan(self, x: Value) -> Any:
        """With x, (x-1)/(x+1) + π/4 or -1/x + π/2, whichever is small."""
        size, one = self.abs(x), self.num(1)
        middle = self.less(self.num(2**0.5 - 1), size)
        large = self.less(self.num(2**0.5 + 1), size)
        top = self.select(large, self.num(-1), self.select(middle, self.sub(size, one), size))
        bottom = self.select(large, size, self.select(middle, self.add(size, one), one))
        t = self.div(top, bottom)

        def part(value: float) -> Any:
            half = self.select(middle, self.num(value / 2), self.num(0))
            return self.select(large, self.num(value), half)

        z = self.mul(t, t)
        rest = self.fma(self.mul(t, z), self.poly(c.ATAN, z), part(c.HALF_PI_REST))
        return self.copysign(self.add(part(c.HALF_PI), self.add(t, rest)), x)

    def atan2(self, y: Value, x: Value) -> Any:
        a, d = self.abs(y), self.abs(x)
        steep = self.less(d, a)
        low, high = self.select(steep, d, a), self.select(steep, a, d)
        ratio = self.select(self.equal(low, high), self.num(1), self.div(low, high))
        ratio = self.select(self.equal(high, self.num(0)), self.num(0), ratio)
        r = self.atan(ratio)
        pi, rest = self.num(c.HALF_PI), self.num(c.HALF_PI_REST)
        r = self.select(steep, self.sub(pi, self.sub(r, rest)), r)
        twice, twice_rest = self.num(2 * c.HALF_PI), self.num(2 * c.HALF_PI_REST)
        back = self.b.icmp_signed("<", self.bits_of(x), self.int(0))
        r = self.select(back, self.sub(twice, self.sub(r, twice_rest)), r)
        r = self.copysign(r, y)
        return self.select(self.unordered(x, y), self.num(float("nan")), r)

    def asin_parts(self, x: Value) -> tuple[Any, Any, Any]:
        """Whether |x| > ½; then s = √((1-|x|)/2), else |x|; and asin(s) - s."""
        size = self.abs(x)
        large = self.less(self.num(0.5), size)
        half = self.mul(self.sub(self.num(1), size), self.num(0.5))
        z = self.select(large, half, self.mul(x, x))
        s = self.select(large, self.sqrt(half), size)
        return large, s, self.mul(self.mul(s, z), self.poly(c.ASIN, z))

    def asin(self, x: Value) -> Any:
        large, s, rest = self.asin_parts(x)
        near = self.add(s, rest)
        far = self.sub(
            self.num(c.HALF_PI), self.sub(self.add(near, near), self.num(c.HALF_PI_REST))
        )
        return self.copysign(self.select(large, far, near), x)

    def acos(self, x: Value) -> Any:
        large, s, rest = self.asin_parts(x)
        back = self.less(x, self.num(0))
        twice = self.mul(self.num(2), self.add(s, rest))
        pi, lost = self.num(2 * c.HALF_PI), self.num(2 * c.HALF_PI_REST)
        far = self.select(back, self.sub(pi, self.sub(twice, lost)), twice)
        lower = self.sub(self.copysign(rest, x), self.num(c.HALF_PI_REST))
        near = self.sub(self.num(c.HALF_PI), self.add(x, lower))
        return self.select(large, far, near)

    # -- the error function -----------------------------------------------------------------------

    def erf(self, x: Value) -> Any:
        if self.type == "float32":
            x = self.within(x, -c.ERF_ONE, c.ERF_ONE)
            square = self.mul(x, x)
            above, below = (self.poly_pairs(p, square) for p in (c.ERF_ABOVE, c.ERF_BELOW))
            half = self.mul(x, self.num(0.5))
            return self.within(self.fma(x, self.div(above, below), half), -1.0, 1.0)
        size = self.abs(x)
        low = self.within(size, 0.0, 1.0)
        near = self.mul(low, self.poly(c.ERF_NEAR[self.type], self.mul(low, low)))
        y = self.sub(self.num(1), self.erfc_above(self.within(size, 0.9, 6.5)))
        y = self.copysign(self.select(self.less(self.num(1), size), y, near), x)
        return self.select(self.unordered(x, x), x, y)

    def erfc_above(self, x: Value) -> Any:
        """erfc for x from 0.45 to 28. Below 0.75, `1 - erf` is nearer."""
        # The square of the upper half of x's digits is exact.
        high = self.number_of(self.b.and_(self.bits_of(x), self.int(-1 << 27)))
        d = self.exact_mul(self.sub(high, x), self.add(high, x))
        tail = self.fma(self.fma(d, self.num(1 / 6), self.num(0.5)), self.mul(d, d), d)
        e = self.exp(self.neg(self.mul(high, high)))
        t = self.div(self.sub(x, self.num(3.75)), self.add(x, self.num(3.75)))
        ratio = self.div(self.poly(c.ERFCX, t), self.fma(x, self.num(2), self.num(1)))
        ratio = self.fma(ratio, tail, ratio)
        return self.mul(e, ratio)

    def erfc(self, x: Value) -> Any:
        size = self.abs(x)
        far = self.erfc_above(self.within(size, 0.45, 28.0))
        far = self.select(self.less(x, self.num(0)), self.sub(self.num(2), far), far)
        low = self.within(x, -0.75, 0.75)
        near = self.fma(
            self.neg(low), self.poly(c.ERF_NEAR[self.type], self.mul(low, low)), self.num(1)
        )
        y = self.select(self.less(size, self.num(0.75)), near, far)
        return self.select(self.unordered(x, x), x, y)
