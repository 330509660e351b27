"""Elementwise programs: one loop over the last axis inside one over the others."""

from __future__ import annotations

from toytorch.loops.language.steps import Argument
from toytorch.loops.schedule.base import Schedule, Where
from toytorch.loops.schedule.nest import Index, Nest, Store
from toytorch.loops.schedule.pieces import Pieces

CHUNK = 1024  # elements between two pieces: four kilobytes of float32


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
            self.along({}, 0, ("lo",), self.let("size", "sub", "hi", "lo"))
            return self.finish((0,))
        with self.loop("r", "lo", "hi", "rows") as r:
            self.along(self.decompose(r, axes[:-1]), axes[-1], (), f"n{axes[-1]}")
        return self.finish(tuple(axes[:-1]))

    def along(self, where: Where, axis: int, start: tuple[Index, ...], size: Index) -> None:
        """The loop along the last axis; or a loop over chunks, with one for each piece in it."""
        names = [o.name for o in self.program.outputs]
        pieces = Pieces(self.plan, names, (), self.written_over(), CHUNK, self.unique)
        if not pieces.last:
            with self.loop("j", 0, size, "lanes") as j:
                self.body({**where, axis: (*start, j)})
            return
        self.scratch += pieces.buffers.values()
        with self.loop("k", 0, size, step=CHUNK) as k:
            rest = self.let("rest", "sub", size, k)
            count = self.let("count", "minimum", rest, CHUNK)
            for p in range(pieces.last + 1):
                with self.loop("j", 0, count, "lanes") as j:
                    self.one_piece(pieces, p, {**where, axis: (*start, k, j)}, j)

    def body(self, where: Where) -> None:
        env: dict[str, Argument] = {}
        self.emit([o.name for o in self.program.outputs], env, where)
        self.store_outputs(list(range(len(self.program.outputs))), env, where)

    def one_piece(self, pieces: Pieces, p: int, where: Where, j: Index) -> None:
        """What one piece computes of an element: what later ones need, and outputs."""
        names = [o.name for o in self.program.outputs]
        outputs = [k for k, name in enumerate(names) if p == pieces.written_in(name)]
        keep = [name for name in pieces.buffers if pieces.of(name) == p]
        roots = keep + [names[k] for k in outputs]
        env: dict[str, Argument] = {}
        self.load_kept(roots, env, self.kept_before(pieces, p, j))
        self.emit(roots, env, where)
        for name in keep:
            self.add(Store(pieces.buffers[name].name, ((-1, j),), env[name]))
        self.store_outputs(outputs, env, where)
