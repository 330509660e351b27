"""All pages of the site."""

from __future__ import annotations

import base64
import re
import tempfile
from collections.abc import Iterator
from html import escape
from itertools import groupby
from pathlib import Path

from course import gallery, registry
from course.build import markup
from course.contents import CHAPTERS, ROOT, Chapter, written
from course.files import write_atomically
from course.gallery import Shown
from course.site.chapters import chapter_page
from course.site.layout import page, stylesheet
from course.terms import Glossary, terms


def write(folder: Path) -> int:
    """Write the site; returns how many files it has."""
    count = 0
    for name, content in pages():
        write_atomically(folder / name, content)
        count += 1
    return count


def pages() -> Iterator[tuple[str, bytes]]:
    """Path and content of every file of the site."""
    yield "site.css", stylesheet().encode()
    yield "index.html", _index().encode()
    yield "glossary.html", _glossary().encode()
    yield from _pictures()
    yield from _lecturer()
    yield from _ops()
    every = [chapter for chapter in written() if _solution(chapter).exists()]
    for before, chapter, after in zip([None, *every], every, [*every[1:], None], strict=False):
        yield f"chapters/{chapter.stem}.html", chapter_page(chapter, before, after).encode()
        slides = ROOT / "slides" / f"{chapter.stem}.html"
        if slides.exists():
            yield f"slides/{chapter.stem}.html", slides.read_bytes()


def _solution(chapter: Chapter) -> Path:
    return ROOT / "solutions" / f"{chapter.stem}.ipynb"


# -- contents -------------------------------------------------------------------------------------


def _index() -> str:
    parts = [
        "<h1>toytorch</h1><p class='lead'>PyTorch rebuilt in Python, chapter by chapter, and "
        "networks trained on what you built.</p>"
    ]
    for part, chapters in groupby(CHAPTERS, key=lambda chapter: chapter.part):
        rows = "".join(_row(chapter) for chapter in chapters)
        parts.append(f"<h2>{escape(part)}</h2><ol class='chapters'>{rows}</ol>")
    return page("Contents", "".join(parts), here="index")


def _row(chapter: Chapter) -> str:
    title, line = escape(chapter.title), escape(chapter.line)
    number = f"<b>{chapter.number:02d}</b>"
    if not (chapter.written and _solution(chapter).exists()):
        cells = "".join(f"<span>{words}</span>" for words in (title, line, "later"))
        return f"<li class='later'>{number}{cells}</li>"
    count = len(registry.of_chapter(chapter.number))
    return (
        f'<li>{number}<a href="chapters/{chapter.stem}.html">{title}</a><span>{line}</span>'
        f'<span>{count} exercises · <a href="slides/{chapter.stem}.html">slides</a></span></li>'
    )


# -- glossary, pictures, lecturer's notes ---------------------------------------------------------


def _glossary() -> str:
    table = Glossary(terms()).html("chapters/{stem}.html")
    return page(
        "Glossary", f"<h1>Glossary</h1><p>{len(terms())} terms.</p>{table}", here="glossary"
    )


def _pictures() -> Iterator[tuple[str, bytes]]:
    index = gallery.index()
    parts = [f"<h1>Pictures</h1><p>{len(index)} pictures; each leads to its place.</p>"]
    for chapter, own in groupby(index, key=lambda shown: shown.chapter):
        cards = []
        for number, shown in enumerate(own, start=1):
            name = f"pictures/{chapter.stem}-{number:02d}.png"
            yield name, base64.b64decode(shown.png)
            cards.append(_card(shown, name))
        title = f"{chapter.number:02d} {escape(chapter.title)}"
        parts.append(f"<h2>{title}</h2><div class='cards'>{''.join(cards)}</div>")
    yield "pictures.html", page("Pictures", "".join(parts), here="pictures").encode()


def _card(shown: Shown, name: str) -> str:
    words = escape(gallery.words(shown), quote=True)
    return (
        f'<a class="card" href="chapters/{shown.chapter.stem}.html#{escape(shown.cell)}">'
        f'<img src="{name}" alt="{words}" loading="lazy"><b>{gallery.plain(shown.heading)}</b>'
        f"<span>{words}</span></a>"
    )


def _lecturer() -> Iterator[tuple[str, bytes]]:
    rows = []
    for chapter in written():
        notes = ROOT / "course" / "lecturer" / f"{chapter.stem}.md"
        if notes.exists():
            html = markup.markdown(notes.read_text(encoding="utf-8"))
            name = f"lecturer/{chapter.stem}.html"
            yield name, page(f"{chapter.title}: for the lecturer", html, depth=1).encode()
            title = f"{chapter.number:02d} {escape(chapter.title)}"
            rows.append(f'<li><a href="{name}">{title}</a></li>')
    about = ROOT / "course" / "lecturer" / "README.md"
    text = about.read_text(encoding="utf-8") if about.exists() else "# For lecturers"
    body = markup.markdown(text) + f"<h2>Notes on each chapter</h2><ul>{''.join(rows)}</ul>"
    yield "lecturer.html", page("For lecturers", body, here="lecturer").encode()


# -- operations -----------------------------------------------------------------------------------


def _ops() -> Iterator[tuple[str, bytes]]:
    from toytorch.ops import reference

    with tempfile.TemporaryDirectory() as folder:
        reference.write(folder)
        for path in sorted(Path(folder).glob("*.md")):
            text = path.read_text(encoding="utf-8")
            if path.name == "README.md":
                html = _links(markup.markdown(text), "ops/")
                yield "ops.html", page("Operations", html, here="ops").encode()
            else:
                text = text.replace("_", r"\_", text.partition("\n")[0].count("_"))  # of its title
                html = f'<div class="op">{_links(markup.markdown(text), "")}</div>'
                yield f"ops/{path.stem}.html", page(path.stem, html, depth=1, here="ops").encode()


def _links(html: str, folder: str) -> str:
    """Links between Markdown files as links between pages."""
    return re.sub(r'href="([\w.]+)\.md"', rf'href="{folder}\1.html"', html)
