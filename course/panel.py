"""The panel that ``check`` shows: HTML in Jupyter, the same words as text elsewhere.

Styles are inline and use JupyterLab's theme variables, with half-transparent fills, so that light
and dark themes, slides and exported pages all read well. Nothing here depends on time or place:
the same verdict gives the same bytes.
"""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from course.judge import Outcome, Verdict
    from course.records import Exercise

_LOOK = {  # state: sign, accent, fill
    "green": ("✔", "#1f9d63", "rgba(31,157,99,0.09)"),
    "red": ("✘", "#d6453d", "rgba(214,69,61,0.07)"),
    "open": ("○", "#4a86c8", "rgba(74,134,200,0.09)"),
    "waiting": ("○", "#8a8f98", "rgba(138,143,152,0.10)"),
}
_FONT = "font-family:var(--jp-content-font-family,system-ui,sans-serif)"
_MONO = (
    "font-family:var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace);"
    "font-size:0.93em;white-space:pre-wrap;overflow-wrap:anywhere"
)
_MUTED = "opacity:0.68"


class Panel:
    """A verdict, displayed. ``panel.state`` is ``"green"``, ``"red"`` or ``"open"``."""

    def __init__(self, verdict: Verdict) -> None:
        self.verdict = verdict
        self.state = verdict.state

    def __repr__(self) -> str:
        return text(self.verdict)

    def _repr_html_(self) -> str:
        return html(self.verdict)


# -- words ----------------------------------------------------------------------------------------


def title_of(found: Exercise) -> str:
    """The title, with a word where the chapter does not ask for it."""
    return f"{found.title} (optional)" if found.optional else found.title


def headline(verdict: Verdict) -> str:
    """The state in a few words."""
    checks = verdict.checks
    if verdict.state == "open":
        return "open"
    passed = sum(verdict.passed(check.title) is True for check in checks)
    if verdict.state == "green":
        return f"all {passed} checks pass" if passed > 1 else "the check passes"
    so_far = " so far" if verdict.unfinished else ""
    return f"{passed} of {len(checks)} checks pass{so_far}"


def _look_of(verdict: Verdict) -> str:
    return "open" if verdict.unfinished else verdict.state


def _open_line(verdict: Verdict) -> str:
    return (
        f"Write {verdict.exercise.function} in the cell above, run it, then run this cell again. "
        "Until then toytorch's own answer is used."
    )


def _rows(failure: Outcome) -> list[tuple[str, str]]:
    if failure.kind == "broken":
        return [
            ("The check", failure.given),
            ("stumbled", f"{failure.got}. Your code was not to blame: please report this."),
        ]
    if failure.kind == "borrowed":
        return [
            ("Your answer", f"is, or calls, {failure.got}"),
            ("Expected", "your own code: this exercise asks you to write what that does"),
        ]
    if failure.unwritten:
        return [("Next", failure.given), ("To write", failure.where)]
    came = {"error": "Raised", "timeout": "Came"}.get(failure.kind, "Got")
    rows = [("Input", failure.given), ("Expected", failure.wanted), (came, failure.got)]
    return [*rows, ("In your code", failure.where)] if failure.where else rows


# -- text -----------------------------------------------------------------------------------------


def text(verdict: Verdict) -> str:
    """The panel as plain text."""
    sign = _LOOK[_look_of(verdict)][0]
    found = verdict.exercise
    lines = [f"{sign} {found.name} · {title_of(found)}: {headline(verdict)}"]
    if verdict.state == "open":
        lines.append(f"  {_open_line(verdict)}")
    failure = verdict.failure
    if verdict.state == "red" and failure is not None:
        lines.append(f"  {'Check':<13}{failure.check}")
        for label, value in _rows(failure):
            lines.append(f"  {label:<13}" + value.replace("\n", "\n" + " " * 15))
        if verdict.mutant is not None:
            lines.append(f"  Misconception: {verdict.mutant.label}")
            lines.append("  " + verdict.mutant.why.replace("\n", "\n  "))
        if verdict.diagnosis:
            lines.append(f"  {'What it shows':<13} {verdict.diagnosis}")
    return "\n".join(lines)


# -- HTML -----------------------------------------------------------------------------------------


