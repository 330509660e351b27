"""`torch.nn.grad`, and the memory of what is pooled from one volume."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

MORE = [{}, {"stride": 2}, {"padding": 1, "dilation": 2}, {"groups": 2, "stride": 2, "padding": 1}]


@pytest.mark.parametrize("more", MORE)
@pytest.mark.parametrize("n", [1, 2, 3])
def test_same_gradients(n: int, more: dict[str, int]) -> None:
    rng = np.random.default_rng(n)
    drawn = rng.standard_normal((2, 4, *[7] * n)).astype("float32")
    kernel = rng.standard_normal((6, 4 // more.get("groups", 1), *[3] * n)).astype("float32")

    def run(T: Any) -> Any:
        x, w = T.tensor(drawn), T.tensor(kernel)
        conv = getattr(T.nn.functional, f"conv{n}d")
        y = conv(x, w, **more)
        module = T.nn.functional.grad
        of_input = getattr(T.nn.grad, f"conv{n}d_input")(x.shape, w, y, **more)
        of_weight = getattr(module, f"conv{n}d_weight")(x, w.shape, y, **more)
        return of_input.numpy(), of_weight.numpy()

    for got, want in zip(run(tt), run(torch)):
        np.testing.assert_allclose(got, want, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("batch", [True, False])
def test_pooled_volumes_lie_as_the_volume(batch: bool) -> None:
    def run(T: Any) -> Any:
        x = T.arange(4.0 * 6 * 6 * 3 * 2).reshape(2, 4, 6, 6, 3).permute(0, 4, 1, 2, 3)
        found = T.nn.functional.max_pool3d(x if batch else x[0], 2)
        return found.stride(), found.tolist()

    assert run(tt) == run(torch)


@pytest.mark.parametrize("laid", ["rows", "last", "expanded"])
@pytest.mark.parametrize("size", [1, 3])
@pytest.mark.parametrize("name", [f"Conv{t}{n}d" for t in ("", "Transpose") for n in (1, 2, 3)])
def test_results_and_gradients_lie_as_in_pytorch(name: str, size: int, laid: str) -> None:
    """Also where a kernel has one place, for which PyTorch has another way on one thread."""
    n = int(name[-2])

    def run(T: Any) -> Any:
        conv = getattr(T.nn, name)(6, 8, size)
        x = T.ones(2, *([5] * n if laid != "expanded" else [1] * n), 6).movedim(-1, 1)
        x = x if laid == "last" else x.contiguous().expand(2, 6, *[5] * n)
        x = x.detach().requires_grad_()
        y = conv(x)
        found = T.autograd.grad((y * y).sum(), [x, conv.weight], retain_graph=True)
        y.sum().backward()
        return [t.stride() for t in (y, *found, x.grad, conv.weight.grad)]

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        assert run(tt) == run(torch)
    finally:
        torch.set_num_threads(threads)
