"""Elements by index on NVIDIA's cards: gather, scatter, rows by their numbers, and sums in such places.

An array is seen as (blocks, n, inner), of which the middle dimension is the one that is indexed. An
index that is outside is noted in a flag, which the host reads afterwards: one wait instead of two for
the smallest and the largest. Sums at one place are added in the order in which threads come to it,
as PyTorch's are on a card.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends.cupy_hand import Each, in_rows
from toytorch.backends.cupy_rows import real
from toytorch.facts.hints import Array, ArrayModule, Sizes

WIDE = ((16, "complex128"), (8, "int64"), (4, "int32"))
MOVED = {1: "uint8", 2: "int16", 4: "int32", 8: "int64"}  # types that stand for all of their size
AT = """
const I k = i % INNER, b = i / INNER / COUNT;
const long long at = index[i];
if (at < 0 || at >= N) {
    *outside = 1;
    continue;
}
"""
PARAMS = "T* made, const T* given, const long long* index, int* outside, I N, I COUNT, I INNER"
GATHER = Each(AT + "made[i] = given[(b * N + (I)at) * INNER + k];", PARAMS)
PUT = Each(AT + "made[(b * N + (I)at) * INNER + k] = given[i];", PARAMS)
ADD = Each(AT + "atomicAdd(made + (b * N + (I)at) * INNER + k, given[i]);", PARAMS)
# One index for each slice.
SLICES = AT.replace("index[i]", "index[i / INNER % COUNT]")
SELECT = Each(
    SLICES + "made[i] = given[(b * N + (I)at) * INNER + k];",
    PARAMS,
    "struct alignas(16) Wide { double x, y; };",
)
ADD_SLICES = Each(SLICES + "atomicAdd(made + (b * N + (I)at) * INNER + k, given[i]);", PARAMS)
PICKED = Each(
    """
    const long long at = numbers[i];
    if (at < 0 || at >= N) totals[1] = 1;
    else atomicAdd(totals, (double)given[i * N + (I)at] / (double)count);
    """,
    "double* totals, const T* given, const long long* numbers, I N",
)
KNOWN = Each("if (numbers[i] >= 0) atomicAdd(known, 1);", "int* known, const long long* numbers")
PUT_PICKED = Each(
    """
    const long long at = numbers[i];
    if (at >= 0 && at < N) made[i * N + (I)at] = -value[0] / T(known[0]);
    """,
    "T* made, const long long* numbers, const T* value, const int* known, I N",
)


def moved(a: Array) -> Any:
    """Elements as integers of their size, which a kernel moves; None for others than 1 to 8 bytes."""
    name = MOVED.get(a.dtype.itemsize)
    return None if name is None else a.view(name)


def moved_widely(made: Any, given: Any, inner: int) -> tuple[Any, Any, int]:
    """Two arrays in rows as elements of up to 16 bytes, of which one load fetches several of theirs,
    and how many of these lie behind each place."""
    size = inner * made.itemsize
    for width, name in WIDE:
        if size % width == 0 and made.data.ptr % width == 0 == given.data.ptr % width:
            flat = made.reshape(-1), given.reshape(-1)
            return flat[0].view(name), flat[1].view(name), size // width
    return moved(made), moved(given), inner


def around(shape: Sizes, d: int) -> tuple[int, int]:
    """The sizes of the indexed dimension, and of what lies behind each of its places."""
    return shape[d], math.prod(shape[d + 1 :])


def run(
    xp: ArrayModule, kernel: Each, made: Array, given: Array, index: Array, n: int, count: int,
    inner: int, total: int,
) -> bool:  # fmt: skip
    """Launches a kernel, and says whether all indices were inside."""
    outside = xp.zeros(1, np.int32)
    reach = max(made.size, given.size)
    kernel(xp, made.dtype, total, made, given, index, outside, n, count, inner, reach=reach)
    return not int(outside[0])


def indexed(a: Array, d: int, i: Array) -> bool:
    """Whether an index has an element for each result."""
    return bool(
        i.size
        and i.dtype.kind == "i"
        and a.ndim == i.ndim > 0
        and a.shape[:d] == i.shape[:d]
        and a.shape[d + 1 :] == i.shape[d + 1 :]
    )


def gather(xp: ArrayModule, a: Array, d: int, i: Array) -> Any:
    """out[b, m, k] = a[b, i[b, m, k], k]; None where an index is outside."""
    if not indexed(a, d, i) or a.dtype.itemsize not in MOVED:
        return None
    made = xp.empty(i.shape, a.dtype)
    i = in_rows(xp, i.astype(np.int64, copy=False))
    n, inner = around(a.shape, d)
    arrays = moved(made), moved(in_rows(xp, a))
    return made if run(xp, GATHER, *arrays, i, n, i.shape[d], inner, i.size) else None


def scatter(
    xp: ArrayModule, target: Array, d: int, i: Array, values: Array, adds: bool
) -> bool | None:
    """target[b, i[b, m, k], k] = values[b, m, k], or +=; None where an index is outside, and the
    target is spoilt."""
    if (
        not indexed(target, d, i)
        or not target.flags.c_contiguous
        or values.shape != i.shape
        or values.dtype != target.dtype
        or target.dtype.itemsize not in MOVED
        or (adds and not real(target))
    ):
        return None
    i = in_rows(xp, i.astype(np.int64, copy=False))
    n, inner = around(target.shape, d)
    to, given, kernel = target, in_rows(xp, values), ADD
    if not adds:
        to, given, kernel = moved(target), moved(given), PUT
    return run(xp, kernel, to, given, i, n, i.shape[d], inner, i.size) or None


def select(xp: ArrayModule, a: Array, d: int, numbers: Array) -> Any:
    """The places of a dimension that numbers name; None where one is outside."""
    if not a.size or not numbers.size or numbers.dtype.kind != "i":
        return None
    if a.dtype.itemsize not in MOVED:
        return None
    made = xp.empty((*a.shape[:d], numbers.size, *a.shape[d + 1 :]), a.dtype)
    numbers = in_rows(xp, numbers.astype(np.int64, copy=False))
    n, inner = around(a.shape, d)
    to, given, inner = moved_widely(made, in_rows(xp, a), inner)
    fine = run(xp, SELECT, to, given, numbers, n, numbers.size, inner, to.size)
    return made if fine else None


def known_rows(xp: ArrayModule, table: Array, numbers: Array) -> Any:
    """table[numbers]; None where one is outside."""
    made = select(xp, table, 0, numbers.reshape(-1))
    return None if made is None else made.reshape(*numbers.shape, *table.shape[1:])


def add_slices(
    xp: ArrayModule, target: Array, d: int, numbers: Array, values: Array
) -> bool | None:
    """Adds slices of values to those of target that numbers name; None where one is outside."""
    if not (
        values.size
        and real(target, values)
        and target.flags.c_contiguous
        and numbers.dtype.kind == "i"
        and values.ndim == target.ndim
        and values.shape[d] == numbers.size
    ):
        return None
    numbers = in_rows(xp, numbers.astype(np.int64, copy=False))
    numbers = xp.where(numbers < 0, numbers + target.shape[d], numbers)
    n, inner = around(target.shape, d)
    given = in_rows(xp, values)
    return run(xp, ADD_SLICES, target, given, numbers, n, numbers.size, inner, values.size) or None


def add_rows(xp: ArrayModule, rows: Array, numbers: Array, count: int) -> Any:
    """The sums (count, D) of rows (M, D) with the same number, all of them known to be inside."""
    if not (rows.size and real(rows) and numbers.dtype.kind == "i"):
        return None
    made = xp.zeros((count, rows.shape[1]), rows.dtype)
    numbers = in_rows(xp, numbers.astype(np.int64, copy=False))
    outside = xp.zeros(1, np.int32)
    ADD_SLICES(
        xp, rows.dtype, rows.size, made, in_rows(xp, rows), numbers, outside, count, numbers.size,
        rows.shape[1], reach=made.size,
    )  # fmt: skip
    return made


def picked_loss(xp: ArrayModule, table: Array, numbers: Array) -> Any:
    """The mean of 0 - table[i, numbers[i]]; None where a number is outside."""
    if not (table.size and real(table) and numbers.dtype == np.int64 and numbers.ndim == 1):
        return None
    totals, n = xp.zeros(2, np.float64), table.shape[1]
    given = in_rows(xp, table), in_rows(xp, numbers)
    PICKED(xp, table.dtype, numbers.size, totals, *given, n, reach=table.size)
    loss = xp.subtract(0, totals[0]).astype(
        table.dtype
    )  # 0 and not -0, as all sums that begin with 0
    return None if float(totals[1]) else loss


def put_picked(xp: ArrayModule, table: Array, numbers: Array, value: Array) -> bool:
    """table[i, numbers[i]] = -value / n, and says so; n is how many numbers there are that are not
    negative, as those are which the loss ignored."""
    if not (table.size and real(table, value) and numbers.dtype == np.int64):
        return False
    numbers, known = in_rows(xp, numbers), xp.zeros(1, np.int32)
    KNOWN(xp, table.dtype, numbers.size, known, numbers)
    given = table, numbers, value, known, table.shape[1]
    PUT_PICKED(xp, table.dtype, numbers.size, *given, reach=table.size)
    return True
