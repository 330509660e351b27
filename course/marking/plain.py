"""Values as plain data: what goes from the process of an answer to the one that judges.

A closed language. ``text`` writes numbers, texts, containers, arrays, tensors and errors; whatever
else there is becomes the name of its type and a bounded text. ``value`` reads it and makes nothing
but such things: it looks up no names except dtypes and the classes of errors, and calls nothing of
what it reads.
"""

from __future__ import annotations

import base64
import builtins
import json
import math
import random
import sys
from typing import Any

import numpy as np

import toytorch as torch
from course.cases import show

MOST = 2**20  # characters of one value
_DEPTH = 60  # containers in each other
_COUNT = 200_000  # values in one
_KEYS = 5_000  # of a dictionary or set: whoever chooses them can make them collide
_NUMBERS = "?bBhHiIlLqQefdFD"
_DTYPES = {
    str(value).removeprefix("torch."): value
    for value in vars(torch).values()
    if isinstance(value, torch.dtype)
}


class BadData(ValueError):
    """A text that is none of this language."""


class Opaque:
    """Something that does not travel: the name of its type, and a text that stands for it."""

    def __init__(self, kind: str, text: str) -> None:
        self.kind, self.text = kind, text

    def __repr__(self) -> str:
        return self.text


def same_dice() -> None:
    """Begin with the same random numbers, so that equal code gives equal values."""
    torch.manual_seed(0)
    np.random.seed(0)
    random.seed(0)


# -- writing --------------------------------------------------------------------------------------


def text(thing: Any) -> str:
    """A value as a line of JSON."""
    try:
        written = json.dumps(_Writer().write(thing, 0))
    except RecursionError:
        written = ""
    if not written or len(written) > MOST:
        written = json.dumps(_opaque(thing))
    return written


class _Writer:
    def __init__(self) -> None:
        self.left = _COUNT

    def write(self, thing: Any, depth: int) -> Any:
        self.left -= 1
        kind = type(thing)
        if thing is None or kind is bool or (kind is str and len(thing) < MOST):
            return thing
        if kind is int:
            return thing if abs(thing) < 2**53 else ["int", hex(thing)[:10_000]]
        if kind is float:
            return ["float", thing.hex()]
        if kind is complex:
            return ["complex", thing.real.hex(), thing.imag.hex()]
        if kind is bytes:
            return ["bytes", base64.b64encode(thing[:MOST]).decode()]
        if thing is ...:
            return ["ellipsis"]
        if self.left < 0 or depth > _DEPTH:
            return _opaque(thing)
        return self._made(thing, kind, depth + 1) or _opaque(thing)

    def _made(self, thing: Any, kind: type, depth: int) -> Any:
        if kind in (list, tuple, set, frozenset):
            parts = list(thing) if kind in (list, tuple) else sorted(thing, key=repr)
            return [kind.__name__, *(self.write(part, depth) for part in parts)]
        if isinstance(thing, torch.Size):
            return ["size", *map(int, thing)]
        if isinstance(thing, (tuple, list)):  # a kind of its own, which shows itself in its own way
            base = "tuple" if isinstance(thing, tuple) else "list"
            return [
                "kind",
                base,
                kind.__name__,
                show(thing),
                *(self.write(x, depth) for x in thing),
            ]
        if isinstance(thing, dict):
            pairs = [[self.write(k, depth), self.write(v, depth)] for k, v in thing.items()]
            return ["dict", *pairs]
        if isinstance(thing, torch.dtype):
            return ["dtype", str(thing).removeprefix("torch.")]
        if isinstance(thing, torch.Tensor):
            return _tensor(thing)
        if kind is np.ndarray and thing.dtype.char in _NUMBERS:
            data = base64.b64encode(np.ascontiguousarray(thing).tobytes()).decode()
            return ["array", thing.dtype.str, list(thing.shape), data]
        if isinstance(thing, np.generic) and thing.dtype.char in _NUMBERS:
            return ["scalar", thing.dtype.str, base64.b64encode(thing.tobytes()).decode()]
        if isinstance(thing, BaseException):
            return error(thing)
        return None


def _tensor(thing: Any) -> list[Any]:
    # A copy, since one element of a larger tensor keeps its stride, and bytes are read of stride 1.
    held = thing.detach().reshape(-1).clone(memory_format=torch.contiguous_format)
    data = bytes(held.view(torch.uint8).numpy()) if held.numel() else b""
    name = str(thing.dtype).removeprefix("torch.")
    wants = bool(thing.requires_grad)
    return ["tensor", name, list(thing.shape), wants, base64.b64encode(data).decode()]


def _opaque(thing: Any) -> list[Any]:
    try:
        said = show(thing)
    except Exception:
        said = f"<{type(thing).__name__}>"
    return ["opaque", str(type(thing).__name__)[:200], said[:2000]]


