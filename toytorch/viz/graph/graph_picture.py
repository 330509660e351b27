"""The backward graph of tensors as a picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from toytorch.viz.draw import dot, palette
from toytorch.viz.draw.boxes import GHOST, PLAIN, Box, Look, arrow, legend, moved, tinted
from toytorch.viz.draw.layout import Layout, layered
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Scene, Text
from toytorch.viz.draw.text import width
from toytorch.viz.graph.graph_read import Drawn, read
from toytorch.viz.graph.graph_walk import Vertex

MARGIN = 26.0
LOOKS: dict[str, Look] = {
    "result": tinted(palette.RESULT),
    "leaf": tinted(palette.LEAF),
    "node": PLAIN,
    "hidden": GHOST,
}


class AutogradGraph(Picture):
    """A picture of a backward graph; `.dot` is the same graph in the DOT language."""

    def __init__(self, scene: Scene, summary: str, dot_text: str) -> None:
        super().__init__(scene, summary)
        self.dot = dot_text

    def _writers(self) -> dict[str, Callable[[], bytes]]:
        return {**super()._writers(), ".dot": lambda: self.dot.encode()}


def autograd_graph(
    *tensors: object,
    params: object = None,
    saved: bool = True,
    layout: str = "auto",
    limit: int = 64,
) -> AutogradGraph:
    """Draw the graph that `backward` from the tensors would walk.

    Results stand at the top, leaves at the bottom; an arrow is an entry of `next_functions`, the
    way a gradient flows. Nodes show the shape of their forward result and, with `saved`, what they
    keep for backward, with its shape and version. `params` gives names: a dictionary of names and
    tensors, such as `dict(model.named_parameters())`; it may name intermediate results too. Graphs
    of more than `limit` nodes are drawn in part, and say so.

    `layout` is "own", "dot" (by Graphviz, if installed) or "auto", which is "own": a picture
    then has the same bytes on every machine. Raises TypeError or RuntimeError for arguments without
    a graph, RuntimeError for "dot" without Graphviz. PyTorch has no counterpart; the idea is that
    of the torchviz package.

    Example:
        >>> x = torch.tensor(3.0, requires_grad=True)
        >>> autograd_graph((x * x).sin(), params={"x": x})
        <autograd graph: 1 result, 2 nodes (MulBackward0, SinBackward0), 1 leaf (x)>
    """
    if not tensors:
        raise TypeError("autograd_graph() needs at least one tensor: autograd_graph(loss)")
    if layout not in ("auto", "own", "dot"):
        raise ValueError(f"layout must be 'auto', 'own' or 'dot', not {layout!r}")
    if limit < 1:
        raise ValueError(f"limit must be at least 1, not {limit}")
    drawn = read(tensors, params, saved=saved, limit=limit)
    boxes = [box_of(vertex) for vertex in drawn.vertices]
    if layout == "dot":
        placed = dot.layout(boxes, drawn.edges)
    else:
        placed = layered([box.size for box in boxes], drawn.edges)
    summary = describe(drawn)
    scene = compose(drawn, boxes, placed, summary)
    return AutogradGraph(scene, f"<{summary}>", dot.source(boxes, drawn.edges))


def box_of(vertex: Vertex) -> Box:
    """Return the box that shows a vertex: round for tensors, square for functions."""
    return Box(vertex.title, vertex.lines, vertex.rows, round=vertex.kind in ("leaf", "result"))


def describe(drawn: Drawn) -> str:
    """Return one stable line of words for the picture."""
    kinds = Counter(v.title for v in drawn.vertices if v.kind == "node")
    leaves = [v.title for v in drawn.vertices if v.kind == "leaf"]
    results = sum(v.kind == "result" for v in drawn.vertices)
    hidden = any(v.kind == "hidden" for v in drawn.vertices)
    count = drawn.total if hidden else sum(kinds.values())
    parts = [
        _count(results, "result"),
        _count(count, "node") + (f", {len(kinds)} kinds shown" if hidden else _names(kinds)),
    ]
    if leaves:
        parts.append(_count(len(leaves), "leaf") + _names(dict.fromkeys(leaves)))
    return "autograd graph: " + ", ".join(parts)


def _count(count: int, noun: str) -> str:
    plural = {"leaf": "leaves"}.get(noun, noun + "s")
    return f"{count:,} {noun if count == 1 else plural}"


def _names(names: Any) -> str:
    ordered = sorted(names)
    if not ordered:
        return ""
    more = f" and {len(ordered) - 6} more" if len(ordered) > 6 else ""
    return f" ({', '.join(ordered[:6])}{more})"


def compose(drawn: Drawn, boxes: list[Box], placed: Layout, title: str) -> Scene:
    """Return the scene: arrows under boxes, a legend and, if parts are left out, a note below."""
    entries = [
        ("result", LOOKS["result"], True),
        ("node: what backward calls", PLAIN, False),
        ("saved tensor, with its version", tinted(palette.SAVED), False),
        ("leaf: gradients add up in its .grad", LOOKS["leaf"], True),
    ]
    if not any(row.swatch for vertex in drawn.vertices for row in vertex.rows):
        del entries[2]
    key, key_width, key_height = legend(entries, max(placed.width, 360.0))
    note_width = width(drawn.note, palette.TEXT_SIZE)
    inner = max(placed.width, key_width, note_width)
    below = MARGIN + placed.height + 24
    bottom = below + key_height + (24 if drawn.note else 0)
    scene = Scene(inner + 2 * MARGIN, bottom + 18, title, drawn.note)
    left = MARGIN + (inner - placed.width) / 2
    for route, (_, lower) in zip(placed.routes, drawn.edges, strict=True):
        ghostly = drawn.vertices[lower].kind == "hidden"
        dash = (4.0, 3.0) if ghostly else ()
        scene.add(*moved(arrow(route, dash=dash), left, MARGIN))
    for vertex, box, (x, y) in zip(drawn.vertices, boxes, placed.corners, strict=True):
        scene.add(*box.draw(left + x, MARGIN + y, LOOKS[vertex.kind]))
    middle = scene.width / 2
    if drawn.note:
        scene.add(Text(middle, below + 8, drawn.note, palette.TEXT_SIZE, palette.INK, "middle"))
        below += 24
    scene.add(*moved(key, middle - key_width / 2, below))
    scene.ground()
    return scene
