"""Softmax and layer norm in one launch on a GPU, with their gradients, against PyTorch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cuda import raw_module
from tests.oracle import GPU, ORACLE, SELFTEST, torch, tt

pytestmark = [
    pytest.mark.usefixtures("compiling_device"),
    pytest.mark.skipif(SELFTEST, reason="PyTorch has its own CUDA"),
]
SHAPES = [(3, 5), (1, 1), (2, 700), (300, 16), (2, 3, 40)]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "softmax": lambda m, x, w, b: m.softmax(x, -1),
    "log_softmax": lambda m, x, w, b: m.log_softmax(x, -1),
    "layer_norm": lambda m, x, w, b: m.nn.functional.layer_norm(x, x.shape[-1:], w, b),
    "layer_norm without weights": lambda m, x, w, b: m.nn.functional.layer_norm(x, x.shape[-1:]),
    "layer_norm over all": lambda m, x, w, b: m.nn.functional.layer_norm(x * w + b, x.shape),
}


def outcome(m: Any, device: str, f: Callable[..., Any], given: list[np.ndarray]) -> list[Any]:
    leaves = [m.from_numpy(a).to(device).requires_grad_() for a in given]
    y = f(m, *leaves)
    y.backward(m.cos(m.arange(float(y.numel()), dtype=y.dtype)).reshape(y.shape).to(device))
    return [y.detach(), *(p.grad for p in leaves if p.grad is not None)]


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients(name: str, shape: tuple[int, ...], kind: str) -> None:
    rng = np.random.default_rng(0)
    given = [rng.standard_normal(s).astype(kind) for s in (shape, shape[-1:], shape[-1:])]
    before = len(raw_module.launched)
    got = outcome(tt, "cuda", FUNCTIONS[name], given)
    want = outcome(ORACLE.root, "cpu", FUNCTIONS[name], given)
    assert GPU or len(raw_module.launched) >= before + 2
    assert len(got) == len(want)
    near = 2e-5 if kind == "float32" else 1e-11
    for a, b in zip(got, want):
        assert a.device.type == "cuda"
        assert np.allclose(a.cpu().numpy(), b.numpy(), near, near)


def test_what_is_not_in_rows() -> None:
    """Other dimensions, types and strides, and nothing at all."""
    x = torch.randn(4, 6, dtype=torch.float64)
    mine = tt.from_numpy(x.numpy()).cuda()
    for dim in (0, 1):
        for mine_, theirs in ((mine, x), (mine.t(), x.t()), (mine[:, ::2], x[:, ::2])):
            got = tt.softmax(mine_, dim).cpu().numpy()
            assert np.allclose(got, torch.softmax(theirs, dim).numpy(), 1e-12)
    assert tt.softmax(tt.ones(0, 3, device="cuda"), 1).shape == (0, 3)
    assert tt.softmax(tt.tensor([[1.0, float("nan")]], device="cuda"), 1).isnan().all()
    half = tt.ones(2, 4, device="cuda", dtype=tt.float16)
    assert tt.softmax(half, 1).dtype is tt.float16


def test_sizes_at_which_the_cpu_does_otherwise() -> None:
    """A linear layer of 16 rows and more, a masked choice, a sum in place, a copy, two streams of
    draws that are one."""
    rng = np.random.default_rng(1)
    x, w, b = (rng.standard_normal(s) for s in ((16, 8), (32, 8), 32))
    got = tt.nn.functional.linear(*(tt.from_numpy(a).cuda() for a in (x, w, b)))
    assert np.allclose(got.cpu().numpy(), x @ w.T + b)
    mine = tt.from_numpy(x).cuda()
    assert np.array_equal(tt.where(mine > 0, mine, -mine).cpu().numpy(), np.abs(x))
    doubled = mine.clone()
    assert doubled.data_ptr() != mine.data_ptr() and doubled.add_(mine) is doubled
    assert np.array_equal(doubled.cpu().numpy(), 2 * x)
    tt.cuda.manual_seed(3)
    first = tt.rand(8, device="cuda")
    again = tt.empty(8, device="cuda").uniform_()
    assert not np.array_equal(first.cpu().numpy(), again.cpu().numpy())
