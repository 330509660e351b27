"""NVIDIA GPUs: arrays are CuPy's. Nothing is imported until a GPU is asked for."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from toytorch.backends import cupy_kernels
from toytorch.backends.cupy_runtime import CupyRuntime
from toytorch.facts.device import device as device_class

WHEELS = "pip install 'toytorch[cuda]', or 'toytorch[cuda12]' where the driver is older than 580"
DRIVERS = "CUDA 13 needs driver 580 or later, CUDA 12 driver 525; https://www.nvidia.com/drivers"
NO_DEVICE = 100  # cudaErrorNoDevice


class _Never:
    """The class of no array: stands for CuPy's until CuPy is there."""


class _Current:
    """A device as the current one, where errors have PyTorch's words."""

    def __init__(self, backend: CupyBackend, index: int | None) -> None:
        self.backend, self.device = backend, backend.xp.cuda.Device(index)

    def __enter__(self) -> None:
        self.device.__enter__()

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        self.device.__exit__(kind, error, trace)
        if isinstance(error, Exception):
            said = cupy_kernels.translated(self.backend, error)
            if said is not error:
                raise said from error


class CupyBackend:
    """Op kernels run CuPy's versions of NumPy's functions on CuPy arrays."""

    name = "cuda"
    module = "cupy"

    def __init__(self, given: Any = None) -> None:
        self.runtime = CupyRuntime(lambda: self.xp)
        self.kernels: dict[str, Any] = cupy_kernels.table(self)
        self._given = given  # a module in CuPy's place, for tests

    @functools.cached_property
    def xp(self) -> Any:
        """The module cupy."""
        if self._given is not None:
            return self._given
        import cupy  # an optional package

        return cupy

    @property
    def array_type(self) -> type:
        """cupy.ndarray, or a class without instances while there is no usable GPU."""
        return self.xp.ndarray if not self.why_unavailable() else _Never

    @functools.lru_cache(maxsize=1)  # noqa: B019 - there is one backend, for ever
    def why_unavailable(self) -> str:
        """What is missing, in words for the user; empty where GPUs can be used."""
        missing = self._missing()
        return f"{missing}. Everything runs on the CPU without it" if missing else ""

    def _missing(self) -> str:
        try:
            xp = self.xp
        except ModuleNotFoundError as error:
            if error.name == "cupy":
                return f"the package cupy is not installed ({WHEELS})"
            return (
                f"the package cupy is installed, and lacks {error.name}: pip install {error.name}"
            )
        except ImportError as error:  # a library of CUDA is not there
            return f"the package cupy cannot be loaded: {error} ({WHEELS})"
        try:
            count = xp.cuda.runtime.getDeviceCount()
        except Exception as error:  # CuPy raises its own classes, which need a driver to import
            if getattr(error, "status", 0) == NO_DEVICE:
                return "no CUDA-capable device is detected"
            return f"found no NVIDIA driver on your system, or one too old: {error} ({DRIVERS})"
        return "" if count else "no CUDA-capable device is detected"

    def is_available(self) -> bool:
        return not self.why_unavailable()

    def device_count(self) -> int:
        return int(self.xp.cuda.runtime.getDeviceCount()) if self.is_available() else 0

    def device(self, array: Any) -> device_class:
        return place(int(array.device.id))

    def on(self, where: device_class) -> Any:
        index = where.index
        if index is not None and index >= self.device_count():
            raise RuntimeError(
                f"CUDA error: invalid device ordinal: {where} was asked for, and "
                f"there are {self.device_count()} devices"
            )
        return _Current(self, index)

    def strict(self) -> Any:
        """A context in which CuPy's decompositions raise LinAlgError, as NumPy's do."""
        if self._given is not None:
            return self._given.errstate(linalg="raise")
        import cupyx  # comes with cupy, which is imported when first asked for

        return cupyx.errstate(linalg="raise")

    def to_numpy(self, array: Any) -> Any:
        return self.xp.asnumpy(array)

    def from_numpy(self, array: Any) -> Any:
        return self.xp.asarray(array)

    def flat(self, array: Any) -> Any:
        memory = array.data.mem
        if isinstance(memory, self.xp.cuda.UnownedMemory):
            # `as_strided` made it, or another library.
            count = memory.size // array.itemsize
            pointer = self.xp.cuda.MemoryPointer(memory, 0)
            return self.xp.ndarray((count,), array.dtype, pointer)
        while isinstance(array.base, self.xp.ndarray):
            array = array.base
        order = sorted(range(array.ndim), key=lambda i: -array.strides[i])
        dense = array.transpose(order)
        if dense.flags.c_contiguous:
            return dense.reshape(-1)
        # A view that knows no base, as CuPy's `as_strided` makes them: up to its last element.
        last = sum((n - 1) * s for n, s in zip(array.shape, array.strides) if n)
        return self.xp.ndarray((last // array.itemsize + 1,), array.dtype, array.data)

    def data_ptr(self, array: Any) -> int:
        return int(array.data.ptr) if array.size else 0

    def as_strided(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        step, cuda = flat.itemsize, self.xp.cuda
        memory = flat.data.mem
        if not isinstance(memory, cuda.UnownedMemory):
            # CuPy's own memory is rounded up; this one knows its size, which `flat` asks for.
            whole = self.flat(flat)
            memory = cuda.UnownedMemory(whole.data.ptr, whole.nbytes, whole, whole.device.id)
        start = flat.data.ptr - memory.ptr + offset * step
        pointer = cuda.MemoryPointer(memory, start)
        return self.xp.ndarray(tuple(shape), flat.dtype, pointer, [s * step for s in strides])

    def generator(self, seed: int) -> Any:
        # Loaded where there is a card only.
        from toytorch.backends.numpy_draws import NumpyDraws
        from toytorch.backends.philox import PhiloxGenerator

        card = self.xp.cuda.runtime.getDeviceProperties(self.xp.cuda.Device().id)
        threads = int(card["multiProcessorCount"]) * int(card["maxThreadsPerMultiProcessor"])
        return NumpyDraws(self.xp, PhiloxGenerator(self.xp, seed, threads))

    def is_pinned(self, array: Any) -> bool:
        """Whether the memory of a host array is pinned."""
        while isinstance(array.base, np.ndarray):
            array = array.base
        below = getattr(array.base, "obj", array.base)  # NumPy holds a memoryview of the buffer
        return isinstance(below, self.xp.cuda.PinnedMemoryPointer)

    def pinned_copy(self, array: Any) -> Any:
        """The elements in pinned memory."""
        memory = self.xp.cuda.alloc_pinned_memory(array.nbytes)
        made = np.frombuffer(memory, array.dtype, array.size).reshape(array.shape)
        made[...] = array
        return made

    def synchronize(self) -> None:
        self.xp.cuda.get_current_stream().synchronize()


@functools.cache
def place(index: int) -> device_class:
    """The device of an index, made once: every op asks for it."""
    return device_class("cuda", index)


backend = CupyBackend()
