"""HTML pages that stand alone: their frame, and the feedback for each student."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from course import panel
from course.marking.grade import Judged
from course.marking.totals import Sum, totals

_STYLE = """
:root{color-scheme:light dark;--ink:#1c2430;--paper:#fff;--soft:#f4f2ee;--line:#d9d5cd}
@media(prefers-color-scheme:dark){:root{--ink:#e6e3dc;--paper:#191b1f;--soft:#26292f;--line:#3b3f47}}
body{font:16px/1.5 system-ui,sans-serif;max-width:72em;margin:2em auto;padding:0 1em;
color:var(--ink);background:var(--paper)}
h2{font-size:1.1em;margin-top:2em}
pre{background:var(--soft);padding:.7em;border-radius:6px;overflow-x:auto}
table{border-collapse:collapse}th{text-align:left}
td,th{padding:.2em .8em .2em 0;border-bottom:1px solid var(--line);vertical-align:top}
.number{text-align:right;font-variant-numeric:tabular-nums}
.said{border-left:4px solid #c98a12;padding:.4em .8em;margin:.5em 0}
svg text{fill:currentColor;font:12px system-ui,sans-serif}
"""
_SHOWN = ("green", "red", "open", "time", "memory")  # whose panel says all there is to say


def page(title: str, body: str, style: str = "") -> str:
    """A page that needs no network and no other file."""
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)} · toytorch</title><style>{_STYLE}{style}</style></head>"
        f"<body>{body}</body></html>\n"
    )


def feedback(
    judged: Sequence[Judged], remarks: Mapping[str, Iterable[str]] | None = None
) -> dict[str, str]:
    """A page per student, by file name: every answer with its panel and its points.

    ``remarks`` are what is to be said to a student on the whole.
    """
    by_student: dict[str, list[Judged]] = {}
    for one in judged:
        by_student.setdefault(one.mark.student, []).append(one)
    pages: dict[str, str] = {}
    for student, own in by_student.items():
        stem = "".join(c if c.isalnum() or c in "-_" else "_" for c in student)
        stem = stem.encode(errors="replace")[:80].decode(errors="ignore")  # systems count bytes
        taken = {name.lower() for name in pages}  # some systems take "Ada" for "ada"
        tries = itertools.chain([stem], (f"{stem}-{n}" for n in itertools.count(2)))
        name = next(name for name in tries if f"{name}.html".lower() not in taken)
        pages[f"{name}.html"] = _feedback(student, own, (remarks or {}).get(student, ()))
    return pages


def _feedback(student: str, own: list[Judged], remarks: Iterable[str]) -> str:
    total = totals(own)[0].total
    parts = [f"<h1>{escape(student)}: {total}</h1>"]
    parts += [f'<p class="said">{escape(remark)}</p>' for remark in remarks]
    without = [one for one in own if one.mark.verdict in ("missing", "unreadable")]
    for one in own:
        if one not in without or one.mark.by_hand or one.mark.comment:
            parts.append(_answer(one))
    parts += _grouped(without)
    return page(student, "".join(parts))


def _answer(one: Judged) -> str:
    mark, shown = one.mark, ""
    if one.verdict is not None and mark.verdict in _SHOWN:
        shown = panel.html(one.verdict)
    if one.verdict is None or mark.verdict == "suspect":
        shown = f"<p>{escape(mark.reason)}</p>"
    code = f"<pre>{escape(one.source)}</pre>" if one.source else ""
    of = f"{mark.extra:g} extra points" if mark.extra else f"{mark.of:g}"
    title = f"<h2>{escape(mark.exercise or mark.notebook)} · {mark.points:g} of {of}</h2>"
    said = [f"<p>{escape(mark.late)}</p>"] if mark.late and not mark.by_hand else []
    if mark.by_hand:
        said.append("<p>These points were set by your lecturer.</p>")
    if mark.comment:
        said.append(f'<p class="said">{escape(mark.comment)}</p>')
    return title + "".join(said) + code + shown


def _grouped(judged: list[Judged]) -> list[str]:
    """What holds for a whole notebook, said once."""
    sums: dict[tuple[str, str, str], Sum] = {}
    for one in judged:
        mark = one.mark
        if not mark.exercise or mark.by_hand or mark.comment:
            continue
        kind = mark.exercise.partition(".")[0]
        sums.setdefault((kind, mark.notebook, mark.reason), Sum()).add(Sum(0.0, mark.of))
    return [
        f"<h2>{escape(notebook or kind)} · 0 of {part.of:g}</h2><p>{escape(reason)}</p>"
        for (kind, notebook, reason), part in sums.items()
    ]
