"""Elementwise programs: one loop over the last axis inside one over the others."""

from __future__ import annotations

from toytorch.loops.language.steps import Argument
from toytorch.loops.schedule.base import Schedule, Where
from toytorch.loops.schedule.nest import Nest


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
