"""Nested data as an array: what counts as a sequence, its shape, its type and its numbers."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import warned
from toytorch.facts.hints import DType, Nested, Sizes

PLAIN = (float, int, builtins.bool)  # by far the most elements
MOST_DIMENSIONS = 128
ENDLESS = "new(): self-referential lists are incompatible"


def is_sequence(value: object) -> builtins.bool:
    """Whether a value has elements by number, as Python's C interface asks it: whatever defines
    `__getitem__`, unless it is a dict. A tensor is a number here, or refused."""
    if value.__class__ in PLAIN:
        return False
    if isinstance(value, (list, tuple)):
        return True
    refused = (dict, Tensor, np.generic)
    return hasattr(type(value), "__getitem__") and not isinstance(value, refused)


def shape_of(data: Any) -> Sizes:
    """The sizes of nested data, told by the first element of each level."""
    shape: list[int] = []
    name = type(data).__name__
    while is_sequence(data):
        shape.append(len(data))
        if len(shape) > MOST_DIMENSIONS:  # a string's first letter is a string
            raise ValueError(f"too many dimensions '{type(data).__name__}'")
        if not shape[-1]:
            break
        try:
            data = data[0]
        except Exception:
            raise ValueError(f"could not determine the shape of object type '{name}'") from None
        name = type(data).__name__
    return tuple(shape)


def infer_dtype(data: Any) -> types.dtype:
    """The type of a nested list: that of its highest category."""
    best, stack, seen = None, [data], set()
    lists: dict[int, Any] = {}  # those that were looked into
    while stack:
        value = stack.pop()
        kind = value.__class__
        if kind in seen:
            continue
        if kind in PLAIN:
            seen.add(kind)
        if isinstance(value, (list, tuple)):
            if id(value) in lists:
                continue
            lists[id(value)] = value
            if any(v is value for v in value if v.__class__ not in PLAIN):
                raise TypeError(ENDLESS)
            stack.extend(value)
            continue
        if isinstance(value, Tensor):
            found = value.dtype
        elif isinstance(value, (np.generic, np.ndarray)):
            found = types.from_numpy_dtype(value.dtype)
        elif isinstance(value, (builtins.bool, float, builtins.complex)):
            found = types.of_scalar(value)
        elif isinstance(value, int):
            found = types.int64  # of any size: `to_array` refuses what has no room
        elif is_sequence(value) and not isinstance(value, (str, bytes)):
            stack.extend(value[i] for i in range(len(value)))
            continue
        else:
            raise _bad_data(value)
        best = found if best is None else types.promote_types(best, found)
    return best or types.get_default_dtype()


def _bad_data(value: Nested) -> Exception:
    if isinstance(value, (str, bytes)):
        return TypeError(f"new(): invalid data type '{type(value).__name__}'")
    if value is None:
        return RuntimeError("Could not infer dtype of NoneType")
    return RuntimeError(f"Could not infer dtype of {type(value).__name__}")


def rows(data: Any, shape: Sizes, kind: DType, depth: int = 0) -> Any:
    """The data as nested lists of numbers, and arrays; every level is as long as the shape says."""
    if depth == len(shape):
        return _number(data, kind)
    if isinstance(data, np.ndarray):
        if depth:
            name = f"{type(data).__module__}.{type(data).__qualname__}"
            warned.once(
                f"Creating a tensor from a list of {name}s is extremely slow. Please consider "
                f"converting the list to a single numpy.ndarray with numpy.array() before "
                "converting to a tensor."
            )
        if data.shape == shape[depth:]:
            return data
    try:
        items = data if isinstance(data, (list, tuple)) else list(data)
    except TypeError:
        raise TypeError("not a sequence") from None
    if len(items) != shape[depth]:
        raise ValueError(
            f"expected sequence of length {shape[depth]} at dim {depth} (got {len(items)})"
        )
    if depth + 1 == len(shape):
        return [v if v.__class__ in PLAIN else _number(v, kind) for v in items]
    return [rows(v, shape, kind, depth + 1) for v in items]


def _number(value: Any, kind: DType) -> Any:
    """An element: a number as it is, a tensor by the number it holds."""
    if isinstance(value, Tensor):
        whole = kind.rank < 2 and kind is not types.bool
        if whole and (value.numel() != 1 or value.dtype.rank > 1):
            raise TypeError("only integer tensors of a single element can be converted to an index")
        if value.numel() != 1:
            raise ValueError("only one element tensors can be converted to Python scalars")
        return value.item()
    if isinstance(value, np.ndarray) and not value.ndim:
        return value[()]
    if is_sequence(value) and not isinstance(value, (str, bytes)):
        raise _no_number(value, kind)
    return value


def _no_number(value: object, kind: types.dtype) -> TypeError:
    """What to say of a value that is no number of a given dtype."""
    name = type(value).__name__
    return TypeError(
        f"must be real number, not {name}"
        if kind.rank > 1
        else f"'{name}' object cannot be interpreted as an integer"
    )


def to_array(data: Any, dtype: DType | None) -> Any:
    """A NumPy array of data in the form of numbers, nested lists, arrays or tensors."""
    if isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
        kind = types.from_numpy_dtype(array.dtype.newbyteorder("=")) if dtype is None else dtype
        return array.astype(kind.numpy)
    if isinstance(data, Tensor):
        array = base.of_array(data._array).to_numpy(data._array)
        return array.astype((dtype or data.dtype).numpy)
    if isinstance(data, (str, bytes)):
        raise _bad_data(data)
    if not is_sequence(data) and hasattr(data, "__array__"):
        return to_array(np.asarray(data), dtype)
    shape = shape_of(data)
    kind = dtype or infer_dtype(data)
    if not shape:
        if isinstance(data, complex) and kind.rank < 3:
            _refuse_complex(kind)
        return np.full(shape, _in_range(data, kind), dtype=kind.numpy)
    listed = rows(data, shape, kind)
    if 0 in shape:
        return np.zeros(shape, kind.numpy)
    array = np.asarray(listed)
    if (
        array.dtype.kind == "O"
        and kind is types.bool
        and all(isinstance(v, (int, float, complex)) for v in array.flat)
    ):  # numbers of any size are 0 or not
        array = np.frompyfunc(builtins.bool, 1, 1)(array)
        return array.astype(np.bool_)
    numbers = (int, float, np.number, *(complex,) * (kind.rank == 3))
    if (
        array.dtype.kind == "O"
        and kind.rank > 1
        and all(isinstance(v, numbers) for v in array.flat)
    ):
        wide = array.astype(np.complex128 if kind.rank == 3 else np.float64)
        return wide.astype(kind.numpy)  # integers of any size are floats, too
    if array.dtype.kind in "OUS":
        for value in np.asarray(listed, object).reshape(-1):
            if not isinstance(value, int | float | complex | np.number | np.bool_):
                raise _no_number(value, kind)
        raise ValueError("Overflow when unpacking long long")
    if array.dtype.kind == "c" and kind.rank < 3:
        _refuse_complex(kind)
    if kind.rank == 1 and array.size:
        _in_range(array.min(), kind), _in_range(array.max(), kind)
    return array.astype(kind.numpy)


def _refuse_complex(kind: DType) -> None:
    """Refuses complex numbers for real types, but for truth."""
    if kind.rank == 1:
        raise TypeError("'complex' object cannot be interpreted as an integer")
    if kind.rank == 2:
        raise TypeError("must be real number, not complex")


def _in_range(number: Any, kind: DType) -> Any:
    """A number that the type can hold: integers wrap in unsigned types, all else must fit."""
    if kind.rank != 1 or isinstance(number, (complex, str)):
        return number
    limits = np.iinfo(kind.numpy)
    whole = isinstance(number, (int, np.integer))
    if whole and not -(2**63) <= number < (2**63 if kind is types.int64 else 2**64):
        raise ValueError("Overflow when unpacking long long")
    low = -limits.max if not kind.is_signed and whole else limits.min
    if not low <= number <= limits.max:
        raise RuntimeError(f"value cannot be converted to type {kind.name} without overflow")
    return np.asarray(int(number)).astype(kind.numpy) if whole else number
