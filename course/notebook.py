"""What notebooks use beside ``check``: the start page, source side by side, plot settings."""

from __future__ import annotations

import ast
import inspect
import linecache
import textwrap
from html import escape
from itertools import groupby
from typing import Any

from course import progress, traces
from course.contents import CHAPTERS, Chapter
from course.registry import of_chapter
from toytorch.core.first_call import generated

_ACCENT = "#e2572b"
_DIM = "opacity:0.7;"  # paler text has less than 4.5:1 on a light or a dark page
YOURS = ("<!--yours-->", "<!--/yours-->")


class StartPage:
    """All chapters with their progress, as a table of links."""

    def __init__(self, states: dict[str, str]) -> None:
        self.states = states

    def _done(self, chapter: Chapter) -> tuple[int, int]:
        names = [found.name for found in of_chapter(chapter.number) if not found.optional]
        return sum(self.states.get(name) == "green" for name in names), len(names)

    def __repr__(self) -> str:
        return table(self.states)

    def _repr_html_(self) -> str:
        rows = []
        for part, chapters in groupby(CHAPTERS, key=lambda chapter: chapter.part):
            rows.append(
                f'<div style="grid-column:1/-1;margin-top:0.9em;font-weight:700;'
                f'color:{_ACCENT}">{escape(part)}</div>'
            )
            rows += [self._row(chapter) for chapter in chapters]
        return (
            '<div style="display:grid;grid-template-columns:2.2em minmax(8em,18em) minmax(9em,1fr) '
            "max-content max-content;column-gap:0.9em;row-gap:0.28em;max-width:72em;line-height:1.5;"
            'font-family:var(--jp-content-font-family,system-ui,sans-serif)">'
            + "".join(rows)
            + "</div>"
        )

    def _row(self, chapter: Chapter) -> str:
        dim = "" if chapter.written else _DIM
        title = escape(chapter.title)
        if chapter.written:
            title = f'<a href="{chapter.stem}.ipynb">{title}</a>'
        elif chapter.example:
            dim = ""
            title = f'{title}: <a href="../{chapter.example}">2 + 3 through every layer</a>'
        return (
            f'<div style="{dim}font-variant-numeric:tabular-nums">{chapter.number:02d}</div>'
            f'<div style="{dim}">{title}</div>'
            f'<div style="{_DIM}">{escape(chapter.line)}</div>'
            f"<div>{self._beside(chapter)}</div><div>{self._meter(chapter)}</div>"
        )

    def _beside(self, chapter: Chapter) -> str:
        """How long the exercises take, and links to the solved notebook and the slides."""
        if not chapter.written:
            return ""
        minutes = sum(one.minutes for one in of_chapter(chapter.number) if not one.optional)
        return (
            f'<span style="{_DIM}">{minutes} min</span> · '
            f'<a href="../solutions/{chapter.stem}.ipynb">solved</a> · '
            f'<a href="../slides/{chapter.stem}.html">slides</a>'
        )

    def _meter(self, chapter: Chapter) -> str:
        if not chapter.written:
            return f'<span style="{_DIM}">not written yet</span>'
        done, count = self._done(chapter)
        if count == 0:
            return ""
        share = 100 * done // count
        return (
            '<span style="display:inline-block;width:5.2em;height:0.55em;border-radius:0.3em;'
            'background:rgba(128,128,128,0.25);vertical-align:middle">'
            f'<span style="display:block;width:{share}%;height:100%;border-radius:0.3em;'
            f'background:#1f9d63"></span></span>&ensp;{done}/{count}'
        )


def start() -> StartPage:
    """The start page: every chapter, a link to each that is written, and what you have solved."""
    return StartPage(progress.load())


def table(states: dict[str, str]) -> str:
    """Progress per chapter as text."""
    lines = []
    for part, chapters in groupby(CHAPTERS, key=lambda chapter: chapter.part):
        lines.append(part)
        for chapter in chapters:
            found = of_chapter(chapter.number)
            needed = [one for one in found if not one.optional]
            signs = "".join(_SIGNS[states.get(one.name, "open")] for one in needed)
            extra = "".join(_SIGNS[states.get(one.name, "open")] for one in found if one.optional)
            signs += f"  optional {extra}" if extra else ""
            done = sum(states.get(one.name) == "green" for one in needed)
            later = f"python {chapter.example}" if chapter.example else "not written yet"
            tail = f"{done:2d}/{len(needed)}  {signs}" if chapter.written else later
            lines.append(f"  {chapter.number:02d} {chapter.title:<40} {tail}")
    return "\n".join(lines)


_SIGNS = {"green": "✔", "red": "✘", "open": "○"}


_PANE = "36em"  # about 65 columns: where two of these fit they stand side by side


