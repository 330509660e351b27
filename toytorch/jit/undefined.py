"""A backward graph where some results' gradients never came.

Nobody may have used a result. Its gradient is then no zero but nothing at all: zero times an infinite
derivative would be NaN, and PyTorch leaves such paths out. Whatever a backward graph computes of
gradients is linear in them, so what would be computed of nothing is nothing, and a sum with nothing
is the other term.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.facts.device import contiguous_format
from toytorch.jit.ir import Graph, Value, copy_node
from toytorch.jit.passes.algebra import contiguous
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.ops.elementwise.arithmetic import add
from toytorch.ops.shaping.copies import clone


def without(
    graph: Graph, tangents: Sequence[Value], missing: Sequence[Value]
) -> tuple[Graph, list[bool]] | None:
    """The graph without some of its tangents, which stay its inputs, and which outputs are left.

    None where something takes a gradient that is there together with one that is not, and is no sum.
    A sum lies in rows where its terms do not, and what reads it may rely on that: then the other term
    is copied.
    """
    made = Graph(graph.name)
    made._names.update(v.name for n in graph.nodes for v in n.outputs)
    known: dict[Value, Value] = {v: made.add_input(v.type, v.name) for v in graph.inputs}
    late, gone = set(tangents), set(missing)
    for node in graph.nodes:
        given = [v for v in node.inputs if v in late and v not in gone]
        lost = [v for v in node.inputs if v in gone]
        if given or lost:
            late.update(node.outputs)
        if lost and given:
            if node.op is not add or node.inputs[2].constant != 1:
                return None
            if alike(given[0], node.output):
                known[node.output] = known[given[0]]
            elif contiguous(node.output):
                rows = made.constant(contiguous_format)
                parts = [known[given[0]], rows.output]
                copy = made.make("aten::clone", parts, [node.output.type], None, None, clone)
                made.nodes += [rows, copy]
                known[node.output] = copy.output
            else:
                return None
        elif lost:
            gone.update(node.outputs)
        else:
            made.nodes.append(copy_node(node, known))
    left = [v not in gone for v in graph.outputs]
    made.outputs = [known[v] for v, there in zip(graph.outputs, left) if there]
    return eliminate_dead_code(made), left


def alike(a: Value, b: Value) -> bool:
    """Whether two values lie in memory in the same way, up to dimensions of size 1."""
    x: Any = a.type  # tensors, both
    y: Any = b.type
    steps = [
        [k for n, k in zip(t.shape, t.strides or ()) if n != 1]
        for t in (x, y)
        if t.shape is not None
    ]
    return len(steps) < 2 or steps[0] == steps[1]