def html(verdict: Verdict) -> str:
    """The panel as a self-contained piece of HTML."""
    body = ""
    if verdict.state == "open":
        body = f'<div style="margin-top:0.3em">{escape(_open_line(verdict))}</div>'
    if verdict.state != "open":
        body = _ticks(verdict)
    failure = verdict.failure
    if verdict.state == "red" and failure is not None:
        body += _table(failure) + _misconception(verdict) + _diagnosis(verdict)
    found = verdict.exercise
    return frame(_look_of(verdict), title_of(found), found.name, headline(verdict), body)


def waiting(title: str, name: str) -> str:
    """What a check cell shows in a notebook nobody has run yet."""
    body = (
        '<div style="margin-top:0.3em">Write your code above, run that cell, '
        "then run this one (Shift+Enter).</div>"
    )
    return frame("waiting", title, name, "not checked yet", body)


def frame(state: str, title: str, name: str, said: str, body: str) -> str:
    """The box around every panel. Its two comments let nbval's sanitizer find it."""
    sign, accent, fill = _LOOK[state]
    return (
        "<!--panel-->"
        f'<div style="border-left:4px solid {accent};background:{fill};{_FONT};line-height:1.45;'
        'padding:0.65em 1em;margin:0.2em 0;border-radius:0 7px 7px 0;max-width:56em">'
        f'<div><span style="color:{accent};font-weight:700">{sign}</span>&ensp;'
        f"<b>{escape(title)}</b>&ensp;"
        f'<span style="color:{accent};font-weight:600">{escape(said)}</span>'
        f'<code style="float:right;background:none;{_MUTED}">{escape(name)}</code></div>'
        f"{body}</div><!--/panel-->"
    )


def small(words: str) -> str:
    """A muted last line of a panel."""
    return f'<div style="margin-top:0.5em;font-size:0.92em;{_MUTED}">{escape(words)}</div>'


def _ticks(verdict: Verdict) -> str:
    parts = []
    for check in verdict.checks:
        passed = verdict.passed(check.title)
        state = {True: "green", False: "red", None: "waiting"}[passed]
        if state == "red" and verdict.unfinished:
            state = "waiting"
        sign, accent, _ = _LOOK[state]
        parts.append(
            f'<span style="white-space:nowrap;margin-right:1.1em">'
            f'<span style="color:{accent}">{sign}</span> {escape(check.title)}</span>'
        )
    return f'<div style="margin-top:0.3em;font-size:0.94em">{"<wbr>".join(parts)}</div>'


def _table(failure: Outcome) -> str:
    rows = [("Check", failure.check), *_rows(failure)]
    cells = "".join(
        f'<div style="{_MUTED}">{escape(label)}</div>'
        f'<div style="{_FONT if label == "Check" else _MONO}">{escape(value)}</div>'
        for label, value in rows
    )
    return (
        '<div style="display:grid;grid-template-columns:max-content 1fr;column-gap:1.2em;'
        f'row-gap:0.25em;margin-top:0.6em">{cells}</div>'
    )


def _misconception(verdict: Verdict) -> str:
    mutant = verdict.mutant
    if mutant is None:
        return ""
    why = _inline(mutant.why)
    return (
        '<div style="margin-top:0.7em;padding:0.5em 0.8em;border-radius:6px;'
        'background:rgba(230,160,30,0.14)">'
        '<span style="color:#c98a12;font-weight:700">A known misconception</span>&ensp;'
        f"<b>{escape(mutant.label)}</b>"
        f'<div style="margin-top:0.2em">{why}</div></div>'
    )


def _diagnosis(verdict: Verdict) -> str:
    if not verdict.diagnosis:
        return ""
    return (
        '<div style="margin-top:0.7em;padding:0.5em 0.8em;border-radius:6px;'
        'background:rgba(128,128,128,0.12)">'
        f'<span style="font-weight:700">What it shows</span>&ensp;{_inline(verdict.diagnosis)}</div>'
    )


def _inline(words: str) -> str:
    """Markdown's code, bold and emphasis, which are all that an explanation needs."""
    code = r'<code style="background:none;padding:0">\1</code>'
    parts = re.split(r"(`[^`]+`)", escape(words))
    for number, part in enumerate(parts):
        if part.startswith("`"):
            parts[number] = re.sub(r"`([^`]+)`", code, part)
        else:
            part = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", part)
            parts[number] = re.sub(r"\*(.+?)\*", r"<i>\1</i>", part)
    return "".join(parts)
