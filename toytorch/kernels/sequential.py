"""Functions of numbers, compiled from their Python text.

The statements of a module are assignments, `if`, `while`, `continue` and `return`; every value is a
float64, or a condition. One such as `toytorch/ops/special/of_numbers.py` has functions f(a, b, …) of
single elements (`each`). One such as `toytorch/backends/counts.py` has functions
f(stream, a, b, …, rounded) that draw as they go: `stream.one()` reads the next of the uniform numbers
at hand. When these run out, all functions return, and the element is begun again with more of them.
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import struct
from collections.abc import Callable
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, Sizes, Value
from toytorch.kernels.mersenne import in_c
from toytorch.loops.language.functions import FUNCTIONS
from toytorch.loops.llvm.builder import Builder
from toytorch.loops.runtime import jit
from toytorch.loops.runtime.array_call import ArrayCall
from toytorch.loops.runtime.native import Call, Native

# Words of a stream's table: where its numbers are, how many, the next, whether they ran out; the
# normal number that is kept and whether there is one; how many elements are done, and what was read.
NUMBERS, COUNT, NEXT, OUT, KEPT, HAS, DONE, READ = range(8)
FROM_C = ("exp", "log", "log1p", "lgamma", "pow", "cos", "sin", "expm1", "erfc")
COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
REFILL = 8192  # numbers drawn at a time
PART = 2048  # elements of a call
COST = 200  # of an element without draws, roughly, in additions


def works() -> bool:
    """Whether the C library's functions are to be found."""
    return jit.works() and None not in map(in_c, FROM_C)


@functools.cache
def from_c() -> Any:
    """Where the C library's functions are."""
    return np.array([in_c(f) for f in FROM_C], np.int64)


def each(
    text: Callable[[], ModuleType], name: str, numbers: tuple[float, ...], *arrays: Array
) -> Any:
    """What a function, which draws nothing, of the module that `text` imports gives for these numbers
    and each element of arrays of one type, float32 or float64; computed in float64."""
    found = ready(text, name, numbers, arrays[0].dtype.char, tuple([a.shape for a in arrays]))
    if found is None:
        return in_python(text(), name, numbers, arrays)
    shape, call = found
    made = np.empty(shape, arrays[0].dtype)
    call(made, *[rows(a, made) for a in arrays])
    return made


def in_python(
    module: ModuleType, name: str, numbers: tuple[float, ...], arrays: tuple[Array, ...]
) -> Array:
    """`each` where no compiler is: the text over NumPy's float64, which divides by 0 as C does."""
    names: dict[str, Any] = {**vars(module), "math": FORGIVING}
    for word, value in vars(module).items():
        if isinstance(value, FunctionType):
            names[word] = FunctionType(value.__code__, names)
    function, given = names[name], [np.float64(n) for n in numbers]
    wide = np.broadcast_arrays(*[np.asarray(a, np.float64) for a in arrays])
    with np.errstate(all="ignore"):
        made = [function(*given, *values) for values in zip(*[a.flat for a in wide])]
    return np.array(made, np.float64).reshape(wide[0].shape).astype(arrays[0].dtype)


FORGIVING = SimpleNamespace(
    **{**vars(np), "pow": np.power, **{f: FUNCTIONS[f] for f in FROM_C if f in FUNCTIONS}}
)  # `math` without its errors


def rows(a: Any, like: Array) -> Any:
    """An array, or one of NumPy's numbers, as it is broadcast against an array, in rows."""
    if a.__class__ is np.ndarray and a.shape == like.shape and a.flags.c_contiguous:
        return a
    made = np.empty_like(like)
    made[...] = a
    return made


@functools.lru_cache(256)
def ready(
    text: Callable[[], ModuleType],
    name: str,
    numbers: tuple[float, ...],
    kind: str,
    shapes: tuple[Sizes, ...],
) -> tuple[tuple[int, ...], ArrayCall] | None:
    """The shape of the result of `each`, and its kernel for arrays of these shapes."""
    if not works():
        return None
    count = len(shapes)
    shape = np.broadcast_shapes(*shapes)
    words = (from_c().ctypes.data, *np.array(numbers, np.float64).view(np.int64).tolist())
    places, total = range(len(words), len(words) + 1 + count), math.prod(shape)
    run = map_kernel(text(), name, kind, len(numbers), count)
    return shape, ArrayCall(run, (*words, *[0 for _ in places]), places, total, COST * total)


