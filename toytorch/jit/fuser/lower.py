"""From a group of nodes to a loop program: dimensions get names, ops become steps.

Which dimension of a value is which dimension of its neighbours is found by joining: an elementwise
op joins those of its operands that meet by broadcasting, a reduction lets some vanish, and a view
that only moves, adds or spreads dimensions renames them and costs nothing.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.facts import dtype as dtypes
from toytorch.facts.hints import Sizes
from toytorch.jit import types
from toytorch.jit.codegen_types import work_type
from toytorch.jit.ir import Node, Value
from toytorch.loops import Array, Program, Reduce, Step, Unsupported
from toytorch.loops.formula import CONSTANTS, FOLDED, Formula
from toytorch.loops.language.parse import OPERATORS
from toytorch.loops.language.primitives import JOINS, PRIMITIVES
from toytorch.loops.language.types import TYPES

LIMIT = 160  # nodes in a group: beyond, a kernel has more values than any processor has registers


@dataclass
class Lowered:
    """A program and what its arrays are: values with the axes that they have there."""

    program: Program
    inputs: list[Value]
    outputs: list[Value]
    axes: dict[Value, list[int | None]]  # for each dimension of a value its axis; None: size 1


class Lower:
    """Builds the program of one group."""

    def __init__(self, nodes: Sequence[Node], outputs: Sequence[Value]) -> None:
        self.nodes, self.outputs = nodes, list(outputs)
        self.parent: list[int] = []
        self.axes: dict[Value, list[int | None]] = {}
        self.reduced: list[list[int | None]] = []  # the axes of what reductions go over
        self.steps: list[Any] = []
        self.names: dict[Value, str] = {}
        self.kinds: dict[str, str] = {}  # the type of each named value
        self.dims: dict[str, list[int]] = {}
        made = {v for n in nodes for v in n.outputs}
        self.inputs = list(
            dict.fromkeys(v for n in nodes for v in tensor_inputs(n) if v not in made)
        )
        if len(nodes) > LIMIT:
            raise Unsupported("the group is too large")

    def lowered(self) -> Lowered:
        """The program; raises Unsupported."""
        for v in self.inputs:
            self.axes[v] = [None if n == 1 else self.axis() for n in shape_of(v)]
            self.define(v, f"x{len(self.names)}", type_of(v))
        for node in self.nodes:
            self.node(node)
        letters = self.letters()
        arrays = tuple(self.array(v, letters) for v in self.inputs)
        steps: list[Any] = []
        for s in self.steps:
            dims = tuple(dict.fromkeys(letters[self.root(a)] for a in s["dims"]))
            if s["over"] is None:
                steps.append(Step(s["name"], s["op"], s["args"], s["type"], dims))
            else:
                over = tuple(dict.fromkeys(letters[self.root(a)] for a in s["over"]))
                steps.append(Reduce(s["name"], s["op"], s["args"][0], over, s["type"], dims))
        outputs = tuple(self.array(v, letters) for v in self.outputs)
        for axes in (*self.axes.values(), *self.reduced):
            roots = [self.root(a) for a in axes if a is not None]
            if len(set(roots)) < len(roots):  # x.T - x of a row, if only on the way
                raise Unsupported("a value has one dimension twice")
        program = Program(arrays, (), tuple(steps), outputs)
        return Lowered(program, self.inputs, self.outputs, self.axes)

    # -- axes --------------------------------------------------------------------------------------

    def axis(self) -> int:
        """A dimension of its own."""
        self.parent.append(len(self.parent))
        return len(self.parent) - 1

    def root(self, a: int) -> int:
        """The dimension that `a` has become."""
        while self.parent[a] != a:
            self.parent[a] = a = self.parent[self.parent[a]]
        return a

    def join(self, a: int, b: int) -> int:
        """The two are one dimension."""
        a, b = self.root(a), self.root(b)
        self.parent[max(a, b)] = min(a, b)
        return min(a, b)

    def letters(self) -> dict[int, str]:
        """A name for every dimension, in the order of the largest value."""
        order: list[int] = []
        for v in sorted(self.axes, key=lambda v: -len([a for a in self.axes[v] if a is not None])):
            order += [self.root(a) for a in self.axes[v] if a is not None]
        return {a: f"d{i}" for i, a in enumerate(dict.fromkeys(order))}

    def array(self, v: Value, letters: dict[int, str]) -> Array:
        """The array of a value: its dimensions but those of size 1."""
        dims = tuple(letters[self.root(a)] for a in self.axes[v] if a is not None)
        return Array(self.names[v], type_of(v), dims)

    # -- steps -------------------------------------------------------------------------------------

    def define(self, v: Value, name: str, kind: str) -> None:
        self.names[v], self.kinds[name] = name, kind
        self.dims[name] = [a for a in self.axes[v] if a is not None]

    def step(
        self,
        op: str,
        args: Sequence[Any],
        kind: str,
        dims: list[int],
        over: list[int] | None = None,
    ) -> str:
        """One more step; its name."""
        name = f"v{len(self.steps)}"
        self.steps.append(
            {"name": name, "op": op, "args": tuple(args), "type": kind, "dims": dims, "over": over}
        )
        self.kinds[name], self.dims[name] = kind, dims
        return name

    def node(self, node: Node) -> None:
        """The steps of one node."""
        op: Any = node.record
        if op.kind == "pointwise":
            self.pointwise(node)
        elif op.kind == "view":
            self.rename(node)
        elif op.fused:
            self.lines(node)
        else:
            raise Unsupported(f"{node.kind} is no loop")

    def finish(self, v: Value, name: str) -> None:
        """A value is what a step made."""
        self.names[v] = name

    def cast(self, name: str, kind: str) -> str:
        """A value in another type."""
        return (
            name if self.kinds[name] == kind else self.step("cast", [name], kind, self.dims[name])
        )

    def pointwise(self, node: Node) -> None:
        """A record's formula, over operands in their common type."""
        op: Any = node.record
        work = work_type(node)
        kind = work.name if work is not None else ""
        out = node.output
        rank = len(shape_of(out))
        axes: list[int | None] = [None] * rank
        values: dict[str, Any] = {}
        for i, v in enumerate(node.inputs):
            name = op.schema.args[i].name
            if i in op.tensor_at and v in self.axes:
                self.spread(axes, self.axes[v])
                values[name] = self.cast(self.names[v], kind) if kind else self.names[v]
            else:
                values[name] = v.constant
        self.axes[out] = axes
        for a in op.schema.args[len(node.inputs) :]:
            values[a.name] = a.default
        if op.formula is None or not op.formula.known:
            raise Unsupported(f"{node.kind} has no formula that loops can follow")
        made: Any = None
        for name, tree in op.formula.straight(values)[1]:
            made = values[name] = self.value(tree, values, kind or type_of(out))
        if not isinstance(made, str):
            raise Unsupported(f"{node.kind} is a constant")
        wanted = type_of(out)
        if self.kinds[made] != wanted:
            made = self.cast(made, wanted)
        self.finish(out, made)

    def spread(self, axes: list[int | None], more: list[int | None]) -> None:
        """Joins the dimensions of an operand with those of the result, from the right."""
        for k in range(1, len(more) + 1):
            a, b = axes[-k], more[-k]
            axes[-k] = b if a is None else a if b is None else self.join(a, b)

    def value(self, tree: ast.expr, values: dict[str, Any], kind: str) -> Any:
        """The name of what a formula gives, or a number."""
        if isinstance(tree, ast.Constant):
            return tree.value
        if isinstance(tree, ast.Name):
            found = values[tree.id] if tree.id in values else CONSTANTS[tree.id]
            if found is None:
                raise Unsupported(f"no value for {tree.id}")
            return found
        if isinstance(tree, ast.UnaryOp):
            inner = self.value(tree.operand, values, kind)
            if isinstance(tree.op, ast.Not):
                return self.apply("logical_not", [self.truth(inner)])
            if not isinstance(inner, str):
                return -inner if isinstance(tree.op, ast.USub) else ~inner
            return self.apply("neg" if isinstance(tree.op, ast.USub) else "invert", [inner])
        if isinstance(tree, ast.BinOp):
            left, right = (self.value(t, values, kind) for t in (tree.left, tree.right))
            return self.binary(type(tree.op), left, right)
        if isinstance(tree, ast.Compare):
            return self.apply(
                OPERATORS[type(tree.ops[0])],
                [
                    self.value(tree.left, values, kind),
                    self.value(tree.comparators[0], values, kind),
                ],
            )
        if isinstance(tree, ast.IfExp):
            test = self.truth(self.value(tree.test, values, kind))
            yes, no = self.value(tree.body, values, kind), self.value(tree.orelse, values, kind)
            return self.apply("where", [test, yes, no], kind)
        if isinstance(tree, ast.BoolOp):
            parts = [self.truth(self.value(v, values, kind)) for v in tree.values]
            made = parts[0]
            for p in parts[1:]:
                name = "logical_and" if isinstance(tree.op, ast.And) else "logical_or"
                made = self.apply(name, [made, p])
            return made
        assert isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)
        args = [self.value(a, values, kind) for a in tree.args]
        if tree.func.id == "pow":
            return self.power(args[0], args[1], kind)
        return self.apply(tree.func.id, args, kind)

    def truth(self, name: Any) -> Any:
        """A value as true or false."""
        return self.cast(name, "bool") if isinstance(name, str) else bool(name)

    def binary(self, sign: type, a: float | str, b: float | str) -> Any:
        """a op b, without the steps that change nothing: alpha = 1."""
        if not isinstance(a, str) and not isinstance(b, str):
            return FOLDED[sign](a, b)
        op = OPERATORS[sign]
        if op == "mul" and not isinstance(a, str) and a == 1:
            return b
        if op == "mul" and not isinstance(b, str) and b == 1 and isinstance(a, str):
            return a
        if "bool" in (self.kinds.get(x) for x in (a, b) if isinstance(x, str)):
            op = {
                "add": "logical_or",
                "mul": "logical_and",
                "and_": "and_",
                "or_": "or_",
                "xor": "xor",
            }.get(op, op)
        return self.apply(op, [a, b])

    def apply(self, op: str, args: list[Any], kind: str = "") -> Any:
        """A step of a primitive; the types of its operands are one by now."""
        named = [a for a in args[op == "where" :] if isinstance(a, str)]
        if not named and op != "where":
            raise Unsupported(f"{op} of constants")
        kind = self.kinds[named[0]] if named else kind
        args = [a if isinstance(a, str) else in_type(a, kind) for a in args]
        primitive = PRIMITIVES[op]
        result = "bool" if primitive.result == "bool" or primitive.kinds == "b" else kind
        dims = list(
            dict.fromkeys(self.root(d) for a in args if isinstance(a, str) for d in self.dims[a])
        )
        return self.step(op, args, result, dims)

    def power(self, base: Any, exponent: Any, kind: str) -> Any:
        """xⁿ as products where n is a small whole number, else the primitive."""
        if isinstance(base, str) and not isinstance(exponent, str) and exponent in (2, 3, 4):
            square = self.apply("mul", [base, base])
            if exponent == 2:
                return square
            return self.apply("mul", [square, base if exponent == 3 else square])
        if isinstance(base, str) and not isinstance(exponent, str):
            if exponent == 1:
                return base
            if TYPES[kind].kind == "f" and exponent == 0.5:
                return self.apply("sqrt", [base])
            if TYPES[kind].kind == "f" and exponent in (-1, -0.5, -2):
                made = (
                    base
                    if exponent == -1
                    else self.apply("sqrt", [base])
                    if exponent == -0.5
                    else self.apply("mul", [base, base])
                )
                return self.apply("div", [1.0, made])
        return self.apply("pow", [base, exponent])

    def lines(self, node: Node) -> None:
        """The lines of a record's `fused`: formulas, in which reductions go along `dim`."""
        op, out = node.record, node.output
        assert op is not None
        kind = type_of(out)
        tensors = [v for v in tensor_inputs(node) if v in self.axes]
        axes: list[int | None] = [None] * max(len(shape_of(v)) for v in tensors)
        values: dict[str, Any] = {a.name: a.default for a in op.schema.args[len(node.inputs) :]}
        formula = rows_formula(op.fused, tuple(op.schema.args[i].name for i in op.tensor_at))
        choices = (n for tree in formula.trees for n in ast.walk(tree) if isinstance(n, ast.IfExp))
        masks = {c.test.id for c in choices if isinstance(c.test, ast.Name)}
        for a, v in zip(op.schema.args, node.inputs):
            if v in self.axes:
                self.spread(axes, self.axes[v])
                name = self.names[v]
                values[a.name] = name if a.name in masks else self.cast(name, kind)
            else:
                values[a.name] = v.constant
        self.reduced.append(axes)
        shape = np.broadcast_shapes(*map(shape_of, tensors))
        dims = reduced_dims(values.get("dim"), len(shape))
        along = [(a, shape[d]) for d, a in enumerate(axes) if d in dims and a is not None]
        values["count"] = math.prod(shape[d] for d in dims)
        joined = Joined(self, values, kind, along)
        made: Any = None
        for name, tree in formula.straight({**CONSTANTS, **values})[1]:
            made = values[name] = self.value(joined.visit(tree), values, kind)
        if shape_of(out) != shape:  # the dimensions are gone, or 1
            keepdim = len(shape_of(out)) == len(shape)
            axes = [
                None if d in dims else a for d, a in enumerate(axes) if keepdim or d not in dims
            ]
        self.axes[out] = axes
        self.finish(out, made)

    def rename(self, node: Node) -> None:
        """A view that only moves, adds, drops or spreads dimensions."""
        source, out = node.inputs[0], node.output
        axes = self.axes[source]
        self.axes[out] = [
            None if n == 1 else self.axis() if d is None else axes[d]
            for d, n in zip(moved_axes(node), shape_of(out))
        ]
        self.finish(out, self.names[source])


