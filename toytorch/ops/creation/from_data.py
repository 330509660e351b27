"""Tensors from data: nested lists, arrays, buffers and numbers."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.numpy import extent
from toytorch.core.memory_order import kept
from toytorch.core.storage import Storage
from toytorch.core.storages import TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor, as_dtype, wrap
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.hints import Array, Device, DType, Nested
from toytorch.ops.creation.create import _kind, finish, full, put_out
from toytorch.ops.define import creating, takes_words


def infer_dtype(data: Any) -> types.dtype:
    """The type of a nested list: that of its highest category."""
    best, stack = None, [data]
    while stack:
        value = stack.pop()
        if isinstance(value, (list, tuple)):
            stack.extend(value)
            continue
        if isinstance(value, Tensor):
            found = value.dtype
        elif isinstance(value, np.generic):
            found = types.from_numpy_dtype(value.dtype)
        elif isinstance(value, (builtins.bool, int, float, builtins.complex)):
            found = types.of_scalar(value)
        elif isinstance(value, np.ndarray):
            found = types.from_numpy_dtype(value.dtype)
        else:
            raise _bad_data(value)
        best = found if best is None else types.promote_types(best, found)
    return best or types.get_default_dtype()


def _no_number(values: Array, kind: types.dtype) -> Exception:
    """What to say of values that are not all numbers of a given dtype."""
    for value in values:
        if not isinstance(value, int | float | complex | np.number | np.bool_):
            name = type(value).__name__
            return TypeError(
                f"must be real number, not {name}"
                if kind.rank > 1
                else f"'{name}' object cannot be interpreted as an integer"
            )
    return RuntimeError("Overflow when unpacking long long")


def _bad_data(value: Nested) -> Exception:
    if isinstance(value, str):
        return TypeError(f"new(): invalid data type '{type(value).__name__}'")
    if value is None:
        return RuntimeError("Could not infer dtype of NoneType")
    return RuntimeError(f"Could not infer dtype of {type(value).__name__}")


def _shape_of(data: Any) -> tuple[int, ...]:
    shape: list[int] = []
    while isinstance(data, (list, tuple)) or (isinstance(data, (Tensor, np.ndarray)) and data.ndim):
        shape.append(len(data))
        if not len(data):
            break
        data = data[0]
    return tuple(shape)


def _check_nested(data: Any, shape: tuple[int, ...], depth: int = 0) -> None:
    if depth == len(shape):
        if isinstance(data, (list, tuple)):
            raise TypeError(
                "not a sequence"
                if not data
                else f"only integer tensors of a single element can be converted to an "
                f"index (found a {type(data).__name__} where a number was expected)"
            )
        return
    if not isinstance(data, (list, tuple)) and not getattr(data, "ndim", 0):
        raise TypeError("not a sequence")
    if len(data) != shape[depth]:
        raise ValueError(
            f"expected sequence of length {shape[depth]} at dim {depth} (got {len(data)})"
        )
    if isinstance(data, (list, tuple)) and (
        depth + 1 < len(shape) or (data and isinstance(data[0], (list, tuple)))
    ):
        for item in data:
            _check_nested(item, shape, depth + 1)


def _plain(data: Any) -> Any:
    if isinstance(data, Tensor):
        return data.item() if data.numel() == 1 else data.tolist()
    return [_plain(v) for v in data] if isinstance(data, (list, tuple)) else data


def to_array(data: Any, dtype: DType | None) -> Any:
    """A NumPy array of data in the form of numbers, nested lists, arrays or tensors."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        kind = types.from_numpy_dtype(array.dtype.newbyteorder("=")) if dtype is None else dtype
        return array.astype(_kind(kind))
    if isinstance(data, Tensor):
        array = base.of_array(data._array).to_numpy(data._array)
        return array.astype(_kind(dtype or data.dtype))
    if not isinstance(data, (list, tuple)):
        if hasattr(data, "__array__"):
            return to_array(np.asarray(data), dtype)
        if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, str):
            try:
                listed = [data[i] for i in builtins.range(len(data))]
            except Exception:
                raise ValueError(
                    f"could not determine the shape of object type '{type(data).__name__}'"
                ) from None
            return to_array(listed, dtype)
    kind = dtype or infer_dtype(data)
    shape = _shape_of(data)
    _check_nested(data, shape)
    if not shape:
        if isinstance(data, complex) and kind.rank < 3:
            raise TypeError("must be real number, not complex")
        return np.full(shape, _in_range(data, kind), dtype=_kind(kind))
    if 0 in shape:
        return np.zeros(shape, _kind(kind))
    array = np.asarray(_plain(data))
    if (
        array.dtype.kind == "O"
        and kind is types.bool
        and all(isinstance(v, (int, float, complex)) for v in array.flat)
    ):  # numbers of any size are 0 or not
        array = np.frompyfunc(builtins.bool, 1, 1)(array)
        return array.astype(np.bool_)
    if array.dtype.kind in "OUS":
        raise _no_number(np.asarray(_plain(data), object).reshape(-1), kind)
    if array.dtype.kind == "c" and kind.rank < 3:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")
    if kind.rank == 1 and array.size:
        _in_range(array.min(), kind), _in_range(array.max(), kind)
    return array.astype(_kind(kind))


