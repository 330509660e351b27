"""The index of pictures: every picture of every chapter, with its section and a link to it."""

from __future__ import annotations

import base64
import functools
import io
import json
import re
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any

from course.contents import ROOT, Chapter, written


@dataclass(frozen=True)
class Shown:
    """A picture in a solved notebook. ``png`` is its base64 text, ``moving`` if it has steps."""

    chapter: Chapter
    cell: str
    heading: str
    kind: str
    said: str
    moving: bool
    png: str


@functools.cache
def index() -> tuple[Shown, ...]:
    """All pictures, in the order in which the chapters show them."""
    return tuple(shown for chapter in written() for shown in _of(chapter))


def _of(chapter: Chapter) -> list[Shown]:
    path = ROOT / "solutions" / f"{chapter.stem}.ipynb"
    if not path.exists():
        return []
    found, heading = [], chapter.title
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            titles = re.findall(r"^##+ +(.+)$", source, re.M)
            heading = titles[-1] if titles else heading
        for output in cell.get("outputs", []):
            data: dict[str, Any] = output.get("data", {})
            if "image/png" in data:
                said = "".join(data.get("text/plain", "")).strip("<>")
                kind = "plot" if said.startswith("Figure size") else _kind(source)
                said = "" if kind == "plot" else re.sub(r" at 0x\w+", "", said)
                png = "".join(data["image/png"]).replace("\n", "")
                moving = "text/html" in data
                found.append(Shown(chapter, cell["id"], heading, kind, said, moving, png))
    return found


def _kind(source: str) -> str:
    names = re.findall(r"\bviz\.(\w+)\(", source)
    return names[-1].replace("_", " ") if names else "picture"


class Gallery:
    """The index, shown as small pictures that lead to their places."""

    def __repr__(self) -> str:
        lines = []
        for chapter, own in groupby(index(), key=lambda shown: shown.chapter):
            lines.append(f"{chapter.number:02d} {chapter.title}")
            lines += [f"    {one.heading}: {words(one)}" for one in own]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        parts = []
        for chapter, own in groupby(index(), key=lambda shown: shown.chapter):
            cards = "".join(_card(one) for one in own)
            parts.append(
                f'<div style="font-weight:700;margin:1em 0 0.4em">{chapter.number:02d} '
                f'{escape(chapter.title)}</div><div style="display:grid;gap:0.8em;'
                f'grid-template-columns:repeat(auto-fill,minmax(13em,1fr))">{cards}</div>'
            )
        return "".join(parts)


def _card(shown: Shown) -> str:
    """A small picture on its own paper, as on light so on dark pages, and words in the page's ink."""
    said = escape(words(shown), quote=True)
    return (
        f'<a href="{shown.chapter.stem}.ipynb#{_anchor(shown.heading)}" title="{said}" '
        'style="display:block;color:inherit;text-decoration:none;border-radius:8px;'
        'overflow:hidden;border:1px solid rgba(128,128,128,0.35)">'
        f'<img alt="{said}" src="data:image/png;base64,{thumbnail(shown.png)}" '
        'style="display:block;width:100%;height:9em;object-fit:contain;background:#fdfcfa">'
        '<span style="display:block;padding:0.35em 0.6em;font-size:0.9em;line-height:1.35">'
        f"<b>{plain(shown.heading)}</b><br>"
        f'<span style="opacity:0.75">{said}</span></span></a>'
    )


SMALL = (360, 240)  # pixels that a thumbnail has at most


@functools.cache
def thumbnail(png: str) -> str:
    """A picture made small. Both are PNG as base64 text."""
    from PIL import Image  # comes with matplotlib

    with Image.open(io.BytesIO(base64.b64decode(png))) as picture:
        small = picture.convert("RGB")
    small.thumbnail(SMALL, Image.Resampling.LANCZOS, reducing_gap=2.0)
    out = io.BytesIO()
    small.quantize(64).save(out, "PNG")
    return base64.b64encode(out.getvalue()).decode()


def words(shown: Shown) -> str:
    """What a picture is, in a few words."""
    kind = shown.kind
    if shown.said and len(shown.said) < 90:
        kind = shown.said if shown.said.startswith(kind) else f"{kind}, {shown.said}"
    return f"{kind} (in steps)" if shown.moving and "steps" not in kind else kind


def plain(heading: str) -> str:
    """A heading without its Markdown, as HTML."""
    return escape(heading.replace("`", "").replace("*", ""))


def _anchor(heading: str) -> str:
    """How Jupyter names a heading."""
    return escape(re.sub(r"\s+", "-", heading.replace("`", "")), quote=True)


def pictures() -> Gallery:
    """Every picture of the course, by chapter."""
    return Gallery()
