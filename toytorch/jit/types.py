"""The types of values in a graph.

A tensor's type may know more than that it is one: its dtype, its shape and strides, whether it
requires a gradient. A graph that was traced or specialised knows all of it, a scripted one little.

    >>> str(List(INT)), str(Optional(TENSOR)), str(Tuple((FLOAT, Dict(STR, INT))))
    ('int[]', 'Tensor?', '(float, Dict(str, int))')
"""

from __future__ import annotations

import builtins
import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor as TensorClass
from toytorch.facts.device import device, layout
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Sizes
from toytorch.futures import Future as FutureClass


class Type:
    """What a value may be."""

    def contains(self, other: Type) -> bool:
        """Whether every value of the type `other` is one of this type."""
        return self == other

    def __call__(self) -> Type:  # programs for PyTorch ask a value for `type()`
        return self

    def str(self) -> builtins.str:
        """The type as graphs print it."""
        return f"{self}"

    def kind(self) -> builtins.str:
        """The name of PyTorch's class of types: TensorType."""
        names = {"bool": "Bool", "str": "String", "Scalar": "Number", "Device": "DeviceObj"}
        own = builtins.str(getattr(self, "name", "")) or type(self).__name__
        own = type(self).__name__ if not isinstance(self, Simple) else names.get(own, own)
        return own[:1].upper() + own[1:].removesuffix("Type") + "Type"

    @property
    def annotation_str(self) -> builtins.str:
        """The type as Python writes it."""
        from toytorch.jit.script.annotations import spelled  # a circle otherwise

        return spelled(self)

    def isSubtypeOf(self, other: Type) -> bool:
        """Whether every value of this type is one of the other."""
        return other.contains(self)


@dataclass(frozen=True)
class Simple(Type):
    """A type that is told by its name."""

    name: builtins.str

    def __str__(self) -> builtins.str:
        return self.name

    def contains(self, other: Type) -> bool:
        if self.name == "Scalar":
            return all(m in (INT, FLOAT, BOOL, COMPLEX, NUMBER) for m in members(other))
        if self.name == "int" and other in (DTYPE, LAYOUT):
            return True  # which are numbers in PyTorch's scripts
        return self == other or self.name == "Any"


INT, FLOAT, BOOL, COMPLEX = Simple("int"), Simple("float"), Simple("bool"), Simple("complex")
STR, NONE, NUMBER, DTYPE = Simple("str"), Simple("NoneType"), Simple("Scalar"), Simple("Dtype")
DEVICE, ANY, RANGE, SLICE = Simple("Device"), Simple("Any"), Simple("range"), Simple("Slice")
LAYOUT = Simple("Layout")
GENERATOR = Simple("Generator")
NEVER = Simple("Never")  # of what is never looked at: a result before it is known
NAMED = (INT, FLOAT, BOOL, COMPLEX, STR, NONE, NUMBER, ANY, DTYPE, DEVICE, LAYOUT)
SIMPLE = {t.name: t for t in NAMED}  # by the words of signatures


@dataclass(frozen=True)
class Tensor(Type):
    """A tensor; None stands for what is not known."""

    dtype: dtype | None = None
    shape: Sizes | None = None
    strides: Sizes | None = None
    requires_grad: bool | None = None
    device: builtins.str = "cpu"

    def __str__(self) -> builtins.str:
        if self.dtype is None or self.shape is None:
            return "Tensor"
        name = self.dtype.legacy
        parts = [str(n) for n in self.shape]
        if self.strides is not None:
            parts.append(f"strides=[{', '.join(map(str, self.strides))}]")
        if self.requires_grad is not None:
            parts.append(f"requires_grad={int(self.requires_grad)}")
        parts.append(f"device={self.device}")
        return f"{name}({', '.join(parts)})"

    def sizes(self) -> list[int] | None:
        """The sizes, where they are known."""
        return None if self.shape is None else list(self.shape)

    def dim(self) -> int | None:
        """How many dimensions there are, where that is known."""
        return None if self.shape is None else len(self.shape)

    def scalarType(self) -> builtins.str | None:
        """The name of the dtype: Float."""
        return None if self.dtype is None else self.dtype.legacy

    def contains(self, other: Type) -> bool:
        return isinstance(other, Tensor) and (self.shape is None or self == other)


