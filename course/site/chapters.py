"""A chapter's solved notebook as a page: stubs in view, solutions behind a line to open."""

from __future__ import annotations

import re
from html import escape
from typing import Any

from course import registry
from course.build import markup, slides
from course.contents import ROOT, Chapter
from course.site.layout import page

_HEADING = re.compile(r"<h([123])>(.*?)</h\1>", re.S)


def chapter_page(chapter: Chapter, before: Chapter | None, after: Chapter | None) -> str:
    """The page of a chapter, with its headings beside it."""
    import nbformat

    notebook: Any = nbformat.read(ROOT / "solutions" / f"{chapter.stem}.ipynb", as_version=4)
    headings: list[tuple[int, str, str]] = []
    parts = [_cell(cell, headings) for cell in notebook.cells]
    links = _around(chapter, before, after)
    body = f"{links}\n<article>{''.join(parts)}</article>\n{links}"
    side = "".join(
        f'<a class="h{level}" href="#{name}">{text}</a>' for level, name, text in headings
    )
    title = f"{chapter.number:02d} {chapter.title}"
    return page(title, body, depth=1, side=side)


def _around(chapter: Chapter, before: Chapter | None, after: Chapter | None) -> str:
    left = _link(before, "← {}") if before else ""
    right = _link(after, "{} →") if after else ""
    middle = f'<a href="../slides/{chapter.stem}.html">Slides</a>'
    return f'<div class="around"><span>{left}</span>{middle}<span>{right}</span></div>'


def _link(chapter: Chapter, words: str) -> str:
    title = words.format(f"{chapter.number:02d} {escape(chapter.title)}")
    return f'<a href="{chapter.stem}.html">{title}</a>'


def _cell(cell: Any, headings: list[tuple[int, str, str]]) -> str:
    if cell.cell_type == "markdown":
        html = _named(markup.markdown(cell.source), headings)
        kind = "prompt" if str(cell.id).startswith("prompt-") else "prose"
        return f'<section class="{kind}" id="{escape(cell.id)}">{html}</section>\n'
    shown = "".join(map(slides.output_html, cell.outputs))
    name = cell.metadata.get("toytorch", {}).get("exercise")
    if name:
        stub = registry.exercise(name).start.source
        source = (
            f"{markup.code(stub)}<details><summary>A solution</summary>"
            f"{markup.code(cell.source)}</details>"
        )
    else:
        source = markup.code(cell.source)
    return f'<section class="code-cell" id="{escape(cell.id)}">{source}{shown}</section>\n'


def _named(html: str, headings: list[tuple[int, str, str]]) -> str:
    """Give headings names to link to, and note them."""

    def name(match: re.Match[str]) -> str:
        level, inner = int(match[1]), match[2]
        text = re.sub(r"<[^>]+>", "", inner)
        anchor = f"s{len(headings)}-" + re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")
        if level > 1:
            headings.append((level, anchor, text))
        return f'<h{level} id="{anchor}">{inner}</h{level}>'

    return _HEADING.sub(name, html)
