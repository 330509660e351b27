"""Graphs as text, the way PyTorch prints them."""

from __future__ import annotations

from toytorch.core.tensor import Tensor
from toytorch.jit.ir import Block, Graph, Node


def graph_text(graph: Graph, name: str = "graph") -> str:
    """The whole graph; groups of fused nodes follow it, each as a graph of its own."""
    groups: list[tuple[str, Graph]] = []
    below = ",\n" + " " * (len(name) + 1)
    lines = [f"{name}({below.join(map(repr, graph.inputs))}):"]
    lines += block_lines(graph, "  ", groups)
    lines += [f"  return ({', '.join('%' + v.name for v in graph.outputs)})"]
    text = "\n".join(lines) + "\n"
    for kind, inner in groups:
        text += f"with {graph_text(inner, f'{kind} = graph')}"
    return text


def block_lines(block: Block, indent: str, groups: list[tuple[str, Graph]]) -> list[str]:
    """The nodes of a block, one a line."""
    lines = []
    for node in block.nodes:
        kind = node.kind
        if isinstance(node.attributes.get("Subgraph"), Graph):
            kind = f"{kind}_{len(groups)}"
            groups.append((kind, node.attributes["Subgraph"]))
        lines.append(indent + node_line(node, kind))
        for i, inner in enumerate(node.blocks):
            lines.append(f"{indent}  block{i}({', '.join(map(repr, inner.inputs))}):")
            lines += block_lines(inner, indent + "    ", groups)
            lines.append(f"{indent}    -> ({', '.join('%' + v.name for v in inner.outputs)})")
    return lines


def node_line(node: Node, kind: str) -> str:
    """One node: results, operation, attributes, inputs, and where it comes from."""
    made = ", ".join(map(repr, node.outputs))
    attributes = ", ".join(
        f"{k}={value_text(v)}"
        for k, v in sorted(node.attributes.items())
        if k != "Subgraph" and not k.startswith("_")
    )
    line = f"{made} = {kind}" if made else f" = {kind}"
    line += f"[{attributes}]" if attributes else ""
    line += f"({', '.join('%' + v.name for v in node.inputs)})"
    scope = node.attributes.get("_scope")
    line += f", scope: {scope}" if scope else ""
    return line + (f" # {node.source}" if node.source else "")


def node_text(node: Node) -> str:
    """A node by itself, with its blocks."""
    block = Block()
    block.nodes.append(node)
    return "\n".join(block_lines(block, "", [])) + "\n"


def value_text(value: object) -> str:
    """A constant, in a form that `toytorch.jit.read` reads back (tensors aside)."""
    if isinstance(value, str):
        return '"' + value.translate(ESCAPES) + '"'
    if isinstance(value, Tensor):
        return "{" + str(value.item()) + "}" if value.ndim == 0 else "<Tensor>"
    if isinstance(value, list):
        return f"[{', '.join(map(value_text, value))}]"
    if isinstance(value, tuple):
        return f"({', '.join(map(value_text, value))}{',' * (len(value) == 1)})"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{value_text(k)}: {value_text(v)}' for k, v in value.items())}}}"
    return repr(value)


ESCAPES = {
    ord('"'): '\\"',
    ord("\\"): "\\\\",
    ord("\n"): "\\n",
    ord("\t"): "\\t",
    ord("\r"): "\\r",
    0: "\\x00",
}
