"""The ops by their own names, below the public ones, like `torch.ops.aten`.

>>> import toytorch as torch
>>> torch.ops.aten.neg.default(torch.tensor([1.]))
tensor([-1.])
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from toytorch.core.op import registry
from toytorch.ops.define import PUBLIC

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


class Packet:
    """An op with its overloads, of which there is one here: `default`."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        self.__name__, self.__doc__, self.default = name, function.__doc__, function

    def __call__(self, *args: Tensor | int, **kwargs: int) -> Any:
        return self.default(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<OpOverloadPacket(op='aten.{self.__name__}')>"


def __getattr__(name: str) -> Packet:
    found = PUBLIC.get(f"aten.{name}") or PUBLIC.get(name)
    if found is None and name in registry:
        found = registry[name].function
    if found is None:
        raise AttributeError(f"'_OpNamespace' 'aten' object has no attribute '{name}'")
    return Packet(name, found)
