"""A plan: what runs for inputs of one kind. A call costs a look into a table and one function."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.autograd.api import grad as gradients
from toytorch.backends import base
from toytorch.backends.no_elements import lying
from toytorch.core import inplace as writing
from toytorch.core import random
from toytorch.core.tensor import Tensor, new, wrap
from toytorch.facts import state
from toytorch.facts.dtype import FROM_NUMPY
from toytorch.facts.hints import Array
from toytorch.facts.node import SAVED_TWICE, Node, Output, check_version, sequence
from toytorch.facts.pytree import tree_leaves, tree_unflatten
from toytorch.jit import interpreter, types
from toytorch.jit.autodiff import Partition, partitioned
from toytorch.jit.codegen import Writer, in_rows
from toytorch.jit.ir import Graph, Pass, Value
from toytorch.jit.passes import pipeline
from toytorch.jit.sharing import Memory, sharing
from toytorch.jit.specialise import JointGraph, Untraceable
from toytorch.jit.undefined import without
from toytorch.ops.shaping.view import alias


class Stepwise:
    """The plan of a graph that is run node by node; `reason` says why."""

    def __init__(self, graph: Graph, reason: str) -> None:
        self.graph, self.reason = graph, reason
        self.optimised = graph

    def __call__(self, inputs: Sequence[Any]) -> Any:
        return interpreter.run(self.graph, inputs)


class Plan:
    """Generated functions for the forward and the backward pass of an optimised graph."""

    reason = ""

    def __init__(
        self,
        general: Graph,
        joint: JointGraph,
        fusing: Sequence[Pass] = pipeline.FUSING,
        xp: Any = np,
    ) -> None:
        self.xp = xp
        self.general, self.joint, self.fusing = general, joint, fusing
        partition = self.partition = partitioned(joint)
        count = len(joint.graph.inputs) - len(joint.tangents)
        self.values = joint.graph.inputs[:count]
        self.count = joint.results - len(joint.plain)  # of results that are tensors
        results: list[Any] = [v for i, v in enumerate(partition.results) if i not in joint.plain]
        self.empty: list[tuple[int, Any]] = [
            (k, v.type) for k, v in enumerate(results) if 0 in v.type.shape and v.type.strides
        ]
        self.random = any(n.is_random or not n.removable for n in partition.forward.nodes)
        if xp is not np:
            self.refuse_for_devices(partition)
        graph = partition.forward
        memory = Memory(graph)
        memory.refuse_writes({graph.inputs[i] for i in joint.wanted})
        self.sharing = sharing(memory, graph.outputs[: self.count])
        self.written = [graph.inputs.index(v) for v in memory.targets if v in graph.inputs]
        self.optimised = pipeline.run(graph, fusing)
        self.forward, self.source = Writer(self.optimised, xp).function()
        self.tensors = [i for i, v in enumerate(self.values) if isinstance(v.type, types.Tensor)]
        if joint.tangents:
            self.prepare_backward(partition)

    def refuse_for_devices(self, partition: Partition) -> None:
        """Refuses what was traced on the CPU and would do something else on a device."""
        nodes = [n for g in (partition.forward, partition.backward) for n in (g.nodes if g else ())]
        if self.random:
            raise Untraceable("random numbers of a device are drawn node by node")
        if any(n.record is None and not n.kind.startswith("prim::") for n in nodes):
            raise Untraceable("a tensor that it makes may have to be on another device")

    def prepare_backward(self, partition: Partition) -> None:
        """The backward function, and where each saved value comes from."""
        self.backward_graph = pipeline.run(partition.backward, self.fusing)
        self.backwards: dict[tuple[bool, ...], tuple[Any, Graph, list[bool]]] = {}
        self.backward = Writer(self.backward_graph, self.xp).function()[0]
        results = [v for i, v in enumerate(partition.results) if i not in self.joint.plain]
        place: dict[Value, tuple[str, int]] = {
            v: ("saved", len(results) + i) for i, v in enumerate(partition.kept)
        }
        place.update({v: ("result", i) for i, v in enumerate(results)})
        place.update({v: ("input", i) for i, v in enumerate(self.values)})
        self.keeps = [place[v] for v in partition.saved]
        self.many = len(self.joint.tangents) > 1
        self.laid = self.xp is np and not all(in_rows(v.type) for v in partition.tangents)
        self.metas = [
            (v.type.shape, v.type.dtype)  # type: ignore[attr-defined]  # tensors
            for v in (partition.results[i] for i in self.joint.tangents)
        ]

    def backward_of(self, unused: tuple[bool, ...]) -> tuple[Any, Graph, list[bool]]:
        """The backward function where some results are `unused`, its graph, and which gradients of
        inputs it gives."""
        found = self.backwards.get(unused)
        if found is None:
            missing = [v for v, gone in zip(self.partition.tangents, unused) if gone]
            inputs = self.partition.backward.inputs
            places = dict(zip([*self.partition.saved, *self.partition.tangents], inputs))
            tangents = [places[v] for v in self.partition.tangents]
            made = without(self.partition.backward, tangents, [places[v] for v in missing])
            found = self.backward, self.backward_graph, self.joint.given
            if made is not None:
                graph, there = made
                rest = iter(there)
                left = [given and next(rest) for given in self.joint.given]
                graph = pipeline.run(graph, self.fusing)
                found = Writer(graph, self.xp).function()[0], graph, left
            self.backwards[unused] = found
        return found

    def __call__(self, inputs: Sequence[Any]) -> Any:
        place = random.places() if self.random else None
        for i in self.written:
            writing.refuse_inference(inputs[i])
        arrays = run(self.forward, self.optimised, [inputs[i]._array for i in self.tensors])
        made = []
        for array in arrays[: self.count]:
            tensor = new(Tensor)
            tensor._array, tensor._dtype = array, FROM_NUMPY[array.dtype]
            tensor._requires_grad, tensor._grad_edge, tensor._storage = False, None, None
            made.append(tensor)
        for k, kind in self.empty:  # whose strides kernels do not keep
            step = made[k]._array.itemsize
            made[k]._array = lying(made[k]._array, kind.shape, [s * step for s in kind.strides])
        for i in self.written:
            writing.bump(inputs[i])
        if self.joint.tangents:
            self.tie(inputs, arrays, made, place)
        for shared in self.sharing:
            shared.show(inputs, made)
        if self.joint.plain:
            tensors = iter(made)
            made = [
                self.joint.plain[i] if i in self.joint.plain else next(tensors)
                for i in range(self.joint.results)
            ]
        if self.joint.spec is not None:
            made = tree_unflatten(made, self.joint.spec)
        return made[0] if len(made) == 1 else tuple(made)

    def tie(
        self, inputs: Sequence[Any], arrays: tuple[Array, ...], made: list[Tensor], place: Any
    ) -> None:
        """Gives the results their history: one node for the whole function."""
        node: Any = new(DifferentiableGraphBackward)
        node.plan, node.inputs, node.random = self, list(inputs), place
        node.edges = tuple(  # what is not used may be a view that must not be
            (inputs[i]._grad_edge or inputs[i]) if given else None
            for i, given in zip(self.joint.wanted, self.joint.given)
        )
        node.seq = next(sequence)
        saved: list[Any] = []
        versions: list[Any] = []
        for kind, i in self.keeps:
            if kind == "input":
                saved.append(inputs[i])
                versions.append(inputs[i]._version)
            elif kind == "result":
                result = made[i]
                kept = new(Tensor)
                kept._array = result._array
                kept._dtype = result._dtype
                kept._requires_grad = False
                kept._grad_edge = None
                kept._storage = result._memory()
                saved.append(kept)
                versions.append(0)
            else:
                saved.append(arrays[i])
                versions.append(None)
        node.saved, node.versions = saved, versions
        node.meta = self.metas if self.many else self.metas[0]
        node.count, node.many = len(self.metas), self.many
        skipped = sorted(self.joint.plain)
        for k, i in enumerate(self.joint.tangents):
            tensor = made[i - sum(s < i for s in skipped)]
            tensor._requires_grad, tensor._grad_edge = True, Output(node, k) if self.many else node


def run(function: Any, graph: Graph, arrays: Sequence[Array]) -> Any:
    """The generated function of a graph on arrays: on a device that keeps time, the graph's nodes
    are kernels of one launch."""
    if base.queued:
        backend = next(
            (base.queued[a.__class__] for a in arrays if a.__class__ in base.queued), None
        )
        if backend is not None:
            return backend.launch_graph(graph.name, function, arrays, kernels_of(graph))
    return function(*arrays)


def kernels_of(graph: Graph) -> list[tuple[str, int, int, bool]]:
    """The kernels that a graph's nodes are: name, bytes moved, operations, whether it is a product
    of matrices (or a convolution)."""
    made = []
    for node in graph.nodes:
        if node.is_view or node.kind in ("prim::Constant", "prim::ListConstruct"):
            continue
        values = [v.type for v in (*node.inputs, *node.outputs)]
        sizes = [math.prod(t.shape) for t in values if isinstance(t, types.Tensor) and t.shape]
        moved = sum(
            math.prod(t.shape or ()) * t.dtype.itemsize
            for t in values
            if isinstance(t, types.Tensor) and t.dtype is not None
        )
        record, work = node.record, max(sizes, default=1)
        product = record is not None and record.flops is not None
        if record is not None and record.flops is not None:
            work = record.flops(*(stand_in(v) for v in node.inputs))
        elif record is None and node.blocks:
            work *= sum(1 for _ in node.blocks[0].walk())
        name = "fused" if record is None else record.name
        made.append((name, moved, work, product))
    return made


def stand_in(value: Value) -> Any:
    """A tensor without memory in the shape of a value, or the number that a constant is."""
    if isinstance(value.type, types.Tensor):
        return wrap(np.broadcast_to(np.float32(0), value.type.shape or ()))
    node = value.node
    return None if node is None else node.attributes.get("value")


def lies_otherwise(grad: Tensor | None, prepared: Value) -> bool:
    """Whether a gradient does not lie as its result does, as it was thought to."""
    kind: Any = prepared.type
    return grad is not None and any(
        s != t for s, t, n in zip(grad.stride(), kind.strides or (), kind.shape) if n > 1
    )


class DifferentiableGraphBackward(Node):
    """The backward pass of a compiled function, as one node."""

    plan: Plan
    inputs: list[Any]
    random: Any
    frees = None  # `release` knows

    def apply(self, grad: Any) -> Any:
        plan = self.plan
        if self.saved is None:
            raise RuntimeError(SAVED_TWICE)
        grads = grad if self.many else [grad]
        if state.local.grad:
            return self.again(grads)
        if state.local.modes:  # whoever watches wants to see the ops
            return self.stepwise(grads)
        if plan.laid and any(map(lies_otherwise, grads, plan.partition.tangents)):
            return self.stepwise(grads)  # and so does what is made of them
        function, graph, left = plan.backward, plan.backward_graph, plan.joint.given
        if None in grads:
            function, graph, left = plan.backward_of(tuple(g is None for g in grads))
        arrays = []
        for value, seen in zip(self.saved, self.versions):
            if seen is None:
                arrays.append(value)
                continue
            if value._version != seen:
                check_version("a compiled function", "self", value, seen, self)
            arrays.append(value._array)
        for g, v in zip(grads, plan.partition.tangents):
            if g is None:  # nobody used this result, and nothing is computed of it if that can be
                arrays.append(plan.xp.zeros(v.type.shape, v.type.dtype.numpy))  # type: ignore[attr-defined]  # a tensor
                continue
            array = g._array
            if array.dtype != v.type.dtype.numpy:  # type: ignore[attr-defined]  # a tensor
                array = array.astype(v.type.dtype.numpy)  # type: ignore[attr-defined]  # a tensor
            arrays.append(array)
        found = iter(run(function, graph, arrays))
        made = [wrap(next(found)) if given else None for given in left]
        if None in grads:  # of which no part may have been left, where others' are always zero
            for k, i in enumerate(plan.joint.wanted):
                if made[k] is None and any(
                    r[k] for r, g in zip(plan.joint.reached, grads) if g is not None
                ):
                    kind = self.inputs[i]
                    made[k] = wrap(plan.xp.zeros(kind._array.shape, kind._array.dtype), kind._dtype)
        return made

    def stepwise(self, grads: list[Any]) -> Any:
        """The gradients, node by node: a batch of cotangents is more than its array."""
        values = []
        for value, seen in zip(self.saved, self.versions):
            if seen is not None and value._version != seen:
                check_version("a compiled function", "self", value, seen, self)
            values.append(wrap(value) if seen is None else value)
        for g, v in zip(grads, self.plan.partition.tangents):
            kind: Any = v.type  # of a tensor
            if g is None:
                g = wrap(self.plan.xp.zeros(kind.shape, kind.dtype.numpy))
            values.append(g if g._dtype is kind.dtype else g.to(kind.dtype))
        found = interpreter.run(self.plan.partition.backward, values)
        left = iter(found if isinstance(found, tuple) else (found,))
        return [next(left) if given else None for given in self.plan.joint.given]

    def again(self, grads: list[Tensor]) -> Any:
        """The gradients with a history, for derivatives of derivatives: everything runs once more,
        node by node."""
        plan, before = self.plan, random.places()
        if self.random is not None:
            random.go_back(self.random)
        # Each input by itself: of one that is given twice, or of a view of another, the gradient
        # would count for both.
        inputs = list(self.inputs)
        for i in plan.joint.wanted:
            inputs[i] = alias.function(inputs[i])
        try:
            results = interpreter.run(plan.general, inputs)
        finally:
            random.go_back(before)
        if plan.joint.spec is not None:
            results = tree_leaves(results)
        results = results if isinstance(results, (tuple, list)) else (results,)
        given = [(results[i], g) for i, g in zip(plan.joint.tangents, grads) if g is not None]
        ends, grads = [r for r, _ in given], [g for _, g in given]
        wanted = [inputs[i] for i in plan.joint.wanted]
        return gradients(ends, wanted, grads, create_graph=True, allow_unused=True)

    def release(self) -> None:
        if self.saved:  # what needs nothing may be walked again
            self.saved, self.inputs = None, []
