"""A launch as a page: the source, and beside each line bars of what it cost."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from toytorch.cuda.emulator.counts import REGISTERS, LineCounts, short

if TYPE_CHECKING:
    from toytorch.cuda.emulator.report import Launch

# (title, what it says, color of its bars)
BARS = (
    ("threads", "times that threads ran the line", "#9aa5b1"),
    ("flops", "operations on floats", "#3b82c4"),
    (
        "global",
        "sectors of global memory; the dark part is more than the bytes would need",
        "#2f9e6e",
    ),
    ("shared", "wavefronts of shared memory; the dark part is bank conflicts", "#c98a1b"),
    ("diverge", "share of warps that went both ways", "#8a5bb8"),
)
DARK = {"global": "#b3261e", "shared": "#b3261e"}
STYLE = """
.ttk { font: 13px/1.45 system-ui, sans-serif; color: #1f2933; background: #fff; max-width: 100%;
       box-sizing: border-box; padding: 8px; overflow-x: auto; }
.ttk.ttk.ttk table { border-collapse: collapse; width: 100%; table-layout: fixed; background: #fff; }
.ttk.ttk.ttk td, .ttk.ttk.ttk th { padding: 0 5px; vertical-align: top; text-align: left; color: #1f2933;
       border: 0; font-size: 12px; background: #fff; }
.ttk.ttk.ttk th { font-weight: 600; border-bottom: 1px solid #cbd2d9; padding-bottom: 2px; }
.ttk.ttk.ttk td.n { color: #697586; text-align: right; font-family: monospace; }
.ttk.ttk.ttk td.s { font-family: monospace; white-space: pre-wrap; overflow-wrap: anywhere; }
.ttk.ttk.ttk .b { height: 5px; margin-top: 1px; display: flex; }
.ttk.ttk.ttk .v { font-size: 11px; line-height: 14px; white-space: nowrap; }
.ttk.ttk.ttk tr.bad td { background: #fdecea; }
.ttk.ttk.ttk .k { color: #1d5fa8; } .ttk.ttk.ttk .c { color: #5f6c7b; }
.ttk.ttk.ttk p { margin: 6px 0 0; } .ttk.ttk.ttk p.r { color: #9c1c14; }
"""
KEYWORDS = re.compile(
    r"(//.*$)|\b(__\w+__|extern|void|const|unsigned|int|float|double|bool|char|long|half|size_t|for"
    r"|while|do|if|else|return|break|continue|template|typename|switch|case|default)\b"
)


def page(launch: Launch) -> str:
    """Self-contained HTML; the source with its counts, and in words what they add up to."""
    lines = launch.lines.values()
    most = {name: max((amount(c, name) for c in lines), default=0.0) for name, _, _ in BARS}
    shown = [bar for bar in BARS if most[bar[0]]]
    wrong = {line for race in launch.races for line in race.lines}
    wrong |= {finding.line for finding in launch.findings}
    rows = []
    for number in launch.shown_lines():
        counts = launch.lines.get(number)
        cells = "".join(
            f"<td>{_bar(counts, name, color, most[name])}</td>" for name, _, color in shown
        )
        rows.append(
            f"<tr{' class=bad' * (number in wrong)}><td class=n>{number}</td>"
            f"<td class=s>{_colored(launch.source.line(number).expandtabs(4))}</td>{cells}</tr>"
        )
    heads = "".join(f'<th title="{says}" style="width:74px">{name}</th>' for name, says, _ in shown)
    sentences = [*launch.summary(), REGISTERS]
    said = "".join(f"<p>{html.escape(text)}</p>" for text in sentences)
    problems = "".join(f"<p class=r>{html.escape(text)}</p>" for text in launch.problems())
    title = (
        f"{launch.name}: grid {launch.grid}, block {launch.block}, {short(launch.threads)} threads"
    )
    return (
        f"<style>{STYLE}</style><div class=ttk><b>{html.escape(title)}</b>"
        f'<table><tr><th style="width:26px"></th><th>{html.escape(launch.source.file)}</th>'
        f"{heads}</tr>{''.join(rows)}</table>{said}{problems}</div>"
    )


def amount(counts: LineCounts, name: str) -> float:
    """How long the bar of a line is."""
    return {
        "threads": counts.threads,
        "flops": counts.flops,
        "global": counts.sectors,
        "shared": counts.wavefronts,
        "diverge": counts.divergent / counts.branches if counts.divergent else 0.0,
    }[name]


def _bar(counts: LineCounts | None, name: str, color: str, most: float) -> str:
    """A number, and under it a bar; what could be saved is dark."""
    if counts is None or not amount(counts, name):
        return ""
    length = amount(counts, name)
    if name == "diverge":
        return _drawn(f"{length:.0%}", 100 * length, 0.0, color, color)
    text, wasted = short(int(length)), 0.0
    if name == "global":
        wasted = 1 - counts.least_sectors / counts.sectors
        text += f" {counts.sectors / max(counts.least_sectors, 1):.3g}×" if wasted > 0.005 else ""
    elif name == "shared":
        wasted = 1 - counts.least_wavefronts / counts.wavefronts
        text += f" {counts.bank_conflict}-way" if counts.bank_conflict > 1 else ""
    return _drawn(text, 100 * length / most, wasted, color, DARK.get(name, color))


def _drawn(text: str, percent: float, wasted: float, color: str, dark: str) -> str:
    good = percent * (1 - wasted)
    bars = f'<span style="width:{good:.1f}%;background:{color}"></span>'
    if wasted > 0.005:
        bars += f'<span style="width:{percent - good:.1f}%;background:{dark}"></span>'
    return f"<div class=v>{text}</div><div class=b>{bars}</div>"


def _colored(line: str) -> str:
    """A line of source with its words in color."""
    found, last = "", 0
    for word in KEYWORDS.finditer(line):
        kind = "c" if word[1] else "k"
        found += html.escape(line[last : word.start()])
        found += f"<span class={kind}>{html.escape(word[0])}</span>"
        last = word.end()
    return found + html.escape(line[last:])
