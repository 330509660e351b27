"""A call of a function that runs as it is and is written down, and how to run it again."""

from __future__ import annotations

import contextlib
import warnings
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Fn
from toytorch.facts.parts import of_part
from toytorch.facts.pytree import TreeSpec, tree_flatten, tree_unflatten
from toytorch.facts.size import Size
from toytorch.jit import types
from toytorch.jit.function import TracedFunction
from toytorch.jit.guards import PLAIN, Getter, GuardedState
from toytorch.jit.ir import Graph
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.side_effects import SideEffects
from toytorch.jit.trace import scoping
from toytorch.jit.tracer import Tracer, TracerWarning, another
from toytorch.nn import Module


class Recorded:
    """A graph and what surrounds it: where its inputs stand and how its result is nested.

    Args:
        function: the graph, whose table of plans asks about the other inputs only: the kind of the
            call has told all about the arguments.
        given: which arguments are its first inputs.
        places: where to read its other inputs.
        template: the leaves of the result, `Tensor` in the place of each that the graph gives.
        spec: how they are nested; None for one tensor.
        kept: arguments that the kind of the call knows by their id: they must not make room for
            others.
        shadows: arguments that stood in a place, too, where the function may read them; whether it
            did cannot be told, so the graph holds only while they stand there.
    """

    def __init__(
        self,
        function: TracedFunction,
        given: list[int],
        places: list[Getter],
        template: list[Any],
        spec: TreeSpec | None,
        kept: list[Any],
        shadows: list[tuple[int, Getter]],
    ) -> None:
        self.function, self.given, self.places = function, given, places
        self.template, self.spec, self.kept = template, spec, kept
        self.shadows = shadows
        self.slots = [i for i, v in enumerate(template) if v is Tensor]

    def inputs(self, leaves: Sequence[Any]) -> list[Any]:
        """The graph's inputs."""
        found = list(map(leaves.__getitem__, self.given))
        for place in self.places:  # a generator would be a call for each
            found.append(place())
        return found

    def holds(self, leaves: Sequence[Any]) -> bool:
        """Whether arguments stand where they stood."""
        return all(
            getattr(place(), "_array", None) is leaves[i]._array for i, place in self.shadows
        )

    def __call__(self, leaves: Sequence[Any]) -> Any:
        inputs = self.inputs(leaves)
        out = self.function.executor.find(inputs)(inputs)
        if self.spec is None:
            return out
        filled = list(self.template)
        for i, tensor in zip(self.slots, (out,) if len(self.slots) == 1 else out):
            filled[i] = tensor
        return tree_unflatten(filled, self.spec)


class Recording:
    """One call that is written down; `reason` says why that had to be given up."""

    def __init__(self, module: Module | None, strict: bool) -> None:
        self.module = module
        self.tracer = Tracer(Graph("compiled"), seen=True)
        self.tracer.captured, self.tracer.strict = [], strict
        self.leaves: list[Any] = []
        self.given: list[int] = []  # the arguments that are inputs of the graph
        self.outputs: list[Any] = []
        self.out_spec: TreeSpec | None = None

    reason = of_part("tracer.reason", "Why there is no graph; empty if there is one.")

    def run(self, function: Fn, leaves: Sequence[Any], spec: TreeSpec, effects: SideEffects) -> Any:
        """The result of the call."""
        self.leaves = list(leaves)
        args, kwargs = tree_unflatten(self.leaves, spec)
        try:
            for i, leaf in enumerate(leaves):
                self.bind(i, leaf)
            with effects, warnings.catch_warnings():
                warnings.simplefilter("ignore", TracerWarning)
                with state.watching(self.tracer), scoping(self.tracer, self.module):
                    result = function(*args, **kwargs)
                    self.finish(result)
        finally:
            self.tracer.end()
        return result

    def bind(self, i: int, leaf: Tensor) -> None:
        """Makes an argument an input of the graph; one that is given twice is one input.

        What stands for a value is recognised by its array, so of two tensors over one array (one is
        what `detach` gave of the other) the second gets another while the call runs.
        """
        if not isinstance(leaf, Tensor) or any(leaf is self.leaves[k] for k in self.given):
            return
        if id(leaf._array) in self.tracer.values:
            self.tracer.replaced_arrays.append((leaf, leaf._array))
            leaf._memory()
            leaf._array = another(leaf._array)
        self.given.append(i)
        self.tracer.given.append(leaf)
        self.tracer.external[id(leaf._array)] = leaf
        self.tracer.bind(leaf, self.tracer.graph.add_input(types.of_tensor(leaf)))

    def finish(self, result: Tensor) -> None:
        """Notes the results; those that are no tensors are the same in every call of this kind."""
        if self.reason:
            return
        self.outputs, self.out_spec = tree_flatten(result)
        for v in self.outputs:
            if isinstance(v, Tensor):
                self.tracer.graph.outputs.append(self.tracer.value_of(v))
            elif v.__class__ not in PLAIN and not isinstance(v, Size):
                self.tracer.stop(f"it returns {type(v).__name__}, which is no tensor or number")

    def shadows(self, guarded: GuardedState) -> list[tuple[int, Getter]]:
        """The arguments that also stand somewhere else in the function's reach."""
        numbers = {id(self.leaves[i]._array): i for i in self.given}
        return [
            (numbers[id(t._array)], place)
            for place, t in guarded.places(())
            if id(t._array) in numbers
        ]

    def finished(self, guarded: GuardedState) -> Recorded:
        """What runs for such calls from now on: planned and compiled."""
        captured = self.tracer.captured or []
        given = self.given
        places = [guarded.place_of(t, self.leaves) for t in captured]
        graph = eliminate_dead_code(self.tracer.graph)
        function = TracedFunction(
            "compiled", graph, None, None, None, nested=False, known=len(given)
        )
        template = [Tensor if isinstance(v, Tensor) else v for v in self.outputs]
        single = (
            self.out_spec is not None
            and self.out_spec.is_leaf()
            and (isinstance(self.outputs[0], Tensor))
        )
        spec = None if single else self.out_spec
        others = [v for v in self.leaves if not isinstance(v, Tensor)]
        shadows = self.shadows(guarded)
        made = Recorded(function, given, places, template, spec, others, shadows)
        # What the call has written to holds other values now, of which some op may have no result
        # (x %= x leaves zeros); then the plan is made when the next call comes.
        with contextlib.suppress(RuntimeError):
            function.executor.plan_for(made.inputs(self.leaves))
        self.leaves = self.outputs = []
        return made
