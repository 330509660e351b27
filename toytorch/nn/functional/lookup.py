"""Linear maps, and rows of tables by number."""

from __future__ import annotations

from _thread import get_ident
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, beside, wrap
from toytorch.core.views import counted
from toytorch.facts import state
from toytorch.facts.dtype import int64
from toytorch.facts.schema import wrong_argument
from toytorch.ops.define import takes_words
from toytorch.ops.linalg.matmul_calls import linear
from toytorch.ops.nn import embedding as tables
from toytorch.ops.nn.attention import bilinear

__all__ = ["bilinear", "embedding", "embedding_bag", "linear", "one_hot"]


@takes_words()
def one_hot(input: Tensor, num_classes: int = -1) -> Tensor:
    """A vector of zeros with a 1 at each class number."""
    if not isinstance(input, Tensor):
        raise wrong_argument("one_hot", "input", 1, "Tensor", input)
    if input.dtype is not int64:
        raise RuntimeError("one_hot is only applicable to index tensor of type LongTensor.")
    mode, array = state.fast_path, input._array
    if array.__class__ is np.ndarray and array.size and (mode is None or mode == get_ident()):
        # As numbers without sign, those below 0 are the largest.
        high = int(np.maximum.reduce(array.view(np.uint64), None))
        count = high + 1 if num_classes == -1 else num_classes
        if high < count and high < 1 << 63:
            ones = np.zeros((array.size, count), np.int64)
            ones.reshape(-1)[np.arange(0, ones.size, count) + array.reshape(-1)] = 1
            return counted(wrap(ones.reshape(*array.shape, count), int64), 2)
    seen = input.numel() > 0 and not input.is_meta
    if seen and int(input.min()) < 0:
        raise RuntimeError("Class values must be non-negative.")
    if num_classes == -1:
        num_classes = int(input.max()) + 1
    elif seen and int(input.max()) >= num_classes:
        raise RuntimeError("Class values must be smaller than num_classes.")
    made: Tensor = input.new_zeros((*input.shape, num_classes))
    if not input.numel():
        return made
    return counted(made.scatter_(-1, input.unsqueeze(-1), 1), 2)


def _padding(padding_idx: int | None, weight: Tensor) -> int | None:
    """The row without a gradient, counted from the front."""
    if padding_idx is None:
        return None
    rows = int(weight.shape[0])
    if not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    return padding_idx % rows


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of a table (V, D) that indices (…) name: (…, D).

    >>> embedding(torch.tensor([1, 0]), torch.eye(2))
    tensor([[0., 1.],
            [1., 0.]])
    """
    padding = _padding(padding_idx, weight)
    if max_norm is not None:
        tables.embedding_renorm_(weight.detach(), input, max_norm, norm_type)  # a parameter, too
    return tables.embedding_record.function(
        weight, input, -1 if padding is None else padding, scale_grad_by_freq, sparse
    )


_MODES = {"sum": 0, "mean": 1, "max": 2}  # of bags


def _check_mode(mode: str, by_frequency: bool, sparse: bool, weights: Tensor | None) -> None:
    """Refuses a mode of bags that does not go with the other options."""
    if mode not in _MODES:
        raise ValueError("mode has to be one of sum, mean or max")
    if mode == "max" and (by_frequency or sparse):
        raise ValueError(
            "max mode does not support "
            + ("scaling the gradient by the frequency" if by_frequency else "sparse weights")
        )
    if weights is not None and mode != "sum":
        raise NotImplementedError(
            "embedding_bag: per_sample_weights was not None. per_sample_weights is only supported "
            f"for mode='sum' (got mode='{mode}'). Please open a feature request on GitHub."
        )


def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sums, means or maxima of bags of rows of a table."""
    if weight.dtype is int64 and input.is_floating_point():  # the order of long ago
        input, weight = weight, input
    if per_sample_weights is not None and input.shape != per_sample_weights.shape:
        raise ValueError(
            f"embedding_bag: If per_sample_weights ({per_sample_weights.shape}) is not None, then "
            f"it must have the same shape as the input ({input.shape})"
        )
    if weight.ndim != 2:
        raise ValueError(f"weight has to be a 2D Tensor, but got Tensor of dimension {weight.ndim}")
    if input.ndim == 2:
        if offsets is not None:
            raise ValueError(
                "if input is 2D, then offsets has to be None, as input is treated is a mini-batch "
                f"of fixed length sequences. However, found offsets of type {type(offsets)}"
            )
        offsets = beside(input, np.arange(input.shape[0]) * input.shape[1])
        input = input.reshape(-1)
        if per_sample_weights is not None:
            per_sample_weights = per_sample_weights.reshape(-1)
    elif input.ndim != 1:
        raise ValueError(
            f"input has to be 1D or 2D Tensor, but got Tensor of dimension {input.ndim}"
        )
    elif offsets is None:
        raise ValueError("offsets has to be a 1D Tensor but got None")
    elif offsets.ndim != 1:
        raise ValueError("offsets has to be a 1D Tensor")
    _check_mode(mode, scale_grad_by_freq, sparse, per_sample_weights)
    if max_norm is not None:
        tables.embedding_renorm_(weight.detach(), input, max_norm, norm_type)  # a parameter, too
    how = scale_grad_by_freq, _MODES[mode], sparse
    more = per_sample_weights, include_last_offset, padding_idx
    made: Any = tables.embedding_bag(weight, input, offsets, *how, *more)
    return made[0]
