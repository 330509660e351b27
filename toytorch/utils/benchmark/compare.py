"""Many measurements as a table, and which of them are the fastest."""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Sequence
from typing import TypeAlias

from toytorch.utils.benchmark.measurement import (
    Measurement,
    ordered_unique,
    select_unit,
    trim_sigfig,
    unit_to_english,
)

Cell: TypeAlias = Measurement | None  # of a row and a column that nothing was measured for
# how a terminal shows what is (nearly) the best, and what takes twice or five times as long
BEST, GOOD, SLOW, SLOWEST = (
    "\033[92m\033[1m",
    "\033[34m\033[1m",
    "\033[2m\033[91m",
    "\033[31m\033[1m",
)
END = "\033[0m"
ALIKE = 100e-9  # seconds from the best that are no difference


class Colorize(enum.Enum):
    """What the fastest is looked for among."""

    NONE = "none"
    COLUMNWISE = "columnwise"
    ROWWISE = "rowwise"


class Compare:
    """A table of measurements: a table for each label, a row for each sub-label and number of threads,
    a column for each description; `torch.utils.benchmark.Compare`.

    >>> from toytorch.utils.benchmark import TaskSpec
    >>> tasks = [TaskSpec("x", "pass", label="sum", sub_label="8x8", description=d) for d in "ab"]
    >>> print(Compare([Measurement(1, [t], task) for t, task in zip((2e-6, 3e-6), tasks)]))
    [--------- sum ---------]
               |   a   |   b\x20
    1 threads: --------------
          8x8  |  2.0  |  3.0
    <BLANKLINE>
    Times are in microseconds (us).
    <BLANKLINE>
    """

    def __init__(self, results: Iterable[Measurement]) -> None:
        self._results: list[Measurement] = []
        self.extend_results(results)
        self._trims = self._warns = False
        self._colors = Colorize.NONE

    def extend_results(self, results: Iterable[Measurement]) -> None:
        """Takes in more measurements; ValueError for anything else."""
        results = list(results)
        for each in results:
            if not isinstance(each, Measurement):
                raise ValueError(
                    f"Expected an instance of `Measurement`, got {type(each)} instead."
                )
        self._results.extend(results)

    def trim_significant_figures(self) -> None:
        """Shows no more figures than are sure."""
        self._trims = True

    def colorize(self, rowwise: bool = False) -> None:
        """Shows in color what is fast and slow in its column, or in its row."""
        self._colors = Colorize.ROWWISE if rowwise else Colorize.COLUMNWISE

    def highlight_warnings(self) -> None:
        """Marks times that are too far apart."""
        self._warns = True

    def print(self) -> None:
        """Prints the tables."""
        print(str(self))

    def __str__(self) -> str:
        merged = Measurement.merge(self._results)
        labels = ordered_unique(m.label for m in merged)
        return "\n".join(self._table([m for m in merged if m.label == label]) for label in labels)

    def _table(self, results: list[Measurement]) -> str:
        unit, scale = select_unit(min(m.median for m in results))
        rows = ordered_unique((m.num_threads, m.env, m.as_row_name) for m in results)
        rows.sort(key=lambda row: (row[0], row[1] or ""))
        names = ordered_unique(m.description for m in results)
        at = {(m.num_threads, m.env, m.as_row_name, m.description): m for m in results}
        columns = [[at.get((*row, name)) for row in rows] for name in names]
        texts = [["", *row_names(rows)]]
        for name, cells in zip(names, columns):
            texts.append([name or "", *self._numbers(cells, scale)])
        widths = [max(map(len, column)) for column in texts]
        head = "  |  ".join(column[0].center(width) for column, width in zip(texts, widths))
        title = f" {results[0].label or ''} "
        lines = [f"[{title.center(len(head) - 2, '-')}]", head]
        for i, (threads, *_) in enumerate(rows):
            if not i or threads != rows[i - 1][0]:
                lines.append(f"{threads} threads: ".ljust(len(head), "-"))
            parts = [texts[0][i + 1].ljust(widths[0])]
            for j, cells in enumerate(columns):
                shown = texts[j + 1][i + 1].center(widths[j + 1])
                alike = [c for c, row in zip(cells, rows) if row[0] == threads]
                parts.append(self._colored(shown, cells[i], alike, [c[i] for c in columns]))
            lines.append("  |  ".join(parts))
        lines += ["", f"Times are in {unit_to_english(unit)}s ({unit}).", ""]
        if self._warns and any(m.has_warnings for m in results):
            lines.insert(
                -1, "(! XX%) Measurement has high variance, where XX is the IQR / median * 100."
            )
        return "\n".join(lines)

    def _numbers(self, cells: Sequence[Cell], scale: float) -> list[str]:
        """The numbers of a column, with their points below each other."""
        there = [m for m in cells if m is not None]
        before = {id(m): math.ceil(math.log10(m.median / scale)) for m in there}
        places = 1
        if self._trims:
            places = min(max(m.significant_figures - before[id(m)], 0) for m in there)
        length = max(before.values()) + places + bool(places)
        marked = self._warns and any(m.has_warnings for m in there)
        made = []
        for m in cells:
            if m is None:
                made.append(" " * (max(length, len(f"{1:.{places}f}")) + 7 * marked))
                continue
            value, note = m.median / scale, ""
            if self._trims:
                value = trim_sigfig(value, m.significant_figures)
            if marked and m.has_warnings:
                note = f" (! {m.iqr / m.median * 100:.0f}%)"
            made.append(f"{value:>{length}.{places}f}{note:>{7 * marked}}")
        return made

    def _colored(self, text: str, cell: Cell, column: Sequence[Cell], row: Sequence[Cell]) -> str:
        """The text of a measurement, in the color that its rank has."""
        if self._colors is Colorize.NONE or cell is None:
            return text
        beside = row if self._colors is Colorize.ROWWISE else column
        best, time = min(m.median for m in beside if m is not None), cell.median
        if time <= best * 1.01 or time <= best + ALIKE:
            color = BEST
        elif time <= best * 1.1:
            color = GOOD
        else:
            color = SLOWEST if time >= best * 5 else SLOW if time >= best * 2 else ""
        return f"{color}{text}{END}{END}" if color else text


def row_names(rows: Sequence[tuple[int, str | None, str]]) -> list[str]:
    """What stands before each row: its environment, where there are several and it changes."""
    several = len({env for _, env, _ in rows}) > 1
    room = 4 + (max(len(str(env)) for _, env, _ in rows) if several else 0)
    made = []
    for i, (threads, env, name) in enumerate(rows):
        new = several and (not i or rows[i - 1][:2] != (threads, env))
        made.append("  " + (f"({env})" if new else "").ljust(room) + name)
    return made
