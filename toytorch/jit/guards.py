"""What a function sees beside its arguments: closures, globals, modules, attributes of objects.

A graph of `toytorch.compile` takes the tensors among these as inputs, read again at every call, and
holds for one set of all other values (PyTorch calls these checks guards). What counts is what the
function's code mentions: a counter that it never reads may change as it likes.
"""

from __future__ import annotations

import builtins
import collections
import dis
import functools
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Fn
from toytorch.facts.package import is_ours
from toytorch.jit.executor import exact, facts_of
from toytorch.nn import Module
from toytorch.nn.modules.hooks import as_hook
from toytorch.nn.modules.module import ANYWHERE

Getter = Callable[[], Any]

PLAIN = frozenset((bool, int, float, complex, str, bytes, type(None), dtype))
FIXED = (type, types.ModuleType, types.BuiltinFunctionType, np.ufunc)
LIBRARIES = sys.stdlib_module_names | {"numpy"}
SIZED = (list, tuple, dict, set, frozenset, collections.deque)
MISSING = object()
DEEPEST = 3  # containers and objects within each other whose values are looked at
LONGEST = 64  # items of a container that are looked at; a longer one is known by its identity


class GuardedState:
    """The places where a function reads values, and what it finds there.

    names    what its code mentions, and that of the user's functions and methods it leads to
    getters  how to read its closure cells and globals
    """

    def __init__(self, function: Fn, module: Module | None = None) -> None:
        self.function = function
        self.module = module
        self.names: set[str] = set()
        self.getters: list[Getter] = []
        self.functions: set[Any] = set()
        self.classes: set[type] = set()
        self.hooks: set[int] = set()  # the numbers of those that were looked at

    def kind(self, leaves: Sequence[Any]) -> list[Any]:
        """What a graph holds for: all of the arguments and of the guarded state but tensors' elements."""
        if not self.functions:  # not before the first call: globals may be made later
            self.functions.add(None)
            if self.module is None:
                self.look(self.function)
        while True:
            known = len(self.names), len(self.getters)
            kinds: list[Any] = [*chain.from_iterable(ANYWHERE)]  # the hooks of every module
            for value in leaves:
                self.add(value, kinds)
            for get in self.getters:
                self.add(get(), kinds)
            if self.module is not None:
                self.add_module(self.module, kinds, 0)
            if known == (len(self.names), len(self.getters)):
                return kinds
            self.classes.clear()  # a class not met before mentions more

    # -- code ----------------------------------------------------------------------------------

    def look(self, function: Any) -> None:
        """Notes what a function's code mentions, and looks on where that leads."""
        while isinstance(function, functools.partial):
            self.getters += [functools.partial(keep, v) for v in (function.args, function.keywords)]
            function = function.func
        if isinstance(function, types.MethodType):
            self.getters.append(functools.partial(keep, function.__self__))
        function = getattr(function, "__func__", function)
        function = getattr(function, "__wrapped__", function)
        if not isinstance(function, types.FunctionType) or function in self.functions:
            return
        self.functions.add(function)
        if of_library(function.__globals__.get("__name__", "")):
            return
        read, mentioned = names_in(function.__code__)
        self.names |= mentioned
        places = [
            functools.partial(getattr, c, "cell_contents", MISSING)
            for c in function.__closure__ or ()
        ]
        places += [
            functools.partial(function.__globals__.get, name, MISSING)
            for name in sorted(read)
            if not hasattr(builtins, name)
        ]
        for get in places:
            value = get()
            if callable(value) and not isinstance(value, (*FIXED, Module)):
                self.look(value)
            elif not isinstance(value, FIXED):
                self.getters.append(get)

    def look_at_class(self, kind: type) -> None:
        """Looks at those methods of a user's class that are mentioned."""
        self.classes.add(kind)
        for part in kind.__mro__:
            if not of_library(part.__module__):
                for name in ("forward", "__call__", *self.names):
                    method = part.__dict__.get(name)
                    self.look(getattr(method, "fget", method))  # of a property, what it runs

    # -- values --------------------------------------------------------------------------------

    def add(self, value: Any, kinds: list[Any], depth: int = 0) -> None:
        """Adds to `kinds` what tells one kind of value from another."""
        if isinstance(value, Tensor):
            kinds += facts_of((value,))
        elif value.__class__ in PLAIN:
            kinds += (value.__class__, exact(value))
        elif isinstance(value, Module):
            self.add_module(value, kinds, depth)
        elif depth < DEEPEST and (found := parts_of(value)) is not None:
            kinds += (value.__class__, *found)
            for item in found.values():
                self.add(item, kinds, depth + 1)
        else:
            kinds.append(id(value))
            if isinstance(value, SIZED):
                kinds.append(len(value))
            if depth < DEEPEST:
                self.add_attributes(value, kinds, depth)

    def add_attributes(self, value: Any, kinds: list[Any], depth: int) -> None:
        """Adds what the code mentions of an ordinary object."""
        kind = value.__class__
        if isinstance(value, FIXED) or callable(value) or of_library(kind.__module__):
            return
        if kind not in self.classes:
            self.look_at_class(kind)
        for name, item in getattr(value, "__dict__", {}).items():
            if name in self.names:
                kinds.append(name)
                self.add(item, kinds, depth + 1)

    def add_module(self, module: Module, kinds: list[Any], depth: int) -> None:
        """Adds a module's numbers and texts (`training` is one), its hooks and its children."""
        kinds += (
            module,
            *module._forward_pre_hooks,  # each by its number, which no two hooks share
            *module._forward_hooks,
            *module._backward_pre_hooks,
            *module._backward_hooks,
            *module._node_hooks,
        )
        for hooks in (module._forward_pre_hooks, module._forward_hooks):
            for number in hooks.keys() - self.hooks:
                self.hooks.add(number)
                self.look(as_hook(hooks[number]).call)
        own = not of_library(module.__class__.__module__)
        if own and module.__class__ not in self.classes:
            self.look_at_class(module.__class__)
        for name, value in module.__dict__.items():
            if name[0] != "_" and (not own or name in self.names or name == "training"):
                if value.__class__ in PLAIN:
                    kinds += (value.__class__, exact(value))
                else:
                    self.add(value, kinds, depth + 1)
        for child in module._modules.values():
            if child is not None:
                self.add_module(child, kinds, depth)

    # -- tensors -------------------------------------------------------------------------------

    def places(self, leaves: Sequence[Any]) -> Iterator[tuple[Getter, Tensor]]:
        """The tensors in arguments and guarded state, and how to read each of them again."""
        beside: list[Getter] = [functools.partial(keep, v) for v in (*leaves, self.module)]
        for get in beside + self.getters:
            yield from tensors_in(get, 0)

    def place_of(self, tensor: Tensor, leaves: Sequence[Any]) -> Getter:
        """How to read again a tensor that the function came upon; the tensor itself where it
        stands in no place that is known."""
        for place, found in self.places(leaves):
            if found is tensor:
                return place
        return functools.partial(keep, tensor)

    def tensors(self, leaves: Sequence[Any]) -> list[tuple[int, int]]:
        """Which tensors stand in the places, and which gradients they hold."""
        return [(id(t), id(t._grad)) for _, t in self.places(leaves)]


