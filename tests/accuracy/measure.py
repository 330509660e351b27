"""Points of the whole range of a type, and errors in units in the last place."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.accuracy.functions import EXACT, OURS, Function
from tests.oracle import torch, tt

mp: Any = pytest.importorskip(
    "mpmath", reason="the reference of functions comes with PyTorch's sympy"
)

Values = np.ndarray[Any, Any]
MOST = 4.0  # units in the last place, or PyTorch's own error where that is more
SMALL = 48  # elements at a time, which no compiled loop takes
LARGE = 1 << 16  # elements that all compiled loops take
NEIGHBOURS = 200  # of a point that is further off than PyTorch's results were elsewhere
SIZES = (0.0, 1e-3, 0.4, 0.9, 1.1, 10.0, 300.0, 1e5)  # limits of the ranges that are judged apart


def unary_points(type: str, count: int, near: Sequence[float], seed: int) -> Values:
    """Numbers of every size and sign, subnormal ones, and those around seams."""
    rng = np.random.default_rng(seed)
    info = np.finfo(type)
    low, high = np.log2(float(info.smallest_subnormal)), np.log2(float(info.max))
    limit = float(np.log(float(info.max)))
    part = max(count // 8, 4)
    away = 2.0 ** -rng.uniform(1, info.nmant + 1, part) * rng.choice([-1, 1], part)
    places = rng.choice([0.0, 1.0, -1.0, *near], part)
    parts = [
        2.0 ** rng.uniform(low, high - 0.01, part) * rng.choice([-1, 1], part),
        rng.uniform(-1, 1, part),
        rng.uniform(0, 1, part),
        rng.uniform(-12, 12, part),
        rng.uniform(-1.1 * limit, 1.1 * limit, part),
        10.0 ** rng.uniform(-6, 6, part) * rng.choice([-1, 1], part),
        np.where(places == 0, away, places * (1 + away)),
        rng.uniform(-40, 40, part // 2),
        rng.integers(-12, 13, part // 4) + 0.0,
        rng.integers(1, 50, part // 4) * float(info.smallest_subnormal),
        [
            0.0,
            -0.0,
            1.0,
            -1.0,
            info.max,
            -info.max,
            info.tiny,
            info.smallest_subnormal,
            np.inf,
            -np.inf,
            np.nan,
            0.5,
            2.0,
            *near,
        ],
    ]
    with np.errstate(all="ignore"):
        return np.concatenate([np.asarray(p, "float64").astype(type) for p in parts])


def points(f: Function, type: str, count: int, seed: int) -> list[Values]:
    """An array for each operand."""
    if f.slow:
        count //= 3
    first = not_below(f.least, unary_points(type, count, f.near, seed))
    if f.operands == 1:
        return [first]
    rng = np.random.default_rng(seed + 1)
    if f.orders:
        return [np.clip(first, -5, 5), rng.choice(f.orders, len(first)).astype(type)]
    second = rng.permutation(unary_points(type, count, f.near, seed + 2))[: len(first)]
    alike = rng.random(len(first)) < 0.3  # of the first one's size
    with np.errstate(all="ignore"):
        second = np.where(alike, first * rng.uniform(-3, 3, len(first)).astype(type), second)
    positive = rng.random(len(first)) < 0.5
    second = not_below(f.least, second)
    return [np.where(positive, abs(first), first), np.where(positive, abs(second), second)]


def not_below(least: float, values: Values) -> Values:
    """The values, those below a limit brought above it."""
    if least == -np.inf:
        return values
    with np.errstate(invalid="ignore"):
        return np.where(values < least, np.fmod(values, least), values).astype(values.dtype)


def true_values(f: Function, at: Sequence[Values]) -> list[Any]:
    """mpmath's value at each point, NaN where it has none, None where it was not asked."""
    made = []
    with mp.workprec(EXACT):
        for numbers in zip(*(a.tolist() for a in at), strict=True):
            value: Any = mp.nan
            if np.isfinite(numbers).all():
                try:
                    value = f.true(*map(mp.mpf, numbers))
                except (ValueError, ZeroDivisionError, OverflowError, mp.libmp.NoConvergence):
                    value = mp.nan
            if value is not None and (not isinstance(value, mp.mpf) or mp.isnan(value)):
                value = mp.nan
            made.append(value)
    return made