def error(thing: BaseException) -> list[Any]:
    """An error: the names of its class and of what that derives from, and its message."""
    try:
        said = str(thing)[:10_000]
    except Exception:
        said = ""
    names = [[c.__module__, c.__name__] for c in type(thing).__mro__ if c is not object]
    return ["error", [[str(m)[:200], str(n)[:200]] for m, n in names][:50], said, bool(thing.args)]


# -- reading --------------------------------------------------------------------------------------


def value(written: str) -> Any:
    """The value that a text stands for.

    Raises:
        BadData: it stands for none.
    """
    try:
        if len(written) > 2 * MOST or written.count(",") > 2 * _COUNT:
            raise BadData("too large a value")
        return _read(json.loads(written), 0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError,
            OverflowError, RuntimeError, MemoryError) as wrong:  # fmt: skip
        raise BadData(f"no value: {wrong}") from None


def _read(data: Any, depth: int) -> Any:
    if data is None or isinstance(data, (bool, int, str)):
        return data
    if not isinstance(data, list) or not isinstance(data[0], str) or depth > _DEPTH + 2:
        raise BadData("no value")
    kind, *rest = data
    if kind in ("dict", "set", "frozenset") and len(rest) > _KEYS:
        raise BadData("too many keys")
    if kind in _CONTAINERS:
        return _CONTAINERS[kind](_read(part, depth + 1) for part in rest)
    if kind == "dict":
        return {_read(k, depth + 1): _read(v, depth + 1) for k, v in rest}
    if kind == "kind":
        return _kind(*rest[:3], [_read(part, depth + 1) for part in rest[3:]])
    return _READERS[kind](*rest)


def _kind(base: str, name: str, said: str, parts: list[Any]) -> Any:
    """A list or tuple of a class of its own."""
    made = type(str(name), (_CONTAINERS[base],), {"__repr__": lambda self: str(said)})
    return made(parts)


def _opaque_again(name: str, said: str) -> Opaque:
    made: Opaque = type(str(name), (Opaque,), {})(str(name), str(said))  # panels name the type
    return made


def _array(kind: str, shape: list[int], data: str) -> Any:
    dtype = np.dtype(str(kind))
    if dtype.char not in _NUMBERS or not all(type(n) is int and n >= 0 for n in shape):
        raise BadData("no array")
    return np.frombuffer(base64.b64decode(data), dtype).reshape(shape).copy()


def _read_tensor(name: str, shape: list[int], wants: bool, data: str) -> Any:
    dtype = _DTYPES[name]
    held = base64.b64decode(data)
    if not all(type(n) is int and n >= 0 for n in shape):
        raise BadData("no tensor")
    if math.prod(shape) * dtype.itemsize != len(held):
        raise BadData("a tensor of another size")
    flat = np.frombuffer(held, np.uint8).copy()
    made = torch.from_numpy(flat).view(dtype) if held else torch.empty(0, dtype=dtype)
    made = made.reshape(tuple(shape))
    return made.requires_grad_() if wants and dtype.is_floating_point else made


def _read_error(names: list[list[str]], said: str, args: bool) -> BaseException:
    """An error of the nearest class that is known here, under the name of its own."""
    known: Any = next(filter(None, (_class(module, name) for module, name in names)), None)
    if known is None:
        raise BadData("no error")
    own = str(names[0][1])
    if known is NotImplementedError and own == known.__name__ and not args:
        return NotImplementedError()
    made = type(own, (known,), {"__init__": lambda self: None, "__str__": lambda self: said})
    found: BaseException = made.__new__(made)
    found.args = (said,) if args else ()
    return found


def _class(module: str, name: str) -> Any:
    place: Any = builtins if module == "builtins" else None
    if module.split(".")[0] == "toytorch":
        place = sys.modules.get(module)
    found = vars(place).get(name) if place is not None else None
    return found if isinstance(found, type) and issubclass(found, BaseException) else None


_CONTAINERS: dict[str, Any] = {
    "list": list, "tuple": tuple, "set": set, "frozenset": frozenset, "size": torch.Size
}  # fmt: skip
_READERS: dict[str, Any] = {
    "int": lambda digits: int(digits, 16),
    "float": float.fromhex,
    "complex": lambda real, imag: complex(float.fromhex(real), float.fromhex(imag)),
    "bytes": base64.b64decode,
    "ellipsis": lambda: ...,
    "dtype": lambda name: _DTYPES[name],
    "tensor": _read_tensor,
    "array": _array,
    "scalar": lambda kind, data: _array(kind, [1], data)[0],
    "error": _read_error,
    "opaque": _opaque_again,
}
