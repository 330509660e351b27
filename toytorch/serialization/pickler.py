"""What was saved, written in the few instructions of Python's pickle that PyTorch reads too.

A pickle is a program for a small stack machine. `GLOBAL` names a function, `REDUCE` calls it,
`BINPERSID` stands for a storage, whose bytes are a record of their own. This writer knows tensors,
containers and plain values itself, and asks other objects how they are made. Classes of toytorch
get PyTorch's names.
"""

from __future__ import annotations

import copyreg
import pickle
import struct
import sys
from _compat_pickle import REVERSE_IMPORT_MAPPING, REVERSE_NAME_MAPPING
from collections import Counter, OrderedDict
from pickle import PicklingError, whichmodule  # type: ignore[attr-defined]  # not in the stubs
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from toytorch.backends import base
from toytorch.core.public_modules import pytorch_module
from toytorch.core.storage import Storage
from toytorch.core.storages import TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor, warn_of_hooks, wrap
from toytorch.facts.device import device, layout, strided
from toytorch.facts.dtype import OF_BYTES, dtype
from toytorch.facts.hints import Array
from toytorch.facts.package import is_ours
from toytorch.facts.size import Size
from toytorch.nn import Module
from toytorch.nn.parameter import Parameter, is_lazy
from toytorch.ops.named_results import result_class
from toytorch.serialization import known
from toytorch.serialization.modules import exported

PLAIN = (type(None), bool, int, float, str)
# What classes of tensors say of themselves, unless a program's class says otherwise.
PLAINLY: set[Any] = {Tensor.__reduce_ex__, Parameter.__reduce_ex__}
NOT_ATTRIBUTES = {"persistent"}  # kept by modules, not by their tensors


def is_known(kind: type) -> bool:
    """Whether a class of tensors is not a program's own."""
    return kind is Tensor or is_ours(kind.__module__)


class Global(NamedTuple):
    """A function or class by name: "module name"."""

    name: str


class Call(NamedTuple):
    """A function and what it is called with."""

    function: str
    arguments: tuple[Any, ...]


class StorageRef(NamedTuple):
    """A storage: the class its elements have, the number of its record, its place and length."""

    kind: str
    key: str
    where: str
    numel: int


