"""Views, joins and parts of jagged nested tensors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import toytorch as torch
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Fn, Ints, Shape
from toytorch.facts.size import wrap_dim
from toytorch.nested.jagged import NestedTensor, like
from toytorch.nested.jagged_rules import agree, name_of, rule, shape_of


def inner_dim(
    nested: NestedTensor, dim: int, name: str, extra: int = 0, ragged: bool = False
) -> int:
    """The dimension of the values; the batch, and the ragged one unless it may be, are refused."""
    at = wrap_dim(dim, nested.dim() + extra)
    if at == nested._ragged_idx and not ragged:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on ragged dim")
    if at == 0:
        raise RuntimeError(f"{name}(): not supported for NestedTensor on dim=0")
    return at - 1


# -- parts ---------------------------------------------------------------------------------------


@rule("unbind")
def unbind(func: Fn, input: NestedTensor, dim: int = 0) -> tuple[Tensor, ...]:
    """The parts."""
    if dim != 0:
        raise RuntimeError("unbind(): only supported for NestedTensor on dim=0")
    values, at, counts = input.values(), input._ragged_idx - 1, input._seqlens()
    if input._lengths is None:
        return tuple(torch.split(values, counts, at))
    starts = input._offsets.tolist()
    size = values.shape[at]
    if any(s + n > size for s, n in zip(starts, counts)):
        raise RuntimeError(
            "unbind(): nested tensor offsets and lengths do not match ragged_idx dimension"
        )
    return tuple(values.narrow(at, s, n) for s, n in zip(starts, counts))


@rule("__iter__")
def iterate(func: Fn, input: NestedTensor) -> Any:
    """Over the parts."""
    return iter(input.unbind())


@rule("select")
def select(func: Fn, input: NestedTensor, dim: int, index: int) -> Any:
    """A part, or one element of a dimension of all parts."""
    at = wrap_dim(dim, input.dim())
    if at == 0:
        return input.unbind()[index]
    inner = inner_dim(input, dim, "select")
    if input._lengths is not None:
        raise ValueError(
            "select(): not yet supported on dim != 0 for non-contiguous nested tensor with holes"
        )
    values = input._values.select(inner, index)
    return like(input, values, input._ragged_idx - (inner < input._ragged_idx - 1))


@rule("__getitem__")
def getitem(func: Fn, input: NestedTensor, index: object) -> Any:
    """Numbers, slices, None and `...`, one dimension after the other."""
    asked = index if isinstance(index, tuple) else (index,)
    found, dim = input, 0
    for i, part in enumerate(asked):
        if part is Ellipsis:
            taken = sum(p is not None for p in asked[i + 1 :])
            dim = found.dim() - taken
        elif part is None:
            found, dim = found.unsqueeze(dim), dim + 1
        elif isinstance(part, slice):
            if part != slice(None) or dim == 0:
                found = sliced(func, found, dim, part)
            dim += 1
        elif isinstance(part, int):
            found = found.select(dim, part)
        else:
            raise NotImplementedError(  # as in PyTorch
                "aten.index.Tensor: jagged nested tensors are indexed by numbers, slices, None and ..."
            )
    return found


def sliced(func: Fn, input: Any, dim: int, part: slice) -> Any:
    """A slice of one dimension."""
    if not isinstance(input, NestedTensor):
        return input[(slice(None),) * dim + (part,)]
    if input._lengths is not None or input._ragged_idx != 1:
        raise ValueError(
            "NestedTensor slice_tensor(self: jt, dim: any?, start: any?, end: any?, step: any?): "
            "expected self to be a contiguous jagged layout NestedTensor"
        )
    at = inner_dim(input, dim, "slice")
    return like(input, input._values[(slice(None),) * at + (part,)])


@rule("narrow", only="narrow(self: jt, dim: any, start: any, length: any)")
def narrow(func: Fn, input: NestedTensor, dim: int, start: int, length: int) -> NestedTensor:
    """Some elements of a dimension of all parts."""
    return like(input, input._values.narrow(inner_dim(input, dim, "narrow"), start, length))


@rule("split", "split_with_sizes", only="split_tensor(self: jt, split_size: any, dim: any?)")
def split(func: Fn, input: NestedTensor, split_size: Ints, dim: int = 0) -> Any:
    """Pieces of a dimension of all parts."""
    name = "split" if isinstance(split_size, int) else "split_with_sizes"
    at = inner_dim(input, dim, name)
    return tuple(like(input, v) for v in torch.split(input._values, split_size, at))


@rule("chunk", only="chunk_default(self: jt, chunks: any, dim: any?)")
def chunk(func: Fn, input: NestedTensor, chunks: int, dim: int = 0) -> Any:
    """So many pieces of a dimension; of the batch, nested tensors of fewer parts."""
    if wrap_dim(dim, input.dim()) != 0:
        at = inner_dim(input, dim, "chunk")
        return tuple(like(input, v) for v in input._values.chunk(chunks, at))
    counts = input._offsets.diff().chunk(chunks)
    values = input._values.split([int(c.sum()) for c in counts])
    return tuple(
        NestedTensor(v, torch.nn.functional.pad(c.cumsum(0), (1, 0)))
        for v, c in zip(values, counts)
    )


# -- views ---------------------------------------------------------------------------------------


@rule("view", "reshape", "_unsafe_view", "_reshape_alias")
def view(func: Fn, input: NestedTensor, *shape: object, **kwargs: object) -> Any:
    """The same elements in other dimensions behind the ragged one."""
    if shape and isinstance(shape[0], torch.dtype):
        return like(input, input._values.view(shape[0]))
    size = shape_of(shape or (kwargs.get("shape") or kwargs["size"],))
    if input._ragged_idx != 1 and tuple(size) != input._size:
        raise RuntimeError(
            "view(): does not support ragged_idx != 1 except when inp._size == size. inp._size is "
            f"({input._size}) and size is ({size})."
        )
    if len(size) < 3 or not agree(input, size):
        raise RuntimeError(f"view(): cannot view shape {input._size} as {size}")
    inner = list(size[1:])
    inner[input._ragged_idx - 1] = input._values.shape[input._ragged_idx - 1]
    return like(input, func(input._values, inner))


@rule("flatten")
def flatten(func: Fn, input: NestedTensor, start_dim: int = 0, end_dim: int = -1) -> Any:
    """Neighbouring dimensions as one."""
    ends = [inner_dim(input, d, "flatten") + 1 for d in (start_dim, end_dim)]
    if ends[0] == ends[1]:
        return input
    shape = input.shape
    one = math.prod(shape[ends[0] : ends[1] + 1])
    return input.reshape(*shape[: ends[0]], one, *shape[ends[1] + 1 :])


@rule("unflatten")
def unflatten(func: Fn, input: NestedTensor, dim: int, sizes: Shape) -> Any:
    """One dimension as several."""
    at = inner_dim(input, dim, "unflatten")
    ragged = input._ragged_idx + (len(sizes) - 1) * (at < input._ragged_idx - 1)
    return like(input, input._values.unflatten(at, sizes), ragged)


@rule("squeeze")
def squeeze(func: Fn, input: NestedTensor, *dims: int, **kwargs: int) -> NestedTensor:
    """Without a dimension of size 1."""
    if not dims and not kwargs:
        raise NotImplementedError(  # as in PyTorch
            "aten.squeeze.default: say which dimension of a jagged nested tensor, squeeze(dim)"
        )
    dim = kwargs.get("dim", *dims)
    return like(input, input._values.squeeze(inner_dim(input, dim, "squeeze")))


@rule("unsqueeze")
def unsqueeze(func: Fn, input: NestedTensor, dim: int) -> NestedTensor:
    """With a dimension of size 1."""
    at = inner_dim(input, dim, "unsqueeze", extra=1, ragged=True)
    return like(
        input, input._values.unsqueeze(at), input._ragged_idx + (at <= input._ragged_idx - 1)
    )


@rule("transpose", "swapaxes", "swapdims")
def transpose(func: Fn, input: NestedTensor, dim0: int, dim1: int) -> NestedTensor:
    """Two dimensions in each other's place, neither of them the batch."""
    a, b = wrap_dim(dim0, input.dim()), wrap_dim(dim1, input.dim())
    r = input._ragged_idx
    if r in (a, b):
        if 0 in (a, b):
            raise ValueError("Transpose is not supported on the batch dimension for jagged NT")
        return like(input, input._values.transpose(a - 1, b - 1), b if a == r else a)
    inner = [inner_dim(input, d, "transpose") for d in (a, b)]
    return like(input, input._values.transpose(*inner))