class Joined(ast.NodeTransformer):
    """Puts names of steps in the place of reductions: `sum(x)`, `max(x)`."""

    def __init__(
        self, lower: Lower, values: dict[str, Any], kind: str, along: list[tuple[int, int]]
    ) -> None:
        self.lower, self.values, self.kind, self.along = lower, values, kind, along

    def visit_Call(self, tree: ast.Call) -> Any:
        self.generic_visit(tree)
        how = tree.func.id if isinstance(tree.func, ast.Name) else ""
        if how not in JOINS or len(tree.args) != 1:
            return tree
        lower = self.lower
        name = lower.value(tree.args[0], self.values, self.kind)
        there = {lower.root(a) for a in lower.dims[name]}
        over = [a for a, _ in self.along if lower.root(a) in there]
        spread = [n for a, n in self.along if lower.root(a) not in there]
        if not self.values["count"]:
            raise Unsupported("a reduction of nothing")
        if spread and how == "prod":
            raise Unsupported("a power of what is spread")
        if spread and how == "sum":  # of equal terms
            name = lower.apply("mul", [name, math.prod(spread)])
        if over:
            gone = {lower.root(a) for a in over}
            left = [a for a in lower.dims[name] if lower.root(a) not in gone]
            name = lower.step(how, [name], self.kind, left, over)
        made = f"_{len(self.values)}"
        self.values[made] = name
        return ast.Name(made, ast.Load())


