"""Compiled passes over the rows of a matrix: sums, means, softmax, normalisation.

A text like

    m = max(x)
    y = exp(x - m)
    s = sum(y)
    y = y / s

is run row by row, so that a row stays in the first-level cache from one line to the next. A line
that assigns an array is done for every element of the row; `sum` and `max` make one number of a
row; any other line computes with such numbers. `n` is the length of a row.
"""

from __future__ import annotations

import ast
import ctypes
from typing import Any

import numpy as np

from toytorch.backends import native
from toytorch.backends.parts import LEAST, in_parts

BLOCK = 4096  # elements whose sum is taken in the array's own type, before it goes to float64


class Rows:
    """The passes in `text`, over arrays of shape (rows, n).

    arrays   names of (rows, n) arrays; columns: of (n,) arrays; each: of (rows,) arrays, which
             are read, or written by the line with their name; numbers: of numbers. This is the
             order of the call.
    """

    def __init__(self, text: str, arrays: str, columns: str = "", each: str = "",
                 numbers: str = "") -> None:
        self.text, self.numbers = text, numbers.split()
        self.arrays, self.columns, self.each = arrays.split(), columns.split(), each.split()
        self.extents = ("all",) * len(self.arrays) + ("column",) * len(self.columns) + (
            "row",) * len(self.each)
        self.compiled: dict[str, Any] = {}

    def __call__(self, rows: int, n: int, *args: Any) -> bool:
        """Runs the passes and says so; False, and nothing done, where NumPy has to do it."""
        kind = args[0].dtype
        if rows * n < native.SMALLEST or kind.char not in "fd":
            return False
        sizes = {"all": rows * n, "column": n, "row": rows}
        for a, extent in zip(args, self.extents):
            wanted = sizes[extent]
            if a.__class__ is not np.ndarray or a.dtype is not kind or a.size != wanted:
                return False
            flags = a.flags
            if not (flags.c_contiguous and flags.aligned):
                return False
        run = self.compiled.get(kind.char)
        if run is None:
            run = self.compile(kind.char)
        if run is False:
            return False
        count = len(self.extents)
        if rows * n < 8 * LEAST or rows == 1:
            run(rows, n, *map(id, args[:count]), *args[count:])
            return True

        def part(first: int, end: int) -> None:
            own = [a if extent == "column" else a.reshape(rows, -1)[first:end]
                   for a, extent in zip(args, self.extents)]
            run(end - first, n, *map(id, own), *args[count:])
        in_parts(rows, rows * n, part)
        return True

    def compile(self, kind: str) -> Any:
        """The passes as a ctypes function over elements of one type ("f" or "d")."""
        number = ctypes.c_float if kind == "f" else ctypes.c_double
        arguments = [ctypes.c_int64] * 2 + [ctypes.c_void_p] * len(self.extents) + [
            number] * len(self.numbers)
        run = self.compiled[kind] = native.works() and native.compiled(
            lambda ir: Passes(ir, self, kind).module, "rows", arguments)
        return run


