"""Windows that slide over images: sizes, padding, and the strided views behind conv and pooling."""

from __future__ import annotations

import functools
import itertools
from typing import Any

from toytorch.backends.no_elements import strided
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, Ints, Shape, Sizes
from toytorch.facts.size import WHOLE


def spread_over(value: Ints, n: int, what: str) -> tuple[int, ...]:
    """One int, or a list of one for each of n dimensions, as n ints."""
    if isinstance(value, WHOLE):
        return (value,) * n
    values = tuple(int(v) for v in value)
    if len(values) != n:
        raise RuntimeError(f"It is expected {what} equals to {n}, but got size {len(values)}")
    return values


def taps(size: int, kernel: int, stride: int, pad: int, dilation: int = 1) -> int:
    """How many windows fit: ⌊(size + 2·pad - dilation·(kernel - 1) - 1)/stride⌋ + 1.

    >>> taps(5, kernel=3, stride=2, pad=1)
    3
    """
    return (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1


def padded(xp: ArrayModule, a: Array, pads: Shape, value: int = 0) -> Any:
    """The array with a border of `pads` elements on both sides of its last dimensions."""
    n = len(pads)
    if not any(pads):
        return a
    lead = a.shape[:-n]
    sizes = tuple(s + 2 * p for s, p in zip(a.shape[-n:], pads))
    if not value:
        wide = xp.zeros((*lead, *sizes), a.dtype)
    else:
        wide = xp.full((*lead, *sizes), value, a.dtype)
    wide[(..., *(slice(p, p + s) for p, s in zip(pads, a.shape[-n:])))] = a
    return wide


def inner(a: Any, pads: Any) -> Any:
    """What `padded` put a border around."""
    if not any(pads):
        return a
    return a[(..., *(slice(p, s - p) for p, s in zip(pads, a.shape[-len(pads) :])))]


def windows(
    xp: ArrayModule, a: Array, kernel: Shape, stride: Shape, dilation: Shape, out: Shape
) -> Any:
    """A view (…, *kernel, *out) of all windows of an array (…, *sizes), without a copy."""
    n = len(kernel)
    steps = a.strides[-n:]
    shape = (*a.shape[:-n], *kernel, *out)
    strides = (
        *a.strides[:-n],
        *(s * d for s, d in zip(steps, dilation)),
        *(s * t for s, t in zip(steps, stride)),
    )
    return strided(xp, a, shape, strides)


@functools.lru_cache(512)
def tap_slices(kernel: Sizes, stride: Sizes, dilation: Sizes, out: Sizes) -> list[Any]:
    """Every place of the kernel, and the elements that all windows have there."""
    made = []
    for place in itertools.product(*map(range, kernel)):
        firsts = [k * d for k, d in zip(place, dilation)]
        ranges = [slice(f, f + s * (o - 1) + 1, s) for f, s, o in zip(firsts, stride, out)]
        made.append((place, (..., *ranges)))
    return made


def checked_gradient(g: Tensor, name: str) -> Tensor:
    """The gradient of an adaptive pool's result; refused where that has no elements."""
    for d in range(1, g.ndim):
        if not g.shape[d]:
            raise RuntimeError(
                f"{name}_backward(): Expected grad_output to have non-zero size for non-batch "
                f"dimensions, but grad_output has sizes {sizes_text(g.shape)} with dimension {d} "
                "being empty"
            )
    return g


def sizes_text(shape: Shape) -> str:
    """A shape as error messages write it: [2, 3]."""
    return str([int(n) for n in shape])
