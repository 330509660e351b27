"""The same seed gives PyTorch's numbers: every function that draws, sizes, types and layouts.

`TOYTORCH_SEEDS=50` and `TOYTORCH_DRAWS=1000000` widen the run; by default it is a few seeds, and sizes
up to 20,000, the larger ones with a quarter of the seeds (`TOYTORCH_ALL=1`: with all; 54 seeds and
1,000,000 elements take some twenty minutes of one core, so give pytest `-n`). Where bits may differ is
written beside the test.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

SEEDS = [0, 1, 2**32 + 7, 2**63 + 11, *range(100, 100 + int(os.environ.get("TOYTORCH_SEEDS", "0")))]
ALL = bool(os.environ.get("TOYTORCH_ALL"))
MOST = int(os.environ.get("TOYTORCH_DRAWS", "20000"))
SIZES = [n for n in (0, 1, 2, 15, 16, 17, 31, 33, 311, 312, 313, 623, 624, 625, 1249, 5000, 20_000,
                     39_936, 100_001, 1_000_000) if n <= MOST]  # fmt: skip
REALS = ("float32", "float64", "float16", "bfloat16")
LONGEST = {"uint8": 255, "int16": 32_767, "float16": 2049}  # orders that a type has room for
WHOLES = ("uint8", "int8", "int16", "int32", "int64")

LARGE = 20_000  # beyond it, one of the two draws is short

Draw = Callable[[Any, int, Any], Any]


@lru_cache(maxsize=8)  # a million of them take longer than most draws
def chances(m: Any, n: int, type: Any) -> Any:
    """Numbers from 0 to 1 that are no draws."""
    return ((m.arange(n, dtype=m.float64) * 0.37) % 1).to(type)


DRAWS: dict[str, tuple[tuple[str, ...], Draw]] = {
    "rand": (REALS, lambda m, n, t: m.rand(n, dtype=t)),
    "randn": (REALS, lambda m, n, t: m.randn(n, dtype=t)),
    "uniform_": (REALS, lambda m, n, t: m.empty(n, dtype=t).uniform_(-0.3, 1.7)),
    "normal_": (REALS, lambda m, n, t: m.empty(n, dtype=t).normal_(0.3, 1.7)),
    "normal": (("float32",), lambda m, n, t: m.normal(0.3, 1.7, (n,))),
    "normal of means": (REALS, lambda m, n, t: m.normal(chances(m, n, t), 0.5)),
    "normal of deviations": (REALS, lambda m, n, t: m.normal(0.5, chances(m, n, t))),
    "normal of both": (
        REALS,
        lambda m, n, t: m.normal(chances(m, n, t), chances(m, n, t) * 2),
    ),
    "complex rand": (("complex64", "complex128"), lambda m, n, t: m.rand(n, dtype=t)),
    "complex randn": (("complex64", "complex128"), lambda m, n, t: m.randn(n, dtype=t)),
    "randint": ((*WHOLES, *REALS), lambda m, n, t: m.randint(1, 100, (n,), dtype=t)),
    "wide randint": (("int64",), lambda m, n, t: m.randint(-(2**40), 2**41, (n,))),
    "randint of 2**28": (("int64",), lambda m, n, t: m.randint(2**28, (n,))),
    "randint of 2**28 - 1": (("int64",), lambda m, n, t: m.randint(2**28 - 1, (n,))),
    "random_": ((*WHOLES, *REALS, "bool"), lambda m, n, t: m.empty(n, dtype=t).random_()),
    "random_ below": ((*WHOLES, *REALS), lambda m, n, t: m.empty(n, dtype=t).random_(77)),
    "random_ between": (
        ("float16", "float32", "int32"),
        lambda m, n, t: m.empty(n, dtype=t).random_(-700, 2000),
    ),
    "randperm": (
        ("int64", "int32", "float32", "float64", "int16", "uint8", "float16", "bfloat16"),
        lambda m, n, t: m.randperm(min(n, LONGEST.get(str(t).split(".")[1], n)), dtype=t),
    ),
    "bernoulli": (REALS, lambda m, n, t: m.bernoulli(chances(m, n, t))),
    "bernoulli p": (REALS, lambda m, n, t: m.bernoulli(m.ones(n, dtype=t), 0.3)),
    "bernoulli_": ((*REALS, *WHOLES, "bool"), lambda m, n, t: m.ones(n, dtype=t).bernoulli_(0.6)),
    "bernoulli_ of float64": (
        ("float32", "int64"),
        lambda m, n, t: m.ones(n, dtype=t).bernoulli_(chances(m, n, m.float64)),
    ),
    "exponential_": (REALS, lambda m, n, t: m.empty(n, dtype=t).exponential_(1.3)),
    "geometric_": ((*REALS, "int64"), lambda m, n, t: m.empty(n, dtype=t).geometric_(0.3)),
    "cauchy_": (REALS, lambda m, n, t: m.empty(n, dtype=t).cauchy_(0.5, 2.0)),
    "log_normal_": (REALS, lambda m, n, t: m.empty(n, dtype=t).log_normal_(0.2, 0.5)),
    "dropout": (REALS, lambda m, n, t: m.nn.functional.dropout(m.ones(n, dtype=t), 0.3)),
    "alpha_dropout": (
        REALS[:2],
        lambda m, n, t: m.nn.functional.alpha_dropout(m.ones(n, dtype=t), 0.3),
    ),
    "feature_dropout": (
        REALS[:2],
        lambda m, n, t: m.nn.functional.dropout1d(m.ones(n, 3, 2, dtype=t), 0.3),
    ),
    "feature_alpha_dropout": (
        REALS[:2],
        lambda m, n, t: m.nn.functional.feature_alpha_dropout(m.ones(n, 3, 2, dtype=t), 0.3),
    ),
    "rrelu": (
        REALS[:2],
        lambda m, n, t: m.nn.functional.rrelu(chances(m, n, t) - 0.5, training=True),
    ),
}
SOME: dict[str, Draw] = {  # of few elements, because they take long or cannot be empty
    "multinomial": lambda m, n, t: m.multinomial(chances(m, n + 1, t) + 0.1, 2 * n + 2, True),
    "multinomial rows": lambda m, n, t: m.multinomial(chances(m, 3 * n + 3, t).view(3, -1) + 0.1,
                                                      5, True),
    "multinomial once": lambda m, n, t: m.multinomial(chances(m, n + 1, t) + 0.1, 1, True),
    "multinomial without": lambda m, n, t: m.multinomial(chances(m, n + 1, t) + 0.1, n // 2 + 1),
    "poisson": lambda m, n, t: m.poisson(chances(m, n, t) * 9),
    "poisson of many": lambda m, n, t: m.poisson(chances(m, n, t) * 90),
    "binomial": lambda m, n, t: m.binomial(m.arange(n).to(t) % 17, chances(m, n, t)),
    "binomial of many": lambda m, n, t: m.binomial(m.arange(n).to(t), chances(m, n, t)),
}  # fmt: skip


FEW = [n for n in (5000, 100_000) if n < MOST]
REFUSED = """
m.empty(3, dtype=t).uniform_()
m.empty(3, dtype=t).normal_()
m.empty(3, dtype=t).exponential_()
m.empty(3, dtype=t).cauchy_()
m.empty(3, dtype=t).log_normal_()
m.empty(3, dtype=t).geometric_(0.5)
m.empty(3, dtype=t).random_()
m.empty(3, dtype=t).random_(1)
m.empty(3, dtype=t).bernoulli_(0.5)
m.empty(3, dtype=t).bernoulli_(m.ones(3))
m.randperm(3, dtype=t)
m.randperm(300, dtype=t)
m.randperm(40_000, dtype=t)
m.randint(2**63, (3,), dtype=t)
m.multinomial(m.ones(3, dtype=t), 1)
m.multinomial(m.ones(0, 3, dtype=t), 2, True)
m.normal(m.zeros(3, dtype=t), 1.0)
m.normal(0.0, m.ones(3, dtype=m.float16 if "uint" in str(t) else t))
m.poisson(m.ones(3, dtype=t))
m.binomial(m.ones(3, dtype=t), m.ones(3, dtype=t))
m.binomial(m.ones(3), m.ones(3, dtype=m.float32 if t.is_floating_point else t))
m.bernoulli(m.full((3,), 2, dtype=t))
m.nn.functional.rrelu(m.zeros(3, dtype=t), training=True)
m._standard_gamma(m.ones(3, dtype=t))
""".strip().splitlines()


def bits(t: Any) -> Any:
    """The elements, in a form whose equality is that of numbers (and of NaN with NaN)."""
    if t.is_complex():
        t = (torch if isinstance(t, torch.Tensor) else tt).view_as_real(t)
    return (t.float() if str(t.dtype).endswith("bfloat16") else t).detach().numpy()


def same(draw: Callable[..., Any], seed: int, *sizes: int, ties: bool = False) -> None:
    """Two draws in a row, of these sizes if there are some, and one number after them."""
    turns = [(n,) for n in sizes] or [(), ()]
    results = []
    for m in (torch, tt):
        m.manual_seed(seed)
        made = [draw(m, *turn) for turn in turns]
        results.append([*map(bits, made), m.rand(1).item(), str(made[0].dtype).split(".")[1]])
    for want, got in zip(*results):
        if ties and isinstance(got, np.ndarray):
            got = but_for_ties(want, got)
        if not np.array_equal(got, want):  # which is NaN's business, or an error to be shown
            np.testing.assert_array_equal(got, want)


def but_for_ties(want: Any, got: Any) -> Any:
    """What was drawn, but for neighbours in PyTorch's order: of equal keys its sort, which is not
    stable, takes the later one first now and then."""
    got, want = got.copy(), np.asarray(want)
    if got.shape == want.shape and got.ndim == 1:
        (at,) = (got != want).nonzero()
        for i in at[:-1]:
            if (got[i], got[i + 1]) == (want[i + 1], want[i]):
                got[i], got[i + 1] = want[i], want[i + 1]
    return got


def turns(n: int, seed: int) -> tuple[int, int]:
    """The sizes of two draws: a long one from the seed's own state, or from one in its midst."""
    return (n, n) if n <= LARGE else (n, 33) if seed % 2 else (33, n)


