"""Sparse arrays in coordinates, and the backend through which ops meet them.

A SparseArray stands where a dense array stands, in `Tensor._array`; the sparse tensor is therefore
an ordinary Tensor, and the fast path of `core.fast_path`, which wants plain NumPy arrays, passes by it
without a test of its own. The slow path asks `Kernels` for an op's sparse kernel; what has none
is refused in PyTorch's words.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from toytorch.backends import base, generic
from toytorch.facts.device import cpu, sparse_coo
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Array, Fn, Sizes


def xp_of(array: Any) -> Any:
    """The array module of a dense array, or of a sparse array's values."""
    array = array.values if array.__class__ in TABLES else array
    return np if isinstance(array, (np.ndarray, np.generic)) else base.of_array(array).xp


class Flags:
    """What NumPy's arrays say of their layout: a sparse one is nobody's view."""

    c_contiguous, f_contiguous = True, False


class Entries:
    """What arrays of entries have in common: `shape`, and the `values` of the entries.

    Each kind is made of the arrays that say where the entries are, the values, the shape and one
    more fact; `held` are their names.
    """

    __slots__ = ("shape", "values")
    held: ClassVar[str]
    __array_ufunc__ = None  # NumPy's functions shall refuse it
    flags = Flags()
    shape: Sizes
    values: Array

    @property
    def dtype(self) -> np.dtype[Any]:
        """NumPy's type of the elements."""
        return self.values.dtype

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self.values.dtype.itemsize)

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """The number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def strides(self) -> Sizes:
        """There are none: zeros, as in PyTorch."""
        return (0,) * len(self.shape)

    def __reduce__(self) -> tuple[type, tuple[Any, ...]]:
        return type(self), tuple(getattr(self, name) for name in self.held.split())

    def mapped(self, of: Callable[[Any], Any]) -> Any:
        """The same array of other parts: what a function makes of each."""
        kind, (*parts, shape, fact) = self.__reduce__()
        return kind(*map(of, parts), shape, fact)

    def with_values(self, values: Any) -> Any:
        """The same places with other values."""
        return self.mapped(lambda part: values if part is self.values else part)

    def astype(self, kind: Any) -> Any:
        """The same places with values of another type."""
        return self.with_values(self.values.astype(kind))

    def copy(self) -> Any:
        """The same entries in fresh memory."""
        return self.mapped(lambda part: part.copy())

    def item(self) -> Any:
        """The only element."""
        return self.values.sum(dtype=self.dtype).item()

    def dense(self) -> Any:
        """All elements, zeros included."""
        raise NotImplementedError  # each kind has its own

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return self.dense().astype(dtype or self.dtype, copy=False)

    def __setitem__(self, where: object, source: Entries) -> None:
        """Takes over the entries of another array: the write that ends an op in place."""
        if where is not Ellipsis or source.__class__ is not self.__class__:
            raise TypeError("Cannot assign to a sparse tensor")
        values = source.values.astype(self.dtype, copy=False)
        for name in self.held.split():
            if name != "shape":
                setattr(self, name, getattr(source, name))
        self.values = values


class SparseArray(Entries):
    """Elements by their coordinates; all others are zero.

    indices     (sparse_dim, nnz) integers: the place of each entry along the first dimensions
    values      (nnz, *dense sizes): an entry is an element, or a dense block of them
    coalesced   whether entries are in the order of their places, and no place has two

    Entries at one place add up.
    """

    __slots__ = ("coalesced", "indices")
    held = "indices values shape coalesced"
    layout = sparse_coo

    def __init__(
        self, indices: Any, values: Any, shape: Any, coalesced: bool | None = None
    ) -> None:
        self.indices, self.values, self.shape = indices, values, tuple(shape)
        self.coalesced = indices.shape[1] < 2 if coalesced is None else coalesced

    @property
    def nnz(self) -> int:
        """The number of entries."""
        return int(self.indices.shape[1])

    @property
    def sparse_dim(self) -> int:
        """How many dimensions the coordinates name."""
        return int(self.indices.shape[0])

    @property
    def dense_dim(self) -> int:
        """How many dimensions each entry has."""
        return int(self.values.ndim) - 1

    def parts(self) -> tuple[tuple[str, Any], ...]:
        """What it consists of, as it is printed."""
        return ("indices", self.indices), ("values", self.values)

    def places(self) -> Any:
        """For each entry one number that orders places: its row-major position."""
        return positions(self.indices, self.shape[: self.sparse_dim])

    def coalesce(self) -> SparseArray:
        """The entries in order, those at one place added up; itself where that is so already."""
        if self.coalesced:
            return self
        xp, places = xp_of(self), self.places()
        order = xp.argsort(places, kind="stable")
        values, places = self.values[order], places[order]
        first = xp.ones(len(places), bool)
        first[1:] = places[1:] != places[:-1]
        if not first.all():
            values = sum_runs(xp, values, first, each=True)
            order = order[first]
        room = xp.empty(self.indices.shape, self.indices.dtype)  # rows, with room for all
        room[:, : len(order)] = self.indices[:, order]
        return SparseArray(room[:, : len(order)], values, self.shape, True)

    def dense(self) -> Any:
        a = self.coalesce()
        made = xp_of(a).zeros(a.shape, a.dtype)
        if a.nnz:
            made[tuple(a.indices)] = a.values if a.sparse_dim else a.values[0]
        return made


def positions(indices: Any, sizes: Any) -> Any:
    """The row-major position of each column of indices."""
    made = xp_of(indices).zeros(indices.shape[1], np.int64)
    for row, n in zip(indices, sizes):
        made *= n
        made += row
    return made


def sum_runs(xp: Any, values: Any, first: Any, each: bool = False) -> Any:
    """The sums of runs of rows; `first` marks where each run starts. Those of half types are
    rounded at the end, or at `each` step."""
    starts = xp.flatnonzero(first)
    if not len(starts):
        return values[:0]
    half = values.dtype.itemsize == 2 and values.dtype.kind in "fV"
    if half and not each:
        return sum_runs(xp, values.astype(np.float32), first).astype(values.dtype)
    made = None if half else generic.attempt(xp, "add_runs", values, starts, 0)
    if made is not None:
        return made
    run = xp.cumsum(first) - 1
    made = xp.zeros((int(first.sum()), *values.shape[1:]), values.dtype)
    generic.at(xp, "add", made, run, values)
    return made


def empty(sizes: Any, kind: Any, sparse_dim: int | None = None, xp: Any = np) -> SparseArray:
    """An array without entries."""
    dims = len(sizes) if sparse_dim is None else sparse_dim
    return SparseArray(xp.empty((dims, 0), np.int64), xp.empty((0, *sizes[dims:]), kind), sizes)


class Kernels:
    """What ops see as the array module of sparse arrays: a table from op to sparse kernel."""

    def __init__(self, where: str) -> None:
        self.table: dict[str, Fn] = {}
        self.where = where  # PyTorch's name of the kind of tensors
        self.refuse: Callable[[Any], Fn] | None = None  # for ops without a kernel

    def asarray(self, value: Any) -> Any:
        """Numbers that meet sparse arrays are dense."""
        return np.asarray(value)

    def kernel_of(self, op: Any) -> Fn:
        """The sparse kernel of an op; NotImplementedError where it has none."""
        if op.name in self.table:
            return self.table[op.name]
        if op.sparse not in ("entries", "sums") and self.refuse is not None:
            return self.refuse(op)
        if op.sparse not in ("entries", "sums"):
            # A view that needs strides is refused by what PyTorch finds it cannot make.
            name = "as_strided" if op.sparse == "strides" else op.name
            raise NotImplementedError(unsupported(name, self.where))

        def on_values(a: Any, *rest: Any) -> Any:
            a = a if op.sparse == "sums" else a.coalesce()
            return a.with_values(op.kernel_on(xp_of(a))(a.values, *rest))

        return on_values


def unsupported(name: str, where: str) -> str:
    """PyTorch's words for an op that a kind of tensor does not have."""
    return (
        f"Could not run 'aten::{name}' with arguments from the '{where}' backend. This could "
        "be because the operator doesn't exist for this backend."
    )


