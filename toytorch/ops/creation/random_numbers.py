"""Random numbers in the type of an array.

Each function takes a source (`base.RandomSource`), how many numbers, and the type of the results.
"""

from __future__ import annotations

import builtins
import functools
import math
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.base import RandomSource
from toytorch.core.random import Generator, generator_of
from toytorch.facts import dtype as types
from toytorch.facts import warned
from toytorch.facts.device import cpu
from toytorch.facts.dtype import part_of
from toytorch.facts.hints import Array
from toytorch.ops.creation.draw_refusals import refuse


def narrowed(values: Array, type: np.dtype[Any]) -> Any:
    """Numbers in another type; those of two bytes by way of float32, as PyTorch goes."""
    if values.dtype is type:
        return values
    if type.itemsize == 2 and type.kind not in "iu" and values.dtype != np.float32:
        values = values.astype(np.float32)
    return values if values.dtype == type else values.astype(type)


def paired(values: Array, type: np.dtype[Any]) -> Any:
    """Complex numbers from twice as many real ones, the two parts of each side by side."""
    if values.__class__ is np.ndarray:
        return values.astype(part_of(type), copy=False).view(type)
    both = values.reshape(-1, 2)
    return (both[:, 0] + 1j * both[:, 1]).astype(type)


def uniform_numbers(
    rng: RandomSource,
    count: int,
    type: np.dtype[Any],
    low: float = 0.0,
    high: float = 1.0,
    rows: builtins.bool = True,
) -> Any:
    """Numbers in [low, high); in types of two bytes, what rounds to `high` becomes `low`."""
    if type.kind in "cW":
        return paired(uniform_numbers(rng, 2 * count, part_of(type), low, high), type)
    values = rng.uniform(count, type, low, high)
    if type.itemsize > 2:
        return values
    values = values.astype(type)
    values[values == type.type(high)] = low
    return values


def normal_numbers(
    rng: RandomSource,
    count: int,
    type: np.dtype[Any],
    mean: float = 0.0,
    std: float = 1.0,
    rows: builtins.bool = True,
) -> Any:
    """Normal numbers; half of the variance is each part's where they are complex. They depend on
    whether they fill memory in rows, without gaps."""
    if type.kind in "cW":
        half = std / math.sqrt(2)
        return paired(normal_numbers(rng, 2 * count, part_of(type), mean, half, rows), type)
    return narrowed(rng.normal(count, type, mean, std, rows), type)


DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}  # of the mantissa


def integer_numbers(rng: RandomSource, count: int, type: np.dtype[Any], low: int, high: int) -> Any:
    """Integers in [low, high), moved inwards to what the type can hold."""
    if type.kind in "cW":
        raise RuntimeError(
            "check_random_bounds handles only integral, floating-point and boolean types"
        )
    refuse("random_from_to", type)
    digits = limits(type)[0]
    if digits is not None:
        low, high = raised(low, type, digits), lowered(high, type, digits)
        if low >= high:
            raise RuntimeError(
                "random_ expects 'from' casted to dtype to be less than 'to' casted to dtype, but "
                f"got from={low} >= to={high}"
            )
    check_bounds(type, low, high - 1)
    made = rng.integers(count, low, high)
    if high - low == 1 << 64:  # PyTorch takes all 64 bits as they are, and adds no `low`
        made = made ^ np.int64(-(1 << 63))
    return narrowed(made, type)


def raised(low: int, type: np.dtype[Any], digits: int) -> int:
    """The lowest number from `low` on that rounding to the type does not bring below it."""
    held = cast_to(low + 1, type)
    if held is None or held >= low:
        return low
    return held + (1 << abs(low + 1).bit_length() - digits)


def lowered(high: int, type: np.dtype[Any], digits: int) -> int:
    """The highest limit up to `high` whose numbers rounding to the type does not bring up to it."""
    held = cast_to(high - 1, type)
    if held is None or held < high:
        return high
    return held - (1 << abs(high - 1).bit_length() - digits)


def cast_to(number: int, type: np.dtype[Any]) -> int | None:
    """A number as the type has it; None where it is infinite there, or no 64-bit integer."""
    held = float(narrowed(np.array(float(number)), type))
    return int(held) if -(2**63) <= held < 2**63 else None


@functools.lru_cache(64)
def limits(type: np.dtype[Any]) -> tuple[int | None, int, int]:
    """The digits of a floating type, and the least and the largest number of any type."""
    digits = DIGITS.get(type.name)
    if digits is not None:
        most = int(types.finfo(types.from_numpy_dtype(type)).max)
        return digits, -most, most
    if type.kind == "b":
        return None, 0, 1
    return None, int(np.iinfo(type).min), int(np.iinfo(type).max)


def check_bounds(type: np.dtype[Any], low: int, last: int) -> None:
    """Refuses limits outside of a type; warns of those that a floating type has no integers for."""
    digits, least, most = limits(type)
    for what, number in (("from", low), ("to - 1", last)):
        if not least <= number <= most:
            name = types.IN_C.get(type.name, type.name)
            raise RuntimeError(f"{what} is out of bounds for {name}")
        if digits is not None and abs(number) > 1 << digits:
            name = types.IN_C.get(type.name, type.name)
            warned.at_call(
                f"{what} is out of bounds [-(2^{digits}), 2^{digits}]. Due to precision limitations "
                f"{name} can support discrete uniform distribution only within this range. This "
                "warning will become an error in version 1.7 release, please fix the code in "
                "advance"
            )


def upper_bound(type: np.dtype[Any]) -> int:
    """One more than the largest integer of a type, or than the last before floats have gaps."""
    digits = DIGITS.get(type.name)
    if digits is not None:
        return (1 << digits) + 1
    return 2 if type.kind == "b" else int(np.iinfo(type).max) + 1


def any_integers(rng: RandomSource, count: int, type: np.dtype[Any]) -> Any:
    """Integers from 0 to the largest of the type, or to the last before floats have gaps."""
    return narrowed(rng.whole(count, upper_bound(type), type.name in ("int64", "float64")), type)


def source_of(a: Array | float, generator: Generator | None) -> Any:
    """The source that numbers for an array come from: the generator's, or its device's."""
    if a.__class__ is np.ndarray:
        return generator_of(cpu, generator)
    return generator_of(base.of_array(a).device(a), generator)
