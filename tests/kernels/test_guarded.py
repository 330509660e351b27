"""Compiled kernels touch nothing but their arrays: suites run again in guarded memory.

Each run is a process of its own (see `guard`), at one of the levels that this processor can run,
with arrays that end or begin at a forbidden page. The suites hold odd sizes, strides and offsets in
both types; `tests/ops` runs here with arrays of any size compiled for.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import toytorch
from tests.oracle import SELFTEST
from toytorch.loops import processor
from toytorch.loops.runtime import jit

if SELFTEST or not jit.works():
    pytest.skip("looks at toytorch's own kernels, which need llvmlite", allow_module_level=True)
if not sys.platform.startswith("linux"):
    pytest.skip("the guarded memory is made by Linux's mmap", allow_module_level=True)

ROOT = Path(__file__).parents[2]
KERNELS = [f"tests/kernels/test_{name}.py" for name in (
    "conv", "few_channels", "chain", "radix", "pool", "matmul", "tiled_product", "blas_product", "reduce",
    "dispatch_stub", "threads", "memory_ops", "copy", "few", "windows", "fourier_rows",
    "batched_product")] + [
    "tests/ops/test_by_kernels.py", "tests/ops/test_special_values.py",
    "tests/nn/test_recurrent_memory.py",
    "tests/loops/test_elementwise.py", "tests/loops/test_pieces.py", "tests/loops/test_loops.py",
    "tests/loops/test_vectors.py",
    "tests/ops/test_one_pass.py"]  # fmt: skip
OPS = ["tests/ops/test_gradients.py::test_first"]
DRAWS = ["tests/core/test_generators.py"]
# These start processes of their own, whose memory is not guarded.
PROCESSES = ["tests/kernels/test_threads.py::test_processes_that_end_at_once_end_well"]
# Level, side, whether kernels are written for 512 bits all the same, the suites.
RUNS = [("native", "end", False, KERNELS), ("native", "start", False, KERNELS[:-3]),
        ("native", "end", False, OPS),
        ("native", "end", False, DRAWS), ("native", "start", False, DRAWS)] + [
    (level, "start", False, KERNELS) for level in processor.levels()[:-1]] + [
    ("native", "end", True, KERNELS)] * (processor.this().vector < 64)  # fmt: skip


def run(tmp: Path, level: str, side: str, wide: bool, suites: list[str]) -> set[str]:
    """The families of kernels that were linked."""
    seen = tmp / "seen"
    environment = {**os.environ, "TOYTORCH_CPU": level, "GUARD": side, "GUARD_SEEN": str(seen),
                   **({"GUARD_WIDE": "1"} if wide else {}),
                   **({"GUARD_SMALL": "1"} if suites is OPS else {})}  # fmt: skip
    environment.pop("PYTEST_XDIST_WORKER", None)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "tests.kernels.guard", "-p", "no:xdist",
         *suites, *(f"--deselect={name}" for name in PROCESSES)],
        cwd=ROOT, env=environment, capture_output=True, text=True, check=False)  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    assert " passed" in done.stdout or "[100%]" in done.stdout
    return set(seen.read_text().split())


FOUND: set[str] = set()


@pytest.mark.slow
@pytest.mark.parametrize("case", RUNS, ids=lambda r: f"{r[0]}-{r[1]}{'-wide' * r[2]}-{len(r[3])}")
def test_kernels_touch_nothing_but_their_arrays(tmp_path: Path, case: tuple) -> None:
    FOUND.update(run(tmp_path, *case))


def families() -> list[str]:
    """The first words of what kernels say they are, once for each file that has one."""
    found: list[str] = []
    for file in (Path(toytorch.__file__).parent / "kernels").rglob("*.py"):
        said = re.findall(
            r'(?:Call\(|addresses\(|what =|family=)\s*f?"(\w+)', file.read_text("utf-8")
        )
        found += set(said)
    return found


def test_no_two_kernels_have_one_name() -> None:
    """By it the code of a kernel is found."""
    assert len(families()) == len(set(families()))


@pytest.mark.slow
def test_every_kernel_was_among_them() -> None:
    """A new kernel has to be run by one of the suites above."""
    known = set(families())
    assert {"pool", "rows", "pick", "symmetric", "tile", "transpose"} <= known
    if not FOUND:
        pytest.skip("the runs were not asked for, or are those of another process")
    assert known <= FOUND


BAD = """
import ctypes, sys
from tests.kernels import guard
guard.start()
import numpy as np
x = np.ones(100)
at = x.ctypes.data + int(sys.argv[1])
if sys.argv[2] == "read":
    ctypes.c_double.from_address(at).value
else:
    ctypes.c_double.from_address(at).value = 2.0
del x
"""


@pytest.mark.parametrize(("side", "offset", "how", "seen"), [
    ("end", 800, "read", "Segmentation fault"), ("end", 800, "write", "Segmentation fault"),
    ("end", -8, "write", "Aborted"), ("start", -8, "read", "Segmentation fault"),
    ("start", 800, "write", "Aborted"), ("end", 792, "write", ""), ("start", 0, "write", ""),
])  # fmt: skip
def test_the_guard_sees(side: str, offset: int, how: str, seen: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", BAD, str(offset), how],
        cwd=ROOT,
        text=True,
        env={**os.environ, "GUARD": side},
        capture_output=True,
        check=False,
    )
    assert seen in done.stderr
    assert bool(done.returncode) == bool(seen)
