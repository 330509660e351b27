"""A reader of pickles that cannot run code: its own stack machine over a short list of names."""

from __future__ import annotations

import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections import OrderedDict, defaultdict, deque
from collections.abc import Callable
from pickle import UnpicklingError
from typing import Any

from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Args
from toytorch.facts.package import is_ours
from toytorch.nn import Module
from toytorch.optim import Optimizer
from toytorch.serialization import allowed, known, modules, programs
from toytorch.serialization.arrays import ArrayShell, TypeShell
from toytorch.serialization.known import Made, Value
from toytorch.serialization.programs import Own
from toytorch.serialization.rebuild import (
    GLOBALS,
    Builder,
    DimRange,
    StorageType,
    check_key,
    require,
)
from toytorch.serialization.rebuild import finished as finished_storage

Load = Callable[[str, Any, str, int], Any]
REFUSED = (
    "Unsupported global: GLOBAL {0} was not an allowed global by default. Please use "
    "`torch.serialization.add_safe_globals([{0}])` or the "
    "`torch.serialization.safe_globals([{0}])` context manager to allowlist this global if you "
    "trust this class/function."
)
UNKNOWN = (
    "Unsupported global: GLOBAL {0} is nothing that toytorch makes by itself. With "
    "weights_only=False these are modules of torch.nn, functions of torch.nn.functional, arrays of "
    "NumPy, plain containers, and classes that your program has defined or imported before it loads "
    "the file, if their objects are made without a call (of `__new__`, `__setstate__` or another "
    "`__reduce__`); code runs only if you allow it. If you trust this class/function: "
    "`with torch.serialization.safe_globals([{0}]): torch.load(f, weights_only=False)`."
)


