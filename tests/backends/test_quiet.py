"""Infinite and undefined numbers are results in toytorch, and no reason to warn."""

from __future__ import annotations

import numpy as np
import pytest

import toytorch as torch


@pytest.mark.parametrize("name", ["sum", "mean", "var", "std", "prod", "exp", "log"])
def test_ops_do_not_warn(name: str) -> None:
    x = torch.tensor([float("inf"), float("-inf"), 1000.0])
    getattr(x, name)()  # every warning is an error here


@pytest.mark.parametrize("name", ["log", "sqrt", "reciprocal", "rsqrt", "log10"])
def test_derivatives_do_not_warn(name: str) -> None:
    x = torch.zeros(2, requires_grad=True)
    getattr(x, name)().backward(torch.ones(2))
    assert x.grad is not None and x.grad.isinf().all()


def test_numpy_itself_still_warns() -> None:
    with pytest.warns(RuntimeWarning, match="encountered"):
        np.array([np.inf, -np.inf]).mean()
    with pytest.warns(RuntimeWarning, match="encountered"):
        np.log(np.zeros(1))
