"""Tensors of one integer where a function takes an integer: the number in them counts."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt

CALLS = """
m.linspace(0.0, 1.0, n) | m.linspace(z, 1.0, n) | m.linspace(0.0, 1.0, steps=n) | m.logspace(0.0, 1.0, n)
m.eye(n) | m.zeros(n) | m.full((n,), 1.0) | m.arange(n) | m.randperm(n).shape | m.randint(n, (n,)).shape
m.randint(z, n, (n,)).shape | m.hann_window(n) | m.bartlett_window(n) | m.kaiser_window(n) | m.tril_indices(n, n)
m.chunk(x, n) | m.split(x, n) | x.split(k) | x.narrow(0, k, k) | m.roll(x, k) | x.sum(z) | x.mean(z) | x.unsqueeze(z)
x.amax(z) | m.topk(x, n) | m.diag(x, k) | m.movedim(m.ones(2, 3), k, z) | x.unfold(0, n, k) | x.view(n, 1)
m.cumsum(x, z) | m.repeat_interleave(x, n) | m.fft.fft(x, n) | m.matrix_power(m.eye(2), n) | m.vander(x, n)
m.nn.functional.adaptive_avg_pool1d(m.ones(1, 1, 4), k) | m.nn.functional.avg_pool1d(m.ones(1, 1, 4), k)
m.nn.functional.one_hot(m.tensor([1, 2]), n) | m.combinations(x, k) | m.flatten(m.ones(2, 2), z, k)
m.chunk(x, f) | m.linspace(0.0, 1.0, f) | m.roll(x, f) | x.sum(f)
"""
VALUES = (
    "np.int64(1)", "np.bool_(True)", "np.array(1)", "np.array([1])", "m.tensor(True)", "m.tensor([1])",
    "m.tensor([[1]])", "m.tensor([0.0])", "m.tensor([1, 1])",
)  # fmt: skip


@pytest.mark.parametrize(
    "text", [c.strip() for c in CALLS.replace("\n", "|").split("|") if c.strip()]
)
def test_same_as_the_number(text: str) -> None:
    def run(m: Any) -> Any:
        names = {"n": 3, "k": 1, "z": 0, "f": 2.0}
        return eval(
            text, {"m": m, "x": m.arange(3.0), **{n: m.tensor(v) for n, v in names.items()}}
        )

    (want, refused), (got, failed) = attempt(run, torch), attempt(run, tt)
    assert type(failed) is type(refused), (failed, refused)
    assert str(got) == str(want)


ALIKE = """
x.sum(v) | x.sum(dim=v) | x.sum([v]) | x.sum((0, v)) | m.var_mean(x, v) | x.cumsum(v) | x.cumsum(dim=v) | x.topk(v)
x.topk(k=v) | x.kthvalue(v) | x.reshape(v) | m.zeros(v) | x.roll(v) | x.roll(1, v) | x.flip(v) | m.max_pool1d(x, v)
m.nn.functional.conv1d(x, m.ones(4, 4, 1), stride=v) | m.nn.functional.conv1d(x, m.ones(4, 4, 1), groups=v)
m.nn.functional.avg_pool2d(x, v) | m.nn.functional.adaptive_avg_pool1d(x, v) | x.diagonal(v) | x.chunk(v)
x.as_strided([v, 0], (1, 1)) | x.sum([v, 0])
x.unsqueeze(v) | x.argmax(v) | m.cat([x, x], v) | x.as_strided((1,), (1,), v) | m.bincount(m.tensor([0]), minlength=v)
"""


@pytest.mark.parametrize(
    "text", [c.strip() for c in ALIKE.replace("\n", "|").split("|") if c.strip()]
)
def test_dimensions_of_one_and_arrays(text: str) -> None:
    for value in VALUES:

        def run(m: Any, value: str = value) -> Any:
            v = eval(value, {"m": m, "np": np})
            return eval(text, {"m": m, "x": m.ones(3, 4, 5), "v": v})

        (want, refused), (got, failed) = attempt(lambda: run(torch)), attempt(lambda: run(tt))
        if "INTERNAL" in str(refused) or "isIntegral" in str(refused):
            continue  # which PyTorch takes for a mistake of its own
        assert type(failed) is type(refused), (value, failed, refused)
        assert str(got) == str(want)
