"""Stacking, repeating and combining tensors: functions composed of records."""

from __future__ import annotations

from collections.abc import Sequence
from threading import get_ident
from typing import Any

import numpy as np

from toytorch.core.arguments import spread
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.device import contiguous_format
from toytorch.facts.hints import Fn
from toytorch.facts.schema import wrong_argument
from toytorch.facts.size import wrap_dim
from toytorch.ops.creation import create
from toytorch.ops.creation.ranges import arange
from toytorch.ops.define import public
from toytorch.ops.shaping import rearrange, slices
from toytorch.ops.shaping.reshape import need_tensors


def _at_least(n: int) -> Any:
    def function(*tensors: Any) -> Any:
        many = len(tensors) != 1
        if not many and isinstance(tensors[0], (list, tuple)):
            tensors, many = tuple(tensors[0]), True
        need_tensors(tensors)
        made = []
        for t in tensors:
            if t.ndim < n and n == 3 and t.ndim == 2:
                made.append(t.unsqueeze(-1))
                continue
            if n == 3 and t.ndim == 1:
                made.append(t.unsqueeze(0).unsqueeze(-1))
                continue
            while t.ndim < n:
                t = t.unsqueeze(0)
            made.append(t)
        return tuple(made) if many else made[0]

    returns = "Tensor[] if tensors is list else Tensor"
    return public(
        f"atleast_{n}d",
        tensor_first=False,
        returns=returns,
        doc=f"Tensors with at least {n} dimensions.",
    )(function)


atleast_1d, atleast_2d, atleast_3d = _at_least(1), _at_least(2), _at_least(3)


def _tensors(name: str, tensors: Sequence[Tensor]) -> Any:
    """A list of tensors, and PyTorch's words where it is none."""
    if not isinstance(tensors, (list, tuple)) or any(not isinstance(t, Tensor) for t in tensors):
        raise wrong_argument(name, "tensors", 1, "tuple of Tensors", tensors)
    if not tensors:
        raise RuntimeError(f"{name} expects a non-empty TensorList")
    return tensors


def _many(f: Fn, tensors: Sequence[Tensor]) -> list[Tensor]:
    return [f(t) for t in tensors]


@public("hstack", tensor_first=False)
def hstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined side by side."""
    parts = _many(atleast_1d, _tensors("hstack", tensors))
    return rearrange.cat.function(parts, 0 if parts and parts[0].ndim == 1 else 1, out=out)


@public("vstack", "row_stack", tensor_first=False)
def vstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined one above the other."""
    return rearrange.cat.function(_many(atleast_2d, _tensors("vstack", tensors)), 0, out=out)


@public("dstack", tensor_first=False)
def dstack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Tensors joined in the third dimension."""
    return rearrange.cat.function(_many(atleast_3d, _tensors("dstack", tensors)), 2, out=out)


@public("column_stack", tensor_first=False)
def column_stack(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Vectors as the columns of a matrix."""
    return hstack(
        [t.reshape(-1, 1) if t.ndim <= 1 else t for t in _tensors("column_stack", tensors)], out=out
    )


@public("tile")
def tile(input: Tensor, dims: tuple[int, ...]) -> Tensor:
    """The tensor repeated, with missing repeats taken as 1 from the left."""
    if not isinstance(dims, (tuple, list)):
        raise wrong_argument("tile", "dims", 2, "tuple of ints", dims)
    return tiled(input, dims)


@public(method="tile")
def tiled(input: Tensor, *dims: tuple[int, ...]) -> Tensor:
    """`tile` by numbers that may be given one by one."""
    if not dims:
        raise TypeError('tile() missing 1 required positional arguments: "dims"')
    repeats = spread(dims, "tile", "dims")
    repeats = (1,) * (input.ndim - len(repeats)) + repeats
    return rearrange.repeat.function(input, repeats)


