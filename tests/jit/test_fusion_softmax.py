"""Softmax and its logarithm in fused kernels, with what is around them, forward and backward."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import toytorch as torch
import toytorch.nn.functional as F
from toytorch import jit
from toytorch.loops.runtime import jit as machine

pytestmark = pytest.mark.skipif(not machine.works(), reason="kernels need llvmlite")


def normal(*shape: int, dtype: Any = torch.float32) -> Any:
    return torch.from_numpy(np.random.default_rng(2).standard_normal(shape)).to(dtype)


def groups(f: Any, *inputs: Any) -> list[Any]:
    graph = jit.trace(f, inputs, check_trace=False).graph_for(*inputs)
    return [n for n in graph.nodes if n.kind == "prim::FusionGroup"]


def attention(q: Any, k: Any, mask: Any) -> Any:
    return torch.softmax(torch.where(mask, q / 8 + k, float("-inf")), -1)


def check(f: Any, *inputs: Any, rtol: float = 1e-5) -> None:
    """Values and gradients, traced and eager."""
    results = []
    for run in (f, jit.trace(f, inputs, check_trace=False)):
        given = [
            x.detach().clone().requires_grad_() if x.is_floating_point() else x for x in inputs
        ]
        y = run(*given)
        if y.numel():
            y.backward(torch.cos(torch.arange(float(y.numel()))).reshape(y.shape).to(y.dtype))
        results.append([y.detach(), *(x.grad for x in given if x.requires_grad)])
    for a, b in zip(*results):
        torch.testing.assert_close(a, b, rtol=rtol, atol=1e-6, equal_nan=True)


def test_scores_masks_and_softmax_are_one_group() -> None:
    q, k = normal(4, 6, 32), normal(6, 32)
    mask = torch.ones(6, 32).tril(3) > 0
    assert len(groups(attention, q, k, mask)) == 1
    check(attention, q, k, mask)


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
@pytest.mark.parametrize("dim", [0, 1, 2, -1])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_every_dimension(name: str, dim: int, dtype: Any) -> None:
    def f(x: Any) -> Any:
        return getattr(F, name)(x * 2, dim) * 3

    x = normal(5, 7, 33, dtype=dtype)
    check(f, x, rtol=1e-5 if dtype != torch.bfloat16 else 3e-2)
    if dtype != torch.bfloat16:
        assert len(groups(f, x)) == 1


@pytest.mark.parametrize("name", ["softmax", "log_softmax"])
def test_edges(name: str) -> None:
    """NaN, infinities, rows of -inf; one element, and none; transposed and broadcast inputs."""

    def f(x: Any, y: Any) -> Any:
        return getattr(F, name)(x + y, 1)

    x = normal(6, 40)
    x[1, 3], x[2, 4], x[3, 5] = float("nan"), float("inf"), float("-inf")
    x[4] = float("-inf")
    y = normal(40)
    given = jit.trace(f, (x, y), check_trace=False)(x, y)
    torch.testing.assert_close(given, f(x, y), equal_nan=True)
    for a, b in [
        (normal(40, 6).t(), y),
        (normal(6, 1), y),
        (normal(6, 1), normal(1)),
        (normal(0, 40), y),
        (normal(3, 0), normal(0)),
        (normal(6, 80)[:, ::2], y),
    ]:
        check(f, a, b)


def test_a_small_classifier_trains_compiled() -> None:
    def f(x: Any, w: Any, t: Any) -> Any:
        return F.cross_entropy(x @ w, t)

    x, w, t = normal(16, 5), normal(5, 10), torch.arange(16) % 10
    check(f, x, w, t)
    assert groups(f, x, w, t)