@functools.cache
def rows_formula(text: str, tensors: tuple[str, ...]) -> Formula:
    """What a record's `fused` says: its lines stand between semicolons."""
    return Formula(text.replace(";", "\n"), tensors)


def reduced_dims(dim: Any, rank: int) -> set[int]:
    """The dimensions that a reduction goes along: all for None and for an empty list."""
    if dim is None or dim in ((), []):
        return set(range(rank))
    return {d % rank for d in ([dim] if isinstance(dim, int) else dim)} if rank else set()


def moved_axes(node: Node) -> list[int | None]:
    """For each dimension of a view the dimension of its operand that it is; None: of size 1, or
    spread. Raises Unsupported where a view does more than move, add, drop or spread dimensions.

    The record's own kernel is asked, with an array in which every dimension has its own stride.
    """
    op, source = node.record, node.inputs[0]
    shape = shape_of(source)
    if op is None or op.many or "storage_offset" in op.schema.index or 0 in shape:
        raise Unsupported("a view of memory, not of dimensions")
    rest = [v.constant for v in node.inputs[1:]]
    if any(v.node is None or "value" not in v.node.attributes for v in node.inputs[1:]):
        raise Unsupported("a view that is not always the same")
    if type_of(source) != type_of(node.output):
        raise Unsupported("a view as another type")
    if (
        len(op.schema.args) == 2
        and op.schema.args[1].is_variadic
        and not isinstance(rest[0], tuple)
    ):
        rest = [tuple(rest)]
    rest += [a.default for a in op.schema.args[1 + len(rest) :]]
    asked = np.empty(shape, np.int8)  # never read, so no memory is really taken
    try:
        seen = op.on_cpu(asked, *rest)
    except (RuntimeError, LookupError, TypeError, ValueError, MemoryError):
        raise Unsupported("a view that this array has not") from None
    if seen.ctypes.data != asked.ctypes.data or seen.shape != shape_of(node.output):
        raise Unsupported("a view of a part")
    place = {s: d for d, (s, n) in enumerate(zip(asked.strides, shape)) if n != 1}
    made = [None if n == 1 or not s else place.get(s, -1) for s, n in zip(seen.strides, seen.shape)]
    found = [d for d in made if d is not None]
    if sorted(found) != sorted(place.values()) or any(
        d is not None and shape[d] != n for d, n in zip(made, seen.shape)
    ):
        raise Unsupported("the view changes more than dimensions of size 1")
    return made


def in_type(number: float, kind: str) -> Any:
    """A constant as a number of the type."""
    if kind == "bool":
        return bool(number)
    if TYPES[kind].kind == "f":
        return float(number)
    if isinstance(number, float) and not number.is_integer():  # nor is infinity one
        raise Unsupported("a fraction among integers")
    return int(number)


def tensor_inputs(node: Node) -> list[Value]:
    """The inputs of a node that are arrays."""
    return [v for v in node.inputs if isinstance(v.type, types.Tensor)]


def shape_of(v: Value) -> Sizes:
    """The shape of a tensor value."""
    if not isinstance(v.type, types.Tensor) or v.type.shape is None:
        raise Unsupported("a value of unknown shape")
    return v.type.shape


def type_of(v: Value) -> str:
    """The name of a value's element type, where loops have it."""
    if not isinstance(v.type, types.Tensor) or v.type.dtype is None:
        raise Unsupported("a value of unknown type")
    name = v.type.dtype.numpy.name
    if name not in TYPES or v.type.dtype in (dtypes.float16, dtypes.bfloat16):
        raise Unsupported(f"elements of type {name}")
    return str(name)
