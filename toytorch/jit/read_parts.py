"""The parts of a printed graph's line: values with their types, literals."""

from __future__ import annotations

import ast
import re
from typing import Any

from toytorch.facts import device as devices
from toytorch.facts import dtype as dtypes
from toytorch.facts.device import device
from toytorch.facts.dtype import dtype
from toytorch.facts.hints import Sizes
from toytorch.facts.syntax import parse as parse_python
from toytorch.jit import types
from toytorch.jit.ir import Value

NAME = re.compile(r"[\w.]+")
WORD = re.compile(r"[\w:.]+")
CLASS = re.compile(r"__torch__\.[^\s,()\[\]?]*")
NUMBERS = re.compile(r"-?\d+(?:, -?\d+)*")
LEGACY: dict[str, dtype] = {d.legacy: d for d in vars(dtypes).values() if isinstance(d, dtype)}
SIMPLE = types.SIMPLE | {t.name: t for t in (types.RANGE, types.SLICE, types.NEVER)}
DEPTH = 50  # how deep brackets may stand in each other


class GraphSyntaxError(ValueError):
    """Text that is no graph."""


class Line:
    """One line, and how far it is read."""

    def __init__(self, text: str, number: int = 1) -> None:
        self.text, self.number, self.at = text, number, 0

    def wrong(self, what: str) -> GraphSyntaxError:
        """An error at this place."""
        return GraphSyntaxError(
            f"line {self.number} of a graph, column {self.at + 1}: {what}: {self.text[:200]!r}"
        )

    def rest(self) -> str:
        """What is not read yet."""
        return self.text[self.at :]

    def spaces(self) -> None:
        """Skips spaces."""
        while self.text[self.at : self.at + 1] == " ":
            self.at += 1

    def skip(self, mark: str) -> bool:
        """Skips a mark if it stands here."""
        if self.text.startswith(mark, self.at):
            self.at += len(mark)
            return True
        return False

    def need(self, mark: str) -> None:
        """Skips a mark that has to stand here."""
        if not self.skip(mark):
            raise self.wrong(f"expected {mark!r}")

    def match(self, pattern: re.Pattern[str], what: str) -> str:
        """Reads what a pattern describes."""
        found = pattern.match(self.text, self.at)
        if found is None:
            raise self.wrong(f"expected {what}")
        self.at = found.end()
        return found[0]

    def word(self) -> str:
        """A name of an operation or attribute."""
        return self.match(WORD, "a name")

    def values(self) -> list[Value]:
        """Values with their types: `%a : int, %b : Tensor`; what follows is left."""
        found: list[Value] = []
        while self.skip("%"):
            name = self.match(NAME, "the name of a value")
            self.need(" : ")
            found.append(Value(name, self.type()))
            before = self.at
            if not self.skip(", "):
                break
            if not self.text.startswith("%", self.at):
                self.at = before
                break
        self.skip(" ")
        return found

    def uses(self, known: dict[str, Value]) -> list[Value]:
        """Values by their names: `%a, %b`."""
        found = []
        while self.skip("%"):
            name = self.match(NAME, "the name of a value")
            v = known.get(name)
            if v is None or v.name != name:
                raise self.wrong(f"%{name} is not known here")
            found.append(v)
            if not self.skip(", "):
                break
        return found

    # -- types ---------------------------------------------------------------------------------

    def type(self, depth: int = 0) -> types.Type:
        """A type, as types print themselves."""
        if depth > DEPTH:
            raise self.wrong("types stand too deep in each other")
        made = self.plain_type(depth)
        for _ in range(DEPTH):
            if self.skip("[]"):
                made = types.List(made)
            elif self.skip("?"):
                made = types.Optional(made)
            else:
                return made
        raise self.wrong("types stand too deep in each other")

    def plain_type(self, depth: int) -> types.Type:
        """A type without [] and ? behind it."""
        if self.skip("("):
            parts: list[types.Type] = []
            while not self.skip(")"):
                parts.append(self.type(depth + 1))
                if not self.text.startswith(")", self.at):
                    self.need(", ")
            return types.Tuple(tuple(parts))
        if self.skip("Union("):
            members = [self.type(depth + 1)]
            while self.skip(", "):
                members.append(self.type(depth + 1))
            self.need(")")
            return types.union(members)
        if self.skip("Dict("):
            key = self.type(depth + 1)
            self.need(", ")
            value = self.type(depth + 1)
            self.need(")")
            return types.Dict(key, value)
        if self.text.startswith("__torch__.", self.at):
            return types.Class(self.match(CLASS, "a class")[len("__torch__.") :])
        name = self.match(WORD, "a type")
        if name in SIMPLE:
            return SIMPLE[name]
        if name in LEGACY and self.skip("("):
            return self.tensor_type(LEGACY[name])
        if name != "Tensor":
            raise self.wrong(f"there is no type {name!r}")
        return types.TENSOR

    def tensor_type(self, kind: dtype) -> types.Tensor:
        """`2, 3, strides=[3, 1], requires_grad=0, device=cpu)` behind the name of a dtype."""
        sizes = NUMBERS.match(self.text, self.at)
        shape: Sizes = ()
        strides: Sizes | None = None
        requires_grad: bool | None = None
        if sizes is not None:
            shape = tuple(map(int, sizes[0].split(", ")))
            self.at = sizes.end()
            self.need(", ")
        if self.skip("strides=["):
            steps = NUMBERS.match(self.text, self.at)
            strides = ()
            if steps is not None:
                strides = tuple(map(int, steps[0].split(", ")))
                self.at = steps.end()
            self.need("], ")
        if self.skip("requires_grad="):
            requires_grad = self.match(re.compile("[01]"), "0 or 1") == "1"
            self.need(", ")
        self.need("device=")
        place = self.match(re.compile(r"[\w:]+"), "a device")
        self.need(")")
        if strides is not None and len(strides) != len(shape):
            raise self.wrong(f"{len(strides)} strides for {len(shape)} dimensions")
        return types.Tensor(kind, shape, strides, requires_grad, place)

    # -- literals ------------------------------------------------------------------------------

    def value_text(self) -> str:
        """The text of an attribute's value, up to the ',' or ']' behind it."""
        start, depth, quote = self.at, 0, ""
        while self.at < len(self.text):
            c = self.text[self.at]
            if quote:
                if c == "\\":
                    self.at += 1
                elif c == quote:
                    quote = ""
            elif c in "\"'":
                quote = c
            elif c in "([{":
                depth += 1
            elif c in ")]}" and depth:
                depth -= 1
            elif not depth and c in ",]":
                return self.text[start : self.at]
            self.at += 1
        raise self.wrong("the value of an attribute does not end")


