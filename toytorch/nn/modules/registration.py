"""Parameters, buffers and children of a module: found by attribute, walked by name."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.nn.parameter import Buffer, Parameter

if TYPE_CHECKING:
    from toytorch.nn.modules.module import Module


TABLES = ("_parameters", "_buffers", "_modules")


# Hooks on what any module gets, by its kind: hook(module, name, value).
REGISTRATION: dict[str, dict[int, Any]] = {"parameter": {}, "buffer": {}, "module": {}}


def registered(kind: str, module: Any, name: str, value: Any) -> Any:
    """A value that a module gets, or what hooks give instead."""
    for hook in REGISTRATION[kind].values():
        given = hook(module, name, value)
        value = value if given is None else given
    return value


def has(owner: object, name: object) -> bool:
    """Whether an object has an attribute; a name that is no text is refused elsewhere."""
    return isinstance(name, str) and hasattr(owner, name)


def full_name(value: Any) -> str:
    """A value's class, or a class or function itself, in PyTorch's error messages."""
    cls = value if hasattr(value, "__qualname__") else type(value)
    if isinstance(value, Tensor):
        return str(value.type())
    name = cls.__qualname__
    return name if cls.__module__ == "builtins" else f"{cls.__module__}.{name}"


# Methods that all modules share and that something else may stand in for (see `using`): by name,
# what does now, or None.
stand_ins: dict[str, Fn | None] = {}


def replaceable(method: Fn) -> Any:
    """Marks a method of modules that something else may stand in for."""
    name = method.__name__
    stand_ins[name] = None

    @functools.wraps(method)
    def run(self: Any, *args: object, **kwargs: object) -> Any:
        return (stand_ins[name] or method)(self, *args, **kwargs)

    return run


@contextmanager
def using(**pieces: Fn | None) -> Iterator[None]:
    """Lets functions stand in for methods of every module while the block lasts.

    >>> from toytorch import nn
    >>> with using(named_parameters=lambda module, **options: iter([("nothing", None)])):
    ...     list(nn.Linear(1, 1).parameters())
    [None]
    >>> len(list(nn.Linear(1, 1).parameters()))
    2
    """
    for name in pieces:
        if name not in stand_ins:
            raise TypeError(
                f"modules have no piece {name!r} to replace; it can be one of {', '.join(stand_ins)}"
            )
    before = {name: stand_ins[name] for name in pieces}
    stand_ins.update(pieces)
    try:
        yield
    finally:
        stand_ins.update(before)


class Tree:
    """The attributes of a module that are its parameters, buffers and children."""

    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]

    def __init__(self) -> None:
        put = object.__setattr__
        put(self, "training", True)
        for name in TABLES:
            put(self, name, {})
        put(self, "_non_persistent_buffers_set", set())

    # -- attributes ---------------------------------------------------------------------------

    @replaceable
    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_parameters" not in own:
            if isinstance(value, (Parameter, Tree)):
                kind = "parameters" if isinstance(value, Parameter) else "module"
                raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._forget(name, "_parameters")
            self.register_parameter(name, value)
        elif name in self._parameters:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{full_name(value)}' as parameter '{name}' "
                    "(torch.nn.Parameter or None expected)"
                )
            self.register_parameter(name, None)
        elif isinstance(value, Tree):
            self._forget(name, "_modules")
            self._modules[name] = registered("module", self, name, value)
        elif name in self._modules:
            if value is not None:
                raise TypeError(
                    f"cannot assign '{full_name(value)}' as child module '{name}' "
                    "(torch.nn.Module or None expected)"
                )
            self._modules[name] = None
        elif isinstance(value, Buffer):
            persistent = value.persistent and name not in self._non_persistent_buffers_set
            self._forget(name, "_buffers")
            self.register_buffer(name, value, persistent)
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{full_name(value)}' as buffer '{name}' "
                    "(torch.nn.Buffer, torch.Tensor or None expected)"
                )
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str, keep: str) -> None:
        """Removes an attribute of this name, but for its place in the table `keep`."""
        own = self.__dict__
        own.pop(name, None)
        for table in TABLES:
            if table != keep:
                own[table].pop(name, None)
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_parameters" in own:
            for kind in TABLES:
                if name in own[kind]:
                    return own[kind][name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {
            *dir(type(self)),
            *self.__dict__,
            *self._parameters,
            *self._buffers,
            *self._modules,
        }
        return sorted(n for n in names if not n[:1].isdigit())  # nobody can write `net.0`

    @staticmethod
    def _check_name(kind: str, name: str, taken: bool) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{kind} name should be a string. Got {full_name(name)}")
        if "." in name:
            raise KeyError(
                f'{kind} name can\'t contain "."' + (f", got: {name}" if kind == "module" else "")
            )
        if not name:
            raise KeyError(f'{kind} name can\'t be empty string ""')
        if taken:
            raise KeyError(f"attribute '{name}' already exists")

    def _check_ready(self, what: str) -> None:
        if "_parameters" not in self.__dict__:
            raise AttributeError(f"cannot assign {what} before Module.__init__() call")

    def register_parameter(self, name: str, param: Tensor | int | None) -> None:
        """Adds a parameter, or None for one that is absent."""
        self._check_ready("parameter")
        self._check_name("parameter", name, has(self, name) and name not in self._parameters)
        if param is not None and not isinstance(param, Parameter):
            raise TypeError(
                f"cannot assign '{full_name(param)}' object to parameter '{name}' "
                "(torch.nn.Parameter or None required)"
            )
        if param is not None and param.grad_fn is not None:
            raise ValueError(
                f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be "
                f"created explicitly. To express '{name}' as a function of another Tensor, compute "
                "the value in the forward() method."
            )
        self._parameters[name] = registered("parameter", self, name, param)

    def register_buffer(
        self, name: str, tensor: Sequence[Tensor] | Tensor | None, persistent: bool = True
    ) -> None:
        """Adds a tensor that is part of the state but not learned."""
        self._check_ready("buffer")
        self._check_name("buffer", name, has(self, name) and name not in self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{full_name(tensor)}' object to buffer '{name}' "
                "(torch Tensor or None required)"
            )
        self._buffers[name] = registered("buffer", self, name, tensor)
        kept = self._non_persistent_buffers_set
        (kept.discard if persistent else kept.add)(name)

    def add_module(self, name: str, module: Module | None) -> None:
        """Adds a child under a name."""
        if module is not None and not isinstance(module, Tree):
            raise TypeError(f"{full_name(module)} is not a Module subclass")
        self._check_name("module", name, has(self, name) and name not in self._modules)
        self._modules[name] = registered("module", self, name, module)

    def register_module(self, name: str, module: Module) -> None:
        """Adds a child under a name."""
        self.add_module(name, module)

    # -- walking the tree ---------------------------------------------------------------------

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """(name, module) of this module and all below."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, child in self._modules.items():
            if child is not None:
                yield from child.named_modules(
                    memo, f"{prefix}.{name}" if prefix else name, remove_duplicate
                )

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """This module and all below."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """(name, module) of the children."""
        seen: set[Any] = set()
        for name, child in self._modules.items():
            if child is not None and child not in seen:
                seen.add(child)
                yield name, child

    def children(self) -> Iterator[Any]:
        """The children."""
        for _, child in self.named_children():
            yield child

    def _named_members(
        self,
        get_members_fn: Callable[[Any], Iterable[tuple[str, Any]]],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[Any]:
        """(path, member) of what a function finds in each module."""
        seen: set[int] = set()
        modules = (
            self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate)
            if recurse
            else [(prefix, self)]
        )
        for path, module in modules:
            for name, value in get_members_fn(module):
                if value is None or (remove_duplicate and id(value) in seen):
                    continue
                seen.add(id(value))
                yield (f"{path}.{name}" if path else name), value

    @replaceable
    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Parameter]]:
        """(name, parameter) of all parameters."""
        return self._named_members(
            lambda module: module._parameters.items(), prefix, recurse, remove_duplicate
        )

    def parameters(self, recurse: bool = True) -> Iterator[Parameter]:
        """All parameters."""
        for _, p in self.named_parameters(recurse=recurse):
            yield p

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Tensor]]:
        """(name, buffer) of all buffers."""
        return self._named_members(
            lambda module: module._buffers.items(), prefix, recurse, remove_duplicate
        )

    def buffers(self, recurse: bool = True) -> Iterator[Tensor]:
        """All buffers."""
        for _, b in self.named_buffers(recurse=recurse):
            yield b

    # -- by path ------------------------------------------------------------------------------

    def get_submodule(self, target: str) -> Any:
        """The module at a dotted path."""
        module: Any = self
        for name in target.split(".") if target else ():
            if not hasattr(module, name):
                raise AttributeError(f"{type(module).__name__} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Tree):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Module, strict: bool = False) -> None:
        """Puts another module at a dotted path; with strict, only where there is one."""
        if not target:
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Tree):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{type(parent).__name__} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Tree):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _at(self, target: str) -> tuple[Any, str]:
        path, _, name = target.rpartition(".")
        owner = self.get_submodule(path)
        if not hasattr(owner, name):
            raise AttributeError(f"{type(owner).__name__} has no attribute `{name}`")
        return owner, name

    def get_parameter(self, target: str) -> Parameter:
        """The parameter at a dotted path."""
        owner, name = self._at(target)
        found = getattr(owner, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Tensor:
        """The buffer at a dotted path."""
        owner, name = self._at(target)
        if name not in owner._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return owner._buffers[name]