def _in_range(number: Any, kind: DType) -> Any:
    """A number that the type can hold: integers wrap in unsigned types, all else must fit."""
    if kind.rank != 1 or isinstance(number, (complex, str)):
        return number
    limits = np.iinfo(_kind(kind))
    whole = isinstance(number, (int, np.integer))
    low = -limits.max if not kind.is_signed and whole else limits.min
    if not low <= number <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")
    return np.asarray(int(number)).astype(_kind(kind)) if whole else number


def _numbers(data: Any) -> Any:
    """The array of a number, or of a list of numbers of one class; None for anything else."""
    kind = data.__class__
    if kind is list:
        kind = data[0].__class__ if data else None
        for v in data:
            if v.__class__ is not kind:
                return None
    if kind is float:
        return np.array(data, types.get_default_dtype().numpy)
    try:
        return np.array(data, np.int64) if kind is int else None
    except OverflowError:
        return None


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
        and dtype is None
        and device is None
        and names is None
        and not requires_grad
        and state.fast_path is not state.SLOW
        and state.local.default_device is None
    ):
        array = _numbers(data)
        if array is not None:
            return wrap(array)
    if isinstance(data, Tensor):
        warnings.warn(
            "To copy construct from a tensor, it is recommended to use "
            "sourceTensor.detach().clone() or sourceTensor.detach().clone()."
            "requires_grad_(True), rather than torch.tensor(sourceTensor).",
            UserWarning,
            stacklevel=2,
        )
    if dtype is not None:
        dtype = as_dtype(dtype)
    if isinstance(data, TypedStorage | UntypedStorage):
        data = elements(data, dtype or types.get_default_dtype())
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
    kind = types.FROM_NUMPY.get(ndarray.dtype) or types.from_numpy_dtype(ndarray.dtype)
    if plain and ndarray.flags.carray:  # in rows, aligned, writable
        if ndarray.base is None:  # all of its memory
            return held_elsewhere(wrap(ndarray.view(), kind), ndarray)
        if min(ndarray.strides, default=0) >= 0:
            return held_elsewhere(wrap(ndarray.view(), kind), ndarray, ndarray.reshape(-1))
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
        warnings.warn(
            "The given NumPy array is not writable, and PyTorch does not support "
            "non-writable tensors. This means writing to this tensor will result in "
            "undefined behavior. You may want to copy the array to protect its data or "
            "make it writable before converting it to a tensor.",
            UserWarning,
            stacklevel=2,
        )
    array = ndarray.view(np.ndarray)
    return held_elsewhere(wrap(array, kind), array, extent(array))


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
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """A 0-d tensor of a number, in the default type unless one is given.

    >>> scalar_tensor(2)
    tensor(2.)
    """
    return full(
        (),
        value,
        dtype=dtype or types.get_default_dtype(),
        device=device,
        requires_grad=requires_grad,
    )
