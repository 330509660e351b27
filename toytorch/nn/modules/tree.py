"""Parameters, buffers and children of a module: found by attribute, walked by name."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.nn.parameter import Buffer, Parameter

TABLES = ("_parameters", "_buffers", "_modules")


def full_name(value: Any) -> str:
    """A value's class in PyTorch's error messages."""
    cls = type(value)
    if isinstance(value, Tensor):
        return str(value.type())
    return cls.__name__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__name__}"


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

    def __setattr__(self, name: str, value: Any) -> None:
        own = self.__dict__
        if "_parameters" not in own:
            if isinstance(value, (Parameter, Tree)):
                kind = "parameters" if isinstance(value, Parameter) else "module"
                raise AttributeError(f"cannot assign {kind} before Module.__init__() call")
            object.__setattr__(self, name, value)
        elif isinstance(value, Parameter):
            self._forget(name)
            self.register_parameter(name, value)
        elif isinstance(value, Tree):
            self._forget(name)
            self._modules[name] = value
        elif name in self._parameters:
            if value is not None:
                raise TypeError(f"cannot assign '{full_name(value)}' as parameter '{name}' "
                                "(torch.nn.Parameter or None expected)")
            self.register_parameter(name, None)
        elif name in self._modules:
            if value is not None:
                raise TypeError(f"cannot assign '{full_name(value)}' as child module '{name}' "
                                "(torch.nn.Module or None expected)")
            self._modules[name] = None
        elif isinstance(value, Buffer):
            persistent = value.persistent and name not in self._non_persistent_buffers_set
            self._forget(name)
            self.register_buffer(name, value, persistent)
        elif name in self._buffers:
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"cannot assign '{full_name(value)}' as buffer '{name}' "
                                "(torch.nn.Buffer, torch.Tensor or None expected)")
            self._buffers[name] = value
        else:
            object.__setattr__(self, name, value)

    def _forget(self, name: str) -> None:
        """Removes an attribute of this name, wherever it is, unless it stays in its table."""
        own = self.__dict__
        own.pop(name, None)
        for table in TABLES:
            entries = own[table]
            if name in entries and not (table == "_parameters" or table == "_modules"):
                del entries[name]
        for table, other in (("_parameters", "_modules"), ("_modules", "_parameters")):
            if name in own[table] and name in own[other]:
                del own[table][name]
        self._non_persistent_buffers_set.discard(name)

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if "_parameters" in own:
            for table in (own["_parameters"], own["_buffers"], own["_modules"]):
                if name in table:
                    return table[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __delattr__(self, name: str) -> None:
        for table in (self._parameters, self._buffers, self._modules):
            if name in table:
                del table[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._buffers,
                 *self._modules}
        return sorted(n for n in names if not n[:1].isdigit())  # nobody can write `net.0`
