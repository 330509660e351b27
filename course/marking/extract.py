"""The statements an answer consists of, found in a notebook's text. Nothing is run here.

Of a notebook only what the answer needs is ever executed: its own definition, the statements at the
top level that give the names it uses their meaning or change what they stand for, and so on
(:mod:`course.marking.slice`). What else the notebook does, prints, draws or patches has no part in
its mark.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from course.marking.slice import Statement, needed
from toytorch.facts import syntax

# what a text may be to the compiler that is no program: wrong, with zeros in it, nested too deep
_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_SHORT = 10_000  # characters of a cell that is worth remembering, and costs no memory to speak of
_MAGIC = re.compile(r"^([ \t]*)(?:[%!?].*|[\w.]+\?\??[ \t]*)$", re.M)


@dataclass(frozen=True)
class Piece:
    """Statements of one cell, by their positions; ``label`` is how messages name the cell."""

    label: str
    source: str
    statements: tuple[int, ...]

    @functools.cached_property
    def nodes(self) -> list[ast.stmt]:
        """The statements themselves."""
        body = syntax.parse(self.source).body
        return [body[position] for position in self.statements]

    @functools.cached_property
    def texts(self) -> list[str]:
        """The lines of each, with decorators and comments."""
        lines = re.split(r"\r\n|\r|\n", self.source)  # which are Python's lines, and no others
        found = []
        for node in self.nodes:
            above = [one.lineno for one in getattr(node, "decorator_list", [])]
            first = min([node.lineno, *above])
            found.append("\n".join(lines[first - 1 : node.end_lineno]))
        return found


@dataclass
class Answer:
    """What was found for one exercise. ``problem`` says why there is nothing to run."""

    pieces: list[Piece] = field(default_factory=list)
    problem: str = ""
    source: str = ""  # the definition itself

    @property
    def code(self) -> str:
        """All statements that take part, but for imports."""
        return "\n\n".join(
            text
            for piece in self.pieces
            for text, node in zip(piece.texts, piece.nodes, strict=True)
            if not isinstance(node, (ast.Import, ast.ImportFrom))
        )

    @property
    def identity(self) -> list[Any]:
        """What makes two answers the same: they do the same, and their lines read the same."""
        return [
            [piece.label, text, node.lineno, node.col_offset, node.end_lineno, node.end_col_offset]
            for piece in self.pieces
            for text, node in zip(piece.texts, piece.nodes, strict=True)
        ]


def answer(cells: list[Any], exercise: str, function: str) -> Answer:
    """The answer to an exercise in a notebook's cells.

    Cells after the exercise's own check are left out, as they would come too late in the notebook.
    """
    found: list[Statement] = []
    for number, cell in enumerate(_until_check(cells, exercise), start=1):
        try:
            source = str(cell.source)
            find = _statements if len(source) < _SHORT else _statements.__wrapped__
            found += find(number, source)
        except _NO_PROGRAM as error:
            if re.search(rf"^[ \t]*(def|class)\s+{re.escape(function)}\b", cell.source, re.M):
                return Answer(problem=_wrong(error))
    own = [s for s in found if function in s.binds]
    if not own:
        return Answer(problem=f"no cell defines {function}")
    source = ast.get_source_segment(own[-1].source, own[-1].node) or ""
    try:
        return Answer(_pieces(needed(found, function)), source=source)
    except RecursionError as error:
        return Answer(problem=_wrong(error))


def _wrong(error: BaseException) -> str:
    if not isinstance(error, SyntaxError):
        said = str(error)[:100] or type(error).__name__
        return f"SyntaxError: Python cannot read the cell ({said})"
    text = (error.text or "").strip()[:100]
    return f"SyntaxError in line {error.lineno}: {error.msg}" + (f": {text}" if text else "")


def _until_check(cells: list[Any], exercise: str) -> Iterator[Any]:
    pattern = re.compile(rf"""check\(\s*["']{re.escape(exercise)}["']""")
    codes = [cell for cell in cells if cell.cell_type == "code"]
    last = max((n for n, c in enumerate(codes) if pattern.search(str(c.source))), default=None)
    yield from codes if last is None else codes[: last + 1]


@functools.lru_cache(128)  # an answer to one exercise and one to the next share their cells
def _statements(number: int, source: str) -> list[Statement]:
    try:
        body = syntax.parse(source).body
    except _NO_PROGRAM:
        source = _MAGIC.sub(r"\1pass", source)  # Jupyter's own commands
        body = syntax.parse(source).body
    found = [Statement(number, place, source, node) for place, node in enumerate(body)]
    for statement in found:
        _ = statement.binds  # compiled here, where what no compiler takes costs its own cell only
    return found


def _pieces(statements: list[Statement]) -> list[Piece]:
    by_cell: dict[int, list[Statement]] = {}
    for statement in statements:
        by_cell.setdefault(statement.cell, []).append(statement)
    return [
        Piece(f"<code cell {number}>", group[0].source, tuple(s.position for s in group))
        for number, group in by_cell.items()
    ]
