"""New memory, the same at every run where that is asked for, and tensors over other memory, or more
of it: `set_`, `resize_`, `resize_as_`."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.backends.sparse import unsupported
from toytorch.core import inplace as writing
from toytorch.core import write
from toytorch.core.arguments import spread
from toytorch.core.storage import Storage
from toytorch.core.storages import TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.device import channels_last, channels_last_3d, preserve_format, strided
from toytorch.facts.hints import Array, MemoryFormat, Shape, Sizes
from toytorch.facts.size import contiguous_strides, need_room
from toytorch.ops.define import relaying
from toytorch.ops.shaping.strided import refuse_endless
from toytorch.settings import are_deterministic_algorithms_enabled, fills_uninitialized_memory

ORDERS: dict[MemoryFormat | None, tuple[int, ...]] = {
    channels_last: (0, 2, 3, 1),
    channels_last_3d: (0, 2, 3, 4, 1),
}


def fill(array: Array) -> None:
    """Writes NaN, or the largest integer, into memory that is not initialized."""
    if array.dtype.kind in "fcV" or array.dtype.type.__module__ == "ml_dtypes":
        array[...] = np.nan
    else:
        array[...] = True if array.dtype.kind == "b" else np.iinfo(array.dtype).max


def settled(array: Array, how: str = "empty") -> Array:
    """New memory; that of `empty` is filled if algorithms are to be deterministic."""
    if how == "empty" and are_deterministic_algorithms_enabled() and fills_uninitialized_memory():
        fill(array)
    return array


@relaying
def set_(
    self: Tensor,
    source: Tensor | TypedStorage | UntypedStorage | None = None,
    storage_offset: int = 0,
    size: Shape | None = None,
    stride: Shape | None = None,
) -> Tensor:
    """Shows the memory of a tensor or a storage from now on, all of it or a part.

    The storage grows where the part does not fit. Raises RuntimeError for elements of another type.
    Like `torch.Tensor.set_`.

    >>> torch.tensor([]).set_(torch.arange(6.).untyped_storage(), 1, (2, 2))
    tensor([[1., 2.],
            [3., 4.]])
    """
    if self._requires_grad and self._grad_edge is None and state.local.grad:
        raise RuntimeError(
            "a leaf Variable that requires grad is being used in an in-place operation."
        )
    kind = self.dtype
    if source is None:
        source = wrap(np.empty(0, kind.numpy), kind)
    if isinstance(source, Tensor):
        if source.dtype is not kind:
            theirs, ours = source.dtype.legacy.lower(), kind.legacy.lower()
            raise RuntimeError(f"Could not set tensor of type {theirs} to a tensor of type {ours}")
        if size is None:
            self._array, self._storage = source._array, source._memory()
            return self
        storage = source._memory()
    elif isinstance(source, TypedStorage | UntypedStorage):
        if isinstance(source, TypedStorage) and source.dtype is not kind:
            raise RuntimeError(
                f"Expected a Storage of type {kind.legacy.lower()} or an UntypedStorage, but got "
                f"type {source.dtype.legacy} for argument 1 'storage'"
            )
        storage = source._storage
    else:
        raise TypeError(
            "set_() received an invalid combination of arguments - got "
            f"({type(source).__name__}), but expected one of:\n * ()\n * (torch.Storage source)\n"
            " * (torch.Storage source, int storage_offset, tuple of ints size, tuple of ints stride "
            "= None)\n * (Tensor source)\n * (Tensor source, int storage_offset, tuple of ints size, "
            "tuple of ints stride = None)\n"
        )
    if size is None and storage_offset:
        raise TypeError("set_(): storage_offset needs size")
    if storage_offset < 0:
        raise RuntimeError(f"Tensor: invalid storage offset {storage_offset}")
    flat = TypedStorage.of(storage, kind)._flat
    if size is not None and storage is self._storage and tuple(size) == tuple(self.shape):
        refuse_outside(flat, tuple(size), stride, storage_offset)
    shape = (flat.size,) if size is None else tuple(int(n) for n in size)
    steps = tuple(contiguous_strides(shape) if stride is None else (int(n) for n in stride))
    if len(shape) != len(steps):
        raise RuntimeError(f"unequal size length ({len(shape)}) and stride length ({len(steps)})")
    if min((*shape, *steps), default=0) < 0:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)} and "
            f"strides={list(steps)}"
        )
    refuse_endless(shape)
    flat = reaching(self, storage, flat, shape, steps, storage_offset)
    self._array = base.of_array(flat).as_strided(flat, shape, steps, storage_offset)
    self._storage = storage
    writing.bump(self)
    return self


def refuse_outside(flat: Any, size: Sizes, stride: Shape | None, start: int) -> None:
    """Refuses a place beyond the end of a storage, which grows only where sizes change."""
    steps = contiguous_strides(size) if stride is None else tuple(stride)
    need_room(size, steps, start, flat.itemsize, flat.nbytes, stride or ())


def reaching(
    self: Tensor, storage: Storage, flat: Any, shape: Shape, steps: Shape, start: int
) -> Any:
    """A storage's elements, of which there are at least as many as a part needs."""
    least = 0 if 0 in shape else start + 1 + sum((n - 1) * s for n, s in zip(shape, steps))
    if least <= flat.size:
        return flat
    storage.refuse_resizing()
    try:
        grown = base.of_array(flat).xp.empty(least, flat.dtype)
    except ValueError:
        raise RuntimeError(
            f"Storage size calculation overflowed with sizes={list(shape)}"
        ) from None
    settled(grown)
    grown[: flat.size] = flat
    if grown.__class__ is np.ndarray:
        write.move(storage, grown, but=self, calls=1)
    else:
        storage.memory = grown
    return grown


