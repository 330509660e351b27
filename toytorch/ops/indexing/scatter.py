"""Writing at places that index tensors name: the calls around the records of `index_dim`."""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

from toytorch.core import dispatch, write
from toytorch.core import inplace as writing
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import warned
from toytorch.facts.size import broadcast_shapes, wrap_dim
from toytorch.ops.define import public
from toytorch.ops.indexing import along_dim
from toytorch.ops.indexing import by_index as indexed
from toytorch.ops.indexing.scatter_reduce import scatter_reduce
from toytorch.ops.indexing.subscript import OLD_MASK

# -- scatter --------------------------------------------------------------------------------------


def _reducing(self: Tensor, dim: int, index: Tensor, source: Tensor | float, reduce: str) -> Any:
    """The record and arguments of `scatter(reduce=…)`, the older form of scatter_reduce."""
    if reduce not in ("add", "multiply"):
        scatter(self, dim, index.new_zeros(index.shape), source)  # what it refuses comes first
        raise RuntimeError("reduce argument must be either add or multiply.")
    if not isinstance(source, Tensor):
        source = self.new_full(index.shape, source)
    if reduce == "add":
        return along_dim.scatter_add, (self, dim, index, source)
    return scatter_reduce, (self, dim, index, source, "prod", True)


@public("scatter", method=True)
def scatter(
    input: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | float | None = None,
    *,
    value: Any = None,
    reduce: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """A copy with src (or a value) written at the places that index names."""
    source = value if src is None else src
    if reduce is not None:
        op, args = _reducing(input, dim, index, source, reduce)
        return dispatch.call(op, args, out)
    return along_dim.scatter.function(input, dim, index, source, out=out)


@public(method=True)
def scatter_(
    self: Tensor,
    dim: int,
    index: Tensor,
    src: Tensor | float | None = None,
    *,
    value: Any = None,
    reduce: str | None = None,
) -> Tensor:
    """Writes src (or a value) at the places that index names."""
    source = value if src is None else src
    if reduce is not None:
        return write.inplace(*_reducing(self, dim, index, source, reduce))
    return along_dim.scatter.written(self, dim, index, source)  # the op's in-place form


# -- index tensors for all dimensions -------------------------------------------------------------


@public("index_put", method=True)
def index_put(
    input: Tensor,
    indices: list[Any] | tuple[Tensor, ...] | None,
    values: Tensor,
    accumulate: builtins.bool = False,
) -> Tensor:
    """A copy with values written at index tensors."""
    if not accumulate and indices is not None:
        refuse_old_mask(input, indices, values)
    return indexed.index_put.function(
        input, _full_indices(input, indices, values), values, accumulate
    )


@public("index_put_", method=True)
def index_put_(
    self: Tensor,
    indices: Sequence[Tensor | None],
    values: Tensor,
    accumulate: builtins.bool = False,
) -> Tensor:
    """Writes values at index tensors."""
    writing.check_history(self, values._requires_grad)
    if not accumulate:
        refuse_old_mask(self, indices, values)
    given = [i for i in indices if isinstance(i, Tensor)]
    masked = len(given) == 1 and given[0]._dtype in (types.bool, types.uint8)
    fills_in = masked and not accumulate and values.numel() == 1  # as masked_fill_ does
    if len(indices) <= self.ndim and not fills_in:  # what indices must be is asked after this
        writing.refuse_arguments(self, (values, *given), self._array.shape)
    elif fills_in and writing.one_memory(self._storage, values._storage):
        values = values.clone()  # which is read before anything is written
    if fills_in and self.is_meta:
        return self.zero_()  # where elements are is not known, and none of them is there
    places = _full_indices(self, indices, values)
    return indexed.index_put.written(self, places, values, accumulate)  # the op's in-place form


def refuse_old_mask(x: Tensor, indices: Sequence[Tensor | None], values: Tensor) -> None:
    """Refuses a mask of bytes where one number goes everywhere, as masked_fill_ does."""
    given = [i for i in indices if i is not None]
    if len(given) == 1 and given[0]._dtype is types.uint8 and values.numel() == 1:
        refuse_masks(x, indices)
        indexed.need_mask("masked_fill_", given[0]._array)


def refuse_masks(x: Tensor, indices: Sequence[Tensor | None]) -> None:
    """Refuses masks of another shape than the dimensions they stand for."""
    dim = 0
    for i in indices:
        if i is not None and i.dtype in (types.bool, types.uint8):
            for k in range(i.ndim):
                if x.shape[dim + k : dim + k + 1] != i.shape[k : k + 1]:
                    raise IndexError(
                        f"The shape of the mask {list(i.shape)} at index {k} does not match the "
                        f"shape of the indexed tensor {list(x.shape)} at index {dim + k}"
                    )
            dim += i.ndim - 1
        dim += 1


def _full_indices(x: Tensor, indices: Any, values: Tensor) -> list[Any]:
    found: list[Any] = []
    if len(indices) > x.ndim:  # a mask without dimensions counts, which it does not in brackets
        raise IndexError(f"too many indices for tensor of dimension {x.ndim} (got {len(indices)})")
    refuse_masks(x, indices)
    masks = [i for i in indices if i is not None]
    if values._dtype is not x._dtype and len(masks) == 1 and fills(values, masks[0]):
        return [None if i is None else i.bool() for i in indices]
    for i in indices:
        if i is not None and i._dtype in (types.bool, types.uint8):
            if i.dtype is types.uint8:
                warned.at_call(OLD_MASK)
            found += indexed.nonzero.function(i).unbind(1)  # as ops, which a trace records
        else:
            found.append(i)
    taken = [i.ndim for i in found if i is not None]
    rank = x.ndim - len(taken) + max(taken, default=0)
    if (
        len(found) <= x.ndim
        and values.ndim > rank
        and not (len(masks) == 1 and fills(values, masks[0]))
    ):
        anywhere: list[Any] = [i if i is None else i.new_zeros(i.shape) for i in found]  # in bounds
        shape = x[tuple(_slices(anywhere))].shape
        raise indexed.mismatch(values._array, tuple(shape))
    return found


def fills(values: Tensor, mask: Tensor) -> bool:
    """Whether PyTorch's index_put is a masked_fill, which casts the one value."""
    return values.numel() == 1 and mask.ndim > 0 and mask.dtype in (types.bool, types.uint8)


def _held(x: Tensor, indices: Sequence[Tensor]) -> list[Any]:
    """Indices held inside their dimensions."""
    return [None if i is None else i.clamp(-n, n - 1) for i, n in zip(indices, x.shape)]


@public("_unsafe_masked_index")
def unsafe_masked_index(
    input: Tensor, mask: Tensor, indices: Sequence[Tensor], fill: float
) -> Tensor:
    """Elements at index tensors, and `fill` where the mask does not hold, whatever the index."""
    if input.numel() == 0:
        shape = broadcast_shapes(*[i.shape for i in indices if i is not None])
        return input.new_full((*shape, *input.shape[len(indices) :]), fill)
    return input[tuple(_slices(_held(input, indices)))].masked_fill(~mask, fill)


def _slices(indices: Sequence[Tensor]) -> list[Any]:
    return [slice(None) if i is None else i for i in indices]


@public("_unsafe_masked_index_put_accumulate")
def unsafe_masked_index_put_accumulate(
    input: Tensor, mask: Tensor, indices: Any, values: Tensor
) -> Tensor:
    """A copy with values added at index tensors where the mask holds."""
    if input.numel() == 0:
        return input.clone()
    held = values.masked_fill(~mask, 0)
    return index_put(input, _held(input, indices), held, True)


# -- along a dimension, broadcast -----------------------------------------------------------------


@public("take_along_dim", method=True)
def take_along_dim(
    input: Tensor, indices: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """Elements at indices along a dimension, with the other dimensions broadcast."""
    if indices.dtype is not types.int64 and dim is not None:
        raise RuntimeError(
            "torch.take_along_dim(): dtype of indices should be Long but got "
            f"{indices.dtype.legacy}"
        )
    if dim is None:
        flat = input.view(-1)
        if indices.numel() and indices.dtype not in (types.int64, types.int32):
            raise RuntimeError("gather(): Expected dtype int32/int64 for index")
        return flat.gather(0, indices.view(-1).long(), out=out)
    if input.ndim != indices.ndim:
        raise RuntimeError(
            "torch.take_along_dim(): input and indices should have the same number of dimensions, "
            f"but got {input.ndim} dimensions for input, and {indices.ndim} dimensions for indices"
        )
    if not input.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    d = wrap_dim(dim, input.ndim)
    n = input.shape[d]
    common = list(
        broadcast_shapes(
            [1 if i == d else m for i, m in enumerate(input.shape)],
            [1 if i == d else m for i, m in enumerate(indices.shape)],
        )
    )
    a = input.expand([input.shape[i] if i == d else m for i, m in enumerate(common)])
    b = indices.expand([indices.shape[i] if i == d else m for i, m in enumerate(common)])
    if not indices.is_meta and (b < 0).any():  # counted from the end, as NumPy's
        b = b.where(b >= 0, b + n)
    return a.gather(d, b, out=out)
