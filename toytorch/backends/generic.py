"""Functions of arrays, whichever module made them: by the kernels of its backend, where it has them."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.facts.hints import Array, ArrayModule, Fn, Sizes

tables: dict[str, dict[str, Any]] = {}  # of kernels, by the name of the array module
NO_KERNELS: dict[str, Any] = {}


def attempt(xp: Any, name: str, *args: Any) -> Any:
    """What the kernel of that name makes for arrays of a module; None where there is no such
    kernel, or where it has nothing faster than the module's own functions.

    >>> attempt(np, "repeat", np.array(2.0), (3,))
    array([2., 2., 2.])
    >>> attempt(np, "no such kernel", 1)
    """
    table = tables.get(xp.__name__, NO_KERNELS)
    return table[name](*args) if name in table else None


def undispatched(function: Fn) -> Any:
    """NumPy's function for NumPy's arrays alone: whether one of another package answers for it is not
    asked, which takes as long as joining a few numbers.

    >>> undispatched(np.concatenate)([[1], [2]])
    array([1, 2])
    """
    return getattr(function, "_implementation", function)


concatenate, where = undispatched(np.concatenate), undispatched(np.where)


def offers(xp: ArrayModule, name: str) -> bool:
    """Whether there is a kernel of that name for arrays of a module."""
    return name in tables.get(xp.__name__, ())


def named(xp: ArrayModule, name: str) -> Any:
    """A function of the module by its name, or the backend's own where the module's lacks types."""
    return tables.get(xp.__name__, {}).get(f"own {name}") or getattr(xp, name)


def worthwhile(a: Array, least: int) -> bool:
    """Whether a kernel should be asked for: from so many elements on, and always on a device, where
    what counts is the number of launches.

    >>> worthwhile(np.ones(3), 4), worthwhile(np.ones(4), 4)
    (False, True)
    """
    return bool(a.size >= least or a.__class__ is not np.ndarray)


def guarded(xp: ArrayModule, kernel: Fn) -> Any:
    """A kernel in the backend's care, which says its errors in PyTorch's words."""
    guard = tables.get(xp.__name__, {}).get("guard")
    return kernel if guard is None else guard(kernel)


def accumulate(xp: ArrayModule, name: str, array: Array, axis: int) -> Any:
    """The running total of a ufunc along a dimension, also where the module has none of its own."""
    made = attempt(xp, "accumulate", name, array, axis)
    return getattr(xp, name).accumulate(array, axis=axis) if made is None else made


def span(a: Any) -> tuple[int, int]:
    """The smallest and the largest of whole numbers, of which there are some.

    >>> span(np.array([3, -1, 2]))
    (-1, 3)
    """
    if a.__class__ is np.ndarray:
        return int(np.minimum.reduce(a, None)), int(np.maximum.reduce(a, None))
    return int(a.min()), int(a.max())


UNSIGNED = {n: np.dtype(f"u{n}") for n in (1, 2, 4, 8)}  # by bytes


def inside(a: Any, n: int) -> bool:
    """Whether signed whole numbers, of which there are some, are all places of a dimension of size n.

    >>> inside(np.array([3, 0, 2]), 4), inside(np.array([3, -1, 2]), 4), inside(np.array([4]), 4)
    (True, False, False)
    """
    if a.__class__ is np.ndarray:  # read without their signs, those below 0 are the largest
        return bool(np.maximum.reduce(a.view(UNSIGNED[a.itemsize]), None) < n)
    low, high = span(a)
    return low >= 0 and high < n


BYTES = 1 << 12  # truth values, up to which they are looked at as bytes, while NumPy begins


def every(mask: Any) -> bool:
    """Whether all truth values of NumPy's array hold.

    >>> every(np.array([True, False])), every(np.array([True]))
    (False, True)
    """
    if mask.size > BYTES:
        return bool(np.logical_and.reduce(mask, None))
    return b"\0" not in mask.tobytes()


def some(mask: Any) -> bool:
    """Whether one of the truth values of NumPy's array holds.

    >>> some(np.array([True, False])), some(np.array([False]))
    (True, False)
    """
    if mask.size > BYTES:
        return bool(np.logical_or.reduce(mask, None))
    return b"\1" in mask.tobytes()


FUNCTIONS: dict[np.ufunc, str] = {  # of arrays, that reduce as ufuncs do
    np.maximum: "amax", np.minimum: "amin", np.logical_or: "any", np.logical_and: "all",
    np.add: "sum",
}  # fmt: skip


def reduced(
    ufunc: np.ufunc, xp: ArrayModule, a: Array, axis: Any = None, keepdims: bool = False
) -> Any:
    """`ufunc.reduce`, without what NumPy's functions put around it, which takes as long for a few
    elements; by the module's function where it is another."""
    if a.__class__ is np.ndarray:
        return ufunc.reduce(a, axis, keepdims=keepdims)
    return getattr(xp, FUNCTIONS[ufunc])(a, axis=axis, keepdims=keepdims)