class Passes:
    """LLVM for rows(R, n, array..., number...)."""

    def __init__(self, ir: Any, rows: Rows, kind: str) -> None:
        self.ir, self.rows = ir, rows
        self.real = ir.FloatType() if kind == "f" else ir.DoubleType()
        self.double, self.size = ir.DoubleType(), ir.IntType(64)
        self.module = ir.Module("rows")
        names = [*rows.arrays, *rows.columns, *rows.each]
        objects = [ir.IntType(8).as_pointer()] * len(names)
        self.function = ir.Function(self.module, ir.FunctionType(
            ir.VoidType(), [self.size, self.size, *objects, *[self.real] * len(rows.numbers)]),
            "rows")
        count, self.n, *rest = self.function.args
        b = self.b = ir.IRBuilder(self.function.append_basic_block("entry"))
        self.data = {name: native.elements(ir, b, obj, self.real.as_pointer())
                     for name, obj in zip(names, rest)}
        length = b.sitofp(self.n, self.real)
        numbers = dict(zip(rows.numbers, rest[len(names):]))
        self.loop(self.size(0), count, lambda r: self.row(r, {**numbers, "n": length}))
        self.b.ret_void()

    def loop(self, start: Any, end: Any, body: Any, carried: Any = ()) -> list[Any]:
        """for i in range(start, end): carried = body(i, *carried)."""
        b, before = self.b, self.b.block
        head, turn, after = (self.function.append_basic_block() for _ in range(3))
        b.branch(head)
        b.position_at_end(head)
        i = b.phi(self.size)
        i.add_incoming(start, before)
        phis = [b.phi(v.type) for v in carried]
        for phi, v in zip(phis, carried):
            phi.add_incoming(v, before)
        b.cbranch(b.icmp_signed("<", i, end), turn, after)
        b.position_at_end(turn)
        results = body(i, *phis) or []
        i.add_incoming(b.add(i, self.size(1), flags=["nsw"]), b.block)
        for phi, v in zip(phis, results):
            phi.add_incoming(v, b.block)
        b.branch(head)
        b.position_at_end(after)
        return phis

    def row(self, r: Any, values: dict[str, Any]) -> None:
        """All lines, for one row."""
        b = self.b
        first = b.mul(r, self.n)
        lines = ast.parse(self.rows.text).body
        written = {line.targets[0].id for line in lines}  # type: ignore[attr-defined]
        values |= {name: b.load(b.gep(self.data[name], [r])) for name in self.rows.each
                   if name not in written}
        for line in lines:
            assert isinstance(line, ast.Assign)
            target = line.targets[0]
            assert isinstance(target, ast.Name)
            value = self.totals(line.value, first, values)
            if target.id in self.rows.arrays:
                self.loop(self.size(0), self.n, lambda j, line=line: self.formula(
                    j, first, values).assign(line))
                continue
            else:
                formula = native.Formula(self.ir, b, self.real, {
                    name: b.gep(self.data[name], [r]) for name in self.rows.each}, dict(values))
                values[target.id] = formula.value(value)
            if target.id in self.rows.each:
                b.store(values[target.id], b.gep(self.data[target.id], [r]))

    def totals(self, e: Any, first: Any, values: dict[str, Any]) -> Any:
        """The expression with a name in place of every sum(...) and max(...) in it."""
        passes = self

        class Names(ast.NodeTransformer):
            def visit_Call(self, call: Any) -> Any:
                made = {"sum": passes.sum, "max": passes.max}.get(call.func.id)
                if made is None:
                    return self.generic_visit(call)
                name = f"total {len(values)}"
                values[name] = made(call.args[0], first, values)
                return ast.Name(name)
        return Names().visit(e)

    def formula(self, j: Any, first: Any, values: dict[str, Any]) -> Any:
        """A formula for element j of the row."""
        b = self.b
        places = {name: b.gep(self.data[name], [b.add(first, j)]) for name in self.rows.arrays}
        places |= {name: b.gep(self.data[name], [j]) for name in self.rows.columns}
        return native.Formula(self.ir, b, self.real, places, dict(values))

    def sum(self, e: Any, first: Any, values: dict[str, Any]) -> Any:
        """Σ over the row: blocks in vectors of the array's type, their sums in float64."""
        b = self.b
        block, zero = self.size(BLOCK), self.real(0.0)
        blocks = b.sdiv(b.add(self.n, self.size(BLOCK - 1)), block)

        def some(k: Any, total: Any) -> list[Any]:
            start = b.mul(k, block)
            end = b.add(start, block)
            end = b.select(b.icmp_signed("<", end, self.n), end, self.n)
            part, = self.loop(start, end, lambda j, t: [b.fadd(
                t, self.formula(j, first, values).value(e), flags=("reassoc", "contract"))], [zero])
            return [b.fadd(total, self.widened(part))]
        total, = self.loop(self.size(0), blocks, some, [self.double(0.0)])
        return total if self.real == self.double else b.fptrunc(total, self.real)

    def widened(self, value: Any) -> Any:
        return value if self.real == self.double else self.b.fpext(value, self.double)

    def max(self, e: Any, first: Any, values: dict[str, Any]) -> Any:
        """The largest of the row; any number where there are NaNs."""
        b = self.b
        lowest = self.ir.Constant(self.real, float("-inf"))

        def larger(j: Any, top: Any) -> list[Any]:
            x = self.formula(j, first, values).value(e)
            flags = ("nnan", "nsz")  # without these LLVM compares one number after the other
            return [b.select(b.fcmp_ordered(">", x, top, flags=flags), x, top, flags=flags)]
        top, = self.loop(self.size(0), self.n, larger, [lowest])
        return top


