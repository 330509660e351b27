"""Values of expressions, for all threads that need them at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toytorch.cuda.emulator import arithmetic
from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator.access import MemorySystem
from toytorch.cuda.emulator.errors import At
from toytorch.cuda.emulator.functions import TABLE
from toytorch.cuda.emulator.text import printed
from toytorch.cuda.emulator.threads import Batch, Threads
from toytorch.cuda.emulator.types import DOUBLE, Pointer, Scalar, Type, Vector, Void
from toytorch.cuda.emulator.warps import block_barrier, shuffled, voted, warp_barrier
from toytorch.facts.hints import Array


@dataclass(slots=True)
class Frame:
    """The variables of one call, by slots: a number for all threads, or an array over positions.

    scopes  how many threads declared a variable; if as many write it, nobody's old value is left
    known   for variables declared without a value, who has written them; None: everybody
    """

    values: list[Any]
    scopes: list[int]
    known: list[Any]
    types: list[Type]
    breaks: list[list[Threads]] = field(default_factory=list)
    continues: list[list[Threads]] = field(default_factory=list)
    is_kernel: bool = False


class ExpressionRunner:
    """Computes expressions and keeps variables, for one batch of blocks.

    addresses   of the program's memories, by their numbers
    on_barrier  is told the line of each `__syncthreads()` and which blocks came to it
    """

    def __init__(
        self,
        batch: Batch,
        system: MemorySystem,
        addresses: list[Any],
        on_barrier: Callable[[int, Any], None],
        write: Callable[[str], None],
    ) -> None:
        self.batch, self.system, self.counts = batch, system, system.counts
        self.addresses, self.on_barrier, self.write = addresses, on_barrier, write
        self.rules: dict[type, Any] = {
            kind: getattr(self, name)
            for kind, name in (
                (p.Constant, "constant"), (p.Special, "special"), (p.Read, "read"),
                (p.Base, "base"), (p.Offset, "offset"), (p.Load, "load"),
                (p.Component, "component"), (p.MakeVector, "make_vector"), (p.Convert, "convert"),
                (p.Unary, "unary"), (p.Binary, "binary"), (p.Logic, "logic"),
                (p.Select, "select"), (p.Comma, "comma"), (p.Assign, "assign"),
                (p.Invoke, "invoke"), (p.Math, "math"), (p.Shuffle, "shuffle"),
                (p.Vote, "vote"), (p.Atomic, "atomic"), (p.Barrier, "barrier"),
                (p.Print, "print"), (p.Assertion, "assertion"),
                (p.Declare, "declare"), (p.Fresh, "fresh"), (p.Evaluate, "evaluate"),
                (p.If, "if_"), (p.Loop, "loop"), (p.Switch, "switch"), (p.Jump, "jump"),
                (p.Return, "return_"), (p.Block, "block"),
            )
        }  # fmt: skip

    def value(self, node: p.Expr, threads: Threads, frame: Frame) -> Any:
        """What an expression is: a number if all threads have the same, or one for each of them."""
        return self.rules[node.__class__](node, threads, frame)

    def run(self, node: p.Stmt, threads: Threads, frame: Frame) -> Threads:
        """Runs a statement; the threads that go on behind it."""
        return self.rules[node.__class__](node, threads, frame)

    # variables

    def frame(self, function: p.Function, arguments: list[Any], threads: Threads) -> Frame:
        """A call's variables; the last slot is for what is returned."""
        slots = function.slots + 1
        types = [type for _, type in function.parameters]
        types += [function.result] * (slots - len(types))
        frame = Frame([None] * slots, [threads.count] * slots, [None] * slots, types)
        frame.values[-1] = unknown(function.result)
        for slot, value in enumerate(arguments):
            self.write_register(frame, slot, value, threads)
        for slot, memory in function.stored:
            address, type = self.addresses[memory], function.parameters[slot][1]
            self.system.store(address, arguments[slot], type, threads, function.at)
        return frame

    def write_register(
        self, frame: Frame, slot: int, value: Array, threads: Threads, part: int | None = None
    ) -> None:
        """Arrays are never changed in place: others may hold them."""
        everybody = threads.count == frame.scopes[slot]
        old = frame.values[slot]
        if part is not None:
            parts = list(old)
            parts[part] = self.merged(old[part], value, threads, everybody)
            frame.values[slot] = tuple(parts)
        elif isinstance(value, tuple):
            before = old if isinstance(old, tuple) else (None,) * len(value)
            frame.values[slot] = tuple(
                self.merged(o, v, threads, everybody) for o, v in zip(before, value)
            )
        else:
            frame.values[slot] = self.merged(old, value, threads, everybody)
        known = frame.known[slot]
        if known is not None:
            if everybody:
                frame.known[slot] = None
            else:
                frame.known[slot] = known.copy()
                frame.known[slot][threads.key] = True

    def merged(self, old: Array, value: Array, threads: Threads, everybody: bool) -> Any:
        """A variable's value for all positions after some threads wrote it."""
        if everybody:
            if not isinstance(value, np.ndarray) or threads.all:
                return value
            whole = np.empty(self.batch.size, value.dtype)
        elif isinstance(old, np.ndarray):
            whole = old.copy()
        else:
            whole = np.full(self.batch.size, old, value.dtype)
        whole[threads.key] = value
        return whole

    def declare(self, node: p.Declare, threads: Threads, frame: Frame) -> Threads:
        frame.scopes[node.slot], frame.types[node.slot] = threads.count, node.type
        frame.known[node.slot] = None
        if node.value is None:
            frame.values[node.slot] = unknown(node.type)
            frame.known[node.slot] = np.zeros(self.batch.size, bool)
        else:
            self.counts.ran(node.at[0], threads)
            self.write_register(frame, node.slot, self.value(node.value, threads, frame), threads)
        return threads

    def fresh(self, node: p.Fresh, threads: Threads, frame: Frame) -> Threads:
        memory = self.system.at(self.addresses[node.memory])
        memory.forget(threads, node.zeros)
        for cell, value in node.values:
            address = self.value(cell.pointer, threads, frame)
            self.system.store(
                address, self.value(value, threads, frame), cell.type, threads, node.at
            )
        return threads

    # expressions

    def constant(self, node: p.Constant, threads: Threads, frame: Frame) -> Any:
        return node.value

    def special(self, node: p.Special, threads: Threads, frame: Frame) -> Any:
        return threads.pick(self.batch.special(node.name, node.axis))

    def read(self, node: p.Read, threads: Threads, frame: Frame) -> Any:
        known = frame.known[node.slot]
        if known is not None:
            seen = threads.pick(known)
            if not seen.all():
                key, said = (node.slot, node.at), f"Uninitialized variable `{node.name}` is read"
                who, times = int(np.argmin(seen)), int(np.count_nonzero(~seen))
                self.system.note(key, node.at, said, threads, who, times)
        value = frame.values[node.slot]
        if isinstance(value, tuple):
            return tuple(threads.pick(part) for part in value)
        return threads.pick(value)

    def base(self, node: p.Base, threads: Threads, frame: Frame) -> Any:
        return self.addresses[node.memory]

    def offset(self, node: p.Offset, threads: Threads, frame: Frame) -> Any:
        pointer = self.value(node.pointer, threads, frame)
        return pointer + self.value(node.index, threads, frame) * np.int64(node.size)

    def load(self, node: p.Load, threads: Threads, frame: Frame) -> Any:
        address = self.value(node.pointer, threads, frame)
        return self.system.load(address, node.type, threads, node.at)

    def component(self, node: p.Component, threads: Threads, frame: Frame) -> Any:
        return self.value(node.vector, threads, frame)[node.index]

    def make_vector(self, node: p.MakeVector, threads: Threads, frame: Frame) -> Any:
        return tuple(self.value(part, threads, frame) for part in node.parts)

    def convert(self, node: p.Convert, threads: Threads, frame: Frame) -> Any:
        value = self.value(node.value, threads, frame)
        if isinstance(node.type, Void):
            return None
        if isinstance(node.value.type, Scalar) and isinstance(node.type, Scalar):
            return arithmetic.converted(value, node.value.type, node.type)
        return value

    def unary(self, node: p.Unary, threads: Threads, frame: Frame) -> Any:
        return arithmetic.unary(node.sign, self.value(node.operand, threads, frame))

    def binary(self, node: p.Binary, threads: Threads, frame: Frame) -> Any:
        left = self.value(node.left, threads, frame)
        right = self.value(node.right, threads, frame)
        return self.operation(node.sign, left, right, node.left.type, threads, node.at)

    def operation(
        self, sign: str, left: Array, right: Array, within: Type, threads: Threads, at: At
    ) -> Any:
        """An operator on values of the type `within`, counted."""
        if isinstance(within, Scalar) and within.is_float and sign in "+-*/":
            self.counts.flops(at[0], threads.count, within is DOUBLE)
        try:
            return arithmetic.binary(sign, left, right, within)
        except ZeroDivisionError:
            who = int(np.argmax(right == 0)) if isinstance(right, np.ndarray) else 0
            self.system.fail(
                "Division of an integer by zero at {place}, {thread}", threads, who, at
            )

    def logic(self, node: p.Logic, threads: Threads, frame: Frame) -> Any:
        left = self.value(node.left, threads, frame)
        undecided = left if node.sign == "&&" else np.logical_not(left)
        need, _ = threads.split(undecided)
        if not need.count:
            return left
        right = self.value(node.right, need, frame)
        if need is threads:
            return right
        found = left.copy()
        found[undecided] = right
        return found

    def select(self, node: p.Select, threads: Threads, frame: Frame) -> Any:
        condition = self.value(node.condition, threads, frame)
        yes, no = threads.split(condition)
        if not no.count:
            return self.value(node.yes, yes, frame)
        if not yes.count:
            return self.value(node.no, no, frame)
        one, other = self.value(node.yes, yes, frame), self.value(node.no, no, frame)
        if isinstance(one, tuple):
            return tuple(chosen(condition, a, b) for a, b in zip(one, other))
        return chosen(condition, one, other)

    def comma(self, node: p.Comma, threads: Threads, frame: Frame) -> Any:
        self.value(node.first, threads, frame)
        return self.value(node.second, threads, frame)

    def assign(self, node: p.Assign, threads: Threads, frame: Frame) -> Any:
        place: p.Place = node.place
        address: Any = None
        if isinstance(place, p.Cell):
            address = self.value(place.pointer, threads, frame)
        value = self.value(node.value, threads, frame)
        old: Any = None
        if node.sign:
            assert node.within is not None
            if isinstance(place, p.Cell):
                old = self.system.load(address, place.type, threads, node.at)
            else:
                old = self.read(
                    p.Read(place.type, node.at, place.slot, "a variable"), threads, frame
                )
                old = old if place.part is None else old[place.part]
            left = self.converted(old, place.type, node.within)
            value = self.operation(node.sign, left, value, node.within, threads, node.at)
            value = self.converted(value, node.within, place.type)
        if isinstance(place, p.Cell):
            self.system.store(address, value, place.type, threads, node.at)
        else:
            self.write_register(frame, place.slot, value, threads, place.part)
        return old if node.gives_old else value

    def converted(self, value: Array, source: Type, target: Type) -> Any:
        if isinstance(source, Scalar) and isinstance(target, Scalar):
            return arithmetic.converted(value, source, target)
        return value

    # calls

    def block(self, node: p.Block, threads: Threads, frame: Frame) -> Threads:
        """Runs the body of a function."""
        raise NotImplementedError  # in run

    def invoke(self, node: p.Invoke, threads: Threads, frame: Frame) -> Any:
        arguments = [self.value(argument, threads, frame) for argument in node.arguments]
        inner = self.frame(node.function, arguments, threads)
        assert node.function.body is not None
        left = self.block(node.function.body, threads, inner)
        if left.count and not isinstance(node.type, Void):
            self.system.note(
                ("result", node.at), node.at,
                f"{node.function.name} ends without a result, and one is read", left, 0, left.count,
            )  # fmt: skip
        value = inner.values[-1]
        if isinstance(value, tuple):
            return tuple(threads.pick(part) for part in value)
        return threads.pick(value)

    def math(self, node: p.Math, threads: Threads, frame: Frame) -> Any:
        name, _, number = node.name.partition(":")
        function = TABLE[name][int(number)]
        if function.flops:
            self.counts.flops(node.at[0], function.flops * threads.count, node.type is DOUBLE)
        return function.compute(*[self.value(a, threads, frame) for a in node.arguments])

    def shuffle(self, node: p.Shuffle, threads: Threads, frame: Frame) -> Any:
        parts = (node.mask, node.value, node.lane, node.width)
        mask, value, lane, width = [self.value(part, threads, frame) for part in parts]
        return shuffled(node.kind, mask, value, lane, width, threads, self.system, node.at)

    def vote(self, node: p.Vote, threads: Threads, frame: Frame) -> Any:
        if node.mask is None or node.predicate is None:  # __activemask()
            return threads.present[threads.rows]
        mask = self.value(node.mask, threads, frame)
        predicate = self.value(node.predicate, threads, frame)
        return voted(node.kind, mask, predicate, threads, self.system, node.at)

    def atomic(self, node: p.Atomic, threads: Threads, frame: Frame) -> Any:
        address = self.value(node.pointer, threads, frame)
        values = [self.value(argument, threads, frame) for argument in node.arguments]
        assert isinstance(node.type, Scalar)
        if node.type.is_float and node.kind == "add":
            self.counts.flops(node.at[0], threads.count, node.type is DOUBLE)
        return self.system.update(
            address, node.kind, values, node.type, threads, node.at, node.used
        )

    def barrier(self, node: p.Barrier, threads: Threads, frame: Frame) -> None:
        if node.mask is None:
            self.on_barrier(node.at[0], block_barrier(threads, self.system, node.at))
        else:
            warp_barrier(self.value(node.mask, threads, frame), threads, self.system, node.at)

    def print(self, node: p.Print, threads: Threads, frame: Frame) -> Any:
        values = [self.value(argument, threads, frame) for argument in node.arguments]
        self.write(printed(node.format, values, threads))
        return np.int32(len(values))

    def assertion(self, node: p.Assertion, threads: Threads, frame: Frame) -> None:
        holds = self.value(node.condition, threads, frame)
        _, failed = threads.split(holds)
        if failed.count:
            text = self.system.source.line(node.at[0]).strip().rstrip(";")
            text = text.replace("{", "{{").replace("}", "}}")
            self.system.fail(
                f"Assertion failed at {{place}}, {{thread}}: {text}", failed, 0, node.at
            )


def unknown(type: Type) -> Any:
    """What a variable holds before anything is written: all bits are set, which no float is."""
    if isinstance(type, Vector):
        return (unknown(type.element),) * type.count
    if isinstance(type, Pointer):
        return np.int64(0)
    if not isinstance(type, Scalar):
        return None
    return np.full(type.size, 0xFF, np.uint8).view(type.dtype)[0]


def chosen(condition: Array, yes: Array, no: Array) -> Any:
    """`yes` holds the values where a condition holds, `no` the others."""
    found = np.empty(len(condition), yes.dtype)
    found[condition] = yes
    found[~condition] = no
    return found
