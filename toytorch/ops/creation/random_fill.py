"""Tensors filled with random numbers in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends.base import RandomSource
from toytorch.core.memory_order import in_memory_order, walk
from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.core.write import c_name, inplace
from toytorch.facts import dtype as types
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, DType, Sizes
from toytorch.ops.creation.draw_refusals import refuse, refuse_steps
from toytorch.ops.creation.random_numbers import (
    any_integers,
    integer_numbers,
    narrowed,
    normal_numbers,
    source_of,
    uniform_numbers,
    upper_bound,
)
from toytorch.ops.define import in_own_type, public

FEW = 4096  # elements in rows, for which no memory will lack


def _filler(name: str, params: str, draw: Any, doc: str) -> Any:
    return in_own_type(
        f"{name}(Tensor self{params}, *, Generator? generator=None) -> Tensor",
        draw,
        forms="inplace",
        d_self=lambda g: g * 0,
        names="same",
        doc=doc,
    )


def _refuse_bounds(low: float, high: float, kind: DType) -> None:
    most = float(types.finfo(kind).max)
    for side, value in (("from", low), ("to", high)):
        if not -most <= value <= most:
            raise RuntimeError(f"{side} is out of bounds for {c_name(kind)}")
    if low > high:
        raise RuntimeError(
            f"uniform_ expects to return a [from, to) range, but found from={low} > to={high}"
        )
    if high - low > most:
        raise RuntimeError(
            f"uniform_ expects to-from <= std::numeric_limits<{kind.legacy}>::max(), but found "
            f"to={high:g} and from={low:g} which result in to-from to exceed the limit"
        )


def _filled(
    a: Array, generator: Generator | None, draw: Callable[[RandomSource, int], Any], *more: Array
) -> Any:
    """What is drawn for an array, in the order of its memory."""
    rng = source_of(a, generator)
    if a.size <= FEW and a.flags.c_contiguous and not more:
        return narrowed(draw(rng, a.size), a.dtype).reshape(a.shape)
    return in_memory_order(lambda n: narrowed(draw(rng, n), a.dtype), a.shape, a, *more)


def _uniform_fill(
    xp: ArrayModule, a: Array, low: float, high: float, generator: Generator | None
) -> Any:
    refuse("check_uniform_bounds", a.dtype)
    if not -1 <= low <= high <= 1:
        _refuse_bounds(low, high, from_numpy_dtype(a.dtype))
    return _filled(a, generator, lambda rng, n: uniform_numbers(rng, n, a.dtype, low, high))


def _normal_fill(
    xp: ArrayModule, a: Array, mean: float, std: float, generator: Generator | None
) -> Any:
    if std < 0:
        raise RuntimeError(f"normal expects std >= 0.0, but found std {std:g}")
    if not a.size:
        return a  # nothing is refused where nothing is drawn
    refuse("normal_kernel_cpu", a.dtype)
    rows = bool(a.flags.c_contiguous)
    return _filled(a, generator, lambda rng, n: normal_numbers(rng, n, a.dtype, mean, std, rows))


def _random_fill(
    xp: ArrayModule, a: Array, low: int | None, high: Any, generator: Generator | None
) -> Any:
    if high is None and low is not None:
        high = upper_bound(a.dtype)
        if a.dtype.kind in "iu" and not np.iinfo(a.dtype).min <= low < high:
            raise RuntimeError(f"from is out of bounds for {c_name(from_numpy_dtype(a.dtype))}")
    if high is None or low is None:
        if not a.size:
            return a
        refuse("random_kernel_cpu", a.dtype)
        return _filled(a, generator, lambda rng, n: any_integers(rng, n, a.dtype))
    if low >= high:
        raise RuntimeError(
            f"random_ expects 'from' to be less than 'to', but got from={low} >= to={high}"
        )
    first, end = int(low), int(high)
    return _filled(a, generator, lambda rng, n: integer_numbers(rng, n, a.dtype, first, end))


def _exponential_fill(xp: ArrayModule, a: Array, lambd: float, generator: Generator | None) -> Any:
    if lambd <= 0:
        raise RuntimeError(f"exponential_ expects lambda > 0.0, but found lambda={lambd:g}")
    if not a.size:
        return a
    refuse_steps("Exponential", a.dtype)
    return _filled(a, generator, lambda rng, n: rng.exponential(n, lambd))


def _cauchy_fill(
    xp: ArrayModule, a: Array, median: int, sigma: int, generator: Generator | None
) -> Any:
    if sigma <= 0:
        raise RuntimeError(f"cauchy_ expects sigma > 0.0, but found sigma={sigma:g}")
    refuse_steps("Cauchy", a.dtype)
    return _filled(a, generator, lambda rng, n: rng.cauchy(n, median, sigma))


def _log_normal_fill(
    xp: ArrayModule, a: Array, mean: int, std: int, generator: Generator | None
) -> Any:
    if std <= 0:
        raise RuntimeError(f"log_normal_ expects std > 0.0, but found std={std:g}")
    if not a.size:
        return a
    refuse("log_normal_cpu", a.dtype)
    return _filled(a, generator, lambda rng, n: rng.log_normal(n, mean, std))


def _geometric_fill(xp: ArrayModule, a: Array, p: float, generator: Generator | None) -> Any:
    if not 0 < p < 1:
        raise RuntimeError(f"geometric_ expects p to be in (0, 1), but got p={p:g}")
    if not a.size:
        return a
    refuse("geometric_cpu", a.dtype)
    return _filled(a, generator, lambda rng, n: rng.geometric(n, p))


def _bernoulli_fill(
    xp: ArrayModule, a: Array, p: Array | float, generator: Generator | None
) -> Any:
    if not hasattr(p, "dtype"):
        if not 0 <= p <= 1:
            raise RuntimeError(f"bernoulli_ expects p to be in [0, 1], but got p={p:g}")
        if not a.size:
            return a
        refuse("bernoulli_scalar_cpu_", a.dtype)
        return _filled(a, generator, lambda rng, n: rng.below(n, float(p)))
    if not a.size:
        return a
    refuse("bernoulli_tensor_cpu_self_", a.dtype)
    chances = probabilities(xp, p, a.shape)
    flat = chances.transpose(walk(a, chances)).reshape(-1)
    return _filled(a, generator, lambda rng, n: rng.below(n, flat), chances)


def probabilities(xp: ArrayModule, p: Any, shape: Sizes) -> Any:
    """Probabilities for an array of a shape."""
    chances = p if p.shape == shape else xp.broadcast_to(p, shape)
    if chances.size and not (chances.min() >= 0 and chances.max() <= 1):  # NaN is neither
        raise RuntimeError(
            "Expected p_in >= 0 && p_in <= 1 to be true, but got false.  (Could this error message "
            "be improved?  If so, please report an enhancement request to PyTorch.)"
        )
    return chances


uniform = _filler(
    "uniform", ", float from_=0, float to=1", _uniform_fill, "Fills with uniform numbers."
)
normal_fill = _filler(
    "normal", ", float mean=0, float std=1", _normal_fill, "Fills with normal numbers."
)
random_fill = _filler(
    "random", ", int? from_=None, int? to=None", _random_fill, "Fills with integers."
)


@public(method=True)
def random_(
    self: Tensor, *bounds: int | None, generator: Any = None, **named: int | None
) -> Tensor:
    """Fills with integers: `random_()`, `random_(to)`, or `random_(from, to)`.

    With `to` None they go up to the last of the type; without any bound they start at 0.

    >>> bool((Tensor(3).random_(2) < 2).all())
    True
    """
    low = named.pop("from", None)
    high = named.pop("to", None) if "to" in named else bounds[-1] if bounds else None
    if named or len(bounds) > 2:
        raise TypeError("random_() received an invalid combination of arguments")
    if len(bounds) == 2 or (bounds and high is not bounds[-1]):
        low = bounds[0]
    elif low is None and high is not None:
        low = 0
    return inplace(random_fill, (self, low, high, generator))


exponential = _filler(
    "exponential", ", float lambd=1", _exponential_fill, "Fills with exponential numbers."
)
cauchy = _filler(
    "cauchy",
    ", float median=0, float sigma=1",
    _cauchy_fill,
    "Fills with numbers of Cauchy's distribution.",
)
log_normal = _filler(
    "log_normal",
    ", float mean=1, float std=2",
    _log_normal_fill,
    "Fills with numbers whose logarithms are normal.",
)
geometric = _filler(
    "geometric",
    ", float p",
    _geometric_fill,
    "Fills with the numbers of trials up to the first success.",
)
bernoulli_fill = _filler(
    "bernoulli",
    ", Operand p=0.5",
    _bernoulli_fill,
    "Fills with ones, each with probability p, and zeros.",
)