SUM = Rows("s = sum(x)", arrays="x", each="s")
MEAN = Rows("s = sum(x) / n", arrays="x", each="s")


def total(a: Any, axes: Any, rule: Rows = SUM) -> Any:
    """The sum (or the mean) over dimensions that lie together at an end, or None.

    The result has the dimensions that are left; None means that NumPy has to do it.
    """
    if len(axes) == a.ndim:
        made = np.empty((), a.dtype)
        return made if rule(1, a.size, a, made) else None
    if not axes or a.dtype.char not in "fd" or not a.flags.c_contiguous:
        return None
    left = [d for d in range(a.ndim) if d not in axes]
    kept = [a.shape[d] for d in left]
    count = 1
    for n in kept:
        count *= n
    if left[-1] == len(left) - 1:  # the dimensions that are summed come last
        made = np.empty(kept, a.dtype)
        return made if rule(count, a.size // count, a, made) else None
    if left[0] == a.ndim - len(left):  # they come first
        made = column_sum(a.reshape(-1, count))
        if made is not None and rule is MEAN:
            made /= a.dtype.type(a.size // count)
        return None if made is None else made.reshape(kept)
    return None


# -- sums down the columns ------------------------------------------------------------------------

_column_sums: dict[str, Any] = {}
TOGETHER = 8  # rows added at once: the sums so far are read and written once for all of them


def column_sum(a: Any) -> Any:
    """The sums over the first dimension of an (R, n) array; None where NumPy has to do it."""
    kind = a.dtype.char
    if kind not in "fd" or a.size < native.SMALLEST or not a.flags.c_contiguous or (
            a.shape[0] < TOGETHER):
        return None
    run = _column_sums.get(kind)
    if run is None:
        run = _column_sums[kind] = native.works() and native.compiled(
            lambda ir: column_module(ir, kind), "columns",
            [ctypes.c_int64] * 2 + [ctypes.c_void_p] * 2)
    if run is False:
        return None
    result = np.zeros(a.shape[1], a.dtype)
    whole = a.shape[0] - a.shape[0] % TOGETHER
    run(whole, a.shape[1], id(result), id(a))
    for row in a[whole:]:
        result += row
    return result


def column_module(ir: Any, kind: str) -> Any:
    """LLVM for columns(R, n, result, a), R being a multiple of TOGETHER."""
    module = Passes.__new__(Passes)
    module.ir, module.size = ir, ir.IntType(64)
    real = ir.FloatType() if kind == "f" else ir.DoubleType()
    module.module = ir.Module("columns")
    array = ir.IntType(8).as_pointer()
    module.function = ir.Function(module.module, ir.FunctionType(
        ir.VoidType(), [module.size, module.size, array, array]), "columns")
    count, n, result, source = module.function.args
    b = module.b = ir.IRBuilder(module.function.append_basic_block("entry"))
    result, source = (native.elements(ir, b, x, real.as_pointer()) for x in (result, source))
    groups = b.sdiv(count, module.size(TOGETHER))

    def group(g: Any) -> None:
        first = b.mul(b.mul(g, module.size(TOGETHER)), n)

        def column(j: Any) -> None:
            values = [b.load(b.gep(source, [b.add(b.add(first, b.mul(n, module.size(k))), j)]))
                      for k in range(TOGETHER)]
            while len(values) > 1:
                values = [b.fadd(x, y) for x, y in zip(values[::2], values[1::2])]
            place = b.gep(result, [j])
            b.store(b.fadd(b.load(place), values[0]), place)
        module.loop(module.size(0), n, column)
    module.loop(module.size(0), groups, group)
    b.ret_void()
    return module.module
