"""Several views at once: split and unbind."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends.no_elements import cut
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, Ints
from toytorch.facts.size import wrap_dim
from toytorch.ops import named_dims
from toytorch.ops.define import view
from toytorch.ops.shaping.slices import _select


def _split(xp: ArrayModule, a: Array, split_size: Ints, dim: int) -> Any:
    if a.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if isinstance(split_size, int):
        if split_size >> 63 > 0:
            raise OverflowError  # `dispatch` says it in PyTorch's words
        if split_size < 0:
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={split_size}"
            )
        if split_size == 0 and n:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )
        if split_size and a.__class__ is np.ndarray and a.size:  # no part is empty
            if d == 0:
                return [a[i : i + split_size] for i in range(0, n, split_size)]
            before = (slice(None),) * d
            return [a[(*before, slice(i, i + split_size))] for i in range(0, n, split_size)]
        step = max(split_size, 1)
        sizes = [min(step, n - i) for i in range(0, n, step)] or [0]
    else:
        sizes = [int(s) for s in split_size]
        if sum(sizes) != n or any(s < 0 for s in sizes):
            raise RuntimeError(
                f"split_with_sizes expects split_sizes to sum exactly to {n} (input tensor's size "
                f"at dimension {d}), but got split_sizes={sizes}"
            )
    ends = list(itertools.accumulate(sizes, initial=0))
    return [cut(a, d, start, end) for start, end in itertools.pairwise(ends)]


def _all_of(gs: Any) -> list[Any]:
    """The gradients of all parts, some of which may be one tensor of zeros."""
    return gs if gs.__class__ is list else gs.to_read()


def _join(gs: Sequence[Tensor], dim: int) -> Any:
    from toytorch.ops.shaping.rearrange import cat  # a circle otherwise

    return cat.function(_all_of(gs), dim)


split = view(
    "split(Tensor self, int split_size_or_sections, int dim=0) -> Tensor[]",
    _split,
    words={"split_size": "split_size_or_sections"},
    d_self=lambda gs, dim: _join(gs, dim),
    batch="along",
    names="same",
    sparse="strides",
    overload="Tensor",
    doc="Parts of a dimension, as views.",
)


split_with_sizes = view(
    "split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    _split,
    forms="",
    d_self=lambda gs, dim: _join(gs, dim),
    batch="along",
    names="same",
    sparse="strides",
    doc="Parts of given sizes, as views.",
)


def _unbind(xp: ArrayModule, a: Array, dim: int) -> Any:
    if a.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, a.ndim)
    if a.__class__ is np.ndarray and a.ndim > 1 and a.size:
        return list(a if d == 0 else a.transpose(d, *range(d), *range(d + 1, a.ndim)))
    return [_select(xp, a, d, i) for i in range(a.shape[d])]


def _stack(gs: Sequence[Tensor], dim: int) -> Any:
    from toytorch.ops.shaping.rearrange import stack  # a circle otherwise

    return stack.function(_all_of(gs), dim)


unbind = view(
    "unbind(Tensor self, int dim=0) -> Tensor[]",
    _unbind,
    d_self=lambda gs, dim: _stack(gs, dim),
    batch="along",
    names=named_dims.without_dim,
    overload="int",
    doc="The slices of a dimension, as views.",
)

# -- parts of complex numbers ---------------------------------------------------------------------