class Allowed:
    """A class or function that the user allowed."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing


def finished(value: Any) -> Any:
    """What stands in a container for a value on the stack."""
    kind = type(value)
    if kind is Allowed or kind is Value or kind is Made or kind is Own:
        return value.thing
    if kind is ArrayShell or kind is TypeShell:
        return value.value()
    return finished_storage(value)


class Unpickler:
    """Runs the program in `data` from `at`; `load` finds a storage (key, dtype, place, numel).

    With weights_only, files may name tensors and containers, and what the user allowed.
    """

    def __init__(self, data: bytes, load: Load, at: int = 0, weights_only: bool = True) -> None:
        self.data, self.at, self._load, self._weights_only = data, at, load, weights_only
        self.stack: list[Any] = []
        self._outer: list[list[Any]] = []  # the stacks below each open mark
        self._memo: dict[int, Any] = {}
        self._own: set[type] = set()  # classes of the program of which there are objects
        self._left = 2 * len(data)  # values that calls may copy: bytes out of text, arrays of them

    def run(self, actions: dict[int, Callable[[Unpickler], Any]] | None = None) -> Any:
        """The value that the program leaves; `at` is then behind it."""
        actions = ACTIONS if actions is None else actions
        while True:
            code = self._take(1)[0]
            if code == STOP:
                require(not self._outer and len(self.stack) == 1, "a pickle ends too early")
                return finished(self.stack.pop())
            action = actions.get(code)
            if action is None:
                raise UnpicklingError(f"Unsupported operand {code}")
            action(self)

    def spend(self, count: int) -> None:
        """Pays for values copied out of others: each was read once, so all fit in the file."""
        self._left -= count
        require(self._left >= 0, "it copies more values than it holds")

    # -- reading ------------------------------------------------------------------------------

    def _take(self, n: int) -> bytes:
        if not 0 <= n <= len(self.data) - self.at:
            raise EOFError("a pickle ends too early")
        self.at += n
        return self.data[self.at - n : self.at]

    def _number(self, form: str) -> int:
        return int(struct.unpack(form, self._take(struct.calcsize(form)))[0])

    def _line(self) -> str:
        end = self.data.find(b"\n", self.at, self.at + 1000)
        require(end >= 0, "a name in a pickle does not end")
        return self._take(end + 1 - self.at)[:-1].decode()

    def _text(self, form: str) -> None:
        self.stack.append(self._take(self._number(form)).decode("utf-8", "surrogatepass"))

    def _long(self, form: str) -> None:
        self.stack.append(int.from_bytes(self._take(self._number(form)), "little", signed=True))

    # -- the stack ----------------------------------------------------------------------------

    def _mark(self) -> None:
        self._outer.append(self.stack)
        self.stack = []

    def _popped(self) -> list[Any]:
        """What was pushed since the last mark."""
        values, self.stack = self.stack, self._outer.pop()
        return list(map(finished, values))

    def _tuple_of(self, n: int) -> None:
        require(len(self.stack) >= n, "a tuple has too few parts")
        self.stack[-n:] = [_tuple(self.stack[-n:])]

    def _tuple(self) -> None:
        values, self.stack = self.stack, self._outer.pop()
        self.stack.append(_tuple(values))

    def _remember(self, n: int) -> None:
        self._memo[n] = self.stack[-1]

    def _recall(self, n: int) -> None:
        require(n in self._memo, f"value {n} was never made")
        self.stack.append(self._memo[n])

    # -- containers ---------------------------------------------------------------------------

    def _append(self, values: list[Any]) -> None:
        require(type(self.stack[-1]) in (list, deque), "only lists can be appended to")
        self.stack[-1].extend(values)

    def _add(self) -> None:
        values = self._popped()
        require(type(self.stack[-1]) is set, "only sets can be added to")
        self.stack[-1].update(map(check_key, values))

    def _frozen(self) -> None:
        values = self._popped()
        self.stack.append(frozenset(map(check_key, values)))

    def _store(self, values: list[Any]) -> None:
        target = self.stack[-1]
        require(
            type(target) in (dict, OrderedDict, defaultdict)
            or (hasattr(type(target), "elements") and isinstance(target, dict)),
            "only dicts have keys",
        )
        require(len(values) % 2 == 0, "a key has no value")
        for key, value in zip(values[::2], values[1::2]):
            target[check_key(key)] = value

    def _two(self) -> list[Any]:
        value = self.stack.pop()
        return [finished(self.stack.pop()), finished(value)]

    # -- names and calls ----------------------------------------------------------------------

    def _global(self, module: str, name: str) -> None:
        require(type(module) is str and type(name) is str, "a name must be text")
        full = f"{module}.{name}"
        found = GLOBALS.get(full)
        if found is None:  # protocol 2 writes the names of Python 2
            module, name = NAME_MAPPING.get((module, name), (module, name))
            full = f"{IMPORT_MAPPING.get(module, module)}.{name}"
            permitted = allowed.find(full)
            found = known.table().get(full) if permitted or not self._weights_only else None
            if found is None and permitted is not None:
                found = Allowed(permitted)
            elif found is None and not self._weights_only:
                found = programs.find(full)
        if found is None:
            raise UnpicklingError((REFUSED if self._weights_only else UNKNOWN).format(full))
        self.stack.append(found)

    def _global_of_stack(self) -> None:
        name = self.stack.pop()
        self._global(self.stack.pop(), name)

    def _reduce(self) -> None:
        args, function = self.stack.pop(), self.stack.pop()
        require(type(args) is tuple, "a function is called with something else than a tuple")
        if type(function) is Builder:
            self.stack.append(function.build(self.spend, *args))
        elif type(function) is Made:
            self._make(function.thing, args)
        else:
            require(type(function) is Allowed, "what is called is no function")
            self.stack.append(function.thing(*args))

    def _make(self, cls: type, args: Args) -> None:
        require(not args, f"a {cls.__name__} is made empty")
        self.stack.append(object.__new__(cls) if issubclass(cls, Module) else cls.__new__(cls))

    def _new(self) -> None:
        args, cls = self.stack.pop(), self.stack.pop()
        require(type(args) is tuple, "a class is called with something else than a tuple")
        if type(cls) is Builder:
            self.stack.append(cls.build(self.spend, *args))
        elif type(cls) is Made:
            self._make(cls.thing, args)
        elif type(cls) is Own:
            name = cls.thing.__name__
            require(not args and not issubclass(cls.thing, Tensor), f"a {name} is made empty")
            self._own.add(cls.thing)
            self.stack.append(object.__new__(cls.thing))
        else:
            require(
                type(cls) is Allowed and isinstance(cls.thing, type), "what is made is no class"
            )
            self.stack.append(cls.thing.__new__(cls.thing, *args))

    def _build(self) -> None:
        state, target = self.stack.pop(), self.stack[-1]
        if type(target) is OrderedDict:
            require(
                type(state) is dict
                and all(type(k) is str for k in state)
                and set(state) <= {"_metadata"},
                "an OrderedDict keeps no attributes but _metadata",
            )
            vars(target).update(state)
            return
        cls = type(target)
        if cls is DimRange:
            return
        if cls is ArrayShell or cls is TypeShell:
            target.build(self.spend, state)
            return
        if cls is Generator:
            require(
                type(state) is tuple and len(state) == 3 and isinstance(state[2], Tensor),
                "a generator's state is its seed and a tensor",
            )
            target.set_state(state[2])
            return
        name = f"{cls.__module__}.{cls.__qualname__}"
        permitted = allowed.name_of(cls) is not None
        shell = not (permitted or isinstance(target, Module | Optimizer)) and (
            cls in known.shells().values()
        )
        require(
            permitted or cls in KNOWN or cls in self._own or issubclass(cls, Optimizer) or shell,
            "Can only build Tensor, Parameter, OrderedDict or types allowlisted via "
            f"`add_safe_globals`, but got {name}",
        )
        if isinstance(target, Optimizer) and not permitted:
            require(
                type(state) is dict and set(state) == {"defaults", "state", "param_groups"},
                "the state of an optimizer is a dict of three parts",
            )
            target.__setstate__(state)
            return
        if shell and is_ours(cls.__module__):
            state = known.attributes(cls, state)
        if cls in self._own:
            state = programs.attributes(cls, state)
        if isinstance(target, Module):
            require("_modules" not in vars(target), "the state of a module is set twice")
            state = modules.imported(cls, state)
        if permitted and hasattr(target, "__setstate__"):
            target.__setstate__(state)
        else:
            require(
                type(state) is dict and all(type(k) is str for k in state),
                "the state of an object must be a dict",
            )
            vars(target).update(state)

    def _class_of_module(self, cls: Any, file: object, source: object) -> None:
        """The class that the old layout gives with its source, which nobody reads."""
        require(isinstance(cls, type) and issubclass(cls, Module), "a module has a class")
        if allowed.name_of(cls) is not None:
            self.stack.append(Allowed(cls))
        else:
            require(cls in KNOWN or programs.is_plain(cls), "objects of a class are made by calls")
            self.stack.append(Made(cls) if cls in KNOWN else Own(cls))

    def _storage(self) -> None:
        parts = self.stack.pop()
        if type(parts) is tuple and parts[:1] == ("module",) and not self._weights_only:
            self._class_of_module(*parts[1:])
            return
        require(
            type(parts) is tuple
            and len(parts) in (5, 6)
            and parts[0] == "storage"
            and type(parts[1]) is StorageType,
            "Only persistent_load of storage is allowed",
        )
        require(len(parts) == 5 or parts[5] is None, "views of storages are not supported")
        self.stack.append(self._load(parts[2], parts[1].kind, parts[3], parts[4]))


def _tuple(values: list[Any]) -> tuple[Any, ...]:
    """A tuple: of values, or of the arguments of a call, which may name storages and builders."""
    return tuple(finished(v) if type(v) in NAMED else v for v in values)


NAMED = (Allowed, Value, Made, Own, ArrayShell, TypeShell)
KNOWN = frozenset(modules.classes().values())
STOP = ord(".")


def _pushing(value: object) -> Callable[[Unpickler], None]:
    return lambda u: u.stack.append(value)


ACTIONS: dict[int, Callable[[Unpickler], Any]] = {
    code[0]: action
    for code, action in {
        b"\x80": lambda u: require(u._take(1)[0] <= 5, "its pickle protocol is not known"),
        b"\x95": lambda u: u._take(8),  # frames of protocol 4 say what is known anyway
        b"N": _pushing(None),
        b"\x88": _pushing(True),
        b"\x89": _pushing(False),
        b")": _pushing(()),
        b"]": lambda u: u.stack.append([]),
        b"}": lambda u: u.stack.append({}),
        b"\x8f": lambda u: u.stack.append(set()),
        b"K": lambda u: u.stack.append(u._number("<B")),
        b"M": lambda u: u.stack.append(u._number("<H")),
        b"J": lambda u: u.stack.append(u._number("<i")),
        b"G": lambda u: u.stack.append(struct.unpack(">d", u._take(8))[0]),
        b"\x8a": lambda u: u._long("<B"),
        b"\x8b": lambda u: u._long("<i"),
        b"X": lambda u: u._text("<I"),
        b"\x8c": lambda u: u._text("<B"),
        b"U": lambda u: u.stack.append(u._take(u._number("<B")).decode("ascii")),
        b"B": lambda u: u.stack.append(u._take(u._number("<I"))),
        b"C": lambda u: u.stack.append(u._take(u._number("<B"))),
        b"\x96": lambda u: u.stack.append(bytearray(u._take(u._number("<Q")))),
        b"(": Unpickler._mark,
        b"t": Unpickler._tuple,
        b"\x85": lambda u: u._tuple_of(1),
        b"\x86": lambda u: u._tuple_of(2),
        b"\x87": lambda u: u._tuple_of(3),
        b"a": lambda u: u._append([finished(u.stack.pop())]),
        b"e": lambda u: u._append(u._popped()),
        b"\x90": Unpickler._add,
        b"\x91": Unpickler._frozen,
        b"s": lambda u: u._store(u._two()),
        b"u": lambda u: u._store(u._popped()),
        b"q": lambda u: u._remember(u._number("<B")),
        b"r": lambda u: u._remember(u._number("<I")),
        b"\x94": lambda u: u._remember(len(u._memo)),
        b"h": lambda u: u._recall(u._number("<B")),
        b"j": lambda u: u._recall(u._number("<I")),
        b"c": lambda u: u._global(u._line(), u._line()),
        b"\x93": Unpickler._global_of_stack,
        b"R": Unpickler._reduce,
        b"\x81": Unpickler._new,
        b"b": Unpickler._build,
        b"Q": Unpickler._storage,
    }.items()
}
