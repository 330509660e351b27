"""The glossary: every term with its meaning, its chapter, its source, and PyTorch's counterpart.

The terms stand in course/glossary.toml.
"""

from __future__ import annotations

import difflib
import functools
import tomllib
from dataclasses import dataclass
from html import escape
from pathlib import Path

from course.contents import Chapter, find

_FILE = Path(__file__).with_name("glossary.toml")


@dataclass(frozen=True)
class Term:
    """One entry. ``name`` is what to look for in ``file``."""

    term: str
    meaning: str
    chapter: Chapter
    file: str
    name: str
    pytorch: str


@functools.cache
def terms() -> tuple[Term, ...]:
    """All entries, by the alphabet."""
    tables = tomllib.loads(_FILE.read_text(encoding="utf-8"))
    found = [
        Term(term, meaning, find(chapter), file, name, pytorch)
        for table in tables.values()
        for term, (meaning, chapter, file, name, pytorch) in table.items()
    ]
    return tuple(sorted(found, key=lambda entry: entry.term.lower()))


class Glossary:
    """Entries, shown as a table."""

    def __init__(self, entries: tuple[Term, ...]) -> None:
        self.entries = entries

    def __repr__(self) -> str:
        return "\n".join(
            f"{e.term}: {e.meaning}\n    chapter {e.chapter.number:02d} · {e.file}: {e.name} · "
            f"PyTorch: {e.pytorch}"
            for e in self.entries
        )

    def _repr_html_(self) -> str:
        return self.html("{stem}.ipynb")

    def html(self, link: str, source: str = "") -> str:
        """A table; ``link`` and ``source`` say where chapters and source files lie."""
        rows = "".join(_row(entry, link, source) for entry in self.entries)
        head = "".join(
            f'<th style="text-align:left;padding:0.25em 0.7em">{title}</th>'
            for title in ("term", "meaning", "chapter", "in toytorch", "in PyTorch")
        )
        return (
            '<table class="glossary" style="border-collapse:collapse;line-height:1.4">'
            f"<thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>"
        )


def _row(entry: Term, link: str, source: str) -> str:
    chapter = f"{entry.chapter.number:02d}"
    if entry.chapter.written:
        chapter = f'<a href="{link.format(stem=entry.chapter.stem)}">{chapter}</a>'
    place = escape(entry.file.removeprefix("toytorch/"))
    if source:
        place = f'<a href="{source}{escape(entry.file)}">{place}</a>'
    cells = (
        f"<b>{escape(entry.term)}</b>",
        _code(entry.meaning),
        chapter,
        f"<code>{escape(entry.name)}</code><br>{place}",
        "<code>" + escape(entry.pytorch).replace(".", ".<wbr>") + "</code>",
    )
    style = "text-align:left;vertical-align:top;padding:0.25em 0.7em"
    return "<tr>" + "".join(f'<td style="{style}">{cell}</td>' for cell in cells) + "</tr>"


def _code(words: str) -> str:
    parts = escape(words).split("`")
    return "".join(f"<code>{part}</code>" if n % 2 else part for n, part in enumerate(parts))


def _singular(word: str, known: dict[str, Term]) -> str:
    """The term that a word in the plural stands for, else the word as it is."""
    if word in known:
        return word
    for ending, single in (("ies", "y"), ("ices", "ex"), ("ices", "ix"), ("es", ""), ("s", "")):
        if word.endswith(ending) and word.removesuffix(ending) + single in known:
            return word.removesuffix(ending) + single
    return word if word + "s" not in known else word + "s"


def glossary(*wanted: str) -> Glossary:
    """The glossary, or some of its terms.

    Raises:
        LookupError: no such term; the message suggests the nearest.
    """
    every = {entry.term.lower(): entry for entry in terms()}
    found = [_singular(word.lower(), every) for word in wanted]
    for word in found:
        if word not in every:
            near = difflib.get_close_matches(word, every, n=3, cutoff=0.4) or ["tensor"]
            raise LookupError(f"there is no term {word!r}; did you mean {' or '.join(near)}?")
    return Glossary(tuple(every[word] for word in found) or terms())
