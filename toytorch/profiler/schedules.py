"""When the profiler records: a plan over the numbered steps of a training loop."""

from __future__ import annotations

import enum
from collections.abc import Callable

from toytorch.facts import warned


class ProfilerAction(enum.Enum):
    """What to do in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


def schedule(
    *,
    wait: int,
    warmup: int,
    active: int,
    repeat: int = 0,
    skip_first: int = 0,
    skip_first_wait: int = 0,
) -> Callable[[int], ProfilerAction]:
    """A plan: cycles of `wait` idle steps, `warmup` steps that do not count, `active` recorded.

    repeat           how many cycles; 0 for no end
    skip_first       steps before the first cycle
    skip_first_wait  if not 0, the first cycle begins with its warm-up

    Raises AssertionError for negative numbers, or nothing to record. Like
    `torch.profiler.schedule`.

    >>> plan = schedule(wait=1, warmup=1, active=2)
    >>> [plan(step).name for step in range(4)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError(
            f"Invalid profiler schedule arguments. Got wait={wait} (need >= 0), warmup={warmup} "
            f"(need >= 0), active={active} (need > 0), repeat={repeat} (need >= 0), "
            f"skip_first={skip_first} (need >= 0)."
        )
    if warmup == 0:
        warned.at_call("Profiler won't be using warmup, this can skew profiler results")
    cycle = wait + warmup + active

    def plan(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.")
        if step < skip_first:
            return ProfilerAction.NONE
        step += (wait if skip_first_wait else 0) - skip_first
        if repeat > 0 and step >= repeat * cycle:
            return ProfilerAction.NONE
        step %= cycle
        if step < wait:
            return ProfilerAction.NONE
        if step < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if step < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return plan


def always(step: int) -> ProfilerAction:
    """The plan where none is given: record every step."""
    return ProfilerAction.RECORD
