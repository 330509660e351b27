"""From a Program and a Layout to loops.

Without reductions there is one loop over the last axis, inside one over all others. With them, a
row (or a block of columns) is gone over several times while it lies in the cache: first for what
the first reductions need, then for what follows from those, and so on. A value that a later pass
needs again is computed again if that is cheap, and kept in the output's memory or in scratch
otherwise, so that no exp is computed twice.

    >>> from toytorch.loops.schedule.layout import Layout
    >>> p = Program.parse("x[i,j] -> y[i,j]\\n e = exp(x)\\n y = e / sum[j](e)")
    >>> rows = Layout("rows", (("i",), ("j",)), (False, True), ("1", "1"), (), ("y", "x"))
    >>> print(schedule(p, rows))
    rows r from lo to hi:
        var a_total float64 = 0.0
        serial k from 0 to n1 step 1024:
            rest = sub(n1, k)
            size = minimum(rest, 1024)
            var a_part float32 = 0.0
            lanes j from 0 to size:
                x_0 = x[r, k + j]
                e_0 = exp(x_0)
                a_part = add(a_part, e_0)
                y[r, k + j] = e_0
            a_wide = cast(a_part)
            a_total = add(a_total, a_wide)
        join a_total by add
        a_0 = cast(a_total)
        lanes j_0 from 0 to n1:
            e_1 = y[r, j_0]
            y_0 = div(e_1, a_0)
            y[r, j_0] = y_0
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from toytorch.loops.language.program import Argument, Program, Step
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
from toytorch.loops.schedule.stages import Plan

Where = dict[int, tuple[Index, ...]]  # the indices along each axis, at this point of the loops


def schedule(program: Program, layout: Layout, flat: bool = False) -> Nest:
    """The loops of a program over arrays of a layout.

    flat   without reductions: one loop over the elements of all axes, as GPUs like it
    """
    from toytorch.loops.schedule.columns import Columns
    from toytorch.loops.schedule.rows import Rows

    if layout.mode == "rows":
        return Rows(program, layout).nest()
    if layout.mode == "columns":
        return Columns(program, layout).nest()
    return Flat(program, layout).nest(flat)


class Schedule:
    """What the three modes share: building statements, and emitting values with what they need."""

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        self.plan = Plan(program, layout)
        self.blocks: list[list[Statement]] = [[]]
        self.counts: dict[str, int] = {}
        self.taken = {*layout.names, *(n.name for n in program.numbers), "lo", "hi"}
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
        return Nest(
            (*self.buffers.values(), *self.scratch),
            self.program.numbers,
            self.layout.axes,
            extents,
            range_,
            tile,
            needed(tuple(self.blocks[0])),
            len(self.program.outputs),
            arrays_of(self.program),
        )

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
            elif name in self.plan.numbers:
                env[name] = name
            else:
                step = self.plan.steps[name]
                assert isinstance(step, Step), f"{step} is needed before it is there"
                env[name] = made = self.fresh(name)
                if step.op == "extent":
                    self.add(Let(made, step.type, "cast", (f"size_{step.args[0]}",)))
                    continue
                args = tuple(env[a] if isinstance(a, str) else a for a in step.args)
                self.add(Let(made, step.type, step.op, args))

    def store_outputs(self, outputs: list[int], env: dict[str, Argument], where: Where) -> None:
        for k in outputs:
            buffer = self.buffers[k]
            self.add(
                Store(buffer.name, self.place(buffer, where), env[self.program.outputs[k].name])
            )


class Flat(Schedule):
    """Elementwise programs."""

    def nest(self, flat: bool) -> Nest:
        """One loop over the last axis inside one over the others, or one over everything."""
        axes = list(range(len(self.layout.axes)))
        if flat:
            with self.loop("r", "lo", "hi", "rows") as r:
                self.body(self.decompose(r, axes))
            return self.finish(tuple(axes))
        if len(axes) == 1:
            size = self.let("size", "sub", "hi", "lo")
            with self.loop("j", 0, size, "lanes") as j:
                self.body({0: ("lo", j)})
            return self.finish((0,))
        with self.loop("r", "lo", "hi", "rows") as r:
            where = self.decompose(r, axes[:-1])
            with self.loop("j", 0, f"n{axes[-1]}", "lanes") as j:
                self.body({**where, axes[-1]: (j,)})
        return self.finish(tuple(axes[:-1]))

    def body(self, where: Where) -> None:
        env: dict[str, Argument] = {}
        self.emit([o.name for o in self.program.outputs], env, where)
        self.store_outputs(list(range(len(self.program.outputs))), env, where)
