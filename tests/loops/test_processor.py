"""The switch TOYTORCH_CPU, and what kernels are told of the processor."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from toytorch.loops import processor

if not processor.host()[0]:
    pytest.skip("llvmlite knows the processor", allow_module_level=True)

PROGRAM = """
import numpy, toytorch as torch
from toytorch.loops import processor
x = torch.from_numpy(numpy.linspace(-3, 3, 5000, dtype="float32"))
print(processor.this().vector, round(torch.tanh(x * x - 1).relu().sum().item(), 1))
"""


# Most of these terms are the square of the mean: roundings of their sum are all to one side.
VARIANCE = """
import numpy, toytorch as torch
x = (10.0 ** numpy.random.default_rng(0).uniform(-6, 6, 10**6)).astype("float32")
print(torch.from_numpy(x).var().item() / numpy.var(x.astype("float64"), ddof=1) - 1)
"""


def run(level: str, program: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "TOYTORCH_CPU": level}
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True,
                          env=environment, check=False)  # fmt: skip


@pytest.mark.parametrize("level", ["", "native", *processor.LEVELS])
def test_every_level_runs_or_says_what_this_processor_has(level: str) -> None:
    done = run(level)
    if level in processor.LEVELS and level not in processor.levels():
        assert f"TOYTORCH_CPU={level}: this processor" in done.stderr
        assert done.returncode
        return
    assert not done.returncode, done.stderr
    vector, total = done.stdout.split()
    x = np.linspace(-3, 3, 5000, dtype="float32").astype("float64")
    assert float(total) == pytest.approx(np.maximum(np.tanh(x * x - 1), 0).sum(), rel=1e-4)
    if level in processor.LEVELS:
        assert int(vector) == {"sse4": 16, "avx2": 32, "avx512": 64}[level]


@pytest.mark.parametrize("level", processor.levels())
def test_a_variance_is_as_exact_with_narrow_vectors(level: str) -> None:
    assert abs(float(run(level, VARIANCE).stdout)) < np.finfo("float32").eps


def test_another_word_is_refused() -> None:
    done = run("avx3")
    assert "TOYTORCH_CPU=avx3: expected one of sse4, avx2, avx512, neon, native" in done.stderr


def test_levels_rise() -> None:
    able = [processor.at(level) for level in processor.levels()]
    assert [p.vector for p in able] == sorted({p.vector for p in able})
    assert all(p.lanes("f") == 2 * p.lanes("d") for p in able)
