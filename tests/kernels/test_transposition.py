"""Transposition by blocks of registers: every size of edges, both directions, padded rows."""

from __future__ import annotations

import numpy as np
import pytest

from toytorch.kernels import copy
from toytorch.kernels.memory_format import Transposition
from toytorch.loops.llvm.builder import BLOCK
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall

pytestmark = pytest.mark.skipif(not jit.works(), reason="nothing is compiled here")
SIZES = [(8, 8), (8, 40), (9, 16), (16, 16), (17, 33), (31, 24), (64, 130), (100, 8)]
CASES = [
    (rows, columns, kind, block)
    for rows, columns in SIZES
    for kind, block in (("f", BLOCK), ("f", 2 * BLOCK), ("d", BLOCK))
    if min(rows, columns) >= block
]


@pytest.mark.parametrize(("rows", "columns", "kind", "block"), CASES)
@pytest.mark.parametrize("by_rows", [False, True])
def test_blocks_of_both_directions(
    rows: int, columns: int, kind: str, block: int, by_rows: bool
) -> None:
    x = np.arange(2.0 * rows * (columns + 3)).astype(kind).reshape(2, rows, columns + 3)
    made, item = np.full((2, columns, rows + 5), -1, kind), x.itemsize
    words = (0, 0, 2, made.strides[0], x.strides[0], 1, 0, 0, rows, columns)
    turns = 2 * -(-(rows if by_rows else columns) // block)
    call = ArrayCall(
        Transposition.kernel(kind, by_rows, block),
        (*words, made.strides[1], x.strides[1]),
        (0, 1),
        turns,
        x.size * item,
    )
    call(made, x)
    np.testing.assert_array_equal(made[:, :, :rows], x[:, :, :columns].transpose(0, 2, 1))
    assert (made[:, :, rows:] == -1).all()


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(512, 512), (512, 520), (520, 512), (1024, 40), (24, 2048)])
def test_lines_a_power_of_two_apart(kind: str, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(0).standard_normal(shape).astype(kind)
    np.testing.assert_array_equal(copy.copied(x.T), x.T)
