"""What the framework asks of a device, and the table of the devices there are."""

from __future__ import annotations

import functools
import importlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from toytorch.backends import generic
from toytorch.facts import device as facts
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import ArrayModule, Fn, Shape


class RandomSource(Protocol):
    """A stream of random numbers, which ops draw from `count` at a time into flat arrays.

    `type` is the type of the results: float32 or float64, or one of two bytes, whose numbers are
    given in float32.
    """

    @property
    def seed(self) -> int:
        """Where the stream started."""

    place: Any  # where it is, for as long as the source lives

    def get_state(self) -> bytes:
        """Where it is, for any time and process."""

    def set_state(self, state: bytes) -> None:
        """Goes to a place that `get_state` gave."""

    def uniform(self, count: int, type: npt.DTypeLike, low: float = 0.0, high: float = 1.0) -> Any:
        """Numbers in [low, high)."""

    def normal(
        self,
        count: int,
        type: npt.DTypeLike,
        mean: float = 0.0,
        std: float = 1.0,
        rows: bool = True,
    ) -> Any:
        """Normal numbers; `rows` says that they fill memory without gaps."""

    def integers(self, count: int, low: int, high: int) -> Any:
        """Integers (int64) in [low, high)."""

    def whole(self, count: int, limit: int, wide: bool) -> Any:
        """Integers in [0, limit), of 64 bits each if `wide`."""

    def below(self, count: int, chance: Any) -> Any:
        """Truth values, each with a chance: a number, or an array of `count` of them."""

    def factors(self, count: int, type: npt.DTypeLike, p: float) -> Any:
        """0 with probability p, else 1/(1 - p)."""

    def exponential(self, count: int, rate: float = 1.0) -> Any:
        """Times between events that come at a rate (float64)."""

    def cauchy(self, count: int, median: float, sigma: float) -> Any:
        """Numbers of Cauchy's distribution (float64)."""

    def log_normal(self, count: int, mean: float, std: float) -> Any:
        """Numbers whose logarithms are normal (float64)."""

    def geometric(self, count: int, p: float) -> Any:
        """Numbers of trials up to the first success (float64)."""

    def permutation(self, n: int) -> Any:
        """The numbers 0 … n - 1 in random order."""

    def poisson(self, rate: Any) -> Any:
        """Counts of events with the rates given."""

    def binomial(self, count: Any, chance: Any) -> Any:
        """How many of so many trials succeed, with the chances given."""

    def gamma(self, shape: Any) -> Any:
        """Numbers of the gamma distribution (float64) with the shapes given, none below 0."""


class Backend(Protocol):
    """One kind of device: an array module that speaks NumPy's API, and what NumPy does not say.

    Op kernels are written once over `xp`; what a backend has a faster way for stands in `kernels`
    under a name by which ops `attempt` it.
    """

    name: str
    module: str  # the name of the array module, which need not be imported yet
    kernels: dict[str, Any]

    @property
    def xp(self) -> Any:
        """The array module."""

    @property
    def array_type(self) -> Any:
        """The class of the arrays."""

    def is_available(self) -> bool:
        """Whether arrays can be made here now."""

    def device_count(self) -> int:
        """How many devices of this kind there are."""

    def device(self, array: Any) -> device_class:
        """Where `array` is."""

    def on(self, where: device_class) -> Any:
        """A context manager that makes `where` the place of new arrays."""

    def to_numpy(self, array: Any) -> Any:
        """The elements in a NumPy array (the same memory where that is possible)."""

    def from_numpy(self, array: Any) -> Any:
        """An array on this kind of device with the elements of a NumPy array."""

    def flat(self, array: Any) -> Any:
        """A one-dimensional array over all the memory that `array` is a view of."""

    def data_ptr(self, array: Any) -> int:
        """The address of the first element."""

    def as_strided(self, flat: Any, shape: Shape, strides: Any, offset: int) -> Any:
        """A view of `flat` with strides and offset in elements; bounds were checked before."""

    def generator(self, seed: int) -> RandomSource:
        """A new source of random numbers."""

    def synchronize(self) -> None:
        """Returns when all queued work is done."""


_by_kind: dict[str, Backend] = {}
SELDOM = {"meta": "toytorch.backends.meta.backend"}  # kinds that few programs ask for
_by_array: dict[type, Backend] = {}


def register(kind: str, backend: Backend) -> None:
    """Makes `backend` the one for devices of type `kind`."""
    _by_kind[kind] = backend
    generic.tables[backend.module] = backend.kernels


# Backends that keep the time of what runs on their arrays, by the class of the arrays: a call of an
# op on one of them is handed over whole (see `toytorch.backends.simulator`). Usually there is none.
queued: dict[type, Any] = {}
simulation: Any = None  # the backend of simulated devices, while they are what "cuda" means


def queue(array_type: type, backend: Any) -> None:
    """Hands the calls of ops on arrays of a class over to `backend.launch`."""
    queued[array_type] = _by_array[array_type] = backend


def unqueue(*array_types: type) -> None:
    """Forgets such classes."""
    for array_type in array_types:
        _by_array.pop(array_type, None)
        queued.pop(array_type, None)


