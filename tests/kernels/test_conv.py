"""The compiled convolution and its gradients: against PyTorch, and against products of matrices."""

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
from toytorch.kernels import conv, conv_grid, conv_tile, conv_weight, memory_format
from toytorch.kernels.conv_grid import Grid, forward_grid, phases
from toytorch.loops.runtime import jit

RNG = np.random.default_rng(0)
compiled = pytest.mark.skipif(not jit.works(), reason="there is no compiler")
ORDERS = ("plain", "last")
# images, channels, sizes, outputs, kernel, stride, padding, dilation, groups
CASES = [
    (2, 16, (9, 9), 32, (3, 3), (1, 1), (1, 1), (1, 1), 1),  # every output at an end is a band
    (3, 3, (12, 17), 24, (5, 5), (2, 2), (2, 2), (1, 1), 1),  # between zeros; channels left over
    (2, 8, (14, 11), 16, (3, 2), (3, 2), (0, 1), (2, 3), 1),  # stride and dilation: some phases
    (2, 32, (8, 8), 64, (3, 3), (1, 1), (2, 2), (2, 2), 2),  # groups of whole vectors
    (1, 16, (7, 30), 10, (1, 4), (1, 3), (0, 3), (1, 1), 1),  # more padding than is seen
    (2, 16, (10, 10), 16, (2, 2), (3, 3), (0, 0), (1, 1), 1),  # inputs that nothing sees
    (1, 40, (1, 33), 48, (1, 1), (1, 1), (0, 0), (1, 1), 1),
    (19, 16, (6, 7), 32, (3, 3), (1, 1), (1, 1), (1, 1), 1),  # corners of many images together
    (21, 32, (5, 5), 64, (3, 3), (2, 2), (1, 1), (1, 1), 2),
    (9, 64, (60, 60), 32, (3, 3), (1, 1), (1, 1), (1, 1), 1),  # images a few at a time, the last 1
]


def values(*shape: int, dtype: Any) -> Any:
    return RNG.standard_normal(shape).astype(dtype)


def ordered(a: Any, order: str) -> Any:
    """Images in an order of memory."""
    return (
        a
        if order == "plain"
        else np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    )


def close(got: Any, want: Any) -> None:
    assert got.shape == want.shape
    tolerance = 2e-5 if got.dtype == np.float32 else 1e-12
    np.testing.assert_allclose(got, want, atol=tolerance * max(1, np.abs(want).max()))


