"""Functions of numbers as CUDA C: the text that `kernels/sequential.py` compiles for processors.

>>> from toytorch.ops.special import of_numbers
>>> print(source(of_numbers, "hankel"))
__device__ double of_hankel(double order, double k);
__device__ double of_hankel(double order, double k) {
    return ((((4.0 * order) * order) - (((2.0 * k) - 1.0) * ((2.0 * k) - 1.0))) / (8.0 * k));
}
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
from collections.abc import Callable, Iterator
from types import ModuleType

import numpy as np

from toytorch.backends.cupy_hand import Each, in_rows
from toytorch.facts.hints import Array, ArrayModule
from toytorch.loops.generators.cuda_words import value_of, word

EXACT = ("-fmad=false",)  # what a rounding loses is added later on
SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.And: "&&", ast.Or: "||",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
}  # fmt: skip


def of_numbers(
    xp: ArrayModule,
    text: Callable[[], ModuleType],
    name: str,
    numbers: tuple[float, ...],
    *arrays: Array,
) -> Array:
    """What a function of the module gives for these numbers and each element of arrays of one type."""
    made = xp.empty(np.broadcast_shapes(*[a.shape for a in arrays]), arrays[0].dtype)
    given = [in_rows(xp, xp.broadcast_to(a, made.shape)) for a in arrays]
    kernel_of(text(), name, numbers, len(arrays))(xp, made.dtype, made.size, made, *given)
    return made


@functools.cache
def kernel_of(module: ModuleType, name: str, numbers: tuple[float, ...], count: int) -> Each:
    """The kernel that calls a function of the module for each element."""
    given = [value_of(n, "float64") for n in numbers] + [f"x{k}[i]" for k in range(count)]
    arrays = "".join(f", const T* x{k}" for k in range(count))
    called = f"y[i] = of_{name}({', '.join(given)});"
    return Each(called, f"T* y{arrays}", source(module, name), EXACT)


def source(module: ModuleType, name: str) -> str:
    """A function of the module and those that it needs, with their tables."""
    tree = ast.parse(inspect.getsource(module))
    trees = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
    asked, made, tables = [name], list[Function](), dict[str, str]()
    for one in asked:  # which grows
        made.append(Function(module, trees[one]))
        asked += [called for called in made[-1].called if called not in asked]
        tables |= made[-1].tables
    heads = [f"{f.head};" for f in made]
    return "\n".join([*tables.values(), *heads, *(line for f in made for line in f.lines)])


class Function:
    """One of them: its lines, the functions that it calls, and the tables that it reads."""

    def __init__(self, module: ModuleType, tree: ast.FunctionDef) -> None:
        self.module = module
        self.called: dict[str, None] = {}
        self.tables: dict[str, str] = {}
        given = [a.arg for a in tree.args.args]
        stored = (
            n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        )
        own = [name for name in dict.fromkeys(stored) if name not in given]
        self.names = {*given, *own}
        self.head = (
            f"__device__ double of_{tree.name}({', '.join(f'double {word(a)}' for a in given)})"
        )
        places = [f"    double {', '.join(map(word, own))};"] if own else []
        self.lines = [f"{self.head} {{", *places, *self.block(tree.body), "}"]

    def block(self, statements: list[ast.stmt]) -> Iterator[str]:
        """The lines of statements, further in."""
        return ("    " + line for s in statements for line in self.statement(s))

    def statement(self, s: ast.stmt) -> Iterator[str]:
        if isinstance(s, ast.Assign):
            yield from self.assigned(s.targets[0], s.value)
        elif isinstance(s, ast.AugAssign):
            yield f"{self.value(s.target)} {SIGNS[type(s.op)]}= {self.value(s.value)};"
        elif isinstance(s, ast.Return):
            assert s.value is not None
            yield f"return {self.value(s.value)};"
        elif isinstance(s, ast.While | ast.If):
            yield f"{'while' if isinstance(s, ast.While) else 'if'} ({self.value(s.test)}) {{"
            yield from self.block(s.body)
            yield "}"
            if s.orelse:
                yield "else {"
                yield from self.block(s.orelse)
                yield "}"
        else:
            assert isinstance(s, ast.Expr), ast.dump(s)  # a docstring

    def assigned(self, target: ast.expr, value: ast.expr) -> Iterator[str]:
        """One assignment, or several at once: no value sees what another assigns."""
        if not isinstance(target, ast.Tuple):
            yield f"{self.value(target)} = {self.value(value)};"
            return
        assert isinstance(value, ast.Tuple)
        made = ", ".join(f"made{k} = {self.value(v)}" for k, v in enumerate(value.elts))
        taken = " ".join(f"{self.value(t)} = made{k};" for k, t in enumerate(target.elts))
        yield f"{{ const double {made}; {taken} }}"

    def value(self, node: ast.expr) -> str:
        """A value, or a condition."""
        match node:
            case ast.Constant(value=int() | float() as number):
                return value_of(number, "float64")
            case ast.Name(id=name) if name in self.names:
                return word(name)
            case ast.Name(id=name):
                return value_of(getattr(self.module, name), "float64")
            case ast.Attribute(attr=name):
                return value_of(getattr(math, name), "float64")
            case ast.UnaryOp(operand=x):
                return f"(-{self.value(x)})"
            case ast.BinOp(left=x, op=op, right=y):
                return f"({self.value(x)} {SIGNS[type(op)]} {self.value(y)})"
            case ast.BoolOp(op=op, values=parts):
                return f"({f' {SIGNS[type(op)]} '.join(map(self.value, parts))})"
            case ast.Compare(left=x, ops=[op], comparators=[y]):
                return f"({self.value(x)} {SIGNS[type(op)]} {self.value(y)})"
            case ast.IfExp(test=test, body=x, orelse=y):
                return f"({self.value(test)} ? {self.value(x)} : {self.value(y)})"
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                numbers = [value_of(n, "float64") for n in getattr(self.module, name)]
                table = f"__device__ const double {name}[{len(numbers)}]"
                self.tables[name] = f"{table} = {{{', '.join(numbers)}}};"
                return f"{name}[{self.value(index)}]"
            case ast.Call(func=ast.Attribute(attr=name), args=given):  # of `math`
                return f"{name}({', '.join(map(self.value, given))})"
            case ast.Call(func=ast.Name(id="int"), args=[x]):
                return f"(int){self.value(x)}"
            case ast.Call(func=ast.Name(id="abs"), args=[x]):
                return f"fabs({self.value(x)})"
            case ast.Call(func=ast.Name(id=name), args=given):
                self.called[name] = None
                return f"of_{name}({', '.join(map(self.value, given))})"
        raise NotImplementedError(ast.dump(node))  # a statement the texts do not use
