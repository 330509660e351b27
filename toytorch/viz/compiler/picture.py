"""A graph of the compiler as a picture."""

from __future__ import annotations

from toytorch.jit.ir import Graph, Node, Value
from toytorch.viz.compiler.read import compiled, line_of, name_of, operand, shape_text
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import PLAIN, Box, Look, Row, arrow, legend, moved, tinted
from toytorch.viz.draw.layout import layered
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Scene, Text
from toytorch.viz.draw.text import width

MARGIN = 26.0
LOOKS: dict[str, Look] = {
    "input": tinted(palette.LEAF),
    "output": tinted(palette.RESULT),
    "op": PLAIN,
    "group": tinted(palette.PURPLE, 1.6),
    "write": tinted(palette.RED),
}


def ir(graph: object, *inputs: object, limit: int = 120) -> Picture:
    """Draws a graph: inputs at the top, operations as boxes, results at the bottom.

    `graph` is a Graph, or a function or module, compiled or not, with `inputs`: then it is the
    graph as it is run for them. A fused group is one framed box with its operations inside; an
    operation that writes to memory is red. Constants stand in the boxes that use them. Of graphs of
    more than `limit` nodes the first ones are drawn, and the picture says so.

    >>> f = torch.jit.trace(lambda x, y: torch.tanh(x * y), (torch.ones(2), torch.ones(2)))
    >>> ir(f.graph)
    <graph: 2 inputs, 2 operations (mul, tanh), 1 output>
    """
    if not isinstance(graph, Graph):
        function = compiled(graph, inputs)
        graph = function.graph_for(*inputs) if inputs else function.graph
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    nodes = [n for n in graph.nodes if not n.is_constant]
    drawn = nodes[:limit]
    boxes, kinds, edges = boxes_of(graph, drawn, whole=len(drawn) == len(nodes))
    placed = layered([c.size for c in boxes], edges)
    summary = describe(graph, nodes)
    note = "" if len(drawn) == len(nodes) else f"the first {limit} of {len(nodes)} operations"
    entries = [
        (label, LOOKS[kind], kind in ("input", "output"))
        for kind, label in (
            ("input", "input"),
            ("op", "operation"),
            ("group", "operations in one kernel"),
            ("write", "writes to memory"),
            ("output", "result"),
        )
        if kind in kinds
    ]
    key, key_width, key_height = legend(entries, max(placed.width, 360.0))
    inner = max(placed.width, key_width, width(note, palette.TEXT_SIZE))
    bottom = MARGIN + placed.height + 24 + key_height + (24 if note else 0)
    scene = Scene(inner + 2 * MARGIN, bottom + 18, summary, note)
    left = MARGIN + (inner - placed.width) / 2
    for route in placed.routes:
        scene.add(*moved(arrow(route), left, MARGIN))
    for box, kind, (x, y) in zip(boxes, kinds, placed.corners, strict=True):
        scene.add(*box.draw(left + x, MARGIN + y, LOOKS[kind], palette.PURPLE))
    scene.add(*moved(key, scene.width / 2 - key_width / 2, MARGIN + placed.height + 24))
    if note:
        scene.add(Text(scene.width / 2, bottom, note, palette.TEXT_SIZE, palette.MUTED, "middle"))
    scene.ground()
    return Picture(scene, f"<{summary}{', ' + note if note else ''}>")


def boxes_of(
    graph: Graph, nodes: list[Node], *, whole: bool
) -> tuple[list[Box], list[str], list[tuple[int, int]]]:
    """The boxes of inputs, nodes and results, what each is, and the arrows between them."""
    boxes: list[Box] = []
    kinds: list[str] = []
    maker: dict[Value, int] = {}
    edges: list[tuple[int, int]] = []

    def add(box: Box, kind: str, needs: list[Value]) -> int:
        at = len(boxes)
        boxes.append(box)
        kinds.append(kind)
        edges.extend(dict.fromkeys((maker[v], at) for v in needs if v in maker))
        return at

    for v in graph.inputs:
        maker[v] = add(Box("%" + v.name, [shape_text(v)], round=True), "input", [])
    for node in nodes:
        inner_needs = [v for b in node.blocks for n in b.walk() for v in n.inputs]
        at = add(box_of(node), kind_of(node), [*node.inputs, *inner_needs])
        maker.update((v, at) for v in node.outputs)
    if whole:
        for i, v in enumerate(graph.outputs):
            add(
                Box(
                    f"result {i}" if len(graph.outputs) > 1 else "result", [operand(v)], round=True
                ),
                "output",
                [v],
            )
    return boxes, kinds, edges


def kind_of(node: Node) -> str:
    """How a node is coloured."""
    if isinstance(node.attributes.get("Subgraph"), Graph):
        return "group"
    return "write" if node.writes else "op"


def box_of(node: Node) -> Box:
    """The box of a node: its results, constants among its operands, what is inside it."""
    inner = node.attributes.get("Subgraph")
    constants = [operand(v) for v in node.inputs if v.is_constant]
    lines = [f"%{v.name}   {shape_text(v)}" for v in node.outputs[:4]]
    if constants:
        lines.append("with " + ", ".join(constants))
    rows = []
    if isinstance(inner, Graph):
        rows = [
            Row(name_of(n), shape_text(n.outputs[0]) if n.outputs else "", swatch=True)
            for n in inner.nodes
            if not n.is_constant
        ]
    for i, block in enumerate(node.blocks):
        rows.append(Row(f"block {i}", f"{len(block.nodes)} nodes"))
        rows += [
            Row("   " + line_of(n).partition("   ")[0], "")
            for n in block.nodes
            if not n.is_constant
        ][:6]
    return Box(name_of(node), lines, rows)


def describe(graph: Graph, nodes: list[Node]) -> str:
    """The picture in words."""
    names = list(dict.fromkeys(map(name_of, nodes)))
    shown = ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
    return (
        f"graph: {_count(len(graph.inputs), 'input')}, {_count(len(nodes), 'operation')}"
        + (f" ({shown})" if names else "")
        + f", {_count(len(graph.outputs), 'output')}"
    )


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' * (count != 1)}"