class SparseBackend:
    """Sparse arrays live on the device of their values."""

    name = module = "sparse"
    array_type: type = SparseArray

    def __init__(self) -> None:
        self.xp = Kernels("SparseCPU")
        self.kernels: dict[str, Any] = self.xp.table

    def is_available(self) -> bool:
        return True

    def device_count(self) -> int:
        return 0

    def device(self, array: Any) -> device_class:
        return base.of_array(array.values).device(array.values)

    def on(self, where: device_class) -> Any:
        return contextlib.nullcontext()

    def to_numpy(self, array: Any) -> Any:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def from_numpy(self, array: Any) -> Any:
        return array

    def flat(self, array: Any) -> Any:
        raise NotImplementedError("Cannot access storage of SparseTensorImpl")

    def data_ptr(self, array: Any) -> int:
        raise RuntimeError("Cannot access data pointer of Tensor that doesn't have storage")

    def as_strided(self, flat: Any, shape: Any, strides: Any, offset: int) -> Any:
        raise NotImplementedError(unsupported("as_strided", "SparseCPU"))

    def generator(self, seed: int) -> Any:
        return base.of_device(cpu).generator(seed)

    def synchronize(self) -> None:
        """Work is queued by the backend of the values, if at all."""


backend = SparseBackend()
TABLES: dict[Any, Kernels] = {SparseArray: backend.xp}  # by the class of the arrays