class Pickler:
    """Collects instructions in `out`, and the memory of the storages in `storages`.

    In the older layout a storage also says which part of another it is: of none.
    """

    def __init__(self, older: bool = False) -> None:
        self.out = bytearray(b"\x80\x02")
        self.older = older
        self.storages: dict[str, Any] = {}  # key: flat array
        self._keys: dict[Any, str] = {}
        self.kinds: dict[str, dtype | None] = {}
        self._memo: dict[Any, int] = {}
        self._alive: list[Any] = []  # an id means nothing once its object is gone

    def dump(self, value: Any) -> bytes:
        """The whole program for `value`."""
        try:
            self.write(value)
        except RecursionError:
            raise PicklingError("cannot save containers nested so deeply") from None
        return bytes(self.out + b".")

    def write(self, value: Any) -> None:
        """Instructions that leave `value` on top of the stack."""
        kind = type(value)
        key = (kind, value) if kind in (str, Global) else id(value)
        if kind is Call or kind is StorageRef:
            self._composite(value)
        elif kind in PLAIN and kind is not str:
            self._plain(value)
        elif key in self._memo:
            self._get(self._memo[key])
        elif kind is str:
            text = value.encode("utf-8", "surrogatepass")
            self._put(key, value, b"X" + struct.pack("<I", len(text)) + text)
        elif kind is Global:
            module, _, name = value.name.rpartition(" ")
            self._put(key, value, f"c{module}\n{name}\n".encode())
        elif kind in WRITERS:
            WRITERS[kind](self, value)
        elif isinstance(value, Tensor) and (is_known(kind) or kind.__reduce_ex__ in PLAINLY):
            self._tensor(value)
        else:
            self._object(value)

    # -- the memo: what was written before is fetched, not written again ----------------------

    def _put(self, key: Any, value: Any, code: bytes = b"") -> None:
        n = self._memo[key] = len(self._memo)
        self._alive.append(value)
        self.out += code + (b"q%c" % n if n < 256 else b"r" + struct.pack("<I", n))

    def _get(self, n: int) -> None:
        self.out += b"h%c" % n if n < 256 else b"j" + struct.pack("<I", n)

    # -- values -------------------------------------------------------------------------------

    def _plain(self, value: Any) -> None:
        if value is None or isinstance(value, bool):
            self.out += {None: b"N", True: b"\x88", False: b"\x89"}[value]
        elif isinstance(value, float):
            self.out += b"G" + struct.pack(">d", value)
        elif 0 <= value < 256:
            self.out += b"K%c" % value
        elif -(1 << 31) <= value < 1 << 31:
            self.out += b"J" + struct.pack("<i", value)
        else:
            digits = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
            short = len(digits) < 256
            self.out += (
                b"\x8a%c" % len(digits) if short else b"\x8b" + struct.pack("<i", len(digits))
            )
            self.out += digits

    def _composite(self, value: Call | StorageRef) -> None:
        if isinstance(value, StorageRef):
            storage = "storage", Global(value.kind), value.key, value.where, value.numel
            self._items((*storage, None) if self.older else storage)
            self.out += b"Q"
        else:
            self.write(Global(value.function))
            self._items(value.arguments)
            self.out += b"R"

    def _items(self, values: tuple[Any, ...]) -> None:
        """A tuple, not memoized."""
        if not values:
            self.out += b")"
            return
        if len(values) > 3:
            self.out += b"("
        for value in values:
            self.write(value)
        self.out += b"t" if len(values) > 3 else (b"\x85", b"\x86", b"\x87")[len(values) - 1]

    def _tuple(self, value: tuple[Any, ...]) -> None:
        self._items(value)
        if id(value) in self._memo:
            raise PicklingError("cannot save a tuple that contains itself")
        if value:
            self._put(id(value), value)

    def _list(self, value: list[Any]) -> None:
        self._put(id(value), value, b"]")
        if value:
            self.out += b"("
            for item in value:
                self.write(item)
            self.out += b"e"

    def _dict(self, value: dict[Any, Any]) -> None:
        self._put(id(value), value, b"}")
        self._entries(value)

    def _ordered_dict(self, value: Any) -> None:
        self._composite(Call("collections OrderedDict", ()))
        self._put(id(value), value)
        self._entries(value)
        if vars(value):  # a state dict's `_metadata`
            self.write(dict(vars(value)))
            self.out += b"b"

    def _entries(self, value: dict[Any, Any]) -> None:
        if value:
            self.out += b"("
            for key, item in value.items():
                self.write(key)
                self.write(item)
            self.out += b"u"

    def _called(self, value: Any, function: str, *arguments: object) -> None:
        """`value` is what a function gives for arguments."""
        self._composite(Call(function, arguments))
        self._put(id(value), value)

    # -- tensors ------------------------------------------------------------------------------

    def _storage(self, memory: Storage | None, kind: dtype | None, flat: Array) -> StorageRef:
        backend = base.of_array(flat)
        address = backend.data_ptr(flat)
        key = (str(backend.device(flat)), address, flat.nbytes) if flat.nbytes else id(memory)
        if key not in self._keys:
            number = self._keys[key] = str(len(self.storages))
            self.storages[number] = flat
            self.kinds[number] = kind
            self._alive.append(memory)
        known = self.kinds[self._keys[key]]
        if flat.nbytes and kind is not None and known not in (None, kind):
            raise RuntimeError(
                "Cannot save multiple tensors or storages that view the same data as"
                " different types"
            )
        self.kinds[self._keys[key]] = known or kind
        step = 1 if kind is None else kind.itemsize
        name = "torch.storage UntypedStorage" if kind is None else f"torch {kind.legacy}Storage"
        return StorageRef(name, self._keys[key], str(backend.device(flat)), flat.nbytes // step)

    def _typed_storage(self, value: TypedStorage) -> None:
        untyped = value.untyped()
        ref = self._storage(None, value.dtype, untyped._storage.flat())
        self._alive.append(untyped)
        self.write(ref)

    def _untyped_storage(self, value: UntypedStorage) -> None:
        self._alive.append(value)
        self.write(self._storage(None, None, value._storage.flat()))

    def _tensor(self, tensor: Tensor) -> None:
        warn_of_hooks(tensor)
        if is_lazy(tensor):
            kind = f"torch.nn.parameter {type(tensor).__name__}"
            self._called(tensor, kind, tensor.requires_grad, tensor.device, tensor.dtype)
            return
        if tensor.is_nested:
            self._nested(tensor)
            return
        learned = isinstance(tensor, Parameter)  # its outer call says whether gradients are wanted
        wanted = tensor.requires_grad and not learned
        call = (
            self._sparse(tensor)
            if tensor.layout is not strided
            else self._without_memory(tensor, wanted)
            if tensor.device.type == "meta"
            else self._strided(tensor, wanted)
        )
        state = {
            k: v
            for k, v in vars(tensor).items()
            if not k.startswith("_") and k not in NOT_ATTRIBUTES
        }
        if learned:
            name = "torch._utils _rebuild_parameter"
            arguments = (call, tensor.requires_grad, Call("collections OrderedDict", ()))
            call = (
                Call(name + "_with_state", (*arguments, state)) if state else Call(name, arguments)
            )
        elif state or not is_known(type(tensor)):
            own: Any = Global("torch Tensor") if is_known(type(tensor)) else type(tensor)
            call = Call(
                "torch._tensor _rebuild_from_type_v2",
                (Global(call.function), own, call.arguments, state),
            )
        self._called(tensor, call.function, *call.arguments)

    def _nested(self, tensor: Any) -> None:
        """A nested tensor by its parts, as PyTorch writes them."""
        if tensor.layout is strided:
            flat = tensor.detach().values()
            self._called(
                tensor, "torch._utils _rebuild_nested_tensor", flat, *tensor.layout_of_parts()
            )
            return
        parts = tensor.__reduce_ex__(2)[1][0]
        known = parts["_metadata_cache"]  # each number is the length of a tensor
        parts["_metadata_cache"] = {k: wrap(np.empty((n, 0), np.float32)) for k, n in known.items()}
        self._alive.append(parts)
        self._called(tensor, "torch.nested._internal.nested_tensor _rebuild_njt", parts)

    def _strided(self, tensor: Tensor, requires_grad: bool) -> Call:
        memory = tensor._memory()
        untyped = tensor.dtype in OF_BYTES
        ref = self._storage(memory, None if untyped else tensor.dtype, memory.flat())
        given = (
            ref,
            tensor.storage_offset(),
            tuple(tensor.shape),
            tuple(tensor.stride()),
            requires_grad,
            Call("collections OrderedDict", ()),
        )
        if untyped:
            return Call("torch._utils _rebuild_tensor_v3", (*given, tensor.dtype))
        return Call("torch._utils _rebuild_tensor_v2", given)

    def _without_memory(self, tensor: Tensor, requires_grad: bool) -> Call:
        return Call(
            "torch._utils _rebuild_meta_tensor_no_storage",
            (tensor.dtype, tuple(tensor.shape), tuple(tensor.stride()), requires_grad),
        )

    def _sparse(self, tensor: Tensor) -> Call:
        kind = Call("torch.serialization _get_layout", (str(tensor.layout),))
        parts: tuple[Any, ...]
        if tensor.is_sparse:
            coalesced = bool(tensor.is_coalesced())
            parts = tensor._indices(), tensor._values(), tensor.size(), coalesced
        else:
            parts = *(wrap(part) for _, part in tensor._array.parts()), tensor.size()
        return Call("torch._utils _rebuild_sparse_tensor", (kind, parts))

    # -- everything else ----------------------------------------------------------------------

    def _object(self, value: Any) -> None:
        """An object as its class says (`__reduce_ex__`); a class or function by its name."""
        if value is type(None) or value is type(...):  # which have no name
            self._called(value, "__builtin__ type", None if value is type(None) else ...)
            return
        if isinstance(value, tuple) and (fields := getattr(value, "_fields", None)):
            name = type(value).__name__
            if type(value) is result_class(name, fields):
                self._called(value, f"torch.return_types {name}", tuple(value), {})
                return
        if isinstance(value, (type, FunctionType)):
            self._named(value, value.__qualname__)
            return
        reduce = copyreg.dispatch_table.get(type(value))
        how = reduce(value) if reduce else value.__reduce_ex__(2)
        if isinstance(how, str):
            self._named(value, how)
            return
        function, arguments, state, items, entries = (*how, None, None, None)[:5]
        if getattr(function, "__name__", "") == "__newobj__":
            self.write(arguments[0])
            self._items(arguments[1:])
            self.out += b"\x81"
        else:
            self.write(function)
            self._items(tuple(arguments))
            self.out += b"R"
        if id(value) not in self._memo:  # its arguments may hold it
            self._put(id(value), value)
        if items is not None:
            for item in items:
                self.write(item)
                self.out += b"a"
        if entries is not None:
            self._entries(dict(entries))
        if state is not None:
            if isinstance(value, Module) and isinstance(state, dict):
                state = exported(value, state)
            self.write(state)
            self.out += b"b"

    def _named(self, value: Any, name: str) -> None:
        module = known.names().get(id(value), "").rpartition(".")[0]
        if module:
            name = known.names()[id(value)].rpartition(".")[2]
        else:
            if "<locals>" in name:
                pickle.dumps(value)  # refuses it, in the words of this version of Python
            module = whichmodule(value, name)
            found: Any = sys.modules.get("toytorch" if module == "torch" else module)
            for part in name.split("."):
                found = getattr(found, part, None)
            if found is not value:
                raise PicklingError(
                    f"Can't pickle {value!r}: attribute lookup {name} on {module} failed"
                )
            if is_ours(module):
                module = pytorch_module(module, name)
        module, name = REVERSE_NAME_MAPPING.get((module, name), (module, name))
        self.write(Global(f"{REVERSE_IMPORT_MAPPING.get(module, module)} {name}"))


WRITERS: dict[type, Any] = {
    tuple: Pickler._tuple,
    list: Pickler._list,
    dict: Pickler._dict,
    OrderedDict: Pickler._ordered_dict,
    TypedStorage: Pickler._typed_storage,
    UntypedStorage: Pickler._untyped_storage,
    Counter: lambda p, v: p._called(v, "collections Counter", dict(v)),
    set: lambda p, v: p._called(v, "__builtin__ set", list(v)),
    complex: lambda p, v: p._called(v, "__builtin__ complex", v.real, v.imag),
    bytes: lambda p, v: p._called(v, "_codecs encode", v.decode("latin1"), "latin1"),
    bytearray: lambda p, v: p._called(v, "__builtin__ bytearray", bytes(v)),
    Size: lambda p, v: p._called(v, "torch Size", tuple(v)),
    dtype: lambda p, v: p.write(Global(f"torch {v.name}")),
    layout: lambda p, v: p._called(v, "torch.serialization _get_layout", repr(v)),
    device: lambda p, v: p._called(
        v, "torch device", v.type, *(() if v.index is None else (v.index,))
    ),
}
