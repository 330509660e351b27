"""New memory that nobody has written to, made the same at every run where that is asked for."""

from __future__ import annotations

import numpy as np

from toytorch.facts.hints import Array
from toytorch.settings import are_deterministic_algorithms_enabled, fills_uninitialized_memory


def fill(array: Array) -> None:
    """Writes NaN, or the largest integer, into memory that is not initialized."""
    if array.dtype.kind in "fcV" or array.dtype.type.__module__ == "ml_dtypes":
        array[...] = np.nan
    else:
        array[...] = True if array.dtype.kind == "b" else np.iinfo(array.dtype).max


def settled(array: Array, how: str = "empty") -> Array:
    """New memory; that of `empty` is filled if algorithms are to be deterministic."""
    if how == "empty" and are_deterministic_algorithms_enabled() and fills_uninitialized_memory():
        fill(array)
    return array
