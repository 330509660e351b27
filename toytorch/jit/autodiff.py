"""Partitioning a joint graph into a forward graph and a backward graph.

The forward part makes the results; the backward part gets the gradients of the results and gives
those of the inputs. Whatever the backward part needs of the forward part has to be saved, or
computed again: a value that costs one cheap pass over values that are there anyway is computed
again, because saving it means writing it to memory and reading it back.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from toytorch.core.op import Op
from toytorch.jit import types
from toytorch.jit.effects import written_values
from toytorch.jit.ir import Graph, Node, Value, copy_node
from toytorch.jit.specialise import JointGraph

CHEAP = 2  # additions for an element


@dataclass
class Partition:
    """The forward graph and the backward graph of a joint graph.

    forward    gives the results, then what is saved of what it computed
    backward   takes what is saved (inputs of the forward function among it), then the gradients of
               results; gives the gradients of inputs
    results, saved, tangents, grads: the joint graph's values that they are
    """

    forward: Graph
    backward: Graph
    results: list[Value]
    saved: list[Value]
    tangents: list[Value]
    grads: list[Value]
    kept: list[Value]  # those of `saved` that the forward function computes


def partitioned(joint: JointGraph) -> Partition:
    """Divides the nodes: what results or effects need goes forward, the rest backward."""
    graph = joint.graph
    count = len(graph.inputs) - len(joint.tangents)
    tangents = graph.inputs[count:]
    results, grads = graph.outputs[: joint.results], graph.outputs[joint.results :]
    late = set(tangents)  # values that depend on gradients
    for node in graph.nodes:
        if any(v in late for v in node.inputs):
            late.update(node.outputs)
    needed = set(results)
    forward = []
    for node in reversed(graph.nodes):
        early = not any(v in late for v in (*node.inputs, *node.outputs))
        if early and (any(v in needed for v in node.outputs) or not node.removable):
            needed.update(node.inputs)
            forward.append(node)
    forward.reverse()
    ahead = {id(n) for n in forward}
    backward = live([n for n in graph.nodes if id(n) not in ahead], grads)
    if grads:
        backward = recompute(graph.inputs[:count], forward, backward, grads, written_values(graph))
    made = {v for n in backward for v in n.outputs} | set(tangents)
    wanted = dict.fromkeys(v for n in backward for v in n.inputs if v not in made)
    wanted.update(dict.fromkeys(v for v in grads if v not in made))
    saved = [v for v in wanted if not v.is_constant]
    kept = [v for v in saved if v not in graph.inputs]
    constants = [n for n in graph.nodes if n.is_constant]
    inputs = graph.inputs[:count]
    tensors = [v for i, v in enumerate(results) if i not in joint.plain]
    first = part("forward", inputs, constants, forward, [*tensors, *kept])
    second = part("backward", [*saved, *tangents], constants, backward, grads)
    return Partition(first, second, results, saved, tangents, grads, kept)


def part(
    name: str, inputs: list[Value], constants: list[Node], nodes: list[Node], outputs: list[Value]
) -> Graph:
    """A graph of some of the nodes, copied."""
    made = Graph(name)
    known: dict[Value, Value] = {}
    for v in inputs:
        known[v] = made.add_input(v.type, v.name)
    there = {id(n) for n in nodes}
    used = {v for n in nodes for v in n.inputs} | set(outputs)
    for node in constants:
        if node.output in used and id(node) not in there:
            made.nodes.append(copy_node(node, known))
    made.nodes += [copy_node(n, known) for n in nodes]
    made._names.update(v.name for n in made.nodes for v in n.outputs)
    made.outputs = [known[v] for v in outputs]
    return made


def live(nodes: list[Node], outputs: list[Value]) -> list[Node]:
    """The nodes that the outputs depend on, and those with effects."""
    needed, kept = set(outputs), []
    for node in reversed(nodes):
        if any(v in needed for v in node.outputs) or node.writes:
            needed.update(node.inputs)
            kept.append(node)
    return kept[::-1]


def recompute(
    inputs: list[Value],
    forward: list[Node],
    backward: list[Node],
    grads: list[Value],
    written: set[Value],
) -> list[Node]:
    """The backward nodes with those before them that are computed again."""
    made = {v for n in backward for v in n.outputs}
    wanted = {v for n in backward for v in n.inputs if v not in made} | {
        v for v in grads if v not in made
    }
    there = set(inputs)  # what the backward part has without anything being saved
    again: list[Node] = []
    shown: dict[Value, list[Node]] = {}  # views of what is there, with the nodes that make them
    for node in forward:
        if node.is_constant:
            continue
        outs = node.outputs
        if node.record is not None and node.record.kind == "view" and len(outs) == 1:
            source = node.inputs[0]
            if (source in there or source in shown) and not {source, *outs} & written:
                shown[outs[0]] = [*shown.get(source, []), node]
        cheap = (
            node.record is not None
            and is_cheap(node.record)
            and node.pure
            and (not any(v in written for v in (*node.inputs, *outs)))
        )
        if (
            cheap
            and outs[0] in wanted
            and all(
                v in there or v in shown or v.is_constant or (v in wanted and not by_cheap(v))
                for v in node.inputs
            )
        ):
            for view in (m for v in node.inputs if v not in there for m in shown.get(v, [])):
                if view not in again:
                    again.append(view)
                    there.update(view.outputs)
            again.append(node)
            there.update(outs)
    return again + backward


@cache
def is_cheap(op: Op) -> bool:
    """Whether an op costs less than writing its result to memory and reading it back."""
    return op.formula is not None and op.formula.known and op.formula.cost <= CHEAP


def by_cheap(v: Value) -> bool:
    """Whether a value may itself be computed again."""
    return v.node is not None and v.node.record is not None and is_cheap(v.node.record)


def sizes(values: list[Value]) -> int:
    """Bytes of all tensors among the values."""
    total = 0
    for v in values:
        if isinstance(v.type, types.Tensor) and v.type.shape is not None and v.type.dtype:
            n = v.type.dtype.itemsize
            for k in v.type.shape:
                n *= k
            total += n
    return total
