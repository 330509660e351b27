"""Arrays without elements that still lie somewhere: strides and a place, as PyTorch's tensors have.

NumPy gives a new array without elements strides of 0, and a slice that takes nothing the place and
the strides of what it was cut from. Programs see PyTorch's in `stride()` and `storage_offset()`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.facts.dtype import PAIR
from toytorch.facts.hints import Array, ArrayModule, Shape
from toytorch.facts.size import contiguous_strides


def lying(array: Array, shape: Shape, strides: Shape, start: int = 0) -> Any:
    """A view without elements, of a shape and of strides in bytes, `start` bytes into the array.

    >>> lying(np.zeros(3), (2, 0), (8, 16)).strides
    (8, 16)
    """
    if array.__class__ is not np.ndarray:
        return array.reshape(-1)[:0].reshape(shape)
    facts = dict(array.__array_interface__)
    facts.update(shape=tuple(shape), strides=tuple(strides), data=(facts["data"][0] + start, False))
    if facts["typestr"][1] == PAIR:
        facts.update(typestr=f"|V{array.itemsize}", descr=[("", f"|V{array.itemsize}")])
    made = np.asarray(_Keeper(facts, array))
    # NumPy has no text for bfloat16 and complex32: these have as many bytes for each element.
    return made if made.dtype == array.dtype else made.view(array.dtype)


def strided(xp: ArrayModule, array: Array, shape: Shape, strides: Shape) -> Any:
    """NumPy's `as_strided`, which fails where it has no text for the type."""
    if array.dtype.kind != PAIR:
        return xp.lib.stride_tricks.as_strided(array, shape, strides)
    return strided(xp, array.view(f"V{array.itemsize}"), shape, strides).view(array.dtype)


class _Keeper:
    """What NumPy makes an array of, and keeps as its base; `flat` knows it by its name."""

    def __init__(self, facts: dict[str, Any], base: Array) -> None:
        self.__array_interface__ = facts
        self.base = base


_Keeper.__name__ = "DummyArray"  # NumPy's own, of `as_strided`


def with_strides(array: Array) -> Any:
    """An array without elements as PyTorch would have made it: where all strides are 0, in rows."""
    if array.__class__ is not np.ndarray or not array.ndim or any(array.strides):
        return array
    return lying(array, array.shape, [s * array.itemsize for s in contiguous_strides(array.shape)])


def cut(array: Array, dim: int, start: int, stop: int, step: int = 1) -> Any:
    """A range of one dimension, whose ends are inside it; a range of nothing has a place, too."""
    part = array[(slice(None),) * dim + (slice(start, stop, step),)]
    if part.size or array.__class__ is not np.ndarray:
        return part
    strides = list(array.strides)
    begin = start * strides[dim]
    strides[dim] *= step
    shape = list(array.shape)
    shape[dim] = max(stop - start + step - 1, 0) // step
    return lying(array, shape, strides, begin)


def offset(array: Array, flat: Array) -> int:
    """Elements from the beginning of a memory to that of an array without elements."""
    if array.__class__ is not np.ndarray:
        return 0
    begin, start = (a.__array_interface__["data"][0] for a in (array, flat))
    found = int(begin - start) // array.itemsize
    return max(found, 0)  # before it is other memory
