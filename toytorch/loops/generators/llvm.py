"""A Nest as LLVM instructions: the function `core_NAME`.

core(array pointer..., scalar..., size..., stride..., lo, hi) does the part lo..hi of the nest's
range and returns whether an argument was none for the fast versions (an angle too large, say). What
no two arrays share is told to LLVM (`noalias`): outputs are no input's memory, or exactly an
input's, which the layout knows.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from toytorch.loops.language.parse import steps_of
from toytorch.loops.language.primitives import PRIMITIVES, STATED
from toytorch.loops.language.steps import Argument
from toytorch.loops.language.types import TYPES, computed, kind
from toytorch.loops.llvm.builder import Builder, ir
from toytorch.loops.llvm.ops import Operations
from toytorch.loops.processor import Processor
from toytorch.loops.schedule.nest import (
    Buffer,
    For,
    Let,
    Load,
    Nest,
    Place,
    Statement,
    Store,
    Update,
    Var,
    statements,
    strides_of,
)

if TYPE_CHECKING:
    from llvmlite.ir import Module, Value


REMAINDERS = ("fmod", "remainder", "floordiv")
LIMITED = ("sin", "cos", "tan", *REMAINDERS)  # what has a fast version for usual arguments only
LOOP = "its own name"  # of a loop's note; `jit` puts it there
# Additions in the body of a loop, from which it is two vectors at a time and what is left with a
# mask; and from which everything is done with a mask, in half the code.
MIDDLE, LONG = 8, 40
BOTH = 2
SUMS = 8  # vectors of 128 bits that a short loop adds up in: LLVM's two are 128 terms to a number


def has_limits(nest: Nest) -> bool:
    """Whether there is a sine, or a remainder of real numbers: then there is a second, slow function
    for large angles and quotients."""
    return any(isinstance(s, Let) and is_limited(s) for s in statements(nest.body))


def is_limited(s: Let) -> bool:
    """Whether it is such a function, or one in whose text there is one."""
    if s.op in STATED:
        return any(step.op in LIMITED for step in every_step(s.op))
    return s.op in LIMITED and kind(s.type) == "f"


def every_step(op: str) -> Iterator[Any]:
    """The steps of a function of the language, and of those in them."""
    for s in steps_of(op, "float64"):
        yield s
        if s.op in STATED:
            yield from every_step(s.op)


def cost_of(body: tuple[Statement, ...]) -> int:
    """What an iteration costs, in additions; 0 where totals are added up, for which LLVM knows best."""
    if any(isinstance(s, Update) for s in body):
        return 0
    return sum(PRIMITIVES[s.op].cost for s in body if isinstance(s, Let) and s.op in PRIMITIVES)


class Core(Builder):
    """Writes core_NAME into a module."""

    def __init__(
        self, module: Module, nest: Nest, name: str, processor: Processor, slow: bool = False
    ) -> None:
        self.nest, self.processor, self.slow = nest, processor, slow
        probe = Operations(ir(), ir().IRBuilder(), processor, slow, None)
        pointers = [b for b in nest.buffers if not b.same]
        types = [probe.element(b.type).as_pointer() for b in pointers]
        types += [probe.llvm(s.type) for s in nest.scalars]
        sizes = [*(f"n{a}" for a in range(len(nest.axes))), *(f"size_{d}" for d in nest.extents)]
        strides = strides_of(nest)
        types += ["word"] * (len(sizes) + len(strides) + 2)
        super().__init__(name, "half", types, module)
        self.function.linkage = "internal"
        self.function.attributes.add("noinline")
        args = iter(self.function.args)
        self.base: dict[str, Any] = {}
        for b in pointers:
            self.base[b.name] = pointer = next(args)
            pointer.add_attribute("noalias")
        self.base |= {b.name: self.base[b.same] for b in nest.buffers if b.same}
        self.values: dict[str, Any] = {s.name: next(args) for s in nest.scalars}
        self.types: dict[str, str] = {s.name: s.type for s in nest.scalars}
        for size in sizes:
            self.values[size], self.types[size] = next(args), "index"
        found = {pair: next(args) for pair in strides}
        same = {b.name: b.same or b.name for b in nest.buffers}
        self.strides = {
            (b.name, a): found.get((same[b.name], a)) for b in nest.buffers for a in b.axes
        }
        for bound in ("lo", "hi"):
            self.values[bound], self.types[bound] = next(args), "index"
        self.buffers = {b.name: b for b in nest.buffers}
        large = self.alloca("half")
        self.b.store(self.half(0), large)
        self.ops = Operations(self.ir, self.b, processor, slow, large)
        self.places: dict[str, Any] = {}
        self.lanes: set[str] | None = None  # inside a loop of vectors: what varies along it
        self.made: set[Argument] = set()  # values that were computed, by their names
        self.body(nest.body, "")
        self.b.ret(self.b.load(large))

    # -- statements -------------------------------------------------------------------------------

    def body(self, statements: tuple[Statement, ...], innermost: str) -> None:
        """Writes statements; `innermost` is the index of the loop around them."""
        for s in statements:
            if isinstance(s, For):
                self.nested(s)
            elif isinstance(s, Let):
                self.values[s.name], self.types[s.name] = self.let(s), s.type
                self.made.add(s.name)
                if self.lanes and not self.lanes.isdisjoint(s.args):
                    self.lanes.add(s.name)
            elif isinstance(s, Load):
                self.element(s, innermost)
            elif isinstance(s, Store):
                buffer = self.buffers[s.buffer]
                value = self.value(s.value, computed(buffer.type))
                address = self.address(buffer, s.place, innermost)
                self.ops.store(value, address, buffer.type, TYPES[buffer.type].bytes)
            elif isinstance(s, Var):
                self.variable(s)
            elif isinstance(s, Update):
                self.update(s)

    def variable(self, s: Var) -> None:
        self.places[s.name] = self.alloca(self.ops.llvm(s.type))
        self.types[s.name] = s.type
        self.b.store(self.value(s.start, s.type), self.places[s.name])

    def update(self, s: Update) -> None:
        """A total may be taken in any order ("reassoc"): that is what makes vectors of it."""
        type, place = self.types[s.name], self.places[s.name]
        value, before = self.value(s.value, type), self.b.load(place)
        if kind(type) == "f" and s.op in ("add", "mul"):
            make = self.b.fadd if s.op == "add" else self.b.fmul
            made = make(before, value, flags=("reassoc", "contract"))
        elif s.op == "fmax":  # LLVM wants the promise of no NaN; the instruction leaves them out
            flags = ("nnan", "nsz")
            larger = self.b.fcmp_ordered(">", value, before, flags=flags)
            made = self.b.select(larger, value, before, flags=flags)
        else:
            made = self.ops.do(s.op, type, [before, value])
        self.b.store(made, place)

    def nested(self, s: For) -> None:
        """for index in range(start, stop, step), in the way that suits its body."""
        start, stop = self.value(s.start, "index"), self.value(s.stop, "index")
        cost = cost_of(s.body)
        if not self.processor.masks or s.kind != "lanes" or cost < MIDDLE or self.calls(s.body):
            sums = any(isinstance(u, Update) and u.op in ("add", "mul") for u in s.body)
            narrow = sums and self.processor.vector < 32 and cost < MIDDLE
            self.iterations(s, start, stop, self.advice(interleave_count=SUMS) if narrow else None)
        elif cost < LONG:
            together = BOTH * self.width(s.body)
            whole = self.b.add(start, self.b.and_(self.b.sub(stop, start), self.word(-together)))
            advice = self.advice(vectorize_width=together // BOTH, interleave_count=BOTH)
            self.iterations(s, start, whole, advice)
            self.iterations(s, whole, stop, self.advice(vectorize_predicate_enable=True))
        else:
            self.iterations(s, start, stop, self.advice(vectorize_predicate_enable=True))

    def calls(self, body: tuple[Statement, ...]) -> bool:
        """Whether there is what LLVM cannot make vectors of: functions of the C library, and
        divisions of integers."""
        lets = [s for s in body if isinstance(s, Let)]
        if self.slow and any(map(is_limited, lets)):
            return True
        return any(s.op in REMAINDERS and kind(s.type) != "f" for s in lets)

    def iterations(self, s: For, start: Value, stop: Value, advice: Any = None) -> None:
        """A loop, with the test before the first iteration."""
        b = self.b
        head, after = (self.block() for _ in range(2))
        before = b.block
        b.cbranch(b.icmp_signed("<", start, stop), head, after)
        b.position_at_end(head)
        i = b.phi(self.word)
        i.add_incoming(start, before)
        self.values[s.index], self.types[s.index] = i, "index"
        self.lanes = {s.index} if s.kind == "lanes" else None
        self.body(s.body, s.index)
        self.lanes = None
        following = b.add(i, self.word(s.step), flags=["nsw"])
        i.add_incoming(following, b.block)
        back = b.cbranch(b.icmp_signed("<", following, stop), head, after)
        if advice is not None:
            back.set_metadata("llvm.loop", advice)
        b.position_at_end(after)

    def width(self, body: tuple[Statement, ...]) -> int:
        """How many numbers of the widest type of a loop are in a vector."""
        widest = max(
            TYPES[s.type].bytes for s in body if isinstance(s, (Let, Load)) and s.type != "index"
        )
        return self.processor.vector // max(widest, 4)

    def advice(self, **words: int) -> Any:
        """A note to LLVM's vectorizer, of a loop's own."""
        add = self.function.module.add_metadata
        return add(
            [
                LOOP,
                *(
                    add(
                        [
                            f"llvm.loop.{name.replace('_', '.', 2)}",
                            self.ir.IntType(1 if value is True else 32)(int(value)),
                        ]
                    )
                    for name, value in words.items()
                ),
            ]
        )

    # -- values -----------------------------------------------------------------------------------

    def value(self, a: Argument, type: str) -> Any:
        """A named value or a constant of this type."""
        if not isinstance(a, str):
            return self.word(a) if type == "index" else self.ops.constant(a, type)
        if a in self.places:
            return self.b.load(self.places[a])
        return self.values[a]

    def let(self, s: Let) -> Any:
        if s.type == "index":
            return self.counted(s)
        if s.op == "cast":
            a = s.args[0]
            source = self.types[a] if isinstance(a, str) else s.type
            return self.ops.convert(self.value(a, source), source, s.type)
        named = [self.types[a] for a in s.args[s.op == "where" :] if isinstance(a, str)]
        type = named[0] if named else s.type
        args = [self.value(a, type) for a in s.args]
        if s.op == "where":
            args[0] = self.value(s.args[0], "bool")
            for k, a in enumerate(s.args[1:], 1):
                if isinstance(a, float) and math.isinf(a) and kind(type) == "f":
                    args[k] = self.hidden(a, type)
        if s.op == "div" and self.lanes and s.args[1] in self.made - self.lanes:
            return self.ops.div_by(type, *args)
        return self.ops.do(s.op, type, args)

    def hidden(self, infinity: float, type: str) -> Any:
        """An infinity that LLVM does not see as a constant.

        The largest of x where a mask is False and -inf elsewhere is a loop that LLVM makes vectors
        of, unless it knows the constant: then it leaves the masked elements out, one by one, which
        takes ten times as long. No part of a range ends at a negative place, so the sign bit of
        `hi` is 0.
        """
        with self.b.goto_entry_block():
            zero = self.b.lshr(self.values["hi"], self.word(63))
            one = self.ops.constant(math.copysign(1.0, infinity), type)
            return self.b.fdiv(one, self.b.uitofp(zero, self.ops.llvm(type)))

    def counted(self, s: Let) -> Any:
        b = self.b
        x, y = (self.value(a, "index") for a in s.args)
        if s.op == "minimum":
            return b.select(b.icmp_signed("<", x, y), x, y)
        if s.op in ("quotient", "rest"):
            return b.udiv(x, y) if s.op == "quotient" else b.urem(x, y)
        return getattr(b, s.op)(x, y, flags=["nsw"])

    # -- memory -----------------------------------------------------------------------------------

    def element(self, s: Load, innermost: str) -> None:
        buffer = self.buffers[s.buffer]
        place = self.address(buffer, s.place, innermost)
        self.types[s.name] = computed(buffer.type)
        self.values[s.name] = self.ops.load(place, buffer.type, TYPES[buffer.type].bytes)
        if self.lanes and buffer.inner != "0" and any(i in self.lanes for _, i in s.place):
            self.lanes.add(s.name)

    def address(self, buffer: Buffer, place: Place, innermost: str) -> Any:
        """The address of an element; the innermost index is added last, from one row pointer."""
        b = self.b
        pointer, last = self.base[buffer.name], None
        for axis, index in place:
            step = self.value(index, "index")
            if axis == len(self.nest.axes) - 1 and buffer.inner in "01":
                if buffer.inner == "0":
                    continue
            elif axis >= 0:
                step = b.mul(step, self.strides[buffer.name, axis], flags=["nsw"])
            if index == innermost:
                last = step
            else:
                pointer = b.gep(pointer, [step], inbounds=True)
        return pointer if last is None else b.gep(pointer, [last], inbounds=True)
