"""What the second generator found last, one short test a cause or a class of causes."""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.test_mended import same

What = Callable[[Any], Any]


def said(what: What) -> None:
    """That both sides give the same, or refuse it with the same class of error."""

    def told(m: Any) -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            made, refused = attempt(lambda: what(m))
        return made if refused is None else type(refused).__name__

    theirs, ours = told(torch), told(tt)
    assert ours == theirs


def whats(*functions: What) -> tuple[What, ...]:
    """Functions, of a type that is known."""
    return functions


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
        said(what)


# -- which refusal comes first ---------------------------------------------------------------------


def test_shapes_are_asked_before_kernels() -> None:
    for what in whats(
        lambda m: m.ones(4) // m.ones(3, dtype=m.complex64),
        lambda m: m.ones(5).long() >> m.ones(3),
        lambda m: m.ones(2) | m.ones(3),
        lambda m: m.ones(2).bool() << m.ones(3),
        lambda m: m.igamma(m.ones(2).bool(), m.ones(3).bool()),
        lambda m: m.special.chebyshev_polynomial_u(
            m.ones(3).half(), m.tensor(2), out=m.ones(1).half().expand(3)
        ),
        lambda m: m.special.chebyshev_polynomial_w(
            -1.5, m.ones(2).bfloat16(), out=m.ones(2).char()
        ),
        lambda m: m.ones(2).long().lerp(m.ones(3).long(), 0.5),
        lambda m: m.ones(2).long().lerp_(m.ones(3).long(), 0.5),
        lambda m: m.ones(2).long().lerp_(m.ones(2).long(), 0.5),
        lambda m: m.ones(2, requires_grad=True).lerp_(True, 0.5),
        lambda m: m.ones(2, requires_grad=True).lerp_(2, 0.5),
    ):
        said(what)


# -- memory and histories --------------------------------------------------------------------------


def test_data_over_the_same_memory_goes_on_counting_with_it() -> None:
    def seen(m: Any) -> Any:
        x = m.ones(3)
        view = x.view_as(x)
        view.data = x.detach()
        x.mul_(2)
        other = m.ones(3)
        part = other[1:]
        part.data = m.zeros(2)
        other.mul_(2)
        return view._version, part._version, part.tolist()

    same(seen)
