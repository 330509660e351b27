"""Timing small pieces of program, like `torch.utils.benchmark`."""

from __future__ import annotations

import statistics
import textwrap
import timeit as _timeit
from collections.abc import Callable
from typing import Any

from toytorch.backends import base
from toytorch.loops.runtime import blas

UNITS = (("ns", 1e-9), ("us", 1e-6), ("ms", 1e-3), ("s", 1.0))


def select_unit(seconds: float) -> tuple[str, float]:
    """The unit that suits a time, and its length in seconds.

    >>> select_unit(0.002)
    ('ms', 0.001)
    """
    fitting = [unit for unit in UNITS if seconds >= unit[1]]
    return fitting[-1] if fitting else UNITS[0]


def timer() -> float:
    """The clock, read when a GPU has done what it was given."""
    gpu: Any = base.of_kind("cuda")
    if gpu.is_available():
        gpu.synchronize()
    return _timeit.default_timer()


def undented(text: str) -> str:
    """Lines without the indentation that they share, and without an empty first one."""
    return textwrap.dedent(text).removeprefix("\n").rstrip()


class Measurement:
    """Times of one statement: `raw_times` in seconds, each of `number_per_run` runs."""

    def __init__(
        self,
        number_per_run: int,
        raw_times: list[float],
        stmt: str,
        setup: str,
        label: str | None,
        sub_label: str | None,
        description: str | None,
        num_threads: int,
    ) -> None:
        self.number_per_run, self.raw_times = number_per_run, raw_times
        self.stmt, self.setup, self.num_threads = stmt, setup, num_threads
        self.label, self.sub_label, self.description = label, sub_label, description

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
    def title(self) -> str:
        """The label, or the statement."""
        if self.label is None and "\n" in self.stmt:
            of = f" ({self.sub_label})" if self.sub_label else ""
            return f"stmt:{of}\n{textwrap.indent(self.stmt, '  ')}"
        name = self.stmt if self.label is None else self.label
        return f"{name}: {self.sub_label}" if self.sub_label else name

    @property
    def about(self) -> list[str]:
        """What was measured, in parts; one of several lines has an empty one below it."""
        setup = "" if self.setup == "pass" else self.setup
        if setup:
            several = "\n" in setup
            setup = f"setup:\n{textwrap.indent(setup, '  ')}" if several else f"setup: {setup}"
        parts = (self.title, self.description or "", setup)
        return [f"{part}\n" if "\n" in part else part for part in parts if part]

    def __repr__(self) -> str:
        count = len(self.raw_times)
        unit, length = select_unit(self.median)
        middle = "" if count == 1 else "Median: "
        runs = (
            f"{self.number_per_run} runs ,"
            if count == 1
            else f"{self.number_per_run} runs per measurement,"
        )
        lines = [
            f"<{type(self).__module__}.{type(self).__name__} object at {id(self):#x}>",
            *self.about,
        ]
        lines += [f"  {middle}{self.median / length:.2f} {unit}"]
        if count > 3:
            low, high = self.quartiles
            lines += [
                f"  IQR:    {self.iqr / length:.2f} {unit} ({low / length:.2f} to "
                f"{high / length:.2f})"
            ]
        threads_used = f"{self.num_threads} thread" + "s" * (self.num_threads != 1)
        lines += [f"  {count} measurement{'s' * (count != 1)}, {runs} {threads_used}"]
        if self.iqr >= 0.1 * self.median:
            why = (
                "This suggests significant environmental influence."
                if self.iqr >= 0.25 * self.median
                else "This could indicate system fluctuation."
            )
            lines += [
                f"  WARNING: Interquartile range is {self.iqr / self.median * 100:.1f}% of "
                f"the median measurement.\n           {why}"
            ]
        return "\n".join(lines)


class Timer:
    """Measures a statement, on `num_threads` threads; like `torch.utils.benchmark.Timer`.

    `stmt` and `setup` are source text that sees `globals`. The statement runs once before anything
    is timed.

    >>> found = Timer("x + 1", globals={"x": 1}).timeit(100)
    >>> found.number_per_run, 0 < found.median < 1
    (100, True)
    """

    def __init__(
        self,
        stmt: str = "pass",
        setup: str = "pass",
        global_setup: str = "",
        timer: Callable[[], float] = timer,
        globals: dict[str, Any] | None = None,
        label: str | None = None,
        sub_label: str | None = None,
        description: str | None = None,
        env: str | None = None,
        num_threads: int = 1,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if global_setup:
            raise ValueError("global_setup is C++ only, received: " + repr(global_setup))
        stmt, setup = undented(stmt), undented(setup)
        self._timer = _timeit.Timer(stmt, setup, timer, dict(globals or {}))
        self._about = (stmt, setup, label, sub_label, description, num_threads)
        self.num_threads, self.env = num_threads, env

    def _times(self, number: int, until: Callable[[list[float]], bool]) -> list[float]:
        """Measurements of `number` runs each, until they are enough."""
        before, times = blas.threads(), []
        blas.set_threads(self.num_threads)
        try:
            self._timer.timeit(1)  # a first run imports and compiles
            while True:
                times.append(self._timer.timeit(number))
                if until(times):
                    return times
        finally:
            blas.set_threads(before)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs."""
        return Measurement(number, self._times(number, lambda times: True), *self._about)

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measurements of as many runs as the clock can tell apart, for `min_run_time` seconds."""
        number = self._block(min_run_time)

        def enough(times: list[float]) -> bool:
            if callback is not None:
                callback(number, times[-1])
            return sum(times) >= min_run_time

        return Measurement(number, self._times(number, enough), *self._about)

    def _block(self, min_run_time: float) -> int:
        """The first of 1, 10, 100, … runs that take a thousandth of the time together."""
        number = 1
        while self._times(number, lambda times: True)[0] < min_run_time / 1000:
            number *= 10
        return number
