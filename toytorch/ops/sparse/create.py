"""`torch.sparse_coo_tensor`, and what it asks of indices, values and sizes."""

from __future__ import annotations

import functools
import math
from typing import Any

from toytorch.backends import sparse as arrays
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts.hints import Array, Device, DType, Nested, Shape, Sizes
from toytorch.ops.creation import create, from_data
from toytorch.ops.define import public
from toytorch.ops.sparse.coo import construct


class check_sparse_tensor_invariants:
    """Whether constructors look at every index: a switch, a context manager and a decorator.

    >>> with check_sparse_tensor_invariants():
    ...     check_sparse_tensor_invariants.is_enabled()
    True
    """

    _enabled = False

    def __init__(self, enable: bool = True) -> None:
        self.state, self.before = enable, False

    @staticmethod
    def is_enabled() -> bool:
        """Whether indices are checked."""
        return check_sparse_tensor_invariants._enabled

    @staticmethod
    def enable() -> None:
        """Checks indices from now on."""
        check_sparse_tensor_invariants._enabled = True

    @staticmethod
    def disable() -> None:
        """Trusts indices from now on."""
        check_sparse_tensor_invariants._enabled = False

    def __enter__(self) -> None:
        self.before = self.is_enabled()
        check_sparse_tensor_invariants._enabled = self.state

    def __exit__(self, *exc: object) -> None:
        check_sparse_tensor_invariants._enabled = self.before

    def __call__(self, function: Any) -> Any:
        @functools.wraps(function)
        def checked(*args: object, **kwargs: object) -> Any:
            with type(self)(self.state):
                return function(*args, **kwargs)

        return checked


@public("sparse_coo_tensor", tensor_first=False)
def sparse_coo_tensor(
    indices: Any = None,
    values: Any = None,
    size: Sizes | None = None,
    *,
    dtype: DType | None = None,
    device: Device = None,
    requires_grad: bool = False,
    check_invariants: bool | None = None,
    is_coalesced: bool | None = None,
) -> Tensor:
    """A tensor that is zero except for values at places: column k of indices is where values[k] is.

    Values at one place add up.

    >>> sparse_coo_tensor([[0, 1], [2, 0]], [3., 4.], (2, 3)).to_dense()
    tensor([[0., 0., 3.],
            [4., 0., 0.]])
    """
    if values is None:
        return _without_entries(indices if size is None else size, dtype, device, requires_grad)
    places = _as_tensor(indices, types.int64, device).to(types.int64)
    held = _as_tensor(values, dtype, device)
    if places.ndim != 2:
        raise RuntimeError(
            "indices must be a matrix, (sparse_dim, nnz), but it has the shape "
            f"{list(places.shape)}"
        )
    if held.ndim == 0:
        held = held.unsqueeze(0)
    sizes = inferred(places, held) if size is None else tuple(int(n) for n in size)
    check_sizes(places, held, sizes)
    if (
        check_sparse_tensor_invariants.is_enabled()
        if check_invariants is None
        else (check_invariants)
    ):
        check_indices(places._array, sizes, bool(is_coalesced))
    made: Tensor = construct.function(places, held, sizes, is_coalesced)
    return made.detach().requires_grad_() if requires_grad else made


def _as_tensor(value: Array | Tensor | Nested | None, dtype: DType | None, device: Device) -> Any:
    if isinstance(value, Tensor):
        return value.to(dtype=value.dtype if dtype is None else dtype, device=device)
    return from_data.tensor(value, dtype=dtype, device=device)


def _without_entries(
    size: Shape, dtype: DType | None, device: Device, requires_grad: bool
) -> Tensor:
    if size is None:
        raise TypeError("sparse_coo_tensor() received an invalid combination of arguments - got ()")
    sizes = (size,) if isinstance(size, int) else tuple(int(n) for n in size)
    return create.without_entries("zeros", sizes, dtype, device, requires_grad)


def inferred(places: Tensor, held: Tensor) -> Sizes:
    """The smallest size that has room for every place."""
    if not places.numel():
        return (0,) * int(places.shape[0]) + tuple(held.shape[1:])
    if int(places._array.min()) < 0:
        raise RuntimeError(f"found negative index {int(places._array.min())} in indices")
    return (*(int(n) + 1 for n in places._array.max(1)), *held.shape[1:])


def check_sizes(places: Tensor, held: Tensor, sizes: Sizes) -> None:
    """Refuses parts that do not fit each other."""
    dims, nnz = places.shape
    if any(n < 0 for n in sizes) or math.prod(sizes) >= 1 << 63:
        raise RuntimeError("numel: integer multiplication overflow")
    if len(sizes) != dims + held.ndim - 1:
        raise RuntimeError(
            "'len(size) == sparse_dim + dense_dim' is not satisfied: len(size) = "
            f"{len(sizes)}, sparse_dim = {dims}, dense_dim = {held.ndim - 1}"
        )
    if nnz != held.shape[0]:
        raise RuntimeError(
            "indices and values must have same nnz, but got nnz from indices: "
            f"{nnz}, nnz from values: {held.shape[0]}"
        )
    wanted = [nnz, *sizes[dims:]]
    if list(held.shape) != wanted:
        raise RuntimeError(f"values has incorrect size, expected {wanted}, got {list(held.shape)}")


def check_indices(indices: Array, sizes: Sizes, is_coalesced: bool) -> None:
    """Refuses places outside the tensor, and a wrong promise that they are in order."""
    for d, row in enumerate(indices):
        if not row.size:
            continue
        if int(row.min()) < 0:
            raise RuntimeError(f"found negative index {int(row.min())} for dim {d}")
        if int(row.max()) >= sizes[d]:
            raise RuntimeError(
                f"size is inconsistent with indices: for dim {d}, size is {sizes[d]}"
                f" but found index {int(row.max())}"
            )
    places = arrays.positions(indices, sizes)
    if is_coalesced and (places[1:] <= places[:-1]).any():
        raise RuntimeError(
            "cannot set is_coalesced to true if indices correspond to uncoalesced COO tensor"
        )


NO_FORM = """new() received an invalid combination of arguments - got ({}), but expected one of:
 * (*, torch.device device = None)
 * (Tensor indices, Tensor values, *, torch.device device = None)
 * (Tensor indices, Tensor values, tuple of ints size, *, torch.device device = None)
 * (tuple of ints size, *, torch.device device = None)
"""


def new_sparse(self: Tensor, args: list[Any], device: Device, size: Any) -> Tensor:
    """What `new` makes of a sparse tensor: one of indices, values and a size, or one without entries."""
    if len(args) > 1 and isinstance(args[0], Tensor) and isinstance(args[1], Tensor):
        if args[3:]:
            raise TypeError(f"new() takes 3 positional arguments but {len(args)} were given")
        return sparse_coo_tensor(args[0], args[1], [*args[2:], size][0], device=device)
    sizes = size or (args[0] if args and isinstance(args[0], (tuple, list)) else args or [0])
    if not all(isinstance(n, int) for n in sizes):
        from toytorch.core.older_constructor import told_kind  # seldom asked for

        raise TypeError(NO_FORM.format(", ".join(map(told_kind, args))))
    if isinstance(sizes, list) and args[:1] == [sizes]:
        raise TypeError(
            "SparseTensor.new(sequence) only accepts sizes.  Please use torch.sparse_coo_tensor() "
            "or construct a strided tensor and convert it to sparse via to_sparse."
        )
    return create.without_entries("empty", list(sizes), self.dtype, device)
