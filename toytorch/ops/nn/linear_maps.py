"""Padding, resizing and adaptive averages: linear maps along single dimensions.

All of them give each output of a dimension a weighted sum of a few inputs. A `Map` holds, for each
output, the places of these inputs and their weights; the derivative is the transposed map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, NamedTuple, cast

import numpy as np

from toytorch.backends import generic
from toytorch.backends.generic import attempt
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import ArrayModule
from toytorch.ops.define import internal

Array = np.ndarray[Any, Any]


class Fields(NamedTuple):
    """What a map is."""

    places: Array  # (out, taps)
    weights: Array | None
    size: int  # of the input
    gaps: bool = False  # whether weights of 0 stand for inputs that do not take part


class Map(Fields):
    """y[i] = Σ_t weights[i, t]·x[places[i, t]]; no weights means ones, as for copies."""

    @cached_property
    def repeats(self) -> int:
        """Of a map that repeats each input so many times; 0 of others."""
        times, rest = divmod(len(self.places), max(self.size, 1))
        if self.weights is not None or rest or self.places.shape[1] != 1:
            return 0
        same = np.array_equal(self.places[:, 0], np.repeat(np.arange(self.size), times))
        return times if same else 0

    def matrix(self, kind: Any) -> Any:
        """The map as a matrix (out, in) of a type, made once."""
        found = self.__dict__.get(kind)
        if found is None:
            found = self.__dict__[kind] = dense(self).astype(kind)
        return found


def apply(xp: ArrayModule, a: Any, axis: int, m: Map) -> Any:
    """The map along one dimension of an array."""
    if m.weights is None:
        return xp.take(a, xp.asarray(m.places[:, 0]), axis)
    exact = True
    if m.size <= 64 or m.places.shape[1] > 8:  # a product of matrices is quicker than many sums
        made = _product(xp, a, axis, m, False)
        exact = bool(xp.isfinite(made.sum()))
        if exact:
            return made  # else an infinity or NaN times a 0 of the matrix has spread
    ones = (1,) * (a.ndim - 1 - axis)
    total = None
    for t in range(m.places.shape[1]):
        weight = xp.asarray(m.weights[:, t].astype(a.dtype).reshape(-1, *ones))
        term = xp.take(a, xp.asarray(m.places[:, t]), axis)
        term *= weight
        if not exact and m.gaps:
            term[np.broadcast_to(weight == 0, term.shape)] = 0
        total = term if total is None else xp.add(total, term, out=total)
    return total


def apply_transposed(xp: ArrayModule, g: Any, axis: int, m: Map) -> Any:
    """The derivative of `apply`: every output's gradient goes to the inputs it came from."""
    if m.weights is not None and (m.size <= 64 or m.places.shape[1] > 8):
        made = _product(xp, g, axis, m, True)
        if bool(xp.isfinite(made.sum())):
            return made
    where: tuple[Any, ...] = (slice(None),) * axis
    if m.repeats > 1:
        total = xp.add(*(g[(*where, slice(t, None, m.repeats))] for t in (0, 1)))
        for t in range(2, m.repeats):
            total += g[(*where, slice(t, None, m.repeats))]
        return total
    order = np.argsort(m.places.reshape(-1), kind="stable")
    inputs = m.places.reshape(-1)[order]
    outputs = order // m.places.shape[1]
    parts = xp.take(g, xp.asarray(outputs), axis)
    if m.weights is not None:
        ones = (1,) * (g.ndim - 1 - axis)
        weight = xp.asarray(m.weights.reshape(-1)[order].astype(g.dtype).reshape(-1, *ones))
        parts *= weight
        if m.gaps:
            parts[xp.broadcast_to(weight == 0, parts.shape)] = 0
    starts = np.flatnonzero(np.diff(inputs, prepend=-1))
    shape = (*g.shape[:axis], m.size, *g.shape[axis + 1 :])
    made = xp.zeros(shape, g.dtype)
    if len(starts):
        sums = attempt(xp, "add_runs", parts, starts, axis)
        if sums is not None:
            made[(*where, inputs[starts])] = sums
        else:
            generic.at(xp, "add", made, (*where, xp.asarray(inputs)), parts)
    return made


def dense(m: Map) -> Array:
    """The map as a matrix (out, in)."""
    matrix = np.zeros((len(m.places), m.size))
    rows = np.arange(len(m.places))[:, None]
    np.add.at(matrix, (rows, m.places), 1.0 if m.weights is None else m.weights)
    return matrix


def _product(xp: ArrayModule, a: Any, axis: int, m: Map, transposed: bool) -> Any:
    """The matrix of a map, or its transpose, times one dimension of an array."""
    kind = a.dtype if a.dtype.kind in "fc" else np.dtype(np.float64)
    matrix = m.matrix(kind.str)
    factor = xp.asarray(matrix.T if transposed else matrix)
    if axis == a.ndim - 1:
        return xp.matmul(a, factor.T)
    shape = (*a.shape[:axis], len(factor), *a.shape[axis + 1 :])
    rows = a.reshape(*a.shape[: axis + 1], math.prod(a.shape[axis + 1 :]))
    return xp.matmul(factor, rows).reshape(shape)


def apply_all(xp: ArrayModule, a: Any, maps: Sequence[Map], transposed: bool = False) -> Any:
    """Maps along the last dimensions, one after the other, the shrinking ones first."""
    n = len(maps)
    run = apply_transposed if transposed else apply
    for k in sorted(range(n), key=lambda k: _growth(maps[k], transposed)):
        a = run(xp, a, a.ndim - n + k, maps[k])
    return a


