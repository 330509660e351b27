"""Endless code is stopped, and stopping it prints nothing, wherever the exception arrives."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator

import pytest

from course import deadline


@pytest.fixture
def reported() -> Iterator[list[type[BaseException]]]:
    """Kinds of exceptions that were handed to ``sys.unraisablehook``."""
    kinds: list[type[BaseException]] = []
    before = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: kinds.append(unraisable.exc_type)
    yield kinds
    sys.unraisablehook = before


class Slow:
    """An object whose destructor takes most of the time of a loop that makes such objects."""

    def __del__(self) -> None:
        until = time.monotonic() + 0.15
        while time.monotonic() < until:
            sum(range(1000))


class Failing:
    """An object whose destructor raises."""

    def __del__(self) -> None:
        raise ValueError("in a destructor")


def test_code_that_ends_is_left_alone() -> None:
    results: list[int] = []
    assert deadline.run(lambda: results.append(1), seconds=5)
    assert results == [1]


def test_an_endless_loop_is_stopped() -> None:
    def endless() -> None:
        while True:
            sum(range(100))

    before = threading.active_count()
    assert not deadline.run(endless, seconds=0.1)
    until = time.monotonic() + 10
    while threading.active_count() > before and time.monotonic() < until:
        time.sleep(0.01)  # on a busy machine its end may take a moment
    assert threading.active_count() <= before


def test_an_exception_that_a_destructor_drops_is_not_reported(
    reported: list[type[BaseException]],
) -> None:
    stop = threading.Event()

    def endless() -> None:
        while not stop.is_set():
            Slow()

    assert not deadline.run(endless, seconds=0.1)
    assert reported == []
    stop.set()  # each exception may have met a destructor: the loop would run beside all later tests


def test_other_exceptions_of_destructors_are_reported(
    reported: list[type[BaseException]],
) -> None:
    def endless() -> None:
        while True:
            Failing()

    assert not deadline.run(endless, seconds=0.1)
    assert set(reported) == {ValueError}
