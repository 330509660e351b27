"""Each entry of PyTorch's database, compiled with the numbers of one sample and called
with others: what was computed on the way must not have become a constant."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST, leaves, tt

if SELFTEST:
    pytest.skip("compares toytorch with itself", allow_module_level=True)

from tests.ops.layout_check import carried, entries, samples

MOST = int(os.environ.get("TOYTORCH_SAMPLES", "1"))  # samples of each entry that tell a difference
LOOKED_AT = 12 * MOST
ENTRIES = {name: (info, function) for name, info, function in entries()}
RANDOM = {  # these draw, so two calls differ
    "bernoulli", "cauchy", "empty", "exponential", "fractional", "geometric", "gumbel", "dropout",
    "log_normal", "multinomial", "normal", "poisson", "rand", "rrelu", "uniform",
}  # fmt: skip


def tensors(x: Any) -> list[Any]:
    return [v for v in leaves(x) if isinstance(v, tt.Tensor)]


def put(x: Any, values: Iterator[Any]) -> Any:
    """The nested value with other tensors in the places of its own."""
    if isinstance(x, tt.Tensor):
        return next(values)
    if type(x) in (list, tuple):
        return type(x)(put(v, values) for v in x)
    return {k: put(v, values) for k, v in x.items()} if type(x) is dict else x


def turned(t: Any) -> Any:
    """The same numbers in another order along the first dimension; of one floating number, less."""
    a = t.numpy()
    if a.ndim and len(a) > 1:
        return tt.from_numpy(np.ascontiguousarray(a[::-1]))
    return t * 0.7 if t.dtype.is_floating_point or t.dtype.is_complex else t.clone()


def plain(results: Any) -> list[Any]:
    made = [t.detach() for t in tensors(results)]
    return [
        (t.to_dense() if t.layout is not tt.strided else t).resolve_conj().numpy() for t in made
    ]


def alike(a: list[Any], b: list[Any]) -> bool:
    return len(a) == len(b) and all(
        x.shape == y.shape
        and x.dtype == y.dtype
        and (
            np.allclose(x, y, 1e-3, 1e-4, equal_nan=True)
            if x.dtype.kind in "fc"
            else np.array_equal(x, y)
        )
        for x, y in zip(a, b)
    )


def cases(name: str) -> Iterator[tuple[Callable[..., Any], list[Any], list[Any], list[Any]]]:
    """A function of tensors alone, two sets of them, and what it makes of the second; only where
    the sets make a difference."""
    info, function = ENTRIES[name]
    found = 0
    for given, words in samples(info, LOOKED_AT):
        args, options = carried(list(given)), carried(words)
        first = tensors([args, options])

        def call(*values: Any, args: Any = args, options: Any = options) -> Any:
            turn = iter(values)
            return function(*put(args, turn), **put(options, turn))

        try:
            second = [turned(t) for t in first]
            before = plain(call(*(t.clone() for t in first)))
            after = plain(call(*(t.clone() for t in second)))
        except (RuntimeError, ValueError, IndexError, TypeError):
            continue  # the other numbers are none that it takes
        if not alike(before, after):
            found += 1
            yield call, first, second, after
        if found == MOST:
            return


@pytest.mark.parametrize("name", [n for n in ENTRIES if not any(word in n for word in RANDOM)])
def test_other_numbers(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a trace warns where numbers decide
        for call, first, second, want in cases(name):
            compiled = tt.compile(call)
            compiled(*(t.clone() for t in first))
            assert alike(plain(compiled(*(t.clone() for t in second))), want)


def into(a: Any, b: Any) -> Any:
    made = tt.empty(3, dtype=tt.bool)
    tt.isin(a, b, out=made)
    return made


def masked(a: Any, b: Any) -> Any:
    return a.index_put((a > 1.5,), b)


def counted(a: Any, b: Any) -> Any:
    hist, edges = tt.empty(4), tt.empty(5)
    tt.histogram(a, 4, out=(hist, edges))
    return hist, edges, b


@pytest.mark.parametrize("make", [tt.compile, None], ids=["compiled", "traced"])
@pytest.mark.parametrize(
    "call",
    [
        lambda a, b: tt.isin(a, b),
        lambda a, b: tt.isin(a, b, invert=True) * 1.0,
        lambda a, b: tt.isin(2.0, a),
        into,
        masked,
        counted,
        lambda a, b: tt.histogram(a, 4, range=(0.0, 10.0), density=True),
        lambda a, b: tt.histogramdd(tt.stack([a, a * 2], 1), [2, 3]).bin_edges,
        lambda a, b: (
            tt.histogramdd(tt.stack([a, a * 2], 1), [b.new_tensor([0.0, 4.0, 9.0]), 3]).hist
        ),
    ],
)
def test_functions_without_a_record(call: Any, make: Any) -> None:
    first = tt.tensor([1.0, 2.0, 3.0]), tt.tensor([1.0])
    second = tt.tensor([2.0, 1.0, 7.0]), tt.tensor([7.0])
    made = make(call) if make else tt.jit.trace(call, first, check_trace=False)
    for given in (first, second, second, first):
        assert alike(plain(made(*given)), plain(call(*given)))
