"""Prints ratios of toytorch's time to PyTorch's, from one interleaved run, on one thread each
if nothing else is said.

    python -m tests.benchmarks [-k TEXT] [--threads N] [--cpu LEVEL] [--write] [--json]
                               [--plot FILE.svg] [--quick] [--check] [--cpu-time]

Each case does the same work on both sides. Samples alternate between the two, so that whatever else
the machine does meets both alike; the table gives medians, the quartiles of the ratio over the
pairs of samples, and the share of what this machine can do. A row that is slower than the run kept
in docs/benchmarks for this kind of processor is named at the end.
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from tests.benchmarks.environment import LIMITS, prepare

_threads, _level = prepare(sys.argv[1:])  # before NumPy and PyTorch are imported

from tests.benchmarks import report, roofline  # noqa: E402  # after `prepare`
from tests.benchmarks.cases import CASES  # noqa: E402  # after `prepare`
from tests.benchmarks.measure import Clock, measure  # noqa: E402  # after `prepare`
from tests.benchmarks.picture import plot  # noqa: E402  # after `prepare`


def conditions(ours: Any, theirs: Any) -> dict[str, Any]:
    """The machine and the versions; thread counts as the libraries themselves report them."""
    import numpy as np

    return {
        "toytorch": ours.__version__,
        "pytorch": theirs.__version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
        "machine": f"{platform.system()} {platform.machine()}",
        "vectors": kind(),
        "pytorch_vectors": theirs.backends.cpu.get_cpu_capability(),
        "pytorch_threads": theirs.get_num_threads(),
        "numpy_threads": _threads,
    }


def kind() -> str:
    """The kind of processor that both sides compile for."""
    from toytorch.loops import processor

    level = processor.chosen()
    found = processor.levels()
    return level if level != "native" else found[-1] if found else platform.machine()


def main(arguments: list[str] | None = None) -> int:
    p = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__,
                                formatter_class=argparse.RawDescriptionHelpFormatter)  # fmt: skip
    p.add_argument("--threads", type=int, default=1, help="threads of each side (1)")
    p.add_argument(
        "--cpu",
        choices=LIMITS,
        default=_level,
        help="the vector instructions that both sides may use (native)",
    )
    p.add_argument(
        "-k",
        default="",
        metavar="TEXT",
        help="only cases whose names hold this text, or one of several with commas between",
    )
    p.add_argument(
        "--json", action="store_true", help="print the results as JSON instead of a table"
    )
    p.add_argument(
        "--write",
        action="store_true",
        help="keep the results in docs/benchmarks, and make the page and the plot of them",
    )
    p.add_argument("--plot", type=Path, metavar="FILE.svg", help="draw the plot of the README")
    p.add_argument(
        "--quick", action="store_true", help="a tenth of the samples: a smoke test, no measurement"
    )
    p.add_argument(
        "--check",
        action="store_true",
        help="exit with 1 if a ratio misses its target or has become worse",
    )
    p.add_argument("--cpu-time", action="store_true", help="the process's time, not the wall's")
    options = p.parse_args(arguments)
    if options.write and options.quick:
        p.error("--quick is no measurement, so --write does not keep it")
    try:
        import torch as theirs
    except ImportError:
        print(
            "PyTorch is not installed; the benchmarks compare with it: pip install torch",
            file=sys.stderr,
        )
        return 2
    import toytorch as ours

    theirs.set_num_threads(_threads)
    chosen = [c for c in CASES if any(part in c.name for part in options.k.split(","))]
    if not chosen:
        p.error(f"no case holds {options.k!r}; there are: {', '.join(c.name for c in CASES)}")
    about, machine = conditions(ours, theirs), roofline.measured()
    if not options.json:
        print(", ".join(f"{k.replace('_', ' ')} {v}" for k, v in about.items()))
        print(report.HEAD)
    results, clock = [], Clock(options.cpu_time)
    for case in chosen:
        results.append(measure(case, ours, theirs, options.quick, clock))
        if not options.json:
            print(report.row(results[-1], machine), flush=True)
    before = report.kept(kind()).get(str(about["pytorch_threads"]), {})
    run = {"about": about, "roofline": asdict(machine), "results": results}
    if options.json:
        print(json.dumps({"conditions": about, **run}, indent=1))
    else:
        print(report.summary(results))
    if options.plot:
        plot(results, about, options.plot)
    slower = [] if options.quick else report.worse(results, before)
    if slower:
        print("worse than the run kept in docs/benchmarks:", "; ".join(slower), file=sys.stderr)
    if options.write:
        report.keep(kind(), run)
        rows = report.kept(kind())[str(about["pytorch_threads"])]["results"]
        name = kind() if _threads == 1 else f"{kind()}-{_threads}-threads"
        plot(rows, about, report.FOLDER / f"{name}.svg")
    missed = [r["name"] for r in results if r["target"] and r["ratio"] > r["target"]]
    if options.check and missed:
        print("missed:", "; ".join(missed), file=sys.stderr)
    return int(options.check and bool(missed or slower))


if __name__ == "__main__":
    sys.exit(main())
