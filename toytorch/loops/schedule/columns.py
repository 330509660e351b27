"""Reductions down columns: the last axis is kept, its elements lie side by side.

An iteration of the outer loop is a block of columns. The totals of its columns are a row of scratch
memory; several rows are added at once, so that the totals so far are read and written once for all
of them. Sums of float32 are folded into float64 every so many rows.
"""

from __future__ import annotations

from toytorch.loops.language.primitives import EXPENSIVE, JOINS, PRIMITIVES, start_of
from toytorch.loops.language.steps import Argument, Reduce, Step
from toytorch.loops.schedule.base import Where
from toytorch.loops.schedule.nest import Buffer, Index, Let, Load, Nest, Place, Store
from toytorch.loops.schedule.rows import Pass, Rows

# The same on every processor, as GPUs run the same loops; eight rows of a block and the totals fit
# every first-level cache.
WIDTH = 512  # columns of a block
TOGETHER = 8  # rows added at once; 2 where computing what is added takes longer than adding
FOLD = 256  # rows whose sums are taken in the array's own type


class Columns(Rows):
    """Programs with reductions over axes outside the innermost."""

    def nest(self, whole: bool = False) -> Nest:
        count = len(self.layout.axes)
        self.lane = count - 1
        self.kept_axes = [a for a in range(count - 1) if not self.layout.reduced[a]]
        self.gone_axes = [a for a in range(count - 1) if self.layout.reduced[a]]
        self.kept_in = {name: self.kept_buffer(name, WIDTH) for name in self.plan.kept}
        self.lane_rows: dict[str, Buffer] = {}
        with self.loop("t", "lo", "hi", "rows") as t:
            tiles = self.let("tiles", "add", f"n{self.lane}", WIDTH - 1)
            tiles = self.let("tiles", "quotient", tiles, WIDTH)
            column = self.let("column", "rest", t, tiles)
            self.first = self.let("first", "mul", column, WIDTH)
            outer = self.let("outer", "quotient", t, tiles)
            left = self.let("left", "sub", f"n{self.lane}", self.first)
            self.width = self.let("width", "minimum", left, WIDTH)
            row = self.decompose(outer, self.kept_axes)
            for p in range(self.plan.last + 1):
                self.column_values(p, row)
                self.column_pass(p, row)
            self.column_values(self.plan.last + 1, row)
            self.column_outputs(row)
        return self.finish((*self.kept_axes, self.lane), WIDTH)

    def lane_row(self, name: str, type: str) -> Buffer:
        """A row of scratch with one element for each column of the block."""
        made = Buffer(self.unique(name), type, (-1,), size=(WIDTH,))
        self.scratch.append(made)
        return made

    # -- values of columns ------------------------------------------------------------------------

    def column_values(self, p: int, row: Where) -> None:
        """Keeps what is expensive and the same along a column, once it can be computed."""
        ready = [
            s
            for s in self.program.steps
            if isinstance(s, Step)
            and s.op in PRIMITIVES
            and s.name not in self.plan.full
            and s.name not in self.lane_rows
            and self.plan.stage[s.name] == p
            and PRIMITIVES[s.op].cost >= EXPENSIVE - 1
        ]
        if not ready:
            return
        with self.loop("c", 0, self.width, "lanes") as c:
            env: dict[str, Argument] = {}
            names = [s.name for s in ready]
            self.load_columns(names, env, c)
            self.emit(names, env, self.at(row, c))
            for s in ready:
                self.lane_rows[s.name] = made = self.lane_row(f"of_{s.name}", s.type)
                self.add(Store(made.name, ((-1, c),), env[s.name]))

    def column_outputs(self, row: Where) -> None:
        if not self.plan.row_outputs:
            return
        with self.loop("c", 0, self.width, "lanes") as c:
            env: dict[str, Argument] = {}
            names = [self.program.outputs[k].name for k in self.plan.row_outputs]
            self.load_columns(names, env, c)
            where = self.at(row, c)
            self.emit(names, env, where)
            self.store_outputs(self.plan.row_outputs, env, where)

    def load_columns(self, roots: list[str], env: dict[str, Argument], c: str) -> None:
        """Loads from rows of scratch what the roots need."""
        seen = {*env, *self.lane_rows}
        for name in dict.fromkeys(
            [
                *roots,
                *(
                    a
                    for n in self.plan.needed(roots, seen)
                    if n in self.plan.steps
                    for a in self.plan.steps[n].args
                    if isinstance(a, str)
                ),
            ]
        ):
            if name in self.lane_rows and name not in env:
                buffer = self.lane_rows[name]
                made = self.fresh(name)
                self.add(Load(made, buffer.type, buffer.name, ((-1, c),)))
                wanted = self.plan.types[name]
                if wanted != buffer.type:
                    narrow = self.fresh(name)
                    self.add(Let(narrow, wanted, "cast", (made,)))
                    made = narrow
                env[name] = made

    def at(self, where: Where, c: str) -> Where:
        return {**where, self.lane: (self.first, c)}

    # -- passes -----------------------------------------------------------------------------------

    def column_pass(self, p: int, row: Where) -> None:
        """Goes over all rows of the block for the reductions and outputs of stage p."""
        work, reduces = self.work_of(p), self.plan.reduces_in[p]
        if not work.roots:
            return
        totals = {s.name: self.lane_row(f"{s.name}_total", self.wide(s)) for s in reduces}
        parts = {
            s.name: self.lane_row(f"{s.name}_part", s.type)
            if self.wide(s) != s.type
            else totals[s.name]
            for s in reduces
        }
        self.clear(reduces, totals)
        where = dict(row)
        last = self.gone_axes[-1]
        with self.outer(self.gone_axes[:-1], where) as rows:
            offset = tuple((a, self.let("offset", "mul", i, WIDTH)) for a, i in rows)
            if any(parts[s.name] is not totals[s.name] for s in reduces):
                with self.loop("k", 0, f"n{last}", step=FOLD) as k:
                    end = self.let("end", "add", k, FOLD)
                    end = self.let("end", "minimum", end, f"n{last}")
                    folded = [s for s in reduces if parts[s.name] is not totals[s.name]]
                    self.clear(folded, parts)
                    self.groups(work, k, end, parts, where, offset)
                    self.fold(folded, parts, totals)
            else:
                self.groups(work, 0, f"n{last}", parts, where, offset)
        self.lane_rows |= totals

    def clear(self, reduces: list[Reduce], rows: dict[str, Buffer]) -> None:
        if not reduces:
            return
        with self.loop("c", 0, self.width, "lanes") as c:
            for s in reduces:
                self.add(Store(rows[s.name].name, ((-1, c),), start_of(s.op, s.type)))

    def fold(
        self, reduces: list[Reduce], parts: dict[str, Buffer], totals: dict[str, Buffer]
    ) -> None:
        """total = total + float64(part), for each column."""
        with self.loop("c", 0, self.width, "lanes") as c:
            at: Place = ((-1, c),)
            for s in reduces:
                part, wide, total, joined = (self.fresh(s.name) for _ in range(4))
                self.add(Load(part, s.type, parts[s.name].name, at))
                self.add(Let(wide, "float64", "cast", (part,)))
                self.add(Load(total, "float64", totals[s.name].name, at))
                self.add(Let(joined, "float64", JOINS[s.op], (total, wide)))
                self.add(Store(totals[s.name].name, at, joined))

    def groups(
        self,
        work: Pass,
        start: Index,
        end: str,
        parts: dict[str, Buffer],
        where: Where,
        offset: Place,
    ) -> None:
        """Rows start..end, by eights, and the ones that are left one by one."""
        expensive = any(self.plan.costs(s.arg) for s in work.reduces)
        together = (2 if expensive else TOGETHER) if work.reduces else 1
        first: Index = start
        last = self.gone_axes[-1]
        for count in dict.fromkeys((together, 1)):
            if count > 1:
                rows = self.let("rows", "sub", end, start)
                left = self.let("left", "rest", rows, count)
                stop = self.let("stop", "sub", end, left)
            else:
                stop = end
            with self.loop("i", first, stop, step=count) as i:
                bases = []
                for n in range(count):
                    down = self.let("down", "add", i, n) if n else i
                    bases.append((down, self.let("base", "mul", down, WIDTH)))
                with self.loop("c", 0, self.width, "lanes") as c:
                    found: dict[str, list[Argument]] = {s.name: [] for s in work.reduces}
                    for down, base in bases:
                        there = {**self.at(where, c), last: (down,)}
                        kept_at = (*offset, (-1, base), (-1, c))
                        self.row_element(work, there, kept_at, c, found)
                    for s in work.reduces:
                        self.join(s, found[s.name], parts[s.name], c)
            first = stop

    def row_element(
        self,
        work: Pass,
        where: Where,
        kept_at: Place,
        c: str,
        found: dict[str, list[Argument]],
    ) -> None:
        """One element of one row: the values to be joined go to `found`."""
        env: dict[str, Argument] = {}
        self.load_kept(work.roots, env, self.kept_earlier(work, where, kept_at))
        self.load_columns(work.roots, env, c)
        self.emit(work.roots, env, where)
        for s in work.reduces:
            found[s.name].append(env[s.arg])
        self.store_kept(work, work.keep, env, where, kept_at)
        self.store_outputs(work.outputs, env, where)

    def join(self, s: Reduce, values: list[Argument], part: Buffer, c: str) -> None:
        """part = part joined with the values, which are joined pairwise first."""
        op = JOINS[s.op]
        while len(values) > 1:
            pairs = []
            for x, y in zip(values[::2], values[1::2]):
                pairs.append(self.fresh(s.name))
                self.add(Let(pairs[-1], s.type, op, (x, y)))
            values = [*pairs, *values[len(values) - len(values) % 2 :]]
        before, after = self.fresh(s.name), self.fresh(s.name)
        self.add(Load(before, s.type, part.name, ((-1, c),)))
        self.add(Let(after, s.type, op, (before, values[0])))
        self.add(Store(part.name, ((-1, c),), after))
