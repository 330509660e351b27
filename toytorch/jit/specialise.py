"""From a graph to what it does for inputs of one kind: a straight line of op records.

The graph is run once on copies of the inputs with a tracer watching. What comes out has no branches
and no composed functions, and knows every shape and type: branches and loops that depend on shapes
and numbers are decided, because a plan is made for these alone, and those that depend on elements
are refused. Where gradients are wanted the backward
pass runs under the same tracer: one graph of both, from inputs and gradients of outputs to outputs
and gradients of inputs (Bradbury, Merrill and others call it the joint graph).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toytorch.autograd.api import grad as gradients
from toytorch.autograd.engine import Pass
from toytorch.backends import base
from toytorch.backends.no_elements import lying
from toytorch.core import random
from toytorch.core.storage import Storage
from toytorch.core.tensor import Tensor, strides_of, wrap
from toytorch.facts import state
from toytorch.facts.device import strided
from toytorch.facts.hints import Args, Array, Fn, Kwargs, Sizes
from toytorch.facts.pytree import TreeSpec, tree_flatten
from toytorch.jit import interpreter, types
from toytorch.jit.ir import Graph, Node, Value
from toytorch.jit.tracer import Tracer
from toytorch.ops.elementwise.arithmetic import conj_physical

EFFECTS = frozenset(
    (
        "prim::Print",
        "prim::SetAttr",
        "prim::RaiseException",
        "prim::CallFunction",
        "prim::CallMethod",
        "prim::CreateObject",
    )
)
OUTSIDE = frozenset(("prim::grad", "prim::is_leaf"))
LONGEST = 5000  # operations in one plan: what is longer takes too long to compile


class Untraceable(Exception):
    """A graph that has to be run node by node; the text says why."""


@dataclass
class JointGraph:
    """A specialised graph.

    graph     inputs: what was given, then a gradient for each output in `tangents`;
              outputs: the results, then the gradients of the inputs in `wanted`
    results   how many results there are, taken out of their tuples, lists and dictionaries;
              spec: how they are put there again (None: they stand alone)
    tangents  which results have gradients; wanted: which inputs get one (a gradient that is always
              zero is None in `given`)
    reached   for each of `tangents`, which of the inputs in `wanted` a gradient comes to from there
    plain     results that are no tensors, by position
    """

    graph: Graph
    results: int = 0
    spec: TreeSpec | None = None
    tangents: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    given: list[bool] = field(default_factory=list)
    reached: list[list[bool]] = field(default_factory=list)
    plain: dict[int, Any] = field(default_factory=dict)
    needs: list[bool] = field(default_factory=list)  # which results require gradients

    def replace(self, graph: Graph) -> None:
        """Puts an optimised graph in the place of the graph."""
        self.graph = graph


class Replay(Tracer):
    """The tracer of a run: it knows all tensors there are, so a stranger is a value lost."""

    def __init__(self) -> None:
        super().__init__()
        self.conjugated: list[Storage] = []  # memory that is seen conjugated, and its conjugates
        self.conjugates: list[Storage] = []  # these alone
        self.constants: list[Tensor] = []  # whose memory is no copy

    def outside(self, tensor: Tensor) -> Value:
        raise Untraceable("a tensor was computed outside the framework's operations")

    def on_conjugates(self, function: Callable[[Tensor], Tensor], source: Tensor) -> Tensor:
        """The conjugates of a tensor, copied: `Reading` refuses to write to them or to the tensor."""
        made: Tensor = conj_physical.function(source)
        self.conjugated += [source._memory(), made._memory()]
        self.conjugates.append(made._memory())
        return made

    def on_create(self, function: Fn, args: Args, kwargs: Kwargs) -> Any:
        if kwargs.get("out") is not None:
            raise Untraceable("a new tensor is made in out=, wherever that lies")
        return super().on_create(function, args, kwargs)


class Reading(interpreter.Reader):
    """Runs the general graph under the tracer, telling it of constants; refuses what a run on
    copies would not show, or would do twice."""

    def __init__(self, tracer: Replay) -> None:
        self.tracer = tracer

    def run_node(self, node: Node, known: dict[Value, Any]) -> Sequence[Any]:
        if node.kind in EFFECTS and "Subgraph" not in node.attributes:
            raise Untraceable(f"{node.kind} has an effect beside its result")
        if node.kind in OUTSIDE or node.reads in ("memory", "generator"):
            raise Untraceable(f"{node.kind} is not to be seen from a copy of the inputs")
        if node.reads == "elements":
            raise Untraceable(f"{node.kind} makes the result depend on values, not only on shapes")
        if node.record is not None and node.record.data_dependent:
            raise Untraceable(f"{node.kind} has a result whose shape depends on values")
        if node.writes and known[node.inputs[0]]._memory() in self.tracer.conjugated:
            raise Untraceable("what is seen conjugated is written to")
        if node.writes and self.tracer.constants:
            memory = known[node.inputs[0]]._memory()
            if any(c._memory() is memory for c in self.tracer.constants):
                raise Untraceable("a constant is written to")
        if node.writes and node.record is not None and state.local.grad:
            target = known[node.inputs[0]]
            owner = target if target._base is None else target._base
            if owner._requires_grad and owner._grad_edge is None:  # a leaf here, if not outside
                raise Untraceable("an input that requires a gradient is written to")
        if len(self.tracer.graph.nodes) > LONGEST:
            raise Untraceable(f"it has loops of more than {LONGEST} operations altogether")
        results = super().run_node(node, known)
        if "_underived" in node.attributes and results[0]._requires_grad:
            raise Untraceable(f"{node.attributes['_underived']} has no derivative for out=")
        if node.facts.creates and any(getattr(r, "_requires_grad", False) for r in results):
            raise Untraceable(f"{node.kind} makes a leaf, whose gradient somebody may ask for")
        return results

    def constant(self, value: Any) -> Any:
        if isinstance(value, Tensor):
            made = self.tracer.add(self.tracer.graph.constant(value)).output
            self.tracer.bind(value, made)
            self.tracer.constants.append(value)
        return value


def specialise(graph: Graph, inputs: list[Any], grad: bool) -> JointGraph:
    """The graph for inputs like these; raises Untraceable where only running it will do."""
    copies = [copied(v) if isinstance(v, Tensor) else v for v in inputs]
    tracer = Replay()
    for v, name in zip(copies, graph.inputs):
        made = tracer.graph.add_input(types.of(v), name.name)
        if isinstance(v, Tensor):
            tracer.bind(v, made)
    places = random.places()
    before = state.local.grad
    try:
        state.set_grad(grad)
        with state.watching(tracer), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return joint_graph(tracer, graph, copies, grad)
    finally:
        state.set_grad(before)
        random.go_back(places)


def seed_for(array: Array) -> Any:
    """Ones in the place of the gradient of a result, which lie as it does."""
    if array.__class__ is not np.ndarray:
        return np.ones(array.shape, array.dtype)
    return np.ones_like(array)


def joint_graph(tracer: Replay, graph: Graph, copies: list[Any], grad: bool) -> JointGraph:
    """Runs the graph forward, and backward where a result asks for it."""
    results: list[Any] = Reading(tracer).run_block(graph, copies, {})
    flat, spec = tree_flatten(results)
    nested = len(flat) != len(results) or any(a is not b for a, b in zip(flat, results))
    results = flat
    if any(isinstance(r, Tensor) and r._storage in tracer.conjugates for r in results):
        raise Untraceable("a result shows conjugates, which later writes change")
    if any(r is c for r in results for c in tracer.constants):
        raise Untraceable("a result is a constant, the same tensor in every call")
    made = JointGraph(tracer.graph, len(results), spec if nested else None)
    outputs = [tracer.value_of(r) for r in results]
    made.plain = {i: r for i, r in enumerate(results) if not isinstance(r, Tensor)}
    made.needs = [isinstance(r, Tensor) and r._requires_grad for r in results]
    roots = [r for r, needs in zip(results, made.needs) if needs]
    if grad and roots:
        made.tangents = [i for i, needs in enumerate(made.needs) if needs]
        made.wanted = [
            i for i, v in enumerate(copies) if isinstance(v, Tensor) and v._requires_grad
        ]
        seeds = [wrap(seed_for(r._array), r.dtype) for r in roots]
        for seed, i in zip(seeds, made.tangents):
            tracer.bind(seed, tracer.graph.add_input(types.of(seed), f"grad_{i}"))
        wanted = [copies[i] for i in made.wanted]
        passes = [Pass(True, [(r._grad_edge or r, r)], None) for r in roots]
        made.reached = [p.reaches(wanted) for p in passes]
        try:
            found = gradients(roots, wanted, seeds, allow_unused=True)
        except (RuntimeError, NotImplementedError) as why:  # as it will be when it is asked for
            raise Untraceable(f"its gradient cannot be prepared: {why}") from None
        made.given = [g is not None for g in found]
        outputs += [tracer.value_of(g) for g in found if g is not None]
    tracer.graph.outputs = outputs
    return made


def laid_out(array: Array, strides: Sizes) -> Any:
    """The elements in memory with other strides."""
    extent = sum((n - 1) * s for n, s in zip(array.shape, strides)) // array.itemsize + 1
    flat = np.empty(extent if array.size else 0, array.dtype)
    if not array.size:
        return lying(array, array.shape, strides)
    made = np.lib.stride_tricks.as_strided(flat, array.shape, strides)
    made[...] = array
    return made


def empty_like(array: Array) -> Any:
    """An array without elements that has the strides of another."""
    step = array.itemsize
    return lying(np.empty(0, array.dtype), array.shape, [s * step for s in strides_of(array)])


def module_of(inputs: Sequence[Any]) -> Any:
    """The array module of all tensors among the inputs; Untraceable where there are several."""
    tensors = [v for v in inputs if isinstance(v, Tensor)]
    found = {id(m): m for m in (base.of_array(t._array).xp for t in tensors if t.layout is strided)}
    if len(found) > 1 or len({t.device for t in tensors}) > 1:
        raise Untraceable("its tensors are on several devices")
    module = next(iter(found.values()), np)
    # A device that keeps time is handed the function whole, and calls it with host arrays.
    return np if getattr(module, "is_array_module", False) else module


def copied(tensor: Tensor) -> Tensor:
    """A tensor of its own with the same contents and strides, a leaf."""
    array = tensor._array
    if array.__class__ in base.queued:
        array = base.queued[array.__class__].without_time(array)
    if array.__class__ is not np.ndarray:
        backend = None if tensor.layout is not strided else base.of_array(array)
        if backend is None or not hasattr(backend.xp, "RawModule"):
            raise Untraceable(f"{tensor.layout} tensors on {tensor.device} are run node by node")
        # The graph is found with a copy on the CPU, whose strides are the same.
        where = [s for s in array.strides if s < 0]
        if where:
            raise Untraceable("strides below zero")
        array = laid_out(backend.to_numpy(array), array.strides)
    spread = np.lib.stride_tricks.as_strided
    lowest = sum((n - 1) * s for n, s in zip(array.shape, array.strides) if s < 0)
    extent = sum((n - 1) * abs(s) for n, s in zip(array.shape, array.strides))
    if lowest or array.itemsize == 0 or any(s % array.itemsize for s in array.strides):
        made = array.copy()
    else:
        flat = np.empty(extent // array.itemsize + 1 if array.size else 0, array.dtype)
        made = spread(flat, array.shape, array.strides) if array.size else empty_like(array)
        made[...] = array
    copy: Tensor = wrap(made, tensor.dtype)
    copy._requires_grad = tensor._requires_grad
    return copy
