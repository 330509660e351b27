"""The checker: what every graph must be, asked after each pass."""

from __future__ import annotations

from toytorch.jit.interpreter import LANGUAGE
from toytorch.jit.ir import Block, Graph, Node, Value


class GraphError(RuntimeError):
    """A graph that no pass may leave behind."""


def check(graph: Graph, after: str = "") -> Graph:
    """Raises GraphError unless the graph is well formed; gives it back otherwise.

    Every value is made once and seen only where it is in scope; names are unique; a node stands in
    one block; the blocks of prim::If and prim::Loop take and give what the node does; the op of an
    `aten::` node exists and gets as many inputs as its signature allows.
    """
    where = f" after {after}" if after else ""
    try:
        _block(graph, set(), set(), {})
    except GraphError as error:
        raise GraphError(f"the graph is broken{where}: {error}\n{graph}") from None
    return graph


def _block(block: Block, seen: set[Value], nodes: set[int], names: dict[str, Value]) -> None:
    """Checks one block; `seen` are the values in scope where it begins, and again behind it."""
    own: list[Value] = []

    def make(v: Value, by: Node | None) -> None:
        if v in seen or names.setdefault(v.name, v) is not v:
            raise GraphError(f"{v!r} is made twice")
        if v.node is not by:
            raise GraphError(f"{v!r} does not know the node that makes it")
        seen.add(v)
        own.append(v)

    for v in block.inputs:
        make(v, None)
    for node in block.nodes:
        if id(node) in nodes:
            raise GraphError(f"a node stands in two places: {node!r}")
        nodes.add(id(node))
        for v in node.inputs:
            if v not in seen:
                raise GraphError(f"{v!r} is used where it is not known, by {node!r}")
        _node(node)
        for inner in node.blocks:
            _block(inner, seen, nodes, names)
        for v in node.outputs:
            make(v, node)
    for v in block.outputs:
        if v not in seen:
            raise GraphError(f"{v!r} is returned where it is not known")
    seen.difference_update(own)


def _node(node: Node) -> None:
    """What its operation asks of a node."""
    if node.kind.startswith("aten::"):
        if node.op is None:
            raise GraphError(f"there is no op behind {node.kind}")
        record = node.record
        if record is not None and len(node.inputs) > len(record.schema.args):
            raise GraphError(
                f"{node.kind} takes {len(record.schema.args)} inputs at most, not "
                f"{len(node.inputs)}"
            )
    elif node.is_constant:
        if node.inputs or "value" not in node.attributes or len(node.outputs) != 1:
            raise GraphError(f"a constant has a value and nothing else: {node!r}")
    elif node.kind == "prim::If":
        if len(node.inputs) != 1 or len(node.blocks) != 2:
            raise GraphError("prim::If has one condition and two blocks")
        for b in node.blocks:
            if len(b.outputs) != len(node.outputs) or b.inputs:
                raise GraphError(
                    "each block of prim::If gives what the node gives: "
                    f"{len(b.outputs)} values for {len(node.outputs)}"
                )
    elif node.kind == "prim::Loop":
        (body,) = node.blocks
        carried = len(node.outputs)
        if (
            len(node.inputs) != carried + 2
            or len(body.inputs) != carried + 1
            or (len(body.outputs) != carried + 1)
        ):
            raise GraphError(
                "prim::Loop takes a number of iterations, a condition and what is carried "
                f"({carried} values), and so does its block"
            )
    elif "Subgraph" in node.attributes:
        inner = node.attributes["Subgraph"]
        if len(inner.inputs) != len(node.inputs) or len(inner.outputs) != len(node.outputs):
            raise GraphError(f"{node.kind} and its graph disagree about inputs or outputs")
        _block(inner, set(), set(), {})
    elif node.kind not in LANGUAGE:
        raise GraphError(f"there is no operation {node.kind}")
