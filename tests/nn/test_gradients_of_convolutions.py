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
