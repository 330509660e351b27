"""Prints ratios of toytorch's time to PyTorch's, from one interleaved run, on one thread each
if nothing else is said.

    python -m tests.benchmarks [-k TEXT] [--threads N] [--json] [--plot FILE.svg] [--quick]
                               [--check] [--cpu-time]

Each case does the same work on both sides. Samples alternate between the two, so that whatever else
the machine does meets both alike; the table gives medians, and the quartiles of the ratio over the
pairs of samples.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import sys
import time
from pathlib import Path
from typing import Any

_threads = sys.argv[sys.argv.index("--threads") + 1] if "--threads" in sys.argv else "1"
for _name in (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
):
    os.environ[_name] = _threads  # before NumPy and PyTorch are imported, which read them once

from tests.benchmarks import small_calls  # noqa: E402
from tests.benchmarks.case import Case, Work  # noqa: E402
from tests.benchmarks.cases import CASES  # noqa: E402

# PyTorch's threads wait for work at full speed for some milliseconds after a call, on cores that
# the other side is to use then. So with several threads each sample begins after a pause, in
# seconds, and takes so long that waking the threads counts for little.
PAUSE, TURN = 10e-3, 20e-3


# With --cpu-time, what counts is the processor's time that this process took: other programs on the
# same cores then disturb less.
clock = time.process_time if "--cpu-time" in sys.argv else time.perf_counter


def timed(work: Work, inner: int) -> float:
    """Seconds per call over `inner` calls."""
    repeat = range(inner)
    start = clock()
    for _ in repeat:
        work()
    return (clock() - start) / inner


def measure(case: Case, ours: Any, theirs: Any, quick: bool) -> dict[str, Any]:
    """Medians of both sides, and median and quartiles of the paired ratios."""
    works = [case.build(ours), case.build(theirs)]
    samples = max(5, case.samples // 10) if quick else case.samples
    inner = max(1, case.inner // 10) if quick else case.inner
    for work in works:  # warm-up: caches, allocators, lazily made things
        timed(work, max(3, inner // 2))
    if _threads != "1":
        while timed(works[0], inner) * inner < TURN:
            inner *= 2
    gc.collect()
    gc.disable()
    try:
        pairs = []
        for i in range(samples):
            order = (0, 1) if i % 2 else (1, 0)
            taken = {}
            for side in order:
                if _threads != "1":
                    time.sleep(PAUSE)
                taken[side] = timed(works[side], inner)
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
        "samples": len(pairs),
        "calls_per_sample": inner,
    }


def microseconds(seconds: float) -> str:
    us = seconds * 1e6
    return f"{us:.2f} µs" if us < 100 else f"{us:.0f} µs" if us < 10_000 else f"{us / 1000:.1f} ms"


def row(r: dict[str, Any]) -> str:
    target = f"≤ {r['target']}" if r["target"] else ""
    if r["traffic"]:
        target = f"{target:6}  {r['traffic'] / r['toytorch'] / 1e9:.0f} GB/s"
    return (
        f"{r['name']:44}{microseconds(r['toytorch']):>11}{microseconds(r['pytorch']):>11}"
        f"{r['ratio']:>8.2f}  {r['low']:.2f}...{r['high']:.2f}  {target}"
    )


def conditions(ours: Any, theirs: Any) -> dict[str, Any]:
    """The machine and the versions; thread counts as the libraries themselves report them."""
    import numpy as np

    return {
        "toytorch": ours.__version__,
        "pytorch": theirs.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "pytorch_threads": theirs.get_num_threads(),
        "numpy_threads": int(os.environ["OPENBLAS_NUM_THREADS"]),
    }


def plot(results: list[dict[str, Any]], about: dict[str, Any], file: Path) -> None:
    """A bar per case, toytorch's time over PyTorch's; the same numbers give the same bytes."""
    import matplotlib

    matplotlib.use("svg")
    from matplotlib import pyplot as plt

    plt.rcParams.update({"svg.hashsalt": "toytorch", "svg.fonttype": "path", "font.size": 10})
    figure, axes = plt.subplots(figsize=(8, 0.42 * len(results) + 1.2), layout="constrained")
    places = range(len(results))[::-1]
    for y, r in zip(places, results, strict=True):
        axes.barh(y, r["ratio"], color="#3b7dd8" if r["ratio"] <= 1 else "#d9822b", height=0.62)
        axes.plot([r["low"], r["high"]], [y, y], color="#20304a", linewidth=1.2)
        end = max(r["ratio"], r["high"])
        if r["target"] and end * 0.95 < r["target"] < end * 1.3:
            end = max(end, r["target"])  # the number stands behind the dotted line, not on it
        axes.text(end * 1.05, y, f"{r['ratio']:.2f}", va="center")
        if r["target"]:
            axes.plot([r["target"]] * 2, [y - 0.38, y + 0.38], color="#20304a", linestyle=":")
    axes.axvline(1, color="#20304a", linewidth=1)
    axes.set_xscale("log")
    most = max(max(r["high"] for r in results), 1)
    axes.set_xlim(min(0.2, min(r["low"] for r in results) / 1.3), most * 1.6)
    ticks = [
        t
        for t in (0.1, 0.2, 0.3, 0.5, 1, 2, 3, 5, 10)
        if axes.get_xlim()[0] <= t <= axes.get_xlim()[1]
    ]
    axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
    axes.minorticks_off()
    axes.set_yticks(list(places), [r["name"] for r in results])
    figure.supxlabel(
        f"time over PyTorch {about['pytorch']} eager, one thread\n"
        "left of 1: faster; dotted: the limit asked for",
        fontsize="medium",
    )
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(file, format="svg", metadata={"Date": None, "Creator": None})
    plt.close(figure)


def main(arguments: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    p.add_argument("--threads", type=int, default=1, help="threads of each side (1)")
    p.add_argument(
        "-k",
        default="",
        metavar="TEXT",
        help="only cases whose names hold this text, or one of several with commas between",
    )
    p.add_argument(
        "--json", action="store_true", help="print the results as JSON instead of a table"
    )
    p.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the plot of the README")
    p.add_argument(
        "--quick", action="store_true", help="a tenth of the samples: a smoke test, no measurement"
    )
    p.add_argument("--check", action="store_true", help="exit with 1 if a ratio misses its target")
    p.add_argument("--cpu-time", action="store_true", help="the process's time, not the wall's")
    options = p.parse_args(arguments)
    try:
        import torch as theirs
    except ImportError:
        print(
            "PyTorch is not installed; the benchmarks compare with it: pip install torch",
            file=sys.stderr,
        )
        return 2
    import toytorch as ours

    theirs.set_num_threads(int(_threads))
    chosen = [c for c in CASES if any(part in c.name for part in options.k.split(","))]
    if not chosen:
        p.error(f"no case holds {options.k!r}; there are: {', '.join(c.name for c in CASES)}")
    about = conditions(ours, theirs)
    if not options.json:
        print(", ".join(f"{k.replace('_', ' ')} {v}" for k, v in about.items()))
        print(f"{'':44}{'toytorch':>11}{'PyTorch':>11}{'ratio':>8}  quartiles  target")
    results = []
    for case in chosen:
        results.append(measure(case, ours, theirs, options.quick))
        if not options.json:
            print(row(results[-1]), flush=True)
    if "small: " in options.k and not options.json:
        mean = small_calls.geometric_mean([r["ratio"] for r in results])
        print(f"geometric mean of {len(results)}: {mean:.2f}")
    if options.json:
        print(json.dumps({"conditions": about, "results": results}, indent=1))
    if options.plot:
        plot(results, about, options.plot)
    missed = [r["name"] for r in results if r["target"] and r["ratio"] > r["target"]]
    if options.check and missed:
        print("missed:", "; ".join(missed), file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
