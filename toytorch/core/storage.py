"""The memory behind tensors, and the two faces of it that PyTorch shows."""

from __future__ import annotations

from typing import Any

from toytorch.backends import base
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Array


class Storage:
    """A flat run of memory shared by every view of it.

    `version` counts writes: a tensor saved for backward remembers the version it saw, so that a
    later write is noticed. Most tensors never need one; it is made at the first view or write.
    """

    __slots__ = ("array", "guarded_views", "memory", "version")
    guarded_views: Any  # weak references to views that must not be written to; seldom there

    def __init__(self, array: Array, memory: Array | None = None) -> None:
        self.array = array  # any array over the memory: `flat()` finds its full extent
        self.memory = memory  # the flat array, where only part of NumPy's memory is ours
        self.version = 0

    def flat(self) -> Any:
        """A one-dimensional array over the whole memory, in elements of the first view's type."""
        if self.memory is not None:
            return self.memory
        return base.of_array(self.array).flat(self.array)

    def __deepcopy__(self, memo: dict[int, Any]) -> Storage:
        flat = self.flat().copy()
        return Storage(flat, flat)

    def __reduce__(self) -> Any:
        flat = self.flat()
        backend = base.of_array(flat)
        return _rebuild, (backend.to_numpy(flat), str(backend.device(flat)))


def _rebuild(flat: Array, where: str) -> Storage:
    placed = base.of_device(device(where)).from_numpy(flat)
    return Storage(placed, placed)


class InferenceStorage(Storage):
    """The memory of a tensor made in inference mode: its writes are not counted, so that nothing
    computed from it can be differentiated."""

    __slots__ = ()

    @property
    def version(self) -> int:
        """Raises RuntimeError: whoever asks wants to save the tensor for backward."""
        raise RuntimeError(
            "Inference tensors cannot be saved for backward. Please do not use Tensors created in "
            "inference mode in computation tracked by autograd. To work around this, you can make "
            "a clone to get a normal tensor and use it in autograd, or use `torch.no_grad()` "
            "instead of `torch.inference_mode()`."
        )

    @version.setter
    def version(self, value: int) -> None:
        """Writes are not counted."""


class UntypedStorage:
    """The bytes of a storage, like `torch.UntypedStorage`."""

    def __init__(self, storage: Storage) -> None:
        self._flat = storage.flat()

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return base.of_array(self._flat).data_ptr(self._flat)

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._flat.nbytes)

    size = __len__ = nbytes

    @property
    def device(self) -> device:
        """Where the memory is."""
        return base.of_array(self._flat).device(self._flat)

    def tolist(self) -> list[int]:
        """The bytes, as Python integers."""
        return [int(v) for v in self._flat.view("uint8")]

    def __getitem__(self, i: int) -> int:
        return int(self._flat.view("uint8")[i])

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and self.data_ptr() == other.data_ptr()

    __hash__ = object.__hash__

    def __repr__(self) -> str:
        values = "\n".join(f" {v}" for v in self.tolist())
        return f"{values}\n[torch.storage.UntypedStorage(device={self.device}) of size {len(self)}]"


class TypedStorage:
    """The elements of a storage in memory order, like `torch.storage.TypedStorage`."""

    def __init__(self, storage: Storage, type: dtype) -> None:
        flat = storage.flat()
        self._flat = flat if flat.dtype == type.numpy else flat.view(type.numpy)
        self.dtype = type
        self._untyped = UntypedStorage(storage)

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return self._untyped

    def data_ptr(self) -> int:
        """The address of the first element."""
        return self._untyped.data_ptr()

    def size(self) -> int:
        """The number of elements."""
        return int(self._flat.size)

    __len__ = size

    def nbytes(self) -> int:
        """The number of bytes."""
        return self._untyped.nbytes()

    def element_size(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def device(self) -> device:
        """Where the memory is."""
        return self._untyped.device

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        return list(base.of_array(self._flat).to_numpy(self._flat).tolist())

    def __getitem__(self, i: int) -> Any:
        return self._flat[i].item()

    def __setitem__(self, i: int, value: float) -> None:
        self._flat[i] = value

    def __repr__(self) -> str:
        values = "\n".join(f" {v}" for v in self.tolist())
        return (
            f"{values}\n[torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) "
            f"of size {self.size()}]"
        )
