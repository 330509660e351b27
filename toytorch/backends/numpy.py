"""The CPU: arrays are NumPy's."""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import os
import sys
import warnings
from typing import Any

import numpy as np

from toytorch.backends import no_elements
from toytorch.backends.no_elements import strided
from toytorch.facts.device import cpu
from toytorch.facts.device import device as device_class
from toytorch.facts.package import is_ours
from toytorch.kernels.table import KERNELS
from toytorch.loops.runtime.jit import address_of

# Sources of random numbers, by name: module and class. They are imported with the first number.
GENERATORS = {
    "mt19937": ("toytorch.backends.mt19937", "MersenneGenerator"),
    "pcg64": ("toytorch.backends.pcg64", "HashedDraws"),
}


class NumpyBackend:
    """Op kernels run NumPy functions on NumPy arrays."""

    name = "cpu"
    xp: Any = np
    module = "numpy"
    array_type: type = np.ndarray

    kernels = KERNELS
    generators = "mt19937"  # a key of GENERATORS: what new streams of random numbers are

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 1

    def device(self, array: Any) -> device_class:
        return cpu

    def on(self, where: device_class) -> Any:
        return contextlib.nullcontext()

    def to_numpy(self, array: Any) -> Any:
        return array

    def from_numpy(self, array: Any) -> Any:
        return array

    def flat(self, array: Any) -> Any:
        while True:
            below = array.base
            if below.__class__.__name__ == "DummyArray":  # as_strided's keeper of the real base
                below = below.base
            if not isinstance(below, np.ndarray):
                break
            array = below
        if array.flags.c_contiguous:
            return array.reshape(-1)
        if array.flags.f_contiguous:
            return array.T.reshape(-1)
        dense = array.transpose(sorted(range(array.ndim), key=lambda i: -array.strides[i]))
        if dense.flags.c_contiguous:
            return dense.reshape(-1)
        return extent(array)  # a view of memory that NumPy does not own

    def data_ptr(self, array: Any) -> int:
        return address_of(array) if array.size else 0

    def as_strided(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        step = flat.itemsize
        if 0 in shape:
            return no_elements.lying(flat, shape, [s * step for s in strides], offset * step)
        return np.ndarray(shape, flat.dtype, flat, offset * step, [s * step for s in strides])

    def generator(self, seed: int) -> Any:
        module, name = GENERATORS[self.generators]
        return getattr(importlib.import_module(module), name)(seed)

    def synchronize(self) -> None:
        """Work on the CPU is never queued, so it is always done."""


def extent(array: Any) -> Any:
    """The memory from the first to the last element of a strided array, as a flat array."""
    if not array.size:
        return array.reshape(-1)
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides))
    return strided(np, array, (last // array.itemsize + 1,), (array.itemsize,))


def _keep_freed_memory() -> None:
    """Lets glibc reuse large blocks: fresh pages cost as much as the arithmetic done in them.

    Measured on 1M float32: `a + b` takes about half the time. TOYTORCH_MALLOPT=0 turns it off.
    """
    if not sys.platform.startswith("linux") or os.environ.get("TOYTORCH_MALLOPT") == "0":
        return
    with contextlib.suppress(OSError, AttributeError):
        mallopt = ctypes.CDLL(None).mallopt
        trim_threshold, mmap_threshold = -1, -3
        mallopt(mmap_threshold, 32 << 20)
        mallopt(trim_threshold, 512 << 20)


def _on_floating_point_error(kind: str, flag: int) -> None:
    """Keeps 1/0 quiet inside toytorch, as PyTorch does, and NumPy's warning everywhere else."""
    frame: Any = sys._getframe(1)
    while frame.f_globals.get("__name__", "").startswith("numpy."):  # as the mean is, in Python
        frame = frame.f_back
    if not is_ours(frame.f_globals.get("__name__")):
        warnings.warn(f"{kind} encountered", RuntimeWarning, stacklevel=2)


def _quiet_floating_point() -> None:
    # np.errstate around each op would cost more than the op (0.9 µs against 0.3 µs).
    modes: dict[str, Any] = {k: "call" for k, mode in np.geterr().items() if mode == "warn"}
    np.seterrcall(_on_floating_point_error)
    np.seterr(**modes)
    # Threads start with NumPy's own settings; there the filter does the work.
    warnings.filterwarnings("ignore", r".* encountered in ", RuntimeWarning, r"(toy)?torch\.")


_keep_freed_memory()
_quiet_floating_point()
backend = NumpyBackend()

__all__ = ["NumpyBackend", "backend", "extent"]
