"""Samples of random ops: for shapes and dtypes; `test_random.py` looks at distributions."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.ops.samples.base import Sample, V, const, entry, f32, f64, i32, i64, t


def _shapes() -> Iterator[Sample]:
    yield V(3)
    yield V(2, 3)
    yield V((2, 3))
    yield V(())
    yield V(0, 3)
    yield V((2,), dtype=f64)
    yield V(size=(2, 2))
    yield V(2, requires_grad=True)


entry("rand", _shapes, values=False)
entry("randn", _shapes, values=False)


def _randint() -> Iterator[Sample]:
    yield V(5, (2, 3))
    yield V(-2, 5, (4,))
    yield V(5, ())
    yield V(5, (2,), dtype=i32)
    yield V(5, (2,), dtype=f32)
    yield V(low=1, high=3, size=(2,))


entry("randint", _randint, values=False)
entry("randperm", lambda: iter([V(5), V(0), V(4, dtype=i32)]), values=False)


def _normal() -> Iterator[Sample]:
    yield V(0.0, 1.0, (2, 3))
    yield V(t((3,)), 2.0)
    yield V(1.0, t((3,), f64, 0.1, 1))
    yield V(t((2, 1)), t((3,), f64, 0.1, 1))


entry("normal", _normal, values=False, forms=False, covers=("normal.tensors",))


def _bernoulli() -> Iterator[Sample]:
    yield V(t((3, 4), f64, 0.1, 0.9))
    yield V(t((3, 4), f32, 0.1, 0.9), 0.3)


entry("bernoulli", _bernoulli, values=False, covers=("bernoulli.chances",))


def _multinomial() -> Iterator[Sample]:
    yield V(t((4,), f64, 0.1, 1), 2)
    yield V(t((3, 4), f64, 0.1, 1), 6, True)
    yield V(t((3, 4), f32, 0.1, 1), 4)


entry("multinomial", _multinomial, values=False)
entry("poisson", lambda: iter([V(t((3, 4), f64, 0.1, 4))]), values=False)


def _binomial() -> Iterator[Sample]:
    yield V(const([0.0, 5.0, 9.0]), const([0.5, 0.2, 1.0]))
    yield V(t((3, 4), f32, 1, 9).floor(), t((4,), f32, 0.1, 0.9))


entry("binomial", _binomial, values=False)


def _gamma() -> Iterator[Sample]:
    yield V(t((3, 4), f64, 0.1, 4))
    yield V(t((3, 4), f32, 0.1, 4))
    yield V(t((0, 2)))


def _gamma_grad() -> Iterator[Sample]:
    for d in (f64, f32):
        yield V(t((3, 4), d, 0.1, 20), t((3, 4), d, 0.1, 20))


def _dirichlet_grad() -> Iterator[Sample]:
    for d in (f64, f32):
        yield V(t((3, 4), d, 0.1, 0.9), t((3, 4), d, 0.1, 5), t((3, 4), d, 6, 20))


entry("_standard_gamma", _gamma, values=False)
entry("_sample_dirichlet", _gamma, values=False)
entry("_standard_gamma_grad", _gamma_grad, values=False)  # PyTorch's has three digits
entry("_dirichlet_grad", _dirichlet_grad, values=False)


def _on_a_copy(method: Any) -> Any:
    return lambda x, *a: method(x.clone(), *a)


def _filled(*args: float) -> object:
    def draw() -> Iterator[Sample]:
        yield V(t((3, 4)), *args)
        yield V(t((3, 4), f32), *args)
        yield V(t((0, 2)), *args)

    return draw


for _name, _args in (
    ("uniform_", (0.0, 2.0)), ("normal_", (1.0, 2.0)), ("exponential_", (2.0,)), ("cauchy_", ()),
    ("log_normal_", ()), ("geometric_", (0.3,)), ("bernoulli_", (0.3,)), ("random_", (5,)),
):  # fmt: skip
    for _spelled in (_name, _name[:-1]):
        if _spelled not in ("normal", "bernoulli"):
            entry(_spelled, _filled(*_args), values=False, forms=False,  # type: ignore[arg-type]
                  call=lambda side, n=_name: _on_a_copy(getattr(side.Tensor, n)))  # fmt: skip


def _dropout() -> Iterator[Sample]:
    yield V(t((3, 4)), 0.5, True)
    yield V(t((3, 4)), 0.5, False)
    yield V(t((3, 4)), p=0.0)


entry("dropout", _dropout, values=False, call=lambda side: side.root.nn.functional.dropout)
assert i64
