"""From a group of nodes to a loop program: dimensions get names, ops become steps.

Which dimension of a value is which dimension of its neighbours is found by joining: an elementwise
op joins those of its operands that meet by broadcasting, a reduction lets some vanish, and a view
that only moves, adds or spreads dimensions renames them and costs nothing.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toytorch.facts import dtype as dtypes
from toytorch.jit import types
from toytorch.jit.codegen_types import constant, work_type
from toytorch.jit.ir import Node, Value
from toytorch.loops import Array, Program, Reduce, Step, Unsupported
from toytorch.loops.formula import CONSTANTS, FOLDED
from toytorch.loops.language.parse import OPERATORS
from toytorch.loops.language.types import TYPES

REDUCTIONS = {
    "sum": "sum",
    "mean": "sum",
    "amax": "max",
    "amin": "min",
    "prod": "prod",
    "max": "max",
    "min": "min",
}
ALONG = ("softmax", "log_softmax", "_softmax_backward_data", "_log_softmax_backward_data")
RENAMES = (
    "unsqueeze",
    "squeeze",
    "expand",
    "_spread",
    "permute",
    "transpose",
    "t",
    "view",
    "_unsafe_view",
    "reshape",
)
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
        for v in (*self.inputs, *self.outputs):
            roots = [self.root(a) for a in self.axes[v] if a is not None]
            if len(set(roots)) < len(roots):
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
        elif op.name in REDUCTIONS:
            self.reduction(node)
        elif op.name in ALONG:
            self.along(node)
        elif op.name in RENAMES:
            self.rename(node)
        elif op.name == "_to_copy":
            self.axes[node.output] = list(self.axes[node.inputs[0]])
            self.finish(node.output, self.cast(self.names[node.inputs[0]], type_of(node.output)))
        elif op.name == "clone":
            self.axes[node.output] = list(self.axes[node.inputs[0]])
            self.finish(node.output, self.names[node.inputs[0]])
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
                values[name] = constant(v)
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

    def value(self, tree: Any, values: dict[str, Any], kind: str) -> Any:
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
            return self.binary(
                type(tree.op),
                self.value(tree.left, values, kind),
                self.value(tree.right, values, kind),
            )
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
        return (
            self.power(args[0], args[1], kind)
            if tree.func.id == "pow"
            else self.apply(tree.func.id, args, kind)
        )

    def truth(self, name: Any) -> Any:
        """A value as true or false."""
        return self.cast(name, "bool") if isinstance(name, str) else bool(name)

    def binary(self, sign: type, a: Any, b: Any) -> Any:
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
        result = "bool" if op in RESULT_BOOL else kind
        dims = list(
            dict.fromkeys(self.root(d) for a in args if isinstance(a, str) for d in self.dims[a])
        )
        return self.step(op, args, result, dims)

    def power(self, base: Any, exponent: Any, kind: str) -> Any:
        """xⁿ as products where n is a small whole number, else the primitive."""
        if isinstance(base, str) and not isinstance(exponent, str) and exponent in (2, 3, 4):
            square = self.apply("mul", [base, base])
            return (
                square
                if exponent == 2
                else self.apply("mul", [square, base if exponent == 3 else square])
            )
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

    def reduction(self, node: Node) -> None:
        """A sum, a mean, a largest or least element."""
        op, source, out = node.record, node.inputs[0], node.output
        assert op is not None
        args = {a.name: constant(v) for a, v in zip(op.schema.args[1:], node.inputs[1:])}
        shape, kind = shape_of(source), type_of(out)
        if args.get("dtype") is not None and args["dtype"].numpy.name != kind:
            raise Unsupported("the result's type is asked for")
        dims = args.get("dim")
        dims = (
            range(len(shape))
            if dims is None or dims == () or dims == []
            else ([dims] if isinstance(dims, int) else dims)
        )
        dims = {d % len(shape) for d in dims} if shape else set()
        over = [a for d, a in enumerate(self.axes[source]) if d in dims and a is not None]
        kept = [a for d, a in enumerate(self.axes[source]) if d not in dims]
        if REDUCTIONS[op.name] in ("max", "min") and any(not shape[d] for d in dims):
            raise Unsupported("the largest of nothing")
        if len(kept) != len(shape_of(out)):  # keepdim
            kept = [None if d in dims else a for d, a in enumerate(self.axes[source])]
        self.axes[out] = kept
        name = self.cast(self.names[source], kind)
        there = {self.root(a) for a in self.dims[name]}
        spread = [
            n
            for d, (a, n) in enumerate(zip(self.axes[source], shape))
            if d in dims and a is not None and self.root(a) not in there
        ]
        over = [a for a in over if self.root(a) in there]
        if spread and REDUCTIONS[op.name] == "prod":
            raise Unsupported("a power of what is spread")
        if spread and REDUCTIONS[op.name] == "sum":  # of equal terms
            name = self.apply("mul", [name, math.prod(spread)])
        if over:
            left = [a for a in self.dims[name] if self.root(a) not in {self.root(o) for o in over}]
            name = self.step(REDUCTIONS[op.name], [name], kind, left, over)
        if op.name == "mean":
            count = 1
            for d in dims:
                count *= shape[d]
            name = self.apply("div", [name, float(count)]) if count != 1 else name
        self.finish(out, name)

    def along(self, node: Node) -> None:
        """Softmax, its logarithm, or the gradient of one of them: reductions along a dimension and
        what follows from them."""
        op, out = node.record, node.output
        assert op is not None
        tensors = [v for v in node.inputs if v in self.axes]
        args: dict[str, Any] = {
            a.name: v if v in self.axes else constant(v)
            for a, v in zip(op.schema.args, node.inputs)
        }
        kind, shape = type_of(out), shape_of(out)
        if (
            kind not in ("float32", "float64")
            or any(type_of(v) != kind for v in tensors)
            or (args.get("dtype") is not None)
        ):
            raise Unsupported(f"{node.kind} in another type")
        axes: list[int | None] = [None] * len(shape)
        for v in tensors:
            self.spread(axes, self.axes[v])
        axis = axes[args["dim"]] if shape and all(shape) else None
        names = [self.names[v] for v in tensors]
        if axis is None or any(self.root(axis) not in map(self.root, self.dims[n]) for n in names):
            raise Unsupported(f"{node.kind} along a dimension of one element")
        self.axes[out] = axes

        def joined(how: str, name: str) -> str:
            left = [a for a in self.dims[name] if self.root(a) != self.root(axis)]
            return self.step(how, [name], kind, left, [axis])

        if op.name == "_softmax_backward_data":  # (g - Σg·y)·y
            g, y = names
            total = joined("sum", self.apply("mul", [g, y]))
            made = self.apply("mul", [self.apply("sub", [g, total]), y])
        elif op.name == "_log_softmax_backward_data":  # g - eʸ·Σg
            g, y = names
            total = joined("sum", g)
            made = self.apply("sub", [g, self.apply("mul", [self.apply("exp", [y]), total])])
        else:
            # A NaN makes all results NaN, whatever the largest of the others is.
            centred = self.apply("sub", [names[0], joined("fmax", names[0])])
            powers = self.apply("exp", [centred])
            total = joined("sum", powers)
            made = (
                self.apply("div", [powers, total])
                if op.name == "softmax"
                else self.apply("sub", [centred, self.apply("log", [total])])
            )
        self.finish(out, made)

    def rename(self, node: Node) -> None:
        """A view that only moves, adds, drops or spreads dimensions."""
        op, source, out = node.record, node.inputs[0], node.output
        assert op is not None
        axes, shape, wanted = self.axes[source], shape_of(source), shape_of(out)
        if op.name in ("permute", "transpose", "t"):
            order = list(range(len(axes)))
            if op.name == "permute":
                dims = constant(node.inputs[1])
                order = [
                    d % len(axes)
                    for d in (
                        dims if isinstance(dims, tuple) else [constant(v) for v in node.inputs[1:]]
                    )
                ]
            elif len(axes) > 1:
                a, b = (0, 1) if op.name == "t" else (constant(v) for v in node.inputs[1:])
                order[a], order[b] = order[b], order[a]
            moved: list[int | None] = [axes[d] for d in order]
        elif op.name == "_spread":
            moved = self.spread_back(node, axes, wanted)
        elif op.name == "expand":
            moved = [*([None] * (len(wanted) - len(axes))), *axes]
            moved = [self.axis() if a is None and n != 1 else a for a, n in zip(moved, wanted)]
        else:
            if [n for n in shape if n != 1] != [n for n in wanted if n != 1]:
                raise Unsupported("the view changes more than dimensions of size 1")
            rest = iter([a for a in axes if a is not None])
            moved = [None if n == 1 else next(rest) for n in wanted]
        self.axes[out] = moved
        self.finish(out, self.names[source])

    def spread_back(
        self, node: Node, axes: list[int | None], wanted: tuple[int, ...]
    ) -> list[int | None]:
        """The gradient of a sum: the dimensions that were summed over are there again."""
        dims = constant(node.inputs[2])
        keepdim = constant(node.inputs[3])
        gone = (
            set(range(len(wanted)))
            if dims is None or dims in ((), [])
            else {d % max(len(wanted), 1) for d in ([dims] if isinstance(dims, int) else dims)}
        )
        rest = iter(axes)
        made: list[int | None] = []
        for d, n in enumerate(wanted):
            if d in gone:
                if keepdim:
                    next(rest)
                made.append(self.axis() if n != 1 else None)
            else:
                made.append(next(rest))
        return made


RESULT_BOOL = frozenset(
    (
        "eq",
        "ne",
        "lt",
        "le",
        "gt",
        "ge",
        "isnan",
        "isinf",
        "isfinite",
        "logical_and",
        "logical_or",
        "logical_xor",
        "logical_not",
    )
)


def in_type(number: Any, kind: str) -> Any:
    """A constant as a number of the type."""
    if kind == "bool":
        return bool(number)
    if TYPES[kind].kind == "f":
        return float(number)
    if isinstance(number, float) and number != int(number):
        raise Unsupported("a fraction among integers")
    return int(number)


def tensor_inputs(node: Node) -> list[Value]:
    """The inputs of a node that are arrays."""
    return [v for v in node.inputs if isinstance(v.type, types.Tensor)]


def shape_of(v: Value) -> tuple[int, ...]:
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
