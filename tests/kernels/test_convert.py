"""Conversions between types on one thread and on two: what PyTorch makes, in the order it was in."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracle import torch
from toytorch.kernels import convert
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(
    not jit.works(), reason="without llvmlite the kernel leaves all to NumPy"
)
WHOLE = "int64", "int32", "int16", "int8", "uint8"
KINDS = ("float32", "float64", "float16", *WHOLE, "bool")
# PyTorch's result for numbers that int32 does not hold is the processor's: these are in uint8's test.
SPECIAL = [np.nan, np.inf, -np.inf, 0.0, -0.0, 255.9, -1.0, -0.5, 65520.0, 2.0**31 - 1, -(2.0**31)]
SHAPE = 4, 20, 30, 40


def given(kind: str) -> np.ndarray:
    """Numbers of every size that a type holds."""
    rng = np.random.default_rng(3)
    if kind in WHOLE:
        return rng.integers(-(2**63), 2**63 - 1, SHAPE).astype(kind)
    found = rng.standard_normal(SHAPE) * rng.choice([1, 200, 1e5], SHAPE)
    found[0, 0, 0, : len(SPECIAL)] = SPECIAL
    with np.errstate(over="ignore"):
        return found.astype(kind)


@pytest.mark.parametrize("other", KINDS)
@pytest.mark.parametrize("one", KINDS)
def test_all_pairs(threads: int, one: str, other: str) -> None:
    a, kind = given(one), np.dtype(other)
    if kind.kind in "iu" and a.dtype.kind == "f":
        a[~np.isfinite(a)] = 7  # no whole number is right, and PyTorch's differs by vector width
    wanted = torch.from_numpy(a).to(getattr(torch, other)).numpy()
    made = convert.cast(a, kind)
    compiled = one != other and ("float16" not in (one, other) or "float32" in (one, other))
    alone = "float16" in (one, other) or (a.dtype.kind == "f" and other == "uint8")
    assert (made is not None) == (compiled and (threads > 1 or alone))
    if made is not None:
        assert made.dtype == kind
        np.testing.assert_array_equal(made, wanted)
        if kind.kind == "f":
            np.testing.assert_array_equal(np.signbit(made), np.signbit(wanted))


def test_large_numbers_as_bytes(threads: int) -> None:
    """By way of int64: the low byte of what is no byte."""
    a = np.random.default_rng(0).uniform(-1e15, 1e15, 40_000)
    wanted = torch.from_numpy(a).to(torch.uint8).numpy()
    np.testing.assert_array_equal(convert.cast(a, np.dtype("uint8")), wanted)


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 3, 1), (3, 1, 0, 2)])
def test_order_of_memory_stays(threads: int, order: tuple[int, ...]) -> None:
    a = np.ascontiguousarray(given("float32").transpose(order)).transpose(np.argsort(order))
    made = convert.cast(a, np.dtype("float16"))
    with np.errstate(over="ignore"):
        wanted = a.astype("float16")
    np.testing.assert_array_equal(made, wanted)
    assert made.strides == wanted.strides
    for part in (a[:, ::2], a[..., :3], a[1:].swapaxes(0, 1)):  # without their gaps
        with np.errstate(over="ignore"):
            wanted = part.astype("float16")
        made = convert.cast(part, np.dtype("float16"))
        np.testing.assert_array_equal(wanted if made is None else made, wanted)
        assert made is None or made.strides == wanted.strides