TENSOR = Tensor()


@dataclass(frozen=True)
class List(Type):
    """A list of values of one type."""

    element: Type
    count: int = field(default=0, compare=False)  # how often one value for it is repeated

    def __str__(self) -> builtins.str:
        return f"{self.element}[]"

    def getElementType(self) -> Type:
        """The type of its elements."""
        return self.element

    def contains(self, other: Type) -> bool:
        return isinstance(other, List) and (
            self.element == other.element
            or (isinstance(self.element, Tensor) and isinstance(other.element, Tensor))
        )


@dataclass(frozen=True)
class Tuple(Type):
    """A fixed number of values, each with its type; `names` and `python` are a named tuple's."""

    elements: tuple[Type, ...]
    names: tuple[builtins.str, ...] = ()
    python: Any = field(default=None, compare=False)

    def __str__(self) -> builtins.str:
        return f"({', '.join(map(str, self.elements))})"

    def contains(self, other: Type) -> bool:
        return (
            isinstance(other, Tuple)
            and len(self.elements) == len(other.elements)
            and all(a.contains(b) for a, b in zip(self.elements, other.elements))
        )


@dataclass(frozen=True)
class Dict(Type):
    """A dictionary."""

    key: Type
    value: Type

    def __str__(self) -> builtins.str:
        value = f"Future({self.value.element})" if isinstance(self.value, Future) else self.value
        return f"Dict({self.key}, {value})"  # the one place where PyTorch prints it so


@dataclass(frozen=True)
class Optional(Type):
    """A value or None."""

    element: Type

    def __str__(self) -> builtins.str:
        return f"{self.element}?"

    def contains(self, other: Type) -> bool:
        if isinstance(other, Optional):
            return self.element.contains(other.element)
        return other == NONE or self.element.contains(other)


@dataclass(frozen=True)
class Union(Type):
    """A value of one of several types: what `union` makes."""

    elements: tuple[Type, ...]

    def __str__(self) -> builtins.str:
        return f"Union({', '.join(map(str, self.elements))})"

    def contains(self, other: Type) -> bool:
        return all(any(e.contains(m) for e in self.elements) for m in members(other))


@dataclass(frozen=True)
class Future(Type):
    """A value that is asked for later."""

    element: Type

    def __str__(self) -> builtins.str:
        return f"Future[{self.element}]"

    def contains(self, other: Type) -> bool:
        return isinstance(other, Future) and self.element.contains(other.element)


@dataclass(frozen=True)
class Class(Type):
    """A module, or another object, by the name of its class."""

    name: builtins.str

    def __str__(self) -> builtins.str:
        return f"__torch__.{self.name}"


@dataclass(frozen=True)
class Enum(Class):
    """A member of an enumeration."""

    python: Any = field(default=None, compare=False)

    @property
    def element(self) -> Type:
        """The type of the members' values."""
        return of(next(iter(self.python)).value)


UNION_ORDER = (
    "Tensor", "Tuple", "List", "Dict", "Number", "Float", "Complex", "Future", "Int", "None",
    "String", "Generator", "Bool", "Optional", "DeviceObj",
)  # fmt: skip  # in which PyTorch sorts the members


def members(kind: Type) -> tuple[Type, ...]:
    """The types of which a value of the type has one.

    >>> [str(m) for m in members(Optional(INT))], [str(m) for m in members(List(INT))]
    (['int', 'NoneType'], ['int[]'])
    """
    if isinstance(kind, Union):
        return kind.elements
    return (*members(kind.element), NONE) if isinstance(kind, Optional) else (kind,)