@pytest.mark.parametrize(
    ("label", "name"), [(label, name) for label, (names, _) in DRAWS.items() for name in names]
)
def test_elements(label: str, name: str) -> None:
    draw = DRAWS[label][1]
    for i, n in enumerate(SIZES):
        for seed in SEEDS if n <= 2000 or ALL else SEEDS[i % 4 :: 4]:
            same(lambda m, n: draw(m, n, getattr(m, name)), seed, *turns(n, seed))


@pytest.mark.parametrize("name", REALS[:2])
@pytest.mark.parametrize("label", SOME)
def test_few_elements(label: str, name: str) -> None:
    for n in (0, 1, 2, 15, 16, 100, 700, *FEW):
        for seed in SEEDS:
            same(
                lambda m, n: SOME[label](m, n, getattr(m, name)),
                seed,
                *turns(n, seed),
                ties=label == "multinomial without",  # of the largest keys, which are drawn
            )


SHORT: list[Callable[[Any, int], Any]] = [
    lambda m, n: m.rand(n),
    lambda m, n: m.rand(n, dtype=m.float64),
    lambda m, n: m.randn(n),
    lambda m, n: m.randint(9, (n,)),
    lambda m, n: m.empty(n).uniform_(-2, 5),
    lambda m, n: m.empty(n).exponential_(3),
    lambda m, n: m.bernoulli(m.full((n,), 0.3)),
    lambda m, n: m.empty(n).bernoulli_(0.3),
    lambda m, n: m.randperm(n),
]


