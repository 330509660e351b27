"""Layer norm's gradients of more rows than a cache holds, made in blocks, beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import toytorch as tt
from toytorch.kernels import norm
from toytorch.loops import processor, set_thread_count
from toytorch.loops.runtime import jit
from toytorch.loops.runtime import threads as parallel

pytestmark = pytest.mark.skipif(
    not jit.works(), reason="kernels need llvmlite"
)  # NumPy has no blocks
WIDTH = 640


def rows_beyond_the_cache(item: int) -> int:
    """So many that x, its gradient and the result's fill the second-level cache twice, and some
    more, so that the last block is a shorter one."""
    return 2 * processor.this().l2 // (3 * WIDTH * item) + 37


def gradients(m: Any, x: Any, g: Any, affine: str) -> list[Any]:
    layer = m.nn.LayerNorm(WIDTH, bias=affine == "both", dtype=getattr(m, str(x.dtype)))
    layer.weight.requires_grad_(affine != "frozen")
    with m.no_grad():
        layer.weight.copy_(m.linspace(0.5, 1.5, WIDTH))
    given = m.from_numpy(x).requires_grad_()
    layer(given).backward(m.from_numpy(g))
    return [t.grad.numpy() for t in (given, *layer.parameters()) if t.grad is not None]


@pytest.mark.parametrize("affine", ["both", "weight", "frozen"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_gradients_of_many_rows(kind: str, affine: str, monkeypatch: pytest.MonkeyPatch) -> None:
    torch = pytest.importorskip("torch")
    calls = []
    monkeypatch.setattr(norm, "ENOUGH", 0)  # so that there are blocks of few rows
    monkeypatch.setattr(
        norm, "LAYER_WEIGHT", lambda *a, run=norm.LAYER_WEIGHT: calls.append(run(*a))
    )
    rng = np.random.default_rng(0)
    rows = rows_beyond_the_cache(np.dtype(kind).itemsize)
    x, g = (rng.standard_normal((rows, WIDTH)).astype(kind) for _ in range(2))
    made, wanted = (gradients(m, x, g, affine) for m in (tt, torch))
    assert len(made) == len(wanted)
    for one, other in zip(made, wanted):
        near = 1e-5 if kind == "float32" else 1e-12
        np.testing.assert_allclose(one, other, rtol=near, atol=near * np.abs(other).max())
    assert (len(calls) > 1) == (affine != "frozen")  # blocks


def test_threads_change_no_bit() -> None:
    rng = np.random.default_rng(1)
    x, g = (
        rng.standard_normal((rows_beyond_the_cache(4), WIDTH)).astype("float32") for _ in range(2)
    )
    found = []
    for threads in (1, 2, 4):
        set_thread_count(threads)
        found.append(gradients(tt, x, g, "both"))
    parallel._count = 0
    parallel.note_threads()
    for other in found[1:]:
        for a, b in zip(found[0], other):
            np.testing.assert_array_equal(a, b)
