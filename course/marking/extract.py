"""The definitions an answer consists of, found in a notebook's text. Nothing is run here.

Of a notebook only what the answer needs is ever executed: its own definition and the statements
at the top level that bind the names it uses, and so on. What else the notebook does, prints or
patches has no part in its mark.
"""

from __future__ import annotations

import ast
import builtins
import dis
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

# what a text may be to the compiler that is no program: wrong, with zeros in it, nested too deep
_NO_PROGRAM = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError)
_MAGIC = re.compile(r"^([ \t]*)[%!?].*$", re.M)


@dataclass(frozen=True)
class Piece:
    """Statements of one cell, by their positions; ``label`` is how messages name the cell."""

    label: str
    source: str
    statements: tuple[int, ...]

    @property
    def nodes(self) -> list[ast.stmt]:
        """The statements themselves."""
        body = ast.parse(self.source).body
        return [body[position] for position in self.statements]


@dataclass
class Answer:
    """What was found for one exercise. ``problem`` says why there is nothing to run."""

    pieces: list[Piece] = field(default_factory=list)
    problem: str = ""
    source: str = ""  # the definition itself


def answer(cells: list[Any], exercise: str, function: str) -> Answer:
    """The answer to an exercise in a notebook's cells.

    Cells after the exercise's own check are left out, as they would come too late in the notebook.
    """
    found: list[_Statement] = []
    for number, cell in enumerate(_until_check(cells, exercise), start=1):
        try:
            found += _statements(number, str(cell.source))
        except _NO_PROGRAM as error:
            if re.search(rf"^[ \t]*(def|class)\s+{re.escape(function)}\b", cell.source, re.M):
                return Answer(problem=_wrong(error))
    own = [s for s in found if function in s.binds]
    if not own:
        return Answer(problem=f"no cell defines {function}")
    needed = _needed(found, function)
    return Answer(
        _pieces(needed), source=ast.get_source_segment(own[-1].source, own[-1].node) or ""
    )


def _wrong(error: BaseException) -> str:
    if not isinstance(error, SyntaxError):
        said = str(error)[:100] or type(error).__name__
        return f"SyntaxError: Python cannot read the cell ({said})"
    text = (error.text or "").strip()[:100]
    return f"SyntaxError in line {error.lineno}: {error.msg}" + (f": {text}" if text else "")


@dataclass(frozen=True)
class _Statement:
    cell: int
    position: int
    source: str
    node: ast.stmt
    binds: frozenset[str]
    uses: frozenset[str]


def _until_check(cells: list[Any], exercise: str) -> Iterator[Any]:
    pattern = re.compile(rf"""check\(\s*["']{re.escape(exercise)}["']""")
    codes = [cell for cell in cells if cell.cell_type == "code"]
    last = max((n for n, c in enumerate(codes) if pattern.search(str(c.source))), default=None)
    yield from codes if last is None else codes[: last + 1]


def _statements(number: int, source: str) -> Iterator[_Statement]:
    try:
        body = ast.parse(source).body
    except _NO_PROGRAM:
        source = _MAGIC.sub(r"\1pass", source)  # Jupyter's own commands
        body = ast.parse(source).body
    for position, node in enumerate(body):
        binds = _binds(node)
        if binds:
            yield _Statement(number, position, source, node, frozenset(binds), _uses(node))


def _binds(node: ast.stmt) -> set[str]:
    """The names that a statement gives a meaning to; none for those that only do something."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return {node.name}
    if isinstance(node, (ast.Import, ast.ImportFrom)):
        return {(name.asname or name.name).split(".")[0] for name in node.names}
    if isinstance(node, (ast.Assign, ast.AnnAssign, ast.AugAssign)):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        names = [n for target in targets for n in ast.walk(target)]
        return {n.id for n in names if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    return set()


def _uses(node: ast.stmt) -> frozenset[str]:
    """The names a statement asks the module for, those inside its functions included."""
    waiting = [compile(ast.Module([node], []), "<cell>", "exec", dont_inherit=True)]
    found: set[str] = set()
    while waiting:
        code = waiting.pop()
        waiting += [const for const in code.co_consts if isinstance(const, CodeType)]
        asked = (i for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME"))
        found.update(str(i.argval) for i in asked)
    return frozenset(found)


def _needed(found: list[_Statement], function: str) -> list[_Statement]:
    """The statements behind a name, and behind the names in those, in the notebook's order."""
    waiting, known = [function], {function}
    kept: set[int] = set()
    while waiting:
        name = waiting.pop()
        for n in _last_meaning(found, name):
            kept.add(n)
            fresh = found[n].uses - known - set(dir(builtins))
            known |= fresh
            waiting += fresh
    return [found[n] for n in sorted(kept)]


def _last_meaning(found: list[_Statement], name: str) -> list[int]:
    """The last statement that gives a name, and those before that it adds to (``x += 1``)."""
    taken: list[int] = []
    for n in reversed(range(len(found))):
        if name not in found[n].binds:
            continue
        taken.append(n)
        node = found[n].node
        if isinstance(node, ast.Assign):
            adds = name in {m.id for m in ast.walk(node.value) if isinstance(m, ast.Name)}
        else:
            adds = isinstance(node, ast.AugAssign)
        if not adds:
            break
    return taken


def _pieces(statements: list[_Statement]) -> list[Piece]:
    by_cell: dict[int, list[_Statement]] = {}
    for statement in statements:
        by_cell.setdefault(statement.cell, []).append(statement)
    return [
        Piece(f"<code cell {number}>", group[0].source, tuple(s.position for s in group))
        for number, group in by_cell.items()
    ]