@pytest.mark.parametrize("seed", range(20))
def test_short_draws_one_after_the_other(seed: int) -> None:
    """Of several kinds, over many blocks of the stream; states are saved and come back in between."""
    plan = np.random.default_rng(seed)
    steps = [(int(plan.integers(12)), int(plan.integers(40))) for _ in range(400)]

    def all_of(m: Any) -> list[Any]:
        m.manual_seed(seed)
        made, states = [], [m.get_rng_state()]
        for kind, n in steps:
            if kind < len(SHORT):
                made.append(SHORT[kind](m, n).double().numpy())
            elif kind == len(SHORT):
                states.append(m.get_rng_state())
            elif kind > len(SHORT) + 1:
                m.set_rng_state(states[n % len(states)])
        return made

    for got, want in zip(all_of(tt), all_of(torch), strict=True):
        np.testing.assert_allclose(got, want, rtol=3e-7)


LAYOUTS: dict[str, Callable[[Any, Any], Any]] = {
    "transposed": lambda m, t: m.empty(7, 40, dtype=t).t(),
    "moved": lambda m, t: m.empty(3, 4, 5, 6, dtype=t).permute(2, 0, 3, 1),
    "channels_last": lambda m, t: m.empty(2, 3, 4, 5, dtype=t).to(memory_format=m.channels_last),
    "every second": lambda m, t: m.empty(50, 4, dtype=t)[::2, ::2],
    "a column": lambda m, t: m.empty(50, 4, dtype=t)[:, 1],
    "few": lambda m, t: m.empty(3, 4, dtype=t).t(),
    "0-d": lambda m, t: m.empty((), dtype=t),
}
FILLS: dict[str, Draw] = {
    "uniform_": lambda m, x, t: x.uniform_(1, 3),
    "normal_": lambda m, x, t: x.normal_(1, 3),
    "random_": lambda m, x, t: x.random_(50),
    "bernoulli_": lambda m, x, t: x.bernoulli_(0.4),
    "bernoulli_ of chances": lambda m, x, t: x.bernoulli_(
        chances(m, x.numel(), t).view(x.shape[::-1]).permute(tuple(range(x.dim()))[::-1])
    ),
    "exponential_": lambda m, x, t: x.exponential_(),
    "log_normal_": lambda m, x, t: x.log_normal_(),
    "rand_like": lambda m, x, t: m.rand_like(x),
    "randn_like": lambda m, x, t: m.randn_like(x),
    "randint_like": lambda m, x, t: m.randint_like(x, 9),
    "contiguous randn_like": lambda m, x, t: m.randn_like(x, memory_format=m.contiguous_format),
    "bernoulli": lambda m, x, t: m.bernoulli(x.fill_(0.5)),
    "dropout": lambda m, x, t: m.nn.functional.dropout(x.fill_(1.0), 0.5),
    "poisson": lambda m, x, t: m.poisson(x.fill_(3.0)),
    "rand out": lambda m, x, t: m.rand(x.shape, out=x),
    "randn out": lambda m, x, t: m.randn(x.shape, out=x),
}