@compiled
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("case", CASES, ids=str)
def test_beside_pytorch(case: Any, order: str, dtype: str) -> None:
    """The result and both gradients, in the order of memory of the images."""
    n, channels, sizes, outputs, kernel, *how, groups = case
    x, bias = values(n, channels, *sizes, dtype=dtype), values(outputs, dtype=dtype)
    w = values(outputs, channels // groups, *kernel, dtype=dtype)
    theirs = [torch.from_numpy(v).requires_grad_() for v in (x, w, bias)]
    y = torch.nn.functional.conv2d(*theirs, *how, groups)
    g = values(*y.shape, dtype=dtype)
    y.backward(torch.from_numpy(g))
    x, g = ordered(x, order), ordered(g, order)
    made = conv.forward(x, w, *how, groups, bias)
    close(made, y.detach().numpy())
    of_x = conv.input_gradient(g, w, sizes, *how, groups)
    if conv_grid.fits(g, w, channels, groups):
        close(of_x, theirs[0].grad.numpy())
        assert memory_format.channels_last(of_x) == (order == "last")
    else:
        assert of_x is None, "too few channels to fill vectors"
    of_w = conv_weight.weight_gradient(x, g, kernel, *how, groups)
    close(of_w, theirs[1].grad.numpy())
    assert memory_format.channels_last(made) == (order == "last")


@compiled
@pytest.mark.parametrize("more", [0, 1, 2])
def test_transposed_with_output_padding(more: int) -> None:
    """Output padding of a stride or more leaves room for outputs that the input does not have."""
    how = {"stride": 1, "padding": 1, "dilation": 3, "output_padding": more}
    x, w = values(2, 8, 5, 6, dtype="float64"), values(8, 16, 3, 2, dtype="float64")
    found = []
    for m in (toytorch, torch):
        leaves = [m.from_numpy(v.copy()).requires_grad_() for v in (x, w)]
        y = m.nn.functional.conv_transpose2d(*leaves, **how)
        y.square().sum().backward()
        found.append([v.detach().numpy() for v in (y, *(leaf.grad for leaf in leaves))])
    for ours, theirs in zip(*found):
        close(ours, theirs)


@given(
    size=st.integers(1, 20),
    kernel=st.integers(1, 5),
    stride=st.integers(1, 4),
    pad=st.integers(0, 4),
    dilation=st.integers(1, 3),
)
@settings(max_examples=200)
def test_grids_see_what_a_convolution_sees(
    size: int, kernel: int, stride: int, pad: int, dilation: int
) -> None:
    """Forward and backward grids name the same triples (output, tap, input), and all of them."""
    if size + 2 * pad < dilation * (kernel - 1) + 1:
        return
    outputs = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    meet = {(o, k, o * stride + k * dilation - pad) for o in range(outputs) for k in range(kernel)}
    meet = {(o, k, i) for o, k, i in meet if 0 <= i < size}
    grid = forward_grid(size, kernel, stride, pad, dilation)
    assert seen(grid, range(kernel), size) == meet
    back = set()
    for phase, taps in phases(size, kernel, stride, pad, dilation):
        back |= {(o, k, i) for i, k, o in seen(phase, taps, outputs)}
    assert back == meet


def seen(grid: Grid, taps: Any, size: int) -> set[tuple[int, int, int]]:
    """(output, tap, input) of all bands."""
    return {
        (grid.first + i * grid.every, taps[m], grid.at(i, m))
        for start, end, low, high in grid.bands(size)
        for i in range(start, end)
        for m in range(low, high)
    }


def test_order_of_memory() -> None:
    x = np.zeros((2, 3, 4, 5), np.float32)
    assert not memory_format.channels_last(x)
    assert memory_format.channels_last(ordered(x, "last"))
    assert not memory_format.channels_last(x[0])
    assert not memory_format.channels_last(ordered(x, "last")[:, :, 1:])
    assert not memory_format.channels_last(np.zeros((2, 1, 4, 4)))  # both; it was not asked for


def test_left_to_products(monkeypatch: Any) -> None:
    x, w = values(1, 16, 8, 8, dtype="float32"), values(16, 16, 3, 3, dtype="float32")
    how = (1, 1), (1, 1), (1, 1), 1
    assert conv.forward(x, w, *how) is not None
    assert conv.forward(x.astype("int64"), w.astype("int64"), *how) is None
    assert conv.forward(x, w[:1], *how) is None  # one place of a vector
    assert conv.forward(x[:0], w, *how) is None
    monkeypatch.setattr(jit, "works", lambda: False)
    monkeypatch.setattr(jit, "pays", lambda count: False)
    assert conv.forward(x, w, *how) is None


def test_tiles_fit_the_registers() -> None:
    for blocks in (1, 2, 3):
        most = conv_tile.most_rows(blocks)
        assert most >= 1
        assert all(conv_tile.rows(n, blocks) <= min(n, most) for n in range(1, 70))


@pytest.mark.parametrize(
    "shape", [(8, 1, 24, 9, 32), (7, 3, 20, 5, 16), (4, 64, 40, 32, 64), (5, 16, 3, 3, 96)]
)
def test_weight_gradients_for_any_number_of_threads(shape: tuple[int, ...]) -> None:
    """Few tiles and many, lines that are summed a few at a time: bit for bit the same."""
    n, c, h, w, outputs = shape
    rng = np.random.default_rng(7)
    x = rng.standard_normal((n, c, h, w)).astype("float32")
    g = rng.standard_normal((n, outputs, h, w)).astype("float32")
    wanted = torch.nn.grad.conv2d_weight(
        torch.from_numpy(x).double(), (outputs, c, 3, 3), torch.from_numpy(g).double(), padding=1
    ).numpy()
    before, made = toytorch.get_num_threads(), []
    try:
        for threads in (1, 2, 4):
            toytorch.set_num_threads(threads)
            made.append(conv_weight.weight_gradient(x, g, (3, 3), (1, 1), (1, 1), (1, 1), 1))
    finally:
        toytorch.set_num_threads(before)
    np.testing.assert_allclose(made[0], wanted, rtol=1e-3, atol=1e-3)
    for other in made[1:]:
        np.testing.assert_array_equal(made[0], other)
