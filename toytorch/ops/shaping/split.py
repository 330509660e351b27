"""Parts of dimensions: splitting by sections, and the sums that undo a broadcast."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.arguments import is_integer, spread
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, Ints
from toytorch.facts.size import wrap_dim
from toytorch.ops.creation import create
from toytorch.ops.define import in_own_type, public
from toytorch.ops.shaping import rearrange, several
from toytorch.ops.shaping.reshape import PLACES, size_of_chunks, tensor_split

# -- splits without the ties between their parts --------------------------------------------------


def _unsafe_split(xp: ArrayModule, a: Array, split_size: Ints, dim: int) -> Any:
    return several._split(xp, a, split_size, dim)


def _joined(gs: Sequence[Tensor], dim: int) -> Any:
    return rearrange.cat.function(list(gs), dim)


# The parts lie in the same memory, but are no views: writing to one does not touch the others'
# gradients, and nobody checks that it does not touch their values.
unsafe_split = in_own_type(
    "unsafe_split(Tensor self, int split_size, int dim=0) -> Tensor[]",
    _unsafe_split,
    forms="method",
    d_self=_joined,
    doc="`split`, with parts that may be written to one by one.",
)
unsafe_split_with_sizes = in_own_type(
    "unsafe_split_with_sizes(Tensor self, int[] split_sizes, int dim=0) -> Tensor[]",
    _unsafe_split,
    forms="method",
    d_self=_joined,
    doc="`split_with_sizes`, with parts that may be written to one by one.",
)


def _tuple_of(op: Op) -> Any:
    def function(input: Tensor, split_size: Ints, dim: int = 0) -> tuple[Tensor, ...]:
        return tuple(op.function(input, split_size, dim))

    return public(
        op.name, method=op.name, words={"split_sizes": "split_size"}, doc=op.function.__doc__
    )(function)


_tuple_of(unsafe_split)
_tuple_of(unsafe_split_with_sizes)


@public("unsafe_chunk", method=True)
def unsafe_chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple[Tensor, ...]:
    """`chunk`, with parts that may be written to one by one.

    >>> [len(p) for p in unsafe_chunk(torch.zeros(5), 2)]
    [3, 2]
    """
    size = size_of_chunks(input, chunks, dim)
    if not size:
        return tuple(unsafe_split_with_sizes.function(input, [0] * chunks, dim))
    return tuple(unsafe_split.function(input, size, dim))


# -- along one dimension by name ------------------------------------------------------------------


def _along(name: str, need: int, dim_of: Any, doc: str) -> Any:
    def function(input: Tensor, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        if isinstance(indices_or_sections, Tensor):
            if not is_integer(indices_or_sections):
                raise TypeError(f"{name}() received an invalid combination of arguments")
            indices_or_sections = int(indices_or_sections)
        if input.ndim < need:
            raise RuntimeError(
                f"torch.{name} requires a tensor with at least {need} dimension{'s' * (need > 1)}, "
                f"but got a tensor with {input.ndim} dimensions!"
            )
        dim = dim_of(input)
        if isinstance(indices_or_sections, int):
            n, parts = input.shape[dim], indices_or_sections
            if parts == 0 or n % parts:
                raise RuntimeError(
                    f"torch.{name} attempted to split along dimension {dim}, but the size of the "
                    f"dimension {n} is not divisible by the split_size {parts}!"
                )
        return tensor_split(input, indices_or_sections, dim)

    return public(name, method=True, one_by_one=True, words=PLACES, doc=doc)(function)


hsplit = _along(
    "hsplit",
    1,
    lambda x: 0 if x.ndim == 1 else 1,
    "Parts side by side: of columns, or of a vector.",
)
vsplit = _along("vsplit", 2, lambda x: 0, "Parts one above the other: of rows.")
dsplit = _along("dsplit", 3, lambda x: 2, "Parts of the third dimension.")

# -- joining parts --------------------------------------------------------------------------------


@public("_chunk_cat", tensor_first=False)
def chunk_cat(
    tensors: Sequence[Tensor], dim: int, num_chunks: int, *, out: Tensor | None = None
) -> Tensor:
    """Tensors padded to equal chunks along a dimension, flattened behind it and joined.

    >>> torch._chunk_cat([torch.ones(3), torch.ones(2)], 0, 2)
    tensor([[1., 1., 1.],
            [1., 0., 1.]])
    """
    if num_chunks < 1:
        raise RuntimeError("_chunk_cat expects positive num_chunks")
    if not tensors:
        raise RuntimeError("_chunk_cat expects a non-empty input tensor list")
    if any(t.dtype is not tensors[0].dtype for t in tensors):
        raise RuntimeError("_chunk_cat expects all input tensors with the same dtype")
    if any(t.numel() == 0 for t in tensors):
        raise RuntimeError("_chunk_cat expects non-empty tensor")
    d = wrap_dim(dim, tensors[0].ndim)
    if any(t.ndim <= d for t in tensors):
        raise RuntimeError("_chunk_cat expects dim < input tensor's dimension")
    if any(t.shape[:d] != tensors[0].shape[:d] for t in tensors):
        raise RuntimeError("_chunk_cat expects same sizes of 0,...,dim-1 dimensions")
    rows = []
    for t in tensors:
        size = -(-t.shape[d] // num_chunks)
        missing = size * num_chunks - t.shape[d]
        if missing:
            pad = t.new_zeros((*t.shape[:d], missing, *t.shape[d + 1 :]))
            t = rearrange.cat.function([t, pad], d)
        rows.append(t.reshape((*t.shape[:d], num_chunks, -1)))
    return create.put_out(rearrange.cat.function(rows, d + 1), out)


@public(method=True)
def sum_to_size(self: Tensor, *size: Ints) -> Tensor:
    """Sums over the dimensions that a broadcast from `size` made or stretched.

    >>> sum_to_size(torch.ones(3, 2), 1, 2)
    tensor([[3., 3.]])
    """
    wanted = spread(size)
    lead = self.ndim - len(wanted)
    if lead < 0 or any(n not in (1, m) for n, m in zip(wanted, self.shape[lead:])):
        raise RuntimeError(
            f"size {{{list(wanted)}}} is not expandable to size {{{list(self.shape)}}}."
        )
    if not self.ndim:
        return self.sum()
    dims = [
        *range(lead),
        *(lead + i for i, n in enumerate(wanted) if n == 1 and self.shape[lead + i] != 1),
    ]
    summed = self.sum(dims, True) if dims else self
    return summed.view(wanted) if lead else summed
