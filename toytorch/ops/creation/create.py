"""Tensors from nothing, from numbers, from arrays, from other tensors."""

from __future__ import annotations

import builtins
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from toytorch.backends import base, sparse
from toytorch.backends.numpy import extent
from toytorch.core.arguments import spread
from toytorch.core.memory_order import ordered
from toytorch.core.storage import Storage
from toytorch.core.tensor import Tensor, as_dtype, wrap
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import device as device_class
from toytorch.facts.device import sparse_coo
from toytorch.facts.hints import Array, Device, DType, Layout, MemoryFormat, Nested, Scalar
from toytorch.facts.size import copy_order
from toytorch.ops.define import creating, public, takes_words

_default_device: Any = None


def set_default_device(device: Device) -> None:
    """Makes `device` the place of tensors for which none is named."""
    global _default_device
    _default_device = None if device is None else device_class(device)


def get_default_device() -> Any:
    """The place of tensors for which none is named."""
    return _default_device or device_class("cpu")


def place(device: Device) -> tuple[Any, Any]:
    """The array module of a device and a context that makes its arrays there."""
    device = _default_device if device is None else device
    if device is None:
        return np, None
    where = device_class(device)
    backend = base.of_device(where)
    return backend.xp, backend.on(where)


def finish(
    make: Callable[..., Any], device: Device, requires_grad: builtins.bool, name: str = "tensor"
) -> Tensor:
    """The tensor of what `make(xp)` gives, on a device; a profiler shows it under `name`."""
    if state.profiler is not None:
        return state.profiler.around(  # it returns what we do
            f"aten::{name}", (), finish_here, make, device, requires_grad
        )
    return finish_here(make, device, requires_grad)


def finish_here(make: Callable[..., Any], device: Device, requires_grad: builtins.bool) -> Tensor:
    """`finish` itself."""
    xp, context = place(device)
    if context is None:
        tensor = wrap(make(xp))
    else:
        with context:
            tensor = wrap(make(xp))
    return tensor.requires_grad_() if requires_grad else tensor


def _size(
    args: tuple[Sequence[int]]
    | tuple[int | Sequence[int], ...]
    | tuple[int | tuple[int, ...], ...],
    size: Any,
) -> tuple[int, ...]:
    shape = spread(args) if size is None else spread((size,))
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
    return shape


def _kind(dtype: DType | None) -> Any:
    if dtype is None:
        return types.get_default_dtype().numpy
    if not isinstance(dtype, types.dtype):
        try:
            dtype = as_dtype(dtype)
        except (ValueError, TypeError):
            raise TypeError(
                f"argument 'dtype' must be torch.dtype, not {type(dtype).__name__}"
            ) from None
    return dtype.numpy


def refuse_fill(fill: str) -> None:
    """Refuses to fill a sparse tensor with what is not zero."""
    if fill not in ("zeros", "empty"):
        raise NotImplementedError(sparse.unsupported("fill_.Scalar", "SparseCPU"))


def without_entries(
    fill: str,
    shape: Sequence[int],
    dtype: DType | None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    sparse_dim: int | None = None,
) -> Tensor:
    """A sparse tensor of zeros, the only fill that needs no entries."""
    if fill not in ("zeros", "empty"):
        raise RuntimeError("full(...) is not implemented for sparse layout")
    return finish(
        lambda xp: sparse.empty(tuple(shape), _kind(dtype), sparse_dim, xp), device, requires_grad
    )


