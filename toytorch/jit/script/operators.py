"""Operators and calls of what the framework computes: records, composed functions, builtins."""

from __future__ import annotations

import ast
import inspect
import operator
from collections.abc import Sequence
from typing import Any

from toytorch.core.op import Op, registry
from toytorch.facts.hints import Fn, Kwargs
from toytorch.facts.schema import REQUIRED
from toytorch.jit import types
from toytorch.jit.builtins import FAMILIES, Builtin, any_variable, fits, resolve
from toytorch.jit.ir import Value
from toytorch.jit.script.annotations import spelled
from toytorch.jit.script.classes import Object
from toytorch.jit.script.expressions import Expressions
from toytorch.jit.script.results import result_of
from toytorch.jit.script.values import At, Given, Known
from toytorch.jit.types import Type
from toytorch.ops.define import PUBLIC

TENSOR_BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floor_divide",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or",
    ast.BitXor: "bitwise_xor", ast.LShift: "bitwise_left_shift", ast.RShift: "bitwise_right_shift",
}  # fmt: skip
BINARY = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "__and__", ast.BitOr: "__or__",
    ast.BitXor: "__xor__", ast.LShift: "__lshift__", ast.RShift: "__rshift__",
}  # fmt: skip
COMPARE = {ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge"}
MIRRORED = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
OPERATORS = {f for f in vars(operator).values() if callable(f)}  # which bear their methods' names
IMPLIED = {"int": "IntImplicit", "float": "FloatImplicit", "Scalar": "ScalarImplicit"}
NUMBERS = (types.INT, types.FLOAT, types.BOOL, types.COMPLEX, types.NUMBER)
ALIASES = {
    "input": "self", "axis": "dim", "keepdims": "keepdim", "x": "self", "x1": "self", "x2": "other",
}  # fmt: skip
COMPOUND = (types.Tuple, types.Dict, types.Optional, types.Class)


class Operators(Expressions):
    """Emits calls whose meaning the framework knows."""

    def binary(self, op: ast.operator, left: Value, right: Value, at: At) -> Any:
        """left op right."""
        kind = type(op)
        if any(isinstance(v.type, types.Tensor) for v in (left, right)):
            if kind is ast.MatMult:
                return self.call_function(PUBLIC["matmul"], [left, right], {}, at)
            return self.call_record(TENSOR_BINARY[kind], [left, right], at)
        if kind is ast.MatMult:
            raise self.invalid("matmul", [left, right], at)
        if kind is ast.Mod and left.type == types.STR:
            if right.node is not None and (right.node.kind == "prim::TupleConstruct"):
                parts = list(right.node.inputs)
            else:
                parts = [right]
            return self.one("aten::percentFormat", [left, *parts], types.STR, at)
        if (
            kind is ast.Add
            and isinstance(left.type, types.Tuple)
            and isinstance(right.type, types.Tuple)
        ):
            return self.tuple_of([*self.elements(left, at), *self.elements(right, at)], at)
        return self.call_builtin(BINARY[kind], [left, right], at)

    def compare(self, op: ast.cmpop, left: Value, right: Value, at: At) -> Any:
        """left op right, a bool or a tensor of bools."""
        if isinstance(op, (ast.In, ast.NotIn)):
            if isinstance(right.type, types.Tuple):
                right = self.list_of(self.elements(right, at), at)
            found = self.call_builtin("__contains__", [right, left], at)
            return found if isinstance(op, ast.In) else self.call_builtin("__not__", [found], at)
        if isinstance(op, (ast.Is, ast.IsNot)):
            return self.call_builtin(
                "__is__" if isinstance(op, ast.Is) else "__isnot__", [left, right], at
            )
        name = COMPARE[type(op)]
        if isinstance(left.type, types.Tensor):
            return self.call_record(name, [left, right], at)
        if isinstance(right.type, types.Tensor):
            return self.call_record(COMPARE[MIRRORED.get(type(op), type(op))], [right, left], at)
        return self.call_builtin(name, [left, right], at)

    # -- builtins ----------------------------------------------------------------------------------

    def call_builtin(self, name: str, args: Given, at: At, kwargs: Kwargs | None = None) -> Any:
        """Calls the overload of a builtin that takes these arguments."""
        given = [self.as_value(a, at) for a in args]
        kind = given[0].type if given else None
        if isinstance(kind, Object) and has_method(kind.python, magic(name)):
            return self.call_item(self.attribute(given[0], magic(name), at), given[1:], {}, at)
        named = {k: self.as_value(v, at) for k, v in (kwargs or {}).items()}
        lists = name == BINARY[ast.Mult] or any(isinstance(v.type, types.List) for v in given)
        found = lists and self.overload(name, [self.listed(v, at) for v in given], named)
        found = found or self.overload(name, given, named)  # a list may hold tuples
        if found is None:
            raise self.invalid(name, [*given, *named.values()], at)
        chosen, result, given = found
        outputs = [] if result == types.NONE else [result]
        node = self.emit("aten::" + chosen.name, given, outputs, at)
        return node.output if outputs else Known(None)

    def listed(self, value: Value, at: At, wanted: Type | None = None) -> Value:
        """A tuple of one type as a list, where that is wanted; any other value as it is."""
        kinds = set(value.type.elements) if isinstance(value.type, types.Tuple) else set()
        wanted = wanted.element if isinstance(wanted, types.Optional) else wanted
        if len(kinds) != 1 or (wanted is not None and wanted != types.List(kinds.pop())):
            return value
        return self.list_of([self.as_value(e, at) for e in self.elements(value, at)], at)

    def overload(
        self, name: str, given: list[Value], named: dict[str, Value]
    ) -> tuple[Builtin, Type, list[Value]] | None:
        """The overload, the type of its result and the arguments in its order."""
        if named:
            for candidate in FAMILIES.get(name, ()):
                order = [p for p, _ in candidate.params[len(given) :]]
                if set(order) == set(named):
                    full = [*given, *(named[p] for p in order)]
                    result = candidate.result_for([v.type for v in full])
                    if result is not None:
                        return candidate, result, full
            return None
        found = resolve(name, [v.type for v in given])
        if found is None:
            return None
        if found[0].name.endswith(".Any") and not any(
            isinstance(v.type, COMPOUND) or v.type == types.NONE for v in given
        ):
            return None  # an int is never equal to a string: a mistake
        return (*found, given)

    def invalid(self, name: str, given: Sequence[Value], at: At) -> Exception:
        """PyTorch's error for arguments that no overload takes."""
        texts = []
        candidates: list[Any] = [*FAMILIES.get(name, ())]
        if name in registry:
            candidates.insert(0, registry[name])
        for c in candidates:
            texts.append(
                f"  {c.text if isinstance(c, Builtin) else 'aten::' + c.schema.text}:\n"
                f"  {mismatch(c, given)}\n  \n"
            )
        return self.fail(
            "Arguments for call are not valid.\nThe following variants are available:"
            f"\n  \n{''.join(texts)}\nThe original call is",
            at,
        )

    # -- records ----------------------------------------------------------------------------------

    def call_record(
        self, name: str, args: Given, at: At, writes: bool = False, kwargs: Kwargs | None = None
    ) -> Any:
        """Calls an op record, with all inputs of its signature."""
        op = registry[name]
        given = self.arguments(op, args, kwargs or {}, at)
        base, dot, overload = op.name.partition(".")
        kind = f"aten::{base}{'_' if writes else ''}{dot}{overload}"
        if not op.many:
            return self.one(kind, given, types.TENSOR, at, function=op)
        if op.schema.returns[0] == "Tensor[]":
            return self.one(kind, given, types.List(types.TENSOR), at, function=op)
        node = self.emit(kind, given, [types.TENSOR] * op.count, at, function=op)
        return self.tuple_of(node.outputs, at, names=op.schema.result_names)

    def arguments(self, op: Op, args: Given, kwargs: Kwargs, at: At) -> list[Value]:
        """The inputs of a record's node: arguments in the order of its signature."""
        bound: dict[str, Value] = {}
        rest = list(args)
        for a in op.schema.args:
            if not rest:
                break
            if a.is_variadic:
                values = [self.as_value(v, at) for v in rest]
                if len(values) == 1 and isinstance(values[0].type, (types.List, types.Tuple)):
                    bound[a.name] = values[0]
                else:
                    bound[a.name] = self.list_of(values, at)
                rest = []
            elif not a.keyword_only:
                bound[a.name] = self.as_value(rest.pop(0), at)
        for a in op.schema.args if rest else ():
            value = bound.get(a.name)
            if value is not None and not accepts(a.type, value.type):
                raise self.signature_error(op, expected(a.type, a.name, value.type), at)
        if rest:
            raise self.signature_error(
                op,
                f"Expected at most {len(op.schema.args)} arguments but "
                f"found {len(args)} positional arguments.",
                at,
            )
        if not args and op.schema.args and kwargs:
            first = op.schema.args[0].name
            if first not in kwargs and not any(ALIASES.get(k) == first for k in kwargs):
                raise self.signature_error(op, f"Argument {first} not provided.", at)
        for key, item in kwargs.items():
            name = key if key in op.schema.index else ALIASES.get(key, key)
            if name in ("size", "dims", "shape", "sizes", "repeats") and name not in (
                op.schema.index
            ):
                name = next((a.name for a in op.schema.args if a.is_variadic), name)
            if name in bound:
                raise self.signature_error(op, f"Argument {name} specified twice.", at)
            if name not in op.schema.index:
                raise self.signature_error(op, f"Unknown keyword argument '{key}'.", at)
            bound[name] = self.as_value(item, at)
        inputs = []
        for a in op.schema.args:
            if a.name not in bound and a.default is REQUIRED:
                raise self.signature_error(op, f"Argument {a.name} not provided.", at)
            value = bound.get(a.name)
            if value is not None and not accepts(a.type, value.type):
                why = expected(a.type, a.name, value.type)
                raise self.signature_error(op, why + self.inference(value, a.name), at)
            kind = IMPLIED.get(a.type.removesuffix("?"))
            if value is not None and kind and isinstance(value.type, types.Tensor):
                value = self.call_builtin(kind, [value], at)
            inputs.append(self.constant(a.default, at) if value is None else value)
        return inputs

    def inference(self, value: Value, name: str) -> str:
        """The sentence about an argument that is a parameter without an annotation."""
        if value not in self.inferred:
            return ""
        return (
            f"\nInferred the value for argument '{name}' to be of type 'Tensor' because it was not "
            "annotated with an explicit type."
        )

    def signature_error(self, op: Op, why: str, at: At) -> Exception:
        """An error about the arguments of a record."""
        return self.fail(
            "Arguments for call are not valid.\nThe following variants are available:"
            f"\n  \n  aten::{op.schema.text}:\n  {why}\n\nThe original call is",
            at,
        )

    # -- composed functions ------------------------------------------------------------------------

    def call_composed(self, function: Fn, name: str, args: Given, kwargs: Kwargs, at: At) -> Any:
        """Calls a function of the framework that is composed of records: one node."""
        given = [self.as_value(a, at) for a in args]
        named = {k: self.as_value(v, at) for k, v in kwargs.items()}
        self.check_call(function, name, given, named, at)
        result = result_of(function, given, named)
        attributes = {"_names": tuple(named)} if named else {}
        inputs = [*given, *named.values()]
        kind = "aten::" + name
        if isinstance(result, types.Tuple):
            node = self.emit(kind, inputs, result.elements, at, attributes, function)
            return self.tuple_of(node.outputs, at, names=result.names)
        return self.one(kind, inputs, result, at, attributes, function)

    def check_call(
        self, function: Fn, name: str, given: list[Value], named: dict[str, Value], at: At
    ) -> None:
        """Refuses arguments that the function's signature has no place for."""
        try:
            signature = inspect.signature(function)
        except (TypeError, ValueError):
            return
        try:
            bound = signature.bind(*given, **named)
        except TypeError as error:
            raise self.fail(
                "Arguments for call are not valid.\nThe following variants are "
                f"available:\n  \n  aten::{name}{signature}:\n  {error}\n\nThe "
                "original call is",
                at,
            ) from None
        first = next(iter(bound.arguments), "")
        value = bound.arguments.get(first)
        if (
            first in ("self", "input")
            and isinstance(value, Value)
            and (
                value.type in (*NUMBERS, types.STR, types.NONE)
                or isinstance(value.type, (types.Dict, types.Optional))
            )
        ):
            raise self.fail(
                "Arguments for call are not valid.\nThe following variants are "
                f"available:\n  \n  aten::{name}{signature}:\n  "
                f"{expected('Tensor', first, value.type)}\n\nThe original call is",
                at,
            )


def magic(name: str) -> str:
    """The method of a class that gives a builtin its meaning for objects.

    >>> magic("div"), magic("len"), magic("Int"), magic("__contains__")
    ('__truediv__', '__len__', '__int__', '__contains__')
    """
    function = next((b.function for b in FAMILIES.get(name, ())), None)
    word = getattr(function, "__name__", "") if name.islower() and function in OPERATORS else name
    return f"__{word.strip('_').lower()}__"


def has_method(kind: type, name: str) -> bool:
    """Whether a class, or one below object that it derives from, has a method."""
    return any(name in vars(base) for base in kind.__mro__[:-1])


def accepts(wanted: str, have: Type) -> bool:
    """Whether a record's argument, written as in its signature, takes a value of a type."""
    if have == types.NONE:
        return wanted.endswith("?") or wanted in ("Indices",)
    if isinstance(have, types.Union):
        return all(accepts(wanted, m) for m in have.elements)
    if isinstance(have, types.Optional):
        return wanted.endswith("?") and accepts(wanted, have.element)
    wanted = wanted.removesuffix("?")
    tensor = isinstance(have, types.Tensor)
    if wanted in ("Tensor", "BoolTensor"):
        return tensor
    if wanted == "Operand" or wanted == "Scalar":
        return tensor or have in NUMBERS
    if wanted == "Tensor[]":
        parts = [have.element] if isinstance(have, types.List) else getattr(have, "elements", None)
        return parts is not None and not any(p in (*NUMBERS, types.STR) for p in parts)
    if wanted in ("int", "float"):
        return (
            tensor
            or have in (types.INT, types.NUMBER)
            or (wanted == "float" and have == types.FLOAT)
            or (wanted == "int" and isinstance(have, types.List))
        )
    if wanted == "bool":
        return have == types.BOOL or tensor
    if wanted == "str":
        return have == types.STR
    if wanted in ("int[]", "int...", "float[]"):
        return isinstance(have, (types.List, types.Tuple)) or have in NUMBERS
    if wanted == "dtype":
        return have == types.DTYPE
    return True


def expected(wanted: str, name: str, have: Type) -> str:
    """The sentence about an argument of the wrong type."""
    plain = wanted.removesuffix("?").removesuffix("[]")
    word = {"Operand": "Tensor", "Scalar": "number"}.get(plain, plain)
    word = f"List[{word}]" if "[]" in wanted else word
    word = f"Optional[{word}]" if wanted.endswith("?") else word
    return (
        f"Expected a value of type '{word}' for argument '{name}' but instead found type "
        f"'{spelled(have)}'."
    )


def mismatch(candidate: Any, given: Sequence[Value]) -> str:
    """Why an overload does not take the arguments."""
    if isinstance(candidate, Builtin):
        params = candidate.params
        if len(given) > len(params):
            return (
                f"Expected at most {len(params)} arguments but found {len(given)} positional "
                "arguments."
            )
        if len(given) < len(params):
            return f"Argument {params[len(given)][0]} not provided."
        bound: dict[str, Type] = {}
        for (name, wanted), value in zip(params, given):
            if not fits(wanted, value.type, bound):
                if any_variable(wanted) and type(wanted) is type(value.type) and bound:
                    ((letter, before),) = list(bound.items())[:1]
                    found = getattr(value.type, "element", value.type)
                    return (
                        f"Could not match type {spelled(value.type)} to {spelled(wanted)} in "
                        f"argument '{name}': Type variable '{letter}' previously matched to type "
                        f"{spelled(before)} is matched to type {spelled(found)}."
                    )
                return (
                    f"Expected a value of type '{spelled(wanted)}' for argument '{name}' but "
                    f"instead found type '{spelled(value.type)}'."
                )
        return "The types do not fit each other."  # unreachable for an overload without variables
    for a, value in zip(candidate.schema.args, given):
        if not accepts(a.type, value.type):
            return expected(a.type, a.name, value.type)
    return f"Expected at most {len(candidate.schema.args)} arguments."
