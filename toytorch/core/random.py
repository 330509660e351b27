"""Random numbers: generators, and the default one of each device."""

from __future__ import annotations

import functools
import os
import sys
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.composed import composed
from toytorch.facts.device import cpu
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device

__all__ = [
    "Generator", "default_generator", "get_rng_state", "initial_seed", "manual_seed", "seed",
    "set_rng_state",
]  # fmt: skip

NO_GENERATORS = ("meta", "mkldnn", "opengl", "opencl", "ideep", "fpga", "vulkan")  # device types


class Generator:
    """A stream of random numbers, like `torch.Generator`.

    >>> g = Generator().manual_seed(3)
    >>> g.initial_seed(), g.device
    (3, device(type='cpu'))
    """

    def __init__(self, device: Device = "cpu") -> None:
        self.device = device_class(device)
        if self.device.type in NO_GENERATORS:
            raise RuntimeError(f"{self.device.type.upper()} device type not an accelerator.")
        if self.device.type == "cuda" and not base.of_kind("cuda").is_available():
            raise RuntimeError("Cannot get CUDA generator without ATen_cuda library.")
        self.manual_seed(67280421310721)

    def manual_seed(self, seed: int) -> Generator:
        """Starts the stream that belongs to `seed`."""
        if isinstance(seed, bool) or not isinstance(seed, int | np.integer):
            raise RuntimeError(f"manual_seed expected a long, but got {type(seed).__name__}")
        if not -(1 << 63) <= int(seed) < 1 << 64:
            raise ValueError("Overflow when unpacking long long")
        self._seed = int(seed) % (1 << 64)
        self.__dict__.pop("rng", None)
        return self

    @functools.cached_property
    def rng(self) -> base.RandomSource:
        """The source that the backend draws from, which is made with the first number."""
        return base.of_device(self.device).generator(self._seed)

    @property
    def place(self) -> Any:
        """The place in the stream, to come back to within this process: cheaper than a state."""
        return self._seed, self.rng.place

    @place.setter
    def place(self, place: Any) -> None:
        seed, where = place
        if seed != self._seed:
            self.manual_seed(seed)
        self.rng.place = where

    def seed(self) -> int:
        """Starts a stream that cannot be foretold; returns its seed."""
        self.manual_seed(int.from_bytes(os.urandom(8), "little"))
        return self._seed

    def initial_seed(self) -> int:
        """The seed of the present stream."""
        return self._seed

    def get_state(self) -> Tensor:
        """The place in the stream, as bytes in a tensor."""
        return wrap(np.frombuffer(self.rng.get_state(), dtype=np.uint8).copy())

    def set_state(self, state: Tensor) -> Generator:
        """Goes to a place that `get_state` gave, PyTorch's too."""
        if not isinstance(state, Tensor) or state.type() != "torch.ByteTensor":
            raise TypeError("RNG state must be a torch.ByteTensor")
        if not state.is_contiguous():
            raise RuntimeError("RNG state must be contiguous")
        try:
            self.rng.set_state(bytes(state._array))
        except (ValueError, SyntaxError) as error:
            raise RuntimeError("RNG state is wrong: expected a tensor from get_state()") from error
        self._seed = self.rng.seed
        return self

    def clone_state(self) -> Generator:
        """A generator at the same place."""
        return Generator(self.device).set_state(self.get_state())

    def __reduce__(self) -> Any:
        return Generator, (self.device,), (self._seed, None, self.get_state())

    def __setstate__(self, state: Any) -> None:
        if len(state) == 3:  # seed, offset, state: what PyTorch writes too
            self.set_state(state[2])
            return
        self.__init__(state[0])  # type: ignore[misc]  # files of older versions: made without a call
        self.set_state(wrap(np.frombuffer(state[1], dtype=np.uint8).copy()))


default_generator = Generator()
_of_device: dict[Any, Generator] = {cpu: default_generator}


