"""Random ops: seeds repeat, and values have PyTorch's distribution."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt

N = 20_000
DRAWS: dict[str, Callable[[Any], Any]] = {
    "rand": lambda m: m.rand(N),
    "randn": lambda m: m.randn(N),
    "rand float64": lambda m: m.rand(N, dtype=m.float64),
    "randint": lambda m: m.randint(-3, 5, (N,)),
    "randint of one": lambda m: m.randint(1, (N,)),
    "randperm": lambda m: m.randperm(50),
    "normal": lambda m: m.normal(2.0, 3.0, (N,)),
    "normal of tensors": lambda m: m.normal(m.arange(4.0).repeat(N // 4), m.ones(N)),
    "bernoulli": lambda m: m.bernoulli(m.full((N,), 0.3)),
    "multinomial": lambda m: m.multinomial(m.tensor([1.0, 2.0, 0.0, 5.0]), N, replacement=True),
    "rand_like": lambda m: m.rand_like(m.zeros(N)),
    "randn_like": lambda m: m.randn_like(m.zeros(N)),
    "uniform_": lambda m: m.zeros(N).uniform_(-2.0, 3.0),
    "uniform_ from": lambda m: m.zeros(N).uniform_(**{"from": -2.0, "to": 3.0}),
    "normal_": lambda m: m.zeros(N).normal_(-1.0, 0.5),
    "exponential_": lambda m: m.zeros(N).exponential_(2.0),
    "bernoulli_": lambda m: m.zeros(N).bernoulli_(0.2),
    "random_": lambda m: m.zeros(N).random_(7),
    "dropout": lambda m: m.nn.functional.dropout(m.ones(N), 0.25),
}


@pytest.mark.parametrize("label", DRAWS)
def test_distribution(label: str) -> None:
    """A two-sample Kolmogorov-Smirnov test at about one in a million; the same integers occur."""
    draw = DRAWS[label]
    torch.manual_seed(3)
    tt.manual_seed(3)
    want, got = draw(torch), draw(tt)
    assert str(got.dtype)[-7:] == str(want.dtype)[-7:]
    a, b = np.sort(want.numpy().ravel()), np.sort(got.numpy().ravel())
    assert a.shape == b.shape
    both = np.concatenate([a, b])
    gap = np.abs(
        np.searchsorted(a, both, "right") / a.size - np.searchsorted(b, both, "right") / b.size
    )
    assert gap.max() <= 2.69 * np.sqrt(2 / a.size), (
        f"means {a.mean()} and {b.mean()}, spread {a.std()} and {b.std()}"
    )
    if a.dtype.kind == "i":
        assert set(a.tolist()) == set(b.tolist())


@pytest.mark.parametrize("label", DRAWS)
def test_seed(label: str) -> None:
    draw = DRAWS[label]
    tt.manual_seed(11)
    one, two = draw(tt).numpy().copy(), draw(tt).numpy().copy()
    tt.manual_seed(11)
    assert (draw(tt).numpy() == one).all()
    assert label == "randint of one" or (one != two).any()


def test_generator_is_independent() -> None:
    g, h = tt.Generator().manual_seed(5), tt.Generator().manual_seed(5)
    a = tt.rand(4, generator=g)
    tt.rand(4)
    assert (tt.rand(4, generator=h).numpy() == a.numpy()).all()
    assert g.initial_seed() == 5


def test_rng_state_round_trip() -> None:
    tt.manual_seed(1)
    state = tt.get_rng_state()
    a = tt.rand(5).numpy().copy()
    tt.set_rng_state(state)
    assert (tt.rand(5).numpy() == a).all()


def test_randperm_and_choice_without_replacement() -> None:
    assert sorted(tt.randperm(20).tolist()) == list(range(20))
    picked = tt.multinomial(tt.ones(100, 6), 4)
    assert all(len(set(row)) == 4 for row in picked.tolist())
    with pytest.raises(RuntimeError):
        tt.multinomial(tt.tensor([0.0, 0.0]), 1)
    assert attempt(tt.randint, 3, 2, (1,))[1] is not None


def test_dropout_scales_and_masks_gradients() -> None:
    x = tt.ones(1000, requires_grad=True)
    y = tt.nn.functional.dropout(x, 0.5)
    y.sum().backward()
    assert set(y.tolist()) == {0.0, 2.0}
    assert x.grad.tolist() == y.tolist()
