"""Programs as text.

The first line names arrays (with dimensions), scalars (without) and, after `->`, what is written.
The others are assignments in the words of Python; `max[j](x)` reduces x over j, `mean[j](x)` is
sum[j](x) / extent(j), index(j) is an element's place along j, and polynomial(NAME, x) is Horner's scheme with a
row of `special_coefficients`. A name may be assigned again.
Comments and blank lines are skipped. What `str(program)` prints, with dimensions and types before
each `=`, is read in the same way.

    >>> arrays, scalars, steps, outputs = parse("p[i], g[i], lr -> p[i]\\n p = p - lr * g")
    >>> print(*steps, sep="\\n")
    a[i] float32 = mul(lr, g)
    p_1[i] float32 = sub(p, a)
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from typing import Any

from toytorch.facts import syntax
from toytorch.loops.language.primitives import JOINS, PRIMITIVES
from toytorch.loops.language.steps import RESERVED, Argument, Array, Reduce, Scalar, Step
from toytorch.loops.language.types import TYPES, computed, kind

ITEM = re.compile(r"\s*(\w+)\s*(\[[\w\s,]*\])?\s*(\w+)?\s*(?:,|$)")
BEFORE = re.compile(r"^\s*(\w+)\s*(?:\[[\w\s,]*\]\s*(\w+)\s*)?=(?!=)\s*(.*)$")
OPERATORS: dict[type, str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.FloorDiv: "floordiv",
    ast.Mod: "remainder", ast.Pow: "pow", ast.BitAnd: "and_", ast.BitOr: "or_", ast.BitXor: "xor",
    ast.LShift: "shift_left", ast.RShift: "shift_right", ast.USub: "neg", ast.Invert: "invert",
    ast.Not: "logical_not", ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le",
    ast.Gt: "gt", ast.GtE: "ge", ast.And: "logical_and", ast.Or: "logical_or",
}  # fmt: skip
LETTERS = "abcdefghklmopqrstuvw"  # without n (of sizes), i and j
CONSTANTS = {"inf": float("inf"), "nan": float("nan")}


Parts = tuple[tuple[Array, ...], tuple[Scalar, ...], tuple[Step | Reduce, ...], tuple[Array, ...]]


def parse(text: str, type: str = "float32") -> Parts:
    """The inputs, scalars, steps and outputs of a text; see the module."""
    lines = [
        line for line in (line.split("#")[0].rstrip() for line in text.splitlines()) if line.strip()
    ]
    head, arrow, written = lines[0].partition("->") if lines else ("", "", "")
    if not arrow:
        raise SyntaxError(f"a program begins with 'inputs -> outputs', got {text[:60]!r}")
    parser = Parser(text, type)
    for name, dims, given in items(head):
        if dims is None:
            parser.scalars.append(Scalar(name, given or type))
            parser.define(name, given or type, ())
        else:
            parser.inputs.append(Array(name, given or type, dims))
            parser.define(name, given or type, dims)
    outputs = list(items(written))
    parser.dims = {d for a in parser.inputs for d in a.dims} | {
        d for _, dims, _ in outputs for d in dims or ()
    }
    for line in lines[1:]:
        parser.line(line)
    made = []
    for name, dims, given in outputs:
        if name not in parser.current:
            raise NameError(f"output {name!r} is never assigned")
        value = parser.current[name]
        if not isinstance(value, str):
            raise SyntaxError(f"output {name!r} is a constant")
        made.append(Array(value, given or parser.types[value], dims or ()))
    return tuple(parser.inputs), tuple(parser.scalars), tuple(parser.steps), tuple(made)


def items(text: str) -> Any:
    """(name, dimensions or None, type or "") for each array or scalar of a list."""
    at = 0
    while at < len(text.rstrip()):
        found = ITEM.match(text, at)
        if not found:
            raise SyntaxError(f"expected NAME[DIMENSIONS] TYPE, got {text[at:].strip()!r}")
        name, dims, type = found.groups()
        if type and type not in TYPES:
            raise TypeError(f"{name!r} has the unknown type {type!r}")
        yield name, dims and tuple(re.findall(r"\w+", dims)), type or ""
        at = found.end()


@cache
def steps_of(name: str, type: str) -> tuple[Step, ...]:
    """The steps of a function that stands in `defined`, for arguments of a type; they begin with x (and
    z, if there are two), and the last is its value."""
    from toytorch.loops.language.defined import DEFINED  # seldom needed

    given = ", ".join(f"{x}[i] {type}" for x in DEFINED[name].reads)
    _, _, made, _ = parse(f"{given} -> y[i] {type}\n{DEFINED[name].text(type)}", type)
    return tuple(s for s in made if isinstance(s, Step))


@dataclass
class Parser:
    """Turns assignments into steps."""

    text: str
    type: str = "float32"  # of constants that meet nothing else
    inputs: list[Array] = field(default_factory=list)
    scalars: list[Scalar] = field(default_factory=list)
    steps: list[Step | Reduce] = field(default_factory=list)
    types: dict[str, str] = field(default_factory=dict)
    varies: dict[str, tuple[str, ...]] = field(default_factory=dict)
    current: dict[str, Argument] = field(default_factory=dict)  # what a name of the text means now
    dims: set[str] = field(default_factory=set)
    declared: str | None = None  # the type before the "=" of this line

    def define(self, name: str, type: str, dims: tuple[str, ...]) -> None:
        self.types[name], self.varies[name] = computed(type), dims
        self.current.setdefault(name, name)

    def line(self, line: str) -> None:
        """One assignment."""
        found = BEFORE.match(line)
        if not found:
            raise SyntaxError(f"expected 'name = expression', got {line.strip()!r}")
        name, self.declared, expression = found.groups()
        value = self.value(syntax.parse(expression, mode="eval").body, self.unused(name))
        self.current[name] = value

    def unused(self, name: str) -> str:
        """The name, or name_1, name_2, ... where it is taken."""
        if name not in self.types:
            return name
        return next(n for k in count(1) if (n := f"{name}_{k}") not in self.types)

    def fresh(self) -> str:
        """A name of one letter (or with a number) for a value in between."""
        for k in count():
            name = LETTERS[k % 20] + (str(k // 20) if k >= 20 else "")
            known = name in self.types or name in self.current or name in RESERVED
            if not known and not re.search(rf"\b{name}\b", self.text):
                return name
        raise AssertionError

    def step(self, op: str, args: list[Argument], name: str | None, type: str = "") -> str:
        """Appends a step over all dimensions of its arguments."""
        named = [a for a in args if isinstance(a, str)]
        found = dict.fromkeys(d for a in named for d in self.varies[a])
        last = [self.types[a] for a in args[op == "where" :] if isinstance(a, str)]
        if not type:
            if PRIMITIVES[op].result == "bool":
                type = "bool"
            else:
                type = last[0] if last else computed(self.type)
        if op != "cast":  # constants take the type of what they meet
            other = last[0] if last else type
            if kind(other) == "f":
                args = [
                    a if isinstance(a, str) or k < (op == "where") else float(a)
                    for k, a in enumerate(args)
                ]
        name = name or self.fresh()
        self.define(name, type, tuple(found))
        self.steps.append(Step(name, op, tuple(args), type, tuple(found)))
        return name

    def value(self, e: ast.expr, name: str | None = None) -> Argument:
        """The name (or the constant) of an expression's value, to be called `name`."""
        if isinstance(e, ast.Constant) and isinstance(e.value, (int, float)):
            return e.value
        if isinstance(e, ast.Name):
            if e.id in self.current:
                return self.current[e.id]
            if e.id in CONSTANTS:
                return CONSTANTS[e.id]
            raise NameError(f"{e.id!r} is not defined in {self.text.strip()!r}")
        if isinstance(e, ast.UnaryOp):
            arg = self.value(e.operand)
            if isinstance(e.op, ast.USub) and not isinstance(arg, str):
                return -arg
            return self.step(OPERATORS[type(e.op)], [arg], name)
        if isinstance(e, ast.BinOp):
            return self.binary(OPERATORS[type(e.op)], e, name)
        if isinstance(e, ast.Compare) and len(e.ops) == 1:
            args = [self.value(e.left), self.value(e.comparators[0])]
            return self.step(OPERATORS[type(e.ops[0])], args, name)
        if isinstance(e, ast.BoolOp):
            total = self.value(e.values[0])
            for k, other in enumerate(e.values[1:]):
                last = k == len(e.values) - 2
                total = self.step(
                    OPERATORS[type(e.op)], [total, self.value(other)], name if last else None
                )
            return total
        if isinstance(e, ast.IfExp):
            return self.step("where", [self.value(x) for x in (e.test, e.body, e.orelse)], name)
        if isinstance(e, ast.Call) and not e.keywords:
            return self.call(e, name)
        raise SyntaxError(f"a program cannot say {ast.unparse(e)!r}")

    def binary(self, op: str, e: ast.BinOp, name: str | None) -> Argument:
        args = [self.value(e.left), self.value(e.right)]
        if not any(isinstance(a, str) for a in args):
            value = eval(syntax.compiled(ast.Expression(e), "constant", "eval"), {}, CONSTANTS)
            return float(value) if isinstance(value, float) else int(value)
        if op == "pow" and isinstance(args[1], (int, float)) and args[1] == 2:
            return self.step("square", args[:1], name)
        return self.step(op, args, name)

    def call(self, e: ast.Call, name: str | None) -> Argument:
        """f(x), sum[j](x), extent(j), index(j), or a type's name as in float32(x)."""
        if isinstance(e.func, ast.Subscript) and isinstance(e.func.value, ast.Name):
            return self.reduction(e, name)
        op = e.func.id if isinstance(e.func, ast.Name) else ""
        first = e.args[0] if e.args else None
        if op == "extent" and isinstance(first, ast.Name):
            type = self.declared or (self.inputs[0].type if self.inputs else "float32")
            return self.extent(first.id, computed(type), name)
        if op == "index" and isinstance(first, ast.Name):
            return self.index(first.id, name)
        if op == "polynomial" and isinstance(first, ast.Name):
            return self.polynomial(first.id, self.value(e.args[1]), name)
        args = [self.value(a) for a in e.args]
        if op in TYPES and len(args) == 1:
            return self.step("cast", args, name, op)
        if op == "cast" and self.declared:
            return self.step("cast", args, name, self.declared)
        if op not in PRIMITIVES or op == "cast":
            raise NameError(f"there is no primitive {op or ast.unparse(e.func)!r}")
        return self.step(op, args, name)

    def polynomial(self, row: str, x: Argument, name: str | None) -> str:
        """Horner's scheme with a named row of coefficients, those of the argument's type."""
        from toytorch.loops.language.special_coefficients import POLYNOMIALS  # seldom needed

        found = POLYNOMIALS[row]
        coefficients = found[self.types[str(x)]] if isinstance(found, dict) else found
        total: Argument = coefficients[0]
        for k, c in enumerate(coefficients[1:], 2):
            product = self.step("mul", [total, x], None)
            total = self.step("add", [product, c], name if k == len(coefficients) else None)
        return str(total)

    def extent(self, dim: str, type: str, name: str | None) -> str:
        if dim not in self.dims:
            raise NameError(f"extent({dim}): no array has the dimension {dim!r}")
        name = name or self.fresh()
        self.define(name, type, ())
        self.steps.append(Step(name, "extent", (dim,), type))
        return name

    def index(self, dim: str, name: str | None) -> str:
        if dim not in self.dims:
            raise NameError(f"index({dim}): no array has the dimension {dim!r}")
        name = name or self.fresh()
        self.define(name, "int64", (dim,))
        self.steps.append(Step(name, "index", (dim,), "int64", (dim,)))
        return name

    def reduction(self, e: ast.Call, name: str | None) -> str:
        func: Any = e.func
        op = func.value.id
        wanted: list[Any] = func.slice.elts if isinstance(func.slice, ast.Tuple) else [func.slice]
        over = tuple(d.id for d in wanted)
        arg = self.value(e.args[0])
        if (op not in JOINS and op != "mean") or not isinstance(arg, str):
            raise NameError(f"there is no reduction {ast.unparse(e)!r}")
        made = self.fresh() if op == "mean" or name is None else name
        type = self.types[arg]
        dims = tuple(d for d in self.varies[arg] if d not in over)
        self.define(made, type, dims)
        self.steps.append(Reduce(made, "sum" if op == "mean" else op, arg, over, type, dims))
        if op != "mean":
            return made
        for k, dim in enumerate(over):
            last = k == len(over) - 1
            made = self.step("div", [made, self.extent(dim, type, None)], name if last else None)
        return made
