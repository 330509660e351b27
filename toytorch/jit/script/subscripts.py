"""Indexing: `x[…]` read and written, for tensors, lists, dictionaries, tuples, strings, modules."""

from __future__ import annotations

import ast
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.jit import types
from toytorch.jit.ir import Value
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.base import joined
from toytorch.jit.script.classes import Object
from toytorch.jit.script.operators import Operators
from toytorch.jit.script.values import At, Counted, Items, Known, ModuleValue


class Subscripts(Operators):
    """Emits indexing."""

    def on_Subscript(self, node: ast.Subscript) -> Any:
        item = self.expression(node.value)
        if isinstance(item, ModuleValue):
            return self.child(item, node)
        if isinstance(item, Counted):
            item = self.as_value(item, node.value)
        if (
            isinstance(item, Known)
            and isinstance(item.object, (tuple, list, dict))
            and (constant_of(node.slice) is not None)
        ):
            return Known(item.object[constant_of(node.slice)])
        if isinstance(item, Items) or isinstance(getattr(item, "type", None), types.Tuple):
            return self.part_of_tuple(item, node)
        value = self.as_value(item, node.value)
        if isinstance(value.type, types.Tensor):
            return self.part_of_tensor(value, node)
        if isinstance(value.type, types.List) or value.type == types.STR:
            if isinstance(node.slice, ast.Slice):
                return self.call_builtin("slice", [value, *self.bounds(node.slice)], node)
            return self.call_builtin("__getitem__", [value, self.value(node.slice)], node)
        if isinstance(value.type, (types.Dict, Object)):
            return self.call_builtin("__getitem__", [value, self.value(node.slice)], node)
        raise self.fail(f"'{spelled(value.type)}' object is not subscriptable", node)

    def bounds(self, node: ast.Slice) -> list[Value]:
        """Start, end and step of a slice."""
        return [
            self.constant(None, node) if part is None else self.value(part)
            for part in (node.lower, node.upper, node.step)
        ]

    def child(self, item: ModuleValue, node: ast.Subscript) -> Any:
        """Children of a module list by number or slice, of a module dictionary by name."""
        names = list(item.module._modules or item.module._parameters)
        place = constant_of(node.slice)
        if isinstance(node.slice, ast.Slice):
            parts = [
                None if p is None else constant_of(p)
                for p in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            return Items([self.attribute(item, n, node) for n in names[slice(*parts)]])
        if isinstance(place, str) and place in names:
            return self.attribute(item, place, node)
        if not isinstance(place, int) or isinstance(place, bool):
            raise self.fail(
                "Unable to extract string literal index. ModuleDict indexing is only "
                "supported with string literals, ModuleList indexing with integer "
                "literals. Enumeration is supported, e.g. 'for k, v in self.items()'",
                node,
            )
        if not -len(names) <= place < len(names):
            raise self.fail(
                f"module list index {place} is out of range: it has {len(names)} items", node
            )
        return self.attribute(item, names[place], node)

    def part_of_tuple(self, item: Any, node: ast.Subscript) -> Any:
        """An element of a tuple, or some of them; the index must be a constant."""
        count = len(item.items) if isinstance(item, Items) else len(item.type.elements)
        if isinstance(node.slice, ast.Slice):
            parts = [
                None if p is None else constant_of(p)
                for p in (node.slice.lower, node.slice.upper, node.slice.step)
            ]
            return Items(self.elements(item, node)[slice(*parts)])
        place = constant_of(node.slice)
        if not isinstance(place, int):
            return self.any_part_of_tuple(item, node)
        if not -count <= place < count:
            raise self.fail(
                f"Tuple index out of range: {place}, and the tuple has {count} elements", node
            )
        return self.element(item, place % count, node)

    def any_part_of_tuple(self, item: Any, node: ast.Subscript) -> Any:
        """An element at a place that is known when the code runs: all have one type."""
        place = self.value(node.slice)
        if place.type != types.INT:
            raise self.fail("tuple index must be an integer", node.slice)
        parts = [self.as_value(p, node) for p in self.elements(item, node)]
        if not parts or joined([p.type for p in parts]) != parts[0].type:
            raise self.fail(
                "Cannot index into a tuple with a non-integer literal because we cannot resolve "
                "the output type",
                node.slice,
            )
        return self.call_builtin("__getitem__", [self.list_of(parts, node), place], node)

    def element(self, item: Any, place: int, at: Any) -> Any:
        """One element of a tuple."""
        if isinstance(item, Items):
            return item.items[place]
        if item.node is not None and item.node.kind == "prim::TupleConstruct":
            return item.node.inputs[place]
        return self.one("prim::TupleIndex", [item], item.type.elements[place], at, {"index": place})

    # -- tensors ----------------------------------------------------------------------------------

    def part_of_tensor(self, value: Value, node: ast.Subscript) -> Any:
        """Ints, slices, None and … are views, one after the other; anything else one gather."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        items = [self.index_part(p) for p in parts]
        if all(
            item is not None and not (isinstance(item, Value) and item.type != types.INT)
            for item in items
        ):
            return self.views(value, items, node)
        index = self.index_value(items, parts, node)
        kind, get = "aten::__getitem__.Tensor", Tensor.__getitem__
        return self.one(kind, [value, index], types.TENSOR, node, function=get)

    def index_part(self, node: ast.expr) -> Any:
        """A slice or constant as it stands; anything else as a value."""
        if isinstance(node, ast.Slice):
            return node
        if isinstance(node, ast.Constant) and (node.value is None or node.value is Ellipsis):
            return node
        item = self.expression(node)
        if isinstance(item, Known) and (item.object is None or item.object is Ellipsis):
            return ast.copy_location(ast.Constant(item.object), node)
        return self.as_value(item, node)

    def views(self, value: Any, items: list[Any], at: At) -> Any:
        """The views of a basic index, from left to right; behind … dims count from the end."""
        rest = sum(not is_constant(i, None) for i in items)  # that use up a dimension
        if sum(is_constant(i, Ellipsis) for i in items) > 1:
            raise self.fail("An index can only have a single ellipsis ('...')", at)
        dim, behind = 0, False
        for item in items:
            if is_constant(item, Ellipsis):
                behind, rest = True, rest - 1
                dim = -rest
                continue
            place = self.constant(dim if not (behind and is_constant(item, None)) else dim - 1, at)
            if is_constant(item, None):
                value = self.call_record("unsqueeze", [value, place], at)
                dim += 0 if behind else 1
            elif isinstance(item, ast.Slice):
                low, high, step = self.bounds(item)
                step = self.constant(1, at) if item.step is None else step
                if not (item.lower is None and item.upper is None and item.step is None):
                    value = self.call_record("slice", [value, place, low, high, step], at)
                dim, rest = dim + 1, rest - 1
            else:
                value = self.call_record("select", [value, place, item], at)
                dim, rest = dim + (1 if behind else 0), rest - 1
        if all(
            (isinstance(i, ast.Slice) and i.lower is i.upper is i.step is None)
            or is_constant(i, Ellipsis)
            for i in items
        ):
            value = self.call_record("alias", [value], at)
        return value

    def index_value(self, items: list[Any], nodes: list[ast.expr], at: At) -> Value:
        """An index as a value: what Python hands to __getitem__."""
        parts = []
        for item, node in zip(items, nodes):
            if isinstance(item, ast.Slice):
                parts.append(self.one("prim::slice", self.bounds(item), types.SLICE, node))
            elif isinstance(item, ast.Constant):
                parts.append(self.constant(item.value, node))
            else:
                parts.append(item)
        return parts[0] if len(parts) == 1 else self.tuple_of(parts, at)

    def set_item(self, target: ast.Subscript, value: Any, at: Any) -> None:
        """owner[index] = value."""
        owner = self.value(target.value)
        if isinstance(owner.type, types.Tensor):
            parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
            index = self.index_value([self.index_part(p) for p in parts], list(parts), target)
            given = self.as_value(value, at)
            if not isinstance(given.type, types.Tensor) and given.type not in (
                types.INT,
                types.FLOAT,
                types.BOOL,
                types.NUMBER,
                types.COMPLEX,
            ):
                raise self.fail(f"a tensor's elements cannot be set to {spelled(given.type)}", at)
            kind, put = "aten::__setitem__.Tensor", Tensor.__setitem__
            self.emit(kind, [owner, index, given], [], at, function=put)
        elif isinstance(owner.type, (types.List, types.Dict, Object)):
            if isinstance(target.slice, ast.Slice):
                raise self.unsupported("assignments to a slice of a list", target)
            self.call_builtin("_set_item", [owner, self.value(target.slice), value], at)
        else:
            raise self.fail(
                f"'{spelled(owner.type)}' object does not support subscripted assignment", at
            )


def is_constant(item: object, value: object) -> bool:
    """Whether a part of an index is None, or …."""
    return isinstance(item, ast.Constant) and item.value is value


def constant_of(node: ast.expr) -> Any:
    """The constant that an index is written as, or None."""
    if isinstance(node, ast.Constant):
        return node.value
    if (
        isinstance(node, ast.UnaryOp)
        and isinstance(node.op, ast.USub)
        and isinstance(node.operand, ast.Constant)
        and isinstance(node.operand.value, int)
    ):
        return -node.operand.value
    return None
