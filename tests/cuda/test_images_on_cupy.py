"""Convolutions and pools on a GPU, with their gradients, against PyTorch."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.cuda import raw_module
from tests.oracle import GPU, ORACLE, SELFTEST, tt

pytestmark = [
    pytest.mark.usefixtures("compiling_device"),
    pytest.mark.skipif(SELFTEST, reason="PyTorch has its own CUDA"),
]
# Images and weights, and how they are convolved.
CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 7, 6), (4, 3, 3, 3), {}),
    "padded": ((2, 3, 7, 6), (4, 3, 3, 2), {"padding": (1, 2)}),
    "strides": ((2, 3, 9, 8), (4, 3, 3, 2), {"stride": (2, 3), "padding": 1}),
    "dilated": ((2, 2, 9, 8), (4, 2, 2, 3), {"dilation": (3, 2), "padding": 2}),
    "groups": ((2, 4, 6, 5), (6, 2, 3, 3), {"groups": 2, "padding": 1}),
    "each channel": ((2, 3, 6, 5), (6, 1, 3, 3), {"groups": 3, "padding": 1, "stride": 2}),
    "1x1": ((3, 4, 5, 6), (2, 4, 1, 1), {}),
    "lines": ((2, 3, 9), (4, 3, 4), {"padding": 2, "stride": 2}),
}
TURNED: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "plain": ((2, 3, 5, 4), (3, 2, 3, 3), {}),
    "strides": ((2, 3, 5, 4), (3, 2, 3, 2), {"stride": (2, 3), "padding": 1, "output_padding": 1}),
    "groups": ((2, 4, 5, 4), (4, 3, 3, 3), {"groups": 2, "dilation": 2}),
    "each channel": ((2, 4, 5, 4), (4, 1, 3, 3), {"groups": 4, "stride": 2}),
}
POOLS: dict[str, dict[str, Any]] = {
    "plain": {"kernel_size": 2},
    "overlapping": {"kernel_size": 3, "stride": 2, "padding": 1},
    "up": {"kernel_size": (2, 3), "stride": (3, 2), "ceil_mode": True},
}


def outcome(m: Any, device: str, f: Any, given: list[np.ndarray], last: bool) -> list[Any]:
    leaves = [m.from_numpy(a).to(device) for a in given]
    if last and leaves[0].ndim == 4:
        leaves[0] = leaves[0].to(memory_format=m.channels_last)
    leaves = [leaf.detach().requires_grad_() for leaf in leaves]
    y = f(m, *leaves)
    y.backward(m.cos(m.arange(float(y.numel()), dtype=y.dtype)).reshape(y.shape).to(device))
    return [y.detach(), *(p.grad for p in leaves)]


def agree(f: Any, given: list[np.ndarray], last: bool = False, launches: int = 2) -> None:
    before = len(raw_module.launched)
    got, want = outcome(tt, "cuda", f, given, last), outcome(ORACLE.root, "cpu", f, given, last)
    assert GPU or len(raw_module.launched) >= before + launches
    near = 2e-5 if given[0].dtype == np.float32 else 1e-11
    for a, b in zip(got, want):
        assert a.shape == b.shape and a.dtype == getattr(tt, str(b.dtype).partition(".")[2])
        assert np.allclose(a.cpu().numpy(), b.numpy(), near, near)
    assert got[0].stride() == want[0].stride()


def numbers(kind: str, *shapes: tuple[int, ...]) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    return [rng.standard_normal(s).astype(kind) for s in shapes]


@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels last"])
@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", CONVOLUTIONS)
def test_convolutions(name: str, kind: str, last: bool) -> None:
    x, w, how = CONVOLUTIONS[name]
    call = "conv1d" if len(x) == 3 else "conv2d"
    agree(
        lambda m, x, w, b: getattr(m.nn.functional, call)(x, w, b, **how),
        numbers(kind, x, w, w[:1]),
        last,
    )


@pytest.mark.parametrize("name", TURNED)
def test_transposed_convolutions(name: str) -> None:
    x, w, how = TURNED[name]
    outputs = (w[1] * how.get("groups", 1),)
    agree(
        lambda m, x, w, b: m.nn.functional.conv_transpose2d(x, w, b, **how),
        numbers("float64", x, w, outputs),
    )


@pytest.mark.parametrize("last", [False, True], ids=["rows", "channels last"])
@pytest.mark.parametrize(("call", "name"), [*itertools.product(["max", "avg"], POOLS)])
def test_pools(call: str, name: str, last: bool) -> None:
    agree(
        lambda m, x: getattr(m.nn.functional, f"{call}_pool2d")(x, **POOLS[name]),
        numbers("float32", (2, 3, 7, 9)),
        last,
    )


def test_pools_of_counts_and_dilation() -> None:
    f = "count_include_pad", "divisor_override"
    for value in (False, None):
        agree(
            lambda m, x, v=value: m.nn.functional.avg_pool2d(
                x, 3, 2, 1, **{f[0]: False, f[1]: 5 if v is None else None}
            ),
            numbers("float64", (1, 2, 8, 5)),
        )
    agree(
        lambda m, x: m.nn.functional.max_pool2d(x, 2, 1, 1, dilation=2),
        numbers("float64", (1, 2, 8, 5)),
    )


def test_the_first_of_equal_ones_and_nan() -> None:
    x = np.zeros((1, 1, 4, 4), np.float32)
    x[0, 0, 2:, 2:] = np.nan
    x[0, 0, 0, 3] = -np.inf
    for m, device in ((tt, "cuda"), (ORACLE.root, "cpu")):
        values, places = m.nn.functional.max_pool2d(
            m.from_numpy(x).to(device), 2, return_indices=True
        )
        found = values.cpu().numpy(), places.cpu().numpy()
        if m is tt:
            mine = found
    assert np.array_equal(mine[0], found[0], equal_nan=True) and np.array_equal(mine[1], found[1])


def test_images_that_are_taken_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    from toytorch.backends import cupy_images

    monkeypatch.setattr(cupy_images, "MOST", 3000)
    x, w, how = CONVOLUTIONS["padded"]
    agree(
        lambda m, x, w, b: m.nn.functional.conv2d(x, w, b, **how),
        numbers("float64", (5, *x[1:]), w, w[:1]),
    )