def error(got: float, true: Any, type: str) -> float:
    """|got - true| in units in the last place of the type at the true value."""
    info = np.finfo(type)
    if mp.isinf(true) or abs(true) > info.max * (1 + 2.0 ** -(info.nmant + 2)):
        return (
            0.0
            if np.isinf(got) and (got > 0) == (true > 0)
            else 1.0
            if abs(got) == info.max
            else np.inf
        )
    if np.isnan(got):
        return np.inf
    if np.isinf(got):
        return (
            1.0
            if abs(true) > info.max * (1 - 2.0**-info.nmant) and (got > 0) == (true > 0)
            else np.inf
        )
    exponent = max(int(mp.frexp(true)[1]) - 1, info.minexp) if true else info.minexp
    return float(abs(mp.mpf(got) - true) * mp.mpf(2) ** (info.nmant - exponent))


def small(call: Any, m: Any, at: Sequence[Values]) -> Values:
    """Results, some few elements at a time."""
    made = []
    for k in range(0, len(at[0]), SMALL):
        made.append(call(m, *(m.from_numpy(a[k : k + SMALL].copy()) for a in at)).numpy())
    return np.concatenate(made)[None]


def large(call: Any, m: Any, at: Sequence[Values]) -> Values:
    """Results of arrays in which the points come again and again: a row for each time."""
    times = -(-LARGE // len(at[0]))
    wide = [np.tile(a, times) for a in at]
    return call(m, *(m.from_numpy(a) for a in wide)).numpy().reshape(times, -1)


def place(x: float) -> str:
    """The range that a number is in."""
    if x == 0 or x != x:
        return "0"
    size = sum(abs(x) > s for s in SIZES)
    return ("-" if x < 0 else "+") + str(size)


def compare(
    name: str, f: Function, type: str, count: int, seed: int = 0
) -> tuple[list[str], float, float]:
    """What is wrong, the largest error, and PyTorch's."""
    at = points(f, type, count, seed)
    true = true_values(f, at)
    bad: list[str] = []
    worst: dict[Any, list[tuple[float, int, str]]] = {}
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        theirs = [small(f.call, torch, at), large(f.call, torch, at)]
        ours = {"few": small(f.call, tt, at), "many": large(f.call, tt, at)}
    kind = ours["few"].dtype.name
    limit: dict[Any, float] = {}
    for k, value in enumerate(true):
        if value is None:
            continue
        where = tuple(place(float(a[k])) for a in at)
        references = [float(t[0, k]) for t in theirs]
        if not mp.isnan(value):
            own = max(error(r, value, kind) for r in references)
            limit[where] = max(limit.get(where, 0.0), own)
        for path, rows in ours.items():
            for got in {repr(float(v)) for v in rows[:, k]}:
                made = float(got)
                if mp.isnan(value):
                    if name not in OURS and not any(special(made, r) for r in references):
                        bad.append(
                            f"{path} {[float(a[k]) for a in at]}: {made!r}, PyTorch {references}"
                        )
                else:
                    worst.setdefault(where, []).append(
                        (error(made, value, kind), k, f"{path} {made!r}")
                    )
    for where, found in worst.items():
        most, k, said = max(found)
        if most > max(MOST, 1.1 * limit[where]):  # a tenth: few points
            limit[where] = max(limit[where], around(f, [float(a[k]) for a in at], kind))
        if most > max(MOST, 1.1 * limit[where]):
            bad.append(
                f"{most:.3g} ulp (PyTorch {limit[where]:.3g}) at {[float(a[k]) for a in at]}: {said}, "
                f"true {mp.nstr(true[k], 20)}, PyTorch {float(theirs[0][0, k])!r}"
            )
    errors = [v[0] for found in worst.values() for v in found]
    return bad, max(errors, default=0.0), max(limit.values(), default=0.0)


def around(f: Function, place: Sequence[float], type: str) -> float:
    """PyTorch's largest error at points close to one: where much cancels, few points say little."""
    rng = np.random.default_rng(3)
    near = [
        (p * (1 + (0 if f.orders and i else 1e-6) * rng.uniform(-1, 1, NEIGHBOURS))).astype(type)
        for i, p in enumerate(place)
    ]
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        rows = [small(f.call, torch, near), large(f.call, torch, near)]
    found = [0.0]
    for k, value in enumerate(true_values(f, near)):
        if value is not None and not mp.isnan(value):
            found += [error(float(r[0, k]), value, type) for r in rows]
    return max(found)


def special(got: float, want: float) -> bool:
    """Whether a result where mpmath has none is as PyTorch's: equal, or close to it."""
    if np.isfinite(want) and np.isfinite(got):
        return abs(got - want) <= 1e-5 * abs(want) + 1e-30
    return got == want or (np.isnan(got) and np.isnan(want))
