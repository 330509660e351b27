"""The loop nest of a kernel: what is loaded, computed and stored, and in which order.

Code generators turn a Nest into Python, LLVM or CUDA C. Values are named once (Let, Load); a Var is a
place that loops add to. Index variables and sizes are values of the type "index".
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from toytorch.loops.language.steps import Argument, Array, Scalar

Index = str | int  # the name of an index variable or of a size, or a number
# Where an element is: for each axis the indices that are added up. -1 is the only axis of scratch.
Place = tuple[tuple[int, Index], ...]


@dataclass(frozen=True)
class Buffer:
    """An array (or scratch memory) as the loops see it.

    axes   the axes it varies over; inner: its stride along the last one ("0", "1", "s")
    size   of scratch: the numbers (or names of sizes) to be multiplied
    same   the buffer that is the same memory, in an in-place call
    """

    name: str
    type: str
    axes: tuple[int, ...]
    inner: str = "1"
    size: tuple[Index, ...] = ()
    same: str = ""


@dataclass(frozen=True)
class Let:
    """name = op(args...). For indices: add, sub, mul, quotient, rest, minimum."""

    name: str
    type: str
    op: str
    args: tuple[Argument, ...]


@dataclass(frozen=True)
class Load:
    """name = an element of a buffer."""

    name: str
    type: str
    buffer: str
    place: Place


@dataclass(frozen=True)
class Store:
    """An element of a buffer = value."""

    buffer: str
    place: Place
    value: Argument


@dataclass(frozen=True)
class Var:
    """A place for a running total, with what it starts with."""

    name: str
    type: str
    start: Argument


@dataclass(frozen=True)
class Update:
    """name = op(name, value), in any order of the loop's iterations."""

    name: str
    op: str
    value: Argument


@dataclass(frozen=True)
class Join:
    """The end of a reduction over lanes: where lanes run at once, their totals are joined here."""

    name: str
    op: str


@dataclass(frozen=True)
class For:
    """for index in range(start, stop, step).

    kind   "rows": the iterations are independent, and divided among threads; "lanes": neighbours in
           memory, made for vector instructions; "serial"
    """

    index: str
    start: Index
    stop: Index
    body: tuple[Statement, ...]
    kind: str = "serial"
    step: int = 1


Statement = Let | Load | Store | Var | Update | Join | For


@dataclass(frozen=True)
class Nest:
    """All of a kernel's loops. They do the part lo..hi of `range` (a product of sizes).

    tile   of the columns mode: the last axis counts in `range` by blocks of this many lanes
    """

    buffers: tuple[Buffer, ...]
    scalars: tuple[Scalar, ...]
    axes: tuple[tuple[str, ...], ...]
    extents: tuple[str, ...]  # dimensions whose sizes are wanted as numbers, size_i, size_j
    range: tuple[int, ...]  # axes
    tile: int
    body: tuple[Statement, ...]
    outputs: int = field(default=1)  # so many of the buffers, the first, are written
    arrays: tuple[Array, ...] = ()

    def __str__(self) -> str:
        return "\n".join(_lines(self.body, 0))


def _lines(body: tuple[Statement, ...], depth: int) -> Iterator[str]:
    """The text of statements, one a line."""
    for s in body:
        margin = "    " * depth
        if isinstance(s, For):
            step = f" step {s.step}" if s.step != 1 else ""
            yield f"{margin}{s.kind} {s.index} from {s.start} to {s.stop}{step}:"
            yield from _lines(s.body, depth + 1)
        elif isinstance(s, Let):
            yield f"{margin}{s.name} = {s.op}({', '.join(map(str, s.args))})"
        elif isinstance(s, Load):
            yield f"{margin}{s.name} = {s.buffer}[{place_text(s.place)}]"
        elif isinstance(s, Store):
            yield f"{margin}{s.buffer}[{place_text(s.place)}] = {s.value}"
        elif isinstance(s, Var):
            yield f"{margin}var {s.name} {s.type} = {s.start}"
        elif isinstance(s, Update):
            yield f"{margin}{s.name} = {s.op}({s.name}, {s.value})"
        else:
            yield f"{margin}join {s.name} by {s.op}"


def needed(body: tuple[Statement, ...]) -> tuple[Statement, ...]:
    """The statements without indices and loads that nobody uses."""
    while True:
        used = {name for s in statements(body) for name in _uses(s)}
        made = _without(body, used)
        if made == body:
            return body
        body = made


def _without(body: tuple[Statement, ...], used: set[str]) -> tuple[Statement, ...]:
    kept = (s for s in body if not isinstance(s, (Let, Load)) or s.name in used)
    return tuple(
        For(s.index, s.start, s.stop, _without(s.body, used), s.kind, s.step)
        if isinstance(s, For)
        else s
        for s in kept
    )


def statements(body: tuple[Statement, ...]) -> Iterator[Statement]:
    """All statements, those in loops too."""
    for s in body:
        yield s
        if isinstance(s, For):
            yield from statements(s.body)


def _uses(s: Statement) -> Iterator[str]:
    """The names that a statement reads."""
    found: list[object] = []
    if isinstance(s, Let):
        found = list(s.args)
    elif isinstance(s, (Load, Store)):
        found = [index for _, index in s.place]
        if isinstance(s, Store):
            found.append(s.value)
    elif isinstance(s, For):
        found = [s.start, s.stop]
    elif isinstance(s, Update):
        found = [s.name, s.value]
    elif isinstance(s, Var):
        found = [s.start]
    return (name for name in found if isinstance(name, str))


def place_text(place: Place) -> str:
    """The indices of a place, as in "r, k + j"."""
    by_axis: dict[int, list[str]] = {}
    for axis, index in place:
        by_axis.setdefault(axis, []).append(str(index))
    return ", ".join(" + ".join(parts) for parts in by_axis.values()) or "()"


def strides_of(nest: Nest) -> list[tuple[str, int]]:
    """The (buffer, axis) pairs whose strides are values of the call."""
    last = len(nest.axes) - 1
    return [
        (b.name, a)
        for b in nest.buffers
        for a in b.axes
        if a >= 0 and not b.same and not (a == last and b.inner in "01")
    ]
