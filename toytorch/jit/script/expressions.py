"""Expressions: names, literals, operators, tests, strings."""

from __future__ import annotations

import ast
import enum
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.device import device, layout, memory_format
from toytorch.facts.dtype import dtype
from toytorch.jit import types
from toytorch.jit.ir import Value
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.base import joined
from toytorch.jit.script.loops import Loops, assigned_names
from toytorch.jit.script.values import At, Counted, Items, Known, Method, ModuleValue, describe
from toytorch.jit.types import Type

CONSTANTS = (bool, int, float, complex, str, type(None), dtype, device, layout, memory_format)
EXPRESSIONS = {
    ast.Set: "Set",
    ast.Lambda: "lambda functions",
    ast.Await: "Await",
    ast.NamedExpr: "assignment expressions",
    ast.SetComp: "set comprehensions",
}


STARRED = (
    "A Starred expression may only appear on the lhs within the presence of another non-starred "
    "expression"
)


class Expressions(Loops):
    """Emits expressions."""

    def expression(self, node: ast.expr, hint: Type | None = None) -> Any:
        """What an expression stands for; `hint` is the type that is wanted, for empty lists."""
        run = getattr(self, "on_" + type(node).__name__, None)
        if run is None:
            raise self.unsupported(EXPRESSIONS.get(type(node), type(node).__name__), node)
        if isinstance(node, (ast.List, ast.Dict, ast.Tuple, ast.ListComp, ast.IfExp)):
            return run(node, hint)
        return run(node)

    def value(self, node: ast.expr, hint: Type | None = None) -> Value:
        """The value of the graph that an expression gives."""
        return self.as_value(self.expression(node, hint), node)

    def as_value(self, item: object, at: Any) -> Value:
        """A value for what an expression stands for."""
        if isinstance(item, Value):
            return item
        if isinstance(item, Items):
            return self.tuple_of([self.as_value(i, at) for i in item.items], at)
        if isinstance(item, Counted) and item.as_list is not None:
            return item.as_list()
        if isinstance(item, ModuleValue):
            return item.value
        if isinstance(item, Method):
            raise self.fail(f"builtin cannot be used as a value: method '{item.name}'", at)
        if isinstance(item, Known):
            constant = item.object
            if isinstance(constant, (*CONSTANTS, enum.Enum)):
                return self.constant(constant, at)
            if isinstance(constant, tuple) and all(
                isinstance(c, (*CONSTANTS, tuple)) for c in constant
            ):
                return self.tuple_of(
                    [self.as_value(Known(c), at) for c in constant], at, type(constant)
                )
            if (
                isinstance(constant, list)
                and constant
                and all(isinstance(c, CONSTANTS) for c in constant)
            ):
                return self.list_of([self.as_value(Known(c), at) for c in constant], at)
        raise self.no_value(item, at)

    def tuple_of(
        self, parts: Sequence[Value], at: At, kind: type = tuple, names: tuple[str, ...] = ()
    ) -> Value:
        """A tuple; `kind` may be a named tuple's class."""
        fields = tuple(getattr(kind, "_fields", names))
        named = kind if kind is not tuple else None
        made = types.Tuple(tuple(p.type for p in parts), fields, named)
        attributes = {"_class": named} if named is not None else None
        return self.one("prim::TupleConstruct", parts, made, at, attributes)

    def list_of(self, parts: Sequence[Value], at: At, hint: Type | None = None) -> Value:
        """A list; elements of several types have a Union as theirs."""
        wanted = hint.element if isinstance(hint, types.Optional) else hint
        element = joined([p.type for p in parts]) if parts else types.TENSOR
        if isinstance(wanted, types.List) and (
            not parts or element is None or all(wanted.element.contains(p.type) for p in parts)
        ):
            element = wanted.element
        if element is None:
            element = types.union([p.type for p in parts])
        return self.one("prim::ListConstruct", parts, types.List(element), at)

    # -- names and literals ----------------------------------------------------------------------

    def on_Constant(self, node: ast.Constant) -> Any:
        if isinstance(node.value, bytes):
            raise self.unsupported(f"{type(node.value).__name__} literals", node)
        if type(node.value) is int and node.value >= 2**63:
            raise self.fail("Integral constant out of range: it is out of bounds for 64 bits", node)
        return Known(node.value)

    def on_Name(self, node: ast.Name) -> Any:
        item = self.scope.find(node.id)
        if item is not None:
            return item
        reason = self.scope.reason(node.id)
        if not reason and node.id not in self.all_locals():
            try:
                found = self.program.names(node.id)
            except KeyError:
                raise self.fail(f"undefined value {node.id}", node) from None
            if isinstance(found, Tensor):
                raise self.no_value(Known(found), node)
            return Known(found)
        if reason and not reason.startswith("undefined"):
            source = self.program.source(node)
            where = f"\nand was used here:\n{source.pointing()}\n" if source else ""
            error = self.fail(f"{reason}{where}", None)
            error.source = source
            raise error
        raise self.fail(f"undefined value {node.id}", node)

    def all_locals(self) -> set[str]:
        """Every name the function assigns to: none of them is looked up outside."""
        found = getattr(self, "_locals", None)
        if found is None:
            found = self._locals = set(assigned_names(self.program.tree.body))
        return found

    def on_List(self, node: ast.List, hint: Type | None = None) -> Value:
        element = hint.element if isinstance(hint, types.List) else None
        return self.list_of([self.value(e, element) for e in self.no_stars(node.elts)], node, hint)

    def on_Tuple(self, node: ast.Tuple, hint: Type | None = None) -> Any:
        hints = hint.elements if isinstance(hint, types.Tuple) else ()
        items = [
            self.expression(e, hints[i] if i < len(hints) else None)
            for i, e in enumerate(self.no_stars(node.elts))
        ]
        return Items(items)

    def no_stars(self, nodes: list[ast.expr]) -> list[ast.expr]:
        """The elements of a literal, none of which may be starred."""
        for n in nodes:
            if isinstance(n, ast.Starred):
                raise self.unsupported("starred elements of a list or tuple", n)
        return nodes

    def on_Dict(self, node: ast.Dict, hint: Type | None = None) -> Value:
        wanted = hint.element if isinstance(hint, types.Optional) else hint
        parts: list[Value] = []
        inner = wanted.value if isinstance(wanted, types.Dict) else None
        for k, v in zip(node.keys, node.values):
            if k is None:
                raise self.unsupported("** in a dictionary", v)
            parts += [self.value(k), self.value(v, inner)]
        keys = joined([p.type for p in parts[::2]]) if parts else types.STR
        values = joined([p.type for p in parts[1::2]]) if parts else types.TENSOR
        if isinstance(wanted, types.Dict) and (
            not parts
            or (wanted.key == keys and all(wanted.value.contains(p.type) for p in parts[1::2]))
        ):
            keys, values = wanted.key, wanted.value
        if keys is None:
            raise self.fail("Dict keys must contain only a single type", node)
        if values is None:
            values = types.union([p.type for p in parts[1::2]])
        if parts and keys not in (types.INT, types.STR, types.FLOAT, types.BOOL, types.COMPLEX):
            raise self.fail(
                f"Cannot create dict for key type '{spelled(keys)}', only int, float, complex, "
                "Tensor, device and string keys are supported",
                node,
            )
        return self.one("prim::DictConstruct", parts, types.Dict(keys, values), node)

    def on_ListComp(self, node: ast.ListComp, hint: Type | None = None) -> Value:
        return self.collected(node, hint)

    def on_GeneratorExp(self, node: ast.GeneratorExp) -> Value:
        return self.collected(node, None)

    def on_DictComp(self, node: ast.DictComp) -> Value:
        return self.collected(node, None)

    def on_JoinedStr(self, node: ast.JoinedStr) -> Value:
        """An f-string: a template for str.format, and what fills it."""
        text, parts = "", []
        for piece in node.values:
            if isinstance(piece, ast.FormattedValue):
                spec = ""
                if piece.format_spec is not None:
                    inner = piece.format_spec
                    assert isinstance(inner, ast.JoinedStr)
                    if not all(isinstance(v, ast.Constant) for v in inner.values):
                        raise self.unsupported("computed format specifications", piece)
                    spec = ":" + "".join(
                        str(v.value) for v in inner.values if isinstance(v, ast.Constant)
                    )
                how = "" if piece.conversion == -1 else "!" + chr(piece.conversion)
                text += "{" + how + spec + "}"
                parts.append(self.value(piece.value))
            elif isinstance(piece, ast.Constant):
                text += str(piece.value).replace("{", "{{").replace("}", "}}")
        return self.one("aten::format", [self.constant(text, node), *parts], types.STR, node)

    # -- operators -------------------------------------------------------------------------------

    def on_BinOp(self, node: ast.BinOp) -> Any:
        return self.binary(node.op, self.value(node.left), self.value(node.right), node)

    def on_UnaryOp(self, node: ast.UnaryOp) -> Any:
        if isinstance(node.op, ast.Not):
            return self.call_builtin("__not__", [self.condition(node.operand)], node)
        item = self.expression(node.operand)
        if (
            isinstance(node.op, ast.USub)
            and isinstance(item, Known)
            and isinstance(item.object, (int, float, complex))
            and not isinstance(item.object, bool)
        ):
            return Known(-item.object)
        value = self.as_value(item, node.operand)
        names = {
            ast.USub: ("neg", "neg"),
            ast.UAdd: ("positive", "pos"),
            ast.Invert: ("bitwise_not", "bitwise_not"),
        }[type(node.op)]
        if isinstance(value.type, types.Tensor):
            return self.call_record(names[0], [value], node)
        return self.call_builtin(names[1], [value], node)

    def on_Compare(self, node: ast.Compare) -> Any:
        known = self.static(node)
        if known is not None:
            return Known(known)
        return self.chain(self.value(node.left), list(node.ops), list(node.comparators), node)

    def chain(self, left: Value, ops: list[ast.cmpop], right: list[ast.expr], at: At) -> Value:
        """a < b < c: the second comparison is made only if the first holds."""
        second = self.value(right[0])
        first = self.as_value(self.compare(ops[0], left, second, at), at)
        if len(ops) == 1:
            return first
        return self.choose(
            self.as_condition(first, at),
            lambda: self.as_condition(self.chain(second, ops[1:], right[1:], at), at),
            lambda: self.constant(False, at),
            at,
        )

    def on_BoolOp(self, node: ast.BoolOp) -> Value:
        """and, or: what stands behind is evaluated only if it decides."""
        known = self.static(node)
        if known is not None:
            return self.constant(known, node)
        is_and = isinstance(node.op, ast.And)

        def emit(parts: list[ast.expr]) -> Value:
            first = self.value(parts[0])
            if len(parts) == 1:
                return first
            test = self.as_condition(first, parts[0])
            if isinstance(first.type, types.Tensor):
                first = test  # as in PyTorch, the result is a bool
            short = self.constant(not is_and, node) if first.type == types.BOOL else None

            def stop() -> Value:
                return first if short is None else short

            def more() -> Value:
                self.refine(parts[0], is_and)
                return self.same_kind(emit(parts[1:]), first, node)

            return self.choose(test, more if is_and else stop, stop if is_and else more, node)

        return emit(list(node.values))

    def same_kind(self, value: Value, first: Value, at: At) -> Value:
        """An operand of and/or beside a bool is asked for its truth."""
        return self.as_condition(value, at) if first.type == types.BOOL else value

    def on_IfExp(self, node: ast.IfExp, hint: Type | None = None) -> Any:
        known = self.static(node.test)
        if known is not None:
            return self.expression(node.body if known else node.orelse, hint)

        def part(expr: ast.expr, outcome: bool) -> Value:
            self.refine(node.test, outcome)
            return self.value(expr, hint)

        test, this, that = self.condition(node.test), node.body, node.orelse
        return self.choose(test, lambda: part(this, True), lambda: part(that, False), node, hint)

    def condition(self, node: ast.expr) -> Value:
        """An expression as a test."""
        return self.as_condition(self.value(node), node)

    def as_condition(self, value: Value, at: At) -> Value:
        """A bool from a value."""
        if value.type == types.BOOL:
            return value
        if isinstance(value.type, types.Tensor) or value.type in (
            types.INT,
            types.FLOAT,
            types.NUMBER,
        ):
            return self.as_value(self.call_builtin("Bool", [value], at), at)
        if isinstance(value.type, (types.List, types.Dict)) or value.type == types.STR:
            count = self.as_value(self.call_builtin("len", [value], at), at)
            return self.as_value(self.call_builtin("ne", [count, self.constant(0, at)], at), at)
        raise self.fail(f"Could not cast value of type {spelled(value.type)} to bool", at)

    # -- binding ---------------------------------------------------------------------------------

    def bind(self, target: ast.expr, item: object, at: Any) -> None:
        """Assigns to what stands left of the equals sign."""
        if isinstance(target, ast.Name):
            if isinstance(item, (Items, Counted)) or (
                isinstance(item, Known) and isinstance(item.object, CONSTANTS)
            ):
                item = self.as_value(item, at)
            self.assign(target.id, item, at)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self.unpack(target, item, at)
        elif isinstance(target, ast.Subscript):
            self.set_item(target, item, at)
        elif isinstance(target, ast.Attribute):
            self.set_attribute(target, self.as_value(item, at), at)
        elif isinstance(target, ast.Starred):
            raise self.fail(STARRED, target)
        else:
            raise self.unsupported(f"assignments to {type(target).__name__}", target)

    def unpack(self, target: ast.Tuple | ast.List, item: object, at: At) -> None:
        """a, *b, c = item."""
        stars = [i for i, t in enumerate(target.elts) if isinstance(t, ast.Starred)]
        count = len(target.elts)
        if len(stars) > 1:
            raise self.fail("Only one starred expression is allowed on the lhs", target)
        if stars and count == 1:
            raise self.fail(STARRED, target)
        if isinstance(item, Counted):
            item = self.as_value(item, at)
        if stars and isinstance(item, Value) and isinstance(item.type, types.List):
            raise self.fail(
                "Starred unpacking is only possible for tuples: the length of a list is not known",
                target,
            )
        parts = self.elements(item, target, None if stars else count)
        if len(parts) < count - len(stars) or (not stars and len(parts) != count):
            few = len(parts) < count - len(stars)
            raise self.fail(
                f"need {count - len(stars)} values to unpack but found only {len(parts)}"
                if few
                else f"too many values to unpack: need {count} but found {len(parts)}",
                target,
            )
        behind = count - stars[0] - 1 if stars else 0
        for i, t in enumerate(target.elts):
            if isinstance(t, ast.Starred):
                taken = [self.as_value(p, at) for p in parts[i : len(parts) - behind]]
                self.bind(t.value, self.tuple_of(taken, at), at)
            else:
                self.bind(t, parts[i if not stars or i < stars[0] else i - count], at)

    def elements(self, item: object, at: At, count: int | None = None) -> list[Any]:
        """The parts of a tuple, or `count` of a list or tensor."""
        if isinstance(item, Items):
            return item.items
        if isinstance(item, Known) and isinstance(item.object, (tuple, list)):
            return [Known(c) for c in item.object]
        if isinstance(item, Known) and callable(item.object):
            raise self.fail(f"{describe(item)} cannot be used as a tuple", at)
        value = self.as_value(item, at)
        if isinstance(value.type, types.Tuple):
            if value.node is not None and value.node.kind == "prim::TupleConstruct":
                return list(value.node.inputs)
            return self.emit("prim::TupleUnpack", [value], value.type.elements, at).outputs
        if isinstance(value.type, types.List) and count is not None:
            return self.emit("prim::ListUnpack", [value], [value.type.element] * count, at).outputs
        raise self.fail(f"{spelled(value.type)} cannot be used as a tuple", at)

    def set_attribute(self, target: ast.Attribute, value: Value, at: At) -> None:
        """self.name = value."""
        raise NotImplementedError