def generator_of(where: device_class, given: Generator | None) -> base.RandomSource:
    """The source to draw from."""
    if state.local.place is not None:
        where = state.local.place
    elif where is cpu and given is None:  # the usual case
        return default_generator.rng
    if given is not None:
        if not isinstance(given, Generator):
            raise TypeError(
                "received an invalid combination of arguments - generator must be a "
                f"torch.Generator, not {type(given).__name__}"
            )
        if given.device.type != where.type:
            raise RuntimeError(
                f"Expected a '{where.type}' device type for generator but found "
                f"'{given.device.type}'"
            )
        return given.rng
    if where.type == "cpu":
        return default_generator.rng  # whichever its number
    if where.index is None:  # "cuda" is the device that is current
        backend: Any = base.of_device(where)
        if backend.device_count() > 1 or hasattr(backend, "runtime"):
            where = device_class(where.type, backend.runtime.current_device())
    found = _of_device.get(where)
    if found is None:
        made = Generator().manual_seed(default_generator.initial_seed())
        made.device = where  # also "meta", for which nobody can ask: nothing is drawn there
        found = _of_device[where] = made
    return found.rng


def state_of(where: device_class) -> Generator:
    """The default generator of a device."""
    generator_of(where, None)
    return _of_device[where]


def generators(kind: str) -> list[Generator]:
    """The default generators of a kind of device that have been asked for."""
    return [generator for where, generator in _of_device.items() if where.type == kind]


def places() -> dict[Any, Any]:
    """Where the default generators of all devices stand, for `go_back`."""
    return {where: generator.place for where, generator in _of_device.items()}


def go_back(before: dict[Any, Any]) -> None:
    """Puts the default generators where they stood; what was first asked for since begins anew."""
    for where in list(_of_device):
        if where in before:
            _of_device[where].place = before[where]
        else:
            del _of_device[where]


def forget(kind: str) -> None:
    """Forgets the default generators of a kind of device, which are other devices from now on."""
    for where in [w for w in _of_device if w.type == kind]:
        del _of_device[where]


def set_cpu_generator(name: str) -> None:
    """Chooses what new streams of the CPU are; the default one starts again from its seed.

    "mt19937", the default, gives the numbers that PyTorch gives for the same seed. "pcg64" gives
    others, and is faster for dropout, exponential numbers and float64's normal numbers.
    States of the one cannot be set in the other.

    >>> set_cpu_generator("pcg64")
    >>> len(get_rng_state())
    256
    >>> set_cpu_generator("mt19937")
    """
    backend: Any = base.of_kind("cpu")
    known = sys.modules[backend.__class__.__module__].GENERATORS
    if name not in known:
        raise ValueError(f"set_cpu_generator expects one of {', '.join(known)}, not {name!r}")
    backend.generators = name
    default_generator.manual_seed(default_generator.initial_seed())


def get_cpu_generator() -> str:
    """What new streams of the CPU are: "mt19937", or "pcg64" if that was set."""
    backend: Any = base.of_kind("cpu")
    return str(backend.generators)


def states() -> list[Any]:
    """The devices whose default generator exists."""
    return list(_of_device)


@composed(reads="generator")
def manual_seed(seed: int) -> Generator:
    """Seeds the default generator of every device; returns the CPU's."""
    seed = int(seed)  # a text or a number with a fraction, too, unlike the generators' own method
    for generator in _of_device.values():
        generator.manual_seed(seed)
    return default_generator


@composed(reads="generator")
def seed() -> int:
    """Seeds the default generators with a number that cannot be foretold; returns it."""
    number = default_generator.seed()
    manual_seed(number)
    return number


def initial_seed() -> int:
    """The seed of the default generator."""
    return default_generator.initial_seed()


def get_rng_state() -> Tensor:
    """The state of the default generator."""
    return default_generator.get_state()


def set_rng_state(state: Tensor) -> None:
    """Sets the state of the default generator."""
    default_generator.set_state(state)
