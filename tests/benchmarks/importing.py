"""CPU seconds of `import toytorch`, of NumPy's and of PyTorch's, each in fresh processes.

    python -m tests.benchmarks.importing [--runs N]

The three take turns, and a first turn, which is not counted, writes byte code into a folder of its
own. What is printed is the median of user and system time, which includes that of an empty program, and
the ten modules of toytorch that took longest by themselves (`python -X importtime`).
"""

from __future__ import annotations

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile

PROGRAMS = {
    "nothing": "pass",
    "numpy": "import numpy",
    "toytorch": "import toytorch",
    "torch": "import torch",
}
LINE = re.compile(r"import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)")


def environment(byte_code: str) -> dict[str, str]:
    """This process's, with byte code read from and written to a folder."""
    kept = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": byte_code}


def seconds(program: str, byte_code: str) -> float:
    """User and system time of a fresh process that runs a program."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-c", program], env=environment(byte_code), check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def slowest(byte_code: str, count: int = 10) -> list[tuple[str, float]]:
    """The modules of toytorch that take longest without those they import, in milliseconds."""
    told = subprocess.run(
        [sys.executable, "-X", "importtime", "-c", "import toytorch"],
        env=environment(byte_code), capture_output=True, text=True, check=True,
    ).stderr  # fmt: skip
    own = [(name, int(spent) / 1000) for spent, name in LINE.findall(told)]
    return sorted((m for m in own if m[0].startswith("toytorch")), key=lambda m: -m[1])[:count]


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--runs", type=int, default=11, metavar="N")
    runs = parser.parse_args(arguments).runs
    with tempfile.TemporaryDirectory() as byte_code:
        taken: dict[str, list[float]] = {name: [] for name in PROGRAMS}
        for turn in range(runs + 1):
            for name, program in PROGRAMS.items():
                spent = seconds(program, byte_code)
                if turn:
                    taken[name].append(spent)
        empty = statistics.median(taken.pop("nothing"))
        print(f"CPU seconds, medians of {runs} runs (an empty program: {empty:.3f})")
        for name, values in taken.items():
            print(f"{'import ' + name:16}{statistics.median(values):8.3f}")
        print("\nthe slowest modules, without those they import, in milliseconds")
        for name, spent in slowest(byte_code):
            print(f"{name:40}{spent:8.1f}")


if __name__ == "__main__":
    main()
