"""Convolutions in groups of few channels, and their gradients, against PyTorch."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.oracle import SELFTEST, torch

if SELFTEST:
    pytest.skip("looks into toytorch's own kernels", allow_module_level=True)

import toytorch
from toytorch.kernels import few_channels
from toytorch.loops.runtime import jit

RNG = np.random.default_rng(0)
pytestmark = pytest.mark.skipif(not jit.works(), reason="there is no compiler")


def pair(least: int, most: int) -> Any:
    return st.tuples(st.integers(least, most), st.integers(least, most))


@st.composite
def cases(draw: Any) -> tuple[Any, ...]:
    """(type, x's shape, groups, inputs and outputs of each, taps, stride, padding, dilation)."""
    size, columns = draw(st.integers(1, 18)), draw(st.integers(1, 40))
    groups, inputs, each = (draw(st.integers(1, 3)) for _ in range(3))
    shape = draw(st.integers(1, 3)), groups * inputs, size, columns
    how = draw(pair(1, 5)), draw(pair(1, 3)), draw(pair(0, 4)), draw(pair(1, 3))
    return draw(st.sampled_from("fd")), shape, groups, inputs, each, *how


@settings(max_examples=150)
@given(cases())
def test_values_and_gradients(case: tuple[Any, ...]) -> None:
    kind, shape, groups, inputs, each, taps, *how = case
    shapes = shape, (groups * each, inputs, *taps), (groups * each,)
    x, w, b = (RNG.standard_normal(s).astype(kind) for s in shapes)
    wide = [torch.from_numpy(a).double().requires_grad_() for a in (x, w, b)]
    try:
        y = torch.nn.functional.conv2d(*wide, *how, groups)
    except RuntimeError:
        return  # no window fits
    g = RNG.standard_normal(tuple(y.shape)).astype(kind)
    wanted = y, *torch.autograd.grad(y, wide[:2], torch.from_numpy(g).double())
    found = (
        few_channels.forward(x, w, *how, groups, b),
        few_channels.input_gradient(g, w, shape[2:], *how, groups),
        few_channels.weight_gradient(x, g, taps, *how, groups),
    )
    near = {"rtol": 1e-4, "atol": 1e-4} if kind == "f" else {"rtol": 1e-11, "atol": 1e-11}
    for ours, theirs in zip(found, wanted):
        np.testing.assert_allclose(ours, theirs.detach(), **near)


@pytest.mark.parametrize("where", [(0, 4), (1, 5), (3, 7), (7, 0)])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_what_is_not_finite_counts_where_it_is_seen(value: float, where: tuple[int, int]) -> None:
    """Also where the last blocks of lines and columns overlap others."""
    x, w = np.ones((1, 2, 9, 9), np.float32), np.ones((2, 1, 3, 2), np.float32)
    x[0, 1][where] = value
    results = []
    for m in (toytorch, torch):
        a, b = m.tensor(x, requires_grad=True), m.tensor(w, requires_grad=True)
        y = m.nn.functional.conv2d(a, b, None, 1, 0, 1, 2)
        y.backward(m.ones(1, 2, 7, 8))
        results.append([y.detach().numpy(), a.grad.numpy(), b.grad.numpy()])
    for ours, theirs in zip(*results):
        np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("last", [False, True])
@pytest.mark.parametrize("n", [1, 2])
def test_modules(n: int, last: bool) -> None:
    """Lines and images, in both orders of memory, as PyTorch lays them out."""
    shape = (2, 6, 17) if n == 1 else (2, 6, 9, 11)
    results = []
    for m in (toytorch, torch):
        m.manual_seed(0)
        layer = getattr(m.nn, f"Conv{n}d")(6, 12, 3, stride=2, padding=1, groups=6)
        x = m.randn(*shape)
        if last and n == 2:
            x = x.contiguous(memory_format=m.channels_last)
        y = layer(x.requires_grad_())
        y.square().sum().backward()
        results.append([y.detach(), x.grad, layer.weight.grad, layer.bias.grad])
    for ours, theirs in zip(*results):
        assert ours.stride() == theirs.stride()
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-4, atol=1e-4)
