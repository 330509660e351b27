"""The ops by their own names, below the public ones, like `torch.ops.aten`.

>>> torch.ops.aten.neg.default(torch.tensor([1.]))
tensor([-1.])
"""

from __future__ import annotations

import functools
import importlib
from typing import Any

from toytorch.core.op import registry
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn
from toytorch.ops.define import CREATING, PUBLIC


class OpOverload:
    """One of an op's signatures. All run the same function here, which tells arguments apart."""

    namespace = "aten"

    def __init__(self, packet: OpOverloadPacket, name: str) -> None:
        self.overloadpacket, self._overloadname = packet, name
        self.__name__, self.__doc__ = f"{packet.__name__}.{name}", packet.__doc__

    @property
    def _schema(self) -> OverloadSchema:
        return OverloadSchema(self)

    def __call__(self, *args: Tensor | int, **kwargs: int) -> Any:
        return self.overloadpacket(*args, **kwargs)

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def name(self) -> str:
        """`aten::add.Tensor`; of the default one, `aten::add`."""
        return f"aten::{self.__name__.removesuffix('.default')}"

    def __repr__(self) -> str:
        return f"<OpOverload(op='aten.{self.overloadpacket.__name__}', overload='{self._overloadname}')>"


class OverloadSchema:
    """What programs ask of an overload's schema: its names, and whether it writes to its operand."""

    def __init__(self, of: OpOverload) -> None:
        packet, self.overload_name = of.overloadpacket.__name__, of._overloadname
        if self.overload_name == "default":
            self.overload_name = ""
        self.name = f"{of.namespace}::{packet}"
        self.is_mutable = packet[-1:] == "_" and packet[-2:] != "__"


class OpOverloadPacket:
    """An op with its overloads: `torch.ops.aten.add.Tensor`."""

    def __init__(self, name: str, function: Fn) -> None:
        self.__name__, self.__doc__, self._function = name, function.__doc__, function

    def __call__(self, *args: Tensor | int, **kwargs: int) -> Any:
        return self._function(*args, **kwargs)

    def __getattr__(self, name: str) -> OpOverload:
        if name.startswith("_"):
            raise AttributeError(f"'OpOverloadPacket' object has no attribute '{name}'")
        found = OpOverload(self, name)
        setattr(self, name, found)  # the same object at every call: programs have tables of them
        return found

    def __str__(self) -> str:
        return f"aten.{self.__name__}"

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


@functools.cache
def __getattr__(name: str) -> OpOverloadPacket:
    # Writes its functions to PUBLIC; programs that never ask for `torch.ops.aten` do without. The
    # import system asks for names with underscores while this file is being imported.
    if not name.startswith("__"):
        importlib.import_module("toytorch.ops.aten_forms")
    found = PUBLIC.get(f"aten.{name}") or PUBLIC.get(name) or CREATING.get(name)
    if found is None and name in registry:
        found = registry[name].function
    if found is None and name.startswith("_unsafe_"):  # no index is left unchecked here
        return __getattr__(name.removeprefix("_unsafe_"))
    if found is None and not name.startswith("__"):  # `_pin_memory`: below a method of that name
        found = getattr(Tensor, name, None) or getattr(Tensor, name.removeprefix("_"), None)
    if found is None:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return OpOverloadPacket(name, found)
