"""Tensors from data: nested lists, arrays, buffers and numbers."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.numpy import extent
from toytorch.core.memory_order import kept
from toytorch.core.storage import Storage
from toytorch.core.storages import TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor, as_dtype, wrap
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.device import on_cpu
from toytorch.facts.hints import Array, Device, DType, Layout
from toytorch.facts.package import is_ours
from toytorch.ops.creation.create import asking, finish, full, put_out
from toytorch.ops.define import creating, takes_words

__all__ = ["as_tensor", "from_file", "from_numpy", "frombuffer", "scalar_tensor", "tensor"]


def _numbers(data: Any, dtype: DType | None) -> Any:
    """The array of a number, or of a list of numbers of one class; None for anything else, and for
    types that these numbers may not fit."""
    kind = data.__class__
    if kind is list:
        kind = data[0].__class__ if data else None
        for v in data:
            if v.__class__ is not kind:
                return None
    floats = dtype is None or dtype.plain
    if kind is float and floats:
        return np.array(data, (dtype or types.get_default_dtype()).numpy)
    if kind is not int or not (floats or dtype is types.int64):
        return None
    try:
        array = np.array(data, np.int64)
    except OverflowError:
        return None
    return array if dtype in (None, types.int64) else array.astype(dtype.numpy)


def tell_of_constant(function: str) -> None:
    """Tells traces that a function of the user's makes a tensor of Python values."""
    if state.local.modes and not is_ours(sys._getframe(2).f_globals.get("__name__")):
        state.frozen("constant", function)


def warn_of_copy(name: str) -> None:
    """Says that a tensor is no data to make a tensor of."""
    warned.at_call(
        "To copy construct from a tensor, it is recommended to use sourceTensor.detach().clone() "
        f"or sourceTensor.detach().clone().requires_grad_(True), rather than {name}(sourceTensor)."
    )


@creating
def tensor(
    data: Any,
    *,
    dtype: DType | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
    names: Sequence[str | None] | None = None,
) -> Tensor:
    """A tensor with a copy of the data; the type is inferred from it.

    >>> tensor([[1, 2], [3, 4]]).dtype, tensor(1.5).dtype, tensor([True, 2]).dtype
    (torch.int64, torch.float32, torch.int64)
    """
    if (
        (data.__class__ is float or data.__class__ is int or data.__class__ is list)
        and (dtype is None or dtype.__class__ is types.dtype)
        and names is None
        and on_cpu(device)
        and state.fast_path is not state.SLOW
    ):
        array = _numbers(data, dtype)
        if array is not None:
            return asking(wrap(array)) if requires_grad else wrap(array)
    if isinstance(data, Tensor):
        warn_of_copy("torch.tensor")
    return of_data(data, dtype, device, requires_grad, names)


def of_data(
    data: Any,
    dtype: DType | None,
    device: Device,
    requires_grad: builtins.bool,
    names: Sequence[str | None] | None = None,
) -> Tensor:
    """`tensor`, without a word on data that is a tensor."""
    if dtype is not None:
        if not isinstance(dtype, (types.dtype, type)):
            kind = type(dtype).__name__
            raise TypeError(f"tensor(): argument 'dtype' must be torch.dtype, not {kind}")
        dtype = as_dtype(dtype)
    if isinstance(data, TypedStorage | UntypedStorage):
        data = elements(data, dtype or types.get_default_dtype())
    from toytorch.core.nested_data import to_array  # numbers and flat lists take no walk

    array = to_array(data, dtype)
    if isinstance(data, Tensor):
        array = kept(array, data._array)
    made = finish(
        lambda xp: xp.asarray(array),
        device
        if device is not None
        else getattr(data, "device", None)
        if isinstance(data, Tensor)
        else None,
        False,
    )
    if requires_grad:
        if made.dtype.rank < 2:
            raise RuntimeError(
                "Only Tensors of floating point and complex dtype can require gradients"
            )
        made.requires_grad_()
    return put_out(made, None, names)


