"""Reductions along rows: the reduced axes lie innermost, a row is an iteration of the outer loop.

A sum is taken in blocks of 1024 elements in the array's own type, by vector instructions, and the
blocks are added in float64.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

from toytorch.loops.language.primitives import JOINS, start_of
from toytorch.loops.language.steps import Argument, Reduce
from toytorch.loops.language.types import kind
from toytorch.loops.schedule.base import Schedule, Where
from toytorch.loops.schedule.nest import Buffer, Index, Join, Let, Nest, Place, Store, Update, Var
from toytorch.loops.schedule.pieces import Pieces

# Elements that are summed in the type itself before they are added to the total in float64. The same on
# every processor: the error of a sum follows from it (with 4096 it was four times as large at 128
# bits), and GPUs run the same loops.
BLOCK = 1024
OF_DOUBLES = 256  # whose totals are no wider: with 1024 the error was twice PyTorch's


@dataclass(frozen=True)
class Pass:
    """What one pass over a row is for: totals, values to be kept, outputs; and all that it needs."""

    stage: int
    reduces: list[Reduce]
    keep: list[str]
    outputs: list[int]
    roots: list[str]


class Rows(Schedule):
    """Programs with reductions over the innermost axes."""

    def nest(self, whole: bool = False) -> Nest:
        """whole   every loop in one piece, as GPUs like it"""
        self.whole = whole
        reduced = self.layout.reduced
        self.kept_axes = [a for a, gone in enumerate(reduced) if not gone]
        self.gone_axes = [a for a, gone in enumerate(reduced) if gone]
        self.kept_in = {name: self.kept_buffer(name) for name in self.plan.kept}
        with self.loop("r", "lo", "hi", "rows") as r:
            row = self.decompose(r, self.kept_axes)
            env: dict[str, Argument] = {}
            for p in range(self.plan.last + 1):
                self.row_values(p, env, row)
                self.one_pass(p, env, row)
            self.row_values(self.plan.last + 1, env, row)
            names = [self.program.outputs[k].name for k in self.plan.row_outputs]
            self.emit(names, env, row)
            self.store_outputs(self.plan.row_outputs, env, row)
        return self.finish(tuple(self.kept_axes))

    def kept_buffer(self, name: str, *block: int) -> Buffer:
        """Where a kept value waits: in an output, or in scratch as long as a row (of a `block`)."""
        if name in self.plan.kept_in:
            return self.buffers[self.plan.kept_in[name]]
        size: tuple[Index, ...] = (*(f"n{a}" for a in self.gone_axes), *block)
        made = Buffer(self.unique(f"kept_{name}"), self.plan.types[name], (-1,), size=size)
        self.scratch.append(made)
        return made

    def row_values(self, p: int, env: dict[str, Argument], row: Where) -> None:
        """Everything that is the same along the row and can be computed before pass p."""
        ready = [
            s.name
            for s in self.program.steps
            if s.name not in self.plan.full
            and s.name not in env
            and self.plan.stage[s.name] <= p
            and not isinstance(s, Reduce)
        ]
        self.emit(ready, env, row)

    def work_of(self, p: int) -> Pass:
        """The reductions, kept values and outputs of stage p."""
        reduces = self.plan.reduces_in[p]
        keep = [name for name in self.plan.kept if self.plan.stage[name] == p]
        outputs = [k for k, stage in self.plan.stored_in.items() if stage == p]
        roots = [s.arg for s in reduces] + keep + [self.program.outputs[k].name for k in outputs]
        return Pass(p, reduces, keep, outputs, roots)

    def one_pass(self, p: int, env: dict[str, Argument], row: Where) -> None:
        """Goes over the row for what stage p is for."""
        work = self.work_of(p)
        if not work.roots:
            return
        totals = {s.name: self.total(s) for s in work.reduces}
        where = dict(row)
        with self.outer(self.gone_axes[:-1], where) as offset:
            self.along(work, totals, env, where, offset)
        for s in work.reduces:
            name = totals[s.name]
            self.add(Join(name, JOINS[s.op]))
            env[s.name] = self.narrow(s, name)

    def total(self, s: Reduce) -> str:
        """The running total of a reduction; in float64 for sums of real numbers."""
        name = self.unique(f"{s.name}_total")
        self.add(Var(name, self.wide(s), start_of(s.op, s.type)))
        return name

    def blocked(self, s: Reduce) -> bool:
        return s.op in ("sum", "prod") and kind(s.type) == "f"

    def wide(self, s: Reduce) -> str:
        return "float64" if self.blocked(s) else s.type

    def narrow(self, s: Reduce, total: str) -> str:
        """The total as a value of the reduction's own type."""
        made = self.fresh(s.name)
        self.add(Let(made, s.type, "cast", (total,)))
        return made

    @contextmanager
    def outer(self, axes: list[int], where: Where) -> Iterator[Place]:
        """Loops over the reduced axes but the last; gives the place of a row's part in scratch."""
        with ExitStack() as loops:
            offset: str | None = None
            for axis in axes:
                where[axis] = (loops.enter_context(self.loop(f"i{axis}", 0, f"n{axis}")),)
                if offset is not None:
                    offset = self.let("offset", "mul", offset, f"n{axis}")
                    offset = self.let("offset", "add", offset, where[axis][0])
                else:
                    offset = str(where[axis][0])
            if offset is None:
                yield ()
            else:
                yield ((-1, self.let("offset", "mul", offset, f"n{self.gone_axes[-1]}")),)

    def along(
        self,
        work: Pass,
        totals: dict[str, str],
        env: dict[str, Argument],
        where: Where,
        offset: Place,
    ) -> None:
        """The loop (or the loop over blocks and those in a block) over the last axis."""
        last = self.gone_axes[-1]
        sums = [s for s in work.reduces if self.blocked(s)]
        pieces = self.pieces(work, env)

        def element(q: int, totals: dict[str, str], at: Place, j: Index) -> None:
            there = {**where, last: tuple(i for _, i in at)}
            self.element(work, pieces, q, totals, env, there, (*offset, *at), j)

        if not sums and not pieces.last:
            with self.loop("j", 0, f"n{last}", "lanes") as j:
                element(0, totals, ((-1, j),), j)
            return
        doubles = not pieces.last and any(s.type == "float64" for s in sums)
        block = OF_DOUBLES if doubles else BLOCK
        with self.loop("k", 0, f"n{last}", step=block) as k:
            rest = self.let("rest", "sub", f"n{last}", k)
            size = self.let("size", "minimum", rest, block)
            parts = dict(totals)
            for s in sums:
                parts[s.name] = self.unique(f"{s.name}_part")
                self.add(Var(parts[s.name], s.type, start_of(s.op, s.type)))
            for q in range(pieces.last + 1):
                with self.loop("j", 0, size, "lanes") as j:
                    element(q, parts, ((-1, k), (-1, j)), j)
            for s in sums:
                wide = self.unique(f"{s.name}_wide")
                self.add(Let(wide, "float64", "cast", (parts[s.name],)))
                self.add(Update(totals[s.name], JOINS[s.op], wide))

    def pieces(self, work: Pass, env: dict[str, Argument]) -> Pieces:
        """The pieces of the loop of a pass; one, where the loops are a GPU's."""
        ready = {name for name in self.plan.kept if self.plan.stage[name] < work.stage}
        over = {o: i for o, i in self.written_over().items() if o in work.roots}
        made = Pieces(self.plan, work.roots, {*env, *ready}, over, BLOCK, self.unique, self.whole)
        self.scratch += made.buffers.values()
        return made

    def element(
        self,
        work: Pass,
        pieces: Pieces,
        q: int,
        totals: dict[str, str],
        env: dict[str, Argument],
        where: Where,
        kept_at: Place,
        j: Index,
    ) -> None:
        """What piece q does for one element of the row."""
        env = dict(env)
        names = [o.name for o in self.program.outputs]
        outputs = [k for k in work.outputs if q == pieces.written_in(names[k])]
        reduces = [s for s in work.reduces if pieces.of(s.arg) == q]
        keep = [name for name in work.keep if pieces.of(name) == q]
        crossing = [name for name in pieces.buffers if pieces.of(name) == q]
        roots = [s.arg for s in reduces] + keep + [names[k] for k in outputs] + crossing
        kept = {**self.kept_earlier(work, where, kept_at), **self.kept_before(pieces, q, j)}
        self.load_kept(roots, env, kept)
        self.emit(roots, env, where)
        for s in reduces:
            self.add(Update(totals[s.name], JOINS[s.op], env[s.arg]))
        for name in crossing:
            self.add(Store(pieces.buffers[name].name, ((-1, j),), env[name]))
        self.store_kept(work, keep, env, where, kept_at)
        self.store_outputs(outputs, env, where)

    def store_kept(
        self, work: Pass, names: list[str], env: dict[str, Argument], where: Where, kept_at: Place
    ) -> None:
        """Keeps values for later passes, but for those that wait in an output of this one."""
        for name in names:
            buffer = self.kept_in[name]
            if self.plan.kept_in.get(name) not in work.outputs or buffer in self.scratch:
                self.add(Store(buffer.name, self.kept_place(buffer, where, kept_at), env[name]))

    def kept_earlier(
        self, work: Pass, where: Where, kept_at: Place
    ) -> dict[str, tuple[Buffer, Place]]:
        """What passes before this one have kept of an element."""
        return {
            name: (buffer, self.kept_place(buffer, where, kept_at))
            for name, buffer in self.kept_in.items()
            if self.plan.stage[name] < work.stage
        }

    def kept_place(self, buffer: Buffer, where: Where, kept_at: Place) -> Place:
        return kept_at if buffer.axes == (-1,) else self.place(buffer, where)
