"""Rows of a table by number, one by one or summed in bags."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base, generic
from toytorch.backends.generic import attempt
from toytorch.core import inplace as writing
from toytorch.core.op import Op
from toytorch.core.record import underive
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, ArrayModule, Sizes
from toytorch.facts.node import Node, lost_class
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import in_own_type, internal, public, watched
from toytorch.ops.shaping.view import tensor_kind
from toytorch.ops.sparse.create import sparse_coo_tensor


def _indices(name: str, indices: Array, argument: str = "argument #1 'indices'") -> None:
    if indices.dtype not in (np.int64, np.int32):
        raise RuntimeError(
            f"Expected tensor for {argument} to have one of the following scalar "
            f"types: Long, Int; but got {tensor_kind(indices)} instead "
            f"(while checking arguments for {name})"
        )


def _embedding(
    xp: ArrayModule,
    weight: Array,
    indices: Array,
    padding_idx: int,
    by_frequency: bool,
    sparse: bool,
) -> Any:
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    _indices("embedding", indices)
    made = attempt(xp, "known_rows", weight, indices)
    if made is not None:
        return made
    if indices.size and not len(weight):
        raise RuntimeError("index_select(): self indexing axis dim should be positive")
    if indices.size and not generic.inside(indices, len(weight)):
        raise IndexError("index out of range in self")
    made = attempt(xp, "take_rows", weight, indices)
    return weight.take(indices, 0) if made is None else made


FEW = 1024  # numbers, which are sooner added one by one than sorted by row


def sum_rows(xp: ArrayModule, rows: Array, numbers: Array, count: int) -> Any:
    """The sums (count, D) of rows (M, D) with the same number."""
    found = attempt(xp, "add_rows", rows, numbers, count)
    if found is not None:
        return found
    made = xp.zeros((count, rows.shape[1]), rows.dtype)
    if rows.size <= FEW:
        generic.at(xp, "add", made, numbers, rows)
        return made
    order = xp.argsort(numbers, kind="stable")
    numbers = numbers[order]
    starts = xp.flatnonzero(xp.diff(numbers, prepend=-1))
    sums = attempt(xp, "add_runs", rows[order], starts, 0)
    if sums is not None:
        made[numbers[starts]] = sums
    else:
        generic.at(xp, "add", made, numbers, rows[order])
    return made


def _embedding_backward(
    xp: ArrayModule, g: Array, indices: Array, count: int, padding_idx: int, by_frequency: bool
) -> Any:
    flat = indices.reshape(-1)
    rows = g.reshape(flat.size, g.shape[-1])
    if padding_idx >= 0:
        kept = flat != padding_idx
        flat, rows = flat[kept], rows[kept]
    if by_frequency and flat.size:
        rows = rows / xp.bincount(flat, minlength=count)[flat].astype(g.dtype)[:, None]
    return sum_rows(xp, rows, flat, count)


def _embedding_backward_gradient(
    g: Tensor, indices: Any, padding_idx: int, scale_grad_by_freq: bool
) -> Any:
    made = embedding_record.function(g, indices, -1, False, False)
    if scale_grad_by_freq:
        made = made / _frequencies(indices).to(g.dtype).unsqueeze(-1)
    return made if padding_idx < 0 else made.masked_fill((indices == padding_idx).unsqueeze(-1), 0)


def _frequencies(indices: Any) -> Any:
    """How often each index occurs among all."""
    _, inverse, counts = indices.unique(return_inverse=True, return_counts=True)
    return counts[inverse]


embedding_record: Op = in_own_type(
    "embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False, "
    "bool sparse=False) -> Tensor",
    _embedding,
    forms="function",
    on_card="_index_select self index",
    d_weight=lambda g, weight_shape, indices, padding_idx, scale_grad_by_freq, sparse: (
        sparse_backward if sparse else dense_backward.function
    )(g, indices, weight_shape[0], padding_idx, scale_grad_by_freq),
    fresh=True,
    doc="The rows of a table that indices name.",
)
dense_backward: Op = internal(
    "embedding_dense_backward(Tensor grad_output, Tensor indices, int num_weights, "
    "int padding_idx, bool scale_grad_by_freq) -> Tensor",
    _embedding_backward,
    d_grad_output=_embedding_backward_gradient,
    fresh=True,
    halves="halves embedding_dense_backward",
    doc="The gradient of embedding: the sums of the rows' gradients.",
)


def sparse_backward(
    g: Tensor, indices: Tensor, count: int, padding_idx: int, by_frequency: bool
) -> Any:
    """The gradient as a sparse tensor with one entry, a row, for each index."""
    if by_frequency:
        raise RuntimeError(
            "embedding_backward: scale_grad_by_freq not supported with sparse gradients"
        )
    flat = indices.reshape(-1)
    rows = g.reshape(flat.numel(), g.shape[-1])  # not -1: rows may have no elements
    if padding_idx >= 0:
        kept = flat != padding_idx
        rows, flat = rows[kept], flat[kept]
    return sparse_coo_tensor(flat.clone().unsqueeze(0), rows, (count, g.shape[-1]))


RENORM = lost_class(
    type("EmbeddingRenormBackward0", (Node,), {"__slots__": ()}), "embedding_renorm"
)


@public("embedding_renorm_")
def embedding_renorm_(input: Tensor, indices: Tensor, max_norm: float, norm_type: float) -> Tensor:
    """Shrinks the rows that indices name to a norm of at most max_norm, in place."""
    if input.ndim != 2:
        raise RuntimeError(
            f"Expected 2-dimensional tensor, but got {input.ndim}-dimensional tensor for argument "
            "#1 'self' (while checking arguments for embedding_renorm_)"
        )
    if indices.dtype not in (types.int64, types.int32):
        raise RuntimeError(
            "Expected tensor for argument #2 'indices' to have one of the following scalar types: "
            f"Long, Int; but got {tensor_kind(indices._array)} instead (while checking "
            "arguments for embedding_renorm_)"
        )
    writing.check(input, False)
    if indices.numel():
        table, rows = input.detach(), indices.detach().unique()
        norms = table[rows].norm(norm_type, 1, True)
        scale = (max_norm / (norms + 1e-7)).masked_fill(~(norms > max_norm), 1)
        table[rows] = table[rows] * scale
    else:
        writing.bump(input)
    underive(RENORM, [input], input)
    return input


# -- bags -----------------------------------------------------------------------------------------


def bag_numbers(
    offsets: Tensor, count: int, include_last_offset: bool, to_the_end: bool = False
) -> tuple[Any, int]:
    """For each index the bag it lies in, and the number of bags.

    The last bag ends at the last offset, or `to_the_end` at the last index.
    """
    starts = offsets._array
    bags = len(starts) - include_last_offset
    if len(starts) and not offsets.is_meta and int(starts[0]) != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has "
            f"to start from position 0. However, got {int(starts[0])}"
        )
    if len(starts) and int(starts[-1]) > count:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {count} but got offsets[-1] of "
            f"{int(starts[-1])}"
        )
    xp = base.of_array(starts).xp
    last = int(starts[-1]) if include_last_offset and len(starts) and not to_the_end else count
    ends = xp.concatenate([starts[:bags], xp.asarray([last], starts.dtype)])
    return xp.repeat(xp.arange(bags), ends[1:] - ends[:-1]), bags


def _check_bags(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    mode: int,
    per_sample_weights: Tensor | None,
    padding_idx: int | None,
) -> None:
    """Refuses what `embedding_bag` cannot take."""
    if padding_idx is not None:
        wrap_dim(0, weight.ndim, False)  # how many there are, is asked first
        if not -len(weight) <= padding_idx < len(weight):
            raise RuntimeError(
                f"padding_idx must be within the number of embeddings, {-len(weight)} through "
                f"{len(weight) - 1}, but got {padding_idx}"
            )
    if indices.ndim not in (1, 2):
        raise RuntimeError(
            f"input has to be a 1D or 2D Tensor, but got Tensor of dimension {indices.ndim}"
        )
    if indices.ndim == 1 and offsets.ndim == 1 and weight.ndim != 2:
        raise RuntimeError(
            f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}"
        )
    if indices.ndim == 1 != offsets.ndim:
        raise RuntimeError(
            f"offsets has to be a 1D Tensor, but got Tensor of dimension {offsets.ndim}"
        )
    wrap_dim(0, offsets.ndim, False)  # how many there are, is asked next
    _indices("embedding_bag", indices._array)
    _indices("embedding_bag", offsets._array, "argument #1 'offsets'")
    array, rows = indices._array, weight.shape[0]
    if array.size and not indices.is_meta and not generic.inside(array, rows):
        bad = next(int(i) for i in array.reshape(-1) if not 0 <= int(i) < rows)
        raise RuntimeError(
            f"embedding_bag: Expected idx >= 0 && idx < num_embeddings but found idx to be {bad}"
        )
    if per_sample_weights is not None and per_sample_weights.dtype is not weight.dtype:
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument "
            f"#1 'per_sample_weights'; but type {weight.type().replace('toytorch', 'torch')} does "
            f"not equal {per_sample_weights.type().replace('toytorch', 'torch')} (while checking "
            "arguments for embedding_bag)"
        )
    if mode not in (0, 1, 2):
        raise RuntimeError("`mode` must be sum, mean, or max.")


@public("embedding_bag")
@watched
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = 0,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Any:
    """Sums (mode 0), means (1) or maxima (2) of the rows of bags, given by where bags start.

    Returns the bags, the bag of each index, the sizes of bags, and the places of maxima.
    """
    _check_bags(weight, indices, offsets, mode, per_sample_weights, padding_idx)
    # PyTorch heeds the last offset where it adds rows without a look at each, and only there.
    slow = mode == 2 or padding_idx is not None
    numbers, bags = bag_numbers(offsets, indices.numel(), include_last_offset, slow)
    if padding_idx is not None:
        kept = indices._array != padding_idx % len(weight)
        used, numbers = indices[wrap(kept)], numbers[kept[: len(numbers)]]
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights[wrap(kept)]
    else:
        used = indices
    if len(used) != len(numbers):
        used = used[: len(numbers)]
    padding = -1 if padding_idx is None else padding_idx % len(weight)
    scales = per_sample_weights
    if scales is not None and len(scales) != len(numbers):
        scales = scales[: len(numbers)]
    which, counted = wrap(numbers), numbers
    if include_last_offset and not slow:
        counted, _ = bag_numbers(offsets, indices.numel(), True, True)
    sizes = wrap(base.of_array(numbers).xp.bincount(counted, minlength=bags))
    shares = _shares(indices, used) if scale_grad_by_freq and not sparse else None
    made, _ = bags_record.function(
        weight, used, which, sizes, scales, shares, mode, scale_grad_by_freq, sparse, padding
    )
    return made, which, sizes, which.new_zeros([bags if mode == 2 else 0])


def _shares(indices: Tensor, used: Tensor) -> Any:
    """What multiplies the gradients of rows for `scale_grad_by_freq`: PyTorch divides those of the
    i-th number in use by how often the i-th of all sorted indices occurs, which is another number
    where one before it occurs twice."""
    flat = indices._array.reshape(-1)
    xp = base.of_array(flat).xp
    numbers, counts = xp.unique(flat, return_counts=True)
    often = counts[xp.searchsorted(numbers, xp.sort(flat)[: len(numbers)])]
    return wrap(1.0 / often[xp.searchsorted(numbers, used._array.reshape(-1))])


def _bags(
    xp: ArrayModule,
    weight: Array,
    indices: Array,
    which: Array,
    sizes: Array,
    scales: Array | None,
    shares: Array | None,
    mode: int,
    by_frequency: bool,
    sparse: bool,
    padding_idx: int,
) -> Any:
    rows = _embedding(xp, weight, indices, padding_idx, by_frequency, sparse)
    rows = rows if scales is None else rows * scales[:, None]
    made = xp.zeros((len(sizes), weight.shape[1]), rows.dtype)
    firsts = xp.zeros(made.shape if mode == MAXIMUM else 0, np.int64)
    if not len(rows):
        return made, firsts
    if mode != MAXIMUM and generic.attempt(xp, "add_slices", made, 0, which, rows):
        if mode == MEAN:
            made /= xp.maximum(sizes, 1).astype(made.dtype)[:, None]
        return made, firsts
    begins = xp.ones(len(which), bool)
    begins[1:] = which[1:] != which[:-1]
    starts = xp.flatnonzero(begins)  # of bags that are not empty
    full = which[starts]
    joined = generic.reduceat(xp, "maximum" if mode == MAXIMUM else "add", rows, starts)
    if mode == MEAN:
        joined /= sizes[full].astype(joined.dtype)[:, None]
    made[full] = joined
    if mode == MAXIMUM:
        place = xp.where(rows == made[which], xp.arange(len(rows))[:, None], len(rows) - 1)
        firsts[full] = generic.reduceat(xp, "minimum", place, starts)
    return made, firsts


def _of_rows(g: Tensor, which: Tensor, sizes: Tensor, mode: int, firsts: Tensor) -> Any:
    """The gradient of the rows of bags; of several equal maxima the first takes it."""
    if mode == MAXIMUM:
        nothing = g.new_zeros((len(which), g.shape[1]))
        known = g.masked_fill((sizes == 0).unsqueeze(-1), 0)
        return nothing.scatter_add(0, firsts, known) if len(which) else nothing
    if mode == MEAN:
        g = g / sizes.clamp(min=1).to(g.dtype).unsqueeze(-1)
    return g.index_select(0, which)


def _of_table(
    gs: Sequence[Any],
    weight_shape: Sizes,
    indices: Tensor,
    which: Tensor,
    sizes: Tensor,
    scales: Tensor | None,
    shares: Tensor | None,
    mode: int,
    scale_grad_by_freq: bool,
    sparse: bool,
    padding_idx: int,
    result1: Tensor,
) -> Any:
    rows = _of_rows(gs[0], which, sizes, mode, result1)
    for each in (scales, shares):
        if each is not None:
            rows = rows * each.to(rows.dtype).unsqueeze(-1)
    if sparse:
        return sparse_backward(rows, indices, weight_shape[0], padding_idx, scale_grad_by_freq)
    return dense_backward.function(rows, indices, weight_shape[0], padding_idx, False)


MEAN, MAXIMUM = 1, 2
bags_record: Op = internal(
    "_embedding_bag(Tensor weight, Tensor indices, Tensor which, Tensor sizes, Tensor? scales, "
    "Tensor? shares, int mode, bool scale_grad_by_freq, bool sparse, int padding_idx) -> "
    "(Tensor output, Tensor firsts)",
    _bags,
    d_weight=_of_table,
    d_scales=lambda gs, weight, indices, which, sizes, mode, padding_idx, result1: (
        _of_rows(gs[0], which, sizes, mode, result1)
        * embedding_record.function(weight, indices, padding_idx)
    ).sum(-1),
    fresh=True,
    doc="The sums, means or maxima of the rows of bags, given the bag of each row and their sizes.",
)
