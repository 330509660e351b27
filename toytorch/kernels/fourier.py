"""Fourier transforms along one dimension by the ufuncs beneath NumPy's functions.

What `numpy.fft.rfft` looks at before it calls one (the type, the factor, the layout of the result)
takes it four times as long as the transform of a few numbers, and is the same at each call: it is
prepared once for a transform, a size and a type.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.facts.hints import Array

ufuncs: Any = getattr(np.fft, "_pocketfft_umath", None)  # another NumPy may have another name
REAL = {"f": "f", "d": "d", "F": "f", "D": "d"}  # the type of parts
COMPLEX = {"f": "F", "d": "D"}


def along(way: str, a: Array, n: int, d: int, norm: str) -> Any:
    """fft, ifft, rfft or irfft of n places along a dimension; None where NumPy should do it."""
    planned = plan(way, a.dtype.char, n, norm)
    if planned is None or a.__class__ is not np.ndarray:
        return None
    transform, factor, count, kind = planned
    shape = a.shape
    if d == len(shape) - 1:
        made = np.empty((*shape[:-1], count), kind)
        transform(a, factor, made)
    else:
        made = np.empty((*shape[:d], count, *shape[d + 1 :]), kind)
        transform(a, factor, made, axes=[(d,), (), (d,)])
    return made


@functools.lru_cache(256)
def plan(way: str, kind: str, n: int, norm: str) -> Any:
    """(ufunc, factor, places of the result, its type), or None."""
    real, complex_input = way in ("rfft", "irfft"), kind in "FD"
    if ufuncs is None or kind not in REAL or n < 1 or complex_input == (way == "rfft"):
        return None
    parity = ("_n_even", "_n_odd")[n % 2] if way == "rfft" else ""
    transform = getattr(ufuncs, way + parity, None)
    if transform is None:
        return None
    part = np.dtype(REAL[kind])
    back = way in ("ifft", "irfft")
    if norm == "ortho":
        factor = np.reciprocal(np.sqrt(n, dtype=part))
    else:
        # With 1 as the factor NumPy computes in float64, and rounds in the end.
        factor = np.reciprocal(n, dtype=part) if (norm == "forward") != back else np.float64(1)
    count = n // 2 + 1 if way == "rfft" else n
    made = part if real and back else np.dtype(COMPLEX[REAL[kind]])
    return transform, np.asarray(factor), count, made
