"""Sums and scans of a million terms beside exact ones (math.fsum), and PyTorch's error of them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tests.oracle import torch, tt

TERMS = 1_000_000
Values = np.ndarray[Any, Any]


DRAWS, MORE = 4, 16  # and of what is too far off after these


def terms(type: str, count: int, seed: int) -> dict[str, Values]:
    rng = np.random.default_rng(seed)
    return {
        "uniform": rng.uniform(0, 1, count).astype(type),
        "normal": rng.normal(size=count).astype(type),
        "of all sizes": (10.0 ** rng.uniform(-6, 6, count)).astype(type),
        "near 1": (1 + 1e-3 * rng.normal(size=count)).astype(type),
        "alternating": (
            np.where(np.arange(count) % 2, 1, -1) * (1 + rng.uniform(0, 1e-3, count))
        ).astype(type),
    }


def exact(values: Values) -> float:
    return math.fsum(values.tolist())


def running(values: Values) -> Values:
    """Running sums in the widest type there is."""
    return np.cumsum(values.astype(np.longdouble))


Reference = Callable[[Values], Any]
CASES: dict[str, tuple[Callable[[Any], Any], Reference]] = {
    "sum": (lambda x: x.sum(), exact),
    "sum of columns": (
        lambda x: x.reshape(1000, -1).sum(0),
        lambda v: np.array([exact(c) for c in v.reshape(1000, -1).T]),
    ),
    "sum of rows": (
        lambda x: x.reshape(1000, -1).sum(1),
        lambda v: np.array([exact(c) for c in v.reshape(1000, -1)]),
    ),
    "sum of every second": (lambda x: x[::2].sum(), lambda v: exact(v[::2])),
    "sum of a transposed matrix": (lambda x: x.reshape(1000, -1).t().sum(), exact),
    "sum over two of three": (
        lambda x: x.reshape(100, 100, -1).sum((0, 2)),
        lambda v: np.array([exact(c.ravel()) for c in v.reshape(100, 100, -1).transpose(1, 0, 2)]),
    ),
    "nansum": (lambda x: x.nansum(), exact),
    "mean": (lambda x: x.mean(), lambda v: exact(v) / len(v)),
    "mean of columns": (
        lambda x: x.reshape(1000, -1).mean(0),
        lambda v: np.array([exact(c) / 1000 for c in v.reshape(1000, -1).T]),
    ),
    "var": (lambda x: x.var(), lambda v: variance(v)),
    "std": (lambda x: x.std(), lambda v: math.sqrt(variance(v))),
    "norm": (lambda x: x.norm(), lambda v: math.sqrt(exact(v.astype(np.longdouble) ** 2))),
    "norm 1": (lambda x: x.norm(1), lambda v: exact(abs(v))),
    "norm 3": (lambda x: x.norm(3), lambda v: exact(abs(v.astype(np.longdouble)) ** 3) ** (1 / 3)),
    "logsumexp": (
        lambda x: (x % 5).logsumexp(0),
        lambda v: math.log(exact(np.exp((v % 5).astype(np.longdouble)))),
    ),
    "dot": (lambda x: x.dot(x), lambda v: exact(v.astype(np.longdouble) ** 2)),
    "cumsum": (lambda x: x.cumsum(0), running),
    "cumsum of columns": (
        lambda x: x.reshape(1000, -1).cumsum(0),
        lambda v: np.cumsum(v.reshape(1000, -1).astype(np.longdouble), 0),
    ),
    "cumsum of rows": (
        lambda x: x.reshape(1000, -1).cumsum(1),
        lambda v: np.cumsum(v.reshape(1000, -1).astype(np.longdouble), 1),
    ),
    "cumprod": (
        lambda x: (1 + x * 1e-6).cumprod(0),
        lambda v: np.cumprod((1 + v * v.dtype.type(1e-6)).astype(np.longdouble)),
    ),
    "logcumsumexp": (
        lambda x: (x % 5).logcumsumexp(0),
        lambda v: np.log(np.cumsum(np.exp((v % 5).astype(np.longdouble)))),
    ),
    "prod": (
        lambda x: (1 + x * 1e-6).prod(),
        lambda v: np.prod((1 + v * v.dtype.type(1e-6)).astype(np.longdouble)),
    ),
    "mean square loss": (
        lambda x: ((x - 0.5) ** 2).mean(),
        lambda v: exact((v - v.dtype.type(0.5)).astype(np.longdouble) ** 2) / len(v),
    ),
}


def variance(values: Values) -> float:
    wide = values.astype(np.longdouble)
    away = wide - np.longdouble(exact(values)) / len(wide)
    return float(exact(away * away) / (len(wide) - 1))


def deviation(got: Values, true: Any) -> float:
    """The largest error."""
    return float(abs(got.astype(np.longdouble) - np.asarray(true, np.longdouble)).max())


def root_mean_square(values: Iterable[float]) -> float:
    squares = [value * value for value in values]
    return math.sqrt(sum(squares) / len(squares))


def compare(name: str, type: str, count: int = TERMS) -> tuple[list[str], float, float]:
    """What is wrong, the error in units of the largest result, PyTorch's.

    Errors and results are those of some draws, each the root of their mean square: the sum of one
    draw may be near zero by chance, where its error by itself would say nothing.
    """
    bad, most, their_most = judged(name, type, count, DRAWS)
    return judged(name, type, count, MORE) if bad else (bad, most, their_most)


def judged(name: str, type: str, count: int, draws: int) -> tuple[list[str], float, float]:
    """`compare`, with so many draws of each kind of terms."""
    call, reference = CASES[name]
    bad, most, their_most = [], 0.0, 0.0
    unit = float(np.finfo(type).eps)
    errors: dict[str, list[tuple[float, float, float]]] = {}
    for seed in range(draws):
        for label, values in terms(type, count, seed).items():
            if name in ("prod", "cumprod") and label == "of all sizes":
                continue  # beyond the largest number
            true = reference(values)
            pair = (call(m.from_numpy(values)).numpy() for m in (tt, torch))
            ours, theirs = (deviation(made, true) for made in pair)
            size = float(abs(np.asarray(true, np.longdouble)).max())
            errors.setdefault(label, []).append((ours, theirs, size))
    for label, found in errors.items():
        ours, theirs, size = (root_mean_square(values) for values in zip(*found, strict=True))
        ours, theirs = (error / max(size, 1e-300) / unit for error in (ours, theirs))
        most, their_most = max(most, ours), max(their_most, theirs)
        if ours > max(2 * theirs, 1.0):  # one unit is rounding the result
            bad.append(f"{label}: {ours:.3g} ulp, PyTorch {theirs:.3g}")
    return bad, most, their_most