def literal(text: str, line: Line) -> Any:
    """The value of a literal; names are looked up in short lists, nothing is called."""
    try:
        return value_of(parse_python(text.strip(), mode="eval").body, 0)
    except (SyntaxError, ValueError, TypeError, KeyError, MemoryError, RecursionError) as error:
        raise line.wrong(f"{text[:80]!r} is no value ({error})") from None


def value_of(node: ast.expr, depth: int) -> Any:
    """The value of a parsed literal."""
    if depth > DEPTH:
        raise ValueError("brackets stand too deep in each other")
    if (
        isinstance(node, ast.Constant)
        and node.value is not Ellipsis
        and not isinstance(node.value, bytes)
    ):
        return node.value
    if isinstance(node, (ast.Tuple, ast.List)):
        items = [value_of(item, depth + 1) for item in node.elts]
        return tuple(items) if isinstance(node, ast.Tuple) else items
    if isinstance(node, ast.Dict):
        return {
            value_of(k, depth + 1): value_of(v, depth + 1)  # type: ignore[arg-type]  # a literal has no `**`
            for k, v in zip(node.keys, node.values)
        }
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        return -value_of(node.operand, depth + 1)
    if isinstance(node, ast.BinOp) and isinstance(node.op, (ast.Add, ast.Sub)):
        a, b = value_of(node.left, depth + 1), value_of(node.right, depth + 1)
        if not isinstance(b, complex):
            raise ValueError("only complex numbers are sums")
        return a + b if isinstance(node.op, ast.Add) else a - b
    if isinstance(node, ast.Name) and node.id in ("nan", "inf"):
        return float(node.id)
    if (
        isinstance(node, ast.Attribute)
        and isinstance(node.value, ast.Name)
        and (node.value.id == "torch")
    ):
        return NAMED[node.attr]
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "device":
        words = {k.arg: value_of(k.value, depth + 1) for k in node.keywords}
        kind, index = words.pop("type"), words.pop("index", None)
        if words or node.args:
            raise ValueError("a device has a type and an index")
        return device(kind, index)
    raise ValueError("not a literal")


NAMED: dict[str, Any] = {  # the constants of the framework that may stand in a graph
    name: value
    for module in (dtypes, devices)
    for name, value in vars(module).items()
    if isinstance(value, (dtype, devices.layout, devices.memory_format))
}
