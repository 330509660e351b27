"""What shape, type and strides a call's results have, found by running it on zeros.

A kernel knows how its results look; so there is no second rule for each op. Arrays of moderate size
get zeros of their size. Large ones get small models: every size is replaced by a small prime, the
kernel runs, and the primes in the results' shapes are read as the sizes they stand for. Two models
with other primes have to agree, so that a size which the kernel computes (as `cat` does) is not taken
for one that it passes on. Where they do not, it is looked how the results grow with each size: most
sizes that are computed are sums of others, or whole parts of such sums, (n + 2p - k) // s + 1 of a
convolution. What is not told so runs on zeros of full size.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any

import numpy as np

from toytorch.backends.meta.array import MetaArray
from toytorch.backends.simulator.array import root_of
from toytorch.backends.sparse import TABLES
from toytorch.facts import state
from toytorch.facts.device import device
from toytorch.facts.hints import Array, Fn, Kwargs, Shape
from toytorch.facts.pytree import tree_leaves

SMALL = 1 << 16  # elements that cost nothing to compute
LARGE = 1 << 28  # elements that are not computed
KEPT = 16  # sizes up to this one stay what they are in a model
PRIMES = ((17, 23, 31, 41, 47, 59, 67, 73), (19, 29, 37, 43, 53, 61, 71, 79))
# Sizes in models of growth differ from those they stand for by multiples of a period: a stride that
# divides it leaves the same rest of both.
PERIODS = 24, 16
SEEN = 256  # sizes that stay where the growth with smaller ones is not even
MOST = 1 << 24  # elements of all arrays of such a model
META = device("meta")
MAKING = ("empty", "zeros", "ones", "full")  # by their shape alone


class Inference:
    """Runs functions of host arrays for what their results look like."""

    def run(
        self,
        name: str,
        function: Fn,
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
        first = args[0] if args else None
        if name == "reshape" and isinstance(first, MetaArray) and first.held.flags.c_contiguous:
            # A view, which reads nothing.
            return first.seen(function(first.held, *args[1:], **kwargs))
        operands = list(arrays_in((args, kwargs)))
        call = Call(function, args, kwargs)
        if sum(stored(a) for a in operands) > SMALL:
            for told in WAYS:
                try:
                    found = told(call, operands)
                except Exception:  # whatever it is, the call of full size says so, too
                    continue
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
    """A function and its arguments, with other arrays in the place of those without memory.

    numbers     the whole numbers among the arguments
    """

    def __init__(self, function: Fn, args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        self.function, self.args, self.kwargs = function, args, kwargs
        self.numbers = [n for n in tree_leaves((args, kwargs)) if n.__class__ is int]

    def __call__(self, held: dict[int, Array], sizes: dict[int, int] | None = None) -> Any:
        """`sizes` stand for numbers among the arguments, as for those of arrays."""
        local = state.local
        before, modes = local.place, local.modes
        local.place, local.modes = META, ()  # random numbers are nobody's
        try:
            args, kwargs = swapped((self.args, self.kwargs), held, sizes or {})
            return self.function(*args, **kwargs)
        finally:
            local.place, local.modes = before, modes


def swapped(value: Any, held: dict[int, Array], sizes: dict[int, int]) -> Any:
    """An argument with host arrays for arrays without memory."""
    if isinstance(value, MetaArray):
        return held[id(value)]
    if value.__class__ is int:
        return sizes.get(value, value)
    if value.__class__ in (list, tuple):
        return value.__class__(swapped(v, held, sizes) for v in value)
    if value.__class__ is dict:
        return {k: swapped(v, held, sizes) for k, v in value.items()}
    if value.__class__ in TABLES:
        return value.mapped(lambda part: swapped(part, held, sizes))
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
    return np.ndarray(array.shape, array.dtype, flat, 0, array.strides)


def new_array(name: str, args: tuple[object, ...], kwargs: Kwargs) -> MetaArray:
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
    sizes = large_in(operands)
    if len(sizes) > len(PRIMES[0]):
        return None
    models, meanings = [], []
    for primes in PRIMES:
        small = dict(zip(sizes, primes))
        models.append(modelled(call, operands, small))
        meanings.append({p: n for n, p in small.items()})

    numbers = any(n > 1 for n in call.numbers)

    def size(found: Sequence[int]) -> int | None:
        one, other = (meant.get(n, n) for meant, n in zip(meanings, found))
        if numbers and found[0] not in meanings[0]:
            return None  # (n - k) // s + 1 may be alike by chance
        return one if one == other else None

    return together(models, size)


def from_growth(call: Call, operands: list[MetaArray], period: int, kept: int) -> Any:
    """[the results of a call] whose sizes grow evenly with those of the operands; None otherwise.

    The first model has sizes with the same rests by the period; in one model each a size is larger by
    one period; a last one, with all of them larger by several, has to be as the others say.
    """
    sizes = large_in(operands, kept)
    first: dict[int, int] = {}
    for n in sizes:
        m = n % period + period
        while m in first.values():  # sizes that differ stay different
            m += period
        first[n] = m
    turns = [k % 2 + 2 for k in range(len(sizes))]
    last = {n: m + period * k for (n, m), k in zip(first.items(), turns)}
    grown = [first | {n: first[n] + period} for n in sizes]
    every = (first, *grown, last)
    if sum(math.prod(last.get(n, n) for n in a.shape) for a in operands) > MOST:
        return None
    models = [modelled(call, operands, small, True) for small in every]
    smallest = min(first.values(), default=0)
    unlike = {n for n in call.numbers if n >= smallest and n not in first}
    fixed = unlike | {n for a in operands for n in a.shape if n not in first and n > 1}

    def size(found: Sequence[int]) -> int | None:
        start, *more, checked = found
        steps = [n - start for n in more]
        if unlike and not any(steps) and start not in fixed:
            return None  # what is so large may begin to count with larger sizes only
        if start + sum(step * k for step, k in zip(steps, turns)) != checked:
            return None
        return start + sum(step * ((n - first[n]) // period) for step, n in zip(steps, sizes))

    return together(models, size)


def large_in(operands: Iterable[MetaArray], kept: int = KEPT) -> list[int]:
    """The sizes for which smaller ones stand in models."""
    return sorted({n for a in operands for n in a.shape if n > kept})


def modelled(
    call: Call, operands: list[MetaArray], small: dict[int, int], numbers: bool = False
) -> tuple[Any, Model]:
    """The results of a model, and its operands; the sizes stand for `numbers`, too."""
    held = {id(a): model_of(a, small) for a in operands}
    results = call(held, small if numbers else None)
    return results, Model([(a, held[id(a)]) for a in operands])


class Model:
    """The operands of a call and what stands for them."""

    def __init__(self, pairs: list[tuple[MetaArray, Array]]) -> None:
        self.meant = {id(held): a for a, held in pairs}
        self.roots = {id(root_of(held)) for _, held in pairs}


def model_of(array: MetaArray, small: dict[int, int]) -> Any:
    """Zeros with small sizes in the order of an array's memory."""
    shape = [small.get(n, n) for n in array.shape]
    order = sorted(range(array.ndim), key=lambda d: -array.strides[d])
    dense = np.zeros([shape[d] if array.strides[d] else 1 for d in order], array.dtype)
    made = dense.transpose(np.argsort(order))
    # What is broadcast is not to be written to.
    return made if made.shape == tuple(shape) else np.broadcast_to(made, shape)


