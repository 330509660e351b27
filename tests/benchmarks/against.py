"""Prints ratios of this checkout's times to those of another, from one interleaved run.

    git worktree add /tmp/before COMMIT
    python -m tests.benchmarks.against /tmp/before [-k TEXT] [--threads N] [--samples K]

One process holds each checkout's toytorch; both do the work of this checkout's cases, a sample of
one after a sample of the other. A case that the other checkout cannot do is listed at the end.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[2]
SAMPLE = (
    5e-3  # seconds of work in a sample, at least: what a clock and a cold cache add counts less
)


class Side:
    """A process with one checkout's toytorch, which times what it is asked for."""

    def __init__(self, folder: Path, threads: int) -> None:
        names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        self.process = subprocess.Popen(
            [sys.executable, str(Path(__file__).resolve()), "--serve", str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, **dict.fromkeys(names, str(threads)), "PYTHONPATH": ""},
        )

    def ask(self, *question: Any) -> Any:
        assert self.process.stdin and self.process.stdout  # both are pipes
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the process of {self.process.args} ended")
        return json.loads(answer)

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


@contextmanager
def sides(other: Path, threads: int) -> Iterator[tuple[Side, Side]]:
    made = (Side(HERE, threads), Side(other, threads))
    try:
        yield made
    finally:
        for side in made:
            side.close()


def serve(folder: str) -> None:
    """Answers ["build", name, calls] with seconds or an error's text, and ["time", calls]."""
    sys.path[:0] = [folder]
    import toytorch as m

    assert m.__file__ is not None and Path(m.__file__).is_relative_to(folder)
    sys.path[:0] = [str(HERE)]
    from tests.benchmarks import small_calls
    from tests.benchmarks.cases import CASES

    m.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    cases = {case.name: case for case in (*CASES, *small_calls.CASES)}
    work: Any = None

    def timed(calls: int) -> float:
        repeat = range(calls)
        start = time.perf_counter()
        for _ in repeat:
            work()
        return (time.perf_counter() - start) / calls

    gc.disable()
    for line in sys.stdin:
        verb, *rest = json.loads(line)
        answer: Any
        try:
            if verb == "names":
                answer = list(cases)
            elif verb == "build":
                work = cases[rest[0]].build(m)
                answer = min(timed(3) for _ in range(3))
            else:
                gc.collect()
                answer = timed(rest[0])
        except Exception as e:  # whatever the other checkout cannot do: the case is left out
            answer = f"{type(e).__name__}: {e}"
        print(json.dumps(answer), flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.against",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("other", type=Path, help="a folder with another checkout")
    parser.add_argument("-k", default="", metavar="TEXT", help="names with one of these, by commas")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--samples", type=int, default=41, help="pairs of samples for a case")
    options = parser.parse_args()
    wanted = options.k.split(",")
    left_out = []
    with sides(options.other.resolve(), options.threads) as both:
        print(f"{options.threads} thread(s); medians of {options.samples} pairs")
        print(f"{'':48}{'other':>11}{'here':>11}   ratio  quartiles")
        for name in both[0].ask("names"):
            if not any(text in name for text in wanted):
                continue
            once = [side.ask("build", name) for side in both]
            if refused := [x for x in once if isinstance(x, str)]:
                left_out.append(f"{name}: {refused[0]}")
                continue
            calls = max(1, round(SAMPLE / max(once)))
            pairs = []
            for i in range(options.samples):
                order = both if i % 2 else both[::-1]
                taken = {side: side.ask("time", calls) for side in order}
                pairs.append((taken[both[0]], taken[both[1]]))
            # Whoever comes second may find caches and pages as the first left them: the two orders
            # count alike.
            by_order = [statistics.median(a / b for a, b in pairs[k::2]) for k in (0, 1)]
            ratios = sorted(a / b for a, b in pairs)
            here, there = (statistics.median(x) * 1e6 for x in zip(*pairs, strict=True))
            quarter = len(ratios) // 4
            print(
                f"{name:48}{there:8.2f} µs{here:8.2f} µs  {math.prod(by_order) ** 0.5:6.2f}"
                f"  {ratios[quarter]:.2f}...{ratios[-1 - quarter]:.2f}",
                flush=True,
            )
    for line in left_out:
        print("left out:", line)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        sys.path[:] = [p for p in sys.path if Path(p) != Path(__file__).parent]
        serve(sys.argv[2])
    else:
        sys.exit(main())
