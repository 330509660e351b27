"""LLVM's instructions for single numbers of one real type, under short names."""

from __future__ import annotations

from functools import partialmethod
from types import ModuleType
from typing import TYPE_CHECKING, Any

from toytorch.loops.language.coefficients import ROUND
from toytorch.loops.processor import Processor

if TYPE_CHECKING:
    from llvmlite.ir import IRBuilder, Value


class Emit:
    """Writes arithmetic on float32 or float64 numbers with an llvmlite builder.

    Products and sums carry the flag "contract": they may become one instruction that rounds once.
    `exact_mul` and the two_ functions, which count on each rounding, do not.
    """

    def __init__(self, ir: ModuleType, b: IRBuilder, type: str, processor: Processor) -> None:
        self.ir, self.b, self.type, self.processor = ir, b, type, processor
        self.real = ir.FloatType() if type == "float32" else ir.DoubleType()
        self.width, self.mantissa, self.bias = (
            (32, 23, 127) if type == "float32" else (64, 52, 1023)
        )
        self.whole, self.bit = ir.IntType(self.width), ir.IntType(1)
        self.magic = self.num(ROUND[type])
        self.others: dict[str, Any] = {type: self}

    def of(self, type: str) -> Any:
        """The same for another type."""
        if type not in self.others:
            made = self.others[type] = self.__class__(self.ir, self.b, type, self.processor)
            made.others = self.others
            made.slow, made.large = self.slow, self.large  # type: ignore[attr-defined]  # set where operations are made
        return self.others[type]

    def num(self, value: float) -> Any:
        return self.ir.Constant(self.real, float(value))

    def int(self, value: int) -> Any:
        return self.ir.Constant(self.whole, value)

    # -- arithmetic -------------------------------------------------------------------------------

    def _contracted(self, name: str, x: Value, y: Value) -> Any:
        return getattr(self.b, name)(x, y, flags=("contract",))

    add, sub = partialmethod(_contracted, "fadd"), partialmethod(_contracted, "fsub")
    mul = partialmethod(_contracted, "fmul")

    def exact_mul(self, x: Value, y: Value) -> Any:
        return self.b.fmul(x, y)

    def div(self, x: Value, y: Value) -> Any:
        return self.b.fdiv(x, y)

    def neg(self, x: Value) -> Any:
        return self.b.fneg(x)

    def fma(self, x: Value, y: Value, z: Value) -> Any:
        """x·y + z; one instruction where the processor has it."""
        return self.add(self.mul(x, y), z)

    def poly(self, coefficients: tuple[float, ...], x: Value) -> Any:
        """Horner's scheme, the highest power first."""
        total = self.num(coefficients[0])
        for value in coefficients[1:]:
            total = self.fma(total, x, self.num(value))
        return total

    def poly_pairs(self, coefficients: tuple[float, ...], x: Value) -> Any:
        """The same two powers at a time: half as many steps wait for each other and round."""
        highest, *rest = [
            self.poly(coefficients[k : k + 2], x) for k in range(0, len(coefficients), 2)
        ]
        square = self.mul(x, x)
        total = highest
        for pair in rest:
            total = self.fma(total, square, pair)
        return total

    def intrinsic(self, name: str, *args: Value, flags: tuple[str, ...] = ()) -> Any:
        """One of LLVM's own functions."""
        return self.library(f"llvm.{name}.f{self.width}", *args, flags=flags)

    def library(self, name: str, *args: Value, flags: tuple[str, ...] = ()) -> Any:
        """A function of the C library, for one float64 at a time."""
        return self.b.call(self.declared(name, [self.real] * len(args)), args, fastmath=flags)

    def declared(self, name: str, types: list[Any]) -> Any:
        """A function from elsewhere that gives a real number, declared once in a module."""
        made = self.b.module.globals.get(name)
        if made is None:
            made = self.ir.Function(self.b.module, self.ir.FunctionType(self.real, types), name)
        return made

    sqrt, abs = partialmethod(intrinsic, "sqrt"), partialmethod(intrinsic, "fabs")
    copysign = partialmethod(intrinsic, "copysign")

    # -- choices ----------------------------------------------------------------------------------

    def less(self, x: Value, y: Value) -> Any:
        return self.b.fcmp_ordered("<", x, y)

    def equal(self, x: Value, y: Value) -> Any:
        return self.b.fcmp_ordered("==", x, y)

    def unordered(self, x: Value, y: Value) -> Any:
        """Whether one of them is NaN."""
        return self.b.fcmp_unordered("uno", x, y)

    def select(self, condition: Value, x: Value, y: Value) -> Any:
        return self.b.select(condition, x, y)

    def within(self, x: Value, low: float, high: float) -> Any:
        """x cut to [low, high]; NaN stays."""
        x = self.select(self.less(x, self.num(low)), self.num(low), x)
        return self.select(self.less(self.num(high), x), self.num(high), x)

    # -- bits -------------------------------------------------------------------------------------

    def bits_of(self, x: Value) -> Any:
        return self.b.bitcast(x, self.whole)

    def number_of(self, bits: Value) -> Any:
        return self.b.bitcast(bits, self.real)

    def power_of_two(self, n: Value) -> Any:
        """2ⁿ for an integer n, by its bits."""
        return self.number_of(
            self.b.shl(self.b.add(n, self.int(self.bias)), self.int(self.mantissa))
        )

    def ldexp(self, x: Value, n: Value) -> Any:
        """x·2ⁿ, rounded once; only where the processor `scales`."""
        whole = self.ir.IntType(32)
        made = self.declared(f"llvm.ldexp.f{self.width}.i32", [self.real, whole])
        return self.b.call(made, [x, n if self.width == 32 else self.b.trunc(n, whole)])

    def note(self, condition: Value) -> None:
        """Remembers, for the end of the kernel, that the condition held somewhere."""
        flag = self.b.zext(condition, self.ir.IntType(32))
        place = self.large  # type: ignore[attr-defined]  # set where operations are made
        self.b.store(self.b.or_(self.b.load(place), flag), place)

    # -- pairs of numbers whose sum is meant ------------------------------------------------------

    def two_sum(self, x: Value, y: Value) -> tuple[Any, Any]:
        """x + y, and exactly what the rounding lost (D. E. Knuth)."""
        s = self.b.fadd(x, y)
        part = self.b.fsub(s, x)
        lost = self.b.fadd(self.b.fsub(x, self.b.fsub(s, part)), self.b.fsub(y, part))
        return s, lost

    def two_product(self, x: Value, y: Value) -> tuple[Any, Any]:
        """x·y, and exactly what the rounding lost (by fma, or T. J. Dekker's splitting)."""
        p = self.b.fmul(x, y)
        if self.processor.fma:
            return p, self.intrinsic("fma", x, y, self.neg(p))
        mask = self.int(-1 << (self.mantissa + 2) // 2)
        xh, yh = (self.number_of(self.b.and_(self.bits_of(v), mask)) for v in (x, y))
        xl, yl = self.b.fsub(x, xh), self.b.fsub(y, yh)
        lost = self.b.fsub(self.b.fmul(xh, yh), p)
        for u, v in ((xh, yl), (xl, yh), (xl, yl)):
            lost = self.b.fadd(lost, self.b.fmul(u, v))
        return p, lost
