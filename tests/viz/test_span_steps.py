"""Steppers about measuring: whose time it is, and which lines of memory are fetched."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.viz.helpers import parsed
from toytorch import viz


def trace(*calls: tuple[str, float, float], tid: int = 0) -> dict[str, Any]:
    """Calls as (name, start, length)."""
    keys = ("name", "ts", "dur")
    events = [{**dict(zip(keys, c, strict=True)), "ph": "X", "pid": 0, "tid": tid} for c in calls]
    return {"traceEvents": events}


NESTED = trace(("a", 0, 10), ("b", 1, 3), ("a", 5, 4), ("b", 6, 2))


def test_time_belongs_to_the_innermost_call() -> None:
    said = viz.span_steps(NESTED).captions
    assert said[1] == "b begins inside of a. The last 1 µs were a's own."
    assert said[-1] == "a ends. The last 1 µs were its own."
    assert len(said) == 8


def test_a_call_of_no_time_begins_and_ends() -> None:
    said = viz.span_steps(trace(("a", 0, 2), ("b", 1, 0), ("c", 2, 1))).captions
    assert [line.split(".")[0] for line in said] == [
        "a begins", "b begins inside of a", "b ends", "a ends", "c begins", "c ends",
    ]  # fmt: skip


def test_own_times_add_up() -> None:
    html = viz.span_steps(NESTED).html
    last = [t.group(1) for t in re.finditer(r">([\d.]+ µs)<", html)]
    assert last.count("5 µs") >= 2


def test_every_step_is_a_picture() -> None:
    for steps in (viz.span_steps(NESTED), viz.cache_steps((2, 3), [(0, 0), (1, 2)], line=4)):
        assert parsed(steps.svg()) is not None


def test_a_trace_is_a_timeline() -> None:
    picture = viz.timeline(NESTED)
    assert repr(picture) == "timeline: 4 events"
    assert [len(lane) for lane in picture.chart.rows[0].lanes] == [1, 2, 1]
    assert repr(viz.timeline(NESTED, end_us=0.5)) == "timeline: 1 event"
    with pytest.raises(ValueError, match="nothing to draw"):
        viz.timeline({"traceEvents": [{"ph": "M", "name": "process_name"}]})


def test_a_column_misses_where_a_row_hits() -> None:
    rows = [(r, c) for r in range(4) for c in range(8)]
    columns = [(r, c) for c in range(8) for r in range(4)]
    assert repr(viz.cache_steps((4, 8), rows)) == "<cache steps: 32 elements read, 8 lines fetched>"
    assert "32 lines fetched" in repr(viz.cache_steps((4, 8), columns))
    assert "8 lines fetched" in repr(viz.cache_steps((4, 8), columns, room=4))


@pytest.mark.parametrize("walk", [[], [(0, 3)], [(-1, 0)]])
def test_walks_outside_are_refused(walk: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="matrix of shape"):
        viz.cache_steps((2, 3), walk)
