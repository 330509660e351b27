"""A recorded backward pass as one scene with a frame for each step.

Frame 0 shows the gradient that backward begins with; frame k shows the k-th node running, with
what it received above it and what it sends below; the last frame shows what the leaves hold.
"""

from __future__ import annotations

from dataclasses import dataclass

from toytorch.viz.backward.steps_record import Record, Step, is_leaf
from toytorch.viz.draw import palette
from toytorch.viz.draw.boxes import PLAIN, RESTING, Box, Look, arrow, moved, tinted
from toytorch.viz.draw.layout import layered
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.scene import (
    Command,
    Path,
    Point,
    Rect,
    Scene,
    Shape,
    Text,
    When,
    during,
    segment,
)
from toytorch.viz.draw.text import shorten, width
from toytorch.viz.graph.graph_read import dtype_text, shape_text

MARGIN = 26.0
_LABEL = 22.0
_LEAF_DONE = Look(palette.LEAF.tint, palette.LEAF.line, line=2.0)


@dataclass(slots=True)
class Animation:
    """The scene, and what is said about each of its frames."""

    scene: Scene
    captions: list[str]
    runs: int


def animation(record: Record, names: dict[int, str]) -> Animation:
    """Return the scene of a recorded pass, on no ground of its own: the page or still brings one.

    `names` gives leaves, and results by their node, by identity.
    """
    walked = record.walked
    frames = len(record.steps) + 2
    turn = {step.node: frame for frame, step in enumerate(record.steps, start=1)}
    step_of = {step.node: step for step in record.steps}
    labels = [_label(node, names) for node in walked.nodes]
    sent: dict[int, tuple[str, int]] = {}  # edge → (gradient, frame in which it was sent)
    for frame, step in enumerate(record.steps, start=1):
        sent |= {edge: (grad, frame) for edge, grad in step.sent.items()}

    boxes = [
        _box(node, label, step_of.get(at))
        for at, (node, label) in enumerate(zip(walked.nodes, labels, strict=True))
    ]
    root = walked.nodes[walked.roots[0]]
    top = Box(names.get(id(root), "result") if not is_leaf(root) else "result", round=True)
    edge_labels = [_edge_label_width(record.seed)]
    edge_labels += [
        _edge_label_width(sent[e][0]) if e in sent else 12.0 for e in range(len(record.edges))
    ]

    # boxes: the result, the nodes, then one label on each edge, the seed's edge first
    count = len(boxes)
    sizes = [top.size, *(box.size for box in boxes), *((w, _LABEL) for w in edge_labels)]
    ends = [(0, walked.roots[0] + 1)]
    ends += [(edge.upper + 1, edge.lower + 1) for edge in record.edges]
    halves: list[tuple[int, int]] = []
    for at, (upper, lower) in enumerate(ends):
        halves += [(upper, count + 1 + at), (count + 1 + at, lower)]
    placed = layered(sizes, halves, gap_x=22.0, gap_y=24.0)

    captions = _captions(record, labels, top.title, sent)
    width, height = placed.width + 2 * MARGIN, placed.height + 2 * MARGIN
    title = f"backward from {top.title}"
    scene = Scene(width, height, title, " ".join(captions), steps=frames)
    arrows: list[Shape] = []
    above: list[Shape] = []
    for at, (_, lower) in enumerate(ends):
        grad, frame = (record.seed, 0) if at == 0 else sent.get(at - 1, ("", frames))
        used = turn.get(lower - 1, frames)
        corner = placed.corners[count + 1 + at]
        down = placed.routes[2 * at], placed.routes[2 * at + 1]
        arrows += _edge(down, palette.BOX_LINE, 1.3, None)
        if grad:
            hot, cold = (frame, used), (used + 1, frames - 1)
            arrows += _edge(down, palette.EDGE, 1.4, cold)
            arrows += _edge(down, palette.HOT.line, 2.2, hot)
            above += _edge_label(corner, edge_labels[at], grad, palette.HOT, hot)
            above += _edge_label(corner, edge_labels[at], grad, None, cold)
    scene.add(*arrows)
    x, y = placed.corners[0]
    scene.add(*top.draw(x, y, tinted(palette.RESULT)))
    for at, box in enumerate(boxes):
        node_turn = turn.get(at, frames)
        scene.add(*_node(box, placed.corners[at + 1], step_of.get(at), node_turn, frames))
    scene.add(*above)
    scene.shapes[:] = moved(scene.shapes, MARGIN, MARGIN)
    return Animation(scene, captions, len(record.steps))


# boxes ---------------------------------------------------------------------------------------


def _label(node: object, names: dict[int, str]) -> str:
    if is_leaf(node):
        return names.get(id(node.variable), "leaf")  # type: ignore[attr-defined]  # of a leaf, see `is_leaf`
    return str(node.name())  # type: ignore[attr-defined]  # no leaf is a node


def _box(node: object, label: str, step: Step | None) -> Box:
    if not is_leaf(node):
        return Box(label)
    leaf = node.variable  # type: ignore[attr-defined]  # of a leaf, see `is_leaf`
    about = f"{shape_text(leaf.shape)} {dtype_text(leaf.dtype)}"
    lines = [about, *(_grad_lines(step) if step else [])]
    wide = max(Box(label, [about, line], round=True).w for line in lines)
    return Box(label, [about, ".grad"], round=True, w=wide)


