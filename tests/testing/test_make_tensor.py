"""`make_tensor`: intervals, layouts and refusals as PyTorch's; values are drawn, so they differ."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import DTYPES, ORACLE, SUBJECT, Side, attempt, dtype_name, told

SIDES = [pytest.param(ORACLE, id="PyTorch"), pytest.param(SUBJECT, id="toytorch")]


def make(side: Side, kind: str, *shape: Any, **options: Any) -> Any:
    return side.root.testing.make_tensor(*shape, dtype=side.dtype(kind), device="cpu", **options)


@pytest.mark.parametrize("side", SIDES)
@pytest.mark.parametrize("kind", DTYPES)
def test_values_lie_within_the_interval(side: Side, kind: str) -> None:
    side.root.manual_seed(0)
    x = make(side, kind, 200, 3)
    assert tuple(x.shape) == (200, 3) and dtype_name(x.dtype) == kind and x.is_contiguous()
    parts = side.root.view_as_real(x) if x.dtype.is_complex else x
    low, high = parts.double().min().item(), parts.double().max().item()
    ends = {"bool": (0, 1), "uint8": (0, 9)}.get(kind, (-9, 9))
    assert [round(low), round(high)] == list(ends)
    if kind != "bool":
        near = make(side, kind, (40,), low=2, high=5)
        parts = side.root.view_as_real(near) if near.dtype.is_complex else near
        assert parts.double().min().item() >= 2 and parts.double().max().item() <= 5


@pytest.mark.parametrize("side", SIDES)
def test_layouts(side: Side) -> None:
    torch = side.root
    x = make(side, "float32", 4, 6, noncontiguous=True)
    assert tuple(x.shape) == (4, 6) and x.stride() == (12, 2)
    y = make(side, "float32", 2, 3, 4, 5, memory_format=torch.channels_last)
    assert y.is_contiguous(memory_format=torch.channels_last)
    assert make(side, "float64", 3, requires_grad=True).requires_grad
    assert make(side, "float32").shape == ()
    assert make(side, "float32", [2, 0]).shape == (2, 0)
    for kind in ("bool", "int8", "float32", "complex64"):
        assert bool((make(side, kind, 300, exclude_zero=True) != 0).all())


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("float32", {"low": 2, "high": 1}),
        ("int8", {"low": 3, "high": 3}),
        ("float32", {"low": float("nan")}),
        ("int64", {"requires_grad": True}),
        ("uint8", {"low": -5, "high": -2}),
        ("int8", {"low": 300, "high": 400}),
        ("float32", {"noncontiguous": True, "memory_format": "preserve_format"}),
    ],
)
def test_refusals_in_the_same_words(kind: str, options: dict[str, Any]) -> None:
    ours, theirs = (attempt(make, side, kind, 3, **options)[1] for side in (SUBJECT, ORACLE))
    assert theirs is not None
    assert told(ours) == told(theirs)
