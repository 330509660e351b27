"""Grids that move nothing: their points are PyTorch's to the bit, since a gradient there is one-sided."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt


@pytest.mark.parametrize("align_corners", [False, True])
@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_points(kind: str, align_corners: bool) -> None:
    for size in ((28, 28), (5, 7), (2, 4), (3, 2), (64, 33), (224, 17), (3, 4, 5)):

        def points(m: Any, size: tuple[int, ...] = size) -> Any:
            n = len(size)
            theta = m.eye(n, n + 1, dtype=getattr(m, kind))[None]
            grid = m.nn.functional.affine_grid(theta, (1, 1, *size), align_corners=align_corners)
            return grid.tolist()

        assert points(tt) == points(torch), size


def test_gradients_of_a_sampler_that_moves_nothing() -> None:
    def gradient(m: Any) -> Any:
        theta = m.eye(2, 3, dtype=m.float64)[None].requires_grad_()
        x = m.arange(784.0, dtype=m.float64).sin().reshape(1, 1, 28, 28)
        grid = m.nn.functional.affine_grid(theta, (1, 1, 28, 28), align_corners=False)
        m.nn.functional.grid_sample(x, grid, align_corners=False).pow(3).sum().backward()
        return theta.grad.flatten().tolist()

    assert gradient(tt) == pytest.approx(gradient(torch), rel=1e-9)
