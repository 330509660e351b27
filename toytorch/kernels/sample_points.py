"""Where the points of a grid lie in images and volumes, in registers: the neighbours that a point is
computed from, and their weights.

The arithmetic is PyTorch's, step by step: for images that of its kernel of vectors, which multiplies
and adds at once and reads infinite coordinates as they are; for volumes that of its plain C++, which
rounds each step and reads nothing where a coordinate is infinite.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable
from typing import Any

from toytorch.facts.hints import Value
from toytorch.loops.runtime.native import Native

BILINEAR, NEAREST, BICUBIC = range(3)
ZEROS, BORDER, REFLECTION = range(3)
AXES = "xyz"
WORDS = (
    "blocks",  # of points in an image
    "points",
    "channels",
    "image",  # how far images, channels, columns, lines and planes lie apart, in elements
    "channel",
    *(f"step {axis}" for axis in AXES),
    *(f"size {axis}" for axis in AXES),
    "area",
    "input",
    "grid",
    "made",
    "of input",
    "of grid",
)
A = -0.75  # of Keys's cubic polynomials


class Points(Native):
    """What forward and backward have in common. By hand: where it reads is computed, and programs have
    no indices but their dimensions.

    exact   whether nothing is differentiated: what is no number is then read as PyTorch reads it
    """

    def __init__(
        self, name: str, kind: str, n: int, mode: int, padding: int, corners: bool, lanes: int,
        exact: bool,
    ) -> None:  # fmt: skip
        super().__init__(name, kind, WORDS)
        self.n, self.mode, self.padding, self.corners = n, mode, padding, corners
        self.lanes, self.exact = lanes, exact
        self.vector = self.ir.VectorType(self.real, lanes)
        self.short, self.long = (self.ir.VectorType(t, lanes) for t in (self.half, self.word))
        self.axes, b, word = AXES[:n], self.b, self.word_of
        self.grid = self.array("grid")
        self.size = {
            a: self.spread(b.sitofp(word[f"size {a}"], self.real), self.vector) for a in self.axes
        }
        self.last = {a: self.sub(self.size[a], self.of(1)) for a in self.axes}
        self.step = {
            a: self.spread(b.trunc(word[f"step {a}"], self.half), self.short) for a in self.axes
        }
        self.units = dict[str, Any]()  # how many elements a unit of the grid is, along each axis

    # -- vectors of numbers ---------------------------------------------------------------------------

    def of(self, x: float) -> Any:
        return self.ir.Constant(self.vector, [float(x)] * self.lanes)

    def add(self, x: Value, y: Value) -> Any:
        return self.b.fadd(x, y)

    def sub(self, x: Value, y: Value) -> Any:
        return self.b.fsub(x, y)

    def mul(self, *factors: Value) -> Any:
        return functools.reduce(lambda x, y: self.b.fmul(x, y), factors)

    def fused(self, x: Value, y: Value, z: Value) -> Any:
        """x·y + z, for images rounded once where the processor has that."""
        return self.math("fmuladd", x, y, z) if self.n == 2 else self.add(self.mul(x, y), z)

    def products(self, pairs: Iterable[tuple[Value, Value]]) -> Any:
        """The sum of products, one after the other."""
        (x, y), *rest = pairs
        total = self.mul(x, y)
        for x, y in rest:
            total = self.fused(x, y, total)
        return total

    def compare(self, x: Value, sign: str, y: Value) -> Any:
        """A comparison that does not hold for NaN."""
        return self.b.fcmp_ordered(sign, x, y)

    def known(self, name: str, result: Any, *args: Value) -> Any:
        """A call of one of LLVM's functions."""
        made = self.module.globals.get(name)
        if made is None:
            made = self.ir.Function(
                self.module, self.ir.FunctionType(result, [a.type for a in args]), name
            )
        return self.b.call(made, args)

    def math(self, name: str, *args: Value) -> Any:
        return self.known(f"llvm.{name}.v{self.lanes}f{8 * self.bytes}", self.vector, *args)

    # -- where points lie -----------------------------------------------------------------------------

    def coordinates(self, i: Value, first: Value) -> dict[str, Any]:
        """The grid's points from one on, by axis."""
        b, n = self.b, self.n
        at = b.mul(b.add(b.mul(i, self.word_of["points"]), first), self.word(n))
        mixed = self.read(self.grid, at, self.ir.VectorType(self.real, n * self.lanes))
        none = self.ir.Constant(mixed.type, self.ir.Undefined)
        return {
            axis: b.shuffle_vector(
                mixed, none, self.ir.Constant(self.short, [n * k + d for k in range(self.lanes)])
            )
            for d, axis in enumerate(self.axes)
        }

    def scaled(self, axis: str, x: Value) -> tuple[Any, Any]:
        """A coordinate in elements, and the elements to a unit of the grid."""
        size, half = self.last[axis] if self.corners else self.size[axis], self.of(0.5)
        unit, x = self.mul(size, half), self.add(x, self.of(1))
        if self.n == 2:
            return (self.mul(x, unit) if self.corners else self.fused(x, unit, self.of(-0.5))), unit
        if self.corners:
            return self.mul(self.mul(x, half), size), unit
        return self.mul(self.sub(self.mul(x, size), self.of(1)), half), unit

    def held(self, axis: str, x: Value, unit: Value) -> tuple[Any, Any]:
        """A coordinate in elements brought into the image, and how fast it then moves."""
        b, zero = self.b, self.of(0)
        if self.padding == REFLECTION:
            x, sign = (self.mirrored if self.n == 2 else self.mirrored_exactly)(axis, x)
            unit = self.mul(unit, sign)
        if self.padding != ZEROS:
            last = self.last[axis]
            if self.n == 2:  # NaN is 0
                x = b.select(self.compare(x, ">", zero), x, zero)
            elif self.exact:  # NaN is the last element
                x = b.select(self.compare(x, "<", zero), zero, x)
            else:  # NaN stays, and is outside
                x = b.select(self.compare(x, "<=", zero), zero, x)
            if self.n == 3 and not self.exact:
                x = b.select(self.compare(x, ">=", last), last, x)
            else:
                x = b.select(self.compare(x, "<", last), x, last)
            moves = b.and_(b.fcmp_unordered("!=", x, zero), b.fcmp_unordered("!=", x, last))
            unit = b.select(moves, unit, zero)
        if self.n == 3:
            far = self.compare(self.math("fabs", x), "<", self.of(2.0**31 - 1))
            x = b.select(far, x, self.of(-100))
        return x, unit

    def mirrored(self, axis: str, x: Value) -> tuple[Any, Any]:
        """A coordinate mirrored at both ends until it is between them, and the sign of its motion."""
        b, one = self.b, self.of(1)
        span = self.last[axis] if self.corners else self.size[axis]
        twice, low = self.mul(span, self.of(2)), self.of(0 if self.corners else -0.5)
        x = x if self.corners else self.sub(x, low)
        before, away = self.compare(x, "<", self.of(0)), self.math("fabs", x)
        turns = self.math("trunc", b.fdiv(away, twice))
        extra = self.fused(self.b.fneg(turns), twice, away)
        back = self.sub(twice, extra)
        flipped = self.compare(extra, ">", back)
        x = b.select(flipped, back, extra)
        sign = b.select(b.xor(flipped, before), self.of(-1), one)
        if not self.corners:
            return self.add(x, low), sign
        none = self.compare(span, "<=", self.of(0))
        return b.select(none, self.of(0), x), b.select(none, self.of(0), sign)

    def mirrored_exactly(self, axis: str, x: Value) -> tuple[Any, Any]:
        """The same by C's fmod."""
        b, zero, half = self.b, self.of(0), self.of(0.5)
        span = self.last[axis] if self.corners else self.size[axis]
        low = self.of(0 if self.corners else -0.5)
        x = self.sub(x, low)
        before, away = self.compare(x, "<", zero), self.math("fabs", x)
        turns = self.math("floor", b.fdiv(away, span))
        extra = self.math("fma", b.fneg(turns), span, away)
        extra = b.select(self.compare(extra, "<", zero), self.add(extra, span), extra)
        pairs = self.mul(self.math("floor", self.mul(turns, half)), self.of(2))
        flipped = self.compare(pairs, "!=", turns)
        x = self.add(b.select(flipped, self.sub(span, extra), extra), low)
        sign = b.select(b.xor(flipped, before), self.of(-1), self.of(1))
        none = self.compare(span, "<=", zero)
        return b.select(none, zero, x), b.select(none, zero, sign)

    def tapped(self, axis: str, x: Value) -> tuple[Any, Any]:
        """How far the whole coordinate x lies from an image's beginning, and whether it is inside;
        from outside the border is near, so that not all nothings are added at one place."""
        b, zero, last = self.b, self.of(0), self.last[axis]
        inside = b.and_(self.compare(x, ">=", zero), self.compare(x, "<=", last))
        x = b.select(self.compare(x, ">", zero), x, zero)
        x = b.fptosi(b.select(self.compare(x, "<", last), x, last), self.short)
        return b.mul(x, self.step[axis]), inside

    def neighbours(self, given: dict[str, Any]) -> list[Any]:
        """Places of all neighbours of points, whether they are inside, and along each axis what to
        weigh them with; the first axis is gone along first. Sets `units`."""
        found = {axis: self.along(axis, x) for axis, x in given.items()}
        made = []
        for choice in itertools.product(*(found[a] for a in reversed(self.axes))):
            parts = dict(zip(reversed(self.axes), choice))
            place, inside, _, _ = parts["x"]
            for axis in self.axes[1:]:
                place = self.b.add(place, parts[axis][0])
                inside = self.b.and_(inside, parts[axis][1])
            weights, slopes = ({a: parts[a][k] for a in self.axes} for k in (2, 3))
            made.append((place, inside, weights, slopes))
        return made

    def along(self, axis: str, x: Value) -> list[Any]:
        """(place, inside, weight, its slope) of the neighbours along one axis."""
        one = self.of(1)
        x, self.units[axis] = self.scaled(axis, x)
        if self.mode != BICUBIC:
            x, self.units[axis] = self.held(axis, x, self.units[axis])
        if self.mode == NEAREST:
            return [(*self.tapped(axis, self.math("roundeven", x)), one, 0)]
        low = self.math("floor", x)
        part = self.sub(x, low)
        if self.mode == BILINEAR:
            rest = self.sub(one, part) if self.n == 2 else self.sub(self.add(low, one), x)
            pairs = (low, rest, -1), (self.add(low, one), part, 1)
            return [(*self.tapped(axis, at), weight, slope) for at, weight, slope in pairs]
        made = []
        for k, (weight, slope) in enumerate(zip(self.cubic(part), self.cubic_slopes(part))):
            at, _ = self.held(axis, self.add(low, self.of(k - 1)), one)
            made.append((*self.tapped(axis, at), weight, slope))
        return made

    def polynomial(self, x: Value, first: float, *rest: float) -> Any:
        """(first·x + …)·x + …; what is 0 is not added, and only 1 in one step with the product:
        PyTorch's compiler has the others from products of their own."""
        made = self.of(first)
        for c in rest:
            if c == 1:
                made = self.fused(made, x, self.of(c))
            else:
                made = self.mul(made, x)
                made = self.add(made, self.of(c)) if c else made
        return made

    def cubic(self, part: Value) -> list[Any]:
        """The weights of four neighbours."""
        one, two = self.of(1), self.of(2)
        far, near = (A, -5 * A, 8 * A, -4 * A), (A + 2, -(A + 3), 0, 1)
        return [
            self.polynomial(self.add(part, one), *far),
            self.polynomial(part, *near),
            self.polynomial(self.sub(one, part), *near),
            self.polynomial(self.sub(two, part), *far),
        ]

    def cubic_slopes(self, part: Value) -> list[Any]:
        """Their derivatives."""
        at = [self.sub(self.of(k), part) for k in (-1, 0, 1, 2)]
        return [
            self.polynomial(at[0], -3 * A, -10 * A, -8 * A),
            self.polynomial(at[1], -3 * (A + 2), -2 * (A + 3), 0),
            self.polynomial(at[2], 3 * (A + 2), -2 * (A + 3), 0),
            self.polynomial(at[3], 3 * A, -10 * A, 8 * A),
        ]
