"""What shape, type and strides a call's results have, found by running it on zeros.

A kernel knows how its results look; so there is no second rule for each op. Arrays of moderate size
get zeros of their size. Large ones get small models: every size is replaced by a small prime, the
kernel runs, and the primes in the results' shapes are read as the sizes they stand for. Two models
with other primes have to agree, so that a size which the kernel computes (as `cat` does) is not taken
for one that it passes on. Where they do not, the call runs on zeros of full size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from toytorch.backends.meta.array import MetaArray
from toytorch.backends.simulator.array import root_of
from toytorch.backends.sparse import TABLES
from toytorch.facts import state
from toytorch.facts.device import device
from toytorch.facts.hints import Array

SMALL = 1 << 16  # elements that cost nothing to compute
LARGE = 1 << 28  # elements that are not computed
KEPT = 16  # sizes up to this one stay what they are in a model
PRIMES = ((17, 23, 31, 41, 47, 59, 67, 73), (19, 29, 37, 43, 53, 61, 71, 79))
META = device("meta")
MAKING = ("empty", "zeros", "ones", "full")  # by their shape alone


class Inference:
    """Runs functions of host arrays for what their results look like."""

    def run(
        self,
        name: str,
        function: Callable[..., Any],
        args: tuple[object, ...],
        kwargs: dict[str, object] | None = None,
        *,
        target: MetaArray | None = None,
        waits: bool = False,
        **how: object,
    ) -> Any:
        """Arrays without memory for the results of `function(*args)`.

        target   what the function would write into and return
        waits    whether a result's shape depends on elements, which are not there
        """
        if waits:
            raise NotImplementedError(
                f"aten::{name}: attempted to run this operator with Meta tensors, but there was no "
                "fake impl or Meta kernel registered for this operator."
            )
        kwargs = kwargs or {}
        if name in MAKING and not any(arrays_in((args, kwargs))):
            return new_array(name, args, kwargs)
        operands = list(arrays_in((args, kwargs)))
        call = Call(function, args, kwargs)
        if sum(stored(a) for a in operands) > SMALL:
            try:
                found = from_models(call, operands)
            except Exception:  # whatever it is, the call of full size says so, too
                found = None
            if found is not None:
                return written(found[0], target)
            if sum(stored(a) for a in operands) > LARGE:
                raise NotImplementedError(
                    f"aten::{name}: its results' shapes cannot be told without computing it, which "
                    "takes too much memory"
                )
        held = {id(a): zeros_like(a) for a in operands}
        results = call(held)
        owners = {id(root_of(held[id(a)])): (a, held[id(a)]) for a in operands}
        return written(on_meta(results, owners), target)

    def refuse_too_large(self, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        """Any size will do."""


class Call:
    """A function and its arguments, with other arrays in the place of those without memory."""

    def __init__(
        self, function: Callable[..., Any], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs

    def __call__(self, held: dict[int, Array]) -> Any:
        local = state.local
        before, modes = local.place, local.modes
        local.place, local.modes = META, ()  # random numbers are nobody's
        try:
            args, kwargs = swapped((self.args, self.kwargs), held)
            return self.function(*args, **kwargs)
        finally:
            local.place, local.modes = before, modes


def swapped(value: Any, held: dict[int, Array]) -> Any:
    """An argument with host arrays for arrays without memory."""
    if isinstance(value, MetaArray):
        return held[id(value)]
    if value.__class__ in (list, tuple):
        return value.__class__(swapped(v, held) for v in value)
    if value.__class__ is dict:
        return {k: swapped(v, held) for k, v in value.items()}
    if value.__class__ in TABLES:
        return value.mapped(lambda part: swapped(part, held))
    return np if getattr(value, "is_array_module", False) else value


def arrays_in(value: Any) -> Iterable[MetaArray]:
    """The arrays without memory in an argument."""
    if isinstance(value, MetaArray):
        yield value
    elif value.__class__ in (list, tuple):
        for v in value:
            yield from arrays_in(v)
    elif value.__class__ is dict:
        yield from arrays_in(list(value.values()))
    elif value.__class__ in TABLES:
        yield from arrays_in([part for _, part in value.parts()])


def stored(array: MetaArray) -> int:
    """How many elements lie in memory: a dimension that is repeated counts once."""
    return math.prod(n for n, s in zip(array.shape, array.strides) if s)


def zeros_like(array: MetaArray) -> Any:
    """Zeros in the layout of an array."""
    if not array.size:
        return np.zeros(array.shape, array.dtype)
    last = sum((n - 1) * s for n, s in zip(array.shape, array.strides))
    flat = np.zeros(last // array.itemsize + 1, array.dtype)
    return as_strided(flat, array.shape, array.strides)


def new_array(name: str, args: tuple[object, ...], kwargs: dict[str, Any]) -> MetaArray:
    """What `empty(shape, dtype)` and the like make."""
    given: list[Any] = list(args)
    shape = kwargs["shape"] if "shape" in kwargs else given.pop(0)
    shape = (int(shape),) if isinstance(shape, (int, np.integer)) else tuple(shape)
    value = (kwargs.get("fill_value") if not given else given.pop(0)) if name == "full" else 0.0
    kind = kwargs.get("dtype") or (given[0] if given else None)
    return MetaArray.new(shape, np.asarray(value).dtype if kind is None else kind)


def on_meta(value: Any, owners: dict[int, tuple[MetaArray, Array]]) -> Any:
    """Results as arrays without memory: views of an operand, or new ones."""
    if isinstance(value, np.generic):
        return MetaArray.new((), value.dtype)
    if isinstance(value, np.ndarray):
        owner = owners.get(id(root_of(value)))
        if owner is None:
            return MetaArray.new(value.shape, value.dtype, value.strides)
        array, held = owner
        if value is held:
            return array
        address = "__array_interface__"
        moved = getattr(value, address)["data"][0] - getattr(held, address)["data"][0]
        return array.at(array.offset + moved, value.shape, value.strides, value.dtype)
    if value.__class__ in (list, tuple):
        return value.__class__(on_meta(v, owners) for v in value)
    if value.__class__ in TABLES:
        return value.mapped(lambda part: on_meta(part, owners))
    if isinstance(value, tuple):  # a named result
        return value.__class__(*(on_meta(v, owners) for v in value))
    return value


def written(made: object, target: MetaArray | None) -> Any:
    """What was to be written into an array, if it has its shape; else the result."""
    if target is not None and isinstance(made, MetaArray) and made.shape == target.shape:
        return target
    return made


# -- models of large arrays --------------------------------------------------------------------------


def from_models(call: Call, operands: list[MetaArray]) -> Any:
    """[the results of a call], from two small models of it; None where they do not agree."""
    sizes = sorted({n for a in operands for n in a.shape if n > KEPT})
    if len(sizes) > len(PRIMES[0]):
        return None
    views = []
    for primes in PRIMES:
        small = dict(zip(sizes, primes))
        held = {id(a): model_of(a, small) for a in operands}
        results = call(held)
        roots = {id(root_of(h)) for h in held.values()}
        views.append((results, roots, {p: n for n, p in small.items()}))
    (first, roots, sizes1), (second, _, sizes2) = views
    return agreed(first, second, roots, sizes1, sizes2)


def model_of(array: MetaArray, small: dict[int, int]) -> Any:
    """Zeros with small sizes in the order of an array's memory."""
    shape = [small.get(n, n) for n in array.shape]
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    dense = np.zeros([shape[d] if array.strides[d] else 1 for d in order], array.dtype)
    return np.broadcast_to(dense.transpose(np.argsort(order)), shape)


def agreed(
    first: Any, second: Any, roots: set[int], one: dict[int, int], two: dict[int, int]
) -> Any:
    """[the result that two models stand for], None where they stand for different ones."""
    if isinstance(first, (np.ndarray, np.generic)):
        if isinstance(first, np.ndarray) and id(root_of(first)) in roots:
            return None
        shape = []
        for a, b in zip(first.shape, second.shape):
            if one.get(a, a) != two.get(b, b):
                return None
            shape.append(one.get(a, a))
        return [MetaArray.new(shape, first.dtype, steps(first, shape))]
    if isinstance(first, (list, tuple)):
        parts = [agreed(a, b, roots, one, two) for a, b in zip(first, second)]
        if None in parts or len(first) != len(second):
            return None
        found = [p[0] for p in parts]
        return [first.__class__(*found) if hasattr(first, "_fields") else first.__class__(found)]
    return [first] if first is second else None


def steps(model: Array | np.generic, shape: list[int]) -> list[int]:
    """Strides in bytes of an array that lies without gaps in the order of its model."""
    found, step = [0] * len(shape), model.dtype.itemsize
    for d in sorted(range(len(shape)), key=lambda d: (model.strides[d], -d)):
        found[d] = step
        step *= shape[d]
    return found
