"""A graph as programs written for PyTorch ask about it: `node.kind()`, `value.type().sizes()`.

Our own code reads attributes, `node.kind` and `graph.nodes`; PyTorch has methods of these names. So
the attributes may be called, too: a list gives an iterator, a name itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from toytorch.jit.ir import Node, Value
    from toytorch.jit.types import Type

T = TypeVar("T")


class Listed(list[T]):
    """A list that may be called for an iterator over it.

    >>> next(Listed([1, 2])())
    1
    """

    __slots__ = ()

    def __call__(self) -> Iterator[T]:
        return iter(self)


class Kind(str):
    """The name of an operation, which may be called for itself.

    >>> Kind("aten::add")(), Kind("aten::add") == "aten::add"
    ('aten::add', True)
    """

    __slots__ = ()

    def __call__(self) -> str:
        return str(self)


def listed(slot: str) -> Any:
    """An attribute that keeps what it is given as a Listed, in a slot of another name."""

    def keep(owner: object, value: list[Any]) -> None:
        setattr(owner, slot, value if value.__class__ is Listed else Listed(value))

    return property(attrgetter(slot), keep)


def named(slot: str) -> Any:
    """An attribute that keeps a name as a Kind."""
    return property(attrgetter(slot), lambda owner, value: setattr(owner, slot, Kind(value)))


class AskedNode:
    """PyTorch's questions about a node."""

    __slots__ = ()

    if TYPE_CHECKING:
        attributes: dict[str, Any]
        inputs: list[Value]
        outputs: list[Value]
        kind: str
        source: Any

    def __call__(self) -> Any:
        return self

    def inputsSize(self) -> int:
        """How many inputs it has."""
        return len(self.inputs)

    def outputsSize(self) -> int:
        """How many results it has."""
        return len(self.outputs)

    def inputsAt(self, i: int) -> Value:
        """An input by its place."""
        return self.inputs[i]

    def outputsAt(self, i: int) -> Value:
        """A result by its place."""
        return self.outputs[i]

    def input(self) -> Value:
        """The one input."""
        (value,) = self.inputs
        return value

    def attributeNames(self) -> list[str]:
        """The names of its attributes; those that are only ours are left out."""
        return [name for name in self.attributes if not name.startswith("_")]

    def hasAttribute(self, name: str) -> bool:
        """Whether it has an attribute."""
        return name in self.attributes

    def hasAttributes(self) -> bool:
        """Whether it has any attribute."""
        return bool(self.attributeNames())

    def __getitem__(self, name: str) -> Any:
        return self.attributes[name]

    def attribute(self, name: str) -> Any:
        """An attribute; PyTorch has one method for each type it may have."""
        if name not in self.attributes:
            raise RuntimeError(f"required keyword attribute '{name}' is undefined")
        return self.attributes[name]

    s = i = f = t = g = ss = ts = fs = ival = attribute

    def scopeName(self) -> str:
        """The modules in whose midst a trace made it."""
        return str(self.attributes.get("_scope", ""))

    def sourceRange(self) -> str:
        """The line it was written as, with a mark under the place."""
        return "" if self.source is None else self.source.pointing()

    def mustBeNone(self) -> bool:
        """Whether the result is None."""
        return str(self.outputs[0].type) == "NoneType"


class AskedValue:
    """PyTorch's questions about a value."""

    if TYPE_CHECKING:
        name: str
        type: Type
        node: Node | None
    else:
        __slots__ = ()

    def __call__(self) -> Any:
        return self

    def debugName(self) -> str:
        """The name it is printed with, without the percent sign."""
        return self.name

    def setDebugName(self, name: str) -> None:
        """Gives it another name."""
        self.name = name

    def isCompleteTensor(self) -> bool:
        """Whether type and shape of the tensor are known."""
        return getattr(self.type, "shape", None) is not None

    def requires_grad(self) -> bool:
        """Whether the tensor is known to want a gradient."""
        return bool(getattr(self.type, "requires_grad", False))

    def toIValue(self) -> Any:
        """The value of a constant; None of anything else."""
        return None if self.node is None else self.node.attributes.get("value")
