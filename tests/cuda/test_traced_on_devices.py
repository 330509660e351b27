"""Traced and scripted functions of simulated tensors: checked as on the CPU, with the same draws."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch
from toytorch.nn import functional as F

DRAWN: dict[str, Callable[[Any], Any]] = {
    "dropout": lambda x: F.dropout(x, 0.3),
    "dropout of columns": lambda x: F.dropout(x.t(), 0.3),
    "dropout2d": lambda x: F.dropout2d(x[None, None], 0.5),
    "rand_like": lambda x: torch.rand_like(x) + x,
    "randn_like": lambda x: torch.randn_like(x) * x,
    "bernoulli": lambda x: torch.bernoulli(x * 0.5) + x,
    "normal_": lambda x: torch.empty_like(x).normal_() + x,
    "multinomial": lambda x: torch.multinomial(x, 3),
    "rrelu": lambda x: F.rrelu(x - 1, training=True),
    "gumbel": lambda x: F.gumbel_softmax(x, dim=-1),
    "none": lambda x: (x * 2).relu().sum(0),
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_traced_function_draws_what_the_function_draws(name: str) -> None:
    with torch.cuda.simulate(), warnings.catch_warnings():
        warnings.filterwarnings("error", message="Output nr")
        warnings.filterwarnings("ignore", message="Trace had nondeterministic nodes")
        x = torch.rand(6, 5, device="cuda") + 0.1
        traced = torch.jit.trace(DRAWN[name], (x,))  # which compares the two
        made = []
        for function in (DRAWN[name], traced):
            torch.manual_seed(1)
            made.append(function(x.clone()))
        assert torch.equal(made[0], made[1]) and made[1].is_cuda


def test_a_traced_function_of_meta_tensors() -> None:
    x = torch.ones(2, 3, device="meta")
    traced = torch.jit.trace(lambda a: (a @ a.T).exp(), (x,))
    assert traced(x).is_meta and traced(x).shape == (2, 2)