@pytest.mark.parametrize("fill", FILLS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_layouts(layout: str, fill: str) -> None:
    """Elements are drawn in the order of memory, and results lie in memory as PyTorch's do."""
    for name in ("float32", "float64", "bfloat16") if fill != "poisson" else REALS[:2]:

        def draw(m: Any, name: str = name) -> Any:
            t = getattr(m, name)
            return FILLS[fill](m, LAYOUTS[layout](m, t), t)

        for seed in SEEDS[:3]:
            same(draw, seed)
        assert draw(tt).stride() == draw(torch).stride()


@pytest.mark.filterwarnings("ignore:.*is out of bounds")
def test_limits_of_integers() -> None:
    """Limits that a type cannot hold are moved inwards, or refused."""
    for name in (*REALS, *WHOLES):
        for low, high in [(-5, 7), (0, 2049), (-70_000, 70_000), (2048, 2051), (0, 2**24 + 1),
                          (0, 300), (-1, 1), (-(2**62), 2**62), (255, 257)]:  # fmt: skip
            found = []
            for m in (torch, tt):
                m.manual_seed(5)
                try:
                    x = m.empty(50, dtype=getattr(m, name))
                    found.append(bits(x.random_(low, high)).tolist())
                except RuntimeError as error:
                    found.append(str(error).split("\n")[0])
            assert found[0] == found[1], (name, low, high)


@pytest.mark.parametrize("program", REFUSED)
def test_types(program: str) -> None:
    """Each type is taken or refused as in PyTorch, in its words; of integers all bits are drawn."""
    for name in (*REALS, *WHOLES, "bool", "complex64", "complex128", "uint16", "uint32", "uint64"):
        found = []
        for m in (torch, tt):
            m.manual_seed(8)
            try:
                x = eval(program, {"m": m, "t": getattr(m, name)})
                found.append((bits(x.long() if "uint" in name else x).tolist(), m.rand(1).item()))
            except (RuntimeError, TypeError, ValueError) as error:
                found.append((type(error).__name__, str(error).split("\n")[0]))
        assert found[0] == found[1], name


def test_all_bits_of_integers() -> None:
    for low in (-(2**63), -(2**62), 0, 5):
        same(lambda m, low=low: m.empty(40, dtype=m.int64).random_(low, None), 3)


@pytest.mark.parametrize("name", ["linspace", "logspace"])
def test_equal_distances(name: str) -> None:
    """Not drawn, but what draws are often made of: with the roundings of PyTorch's order."""
    for type in (*REALS, "int64", "int32") if name == "linspace" else REALS[:1]:
        for ends in [(-1, 1), (0.1, 5), (0, 1), (-3.3, 7.7), (1, 0), (0.3, 0.3), (2, 9.7)]:
            for n in (0, 1, 2, 3, 50, 101, 1000):
                want, got = (
                    bits(getattr(m, name)(*ends, n, dtype=getattr(m, type))) for m in (torch, tt)
                )
                np.testing.assert_array_equal(got, want)
