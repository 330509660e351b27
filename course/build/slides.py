"""A chapter's slides: one HTML file that opens from disk and asks the network for nothing.

reveal.js and its notes plugin are inlined, pictures are data, mathematics is MathML, code is
coloured here. Key S opens the speaker view, and ``?print-pdf`` behind the address is for printing.
"""

from __future__ import annotations

import base64
import re
from html import escape
from typing import Any

from course.build import markup
from course.build.source import Cell
from course.contents import Chapter
from course.notebook import YOURS

WIDTH, HEIGHT = 1280, 720


def page(cells: list[Cell], chapter: Chapter) -> str:
    """The whole file as text."""
    asset = markup.asset
    return _PAGE.format(
        title=escape(f"{chapter.number:02d} {chapter.title}"),
        reveal_css=asset("reveal.css"),
        theme=asset("slides.css") + markup.code_css(),
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
        f'<p class="line">{escape(chapter.line)}</p></section>\n'
    )


def _sections(cells: list[Cell]) -> str:
    """Group cells into slides: ``slide`` goes right, ``subslide`` down, the rest join in."""
    columns: list[list[list[str]]] = []
    for cell in cells:
        if not cell.slide:
            continue
        content = _content(cell)
        if cell.slide == "slide" or not columns:
            columns.append([[content]])
        elif cell.slide == "subslide":
            columns[-1].append([content])
        else:
            columns[-1][-1].append(content)
    out = []
    for column in columns:
        slides = ["<section>" + "\n".join(parts) + "</section>" for parts in column]
        out.append(slides[0] if len(slides) == 1 else f"<section>{''.join(slides)}</section>")
    return "\n".join(out)


def _content(cell: Cell) -> str:
    if cell.slide == "notes":
        return f'<aside class="notes">{markup.markdown(cell.solved)}</aside>'
    if not cell.is_code:
        inner = markup.markdown(_shortened(cell.student) if cell.role == "prompt" else cell.student)
    else:
        # an exercise is shown as the learner meets it: the slides give no answer away
        source = cell.student if cell.role == "exercise" else cell.solved
        code = "" if cell.show == "output" else markup.code(source)
        shown = "" if cell.show == "code" else "".join(map(output_html, cell.outputs))
        inner = code + shown
    kind = f"part {cell.role}" + (" fragment" if cell.slide == "fragment" else "")
    return f'<div class="{kind}">{inner}</div>'


LINES = 12.0  # of a prompt that a slide has room for, at about 80 letters


def _shortened(prompt: str) -> str:
    """A prompt's first blocks, as many as a slide has room for."""
    kept, room = [], LINES
    for block in prompt.split("\n\n"):
        lines = block.strip("\n").splitlines()
        if lines and lines[0].lstrip().startswith("|"):
            room -= 1.5 * len(lines)
        elif lines and lines[0].lstrip().startswith(("$$", "```")):
            room -= 1.3 * len(lines) + 1
        else:
            room -= 0.7 + sum(len(line) for line in lines) / 78
        if room < 0 and kept:
            return "\n\n".join([*kept, "*The whole task is in the notebook.*"])
        kept.append(block)
    return prompt


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
  width: {width}, height: {height}, margin: 0.03, center: false, hash: true,
  slideNumber: "c/t", transition: "none", backgroundTransition: "none",
  pdfSeparateFragments: false, plugins: [RevealNotes]
}});
</script>
</body>
</html>
"""