def keep(value: object) -> Any:
    """The value itself, as a place to read it from."""
    return value


def of_library(name: str) -> bool:
    """Whether a module of Python belongs to toytorch, NumPy or Python, which read no globals of
    the user's."""
    return is_ours(name) or name.partition(".")[0] in LIBRARIES


def names_in(code: types.CodeType) -> tuple[set[str], set[str]]:
    """The globals that code reads, and all names that it mentions; functions within included."""
    read = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    mentioned = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            more = names_in(constant)
            read |= more[0]
            mentioned |= more[1]
    return read, mentioned


def parts_of(value: object) -> dict[Any, Any] | None:
    """The items of a container that is not too long."""
    if isinstance(value, (tuple, list)) and len(value) <= LONGEST:
        return dict(enumerate(value))
    return value if isinstance(value, dict) and len(value) <= LONGEST else None


def tensors_in(get: Getter, depth: int) -> Iterator[tuple[Getter, Tensor]]:
    """The tensors that a place holds, itself or in its parts, and how to read each."""
    value = get()
    if isinstance(value, Tensor):
        yield get, value
    elif isinstance(value, Module):
        for module in value.modules():
            for names in (module._parameters, module._buffers):
                for name, item in names.items():
                    if item is not None:
                        yield functools.partial(names.__getitem__, name), item
            yield from attributes_in(functools.partial(keep, module), depth)
    elif depth < DEEPEST and (parts := parts_of(value)) is not None:
        for key in parts:
            yield from tensors_in(functools.partial(item_of, get, key), depth + 1)
    elif depth < DEEPEST and not isinstance(value, FIXED):
        yield from attributes_in(get, depth)


def attributes_in(get: Getter, depth: int) -> Iterator[tuple[Getter, Tensor]]:
    """The tensors in an object's attributes."""
    for name in [n for n in getattr(get(), "__dict__", {}) if n[0] != "_"]:
        yield from tensors_in(functools.partial(attribute_of, get, name), depth + 1)


def item_of(get: Getter, key: object) -> Any:
    """An item of what a place holds."""
    return get()[key]


def attribute_of(get: Getter, name: str) -> Any:
    """An attribute of what a place holds."""
    return getattr(get(), name)
