"""Real libraries on toytorch: each program runs with PyTorch and with toytorch, and says the same.

    python -m tests.outside.installed [-k TEXT] [--target FOLDER]

The libraries of `requirements.txt` are installed into a folder of their own, without what they
depend on, so that none brings a PyTorch; that needs the package index. What a program prints is
compared line by line, numbers to three digits in a thousand. The table has the times of both, with
the imports. Of torchvision, which timm needs too, the part in Python runs; operators that it has
compiled for PyTorch (`nms`, `roi_align`) are names (`libraries/torchvision_operators.py`).
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[-+]?\d+)?")
TOLERANCE, LEAST = 3e-3, 1e-5
SECONDS = 600


def installed(target: Path) -> Path:
    """The folder of the libraries, filled at the first call and when the list has changed."""
    listed = HERE / "requirements.txt"
    mark = target / "requirements.txt"
    if not mark.exists() or mark.read_bytes() != listed.read_bytes():
        install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade"]
        subprocess.run([*install, "--target", str(target), "-r", str(listed)], check=True)
        mark.write_bytes(listed.read_bytes())
    return target


def run(program: Path, ours: bool, libraries: Path) -> tuple[str, float]:
    """(what a program printed, or the end of its traceback; seconds)."""
    paths = [str(ROOT), str(libraries)] if ours else [str(libraries)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-W", "ignore", *(["-m", "toytorch"] if ours else []), str(program)]
    begin = time.perf_counter()
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
    if done.returncode:
        name = "toytorch" if ours else "PyTorch"  # a line that the other has not: both may fail
        end = [f"{name} fails:", *done.stderr.strip().splitlines()[-4:]]
        return "\n".join(end), time.perf_counter() - begin
    return done.stdout, time.perf_counter() - begin


def differences(theirs: str, ours: str) -> list[str]:
    """Lines that are not the same; numbers may differ by rounding."""
    want, got = theirs.splitlines(), ours.splitlines()
    if len(want) != len(got):
        return list(difflib.unified_diff(want, got, "PyTorch", "toytorch", lineterm="", n=1))
    return [f"{b!r}, PyTorch: {a!r}" for a, b in zip(want, got, strict=True) if not same(a, b)]


def same(want: str, got: str) -> bool:
    """Whether two lines say the same, up to the last digits of their numbers."""
    if NUMBER.sub("#", want) != NUMBER.sub("#", got):
        return False
    pairs = zip(NUMBER.findall(want), NUMBER.findall(got), strict=True)
    return all(abs(float(a) - float(b)) <= LEAST + TOLERANCE * abs(float(a)) for a, b in pairs)


def main(arguments: list[str] | None = None) -> int:
    """Runs the programs; 1 if one differs."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else None)
    parser.add_argument("-k", default="", help="only programs whose name has this")
    parser.add_argument("--target", type=Path, default=Path.home() / ".cache/toytorch/outside")
    options = parser.parse_args(arguments)
    libraries = installed(options.target)
    failed = 0
    print(f"{'program':24} {'':6} {'toytorch':>9} {'PyTorch':>9}  ratio")
    for program in sorted((HERE / "libraries").glob("use_*.py")):
        name = program.stem.removeprefix("use_")
        if options.k not in name:
            continue
        (theirs, slow), (ours, quick) = (
            run(program, False, libraries),
            run(program, True, libraries),
        )
        found = differences(theirs, ours)
        failed += bool(found)
        print(
            f"{name:24} {'DIFFERS' if found else 'agrees':7} {quick:8.1f}s {slow:8.1f}s  {quick / slow:.2f}",
            flush=True,
        )
        for line in found[:12]:
            print("    ", line[:300])
    print(f"{failed} of the programs differ" if failed else "all programs agree")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
