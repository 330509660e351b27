"""Tables of vectors, looked up by number."""

from __future__ import annotations

from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Device, DType
from toytorch.facts.parts import shows
from toytorch.nn import functional as F
from toytorch.nn import init
from toytorch.nn.modules.module import Module
from toytorch.nn.parameter import Parameter
from toytorch.ops.creation.create import empty


class _Table(Module):
    """A weight (V, D) that starts normal, with one row of zeros if there is padding."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    weight: Tensor

    def _set_up(
        self,
        rows: int,
        width: int,
        padding_idx: int | None,
        weight: Tensor | None,
        freeze: bool,
        device: Device,
        dtype: DType | None,
    ) -> None:
        self.num_embeddings, self.embedding_dim = rows, width
        if padding_idx is not None and not -rows <= padding_idx < rows:
            what = "Padding_idx" if isinstance(self, Embedding) else "padding_idx"
            raise AssertionError(f"{what} must be within num_embeddings")
        self.padding_idx = None if padding_idx is None else padding_idx % rows
        if weight is None:
            self.weight = Parameter(empty((rows, width), device=device, dtype=dtype), not freeze)
            self.reset_parameters()
        else:
            if tuple(weight.shape) != (rows, width):
                raise AssertionError(
                    "Shape of weight does not match num_embeddings and embedding_dim"
                )
            self.weight = Parameter(weight, not freeze)

    def reset_parameters(self) -> None:
        """Draws new vectors."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


class Embedding(_Table):
    """The vectors of a table (V, D) that indices (…) name: (…, D).

    >>> Embedding(10, 3, padding_idx=0)
    Embedding(10, 3, padding_idx=0)
    """

    extra_repr = shows(
        "=num_embeddings =embedding_dim padding_idx max_norm norm_type scale_grad_by_freq sparse",
        padding_idx=None, max_norm=None, norm_type=2, scale_grad_by_freq=False, sparse=False,
    )  # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.sparse = scale_grad_by_freq, sparse
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, _freeze, device, dtype)

    def forward(self, input: Tensor) -> Tensor:
        return F.embedding(
            input, self.weight, self.padding_idx, self.max_norm, self.norm_type,
            self.scale_grad_by_freq, self.sparse,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """A table with given vectors, which are learned further only where `freeze` is False."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        how = padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse
        return cls(rows, width, *how, embeddings, freeze)


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of vectors of a table, without the vectors in between."""

    extra_repr = shows(
        "=num_embeddings =embedding_dim max_norm norm_type scale_grad_by_freq mode!r padding_idx",
        max_norm=None, norm_type=2, scale_grad_by_freq=False, padding_idx=None,
    )  # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Device = None,
        dtype: DType | None = None,
    ) -> None:
        super().__init__()
        self.max_norm, self.norm_type = max_norm, norm_type
        self.scale_grad_by_freq, self.mode, self.sparse = scale_grad_by_freq, mode, sparse
        self.include_last_offset = include_last_offset
        self._set_up(num_embeddings, embedding_dim, padding_idx, _weight, False, device, dtype)

    def forward(
        self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None
    ) -> Tensor:
        return F.embedding_bag(
            input, self.weight, offsets, self.max_norm, self.norm_type, self.scale_grad_by_freq,
            self.mode, self.sparse, per_sample_weights, self.include_last_offset, self.padding_idx,
        )  # fmt: skip

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """A table with given vectors, which are learned further only where `freeze` is False."""
        if embeddings.ndim != 2:
            raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
        rows, width = embeddings.shape
        how = max_norm, norm_type, scale_grad_by_freq, mode, sparse
        made = cls(rows, width, *how, embeddings, include_last_offset, padding_idx)
        made.weight.requires_grad = not freeze
        return made
