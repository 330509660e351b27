"""What a file may name: the table of its functions, classes and types. There is nothing else.

Each function here checks what it is given, for a file may call it with anything.
"""

from __future__ import annotations

import math
import sys
from collections import Counter, OrderedDict
from pickle import UnpicklingError
from types import FunctionType
from typing import Any, NamedTuple

from toytorch.backends import base
from toytorch.core.storages import TypedStorage
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.device import (
    device,
    jagged,
    layout,
    sparse_bsc,
    sparse_bsr,
    sparse_coo,
    sparse_csc,
    sparse_csr,
    strided,
)
from toytorch.facts.dtype import ALL, STORED, dtype, uint8
from toytorch.facts.hints import Args, Fn, Shape, Sizes
from toytorch.facts.package import is_ours
from toytorch.facts.size import Size
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import empty_strided
from toytorch.ops.sparse.create import sparse_coo_tensor
from toytorch.serialization import allowed
from toytorch.serialization.storages import Loaded

LARGEST_KEY = 1000  # parts of a tuple used as a key; its hash walks over all of them


class Builder(NamedTuple):
    """A function that a file may call. Its first argument, `spend`, pays for what it copies."""

    name: str
    build: Fn
    thing: Any = None  # the class itself, where a file may hold it as a value


class StorageType(NamedTuple):
    """The class of a storage: only the type of its elements counts."""

    kind: dtype | None


def require(condition: bool, what: str) -> None:
    """Refuses a file unless something holds."""
    if not condition:
        raise UnpicklingError(what)


def check_key(key: object) -> Any:
    """A value that can be a key of a dict without taking long."""
    pending, seen = [key], 0
    while pending:
        part = pending.pop()
        seen += 1
        require(seen <= LARGEST_KEY, "a key is a tuple of too many parts")
        require(not computes_hash(type(part)), "a key is of a class that computes its hash")
        if isinstance(part, tuple):
            require(len(part) <= LARGEST_KEY, "a key is a tuple of too many parts")
            pending.extend(part)
    return key


def computes_hash(cls: type) -> bool:
    """Whether code of a program would run when an object is a key."""
    top = cls.__module__.partition(".")[0]
    return (
        isinstance(cls.__hash__, FunctionType)
        and not (is_ours(top) or top in sys.stdlib_module_names)
        and allowed.name_of(cls) is None
    )


# -- containers -----------------------------------------------------------------------------------


def _items(value: Any, kinds: tuple[type, ...], spend: Fn) -> Any:
    require(type(value) in kinds, f"a container cannot be made from a {type(value).__name__}")
    spend(len(value))
    return value


def ordered_dict(spend: Fn, *args: object) -> Any:
    """An OrderedDict, empty or from a list of pairs."""
    require(len(args) < 2, "OrderedDict takes one argument")
    made = OrderedDict[Any, Any]()
    for pair in _items(args[0], (list, tuple), spend) if args else ():
        require(type(pair) in (list, tuple) and len(pair) == 2, "OrderedDict needs pairs")
        made[check_key(pair[0])] = pair[1]
    return made


def counter(spend: Fn, *args: object) -> Any:
    """A Counter from a dict."""
    require(len(args) < 2, "Counter takes one argument")
    return Counter(_items(args[0], (dict,), spend) if args else {})


def set_of(spend: Fn, *args: object) -> Any:
    """A set from a list."""
    require(len(args) < 2, "set takes one argument")
    return {check_key(v) for v in _items(args[0], (list, tuple), spend)} if args else set()


def encode(spend: Fn, text: Any, encoding: str = "latin1") -> bytes:
    """Bytes, which protocol 2 writes as the text of the same numbers."""
    require(type(text) is str and encoding in ("latin1", "latin-1"), "bytes must be latin1 text")
    spend(len(text))
    return str(text).encode("latin1")


def byte_array(spend: Fn, *args: Any) -> bytearray:
    """A bytearray from bytes, or from text in latin1."""
    if len(args) == 2:
        args = (encode(spend, *args),)
    require(len(args) < 2 and all(type(a) is bytes for a in args), "bytearray needs bytes")
    return bytearray(_items(args[0], (bytes,), spend)) if args else bytearray()


def complex_of(spend: Fn, real: float, imag: float) -> complex:
    """A complex number from two floats."""
    require(type(real) is float and type(imag) is float, "complex needs two floats")
    return complex(real, imag)


def size_of(spend: Fn, *args: tuple[int, ...]) -> Size:
    """A Size from a tuple of integers."""
    require(len(args) < 2, "Size takes one argument")
    values = _items(args[0], (tuple, list), spend) if args else ()
    require(all(type(n) is int for n in values), "Size needs integers")
    return Size(values)