def from_file(
    filename: str,
    shared: builtins.bool | None = None,
    size: builtins.int = 0,
    *,
    dtype: types.dtype | None = None,
    layout: Any = None,
    device: Any = None,
    pin_memory: builtins.bool = False,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A vector of the first elements of a file; if `shared`, what is written to it is written to
    the file, which is made if need be. Like `torch.from_file`.

    >>> import os, tempfile
    >>> name = os.path.join(tempfile.mkdtemp(), "numbers")
    >>> _ = from_file(name, True, 2, dtype=types.int16).fill_(3)
    >>> from_file(name, size=2, dtype=types.int16)
    tensor([3, 3], dtype=torch.int16)
    """
    from toytorch.core.storages import mapped  # seldom needed

    kind = dtype or types.get_default_dtype()
    flat = mapped(filename, builtins.bool(shared), size * kind.itemsize)
    made = wrap(np.asarray(flat)[: size * kind.itemsize].view(kind.numpy))
    return made.requires_grad_() if requires_grad else made


def frombuffer(
    buffer: Any,
    *,
    dtype: types.dtype,
    count: builtins.int = -1,
    offset: builtins.int = 0,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A vector over the memory of a Python buffer; `count` elements, all for -1, from a byte on.

    Raises ValueError for what has no buffer, and where the buffer is empty or ends too early. Like
    `torch.frombuffer`.

    >>> frombuffer(bytearray([1, 0, 2, 0]), dtype=types.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    try:
        size = memoryview(buffer).nbytes
    except TypeError:
        raise ValueError("object does not implement Python buffer protocol.") from None
    width = dtype.itemsize
    if not size or not count:
        raise ValueError(f"both buffer length ({size}) and count ({count}) must not be 0")
    if not 0 <= offset < size:
        raise ValueError(
            f"offset ({offset} bytes) must be non-negative and no greater than buffer "
            f"length ({size} bytes) minus 1"
        )
    if count < 0 and (size - offset) % width:
        raise ValueError(
            f"buffer length ({size - offset} bytes) after offset ({offset} bytes) must"
            f" be a multiple of element size ({width})"
        )
    if count > 0 and offset + count * width > size:
        raise ValueError(
            f"requested buffer length ({count} * {width} bytes) after offset ({offset}"
            f" bytes) must not be greater than actual buffer length ({size} bytes)"
        )
    made = from_numpy(np.frombuffer(buffer, dtype.numpy, count, offset))
    return made.requires_grad_(True) if requires_grad else made


def from_numpy(ndarray: Array) -> Tensor:
    """A tensor over the memory of a NumPy array: writing to one is seen in the other.

    >>> a = np.zeros(2)
    >>> from_numpy(a).add_(1), a
    (tensor([1., 1.], dtype=torch.float64), array([1., 1.]))
    """
    plain = ndarray.__class__ is np.ndarray
    if not plain and not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    if state.fast_path is state.SLOW:
        state.beside("it makes a tensor over NumPy's memory, which is another one at each call")
        tell_of_constant("torch.from_numpy")
    kind = types.FROM_NUMPY.get(ndarray.dtype) or types.from_numpy_dtype(ndarray.dtype)
    if plain and ndarray.flags.carray:  # in rows, aligned, writable
        if ndarray.base is None:  # all of its memory
            return held_elsewhere(wrap(ndarray.view(), kind), ndarray)
        if ndarray.size and ndarray.dtype.isnative and not kind.extended:
            own = np.asarray(ndarray.data)
            if own.strides == ndarray.strides:  # those of dimensions of one element may be any
                return held_elsewhere(wrap(own, kind), own)
        if min(ndarray.strides, default=0) >= 0:
            own = lent(ndarray)
            return held_elsewhere(wrap(own, kind), own, own.reshape(-1))
    if builtins.any(s < 0 for s in ndarray.strides):
        raise ValueError(
            "At least one stride in the given numpy array is negative, and tensors "
            "with negative strides are not currently supported. (You can probably work"
            " around this by making a copy of your array  with array.copy().) "
        )
    if builtins.any(s % ndarray.itemsize for s in ndarray.strides):
        raise ValueError(
            "given numpy array strides not a multiple of the element byte size. Copy "
            "the numpy array to reallocate the memory."
        )
    if not ndarray.flags.writeable:
        warned.once(
            "The given NumPy array is not writable, and PyTorch does not support non-writable "
            "tensors. This means writing to this tensor will result in undefined behavior. You may "
            "want to copy the array to protect its data or make it writable before converting it "
            "to a tensor. This type of warning will be suppressed for the rest of this program."
        )
    array = lent(ndarray.view(np.ndarray))
    return held_elsewhere(wrap(array, kind), array, extent(array))


class Lent:
    """Keeps an array for others that lie over its elements, as a memory that begins with them."""

    def __init__(self, array: Array) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__ | {"strides": array.strides}


def lent(array: Array) -> Array:
    """The same elements, of which NumPy does not say what they are a part of: PyTorch counts places
    from where an array begins."""
    if not array.size or array.dtype.kind == "V" or not array.dtype.isnative:
        return array.view()
    return np.asarray(Lent(array))


def held_elsewhere(made: Tensor, array: Array, memory: Array | None = None) -> Tensor:
    """A tensor over memory that somebody else holds, which therefore cannot grow."""
    kind = Storage if made._storage is None else made._storage.__class__
    made._storage = storage = kind(array, memory)
    storage.fixed = True
    return made


def as_tensor(data: Any, dtype: DType | None = None, device: Device = None) -> Tensor:
    """A tensor of the data, over the same memory where that is possible.

    >>> t = tensor([1.0, 1.0])
    >>> as_tensor(t) is t
    True
    """
    if not isinstance(data, Tensor):
        tell_of_constant("torch.as_tensor")
    if isinstance(data, np.ndarray):
        data = from_numpy(data)
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    return tensor(data, dtype=dtype, device=device)


def elements(data: TypedStorage | UntypedStorage, kind: types.dtype) -> Array:
    """What a storage holds; RuntimeError for elements of another type."""
    if isinstance(data, TypedStorage) and data.dtype is not kind:
        raise RuntimeError(
            f"Expected a Storage of type {kind.legacy} or an UntypedStorage, but got "
            f"{data.dtype.legacy}"
        )
    return TypedStorage.of(data._storage, kind)._numbers()


@takes_words(s="value")
@creating
def scalar_tensor(
    value: float,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A 0-d tensor of a number, in the default type unless one is given.

    >>> scalar_tensor(2)
    tensor(2.)
    """
    dtype = dtype or types.get_default_dtype()
    return full((), value, dtype=dtype, device=device, requires_grad=requires_grad)