def union(kinds: Sequence[Type]) -> Type:
    """One of several types: as an Optional or a Scalar, or as itself, where it is no more.

    >>> str(union([STR, INT, INT])), str(union([INT, NONE])), str(union([FLOAT, INT, COMPLEX]))
    ('Union(int, str)', 'int?', 'Scalar')
    """
    found = list(dict.fromkeys(m for kind in kinds for m in members(kind)))
    if {INT, FLOAT, COMPLEX} <= set(found):
        found = [NUMBER, *found]
    found = [m for m in found if not any(o is not m and o.contains(m) for o in found)]
    plain = [m for m in found if m != NONE]
    if len(plain) == 1:
        return Optional(plain[0]) if NONE in found else plain[0]
    place = {name + "Type": i for i, name in enumerate(UNION_ORDER)}
    found.sort(key=lambda m: (place.get(m.kind(), len(place)), str(m)))
    return Union(tuple(found)) if found else NEVER


def holds(kind: Type, value: object) -> bool:
    """Whether a value is of a type. An empty list is one of every type of lists.

    >>> holds(List(INT), []), holds(union([INT, STR]), "a"), holds(List(INT), ["a"])
    (True, True, False)
    """
    if isinstance(kind, (Union, Optional)):
        return any(holds(m, value) for m in members(kind))
    if isinstance(kind, List):
        return isinstance(value, list) and all(holds(kind.element, v) for v in value)
    if isinstance(kind, Dict):
        return isinstance(value, dict) and all(
            holds(kind.key, k) and holds(kind.value, v) for k, v in value.items()
        )
    if isinstance(kind, Tuple):
        return (
            isinstance(value, tuple)
            and len(value) == len(kind.elements)
            and all(map(holds, kind.elements, value))
        )
    return kind.contains(of(value))


def join(a: Type, b: Type) -> Type | None:
    """The narrowest type that holds both, or None: what a variable has after an if.

    >>> str(join(INT, NONE)), str(join(List(INT), List(INT))), join(INT, STR)
    ('int?', 'int[]', None)
    """
    if a.contains(b) or b == NEVER:
        return a
    if b.contains(a) or a == NEVER:
        return b
    if isinstance(a, Tensor) and isinstance(b, Tensor):
        return TENSOR
    if NONE in (a, b):
        other = b if a == NONE else a
        return other if isinstance(other, Optional) else Optional(other)
    if isinstance(a, Optional) or isinstance(b, Optional):
        inner = join(
            a.element if isinstance(a, Optional) else a, b.element if isinstance(b, Optional) else b
        )
        return None if inner is None else Optional(inner)
    if isinstance(a, Tuple) and isinstance(b, Tuple) and len(a.elements) == len(b.elements):
        parts = [join(x, y) for x, y in zip(a.elements, b.elements)]
        return None if None in parts else Tuple(tuple(parts), a.names, a.python)  # type: ignore[arg-type]  # no part is None
    return None


def of(value: object) -> Type:
    """The type of a Python value.

    >>> str(of((1, 2.5))), str(of([True])), str(of(None))
    ('(int, float)', 'bool[]', 'NoneType')
    """
    if isinstance(value, TensorClass):
        return of_tensor(value)
    for kind, found in (
        (bool, BOOL), (int, INT), (float, FLOAT), (complex, COMPLEX), (str, STR), (dtype, DTYPE),
        (device, DEVICE), (layout, LAYOUT), (Generator, GENERATOR),
    ):  # fmt: skip
        if isinstance(value, kind):
            return found
    if isinstance(value, enum.Enum):
        return Enum(type(value).__name__, type(value))
    if value is None:
        return NONE
    if isinstance(value, FutureClass):
        return Future(of(value.wait()) if value.done() else ANY)
    if isinstance(value, list):
        element: Type | None = of(value[0]) if value else TENSOR
        for v in value[1:]:
            element = join(element, of(v)) if element is not None else None
        return List(TENSOR if isinstance(element, Tensor) else element or ANY)
    if isinstance(value, tuple):
        return Tuple(tuple(of(v) for v in value), tuple(getattr(value, "_fields", ())))
    if isinstance(value, dict):
        return Dict(*(of(next(iter(part), None)) for part in (value.keys(), value.values())))
    return ANY


def of_tensor(t: TensorClass) -> Tensor:
    """Everything that is known of a tensor at hand."""
    if t.is_sparse or t._compressed:
        return TENSOR
    return Tensor(t.dtype, tuple(t._array.shape), t.stride(), t.requires_grad, str(t.device))
