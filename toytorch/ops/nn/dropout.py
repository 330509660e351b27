"""Dropout: zeros at random places, and the rest scaled so that the mean stays."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.sparse import TABLES
from toytorch.core.memory_order import in_memory_order
from toytorch.core.random import generator_of
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.device import cpu
from toytorch.facts.hints import Array, Shape, Sizes
from toytorch.ops.creation.create import empty_like
from toytorch.ops.creation.random import drawn
from toytorch.ops.define import public, watched


def noise(input: Tensor, p: float, shape: Any = None) -> Any:
    """Ones with probability 1 - p and zeros, of the input's shape or another."""
    x = input.detach()
    made = empty_like(x) if shape is None else x.new_empty(shape)
    return made.bernoulli_(1 - p)


@watched
def dropout_factors(input: Tensor, p: float, shape: Shape | None = None) -> Tensor:
    """0 with probability p and 1/(1 - p) elsewhere, of the input's shape or another."""
    array = input._array
    if input.is_meta or array.__class__ in TABLES or array.dtype.char not in "fd":
        return noise(input, p, shape).div_(1 - p)
    like = shape is None or tuple(shape) == array.shape
    wanted = tuple(input.shape if shape is None else shape)
    where = cpu if array.__class__ is np.ndarray else input.device

    def make(lead: Sizes) -> Tensor:
        given = array, (*lead, *wanted), like and not lead, p, where
        return wrap(base.launched("dropout_factors", _factors, *given))

    return drawn(make, "bernoulli_")


def _factors(array: Array, shape: Sizes, like: bool, p: float, where: Any) -> Any:
    """The numbers for an array, which lie as it does if they are `like` it."""
    rng = generator_of(where, None)

    def draw(count: int) -> Any:
        return rng.factors(count, array.dtype, p)

    return in_memory_order(draw, shape, array if like else None)


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {p}")


def _by_channel(input: Tensor) -> list[int]:
    """The shape of one number for each channel."""
    if input.ndim < 2:
        raise RuntimeError("Feature dropout requires at least 2 dimensions in the input")
    return [*input.shape[:2], *(1,) * (input.ndim - 2)]


def _times(input: Tensor, factor: Tensor | int, inplace: bool) -> Tensor:
    return input.mul_(factor) if inplace else input * factor


def drop(input: Tensor, p: float, train: bool, inplace: bool, channels: bool = False) -> Tensor:
    """Dropout of elements, or of whole channels."""
    _check(p)
    if p == 0 or not train or not input.numel():
        return input
    if p == 1:
        return _times(input, 0, inplace)
    factors = dropout_factors(input, p, _by_channel(input) if channels else None)
    return _times(input, factors, inplace)


ALPHA = 1.7580993408473766  # -(the limit of selu at -∞)


def drop_alpha(
    input: Tensor, p: float, train: bool, inplace: bool, channels: bool = False
) -> Tensor:
    """Dropout to selu's lowest value instead of 0, which keeps mean and variance."""
    _check(p)
    if p == 0 or not train or not input.numel():
        return input
    if p == 1:
        return _times(input, 0, inplace)
    a = 1 / (((ALPHA**2 * p + 1) * (1 - p)) ** 0.5)
    mask = noise(input, p, _by_channel(input) if channels else None)
    shift = (mask - 1) * (ALPHA * a) + ALPHA * a * p
    made = _times(input, mask * a, inplace)
    return made.add_(shift) if inplace else made + shift


@public("dropout", idle="train")
def dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Zeros each element with probability p and scales the rest by 1/(1 - p)."""
    return drop(input, p, train, False)


@public("dropout_", method=False)
def dropout_(input: Tensor, p: float, train: bool) -> Tensor:
    """In-place form of `dropout`."""
    return drop(input, p, train, True)


@public("feature_dropout", idle="train")
def feature_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout of whole channels."""
    return drop(input, p, train, False, channels=True)


@public("alpha_dropout", idle="train")
def alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """Dropout that keeps mean and variance where selu is used."""
    return drop_alpha(input, p, train, False)


@public("feature_alpha_dropout", idle="train")
def feature_alpha_dropout(input: Tensor, p: float, train: bool) -> Tensor:
    """alpha_dropout of whole channels."""
    return drop_alpha(input, p, train, False, channels=True)


@public("native_dropout")
def native_dropout(input: Tensor, p: float, train: bool | None) -> tuple[Tensor, Tensor]:
    """Dropout and the mask of what was kept."""
    if train is False or p == 0:
        return input.clone(), input.new_ones(input.shape).bool()
    kept = noise(input, p).bool()
    return input * kept * (1 / (1 - p) if p < 1 else 0.0), kept


@public("native_dropout_backward", "aten.native_dropout_backward")
def native_dropout_backward(grad_output: Tensor, mask: Tensor, scale: float) -> Tensor:
    """The gradient of native_dropout."""
    return grad_output * mask * scale