def repeated(input: Tensor, times: int, dim: int | None) -> Tensor:
    """Every element repeated as often as all others: the elements along a new dimension, copied."""
    if dim is None:
        input, dim = input.view(-1) if input.is_contiguous() else input.reshape(-1), 0
    dim = wrap_dim(dim, input.ndim)
    if times < 0:
        raise RuntimeError("Repeats must be non-negative")
    shape = input.shape
    around = *shape[: dim + 1], times, *shape[dim + 1 :]
    a, mode = input._array, state.fast_path
    if (
        not (input._requires_grad if mode is None else mode != get_ident())
        and a.__class__ is np.ndarray
        and a.size * times
    ):  # nobody records or watches the first three steps
        copied = wrap(rearrange.interleaved(np, a, times, dim).reshape(around), input.dtype)
    else:
        wide = input.unsqueeze(dim + 1).expand(*around)
        copied = wide.clone(memory_format=contiguous_format)
    return copied.view(*shape[:dim], shape[dim] * times, *shape[dim + 1 :])


@public("repeat_interleave", method=True)
def repeat_interleave(
    input: Any = None,
    repeats: Any = None,
    dim: int | None = None,
    *,
    output_size: int | None = None,
) -> Tensor:
    """Every element repeated where it stands."""
    if input is None:
        input, repeats = repeats, None
    if not isinstance(input, Tensor):
        kinds = "" if input is None else type(input).__name__
        raise TypeError(
            "repeat_interleave() received an invalid combination of arguments - got "
            f"({kinds}), but expected one of:"
        )
    if repeats is None:
        if input.dtype not in (types.int64, types.int32):
            raise NotImplementedError(
                f"\"repeat_interleave_cpu\" not implemented for '{input.dtype.legacy}'"
            )
        places = arange(len(input), dtype=input.dtype, device=input.device)
        repeats, input, dim = input, places, 0
    if output_size is not None and isinstance(repeats, int):
        wanted = repeats * (input.numel() if dim is None else input.shape[dim])
        if wanted != output_size:
            raise RuntimeError(
                f"repeat_interleave: Invalid output_size, expected {wanted} but got {output_size}"
            )
    if isinstance(repeats, (int, np.integer)) and not isinstance(repeats, bool):
        return repeated(input, int(repeats), dim)
    if not isinstance(repeats, Tensor):
        raise TypeError(
            "repeat_interleave() received an invalid combination of arguments - got "
            f"({type(repeats).__name__}), but expected one of:"
        )
    if repeats.ndim == 1 and len(repeats) == 1:
        repeats = repeats.reshape(())  # one number for all
    if dim is not None and not input.ndim:
        wrap_dim(dim + 1 if dim >= 0 else dim + 2, 0)  # PyTorch looks one dimension further
    return rearrange.repeat_interleave.function(input, repeats, dim)


@public("fliplr", method=True)
def fliplr(input: Tensor) -> Tensor:
    """Columns in reverse."""
    if input.ndim < 2:
        raise RuntimeError("Input must be >= 2-d.")
    return rearrange.flip.function(input, 1)


@public("flipud", method=True)
def flipud(input: Tensor) -> Tensor:
    """Rows in reverse."""
    if input.ndim < 1:
        raise RuntimeError("Input must be >= 1-d.")
    return rearrange.flip.function(input, 0)


@public("rot90", method=True)
def rot90(input: Tensor, k: int = 1, dims: tuple[int, ...] = (0, 1)) -> Tensor:
    """The plane of two dimensions turned k times by 90 degrees, from the first to the second.

    >>> rot90(torch.tensor([[1, 2], [3, 4]]))
    tensor([[2, 4],
            [1, 3]])
    """
    dims = tuple(dims)
    if len(dims) != 2:
        raise RuntimeError(f"expected total rotation dims == 2, but got dims = {len(dims)}")
    if input.ndim < 2:
        raise RuntimeError(f"expected total dims >= 2, but got total dims = {input.ndim}")
    for d in dims:
        if not -input.ndim <= d < input.ndim:
            raise RuntimeError(
                f"Rotation dim{dims.index(d)} out of range, dim{dims.index(d)} = {d}"
            )
    first, second = (d % input.ndim for d in dims)
    if first == second:
        raise RuntimeError(
            f"expected rotation dims to be different, but got dim0 = {dims[0]} and dim1 = {dims[1]}"
        )
    return rearrange.rot90.function(input, k % 4, (first, second))


@public("diag", method=True)
def diag(input: Tensor, diagonal: int = 0, *, out: Tensor | None = None) -> Tensor:
    """The diagonal of a matrix, or the matrix with a vector on its diagonal."""
    if input.ndim not in (1, 2):
        raise RuntimeError(f"diag(): Supports 1D or 2D tensors. Got {input.ndim}D")
    if input.ndim == 1:
        made = rearrange.diag_embed.function(input, diagonal)
    else:
        made = slices.diagonal.function(input, diagonal).clone(memory_format=contiguous_format)
    aten = "diag_embed" if input.ndim == 1 else "diagonal_copy"
    return create.put_out(made, out, same=True, aten=aten, of=(input,))


