"""The graph of a method whose attributes are constants, as far as they may be."""

from __future__ import annotations

import copy
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.jit import types
from toytorch.jit.ir import Graph, Node, Value, replace
from toytorch.jit.passes.attributes_to_inputs import Attribute, lift
from toytorch.jit.passes.constant import propagate_constants
from toytorch.jit.passes.folding import remove_detach, remove_dropout
from toytorch.jit.passes.inline import inline
from toytorch.jit.passes.peephole import peephole_any_shape

FREEZING = [
    propagate_constants,
    peephole_any_shape,
    propagate_constants,
    remove_dropout,
    remove_detach,
]


def constants_in(
    graph: Graph, owner: Any, kept: set[tuple[str, ...]], memo: dict[int, Any]
) -> tuple[Graph, dict[Value, Attribute]]:
    """The inlined graph whose attributes are constants, and which constant was which attribute.

    A tensor stays the module's own; lists and dictionaries are copied, once for all their names.
    """
    made, attributes = lift(graph)
    written = set_on(graph, owner)
    own = len(made.inputs) - len(attributes)
    lifted, made.inputs = made.inputs[own:], made.inputs[:own]
    made._names.discard("self")  # the lifted graph has none any more
    module = made.value(types.Class(getattr(owner, "original_name", "Module")), "self")
    made.inputs.insert(0, module)
    nodes: list[Node] = []
    change: dict[Value, Value] = {}
    meaning: dict[Value, Attribute] = {}
    for v, attribute in zip(lifted, attributes):
        if isinstance(v.type, types.Class):  # some of its attributes are written to
            part = attribute.of(owner)
            for n in [n for n in made.walk() if n.kind == "prim::GetAttr" and n.inputs[0] is v]:
                name = n.attributes["name"]
                path = (*attribute.path, name)
                if written is None or (id(part), name) in written or kept_at(path, kept):
                    continue
                n.kind, n.inputs = "prim::Constant", []  # another module's of this name is
                n.attributes = {"value": own_value(getattr(part, name), memo)}
            if not is_used(made, v):
                continue
            nodes += getters(made, module, attribute, v)
            change[v] = nodes[-1].output if attribute.path else module
            continue
        if kept_at(attribute.path, kept):
            nodes += getters(made, module, attribute, v)
            change[v] = nodes[-1].output
            continue
        value = attribute.of(owner)
        result = types.of(value), "self." + ".".join(attribute.path)
        known = {"value": own_value(value, memo)}
        constant = made.make("prim::Constant", [], [result], known)
        nodes.append(constant)
        change[v], meaning[constant.output] = constant.output, attribute
    made.nodes = nodes + made.nodes
    replace(made, change)
    return made, meaning


def kept_at(path: tuple[str, ...], kept: set[tuple[str, ...]]) -> bool:
    """Whether an attribute, or the module it belongs to, is kept."""
    return any(path[: len(k)] == k for k in kept)


def own_value(value: object, memo: dict[int, Any]) -> Any:
    """What becomes a constant of the graph."""
    return value.detach() if isinstance(value, Tensor) else copy.deepcopy(value, memo)


def set_on(graph: Graph, owner: object) -> set[tuple[int, str]] | None:
    """The attributes that the graph sets: the module's id, and the name; None where Python runs a
    module, which may set any."""
    made = inline(graph)
    if any(n.kind == "prim::CallMethod" for n in made.walk()) or not made.inputs:
        return None
    modules: dict[Value, Any] = {made.inputs[0]: owner}
    found = set()
    for node in made.walk():
        if node.kind == "prim::GetAttr" and node.inputs[0] in modules:
            if isinstance(node.output.type, types.Class):
                modules[node.output] = getattr(
                    modules[node.inputs[0]], node.attributes["name"], None
                )
        elif node.kind == "prim::SetAttr":
            if node.inputs[0] not in modules:
                return None
            found.add((id(modules[node.inputs[0]]), node.attributes["name"]))
    return found


def getters(graph: Graph, module: Value, attribute: Attribute, v: Value) -> list[Node]:
    """The nodes that read an attribute that stays one."""
    nodes: list[Node] = []
    for name in attribute.path:
        last = len(nodes) == len(attribute.path) - 1
        kind = v.type if last else types.Class(name)
        nodes.append(graph.make("prim::GetAttr", [module], [(kind, name)], {"name": name}))
        module = nodes[-1].output
    return nodes


def is_used(graph: Graph, value: Value) -> bool:
    """Whether anything reads a value or gives it back."""
    nodes = list(graph.walk())
    blocks = [graph, *(b for n in nodes for b in n.blocks)]
    return any(value in n.inputs for n in nodes) or any(value in b.outputs for b in blocks)
