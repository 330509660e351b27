"""A chart as a page with zoom: one self-contained piece of HTML, with no address in it.

With no script running it shows the still picture. The page is named after its content, so it is the
same at every run, and two copies in one notebook both work.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from toytorch.viz.backward.steps_page import button
from toytorch.viz.device.chart import LINKS, MANY_LAUNCHES, MANY_LINKS, MERGED, Chart, merged_colour
from toytorch.viz.device.timeline_hands import HANDS
from toytorch.viz.device.timeline_picture import BAR, GAP, LANE, MEMORY, NARROW, WIDEST_NAME
from toytorch.viz.device.timeline_script import DRAWING
from toytorch.viz.draw import palette, svg
from toytorch.viz.draw.boxes import Look
from toytorch.viz.draw.text import clean

_BUTTONS = (
    ("in", "Zoom in", "zoom in (+)"),
    ("out", "Zoom out", "zoom out (-)"),
    ("left", "←", "earlier (left arrow)"),
    ("right", "→", "later (right arrow)"),
    ("whole", "All", "all of the time (0, or double click)"),
)
_HINT = "Wheel or drag to zoom, shift and drag to move, double click for all. Keys: + − ← → 0."


def data_of(chart: Chart) -> dict[str, Any]:
    """The chart as the script reads it: bars as columns of numbers, and each text once.

    `s` and `d` are starts and durations, `k`, `n` and `f` the numbers of a bar's kind, name and
    facts; a row has for each lane the range of its bars.
    """
    kinds = chart.kinds
    names: dict[tuple[str, str], int] = {}
    facts: dict[tuple[str, ...], int] = {}
    columns: dict[str, list[float]] = {key: [] for key in "sdknf"}
    numbers: dict[int, int] = {}
    rows = []
    for row in chart.rows:
        ranges = []
        for lane in row.lanes:
            begin = len(numbers)
            for bar in lane:
                numbers[id(bar)] = len(numbers)
                columns["s"].append(round(bar.start, 3))
                columns["d"].append(round(bar.end - bar.start, 3))
                columns["k"].append(kinds.index(bar.kind))
                columns["n"].append(names.setdefault((bar.name, bar.label), len(names)))
                columns["f"].append(facts.setdefault(bar.facts, len(facts)))
            ranges.append((begin, len(numbers)))
        rows.append((clean(row.name), clean(row.group), ranges))
    inks = list(LINKS)
    return {
        "first": round(chart.first, 3),
        "last": max(round(chart.last, 3), round(chart.first, 3) + 1e-3),
        "origin": chart.origin,
        "rows": rows,
        **columns,
        "names": list(names),
        "facts": list(facts),
        "kinds": [_ink(k, chart.looks[k])
                  for k in kinds],
        "links": [
            (numbers[id(link.before)], numbers[id(link.after)], round(link.start, 3),
             round(link.end, 3), inks.index(link.kind), int(link.key))
            for link in chart.links
        ],
        "ink": list(LINKS.values()),
        "curves": [
            (curve.label, *_columns(curve.points), *_columns(curve.limit)) for curve in chart.curves
        ],
        "measures": {"lane": LANE, "bar": BAR, "gap": GAP, "memory": MEMORY, "above": NARROW,
                     "name": WIDEST_NAME, "launches": MANY_LAUNCHES, "many": MANY_LINKS,
                     "merged": MERGED, "font": palette.SMALL_SIZE},
        "colours": {"paper": palette.PAPER, "ink": palette.INK, "muted": palette.MUTED,
                    "faint": palette.FAINT, "frame": palette.FRAME, "edge": palette.EDGE, "curve": palette.GREEN.line,
                    "area": palette.GREEN.tint, "pick": palette.BLUE.line + "33"},
    }  # fmt: skip


def _ink(kind: str, look: Look) -> tuple[str, ...]:
    return kind, look.fill, look.stroke, look.hatch, merged_colour(look)


def _columns(points: list[tuple[float, int]]) -> tuple[list[float], list[int]]:
    return [round(at, 3) for at, _ in points], [value for _, value in points]


def html(chart: Chart, still: str) -> str:
    """The page's piece of HTML; `still` is the SVG shown where no script runs."""
    data = json.dumps(data_of(chart), separators=(",", ":"))
    for char in "<>&":  # so that no name can close the script
        data = data.replace(char, f"\\u{ord(char):04x}")
    name = hashlib.sha256((still + data).encode()).hexdigest()[:12]
    return _FRAME.format(
        name=name,
        label=svg.escape(chart.title),
        title=svg.escape(chart.title),
        legend="".join(_sample(kind, chart.looks[kind]) for kind in chart.kinds),
        buttons="".join(button(*one) for one in _BUTTONS),
        hint=_HINT,
        still=still,
        script=(DRAWING + HANDS).replace("NAME", name).replace("DATA", data),
        ink=palette.INK,
        muted=palette.MUTED,
        paper=palette.PAPER,
        line=palette.FRAME,
        box=palette.BOX,
        edge=palette.EDGE,
    )


def _sample(kind: str, look: Look) -> str:
    """A colour and what it says."""
    lines = f",repeating-linear-gradient(135deg,{look.hatch} 0 1px,transparent 1px 4px)"
    ground = f"{lines[1:] if look.hatch else ''}"
    image = f";background-image:{ground}" if ground else ""
    return (
        f'<span style="white-space:nowrap;color:{palette.MUTED}"><i style="display:inline-block;width:16px;height:11px;'
        f"margin-right:6px;border:1px solid {look.stroke};border-radius:3px;"
        f'background-color:{look.fill}{image}"></i>{svg.escape(kind)}</span>'
    )


_FRAME = """\
<div data-tt-timeline="{name}" role="group" tabindex="0" aria-label="{label}" \
data-lm-suppress-shortcuts="true" style="position:relative;box-sizing:border-box;\
color-scheme:light;background:{paper};color:{ink};border:1px solid {line};border-radius:10px;padding:12px 14px;\
margin:8px 0;font:14px/1.45 Helvetica Neue,Helvetica,Arial,sans-serif">
<style>@media print{{[data-tt-timeline] [data-part=still]{{display:block!important}}\
[data-tt-timeline] [data-part=live]{{display:none!important}}\
[data-tt-timeline] [data-part=still] svg{{width:100%!important;height:auto!important}}}}</style>
<div data-part="still">{still}</div>
<div data-part="live" style="display:none">
<div style="display:flex;flex-wrap:wrap;gap:4px 20px;align-items:baseline;\
justify-content:space-between"><b>{title}</b>
<span style="display:flex;flex-wrap:wrap;gap:2px 14px;font-size:12px;color:{muted}">{legend}</span>
</div>
<div style="display:flex;gap:6px;align-items:center;flex-wrap:wrap;margin:10px 0">{buttons}
<span data-part="span" aria-live="polite" style="color:{muted};margin-left:8px"></span></div>
<div><canvas data-part="view" style="display:block;width:100%;touch-action:pan-y;\
cursor:crosshair"></canvas></div>
<p style="margin:8px 0 0;font-size:12px;color:{muted}">{hint}</p>
</div>
<div data-part="tip" role="status" style="display:none;position:absolute;z-index:5;max-width:320px;\
box-sizing:border-box;padding:6px 9px;background:{box};color:{ink};border:1px solid {edge};\
border-radius:6px;font-size:12px;line-height:1.4;overflow-wrap:anywhere;pointer-events:none;\
box-shadow:0 2px 8px rgba(0,0,0,0.15)"></div>
<script>{script}</script>
</div>
"""
