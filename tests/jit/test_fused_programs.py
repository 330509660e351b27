"""Random chains of elementwise functions and reductions, compiled, beside PyTorch: values and gradients.

Chains of several reductions are one kernel with several passes over a row, in which values wait in
the memory of results: what few examples would ever meet.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

COUNT = int(os.environ.get("TOYTORCH_PROGRAMS", "200"))
STEPS: list[Callable[[Any, Any], Any]] = [
    lambda m, x: m.exp(x * 0.3),
    lambda m, x: m.tanh(x),
    lambda m, x: m.sigmoid(x),
    lambda m, x: m.log1p(x * x),
    lambda m, x: m.relu(x),
    lambda m, x: x * 2 - 1,
    lambda m, x: x.abs() + 0.5,
    lambda m, x: m.nn.functional.softplus(x),
    lambda m, x: m.nn.functional.gelu(x),
    lambda m, x: x.transpose(0, -1) if x.ndim else x * 3,
    lambda m, x: m.sqrt(x * x + 1),
    lambda m, x: x.pow(2),
    lambda m, x: m.where(x > 0, x, x * 0.1),
    lambda m, x: x.masked_fill(x > 0.5, 0.25),
    lambda m, x: m.softmax(x, -1) if x.ndim else x + 1,
    lambda m, x: m.log_softmax(x, 0) if x.ndim else x + 1,
    lambda m, x: x / (1 + x.abs()),
    lambda m, x: m.erf(x),
    lambda m, x: x.clamp(-0.7, 0.9),
]
REDUCTIONS: list[Callable[..., Any]] = [
    lambda m, x, d, k: x.sum(d, keepdim=k),
    lambda m, x, d, k: x.mean(d, keepdim=k),
    lambda m, x, d, k: x.amax(d, keepdim=k),
    lambda m, x, d, k: x.amin(d, keepdim=k),
    lambda m, x, d, k: x.var(d, unbiased=False, keepdim=k),
    lambda m, x, d, k: m.linalg.vector_norm(x + 0.01, 2, d, k),
    lambda m, x, d, k: m.linalg.vector_norm(x + 0.01, 1, d, k),
    lambda m, x, d, k: m.logsumexp(x, d, k),
]


def program(seed: int) -> Callable[..., Any]:
    """A chain that starts at one tensor and takes in another, and its own earlier results."""
    draw = random.Random(seed)
    chain: list[Any] = []
    for _ in range(draw.randint(2, 6)):
        kind = draw.random()
        if kind < 0.55:
            chain.append(("step", draw.choice(STEPS)))
        elif kind < 0.75:
            chain.append(("with", draw.choice("+-*"), draw.random()))
        else:
            place = draw.choice([0, -1, 1])
            chain.append(("over", draw.choice(REDUCTIONS), place, draw.random() < 0.7))

    def run(m: Any, x: Any, y: Any) -> Any:
        made = [y, x]
        for what, *more in chain:
            x = made[-1]
            if what == "step":
                x = more[0](m, x)
            elif what == "over" and x.ndim:
                x = more[0](m, x, more[1] if more[1] < x.ndim else -1, more[2])
            elif what == "with":
                other = made[int(more[1] * len(made))]
                fits = all(1 in (a, b) or a == b for a, b in zip(x.shape[::-1], other.shape[::-1]))
                other = other if fits else 1.5
                x = x + other if more[0] == "+" else x - other if more[0] == "-" else x * other
            made.append(x)
        return made[-1] * 1.3

    return run


@pytest.mark.filterwarnings("ignore:(invalid value|overflow) encountered")  # of the comparison
@pytest.mark.parametrize("seed", range(COUNT))
def test_chains(seed: int) -> None:
    f, random_of = program(seed), np.random.default_rng(seed)
    shape = [int(n) for n in random_of.choice([1, 2, 3, 7, 16, 33, 65], random_of.integers(1, 4))]
    x = random_of.standard_normal(shape)
    if random_of.random() < 0.3:
        x = np.ascontiguousarray(x.swapaxes(0, -1)).swapaxes(0, -1)
    y = random_of.standard_normal([n if random_of.random() < 0.6 else 1 for n in shape])
    found = []
    for m in (torch, tt):
        given = [m.from_numpy(a.copy("K")).requires_grad_() for a in (x, y)]
        run: Any = (lambda *a, m=m: f(m, *a)) if m is torch else tt.compile(lambda *a: f(tt, *a))
        run(*given)
        result = run(*given)
        result.sum().backward()
        grads = [0 * t.detach() if t.grad is None else t.grad for t in given]
        found.append([result.detach(), *grads])
    for want, got in zip(*found, strict=True):
        scale = max(1.0, float(want.abs().nan_to_num(0.0, 0.0, 0.0).max()))
        np.testing.assert_allclose(got.numpy() / scale, want.numpy() / scale, rtol=1e-7, atol=1e-9)
