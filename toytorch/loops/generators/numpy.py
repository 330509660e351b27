"""A Program through NumPy, a block of rows at a time: where llvmlite is missing.

The blocks are small enough that what is computed in between stays in the cache.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from toytorch.facts.hints import Array
from toytorch.loops.language.functions import FUNCTIONS, converter
from toytorch.loops.language.primitives import PRIMITIVES
from toytorch.loops.language.program import Program
from toytorch.loops.language.steps import Reduce, Step
from toytorch.loops.language.types import TYPES, computed, kind
from toytorch.loops.schedule.layout import arrays_of, sizes_of

BLOCK = 1 << 15  # elements of a block
JOINED: dict[str, Any] = {
    "sum": np.add, "prod": np.multiply, "max": np.maximum, "fmax": np.fmax, "min": np.minimum,
    "any": np.logical_or, "all": np.logical_and,
}  # fmt: skip
# Where an expression for single elements is none for arrays.
ARRAYS: dict[str, Any] = {
    "where": np.where,
    "logical_and": np.logical_and,
    "logical_or": np.logical_or,
    "logical_not": np.logical_not,
}


def element(type: str, value: Array | float) -> Any:
    """A Python number as an element of a type."""
    if kind(type) == "f":
        return np.dtype(type).type(float(value))
    whole = int(value)
    bits = TYPES[type].bits
    if type == "bool":
        return np.bool_(whole != 0)
    whole &= (1 << bits) - 1
    if kind(type) == "i" and whole >> (bits - 1):
        whole -= 1 << bits
    return np.dtype(type).type(whole)


def run(program: Program, args: tuple[Array | float, ...]) -> None:
    """Computes the outputs, the first arguments, from the inputs and the scalars."""
    arrays = args[: len(arrays_of(program))]
    sizes = sizes_of(program, arrays)
    scalars = {n.name: element(n.type, v) for n, v in zip(program.scalars, args[len(arrays) :])}
    with np.errstate(all="ignore"):
        for part in blocks(program, sizes):
            one_block(program, arrays, sizes, scalars, part)


def blocks(program: Program, sizes: dict[str, int]) -> Iterator[dict[str, slice]]:
    """Slices of the first dimension that is not reduced, so that a block has BLOCK elements."""
    kept = [d for d in program.dims if d not in program.over and sizes[d] > 1]
    if not kept:
        yield {}
        return
    first, total = kept[0], 1
    for n in sizes.values():
        total *= n
    rows = max(1, BLOCK * sizes[first] // max(total, 1))
    for start in range(0, sizes[first], rows):
        yield {first: slice(start, start + rows)}


def one_block(
    program: Program,
    arrays: Any,
    sizes: dict[str, int],
    scalars: dict[str, Any],
    part: dict[str, slice],
) -> None:
    """All steps on a part of the arrays, each with one NumPy dimension for each dimension."""
    dims = program.dims
    values: dict[str, Any] = dict(scalars)
    count = len(program.outputs)
    for a, given in zip(program.inputs, arrays[count:]):
        view = spread(given, a.dims, dims, part)
        values[a.name] = view if computed(a.type) == a.type else view.astype("float32")
    for s in program.steps:
        if isinstance(s, Reduce):
            values[s.name] = reduced(s, values[s.arg], dims, sizes)
        elif s.op == "index":
            d = str(s.args[0])
            along = np.arange(sizes[d])[part.get(d, slice(None))]
            values[s.name] = along.reshape([-1 if d == other else 1 for other in dims])
        else:
            values[s.name] = stepped(s, values, sizes)
    for o, given in zip(program.outputs, arrays):
        index = tuple(part.get(d, slice(None)) for d in o.dims)
        order = [dims.index(d) for d in o.dims]
        value = np.asarray(values[o.name])
        target = given[index]
        shape = [1] * len(dims)
        for d, n in zip(o.dims, target.shape):
            shape[dims.index(d)] = n
        whole = np.broadcast_to(value, shape)
        rest = [k for k in range(len(dims)) if k not in order]
        given[index] = whole.transpose(order + rest).reshape(target.shape)


def spread(a: Any, own: tuple[str, ...], dims: tuple[str, ...], part: dict[str, slice]) -> Any:
    """A part of an array, transposed to the program's order, size 1 where it has no dimension."""
    index = tuple(
        part.get(d, slice(None)) if a.shape[k] != 1 else slice(None) for k, d in enumerate(own)
    )
    order = sorted(range(len(own)), key=lambda k: dims.index(own[k]))
    view = a[index].transpose(order)
    missing = tuple(k for k, d in enumerate(dims) if d not in own)
    return np.expand_dims(view, missing)


def stepped(s: Step, values: dict[str, Any], sizes: dict[str, int]) -> Any:
    """One elementwise step."""
    if s.op == "extent":
        return element(s.type, sizes[str(s.args[0])])
    args = [values[a] if isinstance(a, str) else a for a in s.args]
    if s.op == "cast":
        return converter(s.type)(args[0])
    if s.op in ARRAYS:
        made = ARRAYS[s.op](*args)
    else:
        places = {f"a{k}": a for k, a in enumerate(args)}
        text = PRIMITIVES[s.op].python.format(*places)
        made = eval(text, FUNCTIONS, places)  # text of our own table
    return made.astype(s.type, copy=False) if hasattr(made, "astype") else element(s.type, made)


def reduced(s: Reduce, value: Array, dims: tuple[str, ...], sizes: dict[str, int]) -> Any:
    """One reduction; its dimensions stay, with size 1."""
    axes = tuple(dims.index(d) for d in s.over)
    value = np.asarray(value)
    shape = list(value.shape) or [1] * len(dims)
    for k, d in zip(axes, s.over):
        shape[k] = sizes[d]
    whole = np.broadcast_to(value, shape)
    join = JOINED[s.op]
    if s.op == "sum" and s.type == "float32":
        return join.reduce(whole, axis=axes, dtype="float64", keepdims=True).astype("float32")
    return join.reduce(whole, axis=axes, dtype=s.type, keepdims=True)
