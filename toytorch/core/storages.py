"""Storages as programs see them: a flat run of bytes, or of elements of one type.

Like `torch.UntypedStorage`, `torch.TypedStorage` and the older classes `torch.FloatStorage` and so
on, whose objects are TypedStorages.
"""

from __future__ import annotations

import copy
import mmap
import os
import weakref
from collections.abc import Iterator, Sequence
from typing import IO, Any

import numpy as np

from toytorch.backends import base
from toytorch.core.storage import Storage
from toytorch.facts import dtype as types
from toytorch.facts.composed import called
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Args, Array, Device, DType

CONVERSIONS = {
    "bool": types.bool, "byte": types.uint8, "char": types.int8, "short": types.int16,
    "int": types.int32, "long": types.int64, "half": types.float16, "bfloat16": types.bfloat16,
    "float": types.float32, "double": types.float64, "complex_float": types.complex64,
    "complex_double": types.complex128,
}  # fmt: skip


def backend_of(where: Device) -> Any:
    """The backend of a place, the CPU's for None; RuntimeError for one that has no storages."""
    try:
        return base.of_device(device_class("cpu" if where is None else where))
    except RuntimeError:
        raise RuntimeError(
            f"torch.UntypedStorage(): Storage device not recognized: {where}"
        ) from None


