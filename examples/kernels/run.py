"""Launches every example on small data, checks it against NumPy, and prints its report.

python examples/kernels/run.py              all of them
python examples/kernels/run.py transpose    those whose name begins so
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import toytorch

FOLDER = Path(__file__).parent
rng = np.random.default_rng(0)


def normal(*shape: int) -> Any:
    """Numbers of the normal distribution."""
    return rng.standard_normal(shape).astype(np.float32)


def load(file: str, name: str | None = None) -> Any:
    """The kernel of an example."""
    path = FOLDER / f"{file}.cu"
    return toytorch.cuda.kernel(path.read_text(encoding="utf-8"), name, file=path.name)


def add() -> tuple[Any, Any, Any]:
    """out = x + y."""
    x, y, out = normal(1000), normal(1000), np.empty(1000, np.float32)
    return load("add")[4, 256](x, y, out, 1000), out, x + y


def reduction(file: str) -> Callable[[], tuple[Any, Any, Any]]:
    """The sum of each block of 256."""

    def launched() -> tuple[Any, Any, Any]:
        x, out = normal(1000), np.empty(4, np.float32)
        shared = 0 if file == "reduce_shuffle" else 256 * 4
        done = load(file)[4, 256, shared](x, out, 1000)
        return done, out, np.pad(x, (0, 24)).reshape(4, 256).sum(1)

    return launched


def transposition(file: str) -> Callable[[], tuple[Any, Any, Any]]:
    """A matrix of 96 rows and 64 columns."""

    def launched() -> tuple[Any, Any, Any]:
        x, out = normal(96, 64), np.empty((64, 96), np.float32)
        return load(file)[(2, 3), (32, 32)](x, out, 96, 64), out, x.T

    return launched


def product(file: str) -> Callable[[], tuple[Any, Any, Any]]:
    """(48, 40) · (40, 64)."""

    def launched() -> tuple[Any, Any, Any]:
        a, b, c = normal(48, 40), normal(40, 64), np.empty((48, 64), np.float32)
        return load(file)[(4, 3), (16, 16)](a, b, c, 48, 64, 40), c, a @ b

    return launched


def softmax(file: str) -> Callable[[], tuple[Any, Any, Any]]:
    """10 rows of 100."""

    def launched() -> tuple[Any, Any, Any]:
        x, out = normal(10, 100), np.empty((10, 100), np.float32)
        e = np.exp(x - x.max(1, keepdims=True))
        return load(file)[10, 32](x, out, 100), out, e / e.sum(1, keepdims=True)

    return launched


def flash_attention() -> tuple[Any, Any, Any]:
    """70 queries and keys of 32 numbers."""
    q, k, v, out = normal(70, 32), normal(70, 32), normal(70, 32), np.empty((70, 32), np.float32)
    done = load("flash_attention")[3, 32](q, k, v, out, 70, 32**-0.5)
    e = np.exp(q @ k.T * 32**-0.5)
    return done, out, e / e.sum(1, keepdims=True) @ v


def histogram() -> tuple[Any, Any, Any]:
    """5000 numbers below 64."""
    x = rng.integers(0, 64, 5000).astype(np.int32)
    counts = np.zeros(64, np.int32)
    return load("histogram")[4, 128](x, counts, 5000), counts, np.bincount(x, minlength=64)


def scan() -> tuple[Any, Any, Any]:
    """Prefix sums of 500 numbers, in blocks of 128."""
    x, out, sums = normal(500), np.empty(500, np.float32), np.empty(4, np.float32)
    done = load("scan", "scan_blocks")[4, 128](x, out, sums, 500)
    before = np.concatenate([[0], np.cumsum(sums)[:-1]]).astype(np.float32)
    load("scan", "add_sums")[4, 128](out, before, 500)
    return done, out, np.cumsum(x)


def copy_float4() -> tuple[Any, Any, Any]:
    """1000 numbers, four a thread."""
    x, out = normal(1000), np.empty(1000, np.float32)
    return load("copy_float4")[1, 256](x, out, 1000), out, x


# Each launches a kernel and gives its report, its result, and what NumPy says.
EXAMPLES: dict[str, Callable[[], tuple[Any, Any, Any]]] = {
    "add": add,
    **{f"reduce_{how}": reduction(f"reduce_{how}") for how in ("interleaved", "sequential", "shuffle")},
    **{f"transpose_{how}": transposition(f"transpose_{how}") for how in ("naive", "tiled", "padded")},
    **{f"matmul_{how}": product(f"matmul_{how}") for how in ("naive", "tiled")},
    **{f"softmax_{how}": softmax(f"softmax_{how}") for how in ("three_passes", "online")},
    "flash_attention": flash_attention,
    "histogram": histogram,
    "scan": scan,
    "copy_float4": copy_float4,
}  # fmt: skip


def main(prefix: str = "") -> None:
    """Runs the examples whose name begins with a prefix."""
    for name, launched in EXAMPLES.items():
        if name.startswith(prefix):
            report, result, wanted = launched()
            np.testing.assert_allclose(result, wanted, rtol=1e-4, atol=1e-5)
            print(f"{report}\n{name}: agrees with NumPy\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