def _grad_lines(step: Step) -> list[str]:
    """Return what a leaf says of its gradient before, while and after it accumulates."""
    total = " + ".join(map(_bare, step.received))
    old, new = _bare(step.old), _bare(step.new)
    return [f".grad: {old}", f".grad: {old} + {total} → {new}", f".grad: {new}"]


def _bare(grad: str) -> str:
    """Return a gradient's text without its shape, which the leaf already shows."""
    _, norm, value = grad.partition("norm ")
    return norm + value if norm else grad


def _node(box: Box, corner: Point, step: Step | None, turn: int, frames: int) -> list[Shape]:
    """Return a node's box as it looks before, during and after its turn."""
    phases: list[tuple[When, Look]] = [
        ((0, turn - 1), tinted(palette.LEAF) if box.round else PLAIN),
        ((turn, turn), tinted(palette.HOT, 2.4)),
        ((turn + 1, frames - 1), _LEAF_DONE if box.round else RESTING),
    ]
    lines = _grad_lines(step) if step and box.round else [".grad: unchanged"] * 3
    shapes: list[Shape] = []
    for (when, look), line in zip(phases, lines, strict=True):
        if when[0] > when[1]:
            continue
        shown = Box(
            box.title, [*box.lines[:1], line] if box.round else (), round=box.round, w=box.w
        )
        shapes += during(shown.draw(*corner, look), when)
    if step:
        for when, hue in (((turn, turn), palette.HOT.line), ((turn + 1, frames - 1), palette.EDGE)):
            shapes += during(_badge(corner, turn, hue), when)
    return shapes


def _badge(corner: Point, turn: int, color: str) -> list[Shape]:
    """Return the small number that says as which a node ran."""
    text = str(turn)
    wide = max(17.0, width(text, palette.SMALL_SIZE, bold=True) + 9)
    x, y = corner[0] - 4, corner[1] - 7
    return [
        Rect(x, y, wide, 17.0, 8.5, color, palette.PAPER, 1.5),
        Text(x + wide / 2, y + 12.6, text, palette.SMALL_SIZE, palette.BOX, "middle", True),
    ]


# gradients on edges ----------------------------------------------------------------------------


def _edge_label_width(grad: str) -> float:
    return width(shorten(grad, palette.TEXT_SIZE, 190), palette.TEXT_SIZE) + 20


def _edge_label(corner: Point, wide: float, grad: str, hue: Hue | None, when: When) -> list[Shape]:
    if when[0] > when[1]:
        return []
    x, y = corner
    fill, line, ink = (
        (hue.tint, hue.line, palette.INK) if hue else (palette.PAPER, palette.FRAME, palette.MUTED)
    )
    text = shorten(grad, palette.TEXT_SIZE, 190)
    label: list[Shape] = [
        Rect(x, y, wide, _LABEL, _LABEL / 2, fill, line, 1.4),
        Text(x + wide / 2, y + 15.2, text, palette.TEXT_SIZE, ink, "middle"),
    ]
    return during(label, when)


def _edge(
    halves: tuple[tuple[Command, ...], tuple[Command, ...]],
    color: str,
    line: float,
    when: When | None,
) -> list[Shape]:
    """Return an edge: into the place of its label, through it, and on to an arrow head."""
    if when is not None and when[0] > when[1]:
        return []
    into, out = halves
    enter, leave = into[-1][1][-1], out[0][1][0]
    through = Path(segment(enter, leave), stroke=color, line=line)
    shapes = [*arrow(into, color, line, head=False), through, *arrow(out, color, line)]
    return during(shapes, when)


# words ---------------------------------------------------------------------------------------


def _captions(
    record: Record, labels: list[str], result: str, sent: dict[int, tuple[str, int]]
) -> list[str]:
    said = [f"Backward starts at {result} with the gradient {record.seed}"]
    for step in record.steps:
        name = labels[step.node]
        came = [
            sent[e][0]
            for e, edge in enumerate(record.edges)
            if edge.lower == step.node and e in sent
        ]
        got = ", ".join(step.received)
        if len(came) > 1:
            if "norm" not in got:
                got = f"{' + '.join(came)} = {got}"
            else:
                got = f"{got}, a sum of {len(came)}"
        if step.new:
            who = "A leaf" if name == "leaf" else f"Leaf {name}"
            said.append(f"{who} receives {got} and its .grad goes from {step.old} to {step.new}")
            continue
        gifts = [f"{grad} to {labels[record.edges[e].lower]}" for e, grad in step.sent.items()]
        sends = " and ".join(gifts) if gifts else "nothing"
        said.append(f"{name} receives {got} and sends {sends}")
    leaves = sum(bool(step.new) for step in record.steps)
    nodes = len(record.steps) - leaves
    said.append(
        f"Done: {nodes} {'node' if nodes == 1 else 'nodes'} ran, and {leaves}"
        f" {'leaf holds its' if leaves == 1 else 'leaves hold their'} gradient"
    )
    return [line + "." if not line.endswith(".") else line for line in said]
