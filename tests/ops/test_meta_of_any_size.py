"""Tensors without memory of any size: shapes and strides of results as PyTorch's, though nothing of
the size could be computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import torch, tt

N, B = 1 << 20, 1 << 22


def of(m: Any, *shape: int, **how: Any) -> Any:
    return m.empty(*shape, device="meta", **how)


F: dict[str, Callable[[Any], Any]] = {
    "convolution": lambda m: m.nn.functional.conv2d(of(m, B, 3, 32, 32), of(m, 6, 3, 5, 5)),
    "large images": lambda m: m.nn.functional.conv2d(of(m, 64, 3, N, N), of(m, 4, 3, 5, 5)),
    "patches": lambda m: m.nn.functional.conv2d(of(m, B, 3, 224, 224), of(m, 96, 3, 16, 16), stride=16),
    "stride 3": lambda m: m.nn.functional.conv1d(of(m, 8, 4, N + 1), of(m, 4, 4, 7), stride=3, padding=2),
    "far apart": lambda m: m.nn.functional.avg_pool1d(of(m, 8, 4, N), 1, 1000),
    "large windows": lambda m: m.nn.functional.max_pool1d(of(m, 8, 4, N), 100, 50),
    "sums of pools": lambda m: m.nn.functional.adaptive_avg_pool2d(of(m, B, 64, 100, 100), (7, 5)),
    "dilated": lambda m: m.nn.functional.conv1d(of(m, 8, 4, N), of(m, 4, 4, 3), dilation=4),
    "transposed": lambda m: m.nn.functional.conv_transpose2d(of(m, B, 4, 17, 17), of(m, 4, 4, 4, 4), stride=2),
    "max pool": lambda m: m.nn.functional.max_pool2d(of(m, B, 6, 28, 28), 2),
    "pool, rounded up": lambda m: m.nn.functional.avg_pool2d(of(m, B, 6, 29, 29), 3, 2, ceil_mode=True),
    "pad": lambda m: m.nn.functional.pad(of(m, N, N), (1, 2, 3, 0)),
    "reflect": lambda m: m.nn.functional.pad(of(m, N, 4, 100), (1, 2), "reflect"),
    "cat": lambda m: m.cat([of(m, N, N), of(m, 5, N), of(m, 2 * N, N)]),
    "stack": lambda m: m.stack([of(m, N, N)] * 3, 1),
    "repeat": lambda m: of(m, N, N).repeat(2, 3),
    "layer norm": lambda m: m.nn.functional.layer_norm(of(m, N, N), (N,)),
    "dropout": lambda m: m.nn.functional.dropout(of(m, N, N)),
    "resize": lambda m: m.nn.functional.interpolate(of(m, N, 3, 64, 64), scale_factor=2),
    "embedding": lambda m: m.nn.functional.embedding(of(m, N, 1024, dtype=m.long), of(m, 10, 4096)),
    "attention": lambda m: m.nn.functional.scaled_dot_product_attention(*[of(m, 1024, 8, 1 << 14, 64)] * 3),
    "diagonal": lambda m: m.diff(of(m, N, N)),
    "turned": lambda m: of(m, N, N).t().contiguous(),
    "windows": lambda m: m.nn.functional.unfold(of(m, B, 3, 32, 32), 3),
    "random": lambda m: m.rand(1024, N, N, device="meta"),
    "flat": lambda m: of(m, 64, N, N).flatten(1),
}  # fmt: skip


@pytest.mark.parametrize("name", F)
def test_results_look_as_pytorchs(name: str) -> None:
    want, got = F[name](torch), F[name](tt)
    assert (tuple(got.shape), str(got.dtype)) == (tuple(want.shape), str(want.dtype))
    assert got.stride() == want.stride()


def test_a_network_of_any_batch() -> None:
    def run(m: Any) -> Any:
        layers = m.nn.Sequential(
            m.nn.Conv2d(3, 6, 5), m.nn.ReLU(), m.nn.MaxPool2d(2), m.nn.BatchNorm2d(6),
            m.nn.Conv2d(6, 16, 5), m.nn.ReLU(), m.nn.MaxPool2d(2), m.nn.Flatten(),
            m.nn.Linear(400, 120), m.nn.Dropout(), m.nn.Linear(120, 10),
        ).to("meta")  # fmt: skip
        return layers(m.rand(B, 3, 32, 32, device="meta"))

    assert tuple(run(tt).shape) == tuple(run(torch).shape)


def test_sizes_that_do_not_fit_are_refused() -> None:
    for m in (torch, tt):
        with pytest.raises(RuntimeError):
            of(m, N, N) @ of(m, N + 24, N)
        with pytest.raises(RuntimeError):
            of(m, N, N) + of(m, N + 48, N)
        with pytest.raises(RuntimeError):
            m.cat([of(m, N, N), of(m, N, N + 16)])
