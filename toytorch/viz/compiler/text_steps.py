"""Two columns of lines that change from step to step: a program and what is made of it."""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
import warnings
from collections.abc import Collection, Sequence
from typing import Any

from toytorch.facts.hints import Fn
from toytorch.jit.ir import Graph, Node
from toytorch.jit.trace import trace
from toytorch.jit.tracer import TracerWarning
from toytorch.viz.backward.steps_page import BackwardSteps
from toytorch.viz.backward.steps_picture import Animation
from toytorch.viz.compiler.read import lines_of
from toytorch.viz.draw import palette
from toytorch.viz.draw.palette import Hue
from toytorch.viz.draw.scene import Rect, Scene, Text
from toytorch.viz.draw.text import clean, shorten, width

MARGIN, GAP, LINE, INDENT = 22.0, 26.0, 19.0, 4.2
COLUMN = 340.0  # the widest a line may be drawn

Lines = tuple[Sequence[str], Collection[int]]  # and which of them are marked
Frame = tuple[str, Lines, Lines]


class TextSteps(BackwardSteps):
    """Two columns of lines to step through."""


def text_steps(frames: Sequence[Frame], titles: tuple[str, str] = ("before", "after")) -> TextSteps:
    """A page that steps through frames of two columns of lines.

    A frame is `(caption, left, right)`, and each side `(lines, marked)`: its lines, and the places
    of those that are marked. Marked lines are amber on the left and green on the right.

    >>> steps = text_steps([("x is 1", (["x = 1", "y = x"], {0}), (["x: 1"], {0}))])
    >>> len(steps)
    1
    """
    if not frames:
        raise ValueError("text_steps needs one frame at least")
    sides = [[frame[1] for frame in frames], [frame[2] for frame in frames]]
    wide = [
        max([90.0, *(_wide(line) for lines, _ in side for line in lines)], default=90.0) + 16
        for side in sides
    ]
    tall = max(len(lines) for side in sides for lines, _ in side)
    width, height = 2 * MARGIN + sum(wide) + GAP, MARGIN + (tall + 1.6) * LINE + 8
    title = f"{titles[0]} and {titles[1]}, step by step"
    scene = Scene(width, height, title, steps=len(frames))
    for n, frame in enumerate(frames):
        left = MARGIN
        for title, (lines, marked), hue, w in zip(
            titles, (frame[1], frame[2]), (palette.AMBER, palette.GREEN), wide
        ):
            scene.add(*_column(left, w, title, lines, marked, hue, n))
            left += w + GAP
    captions = [frame[0] for frame in frames]
    return TextSteps(Animation(scene, captions, 1), f"<{len(frames)} steps: {', '.join(titles)}>")