class Look:
    """Source text, coloured; two of them stand side by side on a page that is wide enough."""

    def __init__(self, panes: list[tuple[str, str]]) -> None:
        self.panes = panes

    def __repr__(self) -> str:
        return "\n\n".join(f"# {title}\n{source}" for title, source in self.panes)

    def _repr_html_(self) -> str:
        return (
            '<div style="display:grid;gap:1em;align-items:start;'
            f'grid-template-columns:repeat(auto-fit,minmax(min(100%,{_PANE}),1fr))">'
            + "".join(_marked(title, source) for title, source in self.panes)
            + "</div>"
        )


def _marked(title: str, source: str) -> str:
    """A pane; the learner's own between comments, so that slides can leave it out."""
    pane = _pane(title, source)
    return f"{YOURS[0]}{pane}{YOURS[1]}" if title.startswith("yours: ") else pane


def look(thing: Any, beside: Any = None) -> Look:
    """Show the source of a function, method or class of the framework, and yours beside it.

    Raises:
        TypeError: the thing is not written in Python, so that there is no source to show.
    """
    panes = [] if beside is None else [(f"yours: {beside.__name__}", _source(beside))]
    module = getattr(inspect.unwrap(thing), "__module__", "") or ""
    name = getattr(thing, "__qualname__", getattr(thing, "__name__", "it"))
    return Look([*panes, (f"{module}.{name}", _source(thing))])


def _source(thing: Any) -> str:
    thing = generated(thing.fget if isinstance(thing, property) else thing)
    try:
        return textwrap.dedent(inspect.getsource(thing)).rstrip()
    except (TypeError, OSError):
        found = _class_in_cell(thing)
        if found:
            return found
        name = getattr(thing, "__name__", repr(thing))
        message = f"{name} has no Python source to show; look at a function or class"
        raise TypeError(message) from None


def _class_in_cell(thing: Any) -> str:
    """The source of a class written in a cell: only its methods know where that is."""
    methods = vars(thing).values() if isinstance(thing, type) else ()
    codes = [code for m in methods if (code := getattr(inspect.unwrap(m), "__code__", None))]
    for filename in dict.fromkeys(code.co_filename for code in codes):
        text = "".join(linecache.getlines(filename))
        for node in ast.walk(_parse(text)):
            if isinstance(node, ast.ClassDef) and node.name == thing.__name__:
                return "\n".join(text.splitlines()[node.lineno - 1 : node.end_lineno])
    return ""


def _pane(title: str, source: str) -> str:
    from pygments import highlight
    from pygments.formatters import HtmlFormatter
    from pygments.lexers import PythonLexer

    # "default" in mid tones reads on light and on dark, the background is the page's own
    formatter = HtmlFormatter(noclasses=True, nobackground=True, nowrap=True, style="tango")
    lines = highlight(source, PythonLexer(), formatter).rstrip()
    return (
        '<div class="source-pane" style="min-width:0;'
        "border:1px solid rgba(128,128,128,0.35);"
        'border-radius:7px;overflow:hidden">'
        '<div style="padding:0.25em 0.8em;background:rgba(128,128,128,0.13);font-size:0.9em">'
        f"{escape(title)}</div>"
        '<pre style="margin:0;padding:0.6em 0.8em;overflow-x:auto;white-space:pre;'
        "font-family:monospace;font-size:0.88em;"
        f'line-height:1.4;background:#fbfbfb;color:#1c2430">{lines}</pre></div>'
    )


def setup() -> None:
    """Settings for plots that read on light and dark pages and come out the same every time.

    From then on an error shows your own lines and the message; ``%tb`` shows the whole way.

    Raises:
        ImportError: matplotlib is missing; the course extra brings it.
    """
    traces.install()
    import matplotlib as mpl
    from cycler import cycler

    ink, muted, paper = "#1c2430", "#5c6675", "#fdfcfa"  # the paper of toytorch.viz's pictures
    mpl.rcParams.update(
        {
            "figure.figsize": (7.2, 3.4),
            "figure.dpi": 110,
            "figure.facecolor": paper,
            "savefig.facecolor": paper,
            "axes.facecolor": paper,
            "axes.edgecolor": muted,
            "axes.labelcolor": ink,
            "axes.titlecolor": ink,
            "text.color": ink,
            "xtick.color": muted,
            "ytick.color": muted,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": muted,
            "grid.alpha": 0.22,
            "legend.frameon": False,
            "font.family": "DejaVu Sans",
            "font.size": 10,
            "lines.linewidth": 2.2,
            "axes.prop_cycle": cycler(
                color=["#e2572b", "#3b82c4", "#1f9d63", "#c98a12", "#8b5fbf", "#d6457f"]
            ),
            "svg.hashsalt": "toytorch",
        }
    )


def _parse(text: str) -> Any:
    """The syntax tree of a text."""
    from toytorch.facts.syntax import parse  # the launcher starts before NumPy is installed

    return parse(text)