@public("meshgrid", tensor_first=False)
def meshgrid(*tensors: Any, indexing: str | None = None) -> tuple[Tensor, ...]:
    """Grids of coordinates from vectors."""
    if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)):
        tensors = tuple(tensors[0])
    need_tensors(tensors)
    if indexing is None:
        from toytorch.facts import warned  # seldom needed

        warned.once(warned.MESHGRID)
    if not tensors:
        raise RuntimeError("meshgrid expects a non-empty TensorList")
    if indexing not in (None, "ij", "xy"):
        raise RuntimeError(
            f'torch.meshgrid: indexing must be one of "xy" or "ij", but received: {indexing}'
        )
    for t in tensors:
        if t.ndim > 1:
            raise RuntimeError(
                f"torch.meshgrid: Expected 0D or 1D tensor in the tensor list but "
                f"got: {list(t.shape)}"
            )
        if t.dtype is not tensors[0].dtype:
            raise RuntimeError("meshgrid expects all tensors to have the same dtype")
        if t.device != tensors[0].device:
            raise RuntimeError("meshgrid expects all tensors to have the same device")
    swap = indexing == "xy" and len(tensors) > 1
    if swap:
        tensors = (tensors[1], tensors[0], *tensors[2:])
    sizes = [t.numel() for t in tensors]
    grids = [
        t.reshape([-1 if i == k else 1 for k in range(len(tensors))]).expand(sizes)
        for i, t in enumerate(tensors)
    ]
    if swap:
        grids[0], grids[1] = grids[1], grids[0]
    return tuple(grids)


@public("cartesian_prod", tensor_first=False)
def cartesian_prod(*tensors: Tensor) -> Tensor:
    """All combinations of the elements of vectors, one a row."""
    need_tensors(tensors)
    for t in tensors:
        if t.ndim != 1:
            raise RuntimeError(f"Expect a 1D vector, but got shape {list(t.shape)}")
    if len(tensors) == 1:
        return tensors[0]
    return rearrange.stack.function([g.reshape(-1) for g in meshgrid(*tensors, indexing="ij")], 1)


@public("diagflat", method=True)
def diagflat(input: Tensor, offset: int = 0) -> Tensor:
    """A matrix with all elements on a diagonal."""
    return rearrange.diag_embed.function(input.reshape(-1), offset)


@public("combinations")
def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """All choices of r elements of a vector, one a row.

    >>> combinations(torch.tensor([1, 2, 3]))
    tensor([[1, 2],
            [1, 3],
            [2, 3]])
    """
    if input.ndim != 1:
        raise RuntimeError(f"Expect a 1D vector, but got shape {list(input.shape)}")
    if r < 0:
        raise RuntimeError(f"Expect a non-negative number, but got {r}")
    if r == 0:
        return create.empty(0, dtype=input.dtype, device=input.device)
    places = np.indices((len(input),) * r)
    wanted = np.ones(places.shape[1:], bool)
    for low, high in zip(places, places[1:]):
        wanted &= (low <= high) if with_replacement else (low < high)
    rows = wrap(np.stack([p[wanted] for p in places], 1).astype(np.int64))
    return input[rows.to(device=input.device)]


@public("vander")
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The powers of a vector's elements as columns, from the highest down.

    >>> vander(torch.tensor([1, 2, 3]))
    tensor([[1, 1, 1],
            [4, 2, 1],
            [9, 3, 1]])
    """
    if x.ndim != 1:
        raise RuntimeError("x must be a one-dimensional tensor.")
    n = len(x) if N is None else N
    if n < 0:
        raise RuntimeError("N must be non-negative.")
    kind = types.promote_types(x.dtype, types.int64)
    table: Any = x.new_ones([len(x), n], dtype=kind)
    if n > 1:  # written in place, which the history tells
        powers = table.narrow(1, 1, n - 1)
        powers.copy_(x.unsqueeze(1))
        powers.copy_(powers.cumprod(1))
    return table if increasing else table.flip(1)
