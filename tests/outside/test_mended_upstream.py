"""What PyTorch's own tests found, one short test a cause."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest

from tests.oracle import attempt, torch, tt


def told(what: Callable[[Any], Any], m: Any) -> Any:
    """What a program gives, or the class and the words of its refusal."""
    made, refused = attempt(lambda: what(m))
    if refused is not None:
        return type(refused).__name__, str(refused).replace("toytorch", "torch").strip()
    return made


def same(what: Callable[[Any], Any]) -> None:
    """That both sides give the same, or refuse it with the same words."""
    assert told(what, tt) == told(what, torch)


# -- detached in place -----------------------------------------------------------------------------


def leaf(m: Any) -> Any:
    return m.tensor([1.0, 2.0], dtype=m.float64, requires_grad=True)


def detached_input(m: Any) -> None:
    a = leaf(m).clone()
    b = a.sin()
    a.detach_()
    b.sum().backward()


def detached_and_asked_again(m: Any) -> None:
    a = leaf(m).clone()
    b = a * a
    a.detach_()
    a.requires_grad_()
    b.sum().backward()


def detached_factor(m: Any) -> None:
    a = leaf(m).clone()
    b = m.ones(2, 2, dtype=m.float64, requires_grad=True) @ a
    a.detach_()
    b.sum().backward()


def detached_result(m: Any) -> Any:
    a = leaf(m)
    b = a.exp()
    c = b * 1
    b.detach_()
    c.sum().backward()
    return b._version, type(b._version).__name__, [round(x, 9) for x in a.grad.tolist()]


def detached_twice(m: Any) -> Any:
    a = leaf(m).clone()
    other = a.detach().requires_grad_() * 1
    a.detach_()
    w = leaf(m)
    kept = a * w
    other.detach_()
    kept.sum().backward()
    return w.grad.tolist(), (a.add_(1))._version


def detached_in_a_function(m: Any) -> Any:
    class Square(m.autograd.Function):  # type: ignore[misc, name-defined]
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return 2 * g * ctx.saved_tensors[0]

    x = leaf(m)
    a = x.clone()
    b = Square.apply(a)
    a.detach_()
    b.sum().backward()
    return x.grad.tolist(), a.is_leaf


def shown_after_detaching(m: Any) -> Any:
    a = leaf(m).clone()
    b = a.cos()
    a.detach_()
    return b.grad_fn._saved_self.tolist()


def steps_in_time(m: Any) -> Any:
    x, h = leaf(m), m.zeros(2, dtype=m.float64)
    for _ in range(3):
        h = h * x + 1
        h.sum().backward()
        h.detach_()
    return x.grad.tolist()


@pytest.mark.parametrize(
    "what",
    [
        detached_input,
        detached_and_asked_again,
        detached_factor,
        detached_result,
        detached_twice,
        detached_in_a_function,
        shown_after_detaching,
        steps_in_time,
    ],
)
def test_a_saved_tensor_that_was_detached_in_place(what: Callable[[Any], Any]) -> None:
    same(what)


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


def test_heaviside_asks_for_types_first() -> None:
    kinds = "float32", "float64", "complex64", "complex128"
    for a in kinds:
        for b in kinds:
            for c in kinds:

                def call(m: Any, a: str = a, b: str = b, c: str = c) -> Any:
                    x, y, z = (m.zeros(2, dtype=getattr(m, k)) for k in (a, b, c))
                    return m.heaviside(x, y, out=z).tolist()

                same(call)

            def write(m: Any, a: str = a, b: str = b) -> Any:
                x, y = (m.zeros(2, dtype=getattr(m, k)) for k in (a, b))
                return x.heaviside_(y).tolist()

            same(write)


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
def test_sparse_entries_of_halves_are_summed_with_more_digits(kind: str) -> None:
    values = [1.0] + [2**-9] * 512
    for dense in (False, True):
        x = tt.sparse_coo_tensor(tt.zeros(1, 513, dtype=tt.int64), values, (2,)).to(
            getattr(tt, kind)
        )
        assert (x.to_dense() if dense else x.coalesce().to_dense()).tolist() == [2, 0]


def test_embedding_bag_sums_bfloat16_as_embedding_does() -> None:
    from toytorch.nn.functional import embedding, embedding_bag

    indices = tt.randint(0, 5, (40, 10), generator=tt.Generator().manual_seed(1))
    weights = tt.rand(5, 3, generator=tt.Generator().manual_seed(2)).bfloat16()
    g = tt.randn(40, 3, generator=tt.Generator().manual_seed(3)).bfloat16()
    grads = []
    for sparse in (False, True):
        w = weights.clone().requires_grad_()
        embedding_bag(indices, w, mode="sum", sparse=sparse).backward(g)
        assert w.grad is not None
        grads.append(w.grad.to_dense().tolist())
    w = weights.clone().requires_grad_()
    embedding(indices, w).sum(1).backward(g)
    assert w.grad is not None
    assert grads[0] == grads[1] == w.grad.tolist()


@pytest.mark.parametrize("name", ["igamma", "igammac", "special.zeta"])
def test_words_where_there_is_no_derivative(name: str) -> None:
    def call(m: Any) -> None:
        function = m
        for part in name.split("."):
            function = getattr(function, part)
        function(leaf(m) + 2, leaf(m)).sum().backward()

    same(call)
