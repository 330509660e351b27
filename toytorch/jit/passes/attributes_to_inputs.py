"""Lifting: attributes of modules become inputs, so that what follows knows no modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toytorch.jit import types
from toytorch.jit.ir import Block, Graph, Value, replace
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.inline import inline
from toytorch.nn.modules.module import Module


@dataclass(frozen=True)
class Attribute:
    """A tensor or a value that hangs on a module: `path` leads to it."""

    path: tuple[str, ...]

    def of(self, owner: Module | None) -> Any:
        """What is there now."""
        for name in self.path:
            owner = getattr(owner, name)
        return owner


def attribute_paths(graph: Graph) -> list[tuple[str, ...]]:
    """The attributes that a method of a module reads or writes, in the methods it calls as well."""
    made = inline(graph)
    paths: dict[Value, tuple[str, ...]] = dict.fromkeys(made.inputs[:1], ())
    found = []
    for node in made.walk():
        if node.kind in ("prim::GetAttr", "prim::SetAttr") and node.inputs[0] in paths:
            path = (*paths[node.inputs[0]], node.attributes["name"])
            if node.outputs and isinstance(node.output.type, types.Class):
                paths[node.output] = path
            else:
                found.append(path)
    return list(dict.fromkeys(found))


def lift(graph: Graph) -> tuple[Graph, list[Attribute]]:
    """The inlined graph without its module, and the attributes that its last inputs stand for."""
    made = inline(graph)
    if not made.inputs or made.inputs[0].type.__class__ is not types.Class:  # no module
        return made, []
    paths: dict[Value, tuple[str, ...]] = {made.inputs.pop(0): ()}
    found: dict[tuple[str, ...], Value] = {}
    owners: dict[tuple[str, ...], Value] = {}  # modules that are written to, or that Python runs
    written = {n.attributes["name"] for n in made.walk() if n.kind == "prim::SetAttr"}
    by_python = any(n.kind == "prim::CallMethod" for n in made.walk())

    def owner_of(path: tuple[str, ...]) -> Value:
        if path not in owners:
            owners[path] = made.add_input(
                types.Class(path[-1] if path else "self"), path[-1] if path else "self"
            )
        return owners[path]

    def visit(block: Block) -> None:
        kept = []
        for node in block.nodes:
            if node.kind == "prim::GetAttr" and node.inputs[0] in paths:
                path = (*paths[node.inputs[0]], node.attributes["name"])
                if isinstance(node.output.type, types.Class):
                    paths[node.output] = path
                    continue
                if by_python or path[-1] in written:  # it may change on the way
                    node.inputs = [owner_of(paths[node.inputs[0]])]
                    kept.append(node)
                    continue
                if path not in found:
                    found[path] = made.add_input(node.output.type, path[-1])
                change[node.output] = found[path]
                continue
            node.inputs = [owner_of(paths[v]) if v in paths else v for v in node.inputs]
            for inner in node.blocks:
                visit(inner)
            kept.append(node)
        block.nodes = kept
        block.outputs = [owner_of(paths[v]) if v in paths else v for v in block.outputs]

    change: dict[Value, Value] = {}
    own = len(made.inputs)
    visit(made)
    order = {v: path for path, v in (*found.items(), *owners.items())}
    attributes = [Attribute(order[v]) for v in made.inputs[own:]]
    replace(made, change)
    return eliminate_dead_code(made), attributes
