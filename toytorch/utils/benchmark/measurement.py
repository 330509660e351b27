"""Times of a statement, and what can be said of them."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import statistics
import textwrap
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, TypeVar

import numpy as np

from toytorch.loops.runtime import blas

Key = TypeVar("Key", bound=Hashable)
UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))
ENGLISH = {"ns": "nanosecond", "us": "microsecond", "ms": "millisecond", "s": "second"}
NOISY, VERY_NOISY = 0.1, 0.25  # interquartile ranges, as parts of the median, that are warned of
FIGURES = 4  # more significant figures are never claimed
LEAST = 25e-9  # seconds; no measurement is surer than this
SCORE = 1.645  # of a normal distribution, whose middle 90 % lie within so many deviations


def select_unit(t: float) -> tuple[str, float]:
    """The unit that suits a time, and its length in seconds.

    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    fitting = [unit for unit in UNITS if t >= unit[1]]
    return fitting[-1] if fitting else UNITS[0]


def unit_to_english(u: str) -> str:
    """The name of a unit: "microsecond" for "us"."""
    return ENGLISH[u]


def trim_sigfig(x: float, n: int) -> float:
    """A number rounded to n significant figures, in float32.

    >>> f"{trim_sigfig(3.14159, 2):.5f}"
    '3.10000'
    """
    if n != int(n):
        raise AssertionError("Number of significant figures must be an integer")
    scale = 10.0 ** (math.ceil(math.log10(abs(x))) - n)
    return float(np.float32(round(x / scale)) * np.float32(scale))


def ordered_unique(elements: Iterable[Key]) -> list[Key]:
    """Each element once, in the order in which they come first."""
    return list(dict.fromkeys(elements))


@contextlib.contextmanager
def set_torch_threads(n: int) -> Iterator[None]:
    """Computes on so many threads meanwhile."""
    before = blas.threads()
    blas.set_threads(n)
    try:
        yield
    finally:
        blas.set_threads(before)


@dataclasses.dataclass(repr=False, frozen=True)
class TaskSpec:
    """What is timed: a statement, what comes before it, and what it is called in tables."""

    stmt: str
    setup: str
    global_setup: str = ""
    label: str | None = None
    sub_label: str | None = None
    description: str | None = None
    env: str | None = None
    num_threads: int = 1

    @property
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            of = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{of}\n{textwrap.indent(self.stmt, '  ')}"
        name = self.stmt if self.label is None else self.label
        return f"{name}: {self.sub_label}" if self.sub_label else name

    def setup_str(self) -> str:
        """What comes before the statement, for a reader; nothing where nothing does."""
        if self.setup in ("", "pass"):
            return ""
        several = "\n" in self.setup
        return f"setup:\n{textwrap.indent(self.setup, '  ')}" if several else f"setup: {self.setup}"

    def summarize(self) -> str:
        """Title, description and setup; a part of several lines has an empty one below it."""
        parts = (self.title, self.description or "", self.setup_str())
        return "\n".join(f"{part}\n" if "\n" in part else part for part in parts if part)


FIELDS = frozenset(f.name for f in dataclasses.fields(TaskSpec))


@dataclasses.dataclass(repr=False)
class Measurement:
    """Times of one statement: `raw_times` in seconds, each of `number_per_run` runs.

    The fields of `task_spec` are found here, too.

    >>> found = Measurement(10, [2e-5, 4e-5, 3e-5], TaskSpec("x + 1", "pass", label="sum"))
    >>> found.median, found.label, found.has_warnings
    (3e-06, 'sum', True)
    """

    number_per_run: int
    raw_times: list[float]
    task_spec: TaskSpec
    metadata: dict[Any, Any] | None = None

    def __getattr__(self, name: str) -> Any:
        if name in FIELDS:
            return getattr(self.task_spec, name)
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    @property
    def times(self) -> list[float]:
        """Seconds of a single run, one number per measurement."""
        return [t / self.number_per_run for t in self.raw_times]

    @property
    def mean(self) -> float:
        """The mean of `times`."""
        return statistics.fmean(self.times)

    @property
    def median(self) -> float:
        """The median of `times`, which one slow measurement does not move."""
        return statistics.median(self.times)

    @property
    def quartiles(self) -> tuple[float, float]:
        """A quarter of `times` is below the first, a quarter above the second."""
        if len(self.times) < 2:
            return self.median, self.median
        low, _, high = statistics.quantiles(self.times, n=4, method="inclusive")
        return low, high

    @property
    def iqr(self) -> float:
        """The distance between the quartiles."""
        low, high = self.quartiles
        return high - low

    @property
    def significant_figures(self) -> int:
        """About how many figures of the median can be trusted, from 1 to 4.

        The spread is that of the middle half of all times: their deviation over the root of their
        number, of which 1.645 to either side hold 90 % of a normal distribution.
        """
        times, count = sorted(self.times), len(self.times)
        middle = times[count // 4 : -(-3 * count // 4)]
        spread = max(SCORE * statistics.pstdev(middle) / math.sqrt(len(middle)), LEAST)
        return min(max(math.floor(math.log10(self.median / spread)), 1), FIGURES)

    def meets_confidence(self, threshold: float = NOISY) -> bool:
        """Whether the distance of the quartiles is less than this part of the median."""
        return self.iqr / self.median < threshold

    @property
    def has_warnings(self) -> bool:
        """Whether the times are too far apart to be trusted."""
        return not self.meets_confidence()

    @property
    def title(self) -> str:
        """The label, or the statement."""
        return self.task_spec.title

    @property
    def as_row_name(self) -> str:
        """What a row of a table is called."""
        return self.sub_label or self.stmt or "[Unknown]"

    def __repr__(self) -> str:
        count, several = len(self.raw_times), len(self.raw_times) != 1
        unit, length = select_unit(self.median)
        middle = "Median: " if several else ""
        lines = [object.__repr__(self), self.task_spec.summarize()]
        lines += [f"  {middle}{self.median / length:.2f} {unit}"]
        if count > 3:
            low, high = self.quartiles
            between = f"({low / length:.2f} to {high / length:.2f})"
            lines += [f"  IQR:    {self.iqr / length:.2f} {unit} {between}"]
        runs = f"{self.number_per_run} runs {'per measurement,' if several else ','}"
        used = f"{self.num_threads} thread" + "s" * (self.num_threads != 1)
        lines += [f"  {count} measurement{'s' * several}, {runs} {used}"]
        if self.has_warnings:
            if self.meets_confidence(VERY_NOISY):
                why = "This could indicate system fluctuation."
            else:
                why = "This suggests significant environmental influence."
            lines += [
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of "
                f"the median measurement.\n           {why}"
            ]
        return "\n".join(lines)

    @staticmethod
    def merge(measurements: Iterable[Measurement]) -> list[Measurement]:
        """One measurement for each task: all its times, as those of single runs."""
        found: dict[TaskSpec, list[float]] = {}
        for each in measurements:
            found.setdefault(each.task_spec, []).extend(each.times)
        return [Measurement(1, times, task) for task, times in found.items()]