def hands_over(*arrays: Any) -> bool:
    """Whether calls on one of the arrays are handed over whole."""
    return any(a.__class__ in queued for a in arrays)


def launched(name: str, function: Any, *args: Any, writes: Sequence[Any] = ()) -> Any:
    """`function(*args)`, as one kernel where a backend keeps the time of an argument.

    `writes` are the arguments that it writes into. An array module among the arguments is NumPy
    while the function runs on the arrays of the host.

    >>> launched("sum", lambda xp, a: xp.sum(a), np, np.ones(3))
    np.float64(3.0)
    """
    if queued:
        for a in args:
            for part in a if a.__class__ in (list, tuple) else (a,):
                backend = queued.get(part.__class__)
                if backend is not None:
                    return backend.launch(name, function, args, writes=writes)
    return function(*args)


def too_large(error: Exception, shape: Shape | None = None) -> Exception:
    """NumPy's refusal of an array that is too large, as PyTorch says it; any other error as it is.

    >>> too_large(ValueError("Maximum allowed size exceeded"), (2**62,))
    RuntimeError('Storage size calculation overflowed with sizes=[4611686018427387904]')
    """
    text = str(error)
    if isinstance(error, MemoryError):
        given: Any = error  # NumPy's own class of it knows what was wanted
        size = ""
        if hasattr(error, "shape") and hasattr(error, "dtype"):
            size = f": you tried to allocate {math.prod(given.shape) * given.dtype.itemsize} bytes"
        return RuntimeError(f"DefaultCPUAllocator: can't allocate memory{size}. {text}")
    if "array is too big" in text or "Maximum allowed" in text:
        if shape is not None and 0 in shape:
            return RuntimeError("Stride calculation overflowed")
        sizes = "" if shape is None else f" with sizes={list(shape)}"
        return RuntimeError(f"Storage size calculation overflowed{sizes}")
    if "maximum supported dimension" in text:
        return RuntimeError(f"only tensors with up to 64 dims are supported ({text})")
    return error


def raise_too_large(error: Exception, shape: Shape | None = None) -> None:
    """Raises what `too_large` makes of an error, if that is another."""
    said = too_large(error, shape)
    if said is not error:
        raise said from None


HOST: dict[str, str] = {}  # kernels that compute on the host, and why
copied: Counter[str] = Counter()  # how often they did for arrays of another device


def on_host(kernel: Fn, reason: str) -> Any:
    """A kernel that computes with NumPy wherever its arrays are: copied there and back.

    The last resort, for what has no way on a device; `reason` says why in a line.
    """
    name = f"{kernel.__module__.removeprefix('toytorch.')}.{kernel.__name__}"
    HOST[name] = reason

    @functools.wraps(kernel)
    def on_any(xp: ArrayModule, *args: object) -> Any:
        homes = [a for a in args if hasattr(a, "strides") and hasattr(a, "dtype")]
        backend = of_array(homes[0])
        if backend.xp is np:
            return kernel(xp, *args)
        copied[name] += 1
        here = [backend.to_numpy(a) if any(a is h for h in homes) else a for a in args]
        with backend.on(backend.device(homes[0])):
            made = kernel(np, *here)
            if isinstance(made, tuple):
                return tuple(backend.from_numpy(np.asarray(m)) for m in made)
            return backend.from_numpy(np.asarray(made))

    return on_any


def of_device(where: device_class) -> Backend:
    """The backend of a device; AssertionError, as PyTorch has it, where its driver is missing."""
    backend = of_kind(where.type)
    if not backend.is_available():
        raise AssertionError(  # the class that PyTorch raises
            f"Torch not compiled with CUDA enabled: {way_out(backend)}"
        )
    return backend


def way_out(backend: Backend) -> str:
    """Why a device cannot be used, and what to do."""
    reason = getattr(backend, "why_unavailable", lambda: "it is not available")()
    return f"{reason}. To see how a program would run on one, simulate it: toytorch.cuda.simulate()"


def _refuse_kind(kind: str) -> None:
    """Refuses a kind of device that programs may name, and toytorch has not."""
    if kind == "xpu":
        raise AssertionError("Torch not compiled with XPU enabled")  # the class that PyTorch raises
    name = kind.upper() if len(kind) < 4 else kind.capitalize()
    raise NotImplementedError(
        f"Could not run 'aten::empty.memory_format' with arguments from the '{name}' backend. "
        "toytorch has memory on the CPU and on CUDA devices."
    )


def of_kind(kind: str) -> Backend:
    """The backend registered for devices of type `kind`, available or not."""
    if kind not in _by_kind:
        if kind not in SELDOM:
            _refuse_kind(kind)
        importlib.import_module(SELDOM[kind])  # which registers it
    return _by_kind[kind]


def of_array(array: Any) -> Backend:
    """The backend that made an array."""
    found = _by_array.get(array.__class__)
    if found is None:
        for backend in _by_kind.values():
            if isinstance(array, backend.array_type):
                found = _by_array[array.__class__] = backend
                break
        else:
            raise TypeError(f"no backend for arrays of type {type(array).__name__}")
    return found


facts.accelerated = lambda: of_kind("cuda").is_available()
