"""Two arrays joined by one loop: outer products, and halves of which one gates the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops import Recipe
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.jit import SMALLEST

OUTER = Recipe("a[i], b[j] -> y[i,j]\n y = a * b")
GATED = Recipe("a[i,j], b[i,j] -> y[i,j]\n y = a * sigmoid(b)")


def outer(a: Array, b: Array) -> Any:
    """a[i]·b[j], or None.

    >>> outer(np.ones(100), np.arange(100.0))[3, 7], outer(np.ones(2), np.ones(2))
    (np.float64(7.0), None)
    """
    if a.size * b.size < SMALLEST or a.dtype.char not in "fd" or not jit.works():
        return None
    made = np.empty((a.size, b.size), a.dtype)
    OUTER(made, a, b)
    return made


def gated(a: Array, b: Array) -> Any:
    """a·sigmoid(b) of the halves of an array in rows, or None."""
    if not a.size or a.dtype.char not in "fd" or not jit.works():
        return None
    made = np.empty(a.shape, a.dtype)
    if a.ndim == 2:
        GATED(made, a, b)
    else:
        GATED(*(v.reshape(-1, a.shape[-1]) for v in (made, a, b)))
    return made
