"""How many bytes a function moves: op by op, and fused."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toytorch.jit import types
from toytorch.jit.ir import Graph, Node, Value
from toytorch.viz.compiler.read import name_of, plan_of
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import RESTING, legend, moved, tinted
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.picture import Picture
from toytorch.viz.draw.scene import Scene, Text, heading, tile
from toytorch.viz.draw.text import width

MARGIN, BAR, WIDE = 26.0, 26.0, 560.0
OTHERS = Hue(palette.EDGE, palette.REST)
HUES = (palette.BLUE, palette.GREEN, palette.AMBER, palette.PURPLE, palette.SKY)


@dataclass(frozen=True)
class Part:
    """What one operation, or one kernel, reads and writes."""

    name: str
    bytes: int


def traffic(f: object, *inputs: object) -> Picture:
    """Draws the bytes that go through memory: every op by itself, and as the compiler runs it.

    A tensor counts when it is read and when it is written; views count nothing, and what stays
    inside a kernel does not either. Forward and backward pass stand below each other.

    >>> traffic(lambda x: (x * 2).tanh() + 1, torch.ones(1000))
    <bytes moved: forward 24.0 kB op by op, 8.0 kB compiled>
    """
    plan = plan_of(f, inputs)
    rows = [("forward", plan.partition.forward, plan.optimised)]
    if plan.joint.tangents:
        rows.append(("backward", plan.partition.backward, plan.backward_graph))
    bars = [(name, parts_of(eager), parts_of(fused)) for name, eager, fused in rows]
    words = "; ".join(
        f"{name} {size_text(total(a))} op by op, {size_text(total(b))} compiled"
        for name, a, b in bars
    )
    return Picture(scene_of(bars, f"bytes moved: {words}"), f"<bytes moved: {words}>")


def parts_of(graph: Graph) -> list[Part]:
    """Every node of a graph that moves bytes."""
    found = [Part(label(node), moves(node)) for node in graph.nodes]
    return [p for p in found if p.bytes]


def label(node: Node) -> str:
    """An op's name, or how many a kernel holds."""
    inner = node.attributes.get("Subgraph")
    if not isinstance(inner, Graph):
        return name_of(node)
    return f"kernel of {sum(not n.is_constant for n in inner.nodes)}"


def moves(node: Node) -> int:
    """The bytes that a node reads and writes."""
    if node.kind.startswith("prim::") and "Subgraph" not in node.attributes:
        return 0
    if node.is_view:
        return 0
    return sum(map(bytes_of, dict.fromkeys(node.inputs))) + sum(map(bytes_of, node.outputs))


def bytes_of(v: Value) -> int:
    """The bytes of a tensor of known shape; dimensions that are only spread count once."""
    t = v.type
    if not isinstance(t, types.Tensor) or t.shape is None or t.dtype is None:
        return 0
    count = t.dtype.itemsize
    for i, n in enumerate(t.shape):
        count *= 1 if t.strides is not None and n and t.strides[i] == 0 else n
    return count


def total(parts: list[Part]) -> int:
    """The bytes of all parts."""
    return sum(p.bytes for p in parts)


def size_text(count: int) -> str:
    """A number of bytes in words.

    >>> size_text(999), size_text(24_000), size_text(3_500_000)
    ('999 B', '24.0 kB', '3.5 MB')
    """
    if count < 1000:
        return f"{count} B"
    for unit in ("kB", "MB", "GB"):
        count, small = count / 1000, count  # type: ignore[assignment]  # a float from here on
        if count < 1000 or unit == "GB":
            return f"{small / 1000:.1f} {unit}"
    return ""


def scene_of(bars: list[tuple[str, list[Part], list[Part]]], title: str) -> Scene:
    """Two bars for each pass, on one scale."""
    most = max(max(total(a), total(b)) for _, a, b in bars) or 1
    rows = [
        (f"{name}, {how}", parts)
        for name, a, b in bars
        for how, parts in (("op by op", a), ("compiled", b))
    ]
    side = max(width(text, palette.TEXT_SIZE) for text, _ in rows) + 14
    hues = hues_of([p for _, parts in rows for p in parts])
    key, _, key_height = legend(
        [(name, tinted(hue), False) for name, hue in hues.items()] + [("others", RESTING, False)],
        WIDE,
    )
    scene = Scene(
        2 * MARGIN + side + WIDE + 70, MARGIN * 2 + 40 + len(rows) * (BAR + 14) + key_height, title
    )
    scene.add(heading(MARGIN, MARGIN + 10, "bytes read and written"))
    y = MARGIN + 28
    for text, parts in rows:
        scene.add(Text(MARGIN + side - 10, y + 17, text, palette.TEXT_SIZE, palette.INK, "end"))
        x = MARGIN + side
        for part in parts:
            w = WIDE * part.bytes / most
            scene.add(*segment_of(part, x, y, w, hues.get(part.name, OTHERS)))
            x += w
        scene.add(
            Text(x + 8, y + 17, size_text(total(parts)), palette.TEXT_SIZE, palette.INK, bold=True)
        )
        y += BAR + 14
    scene.add(*moved(key, MARGIN + side, y + 10))
    scene.ground()
    return scene


def hues_of(parts: list[Part]) -> dict[str, Hue]:
    """A colour for each of the operations that move most, the largest first."""
    sums: dict[str, int] = {}
    for p in parts:
        sums[p.name] = sums.get(p.name, 0) + p.bytes
    return dict(zip(sorted(sums, key=lambda name: -sums[name]), HUES))


def segment_of(part: Part, x: float, y: float, w: float, hue: Hue) -> list[Any]:
    """One part of a bar, with its name where there is room."""
    shapes: list[Any] = [
        tile(x, y, max(w, 0.6), BAR, 2, hue, tip=f"{part.name}: {size_text(part.bytes)}")
    ]
    if width(part.name, palette.SMALL_SIZE) + 8 < w:
        shapes.append(Text(x + w / 2, y + 17, part.name, palette.SMALL_SIZE, palette.INK, "middle"))
    return shapes
