"""NumPy's BLAS, asked and told by its own functions: its threads, and the vectors it uses; and
routines of the LAPACK beside it."""

from __future__ import annotations

import ctypes
import os
import threading
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

NAMES = ("scipy_openblas_{}64_", "scipy_openblas_{}", "openblas_{}64_", "openblas_{}")
MKL = {"get_num_threads": "MKL_Get_Num_Threads", "set_num_threads": "MKL_Set_Num_Threads"}
# Bytes of the vectors in OpenBLAS's kernels, by the processors that they are named after; those
# that are not here have the widest. A processor that is newer than the library gets older kernels.
VECTORS = {
    **dict.fromkeys(("Katmai", "Coppermine", "Northwood", "Prescott", "Banias", "Atom"), 16),
    **dict.fromkeys(("Core2", "Penryn", "Dunnington", "Nehalem", "Athlon", "Opteron"), 16),
    **dict.fromkeys(("Opteron_SSE3", "Barcelona", "Bobcat", "Nano"), 16),
    **dict.fromkeys(("Sandybridge", "Bulldozer", "Piledriver", "Steamroller"), 32),
    **dict.fromkeys(("Haswell", "Excavator", "Zen"), 32),
}


# How routines are called in the libraries of NumPy's wheels, by the type of their integers.
ROUTINES = (("scipy_{}_64_", np.dtype(np.int64)), ("{}_64_", np.dtype(np.int64)))

listeners: list[Callable[[int], None]] = []  # who goes by a new number of threads, too


@cache
def library() -> Any:
    """NumPy's library, through which those that it is linked with are found, too; or None."""
    try:
        return ctypes.CDLL(np._core._multiarray_umath.__file__)  # type: ignore[attr-defined]  # NumPy's stubs leave it out
    except (OSError, AttributeError):
        return None


@cache
def _function(what: str) -> Any:
    """BLAS's own function, if NumPy's library has one."""
    for name in [*(form.format(what) for form in NAMES), MKL.get(what, "")]:
        found = getattr(library(), name, None) if name else None
        if found is not None:
            return found
    return None


@cache
def routine(what: str) -> Any:
    """A Fortran routine of NumPy's library, which takes addresses, and the type of its integers; None
    where it shows none."""
    for form, integer in ROUTINES:
        found = getattr(library(), form.format(what), None)
        if found is not None:
            return Routine(found), integer
    return None


class Routine:
    """A Fortran routine, called with addresses."""

    def __init__(self, found: Any) -> None:
        found.restype = None
        self.found, self.types = found, ctypes.c_void_p

    def __call__(self, *places: int) -> None:
        self.found(*map(self.types, places))


class OneThread:
    """`with one_thread:` BLAS uses one thread, in all of the process; afterwards as many as before."""

    def __init__(self) -> None:
        self.lock, self.inside, self.usual = threading.Lock(), 0, 0

    def forget(self) -> None:
        """In a forked process nobody is inside."""
        if self.inside:
            _function("set_num_threads")(self.usual)
        self.lock, self.inside = threading.Lock(), 0

    def __enter__(self) -> None:
        with self.lock:
            self.inside += 1
            if self.inside == 1:
                self.usual = _function("get_num_threads")()
                _function("set_num_threads")(1)

    def __exit__(self, *error: object) -> None:
        with self.lock:
            self.inside -= 1
            if not self.inside:
                _function("set_num_threads")(self.usual)


one_thread = OneThread()


def can_be_told() -> bool:
    """Whether the library can be asked for its number of threads, and told another."""
    return None not in (_function("get_num_threads"), _function("set_num_threads"))


def threads() -> int:
    """The number of threads a large matrix product runs on."""
    if one_thread.inside:
        return one_thread.usual
    get = _function("get_num_threads")
    if get is not None:
        return int(get())
    return int(
        os.environ.get("OPENBLAS_NUM_THREADS")
        or os.environ.get("OMP_NUM_THREADS")
        or os.cpu_count()
        or 1
    )


def set_threads(count: int) -> None:
    """Sets it, where the library can be told, and the number for whatever else goes by it."""
    put = _function("set_num_threads")
    with one_thread.lock:
        one_thread.usual = count
        if put is not None and not one_thread.inside:
            put(ctypes.c_int(count))
    for tell in listeners:
        tell(count)


@cache
def vector() -> int:
    """Bytes of a vector register that its kernels use: 64 where nothing else is known."""
    name = _function("get_corename")
    if name is None:
        return 64
    name.restype = ctypes.c_char_p
    return VECTORS.get((name() or b"").decode(), 64)
