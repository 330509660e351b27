"""`torch.sparse_compressed_tensor` and its four special cases, and what they ask of their parts."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from toytorch.backends.compressed import BY_ROWS, IN_BLOCKS, NAMES
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.composed import called
from toytorch.facts.device import layout as layout_class
from toytorch.facts.device import (
    layout_name,
    sparse_bsc,
    sparse_bsr,
    sparse_csc,
    sparse_csr,
    strided,
)
from toytorch.facts.hints import Array, Device, DType, Layout, Nested, Shape, Sizes
from toytorch.ops.sparse.compressed import construct
from toytorch.ops.sparse.create import _as_tensor, check_sparse_tensor_invariants

Given: TypeAlias = "Array | Tensor | Nested | None"  # what callers may give for a part
LAYOUTS = (sparse_csr, sparse_csc, sparse_bsr, sparse_bsc)


def sparse_compressed_tensor(
    compressed_indices: Given,
    plain_indices: Given,
    values: Given,
    size: Shape | None = None,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    pin_memory: bool = False,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
) -> Tensor:
    """A sparse tensor of rows, columns, or rows or columns of blocks.

    The entries of line k are those from `compressed_indices[k]` to `compressed_indices[k + 1]`;
    `plain_indices` says where in the line each is. Like `torch.sparse_compressed_tensor`.

    >>> sparse_compressed_tensor([0, 1, 3], [1, 0, 1], [5., 6., 7.], layout=torch.sparse_csr).to_dense()
    tensor([[0., 5.],
            [6., 7.]])
    """
    if layout not in LAYOUTS:
        got = "none" if layout is None else layout_name(layout)
        raise RuntimeError(
            f"sparse_compressed_tensor expected sparse compressed tensor layout but got {got}"
        )
    held = _as_tensor(values, dtype, device)
    where = held.device if device is None else device
    ends, places = (_indices(i, where) for i in (compressed_indices, plain_indices))
    sizes = inferred(ends, places, held, layout) if size is None else tuple(int(n) for n in size)
    if (
        check_sparse_tensor_invariants.is_enabled()
        if check_invariants is None
        else check_invariants
    ):
        check(ends, places, held, sizes, layout)
    made: Tensor = construct.function(ends, places, held, sizes, layout)
    return made.detach().requires_grad_() if requires_grad else made


def _indices(value: Given, device: Device) -> Tensor:
    made: Tensor = _as_tensor(value, None, device)
    if not isinstance(value, Tensor):
        made = made.to(types.int64)
    return made


def _blocks(held: Tensor, batch: int, layout: layout_class) -> tuple[int, ...]:
    """The sizes of a block; nothing where entries are elements."""
    if layout not in IN_BLOCKS:
        return ()
    if held.ndim < batch + 3:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + 2) but got {held.ndim}"
        )
    return tuple(held.shape[batch + 1 : batch + 3])


def inferred(ends: Tensor, places: Tensor, held: Tensor, layout: layout_class) -> Sizes:
    """The smallest size that has room for every place."""
    if ends.dtype.is_floating_point or ends.dtype.is_complex:
        raise NotImplementedError(
            f"\"estimate_sparse_compressed_tensor_size\" not implemented for '{ends.dtype.legacy}'"
        )
    batch = ends.ndim - 1
    block = _blocks(held, batch, layout)
    p, q = block or (1, 1)
    lines = ends.shape[-1] - 1
    width = int(places._array.max()) + 1 if places.numel() else 0
    n, m = (lines, width) if layout in BY_ROWS else (width, lines)
    dense = held.shape[batch + 1 + len(block) :]
    return (*ends.shape[:-1], n * p, m * q, *dense)


def check(ends: Tensor, places: Tensor, held: Tensor, sizes: Sizes, layout: layout_class) -> None:
    """Refuses parts that do not fit each other, and indices that are out of order."""
    ends_name, places_name, _, _ = NAMES[layout in BY_ROWS]
    if held.layout is not strided:
        raise RuntimeError("expected values to be a strided and contiguous tensor")
    check_dimensions(ends, places, held, sizes, layout)
    lines, width = check_lengths(ends, places, held, sizes, layout)
    if ends.dtype is not places.dtype:
        raise RuntimeError(
            f"{ends_name} and {places_name} must have the same dtype, but got {ends.dtype.legacy} "
            f"and {places.dtype.legacy}, respectively"
        )
    if ends.dtype not in (types.int32, types.int64):
        raise RuntimeError(
            f"{ends_name} and {places_name} dtype must be Int or Long, but got {ends.dtype.legacy}"
        )
    if not ends.is_meta:
        check_order(ends, places, places.shape[-1], lines, width, layout)


def check_dimensions(
    ends: Tensor, places: Tensor, held: Tensor, sizes: Sizes, layout: layout_class
) -> None:
    """Refuses parts whose numbers of dimensions, or batches, are not those of the size."""
    ends_name, places_name, _, _ = NAMES[layout in BY_ROWS]
    batch = ends.ndim - 1
    if batch < 0:
        raise RuntimeError(f"{ends_name} must have dimensionality >= 1 but got {ends.ndim}")
    if ends.ndim != places.ndim:
        raise RuntimeError(
            f"{ends_name} and {places_name} dimensionalities must be equal but got {ends.ndim} "
            f"and {places.ndim}, respectively"
        )
    inner = 2 if layout in IN_BLOCKS else 0
    dense = held.ndim - batch - inner - 1
    if dense < 0:
        raise RuntimeError(
            "values must have dimensionality > sum of batch and block dimensionalities "
            f"(={batch} + {inner}) but got {held.ndim}"
        )
    if len(sizes) != batch + 2 + dense:
        raise RuntimeError(
            "tensor dimensionality must be sum of batch, base, and dense dimensionalities "
            f"(={batch} + 2 + {dense}) but got {len(sizes)}"
        )
    for name, part in ((ends_name, ends), (places_name, places), ("values", held)):
        if tuple(part.shape[:batch]) != sizes[:batch]:
            raise RuntimeError(
                "all batch dimensions of indices and values must be equal to those of the size: "
                f"{name} has {list(part.shape[:batch])}, the size {list(sizes[:batch])}"
            )


def check_lengths(
    ends: Tensor, places: Tensor, held: Tensor, sizes: Sizes, layout: layout_class
) -> tuple[int, int]:
    """Refuses lengths that are not those of the size; how many lines there are, and how wide."""
    ends_name, places_name, line, _ = NAMES[layout in BY_ROWS]
    batch, inner = ends.ndim - 1, 2 if layout in IN_BLOCKS else 0
    block = _blocks(held, batch, layout) or (1, 1)
    if inner:
        for d in range(2):
            if sizes[batch + d] % block[d]:
                raise RuntimeError(
                    f"tensor shape[{batch + d}] (={sizes[batch + d]}) must be divisible with "
                    f"blocksize[{d}] (={block[d]}) as defined by values shape"
                )
    n, m = sizes[batch] // block[0], sizes[batch + 1] // block[1]
    lines, width = (n, m) if layout in BY_ROWS else (m, n)
    what = f"number of {line}{' blocks' if inner else 's'} + 1"
    if ends.shape[-1] != lines + 1:
        raise RuntimeError(
            f"{ends_name}.shape[-1] must be equal to the {what} (={lines + 1}), but got "
            f"{ends.shape[-1]}"
        )
    nnz = held.shape[batch]
    if places.shape[-1] != nnz:
        raise RuntimeError(
            f"{places_name}.shape[-1] must be equal to nnz (={nnz}) as defined by "
            f"values.shape[{batch}], but got {places.shape[-1]}"
        )
    if tuple(held.shape[batch + 1 + inner :]) != sizes[batch + 2 :]:
        raise RuntimeError(
            "values.shape[-dense_dim:] must be equal to the dense dimensions of the size: "
            f"{list(held.shape[batch + 1 + inner :])} and {list(sizes[batch + 2 :])}"
        )
    return lines, width


def check_order(
    ends: Tensor, places: Tensor, nnz: int, lines: int, width: int, layout: layout_class
) -> None:
    """Refuses ends that do not rise from 0 to the number of entries, and places out of order."""
    ends_name, places_name, line, place = NAMES[layout in BY_ROWS]
    counted, count = f"n{place}s", f"n{line}s"
    e, where = ends.detach().cpu().numpy(), places.detach().cpu().numpy()

    def require(held: Array, text: str) -> None:
        if not np.all(held):
            raise RuntimeError(f"`{text}` is not satisfied.")

    require(e[..., 0] == 0, f"{ends_name}[..., 0] == 0")
    require(e[..., -1] == nnz, f"{ends_name}[..., -1] == nnz")
    steps = e[..., 1:] - e[..., :-1]
    require(
        (steps >= 0) & (steps <= width),
        f"0 <= {ends_name}[..., 1:] - {ends_name}[..., :-1] <= {counted}",
    )
    require((where >= 0) & (where < width), f"0 <= {places_name} < {counted}")
    for matrix, listed in zip(e.reshape(-1, lines + 1), where.reshape(-1, nnz)):
        later = listed[1:] > listed[:-1]
        starts = matrix[1:-1]
        later[starts[(starts > 0) & (starts < nnz)] - 1] = True  # the next line begins there
        require(
            later,
            f"{places_name}[..., {ends_name}[..., i - 1]:{ends_name}[..., i]] for all i = 1, ..., "
            f"{count} are sorted and distinct along the last dimension values",
        )


def _special(name: str, kind: layout_class, doc: str) -> Any:
    ends_name, places_name, *_ = NAMES[kind in BY_ROWS]

    def function(
        ends: Given = None,
        places: Given = None,
        values: Given = None,
        size: Shape | None = None,
        **more: Any,
    ) -> Tensor:
        ends = more.pop(ends_name, ends)
        places = more.pop(places_name, places)
        if values is None or ends is None or places is None:
            given = ", ".join(type(a).__name__ for a in (ends, places, values) if a is not None)
            raise TypeError(
                f"{name}() received an invalid combination of arguments - got ({given})"
            )
        if more.pop("layout", kind) is not kind:
            raise RuntimeError(f"{name} makes tensors of the layout {kind}")
        return sparse_compressed_tensor(ends, places, values, size, layout=kind, **more)

    return called(name, doc, function)


sparse_csr_tensor = _special(
    "sparse_csr_tensor", sparse_csr, "A sparse matrix by rows: ends of rows, columns, values."
)
sparse_csc_tensor = _special(
    "sparse_csc_tensor", sparse_csc, "A sparse matrix by columns: ends of columns, rows, values."
)
sparse_bsr_tensor = _special(
    "sparse_bsr_tensor", sparse_bsr, "A sparse matrix of blocks, listed by rows of blocks."
)
sparse_bsc_tensor = _special(
    "sparse_bsc_tensor", sparse_bsc, "A sparse matrix of blocks, listed by columns of blocks."
)
