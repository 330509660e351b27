"""One way to write an exercise's answer: the stub, the reference, or a mutant.

An exercise module defines the same function several times, once per variant that is written out,
so that each reads exactly as a learner would write it. Two things follow. The source text has to be
found by counting definitions, since the module's name ends up bound to the last of them; and a
variant is compiled again into a namespace of its own, so that one which calls itself calls *itself*.
"""

from __future__ import annotations

import ast
import dataclasses
import functools
import linecache
import sys
import textwrap
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_seen: Counter[tuple[str, str]] = Counter()


@dataclass(frozen=True)
class Variant:
    """A definition in an exercise module, kept as a place in its source.

    Fields:
        kind: ``"stub"``, ``"reference"`` or ``"mutant"``.
        label: what a mutant is called, in words: ``"overwrites instead of adding"``.
        why: what a learner whose code behaves like this mutant is told.
        changes: places of the definition where it differs: (text, what stands there instead).
    """

    kind: str
    name: str
    module: str
    nth: int
    label: str = ""
    why: str = ""
    changes: tuple[tuple[str, str], ...] = ()

    @classmethod
    def of(cls, definition: Any, kind: str, label: str = "", why: str = "") -> Variant:
        """The variant for a function or class that a decorator was just given."""
        key = (definition.__module__, definition.__name__)
        nth = _seen[key]
        _seen[key] += 1
        return cls(kind, key[1], key[0], nth, label, textwrap.dedent(why).strip())

    def changed(
        self, kind: str, label: str, why: str, changes: tuple[tuple[str, str], ...]
    ) -> Variant:
        """The same definition, but for some places.

        Raises:
            LookupError: a text to be changed is not there, or more than once.
        """
        made = dataclasses.replace(
            self, kind=kind, label=label, why=textwrap.dedent(why).strip(), changes=changes
        )
        made.source  # noqa: B018 - which fails at once if a text is not there
        return made

    def emptied(
        self, asks: str | Mapping[str, str], changes: tuple[tuple[str, str], ...] = ()
    ) -> Variant:
        """The stub: the same definition with bodies left out, and perhaps some places changed.

        ``asks`` says what stands in place of a function's body, or in place of those of the
        functions inside by their names: a comment before ``raise NotImplementedError``, or code, which has
        a comment of its own. One with no text is one that the stub lacks.
        """
        source = self.source
        lines = source.splitlines()

        def empty(part: Any) -> None:
            indent = " " * (part.col_offset + 4)
            first, told = part.body[0], ast.get_docstring(part) is not None
            begin = first.end_lineno if told else first.lineno - 1
            text = asked[part.name]
            code = text if "#" in text else "\n".join(f"# {line}" for line in text.splitlines())
            if code is not text:
                code += "\nraise NotImplementedError"
            lines[begin : part.end_lineno] = textwrap.indent(code, indent).splitlines()

        def visit(parts: list[Any]) -> None:
            for part in reversed(parts):  # what is left out moves the lines below it
                if asked.get(getattr(part, "name", None)):
                    empty(part)
                elif getattr(part, "name", None) in asked:
                    begin = min([part.lineno, *(one.lineno for one in part.decorator_list)]) - 1
                    del lines[begin : part.end_lineno + 1]
                elif isinstance(part, ast.ClassDef | ast.FunctionDef):
                    visit(part.body)

        asked: Mapping[Any, str] = {self.name: asks} if isinstance(asks, str) else asks
        visit(_parse(source).body)
        made = (source, "\n".join(lines).rstrip())
        return self.changed("stub", "", "", (made, *changes))

    @property
    def source(self) -> str:
        """The definition's text without its decorators, ready for a notebook cell."""
        node, text, _ = _definition(self.module, self.name, self.nth)
        lines = text.splitlines()[node.lineno - 1 : node.end_lineno]
        source = textwrap.dedent("\n".join(lines))
        for before, after in self.changes:
            if source.count(before) != 1:
                times = source.count(before)
                raise LookupError(f"{self.label!r} of {self.name}: {times} times {before!r}")
            source = source.replace(before, after)
        return source

    @functools.cached_property
    def value(self) -> Any:
        """The function or class itself, alone in a copy of its module's namespace."""
        node, _, filename = _definition(self.module, self.name, self.nth)
        bare: Any = ast.Module(body=[node], type_ignores=[])
        if self.changes:  # a text of its own, which panels quote lines of
            bare, filename = self.source, f"<{self.name}: {self.label or self.kind}>"
            linecache.cache[filename] = (len(bare), None, bare.splitlines(True), filename)
        space = dict(vars(sys.modules[self.module]))
        exec(compile(bare, filename, "exec"), space)
        return space[self.name]


def forget(module: str) -> None:
    """Start counting a module's definitions anew, for a module that is executed again."""
    for key in [key for key in _seen if key[0] == module]:
        del _seen[key]
    _definitions.cache_clear()


def _definition(module: str, name: str, nth: int) -> tuple[Any, str, str]:
    filename = str(sys.modules[module].__file__)
    text, found = _definitions(filename)
    return found[name][nth], text, filename


@functools.cache
def _definitions(filename: str) -> tuple[str, dict[str, list[Any]]]:
    """All decorated definitions of a file by name, in order, with the decorators cut off."""
    text = Path(filename).read_text(encoding="utf-8")
    found: dict[str, list[Any]] = {}
    for node in _parse(text).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.decorator_list:
            node.decorator_list = []
            found.setdefault(node.name, []).append(node)
    return text, found


def _parse(text: str) -> Any:
    """The syntax tree of a text."""
    from toytorch.facts.syntax import parse  # the launcher starts before NumPy is installed

    return parse(text)