@functools.cache
def map_kernel(module: ModuleType, name: str, kind: str, numbers: int, arrays: int) -> Call:
    return Call(
        f"numbers {module.__name__} {name} {kind} {inspect.getsource(module)}",
        lambda symbol: Mapped(symbol, module, name, kind, numbers, arrays),
    )


class Mapped(Native):
    """LLVM for `each`: a loop over elements, and the functions that it needs."""

    def __init__(
        self, symbol: str, module: ModuleType, name: str, kind: str, numbers: int, arrays: int
    ) -> None:
        given = [f"number {k}" for k in range(numbers)]
        columns = [f"column {k}" for k in range(arrays)]
        super().__init__(symbol, kind, ("functions", *given, "made", *columns))
        b, double = self.b, self.type("double")
        table = self.array("functions", "word")
        values = [b.bitcast(self.word_of[w], double) for w in given]
        called = Functions(self, module, False).get(name)

        def element(k: Value) -> None:
            found = [self.get(self.array(c), k) for c in columns]
            if kind == "f":
                found = [b.fpext(v, double) for v in found]
            result = b.call(called, [table, table, *values, *found])
            self.put(self.array("made"), k, b.fptrunc(result, self.real) if kind == "f" else result)

        self.loop(self.lo, self.hi, 1, element)


def drawn(module: ModuleType, name: str, source: Any, single: bool, *arrays: Array) -> Any:
    """What the module's function gives for each element of flat arrays (float64).

    source  has `bits53(n)` for uniform numbers, `words`, `place` and `kept`
    single  whether `rounded` rounds to float32
    """
    run = kernel(module, name, single)
    functions = from_c()
    arrays = tuple(np.ascontiguousarray(a, np.float64) for a in arrays)
    total, made = arrays[0].size, np.empty(arrays[0].size)
    table = np.zeros(8, np.int64)
    if source.kept is not None:
        table[KEPT], table[HAS] = struct.unpack("q", struct.pack("d", source.kept))[0], 1
    left, place = np.empty(0), source.place
    while table[DONE] < total:
        place, numbers = source.place, np.concatenate([left, source.bits53(REFILL)])
        before, table[READ] = left.size, 0
        table[NUMBERS], table[COUNT], table[NEXT], table[OUT] = (
            numbers.ctypes.data, numbers.size, 0, 0,
        )  # fmt: skip
        while table[DONE] < total and not table[OUT]:
            start = int(table[DONE])
            words = (a.ctypes.data for a in (table, functions, made, *arrays))
            packed = struct.pack(f"{3 + len(arrays)}q", *words)
            run.run(packed, start, min(start + PART, total))
        left = numbers[table[READ] :]
    if total:
        source.place = place
        source.words(2 * (int(table[READ]) - before))
        kept = struct.unpack("d", struct.pack("q", int(table[KEPT])))[0]
        source.kept = kept if table[HAS] else None
    return made


@functools.cache
def kernel(module: ModuleType, name: str, single: bool) -> Call:
    return Call(
        f"sequential {module.__name__} {name} {single} {inspect.getsource(module)}",
        lambda symbol: Each(symbol, module, name, single),
    )


class Each(Native):
    """LLVM for `drawn`: a loop over elements, and the functions that it needs."""

    def __init__(self, symbol: str, module: ModuleType, name: str, single: bool) -> None:
        count = len(inspect.signature(getattr(module, name)).parameters) - 2
        columns = tuple(f"column {k}" for k in range(count))
        super().__init__(symbol, "d", ("stream", "functions", "made", *columns))
        stream, made = self.array("stream", "word"), self.array("made")
        functions = self.array("functions", "word")
        called = Functions(self, module, single).get(name)
        b = self.b

        def element(k: Value) -> None:
            with b.if_then(b.icmp_signed("==", self.get(stream, OUT), self.word(0))):
                kept, has = self.get(stream, KEPT), self.get(stream, HAS)
                values = [self.get(self.array(c), k) for c in columns]
                found = b.call(called, [stream, functions, *values])
                with b.if_else(b.icmp_signed("==", self.get(stream, OUT), self.word(0))) as (
                    done,
                    begun,
                ):
                    with done:
                        self.put(made, k, found)
                        self.put(stream, DONE, b.add(k, self.word(1)))
                        self.put(stream, READ, self.get(stream, NEXT))
                    with begun:
                        self.put(stream, KEPT, kept)
                        self.put(stream, HAS, has)

        self.loop(self.lo, self.hi, 1, element)


