"""A chapter's slides: one HTML file that opens from disk and asks the network for nothing.

reveal.js and its notes plugin are inlined, pictures are data, mathematics is MathML, code is
coloured here. Key S opens the speaker view, key D changes between light and dark. What is too long
for a page goes on to another one below it, with the same title (``course/build/paging.py``).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from dataclasses import replace
from html import escape
from typing import Any

from course.build import figures, markup
from course.build.paging import (
    BETWEEN,
    HEIGHT,
    LEFT,
    ROOM,
    TALL,
    WIDTH,
    Code,
    Heading,
    Page,
    Panel,
    Part,
    Prose,
    Unit,
    fitting,
    pages,
    plain,
)
from course.build.source import Cell
from course.contents import Chapter
from course.notebook import YOURS


def page(cells: list[Cell], chapter: Chapter) -> str:
    """The whole file as text."""
    asset = markup.asset
    return _PAGE.format(
        title=escape(f"{chapter.number:02d} {chapter.title}"),
        reveal_css=asset("reveal.css"),
        theme=asset("slides.css") + markup.code_css(),
        theme_js=asset("slides.js"),
        body=_title(chapter) + _sections(cells),
        reveal_js=asset("reveal.js").replace("</script", "<\\/script"),
        notes_js=asset("notes.js").replace("</script", "<\\/script"),
        width=WIDTH,
        height=HEIGHT,
    )


def _title(chapter: Chapter) -> str:
    return (
        '<section class="title"><div class="part">'
        f"toytorch · {escape(chapter.part)}</div>"
        f'<h1><span class="number">{chapter.number:02d}</span> {escape(chapter.title)}</h1>'
        f'<p class="line">{escape(chapter.line)}</p><aside class="notes">{_BEFORE}</aside>'
        "</section>\n"
    )


_BEFORE = (
    "45 minutes. Timings, outputs to predict, checkpoints and a rubric are in the lecturer's notes "
    "on this chapter (course/lecturer). Key D: dark or light."
)


def _sections(cells: list[Cell]) -> str:
    """Group cells into slides: ``slide`` goes right, ``subslide`` down, the rest join in."""
    columns: list[list[list[Cell]]] = []
    for cell in cells:
        if not cell.slide:
            continue
        if cell.slide == "slide" or not columns:
            columns.append([[cell]])
        elif cell.slide == "subslide":
            columns[-1].append([cell])
        else:
            columns[-1][-1].append(cell)
    title: Heading | None = None
    out = []
    for column in columns:
        slides: list[str] = []
        again = 0  # slides so far that have the title
        for slide in column:
            own, units = _units(slide)
            title, again = (own, 0) if own is not None else (title, again)
            notes = "".join(markup.markdown(cell.solved) for cell in slide if cell.slide == "notes")
            for page in pages(title, units):
                again += 1
                slides.append(_section(page, again, notes))
        out.append(slides[0] if len(slides) == 1 else f"<section>{''.join(slides)}</section>")
    return "\n".join(out)


def _section(page: Page, number: int, notes: str) -> str:
    """A page of the slides; ``number`` counts those with the same title."""
    parts = []
    if page.title is not None:
        again = f' <span class="again">({number})</span>' if number > 1 else ""
        level = page.title.level
        parts.append(f"<h{level}>{page.title.html}{again}</h{level}>")
    if page.beside:
        *prose, figure = page.parts
        room = TALL - (page.title.height(page.size) if page.title else 0.0)
        left = "".join(part.html for part in prose)
        right = figure.placed(page.size, room, ROOM - LEFT - BETWEEN)
        parts.append(f'<div class="beside"><div class="part prose">{left}</div>{right}</div>')
    else:
        for unit in page.units:
            inner = "".join(part.placed(page.size, page.share(part)) for part in unit.parts)
            parts.append(f'<div class="part {unit.kind}">{inner}</div>')
    said = f'<aside class="notes">{notes}</aside>' if notes else ""
    return f'<section><div class="page s{page.size}">{"".join(parts)}</div>{said}</section>'


def _units(slide: list[Cell]) -> tuple[Heading | None, list[Unit]]:
    """The title of a slide, if it has one, and what stands below it."""
    title: Heading | None = None
    units: list[Unit] = []
    for cell in slide:
        if cell.slide == "notes":
            continue
        parts = _parts(cell)
        if title is None and not units and parts and isinstance(parts[0], Heading):
            title, parts = parts[0], parts[1:]
            if cell.role == "prose":  # in the notebook it may stand below another heading
                title = replace(title, level=min(title.level, 2))
            if cell.role == "prompt":
                more = Prose(markup.markdown(_MORE), source=_MORE)
                parts = fitting(title, parts, more)
        if parts:
            kind = cell.role + (" fragment" if cell.slide == "fragment" else "")
            units.append(Unit(parts, kind))
    return title, units


_MORE = "*The whole task is in the notebook.*"


def _parts(cell: Cell) -> list[Part]:
    if not cell.is_code:
        return list(_blocks(cell.student))
    # an exercise is shown as the learner meets it: the slides give no answer away
    source = cell.student if cell.role == "exercise" else cell.solved
    parts: list[Part] = [] if cell.show == "output" else [_code(source)]
    if cell.show != "code":
        parts += [part for output in cell.outputs for part in _shown(output)]
    return parts


def _blocks(text: str) -> Iterator[Part]:
    """Markdown block by block."""
    for source in markup.blocks(text):
        heading = re.match(r"(#{1,3}) +(.*)$", source.strip(), re.S)
        if heading:
            html = re.sub(r"^<h\d>|</h\d>\s*$", "", markup.markdown(source))
            yield Heading(html, len(heading.group(1)))
        else:
            yield Prose(markup.markdown(source), source=source)


def _code(source: str) -> Code:
    """Code on a page, where one blank line between functions is enough."""
    source = re.sub(r"\n{3,}", "\n\n", source)
    html = re.sub(r"^<pre class=\"code\"><code>|</code></pre>$", "", markup.code(source))
    return Code(html, tuple(plain(html).split("\n")), around=_CODE)


_CODE = ('<pre class="code"><code>', "</code></pre>")


def _shown(output: Any) -> list[Part]:
    """What one output of a cell puts on the page."""
    if output.output_type == "display_data" or output.output_type == "execute_result":
        data = output.data
        words = data.get("text/plain", "picture")
        html = data.get("text/html", "")
        if "data-tt-steps" in html:
            return [figures.of_steps(html)]
        if "source-pane" in html:
            return list(_sources(html))
        still = re.search(r'data-part="still">(<svg.*?</svg>)\s*</div>', html, re.S)
        if (
            "data-tt-timeline" in html and still
        ):  # to be zoomed in on at a desk, not from the last row
            return [figures.of_svg(still[1], words)]
        if html:
            return [Panel(output_html(output))]
        if "image/svg+xml" in data:
            return [figures.of_svg(data["image/svg+xml"], words)]
        if "image/png" in data:
            return [figures.of_png(data["image/png"].replace("\n", ""), words)]
        if "text/markdown" in data:
            return list(_blocks(data["text/markdown"]))
    html = output_html(output)
    if not html:
        return []
    opening, inner = re.split(r"(?<=>)", html, maxsplit=1)
    inner = inner.removesuffix("</pre>")
    lines = tuple(plain(inner).split("\n"))
    return [Code(inner, lines, printed=True, around=(opening, "</pre>"))]


def _sources(html: str) -> Iterator[Part]:
    """Sources that `look` shows, below each other; what the class is to write is left out."""
    html = re.sub("{}.*?{}".format(*YOURS), "", html, flags=re.S)
    panes = re.findall(r"<div style=[^>]*>([^<]*)</div><pre [^>]*>(.*?)</pre>", html, re.S)
    for title, source in panes:
        code = _code(plain(source))
        head = f'<div class="source-title">{title}</div>{_CODE[0]}'
        yield Code(code.html, code.lines, around=(head, _CODE[1]), above=38.0)


def output_html(output: Any) -> str:
    """One output of a cell as HTML that needs nothing beside it."""
    if output.output_type == "stream":
        return _text(output.text)
    if output.output_type == "error":
        return f'<pre class="out error">{escape(output.ename)}: {escape(output.evalue)}</pre>'
    data = output.data
    if "text/html" in data:
        # what the class is to write itself is no part of a lecture
        shown = re.sub("{}.*?{}".format(*YOURS), "", data["text/html"], flags=re.S)
        return f'<div class="out rich">{shown}</div>'
    if "image/svg+xml" in data:
        # as an image, so that names inside one drawing never meet those of another
        coded = base64.b64encode(data["image/svg+xml"].encode()).decode()
        return _picture(f"data:image/svg+xml;base64,{coded}", data)
    if "image/png" in data:
        return _picture(f"data:image/png;base64,{data['image/png'].strip()}", data)
    if "text/markdown" in data:
        return f'<div class="out rich">{markup.markdown(data["text/markdown"])}</div>'
    return _text(data.get("text/plain", ""))


def _picture(address: str, data: Any) -> str:
    words = escape(data.get("text/plain", "picture"), quote=True)
    return f'<div class="out picture"><img alt="{words}" src="{address}"></div>'


def _text(text: str) -> str:
    plain = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).rstrip("\n")
    return f'<pre class="out">{escape(plain)}</pre>' if plain else ""


_PAGE = """<!DOCTYPE html>
<html lang="en" class="print-pdf">
<head>
<meta charset="utf-8">
<meta name="color-scheme" content="light dark">
<script>{theme_js}</script>
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title} · toytorch</title>
<link rel="icon" href="data:,">
<style>{reveal_css}</style>
<style>{theme}</style>
</head>
<body>
<div class="reveal"><div class="slides">
{body}
</div></div>
<script>{reveal_js}</script>
<script>{notes_js}</script>
<script>
Reveal.initialize({{
  width: {width}, height: {height}, margin: 0, center: false, hash: true,
  slideNumber: "c/t", transition: "none", backgroundTransition: "none",
  pdfSeparateFragments: false, plugins: [RevealNotes],
  keyboard: {{68: theme.toggle}}
}});
</script>
</body>
</html>
"""
