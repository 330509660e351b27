"""Times of the same work on both sides, a sample of one after a sample of the other."""

from __future__ import annotations

import gc
import os
import statistics
import time
from typing import Any

from tests.benchmarks.case import Case, Work

# PyTorch's threads wait for work at full speed for some milliseconds after a call, on cores that
# the other side is to use then. So with several threads each sample begins after a pause, in
# seconds, and takes so long that waking the threads counts for little.
PAUSE, TURN = 10e-3, 20e-3


class Clock:
    """What counts: the time on the wall, or the processor's time that this process took, which other
    programs on the same cores disturb less."""

    def __init__(self, cpu_time: bool = False) -> None:
        self.now = time.process_time if cpu_time else time.perf_counter
        self.several = os.environ.get("OMP_NUM_THREADS", "1") != "1"

    def timed(self, work: Work, inner: int) -> float:
        """Seconds per call over `inner` calls."""
        repeat, now = range(inner), self.now
        start = now()
        for _ in repeat:
            work()
        return (now() - start) / inner


def measure(case: Case, ours: Any, theirs: Any, quick: bool, clock: Clock) -> dict[str, Any]:
    """Medians of both sides, and median and quartiles of the paired ratios."""
    works = [case.build(ours), case.build(theirs)]
    samples = max(5, case.samples // 10) if quick else case.samples
    inner = max(1, case.inner // 10) if quick else case.inner
    for work in works:  # warm-up: caches, allocators, lazily made things
        clock.timed(work, max(3, inner // 2))
    if clock.several:
        while clock.timed(works[0], inner) * inner < TURN:
            inner *= 2
    gc.collect()
    gc.disable()
    try:
        pairs = []
        for i in range(samples):
            order = (0, 1) if i % 2 else (1, 0)
            taken = {}
            for side in order:
                if clock.several:
                    time.sleep(PAUSE)
                taken[side] = clock.timed(works[side], inner)
            pairs.append((taken[0], taken[1]))
            if i % 10 == 9:  # between samples, never inside one
                gc.collect()
    finally:
        gc.enable()
    ratios = sorted(a / b for a, b in pairs)
    return {
        "name": case.name,
        "toytorch": statistics.median(a for a, _ in pairs),
        "pytorch": statistics.median(b for _, b in pairs),
        "ratio": statistics.median(ratios),
        "low": ratios[len(ratios) // 4],
        "high": ratios[3 * len(ratios) // 4],
        "target": case.target,
        "traffic": case.traffic,
        "flops": case.flops,
        "samples": len(pairs),
        "calls_per_sample": inner,
    }