class Functions:
    """The compiled functions of a module, made when they are asked for."""

    def __init__(self, root: Builder, module: ModuleType, single: bool) -> None:
        self.root, self.python, self.single = root, module, single
        tree = ast.parse(inspect.getsource(module))
        self.trees = {n.name: n for n in tree.body if isinstance(n, ast.FunctionDef)}
        self.made: dict[str, Any] = {}

    def get(self, name: str) -> Any:
        if name not in self.made:
            tree = self.trees[name]
            parameters = [a.arg for a in tree.args.args if a.arg not in PASSED]
            made = Function(self, name, parameters)
            self.made[name] = made.function
            made.body(tree.body)
            if not made.b.block.is_terminated:
                made.b.unreachable()
        return self.made[name]


class Function(Builder):
    """One of them: double f(stream, functions, a, b, …)."""

    def __init__(self, family: Functions, name: str, parameters: list[str]) -> None:
        root = family.root
        given = ["word*", "word*", *["double"] * len(parameters)]
        super().__init__(f"{root.function.name}_{name}", "double", given, root.module)
        self.function.linkage = "internal"
        self.family, self.real = family, self.type("double")
        self.stream, self.table, *given = self.function.args
        self.places: dict[str, Any] = {}
        self.heads: list[Any] = []
        for parameter, value in zip(parameters, given):
            self.assign(parameter, value)

    def assign(self, name: str, value: Value) -> None:
        if name not in self.places:
            self.places[name] = self.alloca(self.real)
        self.b.store(value, self.places[name])

    # -- statements --------------------------------------------------------------------------------

    def body(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            getattr(self, f"do_{type(statement).__name__}")(statement)

    def do_Expr(self, node: ast.Expr) -> None:
        """A docstring."""

    def do_Assign(self, node: ast.Assign) -> None:
        target, value = node.targets[0], node.value
        if isinstance(target, ast.Tuple):
            assert isinstance(value, ast.Tuple)
            values = [self.value(v) for v in value.elts]
            for name, made in zip(target.elts, values):
                self.assign(name_of(name), made)
        else:
            self.assign(name_of(target), self.value(value))

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        name = name_of(node.target)
        made = self.value(node.value)
        self.assign(name, self.joined(node.op, self.b.load(self.places[name]), made))

    def do_Return(self, node: ast.Return) -> None:
        assert node.value is not None
        self.b.ret(self.value(node.value))

    def do_Continue(self, node: ast.Continue) -> None:
        self.b.branch(self.heads[-1])

    def do_If(self, node: ast.If) -> None:
        condition = self.condition(node.test)
        then, other, after = (self.block() for _ in range(3))
        self.b.cbranch(condition, then, other)
        for block, statements in ((then, node.body), (other, node.orelse)):
            self.b.position_at_end(block)
            self.body(statements)
            if not self.b.block.is_terminated:
                self.b.branch(after)
        self.b.position_at_end(after)

    def do_While(self, node: ast.While) -> None:
        head, inside, after = (self.block() for _ in range(3))
        self.b.branch(head)
        self.b.position_at_end(head)
        self.b.cbranch(self.condition(node.test), inside, after)
        self.b.position_at_end(inside)
        self.heads.append(head)
        self.body(node.body)
        self.heads.pop()
        if not self.b.block.is_terminated:
            self.b.branch(head)
        self.b.position_at_end(after)

    # -- conditions and values ---------------------------------------------------------------------

    def condition(self, node: ast.expr) -> Any:
        b = self.b
        if isinstance(node, ast.Constant):
            return self.type("bit")(int(bool(node.value)))
        if isinstance(node, ast.BoolOp):
            parts = [self.condition(v) for v in node.values]
            join = b.and_ if isinstance(node.op, ast.And) else b.or_
            return functools.reduce(join, parts)
        assert isinstance(node, ast.Compare), ast.dump(node)
        sign = COMPARED[type(node.ops[0])]
        compare = b.fcmp_unordered if sign == "!=" else b.fcmp_ordered
        return compare(sign, self.value(node.left), self.value(node.comparators[0]))

    def value(self, node: ast.expr) -> Any:
        return getattr(self, f"of_{type(node).__name__}")(node)

    def of_Constant(self, node: ast.Constant) -> Any:
        number: Any = node.value
        return self.real(float(number))

    def of_Name(self, node: ast.Name) -> Any:
        if node.id in self.places:
            return self.b.load(self.places[node.id])
        return self.real(float(getattr(self.family.python, node.id)))

    def of_Attribute(self, node: ast.Attribute) -> Any:
        return self.real(getattr(math, node.attr))

    def of_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self.b.fneg(self.value(node.operand))

    def of_BinOp(self, node: ast.BinOp) -> Any:
        return self.joined(node.op, self.value(node.left), self.value(node.right))

    def joined(self, op: ast.operator, x: Value, y: Value) -> Any:
        name = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}[type(op)]
        return getattr(self.b, name)(x, y)

    def of_IfExp(self, node: ast.IfExp) -> Any:
        return self.b.select(
            self.condition(node.test), self.value(node.body), self.value(node.orelse)
        )

    def of_Subscript(self, node: ast.Subscript) -> Any:
        """A constant of a tuple: TABLE[int(k)]."""
        values = getattr(self.family.python, name_of(node.value))
        type = self.ir.ArrayType(self.real, len(values))
        name = f"{self.function.name}_{name_of(node.value)}"
        table = self.module.globals.get(name) or self.ir.GlobalVariable(self.module, type, name)
        table.initializer, table.global_constant = self.ir.Constant(type, list(values)), True
        table.linkage = "internal"
        index = self.b.fptosi(self.value(node.slice), self.word)
        return self.b.load(self.b.gep(table, [self.word(0), index]))

    def of_Call(self, node: ast.Call) -> Any:
        b, function = self.b, node.func
        if isinstance(function, ast.Attribute) and name_of(function.value) == "stream":
            return self.one() if function.attr == "one" else self.normal()
        given = [a for a in node.args if not isinstance(a, ast.Name) or a.id not in PASSED]
        values = [self.value(a) for a in given]
        if isinstance(function, ast.Attribute):
            name = function.attr
            if name in FROM_C:
                return self.call(self.get(self.table, FROM_C.index(name)), "double", *values)
            return self.intrinsic(name, values)
        assert isinstance(function, ast.Name)
        if function.id in ("float", "int"):
            return values[0]
        if function.id == "abs":
            return self.intrinsic("fabs", values)
        if function.id == "rounded":
            single = b.fptrunc(values[0], self.type("float"))
            return b.fpext(single, self.real) if self.family.single else values[0]
        made = b.call(self.family.get(function.id), [self.stream, self.table, *values])
        if len(given) < len(node.args):  # it was handed the stream
            self.stop()
        return made

    def intrinsic(self, name: str, values: list[Value]) -> Any:
        """floor, ceil, sqrt or fabs."""
        type = self.ir.FunctionType(self.real, [self.real])
        symbol = f"llvm.{name}.f64"
        found = self.module.globals.get(symbol) or self.ir.Function(self.module, type, symbol)
        return self.b.call(found, values)

    # -- the stream --------------------------------------------------------------------------------

    def stop(self) -> None:
        """Returns where the numbers ran out."""
        ran_out = self.b.icmp_signed("!=", self.get(self.stream, OUT), self.word(0))
        with self.b.if_then(ran_out, likely=False):
            self.b.ret(self.real(0.0))

    def one(self) -> Any:
        """The next uniform number."""
        b, at = self.b, self.get(self.stream, NEXT)
        with b.if_then(b.icmp_signed(">=", at, self.get(self.stream, COUNT)), likely=False):
            self.put(self.stream, OUT, self.word(1))
            b.ret(self.real(0.0))
        self.put(self.stream, NEXT, b.add(at, self.word(1)))
        return self.get(self.pointer(self.get(self.stream, NUMBERS), self.real), at)

    def normal(self) -> Any:
        """The next normal number: the one that is kept, or the first of a new pair."""
        b = self.b
        fresh, after = self.block(), self.block()
        place = self.alloca(self.real)
        kept = b.bitcast(self.get(self.stream, KEPT), self.real)
        b.store(kept, place)
        has = b.icmp_signed("!=", self.get(self.stream, HAS), self.word(0))
        self.put(self.stream, HAS, self.word(0))
        b.cbranch(has, after, fresh)
        b.position_at_end(fresh)
        u1, u2 = self.one(), self.one()

        def c(name: str, x: Value) -> Any:
            return self.call(self.get(self.table, FROM_C.index(name)), "double", x)

        radius = self.intrinsic("sqrt", [b.fmul(self.real(-2.0), c("log1p", b.fneg(u2)))])
        angle = b.fmul(self.real(2 * math.pi), u1)
        b.store(b.fmul(radius, c("cos", angle)), place)
        second = b.bitcast(b.fmul(radius, c("sin", angle)), self.word)
        self.put(self.stream, KEPT, second)
        self.put(self.stream, HAS, self.word(1))
        b.branch(after)
        b.position_at_end(after)
        return b.load(place)


def name_of(node: ast.expr) -> str:
    """The name that an expression is."""
    return str(getattr(node, "id", ""))


PASSED = ("stream", "rounded")  # arguments that every compiled function has, or knows