def device_of(spend: Fn, kind: str, index: int | None = None) -> device:
    """A device from its name."""
    require(type(kind) is str and type(index) in (int, type(None)), "device needs a name")
    return device(kind, index)


def layout_of(spend: Fn, name: str) -> layout:
    """How elements lie in memory, by name."""
    for found in (strided, jagged, sparse_coo, sparse_csr, sparse_csc, sparse_bsr, sparse_bsc):
        if str(found) == name:
            return found
    raise UnpicklingError(f"layout {name!r} is not known here")


# -- tensors --------------------------------------------------------------------------------------


def _sizes(values: Any, what: str) -> Sizes:
    require(
        type(values) in (tuple, list, Size)
        and len(values) <= 64
        and all(type(n) is int and 0 <= n < 1 << 62 for n in values),
        f"the {what} of a tensor must be up to 64 integers that are not negative",
    )
    return tuple(values)


def tensor_v2(
    spend: Fn,
    storage: Loaded,
    offset: int,
    size: Shape,
    stride: Shape,
    requires_grad: bool = False,
    hooks: dict[Any, Any] | None = None,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """A view of a storage."""
    require(type(storage) is Loaded, "a tensor needs a storage")
    require(storage.kind is not None, "a tensor needs a storage with a type")
    size, stride = _sizes(size, "size"), _sizes(stride, "strides")
    (offset,) = _sizes((offset,), "offset")
    require(len(size) == len(stride), "a tensor needs as many strides as sizes")
    numel = math.prod(size)
    require(numel < 1 << 62, "a tensor has too many elements")
    if numel:
        last = offset + sum((n - 1) * s for n, s in zip(size, stride))
        require(
            last < storage.flat.size,
            f"a tensor of size {list(size)}, strides {list(stride)} "
            f"and offset {offset} reaches beyond its storage of {storage.flat.size} elements",
        )
    flags = metadata if type(metadata) is dict else {}
    lazy = bool(flags.get("conj") or flags.get("neg"))
    memory = storage.conjugate(flags) if lazy else storage.memory
    flat = memory.flat() if lazy else storage.flat
    view = base.of_array(flat).as_strided(flat, size, stride, offset)
    made = wrap(view, storage.kind)
    if made._storage is None:
        made._storage = memory.counted_anew(1)
    return _wanting(made, requires_grad)


def _wanting(tensor: Tensor, requires_grad: bool) -> Tensor:
    require(type(requires_grad) is bool, "requires_grad must be True or False")
    return tensor.requires_grad_() if requires_grad else tensor


def tensor_v1(spend: Fn, storage: Loaded, offset: int, size: Shape, stride: Shape) -> Tensor:
    """A view of a storage, as files of PyTorch 0.3 say it."""
    return tensor_v2(spend, storage, offset, size, stride)


def tensor_v3(
    spend: Fn,
    storage: Loaded,
    offset: int,
    size: Shape,
    stride: Shape,
    requires_grad: bool,
    hooks: Any,
    kind: Any,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    """A view of a storage of bytes."""
    require(type(storage) is Loaded and type(kind) is dtype, "a tensor needs a storage and a type")
    whole = storage.flat.nbytes // kind.itemsize * kind.itemsize
    flat = storage.flat.view("uint8")[:whole].view(kind.numpy)
    typed = storage._replace(kind=kind, flat=flat, conjugates={})
    return tensor_v2(spend, typed, offset, size, stride, requires_grad, hooks, metadata)


def tensor_without_memory(
    spend: Fn, kind: Any, size: Any, stride: Any, requires_grad: bool
) -> Tensor:
    """A tensor on device meta."""
    require(type(kind) is dtype, "a tensor needs a type")
    size, stride = _sizes(size, "size"), _sizes(stride, "strides")
    require(len(size) == len(stride), "a tensor needs as many strides as sizes")
    last = 1 + sum((n - 1) * s for n, s in zip(size, stride))
    require(0 in size or max(math.prod(size), last) < 1 << 60, "a tensor has too many elements")
    return _wanting(empty_strided(size, stride, dtype=kind, device="meta"), requires_grad)


def parameter(
    spend: Fn, data: Tensor, requires_grad: bool, hooks: dict[Any, Any] | None = None
) -> Tensor:
    """A Parameter over a tensor."""
    require(isinstance(data, Tensor) and type(requires_grad) is bool, "a Parameter needs a tensor")
    return Parameter(data.detach(), requires_grad)


def parameter_with_state(
    spend: Fn, data: Tensor, requires_grad: bool, hooks: dict[Any, Any], state: dict[str, str]
) -> Tensor:
    """A Parameter over a tensor, with attributes that the user gave it."""
    return _with_attributes(parameter(spend, data, requires_grad), state, spend)


# remarks for PyTorch's own compiler, and for modules, which note their buffers themselves
UNREAD = ("_has_dynamo_dim_marking", "_specialize_on", "_is_buffer", "persistent")


class DimRange:
    """Another such remark, which nothing here reads."""


def _with_attributes(tensor: Tensor, state: Any, spend: Fn) -> Tensor:
    if type(state) is tuple and len(state) == 2 and not state[1]:
        state = state[0]  # (attributes, slots)
    require(type(state) is dict, "the attributes of a tensor must be a dict")
    spend(len(state))
    for name, value in state.items():
        if type(name) is str and (name.startswith("_dynamo_") or name in UNREAD):
            continue
        require(
            type(name) is str
            and name.isidentifier()
            and not name.startswith("_")
            and not hasattr(Tensor, name)
            and name not in Tensor.__slots__,
            f"a tensor's attribute cannot be called {name!r}",
        )
        setattr(tensor, name, value)
    return tensor


def from_type(spend: Fn, build: Builder, kind: Any, args: Args, state: object) -> Tensor:
    """A tensor with attributes that the user gave it."""
    require(
        type(build) is Builder and build.name in REBUILDERS and type(args) is tuple,
        "a tensor is made by a function that makes none",
    )
    if isinstance(kind, type) and issubclass(kind, Tensor):  # the program's own, or allowed
        return _with_attributes(build.build(spend, *args).as_subclass(kind), state, spend)
    require(
        type(kind) is Builder
        and kind.name in ("torch.Tensor", "torch.nn.parameter.Parameter", NESTED + "NestedTensor"),
        "a tensor is of a class that is not known here",
    )
    made = build.build(spend, *args)
    if kind.name == NESTED + "NestedTensor":
        return made  # the state says nothing else
    if kind.name == "torch.nn.parameter.Parameter":
        made = parameter(spend, made, made.requires_grad)
    return _with_attributes(made, state, spend)


def sparse_tensor(spend: object, kind: Any, data: Any) -> Tensor:
    """A sparse tensor from its places and values."""
    require(type(kind) is layout and kind is not strided, "a sparse tensor needs a layout")
    require(type(data) is tuple and len(data) in (3, 4), "a sparse tensor needs its parts")
    if kind is not sparse_coo:
        return compressed_tensor(kind, data)
    indices, values, size = data[:3]
    require(
        isinstance(indices, Tensor)
        and isinstance(values, Tensor)
        and indices.dtype.name == "int64"
        and indices.ndim == 2
        and _is_dense(indices)
        and _is_dense(values),
        "a sparse tensor needs two tensors",
    )
    coalesced = data[3] if len(data) == 4 else False
    require(coalesced in (True, False, None), "a sparse tensor is coalesced or not")
    return sparse_coo_tensor(
        indices, values, _sizes(size, "size"), check_invariants=True, is_coalesced=coalesced or None
    )


NESTED = "torch.nested._internal.nested_tensor."


def jagged_tensor(spend: object, parts: Any) -> Tensor:
    """A nested tensor from its values and its offsets, which are checked."""
    from toytorch.nested.jagged import NestedTensor  # few files have one

    require(type(parts) is dict, "a nested tensor needs its parts")
    values, offsets, lengths = (parts.get(n) for n in ("values", "offsets", "lengths"))
    ragged = parts.get("_ragged_idx", 1)
    for t in (values, offsets) if lengths is None else (values, offsets, lengths):
        require(isinstance(t, Tensor) and _is_dense(t), "a nested tensor needs tensors")
    require(
        type(ragged) is int
        and 1 <= ragged <= values.ndim
        and offsets.ndim == 1
        and offsets.numel() > 0,
        "a nested tensor has a ragged dimension",
    )
    places = offsets.tolist()
    counts = [b - a for a, b in zip(places, places[1:])] if lengths is None else lengths.tolist()
    require(
        len(counts) == len(places) - 1
        and all(
            a >= 0 and n >= 0 and a + n <= values.shape[ragged - 1] for a, n in zip(places, counts)
        ),
        "the parts of a nested tensor lie in its values",
    )
    known = parts.get("_metadata_cache") or {}
    found = {k: int(t.shape[0]) for k, t in known.items() if isinstance(t, Tensor) and t.ndim}
    wanted = parts.get("requires_grad") is True and values.is_leaf
    return NestedTensor(
        values, offsets, lengths=lengths, _ragged_idx=ragged, _metadata_cache=found,
        requires_grad=wanted,
    )  # fmt: skip


def nested_tensor(spend: object, flat: Any, sizes: Any, strides: Any, starts: Any) -> Tensor:
    """A nested tensor of the strided layout from a buffer, which holds all parts."""
    from toytorch.nested.strided import from_buffer  # few files have one

    for t in (flat, sizes, strides, starts):
        require(isinstance(t, Tensor) and _is_dense(t), "a nested tensor needs tensors")
    require(
        sizes.ndim == 2 and sizes.shape == strides.shape and starts.shape == sizes.shape[:1],
        "a nested tensor has as many strides as sizes",
    )
    for size, steps, start in zip(sizes.tolist(), strides.tolist(), starts.tolist()):
        require(min([start, *size, *steps]) >= 0, "sizes and strides are not negative")
        last = start + sum((n - 1) * s for n, s in zip(size, steps))
        require(0 in size or last < flat.numel(), "the parts of a nested tensor lie in its buffer")
    return from_buffer(flat, sizes, strides, starts)


def compressed_tensor(kind: Any, data: Any) -> Tensor:
    """A sparse tensor of compressed rows or columns, whose indices are checked."""
    *parts, size = data
    require(
        len(parts) == 3 and all(isinstance(p, Tensor) and _is_dense(p) for p in parts),
        "a sparse tensor needs three tensors",
    )
    # few files have one
    from toytorch.ops.sparse.compressed_create import sparse_compressed_tensor

    ends, places, values = parts
    sizes = _sizes(size, "size")
    return sparse_compressed_tensor(ends, places, values, sizes, layout=kind, check_invariants=True)


def _is_dense(tensor: Tensor) -> bool:
    """Whether a tensor has no more elements than its storage."""
    return tensor.layout is strided and tensor.numel() <= tensor._memory().flat().size


def only_named(spend: Fn, *args: object) -> Any:
    """For classes that files name but never call."""
    raise UnpicklingError("a class of tensors cannot be called")


def finished(value: object) -> Any:
    """What a storage or a class becomes that was saved by itself."""
    if type(value) is Builder:
        require(value.thing is not None, f"{value.name} is not a value")
        return value.thing
    if type(value) is Loaded:  # one without a type is of bytes, as in PyTorch
        return TypedStorage.of(value.memory, value.kind or uint8)
    return value


REBUILDERS: dict[str, Fn] = {
    "torch._utils._rebuild_tensor": tensor_v1,
    "torch._utils._rebuild_tensor_v2": tensor_v2,
    "torch._utils._rebuild_tensor_v3": tensor_v3,
    "torch._utils._rebuild_meta_tensor_no_storage": tensor_without_memory,
    "torch._utils._rebuild_parameter": parameter,
    "torch._utils._rebuild_parameter_with_state": parameter_with_state,
    "torch._utils._rebuild_sparse_tensor": sparse_tensor,
    "torch._utils._rebuild_nested_tensor": nested_tensor,
    NESTED + "_rebuild_njt": jagged_tensor,
}
FUNCTIONS: dict[str, Fn] = {
    **REBUILDERS,
    "torch._tensor._rebuild_from_type_v2": from_type,
    "torch._dynamo.decorators._DimRange": lambda spend: DimRange(),
    "torch.Tensor": only_named,
    NESTED + "NestedTensor": only_named,
    "torch.nn.parameter.Parameter": only_named,
    "torch.Size": size_of,
    "torch.device": device_of,
    "torch.serialization._get_layout": layout_of,
    "collections.OrderedDict": ordered_dict,
    "collections.Counter": counter,
    "_codecs.encode": encode,
}
for _module in ("builtins", "__builtin__"):  # the name of Python 2 is what protocol 2 writes
    FUNCTIONS |= {
        f"{_module}.set": set_of,
        f"{_module}.complex": complex_of,
        f"{_module}.bytearray": byte_array,
    }

CLASSES: dict[str, type] = {
    "torch.Tensor": Tensor, "torch.nn.parameter.Parameter": Parameter, "torch.Size": Size,
    "torch.device": device, "collections.OrderedDict": OrderedDict, "collections.Counter": Counter,
    "__builtin__.set": set, "__builtin__.complex": complex, "__builtin__.bytearray": bytearray,
}  # fmt: skip
GLOBALS: dict[str, Any] = {
    name: Builder(name, f, CLASSES.get(name)) for name, f in FUNCTIONS.items()
}
GLOBALS |= {f"torch.{d.name}": d for d in STORED}
GLOBALS |= {f"torch.{d.legacy}Storage": StorageType(d) for d in ALL}
GLOBALS["torch.storage.UntypedStorage"] = StorageType(None)
