"""What each primitive is in LLVM's instructions, for values of any type.

A primitive `name` is the method `name` of Operations; real functions without a method here are in
`elementary` and `power`. Truth values are i1 while they are computed with, and bytes in memory.
"""

from __future__ import annotations

from functools import partialmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any

from toytorch.loops.language.parse import steps_of
from toytorch.loops.language.primitives import STATED
from toytorch.loops.language.types import TYPES, kind
from toytorch.loops.llvm.power import Power
from toytorch.loops.processor import Processor

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value


class Operations:
    """The instructions for one step: `Operations(...).do(op, type of the arguments, args)`."""

    def __init__(
        self, ir: ModuleType, b: IRBuilder, processor: Processor, slow: bool, large: Value | None
    ) -> None:
        self.ir, self.b = ir, b
        self.math = Power(ir, b, "float32", processor)
        self.math.slow, self.math.large = slow, large

    def of(self, type: str) -> Any:
        return self.math.of(type)

    def llvm(self, type: str) -> Any:
        """The LLVM type of a value of a type."""
        if type in ("float32", "float64"):
            return self.ir.FloatType() if type == "float32" else self.ir.DoubleType()
        return self.ir.IntType(1 if type == "bool" else TYPES[type].bits)

    def constant(self, value: float | int | bool, type: str) -> Any:
        made = self.llvm(type)
        if kind(type) == "f":
            return self.ir.Constant(made, float(value))
        return self.ir.Constant(made, int(bool(value)) if type == "bool" else int(value))

    def do(self, op: str, type: str, args: list[Any]) -> Any:
        """The value of a primitive for arguments of this type."""
        own = getattr(self, op, None)
        if own is not None:
            return own(type, *args)
        if op in STATED:
            return self.defined(op, type, *args)
        return self.of(type).call(op, *args)

    def defined(self, op: str, type: str, *given: Value) -> Any:
        """The steps of a function that the language states in its own words."""
        made = dict(zip("xz", given))
        types = dict.fromkeys(made, type)
        for s in steps_of(op, type):
            named = [types[a] for a in s.args[s.op == "where" :] if isinstance(a, str)]
            of = named[0] if named else s.type
            args = [made[a] if isinstance(a, str) else self.constant(a, of) for a in s.args]
            value = self.convert(args[0], of, s.type) if s.op == "cast" else self.do(s.op, of, args)
            made[s.name], types[s.name] = value, s.type
        return value

    # -- arithmetic -------------------------------------------------------------------------------

    def _arithmetic(self, name: str, type: str, x: Value, y: Value) -> Any:
        if kind(type) == "f":
            return getattr(self.b, f"f{name}")(x, y, flags=("contract",))
        return getattr(self.b, name)(x, y)

    add, sub = partialmethod(_arithmetic, "add"), partialmethod(_arithmetic, "sub")
    mul = partialmethod(_arithmetic, "mul")

    def square(self, type: str, x: Value) -> Any:
        return self.mul(type, x, x)

    def neg(self, type: str, x: Value) -> Any:
        return self.b.fneg(x) if kind(type) == "f" else self.b.neg(x)

    def div(self, type: str, x: Value, y: Value) -> Any:
        return self.b.fdiv(x, y)

    def div_by(self, type: str, x: Value, y: Value) -> Any:
        """x / y for a y that stays the same along the loop, within 1.5 ulp: (x·(1/(y·p)))·p.

        Two products cost a tenth of a division. p is 1, or a power of 2 that keeps 1/(y·p) normal.
        """
        m = self.of(type)
        limit, step = (100, 64) if type == "float32" else (900, 512)
        size = m.abs(y)
        p = m.select(m.less(m.num(2.0**limit), size), m.num(2.0**-step), m.num(1))
        p = m.select(m.less(size, m.num(2.0**-limit)), m.num(2.0**step), p)
        return m.mul(m.mul(x, m.div(m.num(1), m.exact_mul(y, p))), p)

    def reciprocal(self, type: str, x: Value) -> Any:
        return self.b.fdiv(self.constant(1, type), x)

    def sqrt(self, type: str, x: Value) -> Any:
        return self.of(type).sqrt(x)

    def rsqrt(self, type: str, x: Value) -> Any:
        return self.reciprocal(type, self.sqrt(type, x))

    def abs(self, type: str, x: Value) -> Any:
        if kind(type) == "f":
            return self.of(type).abs(x)
        if kind(type) == "u":
            return x
        return self.b.select(self.lt(type, x, self.constant(0, type)), self.b.neg(x), x)

    def sign(self, type: str, x: Value) -> Any:
        """-1, 0 or 1; 0 for NaN, as PyTorch has it."""
        zero, one = self.constant(0, type), self.constant(1, type)
        low = zero if kind(type) == "u" else self.constant(-1, type)
        made = self.b.select(self.lt(type, x, zero), low, zero)
        return self.b.select(self.lt(type, zero, x), one, made)

    # -- division that rounds down or towards zero ------------------------------------------------

    def fmod(self, type: str, x: Value, y: Value) -> Any:
        if kind(type) != "f":
            return self._divided(type, x, y)[1]
        if type == "float64" and not self.math.processor.fma:
            return self.b.frem(x, y)
        return self._real_rest(type, x, y)

    def _real_rest(self, type: str, x: Value, y: Value) -> Any:
        """x - y·trunc(x/y) without error, with the sign of x. Where the quotient has few enough digits
        the product and the difference are exact: float32's in float64, float64's in one step (the
        quotient may be one too many). Other quotients are noted, and the slow version asks the C
        library, by its name: LLVM would compute its own `frem` in either case."""
        b, m, wide = self.b, self.of(type), self.of("float64")
        up, down = self.convert(m.abs(x), type, "float64"), self.convert(m.abs(y), type, "float64")
        quotient = wide.intrinsic("trunc", b.fdiv(up, down))
        most, none = wide.num(2.0 ** (29 if type == "float32" else 52)), wide.num(0)
        far = b.and_(wide.less(most, quotient), wide.less(none, down))  # x/0 is NaN in either way
        finite = wide.less(up, wide.num(float("inf")))
        far = b.and_(far, finite)

        def near() -> Any:
            if type == "float32":
                rest = b.fsub(up, b.fmul(quotient, down))
            else:
                rest = wide.intrinsic("fma", b.fneg(quotient), down, up)
            rest = b.select(wide.less(rest, none), b.fadd(rest, down), rest)
            rest = b.select(wide.less(rest, down), rest, b.fsub(rest, down))
            endless = b.and_(wide.equal(down, wide.num(float("inf"))), finite)
            rest = b.select(endless, up, rest)
            return m.copysign(self.convert(rest, "float64", type), x)

        if not self.math.slow:
            wide.note(far)
            return near()
        made = []
        with b.if_else(far) as (rare, usual):
            with rare:
                values = (self.convert(v, type, "float64") for v in (x, y))
                made.append((self.convert(wide.library("fmod", *values), "float64", type), b.block))
            with usual:
                made.append((near(), b.block))
        joined = b.phi(x.type)
        for value, block in made:
            joined.add_incoming(value, block)
        return joined

    def remainder(self, type: str, x: Value, y: Value) -> Any:
        """x - y·⌊x/y⌋, with the sign of y."""
        rest = self.fmod(type, x, y)
        if kind(type) == "u":
            return rest
        zero = self.constant(0, type)
        other = self.b.xor(self.lt(type, rest, zero), self.lt(type, y, zero))
        other = self.b.and_(other, self.ne(type, rest, zero))
        return self.b.select(other, self.add(type, rest, y), rest)  # a zero has the sign of x

    def floordiv(self, type: str, x: Value, y: Value) -> Any:
        """⌊x/y⌋; for real numbers from the exact remainder, as Python does it."""
        if kind(type) != "f":
            quotient, rest = self._divided(type, x, y)
            zero = self.constant(0, type)
            other = self.b.xor(self.lt(type, rest, zero), self.lt(type, y, zero))
            other = self.b.and_(other, self.ne(type, rest, zero))
            down = self.b.sub(quotient, self.constant(1, type))
            return quotient if kind(type) == "u" else self.b.select(other, down, quotient)
        m, zero, one = self.of(type), self.constant(0, type), self.constant(1, type)
        rest = self.fmod(type, x, y)
        quotient = self.b.fdiv(self.b.fsub(x, rest), y)
        other = self.b.xor(m.less(rest, zero), m.less(y, zero))
        other = self.b.and_(other, self.ne(type, rest, zero))
        quotient = self.b.select(other, self.b.fsub(quotient, one), quotient)
        lower = m.intrinsic("floor", quotient)
        apart = m.less(self.constant(0.5, type), self.b.fsub(quotient, lower))
        made = self.b.select(apart, self.b.fadd(lower, one), lower)
        plain = self.b.fdiv(x, y)
        made = self.b.select(self.eq(type, quotient, zero), m.copysign(zero, plain), made)
        return self.b.select(self.eq(type, y, zero), plain, made)

    def _divided(self, type: str, x: Value, y: Value) -> tuple[Any, Any]:
        """Quotient and remainder of integers by a constant other than 0."""
        if kind(type) == "u":
            return self.b.udiv(x, y), self.b.urem(x, y)
        if y.constant == -1:  # the smallest number divided by -1 stops the processor
            return self.b.neg(x), self.constant(0, type)
        return self.b.sdiv(x, y), self.b.srem(x, y)

    # -- comparisons and choices ------------------------------------------------------------------

    def _compare(self, sign: str, type: str, x: Value, y: Value) -> Any:
        if kind(type) == "f":
            return (self.b.fcmp_unordered if sign == "!=" else self.b.fcmp_ordered)(sign, x, y)
        if kind(type) == "i":
            return self.b.icmp_signed(sign, x, y)
        return self.b.icmp_unsigned(sign, x, y)

    eq, ne = partialmethod(_compare, "=="), partialmethod(_compare, "!=")
    lt, le = partialmethod(_compare, "<"), partialmethod(_compare, "<=")
    gt, ge = partialmethod(_compare, ">"), partialmethod(_compare, ">=")

    def where(self, type: str, condition: Value, x: Value, y: Value) -> Any:
        return self.b.select(condition, x, y)

    def _extreme(self, name: str, sign: str, type: str, x: Value, y: Value) -> Any:
        """One of two; NaN if one of them is. Of 0 and -0 either will do ("nsz")."""
        if kind(type) == "f":
            return self.of(type).intrinsic(name, x, y, flags=("nsz",))
        return self.b.select(self._compare(sign, type, x, y), x, y)

    maximum = partialmethod(_extreme, "maximum", ">")
    minimum = partialmethod(_extreme, "minimum", "<")

    def _number(self, sign: str, type: str, x: Value, y: Value) -> Any:
        """One of two; the other one if one is NaN."""
        made = self.b.select(self._compare(sign, type, x, y), x, y)
        return self.b.select(self.isnan(type, y), x, made)

    fmax, fmin = partialmethod(_number, ">"), partialmethod(_number, "<")

    def straight(self, type: str, x: Value, y: Value) -> Any:
        return x

    def copysign(self, type: str, x: Value, y: Value) -> Any:
        return self.of(type).copysign(x, y)

    def isnan(self, type: str, x: Value) -> Any:
        return self.b.fcmp_unordered("uno", x, x)

    def isinf(self, type: str, x: Value) -> Any:
        return self.eq(type, self.abs(type, x), self.constant(float("inf"), type))

    def isfinite(self, type: str, x: Value) -> Any:
        return self.lt(type, self.abs(type, x), self.constant(float("inf"), type))

    # -- truth and bits ---------------------------------------------------------------------------

    def _bitwise(self, name: str, type: str, *args: Value) -> Any:
        return getattr(self.b, name)(*args)

    and_ = logical_and = partialmethod(_bitwise, "and_")
    or_ = logical_or = partialmethod(_bitwise, "or_")
    xor = logical_xor = partialmethod(_bitwise, "xor")
    invert = logical_not = partialmethod(_bitwise, "not_")

    def _shift(self, right: bool, type: str, x: Value, y: Value) -> Any:
        """By the type's width or more, everything is shifted out (to 0, or -1 of negatives)."""
        limit = self.constant(TYPES[type].bits, type)
        inside = self.b.icmp_unsigned("<", y, limit)
        y = self.b.select(inside, y, self.constant(TYPES[type].bits - 1, type))
        if right and kind(type) == "i":
            return self.b.ashr(x, y)
        made = self.b.lshr(x, y) if right else self.b.shl(x, y)
        return self.b.select(inside, made, self.constant(0, type))

    shift_left, shift_right = partialmethod(_shift, False), partialmethod(_shift, True)

    # -- rounding ---------------------------------------------------------------------------------

    def _rounded(self, name: str, type: str, x: Value) -> Any:
        return self.of(type).intrinsic(name, x)

    floor, ceil = partialmethod(_rounded, "floor"), partialmethod(_rounded, "ceil")
    round, trunc = partialmethod(_rounded, "roundeven"), partialmethod(_rounded, "trunc")

    # -- from type to type ------------------------------------------------------------------------

    def convert(self, x: Value, source: str, target: str) -> Any:
        """A value in another type: towards zero, and any number but 0 is true."""
        if source == target:
            return x
        a, z, made = kind(source), kind(target), self.llvm(target)
        if z == "b":
            return self.ne(source, x, self.constant(0, source))
        if a == "b":
            return self.b.uitofp(x, made) if z == "f" else self.b.zext(x, made)
        if a == "f" and z == "f":
            return self.b.fpext(x, made) if target == "float64" else self.b.fptrunc(x, made)
        if a == "f":
            return self._to_whole(x, target)
        if z == "f":
            return (self.b.sitofp if a == "i" else self.b.uitofp)(x, made)
        if TYPES[target].bits < TYPES[source].bits:
            return self.b.trunc(x, made)
        if TYPES[target].bits == TYPES[source].bits:
            return x
        return (self.b.sext if a == "i" else self.b.zext)(x, made)

    def _to_whole(self, x: Value, target: str) -> Any:
        """As C compilers do it: by way of int32 (int64 for int64), then cut.

        A number that fits neither has no result that C would define.
        """
        middle = "int64" if target == "int64" else "int32"
        return self.convert(self.b.fptosi(x, self.llvm(middle)), middle, target)

    # -- memory -----------------------------------------------------------------------------------

    def load(self, place: Value, stored: str, align: int) -> Any:
        """The element at an address, in the type it is computed in."""
        b = self.b
        if stored == "bool":
            return b.icmp_unsigned("!=", b.load(place, align=1), self.constant(0, "int8"))
        value = b.load(place, align=align)
        if stored == "float16":
            return b.fpext(value, self.ir.FloatType())
        if stored == "bfloat16":
            wide = b.shl(
                b.zext(value, self.ir.IntType(32)), self.ir.Constant(self.ir.IntType(32), 16)
            )
            return b.bitcast(wide, self.ir.FloatType())
        return value

    def store(self, value: Value, place: Value, stored: str, align: int) -> None:
        b = self.b
        if stored == "bool":
            value = b.zext(value, self.ir.IntType(8))
        elif stored == "float16":
            value = b.fptrunc(value, self.ir.HalfType())
        elif stored == "bfloat16":
            value = self._rounded_bfloat(value)
        b.store(value, place, align=align)

    def _rounded_bfloat(self, x: Value) -> Any:
        """The upper 16 bits of a float32, rounded half to even; NaN stays NaN."""
        b, word = self.b, self.ir.IntType(32)
        bits = b.bitcast(x, word)
        even = b.and_(b.lshr(bits, word(16)), word(1))
        rounded = b.add(bits, b.add(even, word(0x7FFF)))
        rounded = b.select(self.isnan("float32", x), b.or_(bits, word(1 << 22)), rounded)
        return b.trunc(b.lshr(rounded, word(16)), self.ir.IntType(16))

    def element(self, stored: str) -> Any:
        """The LLVM type of an element in memory."""
        if stored == "float16":
            return self.ir.HalfType()
        if stored == "bfloat16":
            return self.ir.IntType(16)
        return self.ir.IntType(8) if stored == "bool" else self.llvm(stored)
