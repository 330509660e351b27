"""The loader's workers in time: the schedule that is drawn, the words, the bytes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.viz.helpers import in_another_process, parsed
from toytorch import viz
from toytorch.viz.lessons.loader_steps import Clocked, run


def one_at_a_time(pool: Any, indices: Iterator[int], ahead: int) -> Iterator[Any]:
    """A schedule without any overlap."""
    for order, index in enumerate(indices):
        pool.ask(order % len(pool), order, index)
        yield pool.hear()[2]


def test_the_schedule_is_the_frameworks() -> None:
    pool = run([4, 1, 1, 2], 2, 2, 1.0, True, None)
    assert [(j.batch, j.worker, j.start, j.end, j.given, j.gone) for j in pool.jobs] == [
        (0, 0, 0, 4, 4, 5),
        (1, 1, 0, 1, 5, 6),
        (2, 0, 4, 5, 6, 7),
        (3, 1, 1, 3, 7, 8),
    ]


def test_out_of_order_nobody_waits_for_the_slow_one() -> None:
    assert (
        run([4, 1, 1, 2], 2, 2, 1.0, False, None).now < run([4, 1, 1, 2], 2, 2, 1.0, True, None).now
    )


def test_another_schedule_is_drawn_as_it_is() -> None:
    steps = viz.loader_steps([2, 2, 2], deliver=one_at_a_time)
    assert repr(steps) == "<loader steps: 3 batches by 2 workers, done at 9, 7 steps to show>"
    assert steps.captions[-1].endswith("the loop has waited 6 of 9.")
    assert len(steps) == len(steps.captions) == 7


def test_captions_tell_who_waits_for_whom() -> None:
    captions = viz.loader_steps([3, 1, 1], step=1).captions
    assert captions[0] == (
        "Time 0: worker 0 is asked for batches 0 and 2; worker 1 is asked for batch 1."
    )
    assert captions[1] == "Time 1: worker 1 has fetched batch 1, which waits for batch 0."


def test_pictures_are_well_formed_and_the_same_in_another_process() -> None:
    steps = viz.loader_steps([4, 1, 1, 2], workers=3, ahead=1)
    for step in range(len(steps)):
        parsed(steps.svg(step))
    code = "viz.loader_steps([4, 1, 1, 2], workers=3, ahead=1).html.encode()"
    assert in_another_process(code, hash_seed="7") == steps.html.encode()


@pytest.mark.parametrize(
    "wrong",
    [
        {"fetch": []},
        {"fetch": [0]},
        {"fetch": [1], "workers": 0},
        {"fetch": [1], "step": 0},
        {"fetch": [1], "ahead": 0},
    ],
)
def test_what_makes_no_sense_is_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="at least one batch"):
        viz.loader_steps(**wrong)


def test_waiting_for_nothing_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="no worker has been asked"):
        Clocked([1], 1).hear()
