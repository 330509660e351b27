"""What a schedule has to know of a Program: which pass computes what, and what has to be kept.

The stage of a value is the number of passes over a row that have to be finished before it can be
computed: 0 for inputs, one more than its argument's for a reduction.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from toytorch.loops.language.primitives import EXPENSIVE, PRIMITIVES
from toytorch.loops.language.program import Program
from toytorch.loops.language.steps import OF_DIMENSIONS, Reduce, Step
from toytorch.loops.language.types import TYPES, computed
from toytorch.loops.schedule.layout import Layout


class Plan:
    """Stages, passes and kept values of a program with reductions over one set of dimensions.

    stage       of each value, as above
    full        the values that vary along the reduced dimensions; the others are one for a row
    last        the number of the last pass
    stored_in   the pass in which each output with the reduced dimensions is written
    reduces_in  the reductions of each pass
    kept        expensive values that a later pass needs again, so that they wait in memory
    kept_in     the output, if there is one, in whose memory a kept value waits
    """

    def __init__(self, program: Program, layout: Layout) -> None:
        self.program, self.layout = program, layout
        over = set(program.over)
        outs = len(program.outputs)
        self.inputs = {a.name: outs + k for k, a in enumerate(program.inputs)}
        self.scalars = {n.name for n in program.scalars}
        self.steps = {s.name: s for s in program.steps}
        self.types = {
            v.name: computed(v.type) for v in (*program.inputs, *program.scalars, *program.steps)
        }
        varies = {v.name: set(v.dims) for v in (*program.inputs, *program.steps)}
        self.full = {name for name, dims in varies.items() if dims & over or not over}
        self.stage = dict.fromkeys([*self.inputs, *self.scalars], 0)
        for s in program.steps:
            named = [a for a in s.args if isinstance(a, str) and s.op not in OF_DIMENSIONS]
            last = max((self.stage[a] for a in named), default=0)
            self.stage[s.name] = last + isinstance(s, Reduce)
        # An output without the reduced dimensions is stored once a row.
        wide = [k for k, o in enumerate(program.outputs) if over <= set(o.dims)]
        self.row_outputs = [k for k in range(outs) if k not in wide]
        reduces = [self.stage[s.arg] for s in program.steps if isinstance(s, Reduce)]
        stages = [self.stage[program.outputs[k].name] for k in wide]
        self.last = max([*reduces, *stages], default=0)
        in_place = {o for o, _ in layout.aliases}
        # What is written over an input is written when nobody reads the input any more.
        self.stored_in = {
            k: self.last
            if k in in_place or program.outputs[k].name in self.inputs
            else max(self.stage[program.outputs[k].name], 0)
            for k in wide
        }
        self.reduces_in = [
            [s for s in program.steps if isinstance(s, Reduce) and self.stage[s.arg] == p]
            for p in range(self.last + 1)
        ]
        self.kept = self._kept() if over else []
        self.kept_in = self._outputs_to_keep_in(in_place)

    def needed(self, roots: Iterable[str], known: Collection[str]) -> list[str]:
        """What has to be computed for the roots beyond what is known, in order."""
        wanted = {r for r in roots if r not in known}
        for s in reversed(self.program.steps):
            if s.name in wanted and not isinstance(s, Reduce) and s.op not in OF_DIMENSIONS:
                wanted |= {a for a in s.args if isinstance(a, str) and a not in known}
        names = (*self.inputs, *(n.name for n in self.program.scalars), *self.steps)
        return [name for name in names if name in wanted]

    def costs(self, name: str) -> bool:
        """Whether computing a value anew takes an expensive primitive."""
        return any(
            PRIMITIVES[self.steps[n].op].cost >= EXPENSIVE
            for n in self.needed([name], ())
            if isinstance(self.steps.get(n), Step)
            and self.steps[n].op in PRIMITIVES
            and n in self.full
        )

    def _kept(self) -> list[str]:
        """Values that vary along a row, are expensive, and are used by a later pass."""
        used_in = self.used_in = dict[str, int]()  # the last pass that needs a value

        def use(name: str, stage: int) -> None:
            used_in[name] = max(used_in.get(name, 0), stage)

        for s in self.program.steps:
            for a in s.args:
                if isinstance(a, str) and a in self.full and s.op not in OF_DIMENSIONS:
                    use(a, self.stage[a] if isinstance(s, Reduce) else self.stage[s.name])
        for k, stage in self.stored_in.items():
            use(self.program.outputs[k].name, stage)
        return [
            s.name
            for s in self.program.steps
            if s.name in self.full
            and used_in.get(s.name, 0) > self.stage[s.name]
            and self.costs(s.name)
        ]

    def _outputs_to_keep_in(self, in_place: set[int]) -> dict[str, int]:
        """The output in whose memory a kept value can wait."""
        found: dict[str, int] = {}
        for name in self.kept:
            for k, stage in self.stored_in.items():
                o = self.program.outputs[k]
                own = o.name == name and stage == self.stage[name]
                free = stage > self.stage[name] and k not in in_place
                free = free and self.used_in[name] <= stage  # its place is not yet written to
                alone = set(o.dims) == set(self.program.dims)
                if (
                    (own or free)
                    and alone
                    and k not in found.values()
                    and (
                        o.type == self.types[name]
                        and TYPES[o.type].kind == "f"
                        and self.layout.inner[k] == "1"
                    )
                ):
                    found[name] = k
                    break
        return found