def _growth(m: Map, transposed: bool) -> float:
    ratio = len(m.places) / max(m.size, 1)
    return 1 / max(ratio, 1e-9) if transposed else ratio


def quantized(m: Map) -> Map:
    """The map with weights as PyTorch has them for bytes: 16-bit integers over a power of two."""
    assert m.weights is not None
    largest, bits = float(m.weights.max(initial=0.0)), 0
    while bits < 22 and int(0.5 + largest * 2 ** (bits + 1)) < 1 << 15:
        bits += 1
    return m._replace(weights=np.trunc(m.weights * 2**bits + np.copysign(0.5, m.weights)) / 2**bits)


# -- the maps -------------------------------------------------------------------------------------


def _scale(size: int, out: int, align_corners: bool, scale: float | None) -> float:
    """How far apart in the input two neighbours of the output are."""
    if align_corners:
        return (size - 1) / (out - 1) if out > 1 else 0.0
    return 1 / scale if scale is not None and scale > 0 else size / out


def _centers(size: int, out: int, align_corners: bool, scale: float | None) -> Array:
    """Where in the input the outputs' centers lie."""
    step = _scale(size, out, align_corners, scale)
    i = np.arange(out)
    return i * step if align_corners else (i + 0.5) * step - 0.5


@lru_cache(256)
def linear(size: int, out: int, align_corners: bool, scale: float | None) -> Map:
    """Interpolation between the two nearest inputs."""
    x = np.arange(size) if out == size else np.maximum(_centers(size, out, align_corners, scale), 0)
    low = np.minimum(np.floor(x).astype(np.int64), size - 1)
    high = low if out == size else np.minimum(low + 1, size - 1)  # then nothing is between
    part = np.clip(x - low, 0, 1)
    return Map(np.stack([low, high], 1), np.stack([1 - part, part], 1), size)


@lru_cache(256)
def cubic(size: int, out: int, align_corners: bool, scale: float | None) -> Map:
    """Cubic convolution (Keys 1981, a = -0.75) of the four nearest inputs."""
    x = _centers(size, out, align_corners, scale)
    low = np.floor(x)
    part = (x - low)[:, None] - np.arange(-1, 3)
    places = np.clip(low[:, None] + np.arange(-1, 3), 0, size - 1).astype(np.int64)
    return Map(places, cubic_weight(np.abs(part), -0.75), size)


def cubic_weight(d: Any, a: float) -> Any:
    """The kernel of cubic convolution at a distance below 2."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0.0))


@lru_cache(256)
def nearest(size: int, out: int, exact: bool, scale: float | None) -> Map:
    """A copy of the nearest input; `exact` measures from the centers."""
    if scale is not None and scale > 0:
        step = np.float32(1 / scale)
    else:
        step = np.float32(size) / np.float32(max(out, 1))
    x = np.floor((np.arange(out, dtype=np.float32) + np.float32(0.5 if exact else 0)) * step)
    return Map(np.minimum(x.astype(np.int64), size - 1)[:, None], None, size)


@lru_cache(256)
def antialiased(support: int, size: int, out: int, align_corners: bool, scale: float | None) -> Map:
    """Interpolation with a kernel as wide as the step: linear (support 1) or cubic (2)."""
    step = _scale(size, out, align_corners, scale)
    reach = support * step if step >= 1 else support
    inverse = 1 / step if step >= 1 else 1.0
    centers = step * (np.arange(out) + 0.5)
    low = np.maximum((centers - reach + 0.5).astype(np.int64), 0)
    high = np.minimum((centers + reach + 0.5).astype(np.int64), size)
    places = low[:, None] + np.arange(max(int((high - low).max(initial=1)), 1))
    d = np.abs((places - centers[:, None] + 0.5) * inverse)
    weights = np.maximum(1 - d, 0) if support == 1 else cubic_weight(d, -0.5)
    weights = np.where(places < high[:, None], weights, 0.0)
    weights /= weights.sum(1, keepdims=True)
    return Map(np.minimum(places, size - 1), weights, size, True)


@lru_cache(256)
def averages(size: int, out: int) -> Map:
    """The means of `out` even bins."""
    i = np.arange(out)
    low, high = i * size // max(out, 1), -(-(i + 1) * size // max(out, 1))
    places = low[:, None] + np.arange(max(int((high - low).max(initial=1)), 1))
    inside = places < high[:, None]
    return Map(np.minimum(places, size - 1), inside / (high - low)[:, None], size, True)


def picked(places: Any, size: int) -> Map:
    """Copies of the inputs at places."""
    return Map(np.asarray(places, np.int64).reshape(-1, 1), None, size)


tied_op: Op = internal(
    "_tied(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, other: a,
    d_self="g",
    d_other=lambda g, other: g.new_zeros(other.shape),
    doc="The first tensor; the derivative in the other is 0.",
)


def tied(g: Tensor, *others: Tensor | None) -> Tensor:
    """A gradient that does not depend on what was differentiated, as of a linear map, where PyTorch's
    kernel of the gradient takes that, too: its own derivative in the others is 0 rather than none."""
    if state.local.grad:
        for other in others:
            if other is not None and other._requires_grad:
                return cast("Tensor", tied_op.function(g, other))
    return g
