"""Grids that move nothing: their points are PyTorch's to the bit, since a gradient there is one-sided."""

from __future__ import annotations

import itertools
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


SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (2,), (3, 2), (2, 3, 3), (1, 1, 2, 2), (1, 1, 2, 2, 2), (1, 2, 2, 2, 3), (1, 2, 2, 3), (1, 1, 0, 2),
    (1, 0, 2, 2), (0, 0, 0, 0),
)  # fmt: skip
KINDS = ("float32", "bfloat16", "int64", "complex64")


@pytest.mark.parametrize("name", ["grid_sampler", "grid_sampler_2d", "grid_sampler_3d"])
def test_shapes_are_asked_for_before_types(name: str) -> None:
    for case in itertools.product(SHAPES, SHAPES, KINDS, KINDS, (0, 2)):

        def told(m: Any, case: Any = case) -> Any:
            shape, of_grid, kind, other, mode = case
            x, grid = (
                m.ones(shape, dtype=getattr(m, kind)),
                m.zeros(of_grid, dtype=getattr(m, other)),
            )
            try:
                return tuple(getattr(m, name)(x, grid, mode, 0, False).shape)
            except Exception as e:
                return type(e).__name__, str(e)

        assert told(tt) == told(torch), case
