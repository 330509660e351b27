"""Runs a statement and measures it."""

from __future__ import annotations

import enum
import statistics
import textwrap
import timeit
from collections.abc import Callable
from typing import Any, NoReturn

import toytorch
from toytorch.backends import base
from toytorch.utils.benchmark.measurement import Measurement, TaskSpec, set_torch_threads

SHORTEST = 1e-9  # seconds; nothing takes less, and nothing is divided by 0
MOST = 2**31 - 1  # runs at a time


class Language(enum.Enum):
    """What a statement is written in: Python, as there is no compiler of C++ here."""

    PYTHON = 0
    CPP = 1


def timer() -> float:
    """The clock, read when a GPU has done what it was given."""
    gpu: Any = base.of_kind("cuda")
    if gpu.is_available():
        gpu.synchronize()
    return timeit.default_timer()


def undented(text: str) -> str:
    """Lines without the indentation that they share, and without an empty first one."""
    return textwrap.dedent(text).removeprefix("\n").rstrip()


class Timer:
    """Measures a statement, on `num_threads` threads; like `torch.utils.benchmark.Timer`.

    `stmt` and `setup` are source text that sees `globals`, and `torch`. The statement runs before
    anything is timed. `label`, `sub_label`, `description` and `env` say where `Compare` puts it.

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
        language: Language | str = Language.PYTHON,
    ) -> None:
        if not isinstance(stmt, str):
            raise ValueError("Currently only a `str` stmt is supported.")
        if language in (Language.CPP, "cpp", "c++"):
            # As for `torch.utils.cpp_extension`: users have no compiler.
            raise NotImplementedError("Timer measures Python: toytorch compiles no C++")
        if language not in (Language.PYTHON, "py", "python"):
            raise ValueError(f"Invalid language `{language}`.")
        if global_setup:
            raise ValueError(
                f"global_setup is C++ only, got `{global_setup}`. Most "
                "likely this code can simply be moved to `setup`."
            )
        stmt, setup = undented(stmt), undented(setup)
        seen = {"torch": toytorch, **(globals or {})}
        self._timer = timeit.Timer(stmt, setup, timer, seen)
        self._task_spec = TaskSpec(
            stmt, setup, global_setup, label, sub_label, description, env, num_threads
        )

    def _time(self, number: int) -> float:
        return max(self._timer.timeit(number), SHORTEST)

    def _measured(self, number: int, times: list[float]) -> Measurement:
        return Measurement(number, times, self._task_spec)

    def timeit(self, number: int = 1_000_000) -> Measurement:
        """One measurement of `number` runs."""
        with set_torch_threads(self._task_spec.num_threads):
            self._time(max(number // 100, 2))  # first runs import and compile
            return self._measured(number, [self._time(number)])

    def repeat(self, repeat: int = -1, number: int = -1) -> NoReturn:
        """Refused, as in PyTorch: `blocked_autorange` chooses both numbers."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")  # PyTorch's class and words

    def autorange(self, callback: Callable[[int, float], Any] | None = None) -> NoReturn:
        """Refused, as in PyTorch, for the same reason."""
        raise NotImplementedError("See `Timer.blocked_autorange.`")  # PyTorch's class and words

    def blocked_autorange(
        self, callback: Callable[[int, float], Any] | None = None, min_run_time: float = 0.2
    ) -> Measurement:
        """Measurements of as many runs as the clock can tell apart, for `min_run_time` seconds."""
        return self._repeated(min_run_time, callback, min_run_time, None, lambda found: True)

    def adaptive_autorange(
        self,
        threshold: float = 0.1,
        *,
        min_run_time: float = 0.01,
        max_run_time: float = 10.0,
        callback: Callable[[int, float], Any] | None = None,
    ) -> Measurement:
        """The same until the quartiles are as close as `threshold` times the median, or for
        `max_run_time` seconds."""

        def sure(found: Measurement) -> bool:
            return len(found.raw_times) > 3 and found.meets_confidence(threshold)

        return self._repeated(0.05, callback, min_run_time, max_run_time, sure)

    def _repeated(
        self,
        estimated: float,
        callback: Callable[[int, float], Any] | None,
        least: float,
        most: float | None,
        enough: Callable[[Measurement], bool],
    ) -> Measurement:
        """Measurements for at least so many seconds, until there are enough or the most is reached."""
        times: list[float] = []
        with set_torch_threads(self._task_spec.num_threads):
            number = self._block(estimated)
            while sum(times) < least or not enough(self._measured(number, times)):
                times.append(self._time(number))
                if callback is not None:
                    callback(number, times[-1])
                if most and sum(times) > most:
                    break
        return self._measured(number, times)

    def _block(self, min_run_time: float) -> int:
        """The first of 1, 10, 100, … runs beside which reading the clock takes no time."""
        overhead = statistics.median(self._time(0) for _ in range(5))
        number = 1
        while number * 10 <= MOST:
            taken = self._time(number)
            if taken > min_run_time or (overhead <= 1e-4 * taken and taken >= min_run_time / 1000):
                break
            number *= 10
        return number

    def collect_callgrind(self, *args: object, **kwargs: object) -> NoReturn:
        """Raises OSError, as PyTorch does where Valgrind or its own C++ code for it is missing."""
        raise OSError("Valgrind is not supported on this platform.")
