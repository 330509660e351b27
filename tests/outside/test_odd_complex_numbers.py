"""Complex numbers that are 0, infinite or NaN."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from tests.outside.alike import alike_for, same, same_or_refused, whats


def test_infinities_of_complex_sums_spread() -> None:
    inf = float("inf")
    for a, b in itertools.product([complex(1, 2), complex(-inf, 1), complex(0, inf)], repeat=2):
        for sign in (1, -1):
            same(lambda m: str(m.add(m.tensor(a), m.tensor(b) * sign)))  # noqa: B023  # called in this turn
            same(lambda m: str(m.tensor([a]).sub_(m.tensor([b]))))  # noqa: B023  # called in this turn


# -- values ----------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore")
def test_means_of_complex_infinities() -> None:
    rng, parts = random.Random(0), (0.0, 1.0, -1.5, math.inf, -math.inf, math.nan)
    for dim in (None, 0, 1):
        for _ in range(30):
            v = [complex(rng.choice(parts), rng.choice(parts)) for _ in range(6)]
            alike_for(lambda m, v, d: m.std_mean(m.tensor(v).reshape(2, 3), d)[1], v, dim)


# -- complex numbers that are 0, infinite or NaN ---------------------------------------------------


PARTS = (0.0, -0.0, 1.0, -1.0, 2.0, -2.5, float("inf"), -float("inf"), float("nan"))


NUMBERS = [complex(a, b) for a in PARTS for b in PARTS]


PAIRS = np.array(list(itertools.product(NUMBERS, NUMBERS)))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.complex64, np.complex128])
@pytest.mark.parametrize(
    "what",
    [
        lambda m, a, b: a**b,
        lambda m, a, b: a.pow_(b),
        lambda m, a, b: a**b.real,
        lambda m, a, b: a.real**b,
        *[lambda m, a, b, e=e: b**e for e in (0, 1, 2, 3, -1, -2, 0.5, -0.5, 2.5, 1j)],
        *[lambda m, a, b, e=e: e**b for e in (0, 2, -1, 1j)],
        *[lambda m, a, b, e=e: e + b for e in (0, 2.5, 1j, float("inf"))],
        *[lambda m, a, b, e=e: e - b for e in (0, 2.5, 1j)],
        *[lambda m, a, b, e=e: e * b for e in (0, 2.5, 1j)],
        *[lambda m, a, b, e=e: b + e for e in (0, 2.5, 1j)],
        lambda m, a, b: b.reciprocal(),
        lambda m, a, b: b.rsqrt(),
        lambda m, a, b: b.square(),
        lambda m, a, b: b.sgn(),
        lambda m, a, b: m.addcmul(a, a, b),
        lambda m, a, b: m.addcdiv(a, a, b),
    ],
)
def test_odd_complex_numbers(what: Callable[..., Any], dtype: Any) -> None:
    a, b = PAIRS.astype(dtype).T
    theirs, ours = (
        what(m, m.from_numpy(a.copy()), m.from_numpy(b.copy())).numpy() for m in (torch, tt)
    )
    assert theirs.dtype == ours.dtype
    np.testing.assert_allclose(ours.real, theirs.real, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(ours.imag, theirs.imag, rtol=1e-5, atol=1e-9)


def test_complex_options_of_real_ops_are_refused() -> None:
    for what in whats(
        lambda m: m.ones(2).addcdiv(m.ones(2), m.ones(2), value=1j),
        lambda m: m.ones(2).addcmul(m.ones(2).long(), m.ones(2), value=1j),
        lambda m: m.ones(2).add(m.ones(2), alpha=1j),
        lambda m: m.rsub(m.ones(2), m.ones(2), alpha=1j),
        lambda m: m.celu(m.ones(2), 1j),
        lambda m: m.nn.functional.leaky_relu(m.ones(2), 1j),
        lambda m: m.ones(2).lerp(m.ones(2), 1j),
    ):
        same_or_refused(what)


# -- values ----------------------------------------------------------------------------------------


INF, NAN = math.inf, math.nan


COMPLEX = [
    complex(-INF, INF), complex(-INF, 1), complex(-INF, NAN), 1.2 + 2.1j, complex(INF, 0),
    complex(INF, 1), complex(INF, INF), complex(NAN, 2), complex(1, NAN), 3 - 2j, 0j, 1e10 + 1e20j,
]  # fmt: skip


@pytest.mark.parametrize("kind", ["complex64", "complex128"])
def test_logcumsumexp_of_complex_numbers_without_end(kind: str) -> None:
    def parts(m: Any, numbers: list[complex]) -> Any:
        made = m.logcumsumexp(m.tensor(numbers, dtype=getattr(m, kind)), 0).tolist()
        return [part for z in made for part in (z.real, z.imag)]

    for a in COMPLEX:
        for b in COMPLEX:
            numbers = [a, b, 0.5 + 0.25j, a]
            assert parts(tt, numbers) == pytest.approx(parts(torch, numbers), nan_ok=True, rel=1e-5)


@pytest.mark.parametrize("came", [1.0, NAN, INF])
@pytest.mark.parametrize("base", [0, 0.0, 0j, 2.0, [0.0], [-0.0], [NAN], [0j]])
def test_gradients_of_exponents_of_nothing(base: Any, came: float) -> None:
    def slopes(m: Any, numbers: Any) -> Any:
        z = m.tensor(numbers).requires_grad_()
        y = (m.tensor(base) if isinstance(base, list) else base) ** z
        (made,) = m.autograd.grad(y, z, m.full_like(y, came))
        return str((made + 0.0).tolist()).replace("-0j", "+0j")

    for numbers in ([0j, 1 + 0j, 1 + 2j], [-1 + 0j, complex(NAN, 0)], [0.0, 1, -1, NAN, INF]):
        same(lambda m: slopes(m, numbers))  # noqa: B023  # called in this turn


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
@pytest.mark.parametrize(
    "what", [lambda m, x: x.reciprocal(), lambda m, x: x**-1, lambda m, x: 2 / x]
)
def test_signs_of_zeros_of_inverses(what: Callable[[Any, Any], Any], dtype: str) -> None:
    """They choose the side of a branch: the root of -2 + 0i is not that of -2 - 0i."""
    for number in NUMBERS:

        def parts(m: Any, number: complex = number) -> str:
            made = what(m, m.tensor([number], dtype=getattr(m, dtype)))
            return str(m.view_as_real(made).tolist())

        same(parts)
