"""Programs of the loop language that NVIDIA's cards run as the CPU does: sums, what records state as
reductions, and the rules of optimizers, each in one launch where CuPy's functions take several.
"""

from __future__ import annotations

import ast
import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from toytorch.backends.cupy_rows import launch, real
from toytorch.facts.hints import Array, ArrayModule
from toytorch.kernels.fold import LETTERS, recipe_of
from toytorch.kernels.reduce import grouped
from toytorch.loops import Program, Recipe
from toytorch.loops.elementwise import Loop
from toytorch.loops.formula import CONSTANTS, Formula
from toytorch.loops.language.primitives import JOINS, adds
from toytorch.loops.one_kernel import order_of
from toytorch.loops.runtime import cuda

ALONE = 1 << 15  # elements of one total, which one block of threads adds up
PARTS = 64  # of columns, so that there are blocks for the whole card
TOTALS = 1024  # parts of one total
TOTAL = Recipe("x[k,j], c -> s[j]\n s = sum[k](x) / c")
COLUMNS = Recipe("x[k,i,j] -> s[k,j]\n s = sum[i](x)")


def folded(
    xp: ArrayModule,
    text: str,
    arrays: Mapping[str, Array | None],
    numbers: Mapping[str, Any],
    over: tuple[int, ...] | None = None,
    keepdim: bool = False,
    whole: bool = False,
) -> Any:
    """What the lines of `text` make of arrays of one shape (`kernels.fold`), or None: along columns,
    and in totals of many elements, few of a card's blocks would have work."""
    given = {name: a for name, a in arrays.items() if a is not None}
    first = next(iter(given.values()))
    if not first.size or not real(*given.values()):
        return None
    if any(a.shape != first.shape or not a.flags.c_contiguous for a in given.values()):
        return None
    shape = first.shape
    gone = set(range(len(shape)) if over is None else over)
    pattern, sizes = grouped(shape, gone)
    if pattern[-1:] != "s" or len(pattern) > len(LETTERS):
        return None
    missing = dict.fromkeys((name for name, a in arrays.items() if a is None), None)
    known = tuple({**numbers, **missing}.items())
    if pattern == "s" and first.size > ALONE:
        if whole or not adds_up(text, tuple(given), known):
            return None
        parts = parts_of(first.size, TOTALS)
        if parts < PARTS:
            return None
        pattern, sizes = "ks", [parts, first.size // parts]
    recipe, names = recipe_of(text, tuple(given), pattern, whole, known)
    left = [n for letter, n in zip(pattern, sizes) if whole or letter == "k"]
    made = xp.empty(left, first.dtype)
    values = {**numbers, "count": math.prod(shape[d] for d in gone)}
    tables = [a.reshape(sizes) for a in given.values()]
    launch(xp, recipe, first.dtype.name, made, *tables, *(float(values[name]) for name in names))
    if whole:
        return made.reshape(shape)
    if left and len(gone) == len(shape):
        made = made.sum()  # of the parts
    return made.reshape(
        [1 if d in gone else n for d, n in enumerate(shape) if keepdim or d not in gone]
    )


@functools.lru_cache(1024)
def parts_of(rows: int, most: int) -> int:
    """Into how many equal parts rows are divided."""
    return next(k for k in range(min(most, rows), 0, -1) if rows % k == 0)


@functools.lru_cache(1024)
def adds_up(text: str, arrays: tuple[str, ...], numbers: tuple[tuple[str, Any], ...]) -> bool:
    """Whether the results of parts add up to that of all: a sum, or one that is divided.

    >>> adds_up("d = a - b; sum(d * d) / count", ("a", "b"), ())
    True
    >>> adds_up("sqrt(sum(a * a))", ("a",), ()), adds_up("m = sum(a); sum(a - m)", ("a",), ())
    (False, False)
    """
    formula = Formula(text.replace(";", "\n"), arrays)
    known = {**CONSTANTS, **dict(numbers), "count": math.inf}
    trees = [tree for _, tree in formula.straight(known)[1]]
    calls = [n for tree in trees for n in ast.walk(tree) if isinstance(n, ast.Call)]
    joins = [c for c in calls if isinstance(c.func, ast.Name) and c.func.id in JOINS]
    last = trees[-1]
    if isinstance(last, ast.BinOp) and isinstance(last.op, ast.Div):
        if not isinstance(last.right, (ast.Name, ast.Constant)):
            return False
        last = last.left
    return len(joins) == 1 and last is joins[0] and adds(ast.unparse(last.func))


def sum(xp: ArrayModule, a: Array, over: tuple[int, ...] | None = None, mean: bool = False) -> Any:
    """Sums of columns, by parts of their rows; None for other sums, at which CuPy is as fast."""
    if over is None or not (a.size and real(a) and a.flags.c_contiguous):
        return None
    pattern, sizes = grouped(a.shape, set(over))
    if pattern != "sk":
        return None
    rows, columns = sizes
    parts = parts_of(rows, PARTS)
    if parts < 8 or rows // parts < 8:
        return None
    partial = xp.empty((parts, columns), a.dtype)
    launch(xp, COLUMNS, a.dtype.name, partial, a.reshape(parts, rows // parts, columns))
    made = xp.empty(columns, a.dtype)
    launch(xp, TOTAL, a.dtype.name, made, partial, float(rows if mean else 1))
    return made.reshape([n for d, n in enumerate(a.shape) if d not in over])


FACTORS = Recipe("u[i], keep, scale -> y[i]\n y = scale if u < keep else 0")


def factors(xp: ArrayModule, drawn: Array, keep: float, scale: float) -> Any:
    """The factors of dropout from uniform numbers: the scale where one is below `keep`, else 0."""
    made = xp.empty(drawn.shape, drawn.dtype)
    if drawn.size:
        launch(xp, FACTORS, drawn.dtype.name, made, drawn, keep, scale)
    return made


def cast(xp: ArrayModule, a: Array, type: np.dtype[Any]) -> Any:
    """A half type as float32, or the other way round; None for other types."""
    types = a.dtype.name, type.name
    if types not in CASTS or not a.size:
        return None
    stored, order = order_of(a.shape, [a])
    made = xp.empty(stored, type)
    made = made if order is None else made.transpose(order)
    cuda.run(xp, cast_program(a.ndim, *types), made, a)
    return made


CASTS = [(h, "float32") for h in ("float16", "bfloat16")]
CASTS += [(wide, half) for half, wide in CASTS]


@functools.cache
def cast_program(rank: int, given: str, wanted: str) -> Program:
    """The program of a cast over arrays of `rank` dimensions."""
    dims = ",".join(f"d{k}" for k in range(rank))
    return Program.parse(f"x[{dims}] {given} -> y[{dims}] {wanted}\n y = float32(x)")


def loop(xp: ArrayModule, loop: Loop, *args: Any) -> bool | None:
    """Runs a loop (`loops.elementwise`) on a card's arrays and says so; None where CuPy has to."""
    arrays, numbers = args[: len(loop.arrays)], args[len(loop.arrays) :]
    first = arrays[0]
    if not first.size or not real(*arrays) or any(a.shape != first.shape for a in arrays):
        return None
    if any(isinstance(n, xp.ndarray) for n in numbers):
        return None
    key = first.ndim, first.dtype.char
    program = loop.programs.get(key)
    if program is None:
        program = loop.programs[key] = loop.program(first.ndim, first.dtype.name)
    cuda.run(xp, program, *[args[k] for k in loop.order])
    return True
