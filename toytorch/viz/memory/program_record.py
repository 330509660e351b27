"""Recording a small program: after each statement, the tensors, their memories, and what is kept.

A program is text. Its statements run one after the other in a namespace of their own, and after
each of them everything that the picture shows is read and kept as plain numbers and strings.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import toytorch
from toytorch.core.tensor import Tensor
from toytorch.facts import syntax
from toytorch.facts.node import Node
from toytorch.viz.backward.steps_record import brief, is_leaf
from toytorch.viz.graph.graph_read import shape_text
from toytorch.viz.memory.cells import memories

MOST_CELLS = 12


@dataclass(slots=True)
class Held:
    """A tensor by name: its version, where it comes from, and which cells of its memory it shows.

    `cells` has a True for each cell of the memory that is drawn.
    """

    name: str
    shape: str
    version: int
    origin: str
    grad: str
    cells: list[bool]


@dataclass(slots=True)
class Block:
    """A memory that named tensors show: the values of its cells, and the tensors."""

    key: int
    values: list[str]
    more: int
    tensors: list[Held]


@dataclass(slots=True)
class Kept:
    """A tensor that a node keeps: whose it is, the version it had, and the one it has now."""

    node: str
    what: str
    seen: int
    now: int

    @property
    def stale(self) -> bool:
        """Whether it was written to since."""
        return self.seen != self.now


@dataclass(slots=True)
class Frame:
    """What there is after a statement; `error` says how it failed."""

    blocks: list[Block] = field(default_factory=list)
    kept: list[Kept] = field(default_factory=list)
    error: str = ""


@dataclass(slots=True)
class Record:
    """A program's lines, the lines of each statement, and a frame before and after each."""

    lines: list[str]
    spans: list[tuple[int, int]]
    frames: list[Frame]


def record(source: str, given: dict[str, Any]) -> Record:
    """Run a program statement by statement and return what was there after each.

    It ends at the first error, which is the last frame's. Raises SyntaxError for what is no Python,
    ValueError for a program without statements.
    """
    statements = syntax.parse(source).body
    if not statements:
        raise ValueError("there is nothing to step through: the program has no statements")
    space: dict[str, Any] = {"torch": toytorch, **given}
    made = Record(source.splitlines(), [], [look(space)])
    for statement in statements:
        made.spans.append((statement.lineno - 1, (statement.end_lineno or statement.lineno) - 1))
        code = syntax.compiled(ast.Module(body=[statement], type_ignores=[]), "<program>")
        error = ""
        try:
            exec(code, space)  # the program is the caller's own text
        except Exception as failed:
            error = f"{type(failed).__name__}: {failed}"
        frame = look(space)
        frame.error = error
        made.frames.append(frame)
        if error:
            break
    return made


def look(space: dict[str, Any]) -> Frame:
    """Read all tensors of a namespace."""
    named = [(n, t) for n, t in space.items() if isinstance(t, Tensor) and n[0] != "_"]
    frame = Frame()
    for memory in memories(named):
        shown = range(min(memory.cells, MOST_CELLS))
        tensors = [
            _held(view.name, space[view.name], [view.places(cell) > 0 for cell in shown])
            for view in memory.views
        ]
        frame.blocks.append(
            Block(
                int(memory.bytes.data_ptr()),
                [memory.value(cell) for cell in shown],
                memory.cells - len(shown),
                tensors,
            )
        )
    names = {_place(t): n for n, t in reversed(named)}
    for node in _nodes(t for _, t in named):
        frame.kept += _kept(node, names)
    return frame


def _held(name: str, tensor: Tensor, cells: list[bool]) -> Held:
    if tensor.grad_fn is not None:
        origin = f"from {_short(tensor.grad_fn)}"
    elif tensor.requires_grad:
        origin = "leaf, wants a gradient"
    else:
        origin = "no gradient wanted"
    found = tensor.grad if tensor.is_leaf else None
    grad = "" if found is None else brief(found)
    return Held(name, shape_text(tensor.shape), int(tensor._version), origin, grad, cells)


def _short(node: Node | Tensor) -> str:
    return str(node.name()).rpartition("::")[2]


def _place(tensor: Tensor) -> tuple[Any, ...]:
    return tensor.data_ptr(), tuple(tensor.shape), tuple(tensor.stride())


def _nodes(tensors: Iterator[Any]) -> list[Any]:
    """All nodes behind tensors, oldest first, and the nodes inside CopySlices."""
    found: dict[Any, None] = {}
    stack = [t.grad_fn for t in tensors if t.grad_fn is not None]
    while stack:
        node = stack.pop()
        if node is None or node in found or is_leaf(node):
            continue
        found[node] = None
        inner = getattr(node, "inner", None)
        if inner is not None:
            found[inner] = None
        stack += [target for target, _ in node.next_functions]
    return sorted(found, key=lambda node: node.seq)


def _kept(node: Node | Tensor, names: dict[tuple[Any, ...], str]) -> Iterator[Kept]:
    """What a node keeps of tensors that can be written to."""
    op = node.op
    if node.saved is None or op is None or node.packed:
        return
    once = set()  # both factors of y * y are one
    for what, value, seen in zip(op.keeps, node.saved, node.versions, strict=True):
        if seen is None or not hasattr(value, "_array") or _place(value) in once:
            continue
        once.add(_place(value))
        name = names.get(_place(value))
        said = f"{name}, its result" if what.startswith("result") and name else name
        yield Kept(_short(node), said or "a copy of the old value", int(seen), int(value._version))
