"""What the checks of chapter 02 share."""

import itertools

import numpy as np


def _cells(shape, stride, offset=0):
    """The memory cells that a tensor shows, one after the other."""
    return [
        offset + sum(i * step for i, step in zip(index, stride, strict=True))
        for index in itertools.product(*map(range, shape))
    ]


def _restrided(array, shape, stride):
    """A NumPy view of an array with other strides, which count elements."""
    steps = [step * array.itemsize for step in stride]
    return np.lib.stride_tricks.as_strided(array, shape, steps)


def _stride_of(array):
    return tuple(step // array.itemsize for step in array.strides)
