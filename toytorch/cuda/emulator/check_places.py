"""Names, conversions and places: what a name stands for, and what can be read and written there."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toytorch.cuda.emulator import arithmetic
from toytorch.cuda.emulator import program as p
from toytorch.cuda.emulator import syntax as s
from toytorch.cuda.emulator import types as t
from toytorch.cuda.emulator.errors import At, CompileError

MEMBERS = "xyzw"


@dataclass(slots=True)
class Symbol:
    """What a name stands for: a register, a memory, or a number known now.

    by_address  the register holds the address of a variable of the caller (`float& x`)
    """

    type: t.Type
    const: bool = False
    slot: int | None = None
    memory: int | None = None
    constant: Any = None
    by_address: bool = False


@dataclass(slots=True)
class Scope:
    """The names that a pair of braces declares."""

    symbols: dict[str, Symbol] = field(default_factory=dict)
    types: dict[str, t.Type] = field(default_factory=dict)


class PlaceChecker:
    """Gives expressions their types. `scopes` are those around the place that is checked."""

    def __init__(self) -> None:
        self.scopes: list[Scope] = [Scope()]
        self.memories: list[p.Memory] = []

    # names

    def symbol(self, name: str) -> Symbol | None:
        for scope in reversed(self.scopes):
            if name in scope.symbols:
                return scope.symbols[name]
        return None

    def type_of(self, written: s.TypeName) -> t.Type:
        """The type that a source names."""
        found: t.Type | None = None
        for scope in reversed(self.scopes):
            found = found or scope.types.get(written.name)
        found = found or t.NAMES.get(written.name)
        if found is None:
            raise CompileError(f"{written.name!r} is not a type that is known here", written.at)
        for const in written.stars:
            found = t.Pointer(found, const)
        return found

    # conversions

    def constant(self, type: t.Scalar, value: Any, at: At) -> p.Constant:
        return p.Constant(type, at, type.dtype.type(value))

    def convert(self, value: p.Expr, target: t.Type, at: At | None = None) -> p.Expr:
        """A value as C converts it without being asked; CompileError where it does not."""
        at = at or value.at
        source = value.type
        if source == target:
            return value
        if isinstance(source, t.Scalar) and isinstance(target, t.Scalar):
            if isinstance(value, p.Constant):
                with np.errstate(all="ignore"):
                    return p.Constant(
                        target, value.at, arithmetic.converted(value.value, source, target)
                    )
            return p.Convert(target, value.at, value)
        if isinstance(source, t.Pointer) and isinstance(target, t.Pointer):
            same = source.target == target.target or isinstance(target.target, t.Void)
            if same and (target.const or not source.const):
                return p.Convert(target, value.at, value)
            if same:
                raise CompileError(f"'{source}' points to constants: '{target}' would not", at)
            raise CompileError(f"cannot convert '{source}' to '{target}' without a cast", at)
        if isinstance(target, t.Pointer) and isinstance(value, p.Constant) and value.value == 0:
            return p.Constant(target, value.at, np.int64(0))
        if isinstance(source, t.Pointer) and target == t.BOOL:
            return self.truth(value)
        raise CompileError(f"cannot convert '{source}' to '{target}'", at)

    def truth(self, value: p.Expr) -> p.Expr:
        """What a condition makes of a value."""
        if isinstance(value.type, t.Pointer):
            zero = p.Constant(value.type, value.at, np.int64(0))
            return p.Binary(t.BOOL, value.at, "!=", value, zero)
        if not isinstance(value.type, t.Scalar):
            raise CompileError(f"a condition is a number, not '{value.type}'", value.at)
        return self.convert(value, t.BOOL)

    def number(self, value: p.Expr, sign: str) -> t.Scalar:
        """The type of an operand that has to be a number."""
        if not isinstance(value.type, t.Scalar):
            raise CompileError(f"{sign!r} is not defined for '{value.type}'", value.at)
        return value.type

    def whole(self, node: s.Expression, what: str) -> int:
        """A number that has to be known when the kernel is compiled."""
        value = self.value(node)
        if (
            not isinstance(value, p.Constant)
            or not isinstance(value.type, t.Scalar)
            or value.type.is_float
        ):
            raise CompileError(f"{what} has to be a constant whole number", node.at)
        return int(value.value)

    # places

    def place(self, node: s.Expression) -> p.Place | None:
        """The variable or element that an expression names; None where it is a mere value."""
        if isinstance(node, s.Name):
            return self.named_place(node)
        if isinstance(node, s.Index):
            return self.indexed(node)
        if isinstance(node, s.Unary) and node.sign == "*":
            pointer = self.value(node.operand)
            if not isinstance(pointer.type, t.Pointer):
                raise CompileError(f"'*' needs a pointer, and this is '{pointer.type}'", node.at)
            return self.cell(pointer, pointer.type, node.at)
        if isinstance(node, s.Member):
            return self.member_place(node)
        return None

    def cell(self, pointer: p.Expr, type: t.Pointer, at: At) -> p.Cell:
        if isinstance(type.target, t.Void):
            raise CompileError("'void*' points to nothing that can be read: cast it", at)
        return p.Cell(pointer, type.target, type.const)

    def named_place(self, node: s.Name) -> p.Place | None:
        found = self.symbol(node.name)
        if found is None:
            return None
        if found.memory is not None:
            address = p.Base(t.Pointer(found.type, found.const), node.at, found.memory)
            return p.Cell(address, found.type, found.const)
        if found.slot is None:
            return None
        if found.by_address:
            address_type = t.Pointer(found.type, found.const)
            return p.Cell(
                p.Read(address_type, node.at, found.slot, node.name), found.type, found.const
            )
        return p.Register(found.slot, found.type, const=found.const)

    def indexed(self, node: s.Index) -> p.Cell:
        base = self.value(node.base)  # an array is the address of its first element here
        if not isinstance(base.type, t.Pointer):
            raise CompileError(f"'{base.type}' is no array: it cannot be indexed", node.at)
        index = self.value(node.index)
        if not isinstance(index.type, t.Scalar) or index.type.is_float:
            raise CompileError(f"an index is a whole number, not '{index.type}'", index.at)
        return self.cell(self.offset(base, index, node.at), base.type, node.at)

    def offset(self, pointer: p.Expr, index: p.Expr, at: At) -> p.Expr:
        assert isinstance(pointer.type, t.Pointer)
        return p.Offset(
            pointer.type, at, pointer, self.convert(index, t.LONG), pointer.type.target.size
        )

    def member_place(self, node: s.Member) -> p.Place | None:
        base: p.Place | None
        base = self.place(s.Unary(node.at, "*", node.base)) if node.arrow else self.place(node.base)
        if base is None:
            return None
        vector, part = self.member(base.type, node)
        if isinstance(base, p.Register):
            return p.Register(base.slot, vector.element, part, base.const)
        kind, size = t.Pointer(vector.element, base.const), vector.element.size
        index = p.Constant(t.LONG, node.at, np.int64(part))
        pointer = p.Offset(kind, node.at, base.pointer, index, size)
        return p.Cell(pointer, vector.element, base.const)

    def member(self, type: t.Type, node: s.Member) -> tuple[t.Vector, int]:
        if not isinstance(type, t.Vector):
            raise CompileError(f"'{type}' has no members", node.at)
        part = MEMBERS.find(node.name)
        if len(node.name) != 1 or not 0 <= part < type.count:
            raise CompileError(f"'{type}' has no member {node.name!r}", node.at)
        return type, part

    def read(self, place: p.Place, at: At, name: str = "") -> p.Expr:
        """The value at a place; an array is the address of its first element."""
        if isinstance(place.type, t.Array):
            assert isinstance(place, p.Cell)
            element = t.Pointer(place.type.element, place.const)
            return p.Convert(element, at, place.pointer)
        if isinstance(place, p.Cell):
            return p.Load(place.type, at, place.pointer)
        if place.part is None:
            return p.Read(place.type, at, place.slot, name)
        whole = t.Vector("", t.FLOAT, 4)  # its type is never asked
        return p.Component(place.type, at, p.Read(whole, at, place.slot, name), place.part)

    def value(self, node: s.Expression) -> p.Expr:
        """The typed form of an expression that is read."""
        raise NotImplementedError  # in check_expressions


def flat_length(type: t.Type) -> int:
    """How many single elements an array of any dimensions has."""
    lengths = []
    while isinstance(type, t.Array):
        lengths.append(type.length)
        type = type.element
    return math.prod(lengths)
