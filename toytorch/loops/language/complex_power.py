"""Powers of complex numbers as the C library computes them, infinities and NaN included."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array


def complex_power(x: Any, y: Any) -> Any:
    """xʸ = exp(y log x); of the usual exponents, given as one number, what is said of them alone.

    NumPy's own differs where a number is 0, infinite or NaN (0⁰ is NaN here), and takes powers that
    happen to be whole by products.
    """
    if y.__class__ is not np.ndarray:
        if y in (0, 1, 2, 3):
            return np.power(x, y)
        if y == 0.5:
            return np.sqrt(x)
        if y == -1:
            return inverse(x)
        if y == -0.5:
            return inverse(np.sqrt(x))
        if y == -2:
            return inverse(np.power(x, 2))
    x, y = np.broadcast_arrays(x, y)
    return np.exp(product(y, np.log(x)))[()]


def inverse(x: Any) -> Any:
    """1/x by a division, as in C++; NumPy's reciprocal has other signs of zero, and NaN for 1/0."""
    return np.divide(1, x)


def product(x: Array, y: Array) -> Array:
    """x·y with the rule of C99 (Annex G) that an infinity times what is not 0 is an infinity,
    though both parts come out as NaN."""
    made = np.empty(x.shape, np.result_type(x, y))
    made.real = x.real * y.real - x.imag * y.imag
    made.imag = x.real * y.imag + x.imag * y.real
    lost = np.isnan(made.real) & np.isnan(made.imag)
    if lost.any():
        made[lost] = recovered(x[lost], y[lost])
    return made


def recovered(x: Array, y: Array) -> Any:
    """The products of which both parts came out as NaN: infinity where a factor is infinite, or a
    product of parts was."""
    a, b, c, d = (part.copy() for part in (x.real, x.imag, y.real, y.imag))
    first, second = np.isinf(a) | np.isinf(b), np.isinf(c) | np.isinf(d)
    between = np.isinf(a * c) | np.isinf(b * d) | np.isinf(a * d) | np.isinf(b * c)
    flattened(a, b, first)
    zeroed(c, d, first)
    flattened(c, d, second)
    zeroed(a, b, second)
    any_infinite = first | second | between
    zeroed(a, b, between & ~first & ~second)
    zeroed(c, d, between & ~first & ~second)
    made = np.full(x.shape, complex(np.nan, np.nan), np.result_type(x, y))
    infinity = a.dtype.type(np.inf)
    made.real[any_infinite] = (infinity * (a * c - b * d))[any_infinite]
    made.imag[any_infinite] = (infinity * (a * d + b * c))[any_infinite]
    return made


def flattened(a: Array, b: Array, where: Array) -> None:
    """Makes infinite parts ±1 and finite ones ±0, in place."""
    for part in (a, b):
        part[where] = np.copysign(np.isinf(part[where]).astype(part.dtype), part[where])


def zeroed(a: Array, b: Array, where: Array) -> None:
    """Makes parts that are NaN ±0, in place."""
    for part in (a, b):
        nan = where & np.isnan(part)
        part[nan] = np.copysign(part.dtype.type(0), part[nan])