@relaying
def resize_(
    self: Tensor, *sizes: int, size: Shape | None = None, memory_format: MemoryFormat | None = None
) -> Tensor:
    """Another shape over the same memory, which grows where it is too small."""
    wanted = spread(sizes if size is None else (size,), "resize_")
    if self.layout is not strided:
        name = "SparseCPU" if self.is_sparse else "SparseCsrCPU"
        raise NotImplementedError(unsupported("resize_", name))
    if self._requires_grad and not state.local.inference:
        raise RuntimeError("cannot resize variables that require grad")
    if memory_format is preserve_format:
        raise RuntimeError("Unsupported memory formatPreserve")
    if math.prod(wanted) >= 1 << 63 or min(wanted, default=0) < 0:
        raise RuntimeError("numel: integer multiplication overflow")
    if math.prod(max(n, 1) for n in wanted[1:]) * self.itemsize >= 1 << 63:
        base.raise_too_large(ValueError("array is too big"), wanted)
    order = ORDERS.get(memory_format)
    if order is None:
        if wanted == tuple(self._array.shape):
            return self  # whatever its strides
        steps = tuple(contiguous_strides(wanted))
    else:
        inner = contiguous_strides([wanted[d] for d in order])
        steps = tuple(inner[order.index(d)] for d in range(len(wanted)))
    storage, start = self._memory(), self.storage_offset()
    flat = reaching(self, storage, TypedStorage.of(storage, self.dtype)._flat, wanted, steps, start)
    self._array = base.of_array(flat).as_strided(flat, wanted, steps, start)
    writing.bump(self)
    return self


@relaying
def resize_as_(
    self: Tensor, the_template: Tensor, *, memory_format: MemoryFormat | None = None
) -> Tensor:
    """`resize_` to the shape of another tensor, and with `memory_format` also to its layout."""
    if self.is_sparse and the_template.is_sparse:
        a = the_template._array
        return self.sparse_resize_(the_template.shape, a.sparse_dim, a.dense_dim)
    if memory_format is preserve_format:
        memory_format = next(
            (f for f in (channels_last, channels_last_3d)
             if the_template.ndim == (4 if f is channels_last else 5)
             and the_template.is_contiguous(memory_format=f)
             and not the_template.is_contiguous()),
            None,
        )  # fmt: skip
    return resize_(self, *the_template.shape, memory_format=memory_format)


def resize_out(out: Tensor, made: Tensor) -> Tensor:
    """`resize_as_` of an out=, which may have a history."""
    wants, out._requires_grad = out._requires_grad, False
    try:
        return resize_as_(out, made)
    finally:
        out._requires_grad = wants


def resize_laid(out: Tensor, made: Tensor) -> Tensor:
    """The same, and `out` lies as the result does."""
    resize_out(out, made)
    array = made._array
    if array.__class__ is np.ndarray is out._array.__class__ and not array.flags.c_contiguous:
        write.take(out, array)
    return out


for _resize in (resize_out, resize_laid):
    _resize.__name__ = "resize_as_"  # as graphs name it


METHODS: dict[str, Any] = {"set_": set_, "resize_": resize_, "resize_as_": resize_as_}


def of_each(input: Tensor, make: Callable[[Tensor, int], Any]) -> Any:
    """`make(whole, size)` from the view of the innermost `vmap` that batches the input; None
    outside of one. `whole` is the batch, `size` its length."""
    for mode in reversed(state.local.modes):
        full = getattr(mode, "full", None)
        whole = None if full is None else full(input)
        if whole is not None:
            return mode.hide(make(whole, mode.size))
    return None
