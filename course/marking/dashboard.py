"""The class on one page: totals, exercises, misconceptions, and what to look at."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from statistics import mean, median

from course import registry
from course.marking.grade import Judged
from course.marking.pages import page
from course.marking.statistics import Statistic, statistics
from course.marking.totals import Total

_KINDS = {  # how an exercise ended: what the picture calls it, its colour, its sign in the grid
    "green": ("solved", "#1f9d63", "✔"),
    "red": ("wrong", "#d6453d", "✘"),
    "other": ("to look at", "#c98a12", "!"),
    "open": ("not begun", "#8fa3b8", "○"),
    "missing": ("not handed in", "#c9ccd1", "·"),
}
_STYLE = """
.tiles{display:flex;gap:2.5em;flex-wrap:wrap}.tiles b{display:block;font-size:1.7em}
.grid{overflow-x:auto}.grid td,.grid th{padding:0 .15em;border:0;text-align:center}
.grid td.who,.grid th.who{text-align:left;padding-right:1em;white-space:nowrap}
.grid th{font-weight:400;vertical-align:bottom}.grid th span{writing-mode:vertical-rl}
.cell{display:inline-block;width:1.3em;line-height:1.3em;border-radius:3px;color:#fff}
"""


def dashboard(judged: Sequence[Judged], totals: Sequence[Total], notes: Sequence[str]) -> str:
    """The page. ``notes`` are what the lecturer should know besides."""
    found = statistics(judged)
    body = ["<h1>The class</h1>", _tiles(totals), _histogram(totals), _legend()]
    body += [
        "<h2>Exercises</h2>",
        _exercises(found),
        "<h2>Misconceptions and other mistakes</h2>",
        _mistakes(found),
    ]
    body += ["<h2>Students</h2>", _grid(judged, totals), "<h2>To look at</h2>"]
    return page("The class", "".join([*body, _look(judged, notes)]), _STYLE)


def kind(verdict: str) -> str:
    """Which of the five colours a verdict has."""
    if verdict in ("time", "memory", "ended"):
        return "red"
    return verdict if verdict in _KINDS else "other"


def _share(one: Total) -> float:
    return one.total.points / one.total.of if one.total.of else 0.0


def _tiles(totals: Sequence[Total]) -> str:
    there = [one for one in totals if one.handed_in]
    shares = [100 * _share(one) for one in there]
    tiles = [("students", str(len(totals))), ("handed something in", str(len(there)))]
    if shares:
        tiles += [("mean of these", f"{mean(shares):.0f} %"), ("median", f"{median(shares):.0f} %")]
    cells = "".join(f"<div><b>{value}</b>{name}</div>" for name, value in tiles)
    return f'<div class="tiles">{cells}</div>'


def _histogram(totals: Sequence[Total]) -> str:
    """How many students have which share of the points, in tenths."""
    counts = [0] * 10
    for one in totals:
        counts[max(0, min(int(10 * _share(one)), 9))] += 1
    top = max(*counts, 1)
    bars = []
    for place, count in enumerate(counts):
        height, x = 90 * count / top, 10 + 44 * place
        bars.append(f'<rect x="{x}" y="{110 - height:.1f}" width="40" height="{height:.1f}"'
                    f' fill="#4a86c8"/><text x="{x + 20}" y="{105 - height:.1f}"'
                    f' text-anchor="middle">{count or ""}</text>')  # fmt: skip
        bars.append(f'<text x="{x}" y="126">{10 * place}</text>')
    label = "students by the percentage of the points; 90 and above stand together"
    return (
        f'<svg viewBox="0 0 470 150" width="470" role="img" aria-label="{label}">{"".join(bars)}'
        f'<text x="10" y="145">{label}</text></svg>'
    )


def _legend() -> str:
    boxes = (
        f'<span class="cell" style="background:{colour};text-align:center">{sign}</span> {name}'
        for name, colour, sign in _KINDS.values()
    )
    return f"<p>{' &emsp; '.join(boxes)}</p>"


def _exercises(found: Sequence[Statistic]) -> str:
    rows = []
    for each in found:
        counts = dict.fromkeys(_KINDS, 0)
        for verdict, count in each.verdicts.items():
            counts[kind(verdict)] += count
        whole, x, parts = sum(counts.values()) or 1, 0.0, []
        for name, count in counts.items():
            width = 220 * count / whole
            title = f"<title>{count} {_KINDS[name][0]}</title>"
            parts.append(f'<rect x="{x:.1f}" width="{width:.1f}" height="14"'
                         f' fill="{_KINDS[name][1]}">{title}</rect>')  # fmt: skip
            x += width
        said = ", ".join(f"{count} {_KINDS[name][0]}" for name, count in counts.items() if count)
        bar = f'<svg width="220" height="14" role="img" aria-label="{said}">{"".join(parts)}</svg>'
        more = " (optional)" if each.exercise.optional else ""
        rows.append(
            f"<tr><td><code>{escape(each.exercise.name)}</code>{more}</td><td>{bar}</td>"
            f'<td class="number">{each.solved} of {each.handed_in}</td>'
            f'<td class="number">{100 * each.success:.0f} %</td>'
            f'<td class="number">{each.median:.2f} s</td></tr>'
        )
    head = "<tr><th>exercise<th><th>solved<th>success<th>median time</tr>"
    return f"<table>{head}{''.join(rows)}</table>"


def _mistakes(found: Sequence[Statistic]) -> str:
    rows = [
        f'<tr><td class="number">{count}</td><td><code>{escape(each.exercise.name)}</code></td>'
        f"<td>{escape(label)}</td></tr>"
        for count, each, label in sorted(
            ((count, each, label) for each in found for label, count in each.mistakes()),
            key=lambda row: -row[0],
        )
    ]
    return f"<table>{''.join(rows[:40])}</table>" if rows else "<p>None was met.</p>"


def _grid(judged: Sequence[Judged], totals: Sequence[Total]) -> str:
    marks = {(one.mark.student, one.mark.exercise): one.mark for one in judged}
    there = {one.mark.exercise for one in judged}
    names = [name for name in registry.all_exercises() if name in there]
    head = "".join(f"<th><span>{escape(name)}</span></th>" for name in names)
    rows = [f'<tr><th class="who"></th>{head}<th></th></tr>']
    for one in totals:
        cells = []
        for name in names:
            mark = marks.get((one.person.id, name))
            _, colour, sign = _KINDS[kind(mark.verdict if mark else "missing")]
            of = mark and f"{mark.points:g} of {mark.of or mark.extra:g}: {mark.reason}"
            title = escape(f"{name}, {of or 'nothing'}")
            cells.append(f'<td><span class="cell" style="background:{colour}" title="{title}">'
                         f"{sign}</span></td>")  # fmt: skip
        who = escape(one.person.name or one.person.id)
        total = f'<td class="number">{one.total.points:g}/{one.total.of:g}</td>'
        rows.append(f'<tr><td class="who">{who}</td>{"".join(cells)}{total}</tr>')
    return f'<div class="grid"><table>{"".join(rows)}</table></div>'


def _look(judged: Sequence[Judged], notes: Sequence[str]) -> str:
    said = [escape(note) for note in notes]
    for one in judged:
        mark = one.mark
        if kind(mark.verdict) == "other" and not mark.by_hand:
            what = (
                f"{mark.student}, {mark.exercise or mark.notebook}: {mark.verdict}, {mark.reason}"
            )
            said.append(escape(what))
    items = "".join(f"<li>{one}</li>" for one in dict.fromkeys(said))
    return f"<ul>{items}</ul>" if items else "<p>Nothing.</p>"
