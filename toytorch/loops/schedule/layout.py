"""The layout of the arrays a Program is called with, as far as its loops depend on it.

Dimensions that lie together in all arrays become one axis of the loops: adding two contiguous
arrays is a single loop, whatever their rank. Sizes and strides stay values of the call, so one
layout (and one compiled kernel) serves all sizes.

    >>> p = Program.parse("x[i,j], w[j] -> y[i,j]\\n y = x * w")
    >>> x, w = np.ones((3, 4), "float32"), np.ones(4, "float32")
    >>> print(layout_of(p, [x, x, w]))
    flat i | j, inner strides 1 1 1, y = x in place
    >>> q = Program.parse("x[i,j] -> y[i,j]\\n y = x * x")
    >>> print(layout_of(q, [np.ones_like(x), x.T[::-1].T]))
    flat i | j, inner strides 1 s
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.facts.hints import Sizes
from toytorch.loops.language.program import Program
from toytorch.loops.language.steps import Array, Unsupported
from toytorch.loops.language.types import TYPES


@dataclass(frozen=True)
class Described:
    """The facts of an array that is not NumPy's, as far as a layout asks for them."""

    shape: Sizes
    strides: Sizes
    dtype: np.dtype[Any]
    address: int

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def itemsize(self) -> int:
        return self.dtype.itemsize

    @property
    def flags(self) -> Described:
        return self

    @property
    def aligned(self) -> bool:
        return self.address % self.itemsize == 0

    @property
    def __array_interface__(self) -> dict[str, Any]:
        return {"data": (self.address, False)}


@dataclass(frozen=True)
class Layout:
    """How the loops of a program go over its arrays.

    mode     "flat" without reductions; "rows" where a reduced dimension lies innermost in memory,
             "columns" where a kept one does
    axes     the dimensions of each axis of the loops, outermost first
    reduced  for each axis, whether it vanishes
    inner    each array's stride along the last axis: "0", "1" or "s" for something else
    aliases  (output, input) numbers of arrays that are the same memory
    """

    mode: str
    axes: tuple[tuple[str, ...], ...]
    reduced: tuple[bool, ...]
    inner: tuple[str, ...]
    aliases: tuple[tuple[int, int], ...]
    names: tuple[str, ...]

    def __str__(self) -> str:
        axes = " | ".join(" ".join(a) + "*" * r for a, r in zip(self.axes, self.reduced))
        same = "".join(f", {self.names[o]} = {self.names[i]} in place" for o, i in self.aliases)
        return f"{self.mode} {axes}, inner strides {' '.join(self.inner)}{same}"


def arrays_of(program: Program) -> tuple[Array, ...]:
    """The arrays of a call, in its order: outputs, then inputs."""
    return (*program.outputs, *program.inputs)


def sizes_of(program: Program, arrays: Sequence[Any]) -> dict[str, int]:
    """The size of each dimension; an input of size 1 along it is broadcast."""
    sizes: dict[str, int] = {}
    wanted = arrays_of(program)
    if len(arrays) != len(wanted):
        raise TypeError(f"expected {len(wanted)} arrays, got {len(arrays)}")
    for a, given in zip(wanted, arrays):
        if type(given) not in (np.ndarray, Described):
            raise TypeError(f"{a} expects a numpy.ndarray, got {type(given).__name__}")
        if given.ndim != len(a.dims):
            raise ValueError(f"{a} got an array of shape {given.shape}")
        if str(given.dtype) != TYPES[a.type].numpy:
            raise TypeError(f"{a} got an array of {given.dtype}")
        for d, n in zip(a.dims, given.shape):
            sizes[d] = n if sizes.get(d, 1) == 1 else sizes[d]
    for k, (a, given) in enumerate(zip(wanted, arrays)):
        for d, n in zip(a.dims, given.shape):
            if n != sizes[d] and (n != 1 or k < len(program.outputs)):
                raise ValueError(f"{a} has the size {n} along {d}, which is {sizes[d]} elsewhere")
    return sizes


