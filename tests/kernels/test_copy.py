"""Copies between arrays of any strides, on one thread and on two."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch.core.memory_order import assign
from toytorch.kernels import copy
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(
    not jit.works(), reason="without llvmlite the kernel leaves all to NumPy"
)


def part(rng: np.random.Generator, wide: Any) -> Any:
    """A part of an array whose sizes are twice as large: backwards, with gaps, or from the middle."""
    cuts = []
    for size in wide.shape:
        n = size // 2
        cuts.append([slice(n), slice(None, None, 2), slice(n - 1, None, -1), slice(1, n + 1)])
    made = wide[tuple(c[rng.integers(4)] for c in cuts)]
    made = made.transpose(rng.permutation(made.ndim))
    return np.broadcast_to(made[..., :1], made.shape) if rng.random() < 0.2 else made


@pytest.mark.parametrize("kind", ["?", "b", "h", "f", "q", "D"])
def test_any_strides(threads: int, kind: str) -> None:
    rng = np.random.default_rng(ord(kind))
    planned = 0
    for _ in range(150):
        shape = rng.choice([1, 2, 3, 8, 9, 17, 40, 150], rng.integers(1, 5))
        if shape.prod() > 100_000:
            continue
        source = part(rng, (rng.random(2 * shape) * 100).astype(kind))
        order = rng.permutation(source.ndim)
        room = np.zeros([source.shape[d] for d in order] + [2], kind)
        to = room[..., rng.integers(2)].transpose(np.argsort(order))
        if rng.random() < 0.5:
            to = np.zeros(source.shape, kind)
        call = copy.plan(source.itemsize, source.shape, to.strides, source.strides)
        if call is None:
            continue
        planned += 1
        call(to, source)
        np.testing.assert_array_equal(to, source)
    assert planned > 60


def test_nothing_beside_the_target_is_written(threads: int) -> None:
    room = np.zeros((300, 3, 400), "float32")
    source = np.ones((300, 400), "float32")
    copy.assign(room[:, 1], source[::-1, ::-1])
    assert room[:, 1].all()
    assert not room[:, 0].any()
    assert not room[:, 2].any()


def test_a_copy_of_what_is_written_to(threads: int) -> None:
    x = np.arange(90_000.0)
    want = x[:-1].copy()
    assign(x[1:], x[:-1])
    np.testing.assert_array_equal(x[1:], want)


OPS = {
    "cat": lambda t, x: t.cat([x, x[:50], x]),
    "cat 1": lambda t, x: t.cat([x, x[:, :50]], 1),
    "stack": lambda t, x: t.stack([x, x, x]),
    "stack -1": lambda t, x: t.stack([x, x], -1),
    "flip 0": lambda t, x: x.flip(0),
    "flip 1": lambda t, x: x.flip(1),
    "flip both": lambda t, x: x.t().flip(0, 1),
    "roll": lambda t, x: x.roll(7, 1),
    "roll back": lambda t, x: x.roll(-307, 0),
    "roll nothing": lambda t, x: x.roll(600, 0),
    "repeat": lambda t, x: x.repeat(2, 1, 3),
    "repeat_interleave": lambda t, x: x.repeat_interleave(3, 1),
    "contiguous": lambda t, x: x.t().contiguous(),
    "clone": lambda t, x: x.t().clone(),
    "reshape": lambda t, x: x.t().reshape(-1),
    "copy_": lambda t, x: t.zeros(400, 300, dtype=x.dtype).copy_(x.t()),
    "channels_last": lambda t, x: x.reshape(4, 25, 30, 40).contiguous(
        memory_format=t.channels_last
    ),
    "part": lambda t, x: x[3:, 100:130].clone(),
    "parts side by side": lambda t, x: t.cat([x[:, :30], x[:, 50:57], x[:, :1]], 1).contiguous(),
    "joined parts": lambda t, x: t.cat([x[:, :7].contiguous(), x[:, 50:57].contiguous()], 1),
    "padded": lambda t, x: t.nn.functional.pad(x[:, :20], (1, 2, 3, 0)),
    "reshaped heads": lambda t, x: x.reshape(30, 40, 10, 10).transpose(1, 2).reshape(300, -1),
    "one column": lambda t, x: x[:, :1].expand(300, 400).contiguous(),
    "heads": lambda t, x: x.reshape(30, 40, 10, 10).transpose(1, 2).contiguous(),
}


@pytest.mark.parametrize("dtype", ["float32", "float64", "bool", "int16", "complex64"])
@pytest.mark.parametrize("name", OPS)
def test_ops(threads: int, name: str, dtype: str) -> None:
    x = (np.arange(120_000).reshape(300, 400) % 251).astype(dtype)
    got, want = OPS[name](tt, tt.tensor(x)), OPS[name](torch, torch.tensor(x))
    assert got.stride() == want.stride()
    np.testing.assert_array_equal(got.numpy(), want.numpy())
