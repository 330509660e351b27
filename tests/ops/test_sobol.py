"""Sobol's sequence, point for point and error for error as PyTorch draws it."""

from __future__ import annotations

import copy
import functools
import pickle
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt
from toytorch.quasirandom import SobolEngine

BOTH: tuple[Any, Any] = (tt, torch)


def state_of(engine: Any) -> tuple[Any, ...]:
    """All that an engine's next points follow from."""
    tensors = engine.sobolstate, engine.shift, engine.quasi, engine._first_point
    return (*(t.tolist() for t in tensors), engine.num_generated, repr(engine))


def test_direction_numbers() -> None:
    ours, theirs = (m.quasirandom.SobolEngine(21201).sobolstate.numpy() for m in BOTH)
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.parametrize("scramble", [False, True])
@pytest.mark.parametrize("dimension", [1, 2, 5, 64, 4100])
@pytest.mark.parametrize("dtype", ["float32", "float64", None])
def test_same_points(dimension: int, scramble: bool, dtype: str | None) -> None:
    ours, theirs = (m.quasirandom.SobolEngine(dimension, scramble, 3) for m in BOTH)
    for n in (1, 2, 3, 0, 5, 64, 21, 1, 100, 129):
        a = ours.draw(n, dtype=dtype and getattr(tt, dtype))
        b = theirs.draw(n, dtype=dtype and getattr(torch, dtype))
        assert str(a.dtype) == str(b.dtype)
        np.testing.assert_array_equal(a.numpy(), b.numpy())
        ours.fast_forward(n + 16)
        theirs.fast_forward(n + 16)
        assert state_of(ours) == state_of(theirs)
    assert state_of(ours.reset()) == state_of(theirs.reset())


def test_scrambled_by_the_default_generator() -> None:
    engines = []
    for module in BOTH:
        module.manual_seed(11)
        engine = module.quasirandom.SobolEngine(7, scramble=True)
        engines.append((state_of(engine), module.rand(3).tolist()))
    assert engines[0] == engines[1]


@functools.cache
def moved(module: ModuleType, past: int) -> Any:
    """An engine so far into its sequence. PyTorch walks there point by point: 4 s for 2^30."""
    return module.quasirandom.SobolEngine(3, scramble=True, seed=5).fast_forward(past)


@pytest.mark.parametrize("past", [0, 1, 6, 7, 8, 1021, 1022, 1023, 2**30 - 500])
@pytest.mark.parametrize("n", [1, 2, 7, 8, 9, 255, 256, 257])
def test_points_from_anywhere(past: int, n: int) -> None:
    drawn = []
    for module in BOTH:
        engine = copy.deepcopy(moved(module, past))
        drawn.append((engine.draw(n).tolist(), engine.quasi.tolist()))
    assert drawn[0] == drawn[1]


def test_one_call_or_many() -> None:
    whole = SobolEngine(6, scramble=True, seed=2).draw(300)
    parts = SobolEngine(6, scramble=True, seed=2)
    pieces = [parts.draw(n) for n in (1, 63, 1, 100, 135)]
    assert tt.equal(tt.cat(pieces), whole)


def test_balance() -> None:
    """Of 2^m points each interval of length 2^-m holds one, in every dimension."""
    for scramble in (False, True):
        points = SobolEngine(40, scramble=scramble, seed=1).draw_base2(8).numpy()
        cells = np.sort((points * 256).astype(int), axis=0)
        np.testing.assert_array_equal(cells, np.arange(256)[:, None].repeat(40, 1))