def together(models: Sequence[tuple[Any, Model]], size: Callable[[Shape], int | None]) -> Any:
    """[the result that models stand for]: size(those of the models) is a size of it. None where they
    stand for different ones, and for views."""
    (first, model), *others = models
    if isinstance(first, (np.ndarray, np.generic)):
        if id(first) in model.meant:  # written to, and given back
            return [model.meant[id(first)]]
        if isinstance(first, np.ndarray) and id(root_of(first)) in model.roots:
            return None
        if any(r.ndim != first.ndim for r, _ in others):
            return None
        shape = [size(found) for found in zip(first.shape, *(r.shape for r, _ in others))]
        known = [n for n in shape if n is not None]
        if len(known) < len(shape):
            return None
        return [MetaArray.new(known, first.dtype, steps(first, known))]
    if isinstance(first, (list, tuple)):
        if any(len(r) != len(first) for r, _ in others):
            return None
        parts = [together([(r[k], seen) for r, seen in models], size) for k in range(len(first))]
        if None in parts:
            return None
        found = [p[0] for p in parts]
        return [first.__class__(*found) if hasattr(first, "_fields") else first.__class__(found)]
    return [first] if all(r is first for r, _ in others) else None


def steps(model: Array | np.generic, shape: list[int]) -> list[int]:
    """Strides in bytes of an array that lies without gaps in the order of its model."""
    found, step = [0] * len(shape), model.dtype.itemsize
    for d in sorted(range(len(shape)), key=lambda d: (model.strides[d], -d)):
        found[d] = step
        step *= shape[d]
    return found


WAYS: tuple[Callable[[Call, list[MetaArray]], Any], ...] = (
    from_models,
    *(partial(from_growth, period=p, kept=n) for n in (KEPT, SEEN) for p in PERIODS),
)
