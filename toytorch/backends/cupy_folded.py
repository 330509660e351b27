"""Programs of the loop language that NVIDIA's cards run as the CPU does: sums, what records state as
reductions, and the rules of optimizers, each in one launch where CuPy's functions take several.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from toytorch.backends.cupy_hand import real
from toytorch.backends.cupy_rows import launch
from toytorch.facts.hints import Array, ArrayModule
from toytorch.kernels.fold import LETTERS, grouped, recipe_of
from toytorch.loops import Program, Recipe
from toytorch.loops.elementwise import Loop
from toytorch.loops.one_kernel import order_of
from toytorch.loops.runtime import cuda

ALONE = 1 << 15  # elements of one total, which one block of threads adds up
PARTS = 64  # of columns, so that there are blocks for the whole card
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
    if pattern == "s" and first.size > ALONE:
        return None
    missing = dict.fromkeys((name for name, a in arrays.items() if a is None), None)
    counted = float(math.prod(shape[d] for d in gone))
    recipe, names = recipe_of(
        text, tuple(given), pattern, whole, tuple({**numbers, **missing}.items())
    )
    kept = shape if whole else tuple(n for d, n in enumerate(shape) if d not in gone)
    made = xp.empty(kept, first.dtype)
    left = [n for letter, n in zip(pattern, sizes) if whole or letter == "k"]
    scalars = [counted if name == "count" else float(numbers[name]) for name in names]
    tables = [a.reshape(sizes) for a in given.values()]
    launch(xp, recipe, first.dtype.name, made.reshape(left), *tables, *scalars)
    if keepdim and not whole:
        return made.reshape([1 if d in gone else n for d, n in enumerate(shape)])
    return made


@functools.lru_cache(1024)
def parts_of(rows: int) -> int:
    """Into how many equal parts rows are divided."""
    return next(k for k in range(min(PARTS, rows), 0, -1) if rows % k == 0)


def sum(xp: ArrayModule, a: Array, over: tuple[int, ...] | None = None, mean: bool = False) -> Any:
    """Sums of columns, by parts of their rows; None for other sums, at which CuPy is as fast."""
    if over is None or not (a.size and real(a) and a.flags.c_contiguous):
        return None
    pattern, sizes = grouped(a.shape, set(over))
    if pattern != "sk":
        return None
    rows, columns = sizes
    parts = parts_of(rows)
    if parts < 8 or rows // parts < 8:
        return None
    partial = xp.empty((parts, columns), a.dtype)
    launch(xp, COLUMNS, a.dtype.name, partial, a.reshape(parts, rows // parts, columns))
    made = partial.sum(0)
    if mean:
        made /= made.dtype.type(rows)
    return made.reshape([n for d, n in enumerate(a.shape) if d not in over])


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
