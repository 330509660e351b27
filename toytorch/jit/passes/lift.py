"""Lifting: attributes of modules become inputs, so that what follows knows no modules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toytorch.jit import types
from toytorch.jit.ir import Block, Graph, Value
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.inline import inline


@dataclass(frozen=True)
class Attribute:
    """A tensor or a value that hangs on a module: `path` leads to it."""

    path: tuple[str, ...]

    def of(self, owner: Any) -> Any:
        """What is there now."""
        for name in self.path:
            owner = getattr(owner, name)
        return owner


def lift(graph: Graph) -> tuple[Graph, list[Attribute]]:
    """The inlined graph without its module, and the attributes that its last inputs stand for."""
    made = inline(graph)
    if not made.inputs or not isinstance(made.inputs[0].type, types.Class):
        return made, []
    paths: dict[Value, tuple[str, ...]] = {made.inputs.pop(0): ()}
    found: dict[tuple[str, ...], Value] = {}
    writes = {paths_of(n.inputs[0], paths) + (n.attributes["name"],)
              for n in made.walk() if n.kind == "prim::SetAttr"}
    if writes:
        raise RuntimeError(f"attributes cannot be set in a compiled method: {sorted(writes)}")

    def visit(block: Block) -> None:
        kept = []
        for node in block.nodes:
            if node.kind == "prim::GetAttr" and node.inputs[0] in paths:
                path = (*paths[node.inputs[0]], node.attributes["name"])
                if isinstance(node.output.type, types.Class):
                    paths[node.output] = path
                    continue
                if path not in found:
                    found[path] = made.add_input(node.output.type, path[-1])
                change[node.output] = found[path]
                continue
            for inner in node.blocks:
                visit(inner)
            kept.append(node)
        block.nodes = kept
    change: dict[Value, Value] = {}
    visit(made)
    from toytorch.jit.ir import replace
    replace(made, change)
    return eliminate_dead_code(made), [Attribute(path) for path in found]


def paths_of(v: Value, paths: dict[Value, tuple[str, ...]]) -> tuple[str, ...]:
    """The path of a module's value."""
    return paths.get(v, ())
