"""What the pictures of the compiler read: a function's graphs before and after each pass."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toytorch.facts import state
from toytorch.jit import types
from toytorch.jit.autodiff import partitioned
from toytorch.jit.function import ScriptFunction
from toytorch.jit.ir import Graph, Node, Value
from toytorch.jit.passes import pipeline
from toytorch.jit.passes.attributes_to_inputs import lift
from toytorch.jit.plan import Stepwise
from toytorch.jit.specialise import Untraceable, specialise
from toytorch.jit.text import value_text
from toytorch.jit.trace import trace


@dataclass
class Stage:
    """One pass: what it is called, on which graph it ran, and the graph before and after."""

    name: str
    where: str
    before: Graph
    after: Graph


def compiled(f: object, inputs: tuple[Any, ...]) -> ScriptFunction:
    """The compiled function behind `f`; an ordinary function or module is traced."""
    if hasattr(f, "_methods"):
        return f._methods["forward"]  # of a compiled module
    if isinstance(f, ScriptFunction):
        return f
    if not callable(f):
        raise TypeError(f"expected a function, a module or a graph, got {type(f).__name__}")
    traced = trace(f, inputs, check_trace=False)
    return compiled(traced, inputs)


def plan_of(f: object, inputs: tuple[Any, ...]) -> Any:
    """The plan that runs for inputs like these; raises RuntimeError where there is none."""
    function = compiled(f, inputs)
    plan = function.executor.plan_for(function.flat(inputs))
    if isinstance(plan, Stepwise):
        raise RuntimeError(f"{function.name} runs node by node: {plan.reason}")
    return plan


def stages_of(f: object, inputs: tuple[Any, ...]) -> list[Stage]:
    """Every pass over the graphs of a function, in the order in which they run."""
    function = compiled(f, inputs)
    found: list[Stage] = []

    def watch(where: str) -> Any:
        return lambda name, before, after: found.append(Stage(name, where, before, after))

    lifted = lift(function.graph)[0]
    found.append(Stage("inline and lift", "as it was written", function.graph, lifted))
    general = pipeline.run(lifted, pipeline.GENERAL, watch("for any shape"))
    given = function.executor.inputs(function.flat(inputs))
    try:
        joint = specialise(general, given, state.local.grad)
    except Untraceable:
        return found
    found.append(Stage("specialise", "forward and backward together", general, joint.graph))
    joint.replace(
        pipeline.run(joint.graph, pipeline.SPECIALISED, watch("forward and backward together"))
    )
    partition = partitioned(joint)
    pipeline.run(partition.forward, pipeline.FUSING, watch("forward"))
    if joint.tangents:
        pipeline.run(partition.backward, pipeline.FUSING, watch("backward"))
    return found


def shape_text(v: Value) -> str:
    """A value's shape and type, short: `2 × 3 float32`."""
    t = v.type
    if not isinstance(t, types.Tensor):
        return str(t)
    if t.shape is None or t.dtype is None:
        return "tensor"
    return f"{' × '.join(map(str, t.shape)) or 'scalar'} {t.dtype.name}"


def operand(v: Value) -> str:
    """How a value is written as an operand."""
    if v.is_constant and v.node is not None:
        return value_text(v.node.attributes["value"])
    return "%" + v.name


def name_of(node: Node) -> str:
    """A node's operation without its namespace."""
    return node.kind.split("::")[-1]


def line_of(node: Node) -> str:
    """A node as one short line: `%3 = mul(%x, 2)   2 × 3 float32`."""
    made = ", ".join("%" + v.name for v in node.outputs)
    inner = node.attributes.get("Subgraph")
    name = name_of(node)
    if isinstance(inner, Graph):
        ops = [name_of(n) for n in inner.nodes if not n.is_constant]
        name += "{" + " ".join(ops) + "}"
    elif node.kind == "prim::GetAttr":
        name += f"[{node.attributes['name']}]"
    text = f"{made} = {name}({', '.join(map(operand, node.inputs))})"
    return text + "".join("   " + shape_text(v) for v in node.outputs[:1])


def lines_of(graph: Graph) -> list[str]:
    """A graph as short lines; constants stand where they are used."""
    lines = [f"in  {', '.join('%' + v.name for v in graph.inputs)}"]
    waiting: list[tuple[Any, int]] = [(n, 0) for n in reversed(graph.nodes)]
    while waiting:
        item, depth = waiting.pop()
        if isinstance(item, str):
            lines.append("      " * depth + item)
            continue
        if item.is_constant:
            continue
        lines.append("      " * depth + line_of(item))
        for i in reversed(range(len(item.blocks))):
            block = item.blocks[i]
            waiting.append((f"-> {', '.join(map(operand, block.outputs))}", depth + 1))
            waiting += [(n, depth + 1) for n in reversed(block.nodes)]
            waiting.append((f"block {i}:", depth + 1))
    return [*lines, f"out  {', '.join(map(operand, graph.outputs))}"]