@rule("permute")
def permute(func: Fn, input: NestedTensor, *dims: Any, **kwargs: Any) -> NestedTensor:
    """Dimensions in another order, the batch first."""
    asked = kwargs["dims"] if kwargs else dims
    order = [int(d) for d in shape_of(asked if not kwargs else (asked,))]
    ndim = input.dim()
    if len(order) != ndim:
        raise ValueError(
            f"permute(): number of dimensions in the tensor input ({ndim}) does not match the "
            f"length of the desired ordering of dimensions ({len(order)})."
        )
    order = [wrap_dim(d, ndim) for d in order]
    if len(set(order)) != ndim:
        raise ValueError("permute(): duplicate dims are not allowed.")
    if input._lengths is not None:
        raise ValueError("permute(): not supported on jagged layout nested tensor with holes")
    if order[0] != 0:
        raise ValueError("Permute is not supported on the batch dimension for jagged NT")
    values = input._values.permute([d - 1 for d in order[1:]])
    return like(input, values, order.index(input._ragged_idx))


@rule("expand", "broadcast_to")
def expand(func: Fn, input: NestedTensor, *size: object) -> NestedTensor:
    """Dimensions of size 1 behind the ragged one made larger, without a copy."""
    wanted = shape_of(size)
    if not agree(input, wanted) or len(wanted) != input.dim():
        raise RuntimeError(f"expand(): cannot expand shape {input._size} -> {tuple(wanted)}")
    inner = [-1 if d == input._ragged_idx else wanted[d] for d in range(1, input.dim())]
    return like(input, input._values.expand(inner))


