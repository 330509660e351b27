"""Arguments of a launch: numbers get the types of their parameters, arrays become memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator.access import MemorySystem
from toytorch.cuda.emulator.memory import Memory
from toytorch.cuda.emulator.types import BOOL, Pointer, Scalar, Type, Vector, Void


def bound(function: p.Function, arguments: Sequence[Any], system: MemorySystem) -> list[Any]:
    """Numbers, and addresses of arrays, that the kernel's parameters get."""
    wanted = function.parameters
    if len(arguments) != len(wanted):
        names = ", ".join(f"{type} {name}" for name, type in wanted)
        raise TypeError(
            f"{function.name}({names}) takes {len(wanted)} arguments, and got {len(arguments)}"
        )
    seen: dict[tuple[int, int], Memory] = {}
    addresses: dict[tuple[int, int], Any] = {}
    found = []
    for (name, type), value in zip(wanted, arguments):
        if not isinstance(type, Pointer):
            found.append(number(name, type, value))
            continue
        if value is None:
            found.append(np.int64(0))
            continue
        check_array(name, type, value)
        key = (value.__array_interface__["data"][0], value.nbytes)
        if key not in addresses:
            item = value.dtype.itemsize
            data = value.reshape(-1).view(np.uint8)
            seen[key] = Memory(name, "global", value.nbytes, item, 1, data, value.flags.writeable)
            addresses[key] = np.int64(system.add(seen[key]))
        if not type.const:  # what is only read cannot race
            system.track(seen[key])
        found.append(addresses[key])
    return found


def number(name: str, type: Type, value: Any) -> Any:
    """A number as a parameter's type; TypeError where that would change it."""
    if not isinstance(type, Scalar):
        raise TypeError(f"`{name}` is '{type}': only numbers and arrays can be passed")
    kind = np.asarray(value).dtype.kind if np.ndim(value) == 0 else "array"
    if kind not in "biuf" or (kind == "f" and not type.is_float):
        raise TypeError(f"`{name}` is '{type}', and got {value!r}")
    if not type.is_float and type != BOOL:
        limits = np.iinfo(type.dtype)
        if not limits.min <= int(value) <= limits.max:
            raise OverflowError(f"`{name}` is '{type}', and {value!r} does not fit")
    return type.dtype.type(value)


def check_array(name: str, type: Pointer, value: object) -> None:
    """TypeError or ValueError where an array is not what a pointer says."""
    if not isinstance(value, np.ndarray):
        raise TypeError(f"`{name}` is '{type}', and got {value!r}: give a tensor or an array")
    if isinstance(type.target, Void):
        wanted = None
    elif isinstance(type.target, Vector):
        wanted = type.target.element.dtype
    else:
        wanted = dtype_of(type.target)
    if wanted is not None and value.dtype != wanted:
        raise TypeError(
            f"`{name}` is '{type}', elements of {wanted}, and the array has {value.dtype}"
        )
    if not value.flags.c_contiguous:
        raise ValueError(
            f"`{name}` is not contiguous: a kernel sees memory, no strides. Call .contiguous()"
        )


def dtype_of(type: Type) -> Any:
    """NumPy's type of the numbers in a value: of a vector, of each of its members."""
    if isinstance(type, Vector):
        return type.element.dtype
    return type.dtype if isinstance(type, Scalar) else np.dtype(np.int64)