@pytest.mark.parametrize("again", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_go_on_alone(again: Any) -> None:
    engine = SobolEngine(4, scramble=True, seed=9)
    engine.draw(5)
    other = again(engine)
    assert state_of(other) == state_of(engine)
    after = engine.draw(6)
    assert other.num_generated == 5
    assert tt.equal(other.draw(6), after)


def test_out_takes_shape_and_type() -> None:
    results = []
    for module in BOTH:
        out = module.empty(0, dtype=module.float64)
        made = module.quasirandom.SobolEngine(2).draw(3, out=out)
        assert made is out
        results.append((out.tolist(), str(out.dtype)))
    assert results[0] == results[1]


def test_out_of_a_base_two_draw() -> None:
    results = []
    for module in BOTH:
        out = module.empty(7)
        module.quasirandom.SobolEngine(2).draw_base2(2, out=out)
        results.append(out.tolist())
    assert results[0] == results[1]


def draw(n: Any, **kwargs: Any) -> Any:
    return lambda m: m.quasirandom.SobolEngine(2).draw(n, **kwargs)


def low(quasi: str, sobolstate: str) -> Any:
    """The function below the engine, of tensors of these types."""
    return lambda m: m._sobol_engine_draw(
        m.zeros(2, dtype=getattr(m, quasi)),
        3,
        m.zeros(2, 30, dtype=getattr(m, sobolstate)),
        2,
        0,
        dtype=None,
    )


REFUSED = {
    "no dimension": lambda m: m.quasirandom.SobolEngine(0),
    "too many dimensions": lambda m: m.quasirandom.SobolEngine(21202),
    "dimension of text": lambda m: m.quasirandom.SobolEngine("a"),
    "no points": draw(0),
    "fewer than none": draw(-1),
    "half a point": draw(2.5),
    "a type by name": draw(2, dtype="float32"),
    "float16": lambda m: m.quasirandom.SobolEngine(2).draw(2, dtype=m.float16),
    "int64": lambda m: m.quasirandom.SobolEngine(2).draw(2, dtype=m.int64),
    "not a power of two": lambda m: m.quasirandom.SobolEngine(2).fast_forward(1).draw_base2(2),
    "a power below one": lambda m: m.quasirandom.SobolEngine(2).draw_base2(-1),
    "seed of text": lambda m: m.quasirandom.SobolEngine(2, scramble=True, seed="a"),
    "quasi": low("float32", "int64"),
    "state": low("int64", "int32"),
    "state to fill": lambda m: m._sobol_engine_initialize_state_(m.zeros(2, 30), 2),
    "point to move": lambda m: m._sobol_engine_ff_(
        m.zeros(2), 3, m.zeros(2, 30, dtype=m.int64), 2, 0
    ),
    "state to scramble": lambda m: m._sobol_engine_scramble_(
        m.zeros(2, 30), m.zeros(2, 30, 30, dtype=m.int64), 2
    ),
    "matrices": lambda m: m._sobol_engine_scramble_(
        m.zeros(2, 30, dtype=m.int64), m.zeros(2, 30, 30), 2
    ),
}


def refusal(module: ModuleType, call: Any) -> str:
    with pytest.raises(Exception) as caught:
        call(module)
    return f"{type(caught.value).__name__}: {caught.value}"


@pytest.mark.parametrize("case", REFUSED)
def test_refusals(case: str) -> None:
    ours, theirs = (refusal(m, REFUSED[case]) for m in BOTH)
    assert ours == theirs


def test_the_end_of_the_sequence() -> None:
    """PyTorch has no check there: it reads what lies behind its table."""
    engine = SobolEngine(2).fast_forward(2**30 - 1)
    assert engine.draw(1).shape == (1, 2)
    with pytest.raises(IndexError, match="has 1073741824 points"):
        engine.draw(1)


@pytest.mark.parametrize("seed", ["a", 2.5, True, None])
def test_seeds_of_generators_are_integers(seed: Any) -> None:
    ours, theirs = (refusal(m, lambda m: m.Generator().manual_seed(seed)) for m in BOTH)
    assert ours == theirs
    assert tt.Generator().manual_seed(np.int64(4)).initial_seed() == 4


@pytest.mark.parametrize("seed", [2.5, True, "7"])
def test_seeds_of_all_generators_are_made_integers(seed: Any) -> None:
    ours, theirs = (m.manual_seed(seed).initial_seed() for m in BOTH)
    assert ours == theirs