@rule("diff")
def diff(func: Fn, input: NestedTensor, n: int = 1, dim: int = -1) -> NestedTensor:
    """Differences of neighbours."""
    return like(input, torch.diff(input._values, n, inner_dim(input, dim, "diff")))


@rule("view_as", "reshape_as")
def view_as(func: Fn, input: NestedTensor, other: NestedTensor) -> Any:
    """In the shape of another nested tensor."""
    return input.reshape(other.shape)


@rule("expand_as")
def expand_as(func: Fn, input: Tensor, other: NestedTensor) -> NestedTensor:
    """A dense tensor in the shape of a nested one."""
    if isinstance(input, NestedTensor):
        raise ValueError(
            "NestedTensor expand_as_default(self: t, other: jt): expected self to be a tensor"
        )
    return like(other, input.expand_as(other._values))


# -- joins ---------------------------------------------------------------------------------------


@rule("cat", "concat", "concatenate")
def cat(func: Fn, tensors: Sequence[Tensor], dim: int = 0) -> NestedTensor:
    """Side by side in a dimension that is not ragged."""
    first = next(t for t in tensors if isinstance(t, NestedTensor))
    nested: list[Any] = [t if isinstance(t, NestedTensor) else t.expand_as(first) for t in tensors]
    at = inner_dim(first, dim, "cat")
    return like(nested[0], torch.cat([t._values for t in nested], at))


@rule("stack")
def stack(func: Fn, tensors: Sequence[Tensor], dim: int = 0) -> NestedTensor:
    """Nested tensors of the same lengths in a new dimension behind the ragged one."""
    first: Any = tensors[0]
    for t in tensors:
        if not isinstance(t, NestedTensor):
            raise RuntimeError("stack(): expected all nested tensors inputs")
        if t.dim() != first.dim():
            raise RuntimeError("stack(): expected all nested tensors to have the same dim")
        if not agree(t, first.shape):
            raise RuntimeError(
                "stack(): expected all nested tensors to have the same nested structure"
            )
    at = inner_dim(first, dim, name_of(func), extra=1)
    return like(first, torch.stack([t._values for t in tensors], at))