class Face:
    """What both kinds have in common: size in bytes, place, and moving elsewhere."""

    _storage: Storage

    def untyped(self) -> UntypedStorage:
        """The same memory as bytes."""
        return UntypedStorage.of(self._storage)

    @property
    def _cdata(self) -> int:
        return id(self._storage)

    def data_ptr(self) -> int:
        """The address of the first byte."""
        return self._storage.memory_at()[0] if self._storage.flat().size else 0

    def nbytes(self) -> int:
        """The number of bytes."""
        return int(self._storage.flat().nbytes)

    @property
    def device(self) -> device_class:
        """Where the memory is."""
        flat = self._storage.flat()
        return base.of_array(flat).device(flat)

    @property
    def is_cuda(self) -> bool:
        """Whether the memory is on a GPU."""
        return self.device.type == "cuda"

    def __sizeof__(self) -> int:
        return object.__sizeof__(self) + self.nbytes()

    is_sparse = is_hpu = is_sparse_csr = False
    filename: str | None = None

    def get_device(self) -> int:
        """The number of the GPU, -1 on the CPU."""
        return -1 if self.device.index is None else self.device.index

    def is_shared(self) -> bool:
        """Whether other processes see it: storages on a GPU are, and those of shared memory."""
        owner: Any = self._storage.array
        while isinstance(owner, np.ndarray):
            owner = owner.base
        owner = owner.obj if isinstance(owner, memoryview) else owner
        return isinstance(owner, mmap.mmap) or self.is_cuda

    def is_pinned(self, device: Device = "cuda") -> bool:
        """Whether it is in pinned memory."""
        backend: Any = base.of_kind("cuda")
        return bool(backend.is_available() and backend.is_pinned(self._storage.array))

    def resizable(self) -> bool:
        """Whether `resize_` may be called."""
        return not self._storage.fixed

    def _over(self, flat: Array) -> Any:
        """One of this kind over a flat array."""
        raise NotImplementedError  # both kinds have their own

    def clone(self) -> Any:
        """A copy."""
        return self._over(self._storage.flat().copy())

    def __copy__(self) -> Any:
        return self.clone()

    def __deepcopy__(self, memo: dict[Any, Any]) -> Any:
        known = memo.setdefault("torch", {})
        if self._cdata not in known:
            known[self._cdata] = self._again(copy.deepcopy(self._storage, memo))
        return known[self._cdata]

    def _again(self, storage: Storage) -> Any:
        """A face like this one of another memory."""
        return UntypedStorage.of(storage)

    def cpu(self) -> Any:
        """This storage, or its copy on the CPU."""
        return self.to("cpu")

    def cuda(self, device: Any = None, non_blocking: bool = False) -> Any:
        """This storage, or its copy on a GPU."""
        return self.to("cuda" if device is None else device_class(device))

    def to(self, device: Any, non_blocking: bool = False) -> Any:
        """This storage if it is there, or its copy on that device."""
        target = device_class(device)
        if target == self.device:
            return self
        flat = self._storage.flat()
        return self._over(backend_of(target).from_numpy(base.of_array(flat).to_numpy(flat)))

    def pin_memory(self, device: Device = "cuda") -> Any:
        """A copy in pinned memory."""
        if self.device.type != "cpu":
            raise TypeError(f"cannot pin '{self.untyped().type()}' only CPU memory can be pinned")
        backend: Any = base.of_kind("cuda")
        if not backend.is_available():
            raise RuntimeError("Cannot access accelerator device when none is available.")
        return self._over(backend.pinned_copy(self._storage.flat()))

    def share_memory_(self) -> Any:
        """Does nothing: tensors are sent to other processes by copies."""
        if self.device.type == "meta":
            self._share_fd_cpu_()
        return self

    def _share_fd_cpu_(self) -> None:
        """Raises: memory is never handed to another process."""
        if self.device.type != "cpu":
            raise RuntimeError("_share_fd_: only available on CPU")
        raise NotImplementedError("toytorch sends tensors to other processes by copies")

    _share_filename_cpu_ = _share_fd_cpu_

    def _write_file(
        self, file: Any, is_real_file: bool, save_size: bool, element_size: int
    ) -> None:
        """Writes the elements to a binary file, behind their number if that is wanted."""
        flat = self._storage.flat()
        values = base.of_array(flat).to_numpy(flat)
        if save_size:
            file.write((values.nbytes // element_size).to_bytes(8, "little"))
        file.write(values.tobytes())

    def readable(self) -> None:
        """Raises NotImplementedError where there are no elements: on the device meta."""
        if self.device.type == "meta":
            raise NotImplementedError("Not available for 'meta' device type")

    def _take(self, flat: Array) -> None:
        """Holds another memory from now on."""
        self._storage.array = self._storage.memory = flat

    def _numbers(self) -> Array:
        """The elements on the CPU, as NumPy has them."""
        raise NotImplementedError  # both kinds have their own

    def tolist(self) -> list[Any]:
        """The elements as Python numbers."""
        self.readable()
        return list(self._numbers().tolist())

    def __iter__(self) -> Iterator[Any]:
        return iter(self.tolist())

    def _said(self) -> str:
        """What comes after the elements."""
        raise NotImplementedError  # both kinds have their own

    def __repr__(self) -> str:
        given = ["..."] if self.device.type == "meta" else [f" {v}" for v in self.tolist()] or [" "]
        values = "\n".join(given)
        return f"{values}\n[{self._said()}]"

    def index(self, at: Any, length: int) -> int:
        """An index counted from the front; IndexError where there is none."""
        if not -length <= at < length:
            raise IndexError(f"index {at} out of range for storage of size {length}")
        return int(at) % length


class UntypedStorage(Face):
    """Bytes: `UntypedStorage(4)`, or `UntypedStorage([1, 2, 3])` of their values.

    >>> UntypedStorage([1, 2, 3])[1:]
     2
     3
    [torch.storage.UntypedStorage(device=cpu) of size 2]
    """

    def __init__(self, *args: Any, device: Device = None) -> None:
        backend = backend_of(device)
        if len(args) > 1:
            kinds = ", ".join(type(a).__name__ for a in args)
            raise TypeError(
                "torch.UntypedStorage() received an invalid combination of arguments - got "
                f"({kinds}), but expected one of:\n * (*, torch.device device = None)\n * (int size, "
                "*, torch.device device = None)\n * (object sequence, *, torch.device device = None)\n"
            )
        given = args[0] if args else 0
        if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
            flat = np.zeros(int(given), np.uint8)
        elif hasattr(given, "__len__") and hasattr(given, "__getitem__"):
            flat = np.array([int(v) & 255 for v in given], np.uint8)
        else:
            raise RuntimeError(
                f"torch.UntypedStorage(): Expected a sequence type, but got {type(given).__name__}"
            )
        placed = backend.from_numpy(flat)
        self._storage = Storage(placed, placed)
        self._storage.face = weakref.ref(self)

    @classmethod
    def of(cls, storage: Storage) -> UntypedStorage:
        """The one face of a storage."""
        known = getattr(storage, "face", None)
        found: UntypedStorage | None = None if known is None else known()
        if found is None:
            found = cls.__new__(cls)
            found._storage = storage
            storage.face = weakref.ref(found)
        return found

    def _over(self, flat: Array) -> UntypedStorage:
        return UntypedStorage.of(Storage(flat, flat))

    @property
    def _bytes(self) -> Any:
        return self._storage.flat().view("uint8")

    def _numbers(self) -> Array:
        flat = self._bytes
        return base.of_array(flat).to_numpy(flat)

    def _said(self) -> str:
        return f"torch.storage.UntypedStorage(device={self.device}) of size {len(self)}"

    def size(self) -> int:
        """The number of bytes."""
        return self.nbytes()

    def __len__(self) -> int:
        return self.nbytes()

    def element_size(self) -> int:
        """1: an element is a byte."""
        return 1

    def new(self) -> UntypedStorage:
        """An empty one."""
        return UntypedStorage(device=self.device)

    def type(self, dtype: Any = None, non_blocking: bool = False) -> Any:
        """The name of its class."""
        return "torch.storage.UntypedStorage" if dtype is None else _typed(self, dtype)

    def _place(self, at: Any) -> Any:
        """A slice, or an index counted from the front."""
        if isinstance(at, slice):
            return at
        if not isinstance(at, (int, np.integer)):
            raise TypeError(f"can't index a torch.UntypedStorage with {type(at).__name__}")
        return self.index(at, len(self))

    def __getitem__(self, at: Any) -> Any:
        self.readable()
        if not isinstance(at, slice):
            return int(self._numbers()[self._place(at)])
        if at.step not in (None, 1):
            raise ValueError(
                f"Trying to slice with a step of {at.step}, but only a step of 1 is supported"
            )
        return self._over(self._bytes[at])

    def __setitem__(self, at: Any, value: int) -> None:
        self._bytes[self._place(at)] = int(value) & 255

    def copy_(self, source: Any, non_blocking: bool = False) -> UntypedStorage:
        """Takes over the bytes of another storage of the same size."""
        theirs = source.untyped()
        if len(theirs) != len(self):
            raise RuntimeError(
                f"size does not match, self was {len(self)} bytes but src was {len(theirs)} bytes"
            )
        if self.device.type != "meta":
            self._bytes[...] = backend_of(self.device).from_numpy(theirs._numbers())
        return self

    def fill_(self, value: int) -> UntypedStorage:
        """Sets every byte."""
        self._bytes[...] = int(value) & 255
        return self

    def resize_(self, size: int) -> UntypedStorage:
        """Another size; what was there stays as far as it fits. Tensors keep the memory they have."""
        self._storage.refuse_resizing()
        if self.device.type == "meta":
            self._take(self._bytes.__class__.new((size,), np.uint8))
            return self
        old = self._numbers()
        flat = np.zeros(size, np.uint8)
        flat[: old.size] = old[:size]
        self._take(backend_of(self.device).from_numpy(flat))
        return self

    def byteswap(self, dtype: DType) -> None:
        """Reverses the bytes of each element of a type."""
        width = dtype.itemsize // 2 if dtype.is_complex else dtype.itemsize
        cells = self._bytes.reshape(-1, width)
        cells[...] = cells[:, ::-1].copy()

    @staticmethod
    def from_file(
        filename: str | os.PathLike[str], shared: bool = False, nbytes: int = 0
    ) -> UntypedStorage:
        """The bytes of a file; with `shared`, writes go to the file, which is made if need be."""
        flat = mapped(filename, shared, nbytes)
        storage = UntypedStorage.of(Storage(flat, flat))
        storage.filename = str(filename) if shared else None
        return storage

    def __eq__(self, other: object) -> bool:
        return isinstance(other, UntypedStorage) and (
            self is other or bool(len(self) and self.data_ptr() == other.data_ptr())
        )

    __hash__ = object.__hash__


def mapped(filename: str | os.PathLike[str], shared: bool, size: int) -> Array:
    """A file's first bytes as memory; RuntimeError where it does not open or, not shared, has fewer."""
    path = os.fspath(filename)
    if size < 0:
        raise RuntimeError(
            f"unable to mmap {size} bytes from file <{path}>: Cannot allocate memory (12)"
        )
    if not size:
        return np.empty(0, np.uint8)  # no file is looked at
    with _opened(path, shared) as file:
        held = os.fstat(file.fileno()).st_size
        if held < size and not shared:
            raise RuntimeError(
                f"file <{path}> size <{held}> is smaller than the required mapping size <{size}>"
            )
        if not shared:
            return np.fromfile(file, np.uint8, size)
        try:
            if held < size:
                file.truncate(size)
            return np.memmap(file, np.uint8, "r+", shape=(size,))
        except OSError as error:
            raise RuntimeError(
                f"unable to map file <{path}> of {size} bytes: {error.strerror} ({error.errno})"
            ) from None


def _opened(path: str, shared: bool) -> IO[bytes]:
    """A file to read, or to write, which is then made if need be."""
    mode, flags = ("write", os.O_RDWR | os.O_CREAT) if shared else ("only", os.O_RDONLY)
    try:
        return open(path, "r+b" if shared else "rb", opener=lambda p, _: os.open(p, flags, 0o600))
    except OSError as error:
        raise RuntimeError(
            f"unable to open file <{path}> in read-{mode} mode: {error.strerror} ({error.errno})"
        ) from None


EXPECTED = """received an invalid combination of arguments. Expected one of:
 * (*, torch.device device, torch.dtype dtype)
 * (int size, *, torch.device device, torch.dtype dtype)
 * (Sequence data, *, torch.device device, torch.dtype dtype)
 * (*, UntypedStorage wrap_storage, torch.dtype dtype)"""
EXPECTED_OLD = """received an invalid combination of arguments. Expected one of:
 * no arguments
 * (int size)
 * (Sequence data)
 * (*, UntypedStorage wrap_storage)"""

NO_INDEX = "can't index a <class 'torch.storage.TypedStorage'> with"


class TypedStorage(Face):
    """Elements of one type: `TypedStorage(4, dtype=...)`, or of a sequence's values.

    >>> TypedStorage([1, 2], dtype=types.int64)
     1
     2
    [torch.storage.TypedStorage(dtype=torch.int64, device=cpu) of size 2]
    """

    dtype: types.dtype

    def __init__(
        self,
        *args: Any,
        wrap_storage: UntypedStorage | None = None,
        dtype: DType | None = None,
        device: Device = None,
        _internal: bool = False,
    ) -> None:
        head = f"TypedStorage.__init__ {EXPECTED}\n"
        if wrap_storage is not None and not args:
            if dtype is None:
                raise RuntimeError(f"{head}Argument 'dtype' must be specified")
            if not isinstance(dtype, types.dtype):
                raise TypeError(f"{head}Argument 'dtype' must be torch.dtype, not {type(dtype)}")
            if device is not None:
                raise RuntimeError(
                    f"{head}Argument 'device' should not be specified when 'wrap_storage' is given"
                )
        self.dtype = dtype or types.get_default_dtype()
        self._storage = made_of(args, wrap_storage, self.dtype, device, head)

    @classmethod
    def of(cls, storage: Storage, dtype: DType) -> TypedStorage:
        """A storage seen as elements of a type."""
        made = cls.__new__(TypedStorage)
        made.dtype, made._storage = dtype, storage
        return made

    def _again(self, storage: Storage) -> Any:
        return TypedStorage.of(storage, self.dtype)

    def _over(self, flat: Array) -> TypedStorage:
        return _held(flat, self.dtype)

    @property
    def _flat(self) -> Any:
        flat = self._storage.flat()
        if flat.dtype == self.dtype.numpy:
            return flat
        whole = flat.view("uint8")
        return whole[: whole.size // self.dtype.itemsize * self.dtype.itemsize].view(
            self.dtype.numpy
        )

    def _numbers(self) -> Array:
        return base.of_array(self._flat).to_numpy(self._flat)

    def _said(self) -> str:
        return (
            f"torch.storage.TypedStorage(dtype={self.dtype}, device={self.device}) of size "
            f"{self.size()}"
        )

    @property
    def _untyped_storage(self) -> UntypedStorage:
        return self.untyped()

    def size(self) -> int:
        """The number of elements."""
        return self.nbytes() // self.dtype.itemsize

    def __len__(self) -> int:
        return self.size()

    def element_size(self) -> int:
        """Bytes of an element."""
        return self.dtype.itemsize

    def pickle_storage_type(self) -> str:
        """The name of the older class, `FloatStorage` and so on."""
        return f"{self.dtype.legacy}Storage"

    def type(self, dtype: object = None, non_blocking: bool = False) -> Any:
        """The older class's name; with an argument, the elements in that type."""
        if dtype is None:
            where = "torch" if self.device.type == "cpu" else f"torch.{self.device.type}"
            return f"{where}.{self.pickle_storage_type()}"
        return _typed(self, dtype)

    def __getitem__(self, at: Any) -> Any:
        if isinstance(at, slice):
            raise RuntimeError("slices are only supported in UntypedStorage.__getitem__")
        if not isinstance(at, (int, np.integer)):
            raise RuntimeError(f"{NO_INDEX} {type(at)}")
        self.readable()
        return self._flat[self.index(at, len(self))].item()

    def __setitem__(self, at: Any, value: Any) -> None:
        if not isinstance(at, (int, np.integer, slice)):
            raise RuntimeError(f"{NO_INDEX} {type(at)}")
        at = at if isinstance(at, slice) else self.index(at, len(self))
        self._flat[at] = value._numbers() if isinstance(value, TypedStorage) else value

    def fill_(self, value: Any) -> TypedStorage:
        """Sets every element."""
        self._flat[...] = value
        return self

    def copy_(self, source: Any, non_blocking: bool = False) -> TypedStorage:
        """Takes over the bytes of another storage of the same size."""
        self.untyped().copy_(source)
        return self

    def resize_(self, size: int) -> None:
        """Another number of elements; what was there stays as far as it fits."""
        self.untyped().resize_(size * self.dtype.itemsize)

    @classmethod
    def from_file(
        cls, filename: str | os.PathLike[str], shared: bool = False, size: int = 0
    ) -> Any:
        """The elements of a file, of the older class's type."""
        if cls is TypedStorage:
            raise RuntimeError("from_file can only be called on derived classes")
        kind = cls.dtype
        flat = UntypedStorage.from_file(filename, shared, size * kind.itemsize)
        return TypedStorage.of(flat._storage, kind)

    @classmethod
    def from_buffer(
        cls, buffer: Any, byte_order: str = "native", count: int = -1, offset: int = 0, **more: Any
    ) -> Any:
        """A copy of a buffer's elements, of the older class's type; `byte_order` is "native",
        "little" or "big"."""
        if cls is TypedStorage:
            raise RuntimeError("from_buffer: only child classes of _LegacyStorage have it")
        kind = cls.dtype
        if byte_order not in ("native", "little", "big"):
            raise ValueError(
                f"invalid byte_order '{byte_order}' (expected 'big', 'little', or 'native')"
            )
        if kind is types.bool:
            return _held(np.frombuffer(buffer, np.uint8, count, offset) != 0, kind)
        order = {"native": "=", "little": "<", "big": ">"}[byte_order]
        given = np.frombuffer(buffer, np.dtype(kind.numpy).newbyteorder(order), count, offset)
        return _held(given.astype(kind.numpy), kind)

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def _held(flat: Array, kind: DType) -> TypedStorage:
    return TypedStorage.of(Storage(flat, flat), kind)


def _typed(storage: Any, kind: Any) -> TypedStorage:
    """A storage's elements in another type: a dtype, or an older class or its name."""
    if isinstance(kind, str):
        kind = next((c for c in LEGACY if kind == f"torch.{c.__name__}"), None)
    kind = kind if isinstance(kind, types.dtype) else kind.dtype
    made = storage._numbers().astype(kind.numpy)
    return _held(backend_of(storage.device).from_numpy(made), kind)


def _converting(name: str, kind: types.dtype) -> Any:
    def convert(self: object) -> TypedStorage:
        return _typed(self, kind)

    return called(name, f"The elements as {kind}.", convert)


for _name, _kind in CONVERSIONS.items():
    setattr(Face, _name, _converting(_name, _kind))


def made_of(args: Args, wrapped: object, kind: DType, device: Device, head: str) -> Storage:
    """The storage that is to be wrapped, or a new one: a number of elements, or those of a sequence."""
    if wrapped is not None:
        if args:
            raise RuntimeError(
                f"{head}No positional arguments should be given when using 'wrap_storage'"
            )
        if not isinstance(wrapped, UntypedStorage):
            raise TypeError(
                f"{head}Argument 'wrap_storage' must be UntypedStorage, but got {type(wrapped)}"
            )
        return wrapped._storage
    if len(args) > 1:
        raise RuntimeError(f"{head}Too many positional arguments")
    backend, given = backend_of(device), args[0] if args else 0
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        flat = np.zeros(int(given), kind.numpy)
    elif isinstance(given, str):
        raise TypeError(f"new(): invalid data type '{type(given).__name__}'")
    elif isinstance(given, Sequence):
        flat = np.array(list(given)).astype(kind.numpy)
    else:
        raise TypeError(f"{head}Argument type not recognized: {type(given)}")
    placed = backend.from_numpy(flat)
    return Storage(placed, placed)


class _LegacyStorageMeta(type):
    """A TypedStorage is one of the class of its type and place."""

    dtype: types.dtype
    place = "cpu"

    def __instancecheck__(cls, instance: object) -> bool:
        return (
            type(instance) is TypedStorage
            and instance.dtype is cls.dtype
            and instance.device.type == cls.place
        )


class _LegacyStorage(TypedStorage, metaclass=_LegacyStorageMeta):
    """The classes `FloatStorage` and so on, which make TypedStorages of their type."""

    def __new__(cls, *args: Any, wrap_storage: object = None, **more: Any) -> Any:
        head = f"{cls}.__new__ {EXPECTED_OLD}\n"
        if cls is _LegacyStorage:
            raise RuntimeError("Only child classes of _LegacyStorage can be instantiated")
        for word in more:
            if word not in ("device", "dtype"):
                raise TypeError(
                    f"TypedStorage.__new__() got an unexpected keyword argument '{word}'"
                )
            raise RuntimeError(f"{head}Keyword argument '{word}' cannot be specified")
        made = made_of(args, wrap_storage, cls.dtype, cls.place, head)
        return TypedStorage.of(made, cls.dtype)


def legacy_storage(kind: types.dtype, place: str = "cpu") -> Any:
    """The older class of storages of a type on a kind of device."""
    space: dict[str, Any] = {
        "dtype": kind,
        "place": place,
        "__module__": "torch" if place == "cpu" else f"torch.{place}",
        "__doc__": f"The older name of a storage of {kind}.",
    }
    return _LegacyStorageMeta(f"{kind.legacy}Storage", (_LegacyStorage,), space)


LEGACY: list[Any] = [legacy_storage(kind) for kind in CONVERSIONS.values()]