def trace_steps(f: Fn, *inputs: object) -> TextSteps:
    """A page that steps through a trace: the function's lines, and the graph as it grows.

    Lines of which the graph has nothing are never marked: they ran, and the tracer saw no operation.

    >>> def double(x):
    ...     y = x * 2
    ...     return y.tanh()
    >>> trace_steps(double, torch.ones(3))
    <4 steps: the program, the graph>
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TracerWarning)
        graph = trace(f, inputs, check_trace=False).graph
    texts, first = inspect.getsourcelines(inspect.unwrap(f))
    source = textwrap.dedent("".join(texts)).rstrip().splitlines()
    lines = _short(graph)
    nodes = [n for n in graph.nodes if not n.is_constant]
    frames: list[Frame] = [
        ("The function is called with real tensors. The graph has its inputs.",
         (source, {0}), (lines[:1], {0}))
    ]  # fmt: skip
    for n, node in enumerate(nodes, start=1):
        line = node.source.line - first if node.source else -1
        name = node.kind.split("::")[-1]
        said = f"Line {line + 1} asks for {name}: a node." if line >= 0 else f"{name}: a node."
        frames.append((said, (source, {line}), (lines[: n + 1], {n})))
    end = len(lines) - 1
    frames.append(
        ("The function returns: the graph has its outputs.",
         (source, _returns(source)), (lines, {end}))
    )  # fmt: skip
    return text_steps(frames, ("the program", "the graph"))


def _returns(source: list[str]) -> set[int]:
    """The last line with a return."""
    found = [
        node.lineno - 1
        for node in ast.walk(ast.parse("\n".join(source)))
        if isinstance(node, ast.Return)
    ]
    return set(found[-1:])


def run_steps(graph: Any, *inputs: Any) -> TextSteps:
    """A page that steps through a run of a graph: which node runs, and the values that are known.

    `graph` is a Graph, or a compiled function. Blocks of branches and loops are stepped through as
    often as they run.

    >>> f = torch.jit.trace(lambda x: (x * 2).tanh(), torch.ones(1))
    >>> run_steps(f, torch.zeros(1)).captions[1]
    'mul gives 0.'
    """
    from toytorch.jit.interpreter import Reader  # what runs graphs: wanted for this picture only

    graph = graph if isinstance(graph, Graph) else graph.graph
    lines, places = _short(graph), _places(graph)
    frames: list[Frame] = []
    known: dict[Any, Any] = {}

    def frame(said: str, line: int, new: Collection[Any]) -> None:
        shown = [v for v in known if not v.is_constant]
        right = [f"%{v.name} is {value_text(known[v])}" for v in shown]
        marked = {i for i, v in enumerate(shown) if v in new}
        frames.append((said, (lines, {line}), (right, marked)))

    class Watching(Reader):
        def run_node(self, node: Node, values: dict[Any, Any]) -> Sequence[Any]:
            if node.blocks:
                frame(f"{node.kind[6:]} begins.", places[id(node)], ())
            results = super().run_node(node, values)
            if not node.is_constant:
                known.update(zip(node.outputs, results))
                said = ", ".join(map(value_text, results)) or "nothing"
                name = node.kind.split("::")[-1]
                frame(f"{name} gives {said}.", places[id(node)], node.outputs)
            return results

        def run_block(self, block: Any, given: Sequence[Any], values: dict[Any, Any]) -> list[Any]:
            known.update(zip(block.inputs, given))
            if block is graph:
                frame("The inputs are entered.", 0, block.inputs)
            elif block.inputs:
                frame(f"Turn {given[0]} begins.", places[id(block)], block.inputs)
            return super().run_block(block, given, values)

    results = Watching().run_block(graph, inputs, {})
    said = ", ".join(map(value_text, results))
    frame(f"The result is {said}.", len(lines) - 1, graph.outputs)
    return text_steps(frames, ("the graph", "values"))


def value_text(value: Any) -> str:
    """A value in a few characters: a number, or the first elements of a tensor."""
    if hasattr(value, "detach"):
        flat = value.detach().flatten().tolist()
        text = " ".join(map(_number, flat[:4])) + (" …" if len(flat) > 4 else "")
        return text if value.ndim == 0 or len(flat) == 1 else f"[{text}]"
    return _number(value)


def _number(x: object) -> str:
    return f"{x:.4g}" if isinstance(x, float) else str(x)


def _short(graph: Graph) -> list[str]:
    """The lines of a graph without types."""
    found = []
    for line in lines_of(graph):
        said = line.strip()
        kept = said if said.startswith(("in ", "out ")) else said.partition("   ")[0]
        found.append(line[: len(line) - len(line.lstrip())] + kept)
    return found


def _places(graph: Graph) -> dict[int, int]:
    """The line of `lines_of` in which each node, and the head of each block, stands."""
    found: dict[int, int] = {}
    line = 1
    waiting: list[Any] = list(reversed(graph.nodes))
    while waiting:
        item = waiting.pop()
        if isinstance(item, Node) and item.is_constant:
            continue
        if isinstance(item, Node):
            for block in reversed(item.blocks):
                waiting += [None, *reversed(block.nodes), block]
        found[id(item)] = line  # None: the last line of a block
        line += 1
    return found


@functools.cache
def _wide(line: str) -> float:
    blanks = len(line) - len(line.lstrip())
    return min(COLUMN, width(line.strip(), palette.TEXT_SIZE)) + blanks * INDENT


def _column(
    x: float, w: float, title: str, lines: Sequence[str], marked: Collection[int], hue: Hue, n: int
) -> list[Any]:
    """One column below its title, in one frame."""
    when = (n, n)
    top = MARGIN + 6
    shapes: list[Any] = [
        Text(x + 8, top, title, palette.TITLE_SIZE, palette.MUTED, bold=True, when=when)
    ]
    for i, line in enumerate(lines):
        y = top + (i + 1.3) * LINE
        if i in marked:
            shapes.append(Rect(x, y - 13.5, w, LINE, 3, hue.tint, when=when))
            shapes.append(Rect(x, y - 13.5, 3, LINE, 0, hue.line, when=when))
        blanks = len(line) - len(line.lstrip())
        said = clean(line.strip())
        text = shorten(said, palette.TEXT_SIZE, COLUMN)
        shapes.append(
            Text(
                x + 8 + blanks * INDENT,
                y,
                text,
                palette.TEXT_SIZE,
                palette.INK if i in marked else palette.MUTED,
                tip=said if text != said else "",
                when=when,
            )
        )
    return shapes
