"""Types of results, and numbers beside tensors of other types."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt
from tests.outside.alike import (
    alike,
    alike_in_memory,
    alike_rounded,
    same,
    same_or_refused,
    same_words,
    whats,
)


def test_truth_values_are_not_rounded() -> None:
    for name in ("abs", "floor", "ceil", "trunc", "round", "frac"):
        same(lambda m: repr(attempt(lambda: getattr(m.tensor([True]), name)())[1]))  # noqa: B023  # called in this turn


COMPLEX = (1j, 1.0, "real", "complex")


@pytest.mark.parametrize("name", ["clamp", "clamp_min", "clamp_max", "clip"])
@pytest.mark.parametrize("kind", ["complex64", "float32", "int64", "bool"])
def test_limits_of_other_kinds(name: str, kind: str) -> None:
    def limited(m: Any, limit: Any) -> Any:
        if isinstance(limit, str):
            limit = m.ones(2).cfloat() if limit == "complex" else m.ones(2)
        return getattr(m, name)(m.ones(2).to(getattr(m, kind)), limit).is_complex()

    for limit in (*COMPLEX, True):
        alike_rounded(lambda m, limit=limit: limited(m, limit))
    alike_rounded(lambda m: m.ones(2).bool().clamp(True, True))
    alike_rounded(lambda m: m.ones(2).bool().clamp(m.tensor(True), m.tensor(True)))
    alike_rounded(lambda m: m.nn.functional.hardtanh(m.ones(2).cfloat()))
    alike_rounded(lambda m: m.nn.functional.hardtanh(m.ones(2).bool()))
    alike_rounded(lambda m: m.threshold(m.ones(2).cfloat(), 2, 1))
    alike_rounded(lambda m: m.threshold(m.ones(2) > 0, 2, 1))


def test_powers_of_tensors_without_dimensions_are_no_numbers() -> None:
    for what in (
        lambda m: m.tensor(0j) ** m.tensor(0j),
        lambda m: m.zeros(3).cfloat() ** m.tensor(0),
        lambda m: m.float_power(m.tensor(0j), m.tensor(0j)),
        lambda m: m.pow(0j, m.tensor(0j)),
        lambda m: m.tensor([2j]) ** 2,
        lambda m: m.tensor(0j) ** 0,
    ):
        want, got = (m.view_as_real(what(m)).numpy() for m in (torch, tt))
        np.testing.assert_array_equal(got, want)


INF, NAN = float("inf"), float("nan")


# -- numbers beside tensors of few bits ------------------------------------------------------------


@pytest.mark.parametrize("number", [-1, 300, -300, 40000, NAN, INF])
@pytest.mark.parametrize("dtype", ["uint8", "int8", "int16", "int64"])
@pytest.mark.parametrize(
    "what",
    whats(
        lambda m, x, n: m.add(x, x, alpha=n),
        lambda m, x, n: m.addcmul(x, x, x, value=n),
        lambda m, x, n: m.threshold(x, 0, n),
        lambda m, x, n: m.addmm(x[None], x[None], x[:, None], beta=n),
        lambda m, x, n: m.addmm(x[None], x[None], x[:, None], alpha=n),
        lambda m, x, n: m.baddbmm(x[None, None], x[None, None], x[None, None], beta=n),
        lambda m, x, n: m.full((1,), n, dtype=x.dtype),
        lambda m, x, n: x.new_full((1,), n),
    ),
)
def test_a_number_that_does_not_fit(what: Any, dtype: str, number: Any) -> None:
    alike_in_memory(lambda m: what(m, m.tensor([3], dtype=getattr(m, dtype)), number), words=True)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.add(m.tensor([1, 2]), 3, 0.5),
        lambda m: m.add(m.tensor([1, 2]), 0.5, 3),
        lambda m: m.sub(m.tensor([1, 2]), 3, 0.5),
        lambda m: m.tensor([True]).add(3, 0.0),
        lambda m: m.tensor([1.5]).add_(2, 3),
        lambda m: m.rsub(m.tensor(-2), 2.0, 2.5),
    ),
)
def test_two_numbers_by_position(what: Any) -> None:
    alike_in_memory(what)


KINDS = ("bool", "int32", "float16", "bfloat16", "float32", "complex64")


@pytest.mark.parametrize("form", ["function", "in place", "scaled"])
@pytest.mark.parametrize("kind", KINDS)
def test_types_of_outer_products_that_are_added(kind: str, form: str) -> None:
    for first, second in itertools.product(KINDS, KINDS):

        def made(m: Any, first: str = first, second: str = second) -> Any:
            x = m.ones(2, 3).to(getattr(m, kind))
            v = m.tensor([1.5, 2.7]).to(getattr(m, first))
            w = m.tensor([1.3, 2.7, -1.1]).to(getattr(m, second))
            if form == "in place":
                return x.addr_(v, w)
            return m.addr(x, v, w) if form == "function" else m.addr(x, v, w, beta=2, alpha=3)

        alike_in_memory(made, words=True)


@pytest.mark.parametrize("weight", [None, "float32", "bfloat16"])
@pytest.mark.parametrize("kind", ["float32", "bfloat16"])
def test_types_of_running_statistics(kind: str, weight: str | None) -> None:
    for first, second in itertools.product(("float32", "float64", "int64", "complex64"), repeat=2):

        def made(m: Any, first: str = first, second: str = second) -> Any:
            x = m.arange(24.0).reshape(2, 3, 4).to(getattr(m, kind))
            mean, var = (m.arange(1, 4).to(getattr(m, name)) for name in (first, second))
            scale = None if weight is None else m.ones(3, dtype=getattr(m, weight))
            made = m.nn.functional.instance_norm(x, mean, var, scale, scale)
            return str(made.dtype)[-8:], *(
                v.to(m.complex64).real.round(decimals=2) for v in (mean, var)
            )

        alike(made)


# -- types and numbers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["binary_cross_entropy_with_logits", "soft_margin_loss", "huber_loss", "kl_div"]
)
def test_types_of_losses(name: str) -> None:
    kinds = ("float32", "float64", "float16", "bfloat16", "int64", "bool", "complex64")
    for a in kinds:
        for b in kinds:
            same_or_refused(
                lambda m: str(
                    getattr(m.nn.functional, name)(
                        m.tensor([1.5, -0.5]).to(getattr(m, a)),  # noqa: B023  # called in this turn
                        m.tensor([1.0, 0.0]).to(getattr(m, b)),  # noqa: B023  # called in this turn
                        reduction="none",
                    ).dtype
                ).rpartition(".")[2]
            )


def test_complex_numbers_as_truth_values() -> None:
    z = [0j, 1j, 1 + 0j, complex(0, float("nan")), complex(-0.0, 1)]
    for turn in whats(
        lambda m, x: x.bool(),
        lambda m, x: m.zeros(5, dtype=m.bool).copy_(x),
        lambda m, x: m.asarray(x, dtype=m.bool),
    ):
        same(lambda m: turn(m, m.tensor(z)).tolist())  # noqa: B023  # called in this turn


UNARY = (
    "special.airy_ai special.bessel_j0 special.entr special.erfcx special.i0e special.log_ndtr digamma erf "
    "erfinv frac lgamma round signbit special.ndtri bitwise_not special.modified_bessel_k0"
)


BINARY = (
    "hypot igamma logaddexp logaddexp2 remainder fmod bitwise_left_shift xlogy special.zeta "
    "special.hermite_polynomial_h special.xlog1py"
)


@pytest.mark.parametrize("name", (UNARY + " " + BINARY).split())
def test_kernels_have_the_types_that_pytorchs_have(name: str) -> None:
    for kind in ("float32", "float16", "bfloat16", "int64", "uint8", "bool", "complex64"):

        def made(m: Any) -> Any:
            f, x = m, m.ones(2).to(getattr(m, kind))  # noqa: B023  # called in this turn
            for part in name.split("."):
                f = getattr(f, part)
            return str(f(*[x] * (1 + (name in BINARY.split()))).dtype).rpartition(".")[2]

        same_or_refused(made)


# -- values ----------------------------------------------------------------------------------------


def test_heaviside_asks_for_types_first() -> None:
    kinds = "float32", "float64", "complex64", "complex128"
    for a in kinds:
        for b in kinds:
            for c in kinds:

                def call(m: Any, a: str = a, b: str = b, c: str = c) -> Any:
                    x, y, z = (m.zeros(2, dtype=getattr(m, k)) for k in (a, b, c))
                    return m.heaviside(x, y, out=z).tolist()

                same_words(call)

            def write(m: Any, a: str = a, b: str = b) -> Any:
                x, y = (m.zeros(2, dtype=getattr(m, k)) for k in (a, b))
                return x.heaviside_(y).tolist()

            same_words(write)


# -- a bias of another type ------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore:.*torch.jit.*deprecated")
@pytest.mark.parametrize(
    "kinds", [("float64", "float16"), ("float32", "int64"), ("int64", "float32")]
)
@pytest.mark.parametrize("bias", [(5,), (1,), ()])
@pytest.mark.parametrize("shape", [(4,), (3, 4), (2, 3, 4), (1, 2, 3, 4)])
@pytest.mark.parametrize("turned", [False, True])
def test_bias_of_another_type(
    shape: tuple[int, ...], bias: tuple[int, ...], kinds: tuple[str, str], turned: bool
) -> None:
    def what(m: Any) -> Any:
        kind, other = (getattr(m, k) for k in kinds)
        x = m.ones(shape).to(kind)
        x = x.transpose(0, 1).contiguous().transpose(0, 1) if turned and x.ndim > 1 else x
        y = m.nn.functional.linear(x, m.ones(5, 4).to(kind), m.ones(bias).to(other))
        return str(y.dtype).rsplit(".", 1)[-1], y.tolist()

    same_words(what)


@pytest.mark.parametrize("name", ["native_layer_norm", "native_group_norm", "native_batch_norm"])
def test_statistics_beside_parameters_of_another_type(name: str) -> None:
    kinds = (None, "float32", "bfloat16", "float16", "float64")
    for kind, weight, bias in itertools.product(kinds[1:], kinds, kinds):

        def told(m: Any, case: Any = (kind, weight, bias)) -> Any:
            kind, *others = case
            x = m.arange(12.0).reshape(2, 2, 3).sin().to(getattr(m, kind))
            size = 3 if name == "native_layer_norm" else 2
            given = [k and m.ones(size, dtype=getattr(m, k)) for k in others]
            more: Any = {
                "native_layer_norm": lambda: ((3,), *given, 0.0),
                "native_group_norm": lambda: (*given, 2, 2, 3, 1, 0.0),
                "native_batch_norm": lambda: (*given, None, None, True, 0.1, 0.0),
            }[name]()
            try:
                made = getattr(m, name)(x, *more)
            except Exception as e:
                return type(e).__name__
            return [
                (str(t.dtype).rpartition(".")[2], t.double().round(decimals=3).tolist())
                for t in made[1:]
            ]

        assert told(tt) == told(torch), (kind, weight, bias)
