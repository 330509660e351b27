"""NumPy's arrays, numbers and types in files, made from their bytes without asking NumPy's pickle.

NumPy's own way makes an empty object first and sets its state afterwards, and trusts the state.
Here both steps fill in an object of our own, which becomes an array once everything is known.
"""

from __future__ import annotations

import math
import re
import sys
from typing import Any

import numpy as np

from toytorch.facts.hints import Fn
from toytorch.serialization.rebuild import require

CODES = re.compile(r"(b1|[iu][1248]|f[248]|f16|c8|c16|c32|[SU]\d{1,9}|[mM]8)")
UNITS = ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as", "generic")
SCALARS = [
    "bool", "bool_", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]  # fmt: skip


class TypeShell:
    """A type on its way: its code, then its byte order."""

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "="

    def build(self, spend: Any, state: Any) -> None:
        """Takes the state that NumPy gave a type."""
        require(
            type(state) is tuple
            and len(state) in (8, 9)
            and state[1] in ("<", ">", "|", "=")
            and state[2:5] == (None, None, None),
            "structured types of NumPy are not read",
        )
        if self.code in ("m8", "M8") and len(state) == 9:
            require(
                type(state[8]) is tuple
                and len(state[8]) == 2
                and type(state[8][1]) is tuple
                and len(state[8][1]) == 4,
                "the unit of a date is not known",
            )
            unit, count, *rest = state[8][1]
            unit = unit.decode("ascii") if type(unit) is bytes else unit
            require(
                unit in UNITS
                and type(count) is int
                and 0 < count < 1 << 31
                and all(n == 1 for n in rest),
                "the unit of a date is not known",
            )
            if unit != "generic":
                self.code = f"{self.code}[{count}{unit}]"
        self.order = state[1]

    def value(self) -> Any:
        """The type."""
        made: Any = np.dtype(self.code)
        return made if self.order in ("|", "=", NATIVE) else made.newbyteorder(self.order)


class ArrayShell:
    """An array on its way."""

    def __init__(self) -> None:
        self.array: Any = None

    def build(self, spend: Any, state: Any) -> None:
        """Takes the state that NumPy gave an array: version, shape, type, order, bytes."""
        require(
            type(state) is tuple and len(state) == 5 and self.array is None,
            "the state of an array is not known",
        )
        _, shape, kind, columns, data = state
        require(
            type(shape) is tuple
            and len(shape) <= 32
            and all(type(n) is int and 0 <= n < 1 << 62 for n in shape),
            "the shape of an array is wrong",
        )
        require(isinstance(kind, np.dtype), "an array needs a type")
        require(type(data) is bytes, "arrays of Python's objects are not read")
        require(
            len(data) == math.prod(shape) * kind.itemsize,
            f"an array of shape {shape} and type {kind} does not have {len(data)} bytes",
        )
        spend(len(data))
        flat = np.frombuffer(data, kind) if kind.itemsize else np.empty(math.prod(shape), kind)
        native = kind.newbyteorder("=")  # as NumPy's own way has it
        self.array = flat.reshape(shape, order="F" if columns else "C").astype(native, order="K")

    def value(self) -> Any:
        """The array, where there is one."""
        require(self.array is not None, "an array has no state")
        return self.array


NATIVE = "<" if sys.byteorder == "little" else ">"


def type_of(spend: Fn, code: str, *flags: bool) -> TypeShell:
    """A type by its code; `build` gives it its byte order."""
    require(
        type(code) is str and CODES.fullmatch(code) is not None,
        f"the type {str(code)[:40]!r} of NumPy is not read",
    )
    return TypeShell(code)


def scalar_of(spend: Fn, kind: Any, data: Any = b"") -> Any:
    """A number of NumPy's from its bytes."""
    require(
        isinstance(kind, np.dtype) and type(data) is bytes and len(data) == kind.itemsize,
        "a number of NumPy's needs a type and its bytes",
    )
    return np.frombuffer(data, kind, 1)[0] if kind.itemsize else np.zeros((), kind)[()]


FUNCTIONS: dict[str, Any] = {"numpy.dtype": type_of}
for _module in ("numpy._core.multiarray", "numpy.core.multiarray"):
    FUNCTIONS |= {
        f"{_module}._reconstruct": lambda *_: ArrayShell(),
        f"{_module}.scalar": scalar_of,
    }
CLASSES: dict[str, Any] = {"numpy.ndarray": np.ndarray} | {
    f"numpy.{name}": getattr(np, name) for name in SCALARS
}