def at(
    xp: ArrayModule,
    name: str,
    target: Array,
    places: Array | tuple[Array | slice, ...],
    values: Array,
) -> None:
    """`ufunc.at`: target[places] joined with values, every place as often as it comes."""
    if xp is np:  # which has no other kernel for it
        getattr(np, name).at(target, places, values)
    elif attempt(xp, "at", name, target, places, values) is None:
        getattr(xp, name).at(target, places, values)


def reduceat(xp: ArrayModule, name: str, rows: Array, starts: Array) -> Any:
    """`ufunc.reduceat`: runs of rows joined, given where each run starts."""
    made = attempt(xp, "reduceat", name, rows, starts)
    return getattr(xp, name).reduceat(rows, starts, 0) if made is None else made


@functools.lru_cache(256)
def counting(n: int) -> Any:
    """The numbers 0 … n - 1, which nobody may write to."""
    made = np.arange(n)
    made.flags.writeable = False
    return made


KNOWN = 1 << 14  # indices up to which `beginnings` are kept


def flattened(xp: ArrayModule, index: Array, shape: Sizes, d: int) -> Any:
    """The places in a flattened array of a shape at which dimension d has these indices.

    >>> flattened(np, np.array([[1], [0]]), (2, 3), 1).tolist()
    [[1], [3]]
    """
    step = math.prod(shape[d + 1 :])
    many = index.__class__ is not np.ndarray or index.size > KNOWN
    first = beginnings.__wrapped__ if many else beginnings
    return (index if step == 1 else index * step) + first(xp, index.shape, shape, d)


@functools.lru_cache(256)
def beginnings(xp: ArrayModule, shape: Sizes, of: tuple[int, ...], d: int) -> Any:
    """`flattened` of indices 0, which nobody may write to."""
    made = xp.zeros((), np.int64)
    for k, n in enumerate(shape):
        if k != d and n > 1:
            step = xp.arange(n) * math.prod(of[k + 1 :])
            made = made + step.reshape([-1 if m == k else 1 for m in range(len(shape))])
    return made


def taken(xp: ArrayModule, a: Array, index: Array, d: int) -> Any:
    """`take_along_axis` for indices that count from the front and are inside.

    >>> taken(np, np.array([[1, 2], [3, 4]]), np.array([[1], [0]]), 1).tolist()
    [[2], [3]]
    """
    if a.ndim == 1:
        return a[index]
    if a.__class__ is not np.ndarray or index.size > KNOWN or not a.flags.c_contiguous:
        made = attempt(xp, "gather", a, d, index)
        return xp.take_along_axis(a, index, d) if made is None else made
    return a.reshape(-1)[flattened(xp, index, a.shape, d)]


def solve(xp: ArrayModule, a: Array, b: Array) -> Any:
    """`linalg.solve`: X of AX = B for batches of matrices that broadcast."""
    made = attempt(xp, "solve", a, b)
    return xp.linalg.solve(a, b) if made is None else made
