"""How many threads BLAS uses for matrix products."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

NAMES = (
    "scipy_openblas_{}_num_threads64_",
    "scipy_openblas_{}_num_threads",
    "openblas_{}_num_threads64_",
    "openblas_{}_num_threads",
    "MKL_{}_Num_Threads",
)


listeners: list[Callable[[int], None]] = []  # who goes by a new number, too


@cache
def _function(verb: str) -> Any:
    """BLAS's own function to "get" or "set" the number, if NumPy's library has one."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]  # NumPy's stubs leave it out
    except (OSError, AttributeError):
        return None
    for name in NAMES:
        found = getattr(library, name.format(verb.title() if "MKL" in name else verb), None)
        if found is not None:
            return found
    return None


def of_blas() -> int:
    """The number of threads a large matrix product runs on."""
    get = _function("get")
    if get is not None:
        return int(get())
    return int(
        os.environ.get("OPENBLAS_NUM_THREADS")
        or os.environ.get("OMP_NUM_THREADS")
        or os.cpu_count()
        or 1
    )


def set_for_blas(count: int) -> None:
    """Sets it, where the library can be told, and the number for whatever else goes by it."""
    put = _function("set")
    if put is not None:
        put(ctypes.c_int(count))
    for tell in listeners:
        tell(count)