def _filled(name: str, fill: str, doc: str) -> Any:
    def function(
        *size: Sequence[int] | int,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: builtins.bool = False,
        pin_memory: builtins.bool = False,
        names: Sequence[str | None] | None = None,
        memory_format: MemoryFormat | None = None,
        **more: int,
    ) -> Tensor:
        if not size and "size" not in more:
            raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
        shape = spread(size) if size else spread((more.pop("size"),))
        if name == "zeros" and builtins.any(n < 0 for n in shape):
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        shape = _size(shape, None)
        if more:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(more))}'")
        if layout is sparse_coo:
            return without_entries(fill, shape, dtype, device, requires_grad)
        return put_out(
            finish(
                lambda xp: getattr(xp, fill)(shape, dtype=_kind(dtype)), device, requires_grad, name
            ),
            out,
            names,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return creating(function)


def put_out(made: Tensor, out: Any, names: Sequence[str | None] | None = None) -> Tensor:
    """The made tensor, or `out` holding its elements."""
    if names is not None:
        made.names = names  # type: ignore[attr-defined]  # attached by ops/named_dims.py
    if out is None:
        return made
    if out._array.shape != made._array.shape:
        out._array, out._storage = made._array.astype(out.dtype.numpy), None
    else:
        out.copy_(made)
    return out  # out is a Tensor


zeros = _filled(
    "zeros",
    "zeros",
    "A tensor of zeros.\n\n    >>> zeros(2, 1)\n    tensor([[0.],\n            [0.]])\n",
)
ones = _filled("ones", "ones", "A tensor of ones.\n\n    >>> ones(2)\n    tensor([1., 1.])\n")
empty = _filled("empty", "empty", "A tensor whose memory has not been written to.")


@creating
def full(
    size: Sequence[int],
    fill_value: Scalar,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
    names: Sequence[str | None] | None = None,
) -> Tensor:
    """A tensor of one value.

    >>> full((2,), 3), full((2,), 1.5)
    (tensor([3, 3]), tensor([1.5000, 1.5000]))
    """
    if isinstance(fill_value, Tensor):
        kind = _kind(dtype or fill_value.dtype)
        fill_value = fill_value.item()
    else:
        kind = _kind(dtype or types.of_scalar(fill_value))
    shape = _size((size,), None)
    return put_out(
        finish(
            lambda xp: xp.full(shape, xp.asarray(fill_value).astype(kind), kind),
            device,
            requires_grad,
            "full",
        ),
        out,
        names,
    )


def _like(name: str, fill: str) -> Any:
    def function(
        input: Tensor,
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: builtins.bool = False,
        pin_memory: bool = False,
        memory_format: MemoryFormat | None = None,
    ) -> Tensor:
        if (input.layout if layout is None else layout) is sparse_coo:
            refuse_fill(fill)
            return without_entries(
                fill,
                input.shape,
                dtype or input.dtype,
                input.device if device is None else device,
                requires_grad,
                input._array.sparse_dim if input.is_sparse else None,
            )
        kind = _kind(dtype or input.dtype)
        same = device is None or device_class(device).type == input.device.type
        if (
            same
            and input._array.__class__ is np.ndarray
            and (memory_format is None or memory_format.name == "preserve_format")
        ):
            source = input._array
            made = wrap(
                getattr(np, fill + "_like")(
                    source, dtype=kind, subok=False, order=copy_order(source)
                )
            )
            return made.requires_grad_() if requires_grad else made
        return finish(
            lambda xp: getattr(xp, fill)(input._array.shape, dtype=kind),
            device or input.device,
            requires_grad,
        )

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"`{fill}` in the shape, type and place of another tensor."
    return public(name)(creating(function))


zeros_like, ones_like = _like("zeros_like", "zeros"), _like("ones_like", "ones")
empty_like = _like("empty_like", "empty")


@public("full_like")
@creating
def full_like(
    input: Tensor,
    fill_value: Scalar,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """A tensor of one value in the shape, type and place of another.

    >>> full_like(ones(2), 7)
    tensor([7., 7.])
    """
    if (input.layout if layout is None else layout) is sparse_coo:
        refuse_fill("full")
    made = full(input.shape, fill_value, dtype=dtype or input.dtype, device=device or input.device)
    return lying_as(made, input, memory_format, requires_grad)


def lying_as(
    made: Tensor, input: Tensor, memory_format: MemoryFormat | None, requires_grad: builtins.bool
) -> Tensor:
    """A new tensor in the order of memory of another, if no other is asked for."""
    if memory_format is None or memory_format.name == "preserve_format":
        if input._array.__class__ is np.ndarray:
            made._array = ordered(made._array, input._array)
    elif memory_format.name != "contiguous_format":
        made = made.contiguous(memory_format=memory_format)
    return made.requires_grad_() if requires_grad else made


@creating
def empty_strided(
    size: Sequence[int],
    stride: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with given strides whose memory has not been written to.

    >>> empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    needed = 1 + builtins.sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
    made = empty(needed, dtype=dtype, device=device).as_strided(tuple(size), tuple(stride))
    return made.detach()


@public("empty_permuted", tensor_first=False)
@creating
def empty_permuted(
    size: Sequence[int],
    physical_layout: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor whose dimensions lie in memory in a given order, the outermost first.

    >>> empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    size, order = tuple(size), tuple(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the "
            f"physical_layout; i.e. len(size) = {len(size)} is not equal to "
            f"len(physical_layout) = {len(order)}"
        )
    if sorted(order) != list(builtins.range(len(size))):
        bad = [d for d in order if not 0 <= d < len(size)]
        raise RuntimeError(
            f"Dimension out of range (expected to be between 0 and {len(size) - 1}, "
            f"but got {bad[0]})"
            if bad
            else "Duplicate dim not allowed"
        )
    strides, step = [0] * len(size), 1
    for d in reversed(order):
        strides[d], step = step, step * builtins.max(size[d], 1)
    return empty_strided(size, strides, dtype=dtype, device=device, requires_grad=requires_grad)


@creating
def eye(
    n: int,
    m: int | None = None,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """The identity matrix.

    >>> eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    for name, value in (("n", n), ("m", m)):
        if value is not None and value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    return put_out(
        finish(lambda xp: xp.eye(n, m, dtype=_kind(dtype)), device, requires_grad, "eye"), out
    )


# -- from data ------------------------------------------------------------------------------------


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
            return to_array([data[i] for i in builtins.range(len(data))], dtype)
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
    array = to_array(data, dtype)
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
    if not isinstance(ndarray, np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(ndarray).__name__})")
    kind = types.from_numpy_dtype(ndarray.dtype)
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
    made = wrap(array, kind)
    made._storage = Storage(array, extent(array))
    return made


def as_tensor(data: Any, dtype: DType | None = None, device: Device = None) -> Tensor:
    """A tensor of the data, over the same memory where that is possible.

    >>> t = ones(2)
    >>> as_tensor(t) is t
    True
    """
    if isinstance(data, np.ndarray):
        data = from_numpy(data)
    if isinstance(data, Tensor):
        return data.to(dtype=dtype, device=device)
    return tensor(data, dtype=dtype, device=device)


asarray = as_tensor


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
