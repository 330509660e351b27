"""A few points of every function, a few terms of every sum; `python -m tests.accuracy` takes many."""

from __future__ import annotations

import os

import pytest

pytest.importorskip("mpmath", reason="the reference of functions comes with PyTorch's sympy")

from tests.accuracy import measure, sums  # the reference has to be there
from tests.accuracy.functions import FUNCTIONS, FURTHER
from tests.oracle import SELFTEST

if SELFTEST:
    pytest.skip("compares toytorch with PyTorch", allow_module_level=True)

POINTS = int(os.environ.get("TOYTORCH_POINTS", "24"))
TERMS = int(os.environ.get("TOYTORCH_TERMS", "20000"))
SLOW = {"igamma", "igammac", "zeta"}  # to measure: minutes in mpmath
QUICK = [name for name in FUNCTIONS if name not in SLOW]
FEW = {  # of which few terms say little; with 1,000,000 they pass
    "cumprod", "prod", "norm 3", "sum of rows"}  # fmt: skip


@pytest.mark.parametrize("type", ["float32", "float64"])
@pytest.mark.parametrize("name", QUICK)
def test_function(name: str, type: str) -> None:
    bad, _, _ = measure.compare(name, FUNCTIONS[name], type, POINTS, seed=4)
    if name in FURTHER and bad:
        pytest.xfail(FURTHER[name])
    assert not bad, bad[:3]


@pytest.mark.parametrize("type", ["float32", "float64"])
@pytest.mark.parametrize("name", sums.CASES)
def test_sum(name: str, type: str) -> None:
    if name in FEW and TERMS < sums.TERMS:
        pytest.skip("a matter of many terms")
    bad, _, _ = sums.compare(name, type, TERMS)
    assert not bad, bad
