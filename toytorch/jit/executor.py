"""Which plan runs: one for every kind of inputs, made when they are first seen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.jit import interpreter
from toytorch.jit.fuser_mode import limit, switches
from toytorch.jit.ir import Graph, Pass
from toytorch.jit.passes import pipeline
from toytorch.jit.passes.aliases import Aliases
from toytorch.jit.passes.attributes_to_inputs import Attribute, lift
from toytorch.jit.plan import Plan, Stepwise
from toytorch.jit.specialise import Untraceable, module_of, specialise
from toytorch.jit.tracer import running
from toytorch.nn.modules.module import Module

MOST = 256  # plans of one graph; a number that is another at each call makes one each time


class Executor:
    """The plans of one graph, in one table.

    owner    the module whose attributes the graph reads
    known    how many inputs, from the first, are alike in every call: who calls has made sure
    passes   replace the pipeline's (`jit.trace(f, x, passes=[...])`)
    """

    passes: Sequence[Pass] | None = None

    def __init__(self, graph: Graph, owner: Module | None = None, known: int = 0) -> None:
        self.graph, self.owner, self.known = graph, owner, known
        self.plans: dict[Any, Plan | Stepwise] = {}
        self.made = 0  # plans, those included that were dropped
        self.lifted: tuple[Graph, list[Attribute]] | None = None
        self.writes = False  # to memory it is given: then it counts whether inputs share theirs
        self.constants: list[Any] = []  # the tensors in it, which inputs may share memory with

    def run(self, args: Sequence[Any]) -> Any:
        """The results for arguments."""
        inputs = self.inputs(args)
        # Whoever watches wants to see the ops one by one.
        if state.fast_path is state.SLOW and state.watched_or_asked():
            tracer = running()
            if tracer is not None and self.owner is None and tracer.keeps(self.graph):
                return tracer.called(self.graph, inputs, interpreter.run)
            return interpreter.run(self.whole()[0], inputs)
        return self.find(inputs)(inputs)

    def find(self, inputs: Sequence[Any]) -> Plan | Stepwise:
        """The plan for inputs, made now if there was none."""
        key = self.key(inputs)
        return self.plans.get(key) or self.prepare(inputs, key)

    def key(self, inputs: Sequence[Any]) -> tuple[Any, ...]:
        """What a plan of this graph is made for."""
        key = state.local.grad, switches.key, *facts_of(inputs[self.known :])
        return (*key, self.shares(inputs)) if self.writes else key

    def shares(self, inputs: Sequence[Any]) -> bool:
        """Whether inputs share memory with each other, or with constants."""
        return sharing([*inputs, *self.constants])

    def whole(self) -> tuple[Graph, list[Attribute]]:
        """The graph with attributes of modules as inputs behind its own."""
        if self.lifted is None:
            graph, attributes = lift(self.graph)
            general = pipeline.GENERAL if self.passes is None else ()
            self.lifted = pipeline.run(graph, general), attributes
        return self.lifted

    def inputs(self, args: Sequence[Any]) -> list[Any]:
        """The arguments, and the attributes as they are now."""
        graph, attributes = self.whole()
        own = len(graph.inputs) - len(attributes)
        if len(args) != own:
            raise RuntimeError(
                f"{self.graph.name}() expected {own} argument(s) but received {len(args)}"
            )
        return [*args, *(a.of(self.owner) for a in attributes)]

    def prepare(self, inputs: Sequence[Any], key: Any) -> Plan | Stepwise:
        """Makes the plan for inputs of a new kind."""
        graph = self.whole()[0]
        plan: Plan | Stepwise
        self.made += 1
        try:
            if self.made > MOST:
                raise Untraceable(f"it was called with more than {MOST} kinds of inputs")
            if any(isinstance(v, (list, tuple, dict)) for v in inputs):
                raise Untraceable("an argument is a list, a tuple or a dictionary")
            if any(isinstance(v, Generator) for v in inputs):
                raise Untraceable("an argument draws random numbers")
            xp = module_of(inputs)
            try:
                joint = specialise(graph, list(inputs), state.local.grad)
            except RuntimeError as why:  # of copies; the tensors themselves may have more memory
                raise Untraceable(f"a run on copies of its inputs failed: {why}") from None
            if Aliases(joint.graph).writes_outside:
                self.note_writes(graph)
                key = self.key(inputs)
                if self.shares(inputs):
                    raise Untraceable("it writes to its inputs, and two of them share memory")
            first, last = pipeline.stages(switches.chosen(self.passes))
            joint.replace(pipeline.run(joint.graph, first))
            plan = Plan(graph, joint, last, xp)
        except Untraceable as why:
            plan = Stepwise(graph, str(why))
        while len(self.plans) >= limit():  # the one made first goes first
            del self.plans[next(iter(self.plans))]
        self.plans[key] = plan
        return plan

    def note_writes(self, graph: Graph) -> None:
        """From now on a key says whether inputs share memory."""
        if not self.writes:
            self.writes = True
            self.constants = [
                n.constant
                for n in graph.nodes_of("prim::Constant")
                if isinstance(n.constant, Tensor)
            ]

    def plan_for(self, args: Sequence[Any]) -> Plan | Stepwise:
        """The plan that arguments like these run on."""
        return self.find(self.inputs(args))

    def graph_for(self, args: Sequence[Any]) -> Graph:
        """The optimised graph for arguments like these."""
        return self.plan_for(args).optimised


def facts_of(inputs: Sequence[Any]) -> list[Any]:
    """What a plan is made for: all of a number, and of a tensor all but its elements."""
    facts: list[Any] = []
    for value in inputs:
        try:
            array = value._array
            facts += array.shape, array.strides, value._dtype, value._requires_grad
            if array.__class__ is not np.ndarray:
                facts.append(value.device)
        except AttributeError:
            facts.append(kind_of(value))
    return facts


def sharing(inputs: Sequence[Any]) -> bool:
    """Whether two of the tensors share memory: what is written to the one changes the other.

    Views have the array that owns their memory as `base`, so few pairs have to be looked at.
    """
    owners: dict[int, list[Any]] = {}
    for value in inputs:
        for array in arrays_of(value):
            base = getattr(array, "base", None)
            others = owners.setdefault(id(array if base is None else base), [])
            if array.__class__ is not np.ndarray and others:
                return True
            if any(np.may_share_memory(array, other) for other in others):
                return True
            others.append(array)
    return False


def arrays_of(value: object) -> list[Any]:
    """The arrays under a tensor, and under those in a list, tuple or dictionary."""
    if isinstance(value, Tensor):
        return [value._array]
    if isinstance(value, (list, tuple)):
        return [array for item in value for array in arrays_of(item)]
    return [a for v in value.values() for a in arrays_of(v)] if isinstance(value, dict) else []


def kind_of(value: object) -> Any:
    """What stands in the key for something that is no tensor over a plain array."""
    if isinstance(value, Tensor):
        return type(value._array), value._array.shape, value._dtype, value._requires_grad
    try:
        hash(value)
    except TypeError:
        return type(value)
    return value.__class__, exact(value)


def exact(value: object) -> Any:
    """A number as a key: 0.0 and -0.0 are two, and nan is one.

    >>> exact(0.0) == exact(-0.0), exact(1.5)
    (False, 1.5)
    """
    if value.__class__ is complex or (value.__class__ is float and (not value or value != value)):
        return repr(value)
    return value
