"""Generators: states that PyTorch and toytorch take from each other, forks, and the faster draws."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST, attempt, torch, tt


def carried(state: Any, to: Any) -> Any:
    """A state of one package as a tensor of the other."""
    return to.tensor(state.numpy())


BEFORE: dict[str, Any] = {
    "nothing": lambda m: None,
    "a word": lambda m: m.rand(1),
    "a pair's first": lambda m: m.randn(3),
    "a block": lambda m: m.rand(624),
    "a block and one": lambda m: m.rand(625),
    "many": lambda m: m.randn(10_001, dtype=m.float64),
}
AFTER: dict[str, Any] = {
    "rand": lambda m: m.rand(700),
    "one pair": lambda m: m.randn(1),
    "randn": lambda m: m.randn(100),
    "randperm": lambda m: m.randperm(50),
    "few of float64": lambda m: m.randn(5, dtype=m.float64),
}


@pytest.mark.parametrize("after", AFTER)
@pytest.mark.parametrize("before", BEFORE)
def test_states_are_exchanged(before: str, after: str) -> None:
    """In the middle of a stream, both ways; and the states are equal byte by byte."""
    for one, other in ((torch, tt), (tt, torch)):
        one.manual_seed(2**40 + 3)
        other.manual_seed(1)
        BEFORE[before](one)
        state = one.get_rng_state()
        assert state.dtype is one.uint8 and tuple(state.shape) == (5056,)
        other.set_rng_state(carried(state, other))
        assert other.initial_seed() == 2**40 + 3
        np.testing.assert_array_equal(other.get_rng_state().numpy(), state.numpy())
        np.testing.assert_array_equal(AFTER[after](other).numpy(), AFTER[after](one).numpy())
        np.testing.assert_array_equal(other.get_rng_state().numpy(), one.get_rng_state().numpy())


def test_generators_by_themselves() -> None:
    found = []
    for m in (torch, tt):
        m.manual_seed(0)
        g = m.Generator()
        seen = [g.initial_seed(), m.rand(3, generator=g).tolist()]
        g.manual_seed(-5)
        seen += [g.initial_seed(), m.randn(20, generator=g).tolist()]
        h = m.Generator()
        h.set_state(g.get_state())
        seen += [m.randperm(9, generator=h).tolist(), m.randint(9, (3,), generator=g).tolist()]
        with m.random.fork_rng():
            seen.append(m.rand(2).tolist())
        seen.append(m.rand(2).tolist())
        seed = g.seed()
        assert g.initial_seed() == seed
        found.append(seen)
    assert found[0] == found[1]


@pytest.mark.parametrize("wrong", ["short", "float", "not seeded", "nothing left"])
def test_wrong_states(wrong: str) -> None:
    for m in (torch, tt):
        state = m.Generator().get_state()
        if wrong == "short":
            state = state[:100]
        elif wrong == "float":
            state = state.float()
        else:
            state[{"not seeded": slice(12, 16), "nothing left": slice(8, 12)}[wrong]] = 0
        message = attempt(m.Generator().set_state, state)[1]
        assert message is not None
        if m is torch:
            want = message
        else:
            assert type(message) is type(want) and str(message) == str(want)


def test_draws_are_the_same_with_and_without_a_compiler(monkeypatch: pytest.MonkeyPatch) -> None:
    """The NumPy words of each kernel, beside PyTorch's numbers of 20,000 elements."""
    if SELFTEST:
        pytest.skip("looks into toytorch")
    from toytorch.kernels import mersenne
    from toytorch.loops.runtime import jit

    monkeypatch.setattr(jit, "pays", lambda count: False)
    mersenne.seeded.cache_clear()
    for draw in (
        lambda m: m.rand(20_000),
        lambda m: m.empty(20_000).uniform_(-0.1, 0.7),
        lambda m: m.empty(20_000, dtype=m.float64).uniform_(-0.1, 0.7),
        lambda m: m.randn(20_000),
        lambda m: m.empty(20_000).normal_(0.3, 0.7),
        lambda m: m.randperm(20_000),
        lambda m: m.ones(20_001).bernoulli(0.3),
        lambda m: m.empty(20_000, dtype=m.bool).bernoulli_(0.7),
        lambda m: m.nn.functional.dropout(m.ones(20_000), 0.3),
        lambda m: m.nn.functional.dropout(m.ones(20_000, dtype=m.float64), 0.3),
    ):
        for m in (torch, tt):
            m.manual_seed(77)
        np.testing.assert_array_equal(draw(tt).numpy(), draw(torch).numpy())
    for m in (torch, tt):
        m.manual_seed(77)
    close = tt.randn(20_000, dtype=tt.float64).numpy()
    np.testing.assert_allclose(close, torch.randn(20_000, dtype=torch.float64).numpy(), rtol=1e-13)


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("count", [2, 3, 64, 4099, 30_000])
@pytest.mark.parametrize("type", ["float32", "float64", "int32"])
def test_equal_steps(
    type: str, count: int, compiled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Bit for bit, also the signs of zeros at the ends."""
    if not SELFTEST:
        from toytorch.loops.runtime import jit

        monkeypatch.setattr(jit, "pays", lambda count: compiled and jit.works())
    for ends in ((-1, 0), (0, -1), (0, 1), (-3.7, 1e3), (2.5, 2.5)):
        ours, theirs = (
            m.linspace(*ends, count, dtype=getattr(m, type)).numpy() for m in (tt, torch)
        )
        assert ours.tobytes() == theirs.tobytes()


@pytest.mark.parametrize("count", [5, 30_000])
@pytest.mark.parametrize("type", ["float32", "float64"])
def test_numbers_of_unknown_cost(type: str, count: int) -> None:
    """Counts and gamma numbers, in Python's words (few) and compiled (many), after a kept number."""
    if SELFTEST:
        pytest.skip("looks into toytorch")
    draws: dict[str, Any] = {
        "poisson": lambda m, x: m.poisson(x),
        "binomial": lambda m, x: m.binomial(x, m.full_like(x, 0.3)),
        "gamma": lambda m, x: (
            m._standard_gamma(x)
            if m is torch
            else tt.tensor(tt.default_generator.rng.gamma(x.numpy())).to(x.dtype)
        ),
    }
    for name, draw in draws.items():
        found = []
        for m in (torch, tt):
            m.manual_seed(21)
            m.randn(3)
            x = (m.arange(count) % 47).to(getattr(m, type)) + 0.25
            if name == "binomial":
                x = x.floor()
            found.append((draw(m, x).double().numpy(), m.randn(5).tolist()))
        np.testing.assert_array_equal(found[1][0], found[0][0], name)
        assert found[0][1] == found[1][1]


@pytest.fixture
def fast() -> Iterator[None]:
    if SELFTEST:
        pytest.skip("a setting of toytorch")
    tt.random.set_cpu_generator("pcg64")
    yield
    tt.random.set_cpu_generator("mt19937")


@pytest.mark.usefixtures("fast")
def test_faster_draws() -> None:
    """Other numbers of the same distributions; seeds and states repeat them."""
    assert tt.random.get_cpu_generator() == "pcg64"
    tt.manual_seed(3)
    a, state = tt.rand(1000), tt.get_rng_state()
    b = tt.randn(10_000), tt.nn.functional.dropout(tt.ones(10_000), 0.25)
    tt.set_rng_state(state)
    again = tt.randn(10_000), tt.nn.functional.dropout(tt.ones(10_000), 0.25)
    assert all(tt.equal(x, y) for x, y in zip(b, again))
    torch.manual_seed(3)
    assert a.tolist() != torch.rand(1000).tolist() and 0.45 < a.mean().item() < 0.55
    assert abs(b[0].mean().item()) < 0.05 and abs(b[0].std().item() - 1) < 0.05
    assert abs((b[1] == 0).float().mean().item() - 0.25) < 0.02
    for draw in (
        lambda: tt.randint(-3, 5, (50,)),
        lambda: tt.randperm(50),
        lambda: tt.multinomial(tt.ones(5), 3),
        lambda: tt.empty(50).exponential_().log_normal_().cauchy_().geometric_(0.5),
        lambda: tt.bernoulli(tt.full((50,), 0.5)),
        lambda: tt.poisson(tt.full((50,), 3.0)),
        lambda: tt.binomial(tt.full((50,), 3.0), tt.full((50,), 0.5)),
        lambda: tt.empty(50, dtype=tt.int32).random_(),
    ):
        tt.manual_seed(9)
        one = draw()
        tt.manual_seed(9)
        assert tt.equal(one, draw())
    with pytest.raises(ValueError, match="expects one of mt19937, pcg64"):
        tt.random.set_cpu_generator("best")