def layout_of(program: Program, arrays: Sequence[Any]) -> Layout:
    """The layout of these arrays (outputs, then inputs), or an error that says what is wrong."""
    sizes = sizes_of(program, arrays)
    strides = [steps_of(a, given) for a, given in zip(arrays_of(program), arrays)]
    over = set(program.over)
    for s in program.steps:
        if hasattr(s, "over") and set(s.over) != over:
            raise Unsupported(f"reductions over {s.over} and over {program.over} in one program")
    for o in program.outputs:
        if (not over <= set(o.dims) and over & set(o.dims)) or (
            set(program.dims) - over - set(o.dims)
        ):
            raise Unsupported(
                f"output {o} varies over other dimensions than the program's "
                f"{program.dims} without {program.over}"
            )
    order = _order(program, strides)
    groups = [[d for d in order if d not in over], [d for d in order if d in over]]
    alone = {str(s.args[0]) for s in program.steps if s.op == "index"}
    kept, gone = (_merge(g, sizes, strides, alone) for g in groups)
    varied = [d for d in order if sizes[d] != 1] or list(order)
    if not over:
        mode, axes = "flat", kept or [()]
        reduced = [False] * len(axes)
    elif not kept or varied[-1] in over:
        mode, axes, reduced = "rows", kept + gone, [False] * len(kept) + [True] * len(gone)
    else:
        mode, axes = "columns", [*kept[:-1], *gone, kept[-1]]
        reduced = [False] * (len(kept) - 1) + [True] * len(gone) + [False]
    inner = tuple(_class(axes[-1], s, sizes) for s in strides)
    names = tuple(a.name for a in arrays_of(program))
    return Layout(mode, tuple(axes), tuple(reduced), inner, _aliases(program, arrays), names)


def steps_of(a: Array, given: Any) -> dict[str, int]:
    """The stride along each dimension in elements; 0 where the array is broadcast."""
    step = given.itemsize
    if not given.flags.aligned or any(s % step for s in given.strides):
        raise Unsupported(f"{a}: the elements are not aligned")
    return {d: 0 if n == 1 else s // step for d, n, s in zip(a.dims, given.shape, given.strides)}


def _order(program: Program, strides: list[dict[str, int]]) -> list[str]:
    """Dimensions from the longest stride to the shortest, in the array that has most of them."""
    by_rank = sorted(strides, key=len, reverse=True)
    names = program.dims

    def length(d: str) -> int:
        return next((abs(s[d]) for s in by_rank if s.get(d)), 0)

    full = [d for d in names if length(d)]
    if not full:
        return list(names)
    ordered = iter(sorted(full, key=length, reverse=True))
    return [next(ordered) if length(d) else d for d in names]


def _merge(
    dims: list[str], sizes: dict[str, int], strides: list[dict[str, int]], alone: set[str]
) -> list[tuple[str, ...]]:
    """Neighbours that lie together in every array joined to one axis; but dimensions whose index
    is wanted stay alone."""
    axes: list[tuple[str, ...]] = []
    for d in reversed(dims):
        free = axes and alone.isdisjoint((d, *axes[-1]))
        if free and all(span((d, *axes[-1]), sizes, s) is not None for s in strides):
            axes[-1] = (d, *axes[-1])
        else:
            axes.append((d,))
    return axes[::-1]


def span(
    axis: tuple[str, ...], sizes: dict[str, int], strides: dict[str, int]
) -> tuple[int, int] | None:
    """The (size, stride) of an axis in one array; None where its dimensions do not lie together.

    Dimensions of size 1 fit anywhere. Compiled kernels do this same computation at each call.
    """
    size, stride = 1, 0
    for d in reversed(axis):
        n, s = sizes[d], strides.get(d, 0)
        if size == 1:
            size, stride = n, s
        elif n != 1:
            if s != stride * size:
                return None
            size *= n
    return size, stride


def _class(axis: tuple[str, ...], strides: dict[str, int], sizes: dict[str, int]) -> str:
    """How one array moves along the last axis."""
    if not set(axis) & set(strides):
        return "0"
    found = span(axis, sizes, strides)
    assert found is not None
    size, stride = found
    if size <= 1:
        return "1"
    return {0: "0", 1: "1"}.get(stride, "s")


def _aliases(program: Program, arrays: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Which outputs are which inputs; another overlap that starts at one address is refused."""
    count, found = len(program.outputs), []
    wanted = arrays_of(program)
    for o in range(count):
        for i in range(count, len(arrays)):
            x, y = arrays[o], arrays[i]
            if x.__array_interface__["data"][0] != y.__array_interface__["data"][0]:
                continue
            if (x.strides, x.shape, x.dtype) == (y.strides, y.shape, y.dtype) and (
                wanted[o].dims == wanted[i].dims
            ):
                found.append((o, i))
            elif x.size and y.size:
                raise Unsupported(f"{wanted[o]} overlaps {wanted[i]} in another order")
    return tuple(found)
