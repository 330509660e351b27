"""Fourier transforms along one dimension: of many rows by a kernel of our own (`fourier_rows.py`), else
by the ufuncs beneath NumPy's functions.

What `numpy.fft.rfft` looks at before it calls one (the type, the factor, the layout of the result)
takes it four times as long as the transform of a few numbers, and is the same at each call: it is
prepared once for a transform, a size and a type.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.kernels.copy import in_rows
from toytorch.kernels.fourier_rows import transform

MANY = 256  # numbers from which vectors of rows are faster
LONG = 2048  # numbers of a row that is made a matrix

ufuncs: Any = getattr(np.fft, "_pocketfft_umath", None)  # another NumPy may have another name
REAL = {"f": "f", "d": "d", "F": "f", "D": "d"}  # the type of parts
COMPLEX = {"f": "F", "d": "D"}


def along(way: str, a: Array, n: int, d: int, norm: str) -> Any:
    """fft, ifft, rfft or irfft of n places along a dimension; None where NumPy should do it."""
    if a.__class__ is not np.ndarray or (kind := a.dtype.char) not in REAL or n < 1:
        return None
    if kind in "fd" and way == "fft":
        half = along("rfft", a, n, d, norm) if a.size >= MANY else None
        return None if half is None else whole(half, n, d)
    if (kind in "FD") == (way == "rfft"):
        return None
    if a.size >= MANY:
        times = factor(way, n, norm)
        made = transform(way, a, n, d, times)
        if made is None and n >= LONG and d == a.ndim - 1:
            made = in_two_steps(way, a, times)
        if made is not None:
            return made
    planned = plan(way, kind, n, norm)
    if planned is None:
        return None
    by_ufunc, times, count, kind = planned
    shape = a.shape
    if d == len(shape) - 1:
        made = np.empty((*shape[:-1], count), kind)
        by_ufunc(a, times, made)
    else:
        made = np.empty((*shape[:d], count, *shape[d + 1 :]), kind)
        by_ufunc(a, times, made, axes=[(d,), (), (d,)])
    return made


def in_two_steps(way: str, a: Array, times: float) -> Any:
    """fft or ifft of few long rows: with n = r·c, j = c·j₁ + j₂ and k = k₁ + r·k₂ transforms of the columns
    of a matrix (r, c), products with e^{∓2πi·k₁j₂/n}, and transforms of its rows (the four-step
    algorithm; Bailey, FFTs in external or hierarchical memory, 1990). None if n has other factors."""
    n = a.shape[-1]
    sizes = two_sizes(n) if way in ("fft", "ifft") and a.flags.c_contiguous else None
    if sizes is None:
        return None
    columns = transform(way, a.reshape(-1, *sizes), sizes[0], 1, times)
    if columns is None:
        return None
    columns *= turns(way, sizes, a.dtype.char)
    rows = transform(way, columns, sizes[1], 2, 1.0)
    return None if rows is None else in_rows(rows.swapaxes(1, 2)).reshape(a.shape)


@functools.lru_cache(64)
def two_sizes(n: int) -> Any:
    """The sizes of a matrix of n numbers, as alike as the radices of transforms allow; or None."""
    return next(((r, n // r) for r in range(math.isqrt(n), 15, -1) if n % r == 0), None)


@functools.lru_cache(8)
def turns(way: str, sizes: tuple[int, int], kind: str) -> Array:
    """e^{∓2πi·k₁j₂/n} for each place of a matrix."""
    sign = -2j if way == "fft" else 2j
    angles = np.outer(*map(np.arange, sizes)) / math.prod(sizes)
    return np.exp(sign * np.pi * angles).astype(kind)


def whole(half: Array, n: int, d: int) -> Array:
    """The spectrum of real values from its half: X[n-k] = conj X[k]."""
    made = np.empty((*half.shape[:d], n, *half.shape[d + 1 :]), half.dtype)
    left, right = np.moveaxis(half, d, -1), np.moveaxis(made, d, -1)
    right[..., : n // 2 + 1] = left
    np.conj(left[..., (n - 1) // 2 : 0 : -1], out=right[..., n // 2 + 1 :])
    return made


def factor(way: str, n: int, norm: str) -> float:
    """What a transform is multiplied by."""
    if norm == "ortho":
        return n**-0.5
    back = way in ("ifft", "irfft")
    return 1 / n if (norm == "forward") != back else 1.0


@functools.lru_cache(256)
def plan(way: str, kind: str, n: int, norm: str) -> Any:
    """(ufunc, factor, places of the result, its type), or None."""
    if ufuncs is None:
        return None
    parity = ("_n_even", "_n_odd")[n % 2] if way == "rfft" else ""
    by_ufunc = getattr(ufuncs, way + parity, None)
    if by_ufunc is None:
        return None
    part, times = np.dtype(REAL[kind]), factor(way, n, norm)
    if norm == "ortho":
        times = np.reciprocal(np.sqrt(n, dtype=part))
    # With 1 as the factor NumPy computes in float64, and rounds in the end.
    given = np.asarray(times, np.float64 if times == 1 else part)
    count = n // 2 + 1 if way == "rfft" else n
    made = part if way == "irfft" else np.dtype(COMPLEX[REAL[kind]])
    return by_ufunc, given, count, made
