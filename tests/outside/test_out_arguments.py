"""`out=`: what is taken, resized, refused, and how the result lies in it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from tests.outside.alike import What, alike_in_memory, alike_rounded, same, steps, whats


def test_out_keeps_its_memory_when_it_is_resized() -> None:
    def written(m: Any) -> Any:
        x = m.arange(6.0)
        part = x[2:]
        with pytest.warns(UserWarning, match="resized"):
            m.mul(m.ones(2), 7, out=part)
        return x.tolist(), steps(part)

    same(written)


def test_functions_that_write_by_keyword() -> None:
    for name in ("relu_", "exp_", "clamp_min_", "round_", "neg_"):
        more = {"min": 0.5} if "min" in name else {}
        same(lambda m: getattr(m, name)(input=m.tensor([1.5]), **more).tolist())  # noqa: B023  # called in this turn


def ones_leaf(m: Any, *shape: int) -> Any:
    return m.ones(*shape, requires_grad=True)


OUT: list[What] = [
    lambda m: m.eye(3, out=m.zeros(3, 3).bool()),
    lambda m: m.range(0.5, 2.5, out=m.zeros(3).byte()),
    lambda m: m.range(1, 5.5, 1.5, dtype=m.int32),
    lambda m: m.range(0, 2, out=m.zeros(3).bool()),
    lambda m: m.fft.fftfreq(3, out=m.zeros(3).int()),
    lambda m: m.fft.rfftfreq(3, out=m.zeros(3).bool()),
    lambda m: m.softmax(ones_leaf(m, 3), 0, out=m.ones(3)),
    lambda m: m.log_softmax(ones_leaf(m, 3), 0, out=m.ones(3)),
    lambda m: m.conj_physical(ones_leaf(m, 3), out=m.ones(3)),
    lambda m: m.slice_scatter(ones_leaf(m, 3), m.ones(3), out=m.ones(3)),
    lambda m: m.special.ndtr(ones_leaf(m, 3), out=m.ones(3)),
    lambda m: m.special.ndtr(ones_leaf(m, 3), out=m.ones(2)),
    lambda m: m.special.ndtr(m.ones(3), out=ones_leaf(m, 3)),
    lambda m: m.special.ndtr(m.ones(0, 3).long(), out=m.ones(0, 3).long()),
    lambda m: m.bitwise_and(m.ones(2).int(), m.ones(2).int(), out=ones_leaf(m, 2)),
    lambda m: m.bitwise_not(m.ones(2), out=ones_leaf(m, 2)),
    lambda m: m.gcd(m.ones(2).int(), m.ones(2).int(), out=ones_leaf(m, 2)[:]),
    lambda m: m.arange(3.0, out=ones_leaf(m, 3)[:]),
    lambda m: m.ones(2, out=ones_leaf(m, 2) * 1),
    lambda m: m.linspace(ones_leaf(m), 0, steps=3, out=m.ones(3)),
    lambda m: m.logspace(0, ones_leaf(m), steps=3, out=m.ones(3)),
    lambda m: m.tensordot(ones_leaf(m, 2), m.ones(2), 1, out=m.ones(())),
    lambda m: m.linalg.cond(ones_leaf(m, 2, 2) + m.eye(2), out=m.ones(())),
    lambda m: m.linalg.matrix_norm(ones_leaf(m, 2, 2), out=m.ones(2)),
    lambda m: m.nuclear_norm(m.ones(2, 2), out=m.ones(3)),
    *[
        lambda m, f=f: f(m)
        for f in (
            lambda m: m.diff(ones_leaf(m, 3), out=m.ones(2)),
            lambda m: m.kron(ones_leaf(m, 2), m.ones(2), out=m.ones(4)),
            lambda m: m.frobenius_norm(ones_leaf(m, 2, 2), 1, out=m.ones(2)),
            lambda m: m.msort(ones_leaf(m, 2), out=m.ones(2)),
            lambda m: m.nanmean(ones_leaf(m, 2), out=m.ones(())),
            lambda m: m.linalg.vecdot(ones_leaf(m, 2), m.ones(2), out=m.ones(())),
            lambda m: m.cholesky(ones_leaf(m, 1, 1), out=m.ones(1, 1)),
        )
    ],
    lambda m: m.diff(m.tensor([[3, 1, 1]]), out=m.ones(1, 3, dtype=m.int32)),
    lambda m: (
        m.triangular_solve(m.ones(2, 1), 2 * m.eye(2), out=(m.zeros(2, 1), m.zeros(2, 2))).solution
    ),
    lambda m: m.triangular_solve(m.ones(2, 1), m.eye(2), out=(m.zeros(1).double(), m.zeros(2, 2))),
    lambda m: m.triangular_solve(ones_leaf(m, 2, 1), m.eye(2), out=(m.zeros(2, 1), m.zeros(2, 2))),
    lambda m: m.triangular_solve(m.ones(2, 1).double(), m.eye(2)),
    lambda m: m.logsumexp(m.arange(6.0).view(2, 3) + 1j, 0, out=m.empty(3)),
    lambda m: m.logsumexp(m.arange(6.0).view(2, 3) - 1j, (0, 1), True, out=m.empty(1, 1)),
    lambda m: m.logsumexp(m.tensor([3j, 100.0, 1000.0]), 0, out=m.empty(())),
    lambda m: m.logsumexp(m.tensor([2.5j, 1.0]), 0, out=m.empty((), dtype=m.float64)),
    lambda m: m.logsumexp(m.ones(3), 0, out=m.empty((), dtype=m.int64)),
    *[
        lambda m, f=f, n=n, start=start, kind=kind: getattr(m, f)(
            start, 1 + 2j, n, out=m.zeros(0, dtype=getattr(m, kind))
        )
        for f in ("linspace", "logspace")
        for n in (0, 1, 3)
        for start in (1, 1 + 0j, 1 + 2j)
        for kind in ("float32", "int64", "complex64", "bool")
    ],
    lambda m: m.logspace(300, 2, 1, out=m.zeros(0)),
]


def test_an_expanded_out_that_is_copied_to_is_resized() -> None:
    alike_rounded(lambda m: m.special.ndtr(m.ones(1), out=m.zeros(1).expand(5)))


def batch_norm_into(m: Any, training: bool, *out: Any) -> Any:
    x, mean, var = m.tensor([[0.0, 1], [5, 2], [3, 7]]), m.zeros(2), m.ones(2)
    made = m.native_batch_norm(x, None, None, mean, var, training, 0.1, 1e-5, out=out)
    return made, out, all(a is b for a, b in zip(made, out))


OUT += [
    lambda m: batch_norm_into(m, True, m.zeros(0), m.zeros(0), m.zeros(0)),
    lambda m: batch_norm_into(m, False, m.zeros(0), m.zeros(0), m.zeros(0)),
    lambda m: batch_norm_into(m, True, m.zeros(3, 2), m.zeros(2), m.zeros(2).double()),
    lambda m: batch_norm_into(m, True, ones_leaf(m, 3, 2), m.zeros(2), m.zeros(2)),
    lambda m: batch_norm_into(m, True, m.zeros(3, 2), m.zeros(2)),
]
IN_ROWS = whats(
    lambda m, x: m.nan_to_num(x.long(), out=m.empty(0, dtype=m.int64)),
    lambda m, x: m.nan_to_num(x, out=m.empty(0)),
    lambda m, x: m.special.ndtr(x, out=m.empty(0)),
    lambda m, x: m.diff(x, 0, out=m.empty(0)),
    lambda m, x: m.slice_scatter(x, x, out=m.empty(0)),
    lambda m, x: m.cholesky_solve(x, x, out=m.empty(0)),
)


@pytest.mark.parametrize("what", IN_ROWS)
def test_how_an_out_lies_that_is_copied_to(what: Any) -> None:
    for no_grad in (False, True):
        made = []
        for m in (torch, tt):
            with m.set_grad_enabled(not no_grad):
                made.append(what(m, m.arange(16.0).reshape(4, 4).t()).stride())
        assert made[0] == made[1]


@pytest.mark.parametrize("what", OUT)
def test_out(what: What) -> None:
    alike_rounded(what)


@pytest.mark.parametrize(
    "name", ["relu", "isnan", "isinf", "isfinite", "selu", "celu", "select_scatter"]
)
def test_functions_without_out(name: str) -> None:
    for m in (torch, tt):
        args = [m.ones(2, 2), m.ones(2), 0, 0] if "scatter" in name else [m.ones(2, 2)]
        with pytest.raises(TypeError):
            getattr(m, name)(*args, out=m.ones(2, 2))


# -- out= ------------------------------------------------------------------------------------------


ONE = whats(
    lambda m, a, out: m.abs(a, out=out),
    lambda m, a, out: m.maximum(a, a, out=out),
    lambda m, a, out: m.amax(a, 0, out=out),
    lambda m, a, out: m.clamp(a, 0, out=out),
    lambda m, a, out: m.cat([a], out=out),
    lambda m, a, out: m.stack([a], out=out),
    lambda m, a, out: m.linalg.inv(a, out=out),
    lambda m, a, out: m.linalg.det(a, out=out),
    lambda m, a, out: m.fft.fft(a, out=out),
    lambda m, a, out: m.diag(a, out=out),
    lambda m, a, out: m.argsort(a, stable=True, out=out),
    lambda m, a, out: m.linalg.matrix_power(a, 2, out=out),
    lambda m, a, out: m.zeros(3, 3, out=out),
    lambda m, a, out: m.special.ndtr(a, out=out),
)


SEVERAL = whats(
    lambda m, a, out: m.sort(a, out=out),
    lambda m, a, out: m.max(a, 0, out=out),
    lambda m, a, out: m.linalg.eigh(a, out=out),
    lambda m, a, out: m.linalg.slogdet(a, out=out),
    lambda m, a, out: m.linalg.svd(a, out=out),
    lambda m, a, out: m.aminmax(a, out=out),
    lambda m, a, out: m.unbind_copy(a, out=out),
    lambda m, a, out: m.split_with_sizes_copy(a, (1, 2), out=out),
    lambda m, a, out: m.split_with_sizes_copy(a, (1, 1), out=out),
)


@pytest.mark.filterwarnings("ignore:An output with one")
@pytest.mark.parametrize("what", SEVERAL[:6])
def test_the_class_of_named_results_that_out_holds(what: Any) -> None:
    def told(m: Any) -> Any:
        empty = tuple(m.empty(0, dtype=t.dtype) for t in what(m, m.eye(2), None))
        made = what(m, m.eye(2), empty)
        return (
            type(made).__name__,
            repr(made),
            type(made) is getattr(m.return_types, type(made).__name__),
        )

    same(told)


NO_OUT: dict[str, Callable[[Any], Any]] = {
    "a number": lambda m: 1,
    "a tensor": lambda m: m.empty(0),
    "one in a tuple": lambda m: (m.empty(0),),
    "a list": lambda m: [m.empty(0)],
    "None in a tuple": lambda m: (m.empty(0), None),
    "many": lambda m: tuple(m.empty(0) for _ in range(5)),
}


@pytest.mark.parametrize("given", [k for k in NO_OUT if k != "a tensor"])
@pytest.mark.parametrize("what", ONE)
def test_an_out_that_is_no_tensor(what: Any, given: str) -> None:
    alike_in_memory(lambda m: what(m, m.eye(3), NO_OUT[given](m)))


@pytest.mark.parametrize("given", [k for k in NO_OUT if k != "many"])
@pytest.mark.parametrize("what", SEVERAL)
def test_an_out_that_is_not_as_many_tensors(what: Any, given: str) -> None:
    alike_in_memory(lambda m: type(what(m, m.eye(3), NO_OUT[given](m))).__name__)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.abs(m.ones(3, 3), out=m.zeros(1).expand(3)),
        lambda m: m.add(m.ones(3), 1, out=m.zeros(1, 1).expand(3, 3)),
        lambda m: m.gcd(m.ones(3, dtype=m.int64), m.tensor(2), out=m.zeros(1).long().expand(3)),
        lambda m: m.threshold(m.ones(3, 3), 0, 1, out=m.zeros(1).expand(3)),
        lambda m: m.nan_to_num(m.ones(3, 3).long(), out=m.zeros(1).long().expand(3)),
        lambda m: m.zeros(2, 3, out=m.zeros(1, 1).expand(2, 3)),
        lambda m: m.full((2, 3), 4, out=m.zeros(1, 1).expand(2, 3)),
        lambda m: m.hstack([m.ones(2, 2)], out=m.zeros(1).expand(3)),
        lambda m: m.index_select(
            m.ones(3, 6), 1, m.tensor([0, 1]), out=m.zeros(6).expand(2, 6)
        ),  # also where it is to be resized
        lambda m: m.take(m.ones(3, 6), m.tensor([0, 1]), out=m.zeros(1).expand(5)),
        lambda m: m.masked_select(m.ones(3), m.ones(3) > 0, out=m.zeros(1).expand(5)),
        lambda m: m.scatter(m.ones(3), 0, m.tensor([0]), 1.0, out=m.zeros(1).expand(5)),
        lambda m: m.scatter_add(m.ones(3), 0, m.tensor([0]), m.ones(1), out=m.zeros(1).expand(5)),
        lambda m: m.gather(m.ones(3), 0, m.tensor([0]), out=m.zeros(1).expand(5)),
        lambda m: m.cat([m.ones(3)], out=m.zeros(1).expand(3)),
        lambda m: m.stack([m.ones(3)], out=m.zeros(1).expand(3)),
    ),
)
def test_an_out_that_overlaps_itself(what: Any) -> None:
    alike_in_memory(what)


@pytest.mark.parametrize(
    "what",
    whats(
        lambda m: m.bitwise_and(1, m.tensor([3]), out=m.tensor([0])),
        lambda m: m.bitwise_left_shift(1, m.tensor([3]), out=m.tensor([0])),
        lambda m: m.remainder(7, m.tensor([3]), out=m.tensor([0])),
        lambda m: m.pow(2, m.tensor([3.0]), out=m.tensor([0.0])),
        lambda m: m.prod(m.tensor([3.0]), out=m.tensor([0.0])),
        lambda m: m.prod(m.tensor([3.0]), 0, out=m.tensor(0.0)),
        lambda m: m.cat([m.ones(2)], out=m.ones(2, dtype=m.int64)),
        lambda m: m.stack([m.ones(2)], out=m.ones(2, dtype=m.int64)),
        lambda m: m.argsort(m.ones(2), stable=True, out=m.empty(0)),
        lambda m: m.fft.irfft(m.arange(9).reshape(3, 3), dim=-2, out=m.empty(0)),
        lambda m: m.linalg.matrix_power(m.eye(3) * 2, -1, out=m.empty(0)),
        lambda m: m.linalg.tensorinv(m.eye(3) * 2, 1, out=m.empty(0)),
        lambda m: m.fft.fftfreq(1, 0.5, out=m.zeros(1, 1)),
        lambda m: m.histc(m.tensor([3]), out=m.tensor([0.0])),
        lambda m: m.nansum(m.tensor([True])[:0], (), True, out=m.tensor([True])[:0]),
    ),
)
def test_what_out_needs_and_how_it_lies(what: Any) -> None:
    alike_in_memory(what)


def resized_inverse(m: Any, x: Any, y: Any) -> Any:
    made = y.double() * 1
    m.linalg.inv(x, out=made)
    return made


def resized_copy(m: Any, x: Any, y: Any) -> Any:
    made = y.to(m.float64)
    m.alias_copy(x, out=made)
    return made


@pytest.mark.filterwarnings("ignore:An output with one")
@pytest.mark.parametrize("how", ["compile", "trace"])
@pytest.mark.parametrize("what", [resized_inverse, resized_copy])
def test_an_out_of_another_shape_inside_a_compiled_function(what: Any, how: str) -> None:
    """It had the elements of the first call for ever after."""

    def results(m: Any) -> Any:
        def f(x: Any, y: Any) -> Any:
            return what(m, x, y)

        y = m.tensor(1.0)
        if m is tt:
            x = m.eye(2, dtype=m.float64)
            f = m.compile(f) if how == "compile" else m.jit.trace(f, (x, y), check_trace=False)
        made = [f(m.eye(2, dtype=m.float64) * k, y) for k in (1, 2, 4)]
        return [t.tolist() for t in made]

    assert results(tt) == results(torch)


PARTLY: dict[str, Any] = {
    "cumsum": lambda m, a, o: m.cumsum(a, 0, out=o),
    "cumprod": lambda m, a, o: m.cumprod(a, 1, out=o),
    "logcumsumexp": lambda m, a, o: m.logcumsumexp(a, 0, out=o),
    "addmm": lambda m, a, o: m.addmm(a, a, a, out=o),
    "renorm": lambda m, a, o: m.renorm(a, 2, 0, 1.0, out=o),
    "sort": lambda m, a, o: m.sort(a, 0, out=(o, m.empty(4, 4, dtype=m.int64)))[0],
    "topk": lambda m, a, o: m.topk(a, 4, 0, out=(o, m.empty(4, 4, dtype=m.int64)))[0],
}


ALONG: dict[str, Any] = {
    "max": lambda m, a, out: m.max(a, 0, out=out),
    "min": lambda m, a, out: m.min(a, 0, out=out),
    "mode": lambda m, a, out: m.mode(a, 0, out=out),
    "sort": lambda m, a, out: m.sort(a, 0, out=out),
    "topk": lambda m, a, out: m.topk(a, 1, 0, out=out),
    "cumsum": lambda m, a, out: (m.cumsum(a, 0, out=out[0]),),
}


OVER_PART: dict[str, Callable[[Any], Any]] = {
    "a row": lambda m: (lambda x: (x, x[1]))(m.arange(6).view(2, 3)),
    "an element": lambda m: (lambda x: (x, x[1]))(m.arange(3)),
    "the only row": lambda m: (lambda x: (x, x[0]))(m.arange(3).view(1, 3)),
    "grows into it": lambda m: (lambda y: (y[:4].view(2, 2), y[3:3]))(m.arange(9)),
    "grows beside it": lambda m: (lambda y: (y[:4].view(2, 2), y[4:4]))(m.arange(9)),
    "a scalar's row": lambda m: (lambda x: (x, x[None]))(m.tensor(1)),
}


@pytest.mark.filterwarnings("ignore:An output with one")
@pytest.mark.parametrize("place", OVER_PART)
@pytest.mark.parametrize("name", ALONG)
def test_an_out_that_lies_over_part_of_the_operand_once_resized(name: str, place: str) -> None:
    def run(m: Any) -> Any:
        a, out = OVER_PART[place](m)
        made = ALONG[name](m, a, (out, m.empty(0, dtype=m.int64)))
        return [t.tolist() for t in (*made, a)]

    alike_in_memory(run, words=True)


@pytest.mark.parametrize("name", ["max", "min", "mode"])
def test_places_over_part_of_the_operand_are_refused(name: str) -> None:
    def run(m: Any) -> Any:
        x = m.arange(6).view(2, 3)
        return ALONG[name](m, x, (m.empty(0, dtype=m.int64), x[0]))

    alike_in_memory(run, words=True)


@pytest.mark.parametrize("place", ["over", "same", "transposed"])
@pytest.mark.parametrize("name", PARTLY)
def test_an_out_over_part_of_the_operand_is_refused(name: str, place: str) -> None:
    def run(m: Any) -> Any:
        whole = m.arange(20.0).view(5, 4) / 7 - 1
        a = whole[:4]
        out = {"over": whole[1:], "same": a, "transposed": a.t()}[place]
        sums = a.numpy() + a.numpy() @ a.numpy()
        try:
            made = PARTLY[name](m, a, out)
        except RuntimeError as error:
            return str(error)
        if name == "addmm":  # on some processors, PyTorch's product reads what it has written
            assert m is torch or np.allclose(made.numpy(), sums)
            return made is out
        return np.allclose(made.numpy(), whole[:4].numpy()), whole.numpy().round(4).tolist()

    same(run)


OVER: dict[str, Callable[[Any, Any, Any], Any]] = {
    "conj_physical": lambda m, x, out: m.conj_physical(x, out=out),
    "outer": lambda m, x, out: m.outer(x.reshape(-1)[:2], x.reshape(-1)[:3], out=out),
    "addr": lambda m, x, out: m.addr(m.ones(2, 3), x[0, :2], x[0], out=out),
    "normalize": lambda m, x, out: m.nn.functional.normalize(x, dim=0, out=out),
    "nan_to_num": lambda m, x, out: m.nan_to_num(x, out=out),
    "nonzero": lambda m, x, out: m.nonzero(x[0], out=m.zeros(1).long().expand(3, 1)),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("place", ["same", "over", "expanded", "other"])
@pytest.mark.parametrize("name", OVER)
def test_an_out_over_the_operands(name: str, place: str) -> None:
    def run(m: Any) -> Any:
        whole = m.arange(1.0, 11.0)
        x = whole[:6].view(2, 3)
        over, expanded = whole[1:7].view(2, 3), m.zeros(1).expand(2, 3)
        out = {"same": x, "over": over, "expanded": expanded, "other": m.zeros(1, 2)}[place]
        return OVER[name](m, x, out).numpy().round(4).tolist(), whole.tolist()

    alike_in_memory(run, words=True)


COPIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "view": lambda m, x, out: m.view_copy(x, (3, 2), out=out),
    "view of a type": lambda m, x, out: m.view_copy(x, dtype=m.float32, out=out),
    "expand": lambda m, x, out: m.expand_copy(x, (4, 2, 3), out=out),
    "permute": lambda m, x, out: m.permute_copy(x, (1, 0), out=out),
    "unsqueeze": lambda m, x, out: m.unsqueeze_copy(x, 0, out=out),
    "select": lambda m, x, out: m.select_copy(x, 0, 0, out=out),
    "diagonal": lambda m, x, out: m.diagonal_copy(x, out=out),
    "as_strided": lambda m, x, out: m.as_strided_copy(x, (2, 2), (1, 1), out=out),
    "view_as_real": lambda m, x, out: m.view_as_real_copy(x, out=out),
    "alias": lambda m, x, out: m.alias_copy(x, out=out),
    "narrow": lambda m, x, out: m.narrow_copy(x, 0, 0, 1, out=out),
    "split": lambda m, x, out: m.split_copy(x, 1, out=[out, m.ones(7, dtype=out.dtype)]),
    "unbind": lambda m, x, out: m.unbind_copy(x, out=[out, m.ones(7, dtype=out.dtype)]),
    "split_with_sizes": lambda m, x, out: m.split_with_sizes_copy(
        x, (1, 1), out=[out, m.ones(7, dtype=out.dtype)]
    ),
}


def copied_into(m: Any, name: str, kind: str, taken: str, shape: tuple[int, ...]) -> Any:
    x = (m.arange(6).reshape(2, 3) + 1).to(getattr(m, kind))
    out = x if taken == "input" else m.ones(shape, dtype=getattr(m, taken))
    try:
        COPIES[name](m, x, out)
    except RuntimeError as error:
        return str(error), steps(out)
    return out.numpy().tolist(), steps(out)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", COPIES)
def test_out_of_copies_of_views_has_the_shape_also_where_its_type_is_refused(name: str) -> None:
    kinds = ("complex128", "float32", "float64", "int64")
    for kind, taken, shape in itertools.product(
        kinds, (*kinds, "input"), ((5,), (2, 3), (1, 3), (0,))
    ):
        same(partial(copied_into, name=name, kind=kind, taken=taken, shape=shape))


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["fftfreq", "rfftfreq"])
def test_frequencies_are_written_to_places_of_any_shape(name: str) -> None:
    shapes = ((0,), (3,), (4,), (1, 3), (3, 1), (2, 2), (1, 5), (1, 1, 2))
    for n, kind, shape in itertools.product(range(-2, 6), ("float64", "complex64"), shapes):

        def written(m: Any, n: int = n, kind: str = kind, shape: Any = shape) -> Any:
            memory = m.full((20,), 9.0, dtype=getattr(m, kind))
            out = memory[3 : 3 + math.prod(shape)].view(shape)
            try:
                made = getattr(m.fft, name)(n, 0.5, out=out)
            except RuntimeError as error:
                return str(error)
            return made is out, out._version, steps(out), repr(memory.tolist())

        same(written)
