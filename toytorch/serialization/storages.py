"""The storages that a file's tensors are views of: read once each, put where the user wants them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any, NamedTuple

import numpy as np

from toytorch.backends import base
from toytorch.core.storage import Storage
from toytorch.core.storages import UntypedStorage
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Array, Device, Fn

NO_CUDA = (
    "Attempting to deserialize object on a CUDA device but torch.cuda.is_available() is "
    "False. If you are running on a CPU-only machine, please use torch.load with "
    "map_location=torch.device('cpu') to map your storages to the CPU."
)


class Loaded(NamedTuple):
    """A storage of a file: the memory, shared by its views, and the type of its elements."""

    memory: Storage
    kind: dtype | None  # None where a storage is just bytes
    flat: Any  # the memory in elements of that type
    conjugates: dict[str, Any]  # filled where a file keeps the conjugate of its elements

    def conjugate(self, flags: dict[str, Any]) -> Any:
        """The elements with PyTorch's lazy conjugation and negation carried out."""
        name = "".join(k for k in ("conj", "neg") if flags.get(k))
        if name not in self.conjugates:
            flat = self.flat.conj() if "conj" in name else self.flat
            self.conjugates[name] = Storage(-flat if "neg" in name else flat)
        return self.conjugates[name]


class Storages:
    """Finds storages by key. `read(key, nbytes)` gives a storage's bytes as a flat array."""

    def __init__(
        self,
        read: Callable[[str, int], Any],
        map_location: Fn | Device | dict[str, str],
        byteorder: str = sys.byteorder,
    ) -> None:
        self._read, self._swap = read, byteorder != sys.byteorder
        self._place = placing(map_location)
        self._held: dict[str, tuple[Storage, Any]] = {}
        self._loaded: dict[tuple[str, dtype | None], Loaded] = {}

    def find(self, key: str, kind: dtype | None, where: str, numel: int) -> Loaded:
        """The storage `key`, which should hold `numel` elements of type `kind`."""
        if (
            not (isinstance(key, str) and isinstance(where, str))
            or type(numel) is not int
            or (numel < 0)
        ):
            raise UnpicklingError(
                "a storage is described by something else than its name, place and size"
            )
        if (key, kind) not in self._loaded:
            if key not in self._held:
                self._held[key] = self._load(key, kind, where, numel)
            memory, flat = self._held[key]
            step = 1 if kind is None else kind.itemsize
            if flat.nbytes // step != numel:
                raise UnpicklingError(
                    f"storage {key} should hold {numel} elements of {step} "
                    f"bytes, but its record has {flat.nbytes} bytes"
                )
            if kind is not None:
                flat = flat[: numel * step].view(kind.numpy)
            self._loaded[key, kind] = Loaded(memory, kind, flat, {})
        return self._loaded[key, kind]

    def _load(self, key: str, kind: dtype | None, where: str, numel: int) -> tuple[Storage, Any]:
        data = self._read(key, numel * (1 if kind is None else kind.itemsize))
        step = 1 if kind is None else kind.itemsize
        if self._swap and kind is not None and data.nbytes % step == 0:
            data = data.view(kind.numpy).byteswap().view(np.uint8)
        if data.ctypes.data % 16 and data.nbytes:
            data = data.copy()  # a record that was not aligned
        flat = self._place(data, where)
        typed = flat if kind is None or flat.nbytes % step else flat.view(kind.numpy)
        return Storage(typed, typed), flat


def placing(map_location: Fn | Device | dict[str, str]) -> Callable[[Any, str], Any]:
    """A function of (bytes, place they were saved from) that moves them where they should go."""
    if map_location is None:
        return put
    if isinstance(map_location, (str, device, int)):
        target = str(device(map_location))
        return lambda data, where: put(data, target)
    if isinstance(map_location, dict):
        return lambda data, where: put(data, str(map_location.get(where, where)))
    if not callable(map_location):
        raise TypeError(
            "map_location should be None, a string, a torch.device, a dict or a "
            f"function, but is a {type(map_location).__name__}"
        )

    def ask(data: Array, where: str) -> Any:
        found = map_location(UntypedStorage.of(Storage(data, data)), where)
        if found is None:
            return put(data, where)
        if not isinstance(found, UntypedStorage):
            raise TypeError(
                "map_location should return a storage or None, but returned a "
                f"{type(found).__name__}"
            )
        return found._storage.flat().view("uint8")

    return ask


def put(data: Array, where: str) -> Any:
    """A flat NumPy array of bytes on the device called `where`."""
    target = device(where)
    if target.type == "cpu":
        return data
    backend = base.of_kind(target.type)
    if not backend.is_available():
        raise RuntimeError(NO_CUDA)
    count = backend.device_count()
    if (target.index or 0) >= count:
        raise RuntimeError(
            f"Attempting to deserialize object on CUDA device {target.index} but "
            f"torch.cuda.device_count() is {count}. Please use torch.load with map_location to map "
            "your storages to an existing device."
        )
    with backend.on(target):
        return backend.from_numpy(data)
