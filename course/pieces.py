"""A learner's own pieces, kept when their check turns green, and brought back in later chapters.

    from course import catch_up

    catch_up(8)                  # at the start of chapter 8: your pieces of chapters 1 to 7
    catch_up(8, install=True)    # and the framework runs on them for the rest of the session

Nothing has to be solved for that. Where there is no piece of yours, toytorch's own stands in.
"""

from __future__ import annotations

from html import escape
from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from course import judge, package, progress, registry
from course.contents import find
from course.files import write_atomically
from course.records import Exercise


def folder() -> Path:
    """Where pieces are kept: beside the learner's progress."""
    return progress.path().parent / ".pieces"


def keep(found: Exercise) -> bool:
    """Keep the text of the answer that this notebook session defines, if there is a session."""
    text = _text(found)
    if not text:
        return False
    try:
        write_atomically(folder() / f"{found.name}.py", text.encode())
        package.keep(found, text)
    except OSError:  # a folder that cannot be written costs the piece, never the lesson
        return False
    return True


def _text(found: Exercise) -> str:
    """The definitions behind an answer, as far as the cells that ran hold them."""
    from course.marking import extract

    try:
        from IPython import get_ipython
    except ImportError:
        return ""
    shell: Any = get_ipython()  # type: ignore[no-untyped-call,unused-ignore]
    if shell is None:
        return ""
    ran = [SimpleNamespace(cell_type="code", source=s) for s in shell.user_ns.get("In", []) if s]
    answer = extract.answer(ran, found.name, found.function)
    parts = []
    for piece in answer.pieces:
        lines = piece.source.splitlines()
        for node in piece.nodes:
            first = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", []))])
            parts.append("\n".join(lines[first - 1 : node.end_lineno]))
    return "\n\n\n".join(parts) + "\n" if parts else ""


def load(found: Exercise) -> Any:
    """The kept answer to an exercise, made anew; None if there is none that can be read."""
    from course.marking import execute

    path = folder() / f"{found.name}.py"
    try:
        tree = _parse(path.read_text(encoding="utf-8"))
        space: dict[str, Any] = {"__name__": "__main__"}
        execute.run([(str(path), node) for node in tree.body], space)
        return space.get(found.function)
    except Exception:  # whatever is wrong with the file, the framework's own piece stands in
        return None


class CaughtUp:
    """Which pieces are yours and which are the framework's, shown as a table."""

    def __init__(self, states: dict[str, str]) -> None:
        self.states = states

    def __repr__(self) -> str:
        lines = [self._headline()]
        for number, found in self._chapters():
            signs = "".join(_SIGNS[self.states[one.name]] for one in found)
            lines.append(f"  {number:02d} {find(number).title:<40} {signs}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = []
        for number, found in self._chapters():
            names = "".join(
                f'<span style="margin-right:0.9em;white-space:nowrap">'
                f"{_SIGNS[self.states[one.name]]} {escape(one.title)}</span> "
                for one in found
            )
            rows.append(f"<div>{number:02d}</div><div>{names}</div>")
        return (
            '<div style="font-family:var(--jp-content-font-family,system-ui,sans-serif)">'
            f"<b>{escape(self._headline())}</b>"
            '<div style="display:grid;grid-template-columns:2em 1fr;gap:0.2em 0.6em;'
            f'margin-top:0.4em;line-height:1.5">{"".join(rows)}</div></div>'
        )

    def _chapters(self) -> list[tuple[int, list[Exercise]]]:
        found = [one for name, one in registry.all_exercises().items() if name in self.states]
        return [(number, list(own)) for number, own in groupby(found, key=lambda one: one.chapter)]

    def _headline(self) -> str:
        mine = sum(state == "yours" for state in self.states.values())
        changed = sum(state == "changed" for state in self.states.values())
        text = f"{mine} of your own answers are back, toytorch's are used for the other "
        text += f"{len(self.states) - mine}"
        return text + (f" ({changed} of yours no longer pass)." if changed else ".")


_SIGNS = {"yours": "✔", "framework": "○", "changed": "✘"}


def catch_up(chapter: int | str | None = None, *, install: bool = False) -> CaughtUp:
    """Bring back your answers of the chapters before this one; toytorch's are used for the rest.

    Each is checked again first. From then on ``use`` and ``active`` find them.

    Args:
        chapter: where you start; None takes the pieces of all chapters.
        install: plug those that have an injection point, for the rest of the session.
    """
    before = None if chapter is None else find(chapter).number
    wanted = {
        name: found
        for name, found in registry.all_exercises().items()
        if before is None or found.chapter < before
    }
    for found in wanted.values():  # checks run on the framework alone
        found.uninstall()
    states = {}
    for name, found in wanted.items():
        piece = load(found)
        states[name] = "framework"
        if piece is not None:
            green = judge.judge(found, piece).state == "green"
            states[name] = "yours" if green else "changed"
            found.keep(piece if green else None)
    if install:
        for name, found in wanted.items():
            if states[name] == "yours" and found.inject is not None:
                found.install(quiet=True)
    return CaughtUp(states)


def _parse(text: str) -> Any:
    """The syntax tree of a text."""
    from toytorch.facts.syntax import parse  # the launcher starts before NumPy is installed

    return parse(text)
