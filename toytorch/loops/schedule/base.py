"""What the three kinds of schedules share: building statements, and values with what they need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toytorch.loops.language.program import Program
from toytorch.loops.language.steps import Argument, Step
from toytorch.loops.schedule.layout import Layout, arrays_of
from toytorch.loops.schedule.nest import (
    Buffer,
    For,
    Index,
    Let,
    Load,
    Nest,
    Place,
    Statement,
    Store,
    needed,
)
from toytorch.loops.schedule.pieces import Pieces
from toytorch.loops.schedule.stages import Plan

Where = dict[int, tuple[Index, ...]]  # the indices along each axis, at this point of the loops


class Schedule:
    """What the three modes share: building statements, and emitting values with what they need."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        self.plan = Plan(program, layout)
        self.blocks: list[list[Statement]] = [[]]
        self.counts: dict[str, int] = {}
        self.taken = {*layout.names, *(n.name for n in program.scalars), "lo", "hi"}
        self.scratch: list[Buffer] = []
        self.buffers = {}
        same = dict(layout.aliases)
        arrays = arrays_of(program)
        for k, (a, inner) in enumerate(zip(arrays, layout.inner)):
            axes = tuple(x for x, group in enumerate(layout.axes) if set(group) & set(a.dims))
            partner = self.buffer_name(same[k]) if k in same else ""
            self.buffers[k] = Buffer(self.buffer_name(k), a.type, axes, inner, same=partner)

    def buffer_name(self, k: int) -> str:
        """The name of array k; an output that has an input's name gets "out_" before it."""
        name, count = self.layout.names[k], len(self.program.outputs)
        if k < count and (name in self.layout.names[count:] or name in self.layout.names[:k]):
            name = f"out{k}_{name}"  # an input that is also an output, or one value stored twice
            self.taken.add(name)
        return name

    def finish(self, range_: tuple[int, ...], tile: int = 1) -> Nest:
        extents = tuple(
            dict.fromkeys(str(s.args[0]) for s in self.program.steps if s.op == "extent")
        )
        program, buffers = self.program, (*self.buffers.values(), *self.scratch)
        body, outputs = needed(tuple(self.blocks[0])), len(program.outputs)
        return Nest(
            buffers, program.scalars, self.layout.axes, extents, range_, tile, body, outputs,
            arrays_of(program),
        )  # fmt: skip

    # -- building ---------------------------------------------------------------------------------

    def fresh(self, name: str) -> str:
        """name_0, name_1 ...: the first that is free."""
        made = ""
        while not made or made in self.taken:
            k = self.counts[name] = self.counts.get(name, -1) + 1
            made = f"{name}_{k}"
        self.taken.add(made)
        return made

    def unique(self, name: str) -> str:
        """The name itself, or a numbered one if it is taken."""
        if name in self.taken:
            return self.fresh(name)
        self.taken.add(name)
        return name

    def add(self, statement: Statement) -> None:
        self.blocks[-1].append(statement)

    def let(self, name: str, op: str, *args: Index) -> str:
        """An index that is computed."""
        name = self.unique(name)
        self.add(Let(name, "index", op, args))
        return name

    @contextmanager
    def loop(
        self, index: str, start: Index, stop: Index, kind: str = "serial", step: int = 1
    ) -> Iterator[str]:
        """The statements added inside are the body of a loop."""
        index = self.unique(index)
        self.blocks.append([])
        yield index
        body = tuple(self.blocks.pop())
        self.add(For(index, start, stop, body, kind, step))

    def decompose(self, index: str, axes: list[int]) -> Where:
        """The index along each of these axes, of the one that counts through them all."""
        where: Where = {}
        for axis in reversed(axes[1:]):
            where[axis] = (self.let(f"i{axis}", "rest", index, f"n{axis}"),)
            index = self.let("q", "quotient", index, f"n{axis}")
        if axes:
            where[axes[0]] = (index,)
        return where

    # -- values -----------------------------------------------------------------------------------

    def place(self, buffer: Buffer, where: Where) -> Place:
        return tuple((axis, i) for axis in buffer.axes for i in where.get(axis, ()))

    def emit(self, roots: list[str], env: dict[str, Argument], where: Where) -> None:
        """Makes `env` know the roots, computing what they need at this point of the loops."""
        for name in self.plan.needed(roots, env):
            if name in self.plan.inputs:
                k = self.plan.inputs[name]
                made = self.fresh(name)
                self.add(
                    Load(
                        made,
                        self.plan.types[name],
                        self.buffers[k].name,
                        self.place(self.buffers[k], where),
                    )
                )
                env[name] = made
            elif name in self.plan.scalars:
                env[name] = name
            else:
                step = self.plan.steps[name]
                assert isinstance(step, Step), f"{step} is needed before it is there"
                env[name] = made = self.fresh(name)
                if step.op == "extent":
                    self.add(Let(made, step.type, "cast", (f"size_{step.args[0]}",)))
                    continue
                if step.op == "index":
                    self.add(Let(made, step.type, "cast", (self.index_along(step.args[0], where),)))
                    continue
                args = tuple(env[a] if isinstance(a, str) else a for a in step.args)
                self.add(Let(made, step.type, step.op, args))

    def load_kept(
        self, roots: list[str], env: dict[str, Argument], kept: dict[str, tuple[Buffer, Place]]
    ) -> None:
        """Loads those of the kept values that the roots need; each has a buffer and a place in it."""
        for name in self.plan.needed(roots, {*env, *kept}) + roots:
            step = self.plan.steps.get(name)
            for a in (name, *(step.args if step else ())):
                if a in kept and a not in env:
                    buffer, place = kept[str(a)]
                    env[str(a)] = made = self.fresh(str(a))
                    self.add(Load(made, buffer.type, buffer.name, place))

    def written_over(self) -> dict[str, str]:
        """The values that are written over an input, and that input."""
        arrays = arrays_of(self.program)
        return {arrays[o].name: arrays[i].name for o, i in self.layout.aliases}

    def kept_before(self, pieces: Pieces, p: int, j: Index) -> dict[str, tuple[Buffer, Place]]:
        """What pieces before the p-th have kept of an element."""
        place: Place = ((-1, j),)
        return {n: (b, place) for n, b in pieces.buffers.items() if pieces.of(n) < p}

    def index_along(self, dim: Argument, where: Where) -> Index:
        """The index along a dimension, which is an axis of its own, at this point of the loops."""
        axis = next(a for a, group in enumerate(self.layout.axes) if dim in group)
        first, *others = where[axis]
        for other in others:
            first = self.let("at", "add", first, other)
        return first

    def store_outputs(self, outputs: list[int], env: dict[str, Argument], where: Where) -> None:
        for k in outputs:
            buffer = self.buffers[k]
            self.add(
                Store(buffer.name, self.place(buffer, where), env[self.program.outputs[k].name])
            )
