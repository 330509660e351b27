"""Time of every operator of PyTorch's own database, which nobody chose for being fast.

    python -m tests.benchmarks.database [-k TEXT] [--size N] [--over RATIO] [--backward] [--cpu avx2]

Each entry's first samples, forward (or forward and backward), in turns on one thread, by the time of
the thread (so that other programs matter less): medians, and the ratio of toytorch's to PyTorch's.
`--size` sets the database's dimensions, which are 5 to 20 else. Printed are the entries of which a
sample takes more than RATIO, the worst first, and the geometric mean of all samples.
"""

from __future__ import annotations

import argparse
import itertools
import math
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

from tests.benchmarks.environment import prepare

_, LEVEL = prepare(sys.argv[1:])  # before NumPy and PyTorch are imported
from tests.oracle import ORACLE, SUBJECT, torch, tt  # noqa: E402  # after `prepare`

SAMPLES, TURNS, SECONDS, BUDGET = 3, 5, 20, 1_000_000  # the last in nanoseconds, of a turn
# Random samples of these are as large as the machine's memory, or take minutes.
TOO_LARGE = {"grid_sampler_3d", "_segment_reduce.lengths", "_segment_reduce.offsets"}

Work = Callable[[], Any]


def work_of(side: Any, function: Any, sample: Any, backward: bool) -> Work:
    """The call of one side."""
    args = side.carry((sample.input, *sample.args), grad=backward)
    kwargs = side.carry(sample.kwargs)

    def forward() -> Any:
        return function(*args, **kwargs)

    def both() -> None:
        made = [t for t in side.tensors(forward()) if t.requires_grad]
        side.root.autograd.backward(made, [side.root.ones_like(t) for t in made])

    return both if backward else forward


def turn(work: Work, count: int) -> float:
    """Microseconds of a call."""
    began = time.thread_time_ns()
    for _ in range(count):
        work()
    return (time.thread_time_ns() - began) / count / 1e3


def timed(works: list[Work]) -> list[float]:
    """Medians of calls in turns."""
    counts = []
    for work in works:
        for _ in range(3):  # kernels are made, tables filled
            work()
        counts.append(max(1, min(200, int(BUDGET / 1e3 / max(turn(work, 1), 0.1)))))
    turns = [[turn(w, n) for w, n in zip(works, counts)] for _ in range(TURNS)]
    return [statistics.median(times) for times in zip(*turns)]


def measured(info: Any, function: Any, backward: bool) -> list[tuple[float, float, str]]:
    """(PyTorch's time, ours, the sample) of an entry's first samples that both sides take."""
    found = []
    samples = info.sample_inputs("cpu", torch.float32, backward)
    for sample in itertools.islice(samples, SAMPLES):
        try:
            works = [
                work_of(ORACLE, info.op, sample, backward),
                work_of(SUBJECT, function, sample, backward),
            ]
            theirs, ours = timed(works)
        except (RuntimeError, TypeError, ValueError, IndexError, AttributeError):
            continue  # whether it should run is asked by the tests
        found.append((theirs, ours, brief([sample.input, *sample.args, sample.kwargs])))
    return found


def brief(given: Any) -> str:
    """Arguments as text, tensors by their shapes."""
    if isinstance(given, torch.Tensor):
        return f"[{', '.join(map(str, given.shape))}]"
    if isinstance(given, dict):
        return ", ".join(f"{name}={brief(value)}" for name, value in given.items())
    return ", ".join(map(brief, given)) if isinstance(given, (list, tuple)) else str(given)


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-k", default="", help="entries with this text in their names")
    parser.add_argument("--size", type=int, default=0)
    parser.add_argument("--over", type=float, default=2.0)
    parser.add_argument("--backward", action="store_true")
    parser.add_argument("--cpu", default=LEVEL, help="the level of vector instructions of both")
    options = parser.parse_args()
    from tests.ops.entries import each, resize
    from tests.ops.test_database import UNSET

    if options.size:
        resize({"S": options.size, "M": options.size + 16, "L": 2 * options.size})
    for side in (torch, tt):
        side.set_num_threads(1)
    print(
        f"toytorch {tt.__version__}, PyTorch {torch.__version__}, one thread, vectors {options.cpu}"
    )

    def work(name: str, info: Any, function: Any) -> list[tuple[float, float, str]]:
        able = not options.backward or (info.supports_autograd and name not in UNSET)
        return measured(info, function, options.backward) if able else []

    ratios, worst = list[float](), list[tuple[float, str]]()
    for name, found in each(work, torch.float32, SECONDS, options.k, TOO_LARGE):
        ratios += [ours / theirs for theirs, ours, _ in found]
        if found:
            theirs, mine, sample = max(found, key=lambda row: row[1] / row[0])
            ratio = mine / theirs
            row = f"{name:45.45} {mine:9.1f} µs {theirs:9.1f} µs {ratio:7.2f}  {sample:.70}"
            worst += [(ratio, row)] * (ratio > options.over)
    print(f"{'':45} {'toytorch':>12} {'PyTorch':>12} {'ratio':>7}  sample")
    print(*(row for _, row in sorted(worst, reverse=True)), sep="\n")
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    most = sum(r <= 1 for r in ratios)
    print(f"{len(ratios)} samples, geometric mean {mean:.2f}, {most} at most PyTorch's time")


if __name__ == "__main__":
    main()
