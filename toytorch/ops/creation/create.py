"""Tensors from nothing, from numbers, from arrays, from other tensors."""

from __future__ import annotations

import builtins
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base, sparse
from toytorch.backends.base import raise_too_large
from toytorch.core import inplace as writing
from toytorch.core.arguments import NUMBERS, spread
from toytorch.core.memory_order import kept
from toytorch.core.record import underive
from toytorch.core.scalars import as_filling
from toytorch.core.tensor import CAN_REQUIRE, Tensor, as_dtype, wrap
from toytorch.core.write import need_out, refusal, refuse_leaf, take
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.composed import called
from toytorch.facts.device import cpu, given, layout_name, on_cpu, sparse_coo, strided
from toytorch.facts.device import device as device_class
from toytorch.facts.dtype import cannot_cast
from toytorch.facts.hints import (
    ArrayModule,
    Device,
    DType,
    Fn,
    Ints,
    Layout,
    MemoryFormat,
    Scalar,
    Shape,
    Sizes,
)
from toytorch.facts.schema import NOT_GIVEN, wrong_argument
from toytorch.facts.size import Size, copy_order
from toytorch.ops.creation.memory import of_each, settled
from toytorch.ops.define import creating, public

__all__ = [
    "empty", "empty_strided", "eye", "full", "get_default_device", "ones", "set_default_device",
    "zeros",
]  # fmt: skip


def set_default_device(device: Device) -> None:
    """Makes `device` the place of tensors for which none is named."""
    state.local.default_device = None if device is None else device_class(device)


def get_default_device() -> Any:
    """The place of tensors for which none is named."""
    return state.local.default_device or cpu


def place(device: Device) -> tuple[Any, Any]:
    """The array module of a device and a context that makes its arrays there."""
    if on_cpu(device):
        return np, None
    device = state.local.default_device if device is None else device
    where = device_class(device)
    backend = base.of_device(where)
    return backend.xp, backend.on(where)


def finish(make: Fn, device: Device, requires_grad: builtins.bool, name: str = "tensor") -> Tensor:
    """The tensor of what `make(xp)` gives, on a device; a profiler shows it under `name`."""
    if state.profiler is not None:
        return state.profiler.around(  # it returns what we do
            f"aten::{name}", (), finish_here, make, device, requires_grad
        )
    return finish_here(make, device, requires_grad)


def finish_here(make: Fn, device: Device, requires_grad: builtins.bool) -> Tensor:
    """`finish` itself."""
    xp, context = place(device)
    try:
        if context is None:
            tensor = wrap(make(xp))
        else:
            with context:
                tensor = wrap(make(xp))
    except (MemoryError, ValueError) as error:
        raise_too_large(error)
        raise
    return asking(tensor) if requires_grad else tensor


def asking(made: Tensor) -> Tensor:
    """A new tensor that asks for a gradient."""
    if made.dtype.rank < 2:
        raise RuntimeError(f"Only {CAN_REQUIRE}")
    return made.requires_grad_()


def _size(
    args: tuple[Sequence[int]] | tuple[Ints, ...] | tuple[int | tuple[int, ...], ...],
    size: Any,
    name: str = "",
) -> Sizes:
    shape = spread(args, name) if size is None else spread((size,), name)
    for n in shape:
        if n < 0:
            raise RuntimeError(
                f"Trying to create tensor with negative dimension {n}: {list(shape)}"
            )
    return shape


def _kind(dtype: DType | None, name: str = "") -> Any:
    if dtype is None:
        return types.get_default_dtype().numpy
    if not isinstance(dtype, types.dtype):
        try:
            dtype = as_dtype(dtype)
        except (ValueError, TypeError):
            raise TypeError(
                f"{name and name + '(): '}argument 'dtype' must be torch.dtype, not "
                f"{type(dtype).__name__}"
            ) from None
    return dtype.numpy


def refuse_fill(fill: str) -> None:
    """Refuses to fill a sparse tensor with what is not zero."""
    if fill not in ("zeros", "empty"):
        raise NotImplementedError(sparse.unsupported("fill_.Scalar", "SparseCPU"))


def without_entries(
    fill: str,
    shape: Shape,
    dtype: DType | None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    sparse_dim: int | None = None,
    layout: Layout = sparse_coo,
) -> Tensor:
    """A sparse tensor of zeros, the only fill that needs no entries."""
    if fill not in ("zeros", "empty"):
        raise RuntimeError("full(...) is not implemented for sparse layout")

    def make(xp: ArrayModule) -> Any:
        if layout is sparse_coo:
            return sparse.empty(tuple(shape), _kind(dtype), sparse_dim, xp)
        from toytorch.backends import compressed  # few programs need these layouts

        return compressed.zeros(xp, fill, tuple(shape), _kind(dtype), layout)

    return finish(make, device, requires_grad)


def like_compressed(
    input: Tensor, fill: str, dtype: DType | None, device: Device, requires_grad: builtins.bool
) -> Tensor:
    """A tensor like a compressed one: without entries for zeros, else with entries as it has."""
    a, kind = input._array, _kind(dtype or input.dtype)
    if fill == "zeros":
        made = wrap(a.without_entries(kind))
    else:  # which leaves the indices alone, and looks at no value
        like = ones_like if fill == "ones" else empty_like
        values = like(wrap(a.values), dtype=dtype)._array
        made = wrap(a.mapped(lambda part: values if part is a.values else part.copy()))
    if device is not None:
        made = made.to(device)
    return asking(made) if requires_grad else made


ONE_NUMBER = ("zeros", "ones", "full")  # what writes one number everywhere


def filled(fill: Fn, size: tuple[Any, ...], kind: Any) -> Any:
    """An array by NumPy's function; PyTorch's words where it is too large."""
    try:
        return fill(size, kind)
    except (MemoryError, ValueError) as error:
        raise_too_large(error, size)
        raise


def plain_fill(fill: str, size: tuple[Any, ...], dtype: DType | None) -> Tensor | None:
    """The tensor for a size of plain ints and a type of torch's; None for what takes more."""
    if len(size) == 1 and size[0].__class__ in (tuple, list, Size):
        size = tuple(size[0])
    elif not size:
        return None
    for n in size:
        if n.__class__ is not int or n < 0:
            return None
    if dtype is None:
        dtype = types.get_default_dtype()
    elif dtype.__class__ is not types.dtype:
        return None
    array = filled(FILLS[fill], size, dtype.numpy)
    return wrap(settled(array, fill) if fill == "empty" else array, dtype)


def _ones(shape: Shape, kind: np.dtype[Any]) -> Any:
    made = np.empty(shape, kind)
    made.fill(1)
    return made


FILLS: dict[str, Fn] = {"zeros": np.zeros, "ones": _ones, "empty": np.empty}


def _filled(name: str, fill: str, doc: str) -> Any:
    def function(
        *size: Ints,
        out: Tensor | None = None,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: builtins.bool = False,
        pin_memory: builtins.bool = False,
        names: Sequence[str | None] | None = None,
        memory_format: MemoryFormat | None = None,
        **more: int,
    ) -> Tensor:
        if (
            state.fast_path is not state.SLOW
            and out is None
            and layout is None
            and names is None
            and memory_format is None
            and on_cpu(device)
            and not more
        ):
            made = plain_fill(fill, size, dtype)
            if made is not None:
                return asking(made) if requires_grad else made
        if not size and "size" not in more:
            raise TypeError(f'{name}() missing 1 required positional arguments: "size"')
        shape = spread(size, name) if size else spread((more.pop("size"),), name)
        if name == "zeros" and builtins.any(n < 0 for n in shape):
            raise RuntimeError("zeros: Dimension size must be non-negative.")
        shape = _size(shape, None)
        if more:
            raise TypeError(f"{name}() got an unexpected keyword argument '{next(iter(more))}'")
        if layout is not None and layout is not strided:
            if out is not None and out.layout is not layout:
                raise RuntimeError(
                    f"layout {layout_name(layout)} does not match layout of out parameter "
                    f"({layout_name(out.layout)})"
                )
            return without_entries(fill, shape, dtype, device, requires_grad, layout=layout)
        kind = out.dtype if dtype is None and out is not None else dtype

        def make(xp: ArrayModule) -> Any:
            return settled(filled(getattr(xp, fill), shape, _kind(kind, name)), fill)

        made = finish(make, device, requires_grad, name)
        return put_out(in_format(made, memory_format), out, names, dtype=dtype, aten=name)

    return creating(called(name, doc, function))


def in_format(made: Tensor, memory_format: MemoryFormat | None) -> Tensor:
    """A new tensor with its channels last, if that is asked for."""
    if memory_format is None or memory_format.name in ("contiguous_format", "preserve_format"):
        return made
    wanted = made.requires_grad
    return made.detach().clone(memory_format=memory_format).requires_grad_(wanted)


def need_type(out: Any, kind: DType, same: builtins.bool = True) -> None:
    """Refuses an out= that cannot take results of a type, before they are computed."""
    if out is not None and (out.dtype is not kind if same else kind.rank > out.dtype.rank):
        raise RuntimeError(refusal("same", "", kind, out.dtype))


def put_out(
    made: Tensor,
    out: Any,
    names: Sequence[str | None] | None = None,
    *,
    dtype: DType | None = None,
    same: builtins.bool = False,
    aten: str = "",
    of: Sequence[Any] = (),
) -> Tensor:
    """The made tensor, or `out` holding its elements.

    `out` must have the type that the caller asked for (`dtype`), or with `same` the result's own.
    `aten` names an operation without a derivative, of which nothing but a leaf may be the `out`,
    and `of` its operands.
    """
    if names is not None:
        made.names = names  # type: ignore[attr-defined]  # attached by ops/named_dims.py
    if out is None:
        return made
    need_out(aten or "put", out, 1)
    if aten and state.local.grad and (out._requires_grad or of):
        refuse_leaf(aten, out)
        state.set_grad(False)
        try:
            out = put_out(made, out, dtype=dtype, same=same)
        finally:
            state.set_grad(True)
        underive(f"aten::{aten}", [*of, out], out)
        return out  # out is a Tensor
    asked = None if dtype is None else as_dtype(dtype)
    if asked is not None and out.dtype is not asked:
        raise RuntimeError(
            f"dtype {asked.legacy} does not match dtype of out parameter ({out.dtype.legacy})"
        )
    if same and out.dtype is not made.dtype:
        raise RuntimeError(refusal("same", "", made.dtype, out.dtype))
    if made.dtype.rank > out.dtype.rank and not out.is_sparse:
        raise cannot_cast(made.dtype, out.dtype)
    if out.is_sparse:
        out._array = sparse.empty(tuple(made.shape), out.dtype.numpy, None, place(out.device)[0])
        return out.requires_grad_(made.requires_grad)
    if state.local.grad and (made._requires_grad or out._requires_grad):
        writing.check(out, True)
    if out._array.shape != made._array.shape and told_to_resize(out, made, same):
        out.copy_(made)
    elif out._array.shape != made._array.shape:
        writing.refuse_inference(out)
        array = made._array if made.dtype is out.dtype else made.to(out.dtype)._array
        if not same and array.__class__ is np.ndarray:
            array = np.asarray(array, order="C")  # in rows, however the result itself lies
        take(out, array)
        if made._requires_grad:
            out.copy_(made)  # which gives it the history
        else:
            writing.bump(out)
    elif aten in ONE_NUMBER:  # which write one number, however often a place of memory occurs
        out.fill_(made.flatten()[0].item()) if made.numel() else writing.bump(out)
    else:
        out.copy_(made)
    return out  # out is a Tensor


def told_to_resize(out: Tensor, made: Tensor, same: builtins.bool) -> builtins.bool:
    """Whether a mode that writes calls down has given `out` the shape of `made`, as a step of its own:
    where others may see the memory of `out`, they see what is written to it. With `same` it lies as
    the result does, else in rows."""
    if state.fast_path is not state.SLOW:
        return False
    from toytorch.ops.creation.memory import resize_laid, resize_out  # a circle otherwise

    for mode in reversed(state.local.modes):
        stands_for_input = getattr(mode, "stands_for_input", None)
        if stands_for_input is not None:
            with state.below(mode):
                mode.on_relaid(resize_laid if same else resize_out, (out, made), {})
            return True
    return False


zeros = _filled(
    "zeros",
    "zeros",
    "A tensor of zeros.\n\n    >>> zeros(2, 1)\n    tensor([[0.],\n            [0.]])\n",
)
ones = _filled("ones", "ones", "A tensor of ones.\n\n    >>> ones(2)\n    tensor([1., 1.])\n")
empty = _filled("empty", "empty", "A tensor whose memory has not been written to.")


def plain_full(size: Any, value: Any, dtype: DType | None) -> Tensor | None:
    """The tensor of one float or int, as `plain_fill`."""
    if value.__class__ is float:
        kind = types.get_default_dtype() if dtype is None else dtype
    elif value.__class__ is int:
        kind = types.int64 if dtype is None else dtype
    else:
        return None
    if kind.__class__ is not types.dtype or not (
        kind.plain or (kind is types.int64 and value.__class__ is int)
    ):
        return None
    if not -9e18 < value < 9e18 or size.__class__ not in (tuple, list, Size):
        return None
    made = plain_fill("empty", (size,), kind)
    if made is not None:
        made._array.fill(value)
    return made


def plain_new(fill: str, given: tuple[Any, ...], dtype: DType) -> Tensor | None:
    """The tensor of zeros, ones, nothing in particular or one number, as `plain_fill`."""
    if fill != "full":
        return plain_fill(fill, given, dtype)
    return plain_full(*given, dtype) if len(given) == 2 else None


@creating
def full(
    size: Shape,
    fill_value: Scalar,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
    names: Sequence[str | None] | None = None,
) -> Tensor:
    """A tensor of one value.

    >>> full((2,), 3), full((2,), 1.5)
    (tensor([3, 3]), tensor([1.5000, 1.5000]))
    """
    given = out is not None or layout is not None or names is not None
    if not given and state.fast_path is not state.SLOW and on_cpu(device):
        made = plain_full(size, fill_value, dtype)
        if made is not None:
            return asking(made) if requires_grad else made
    if layout is not None and layout is not strided:
        return without_entries("full", (), dtype)
    if isinstance(fill_value, Tensor):
        if fill_value.ndim or fill_value._requires_grad:
            raise TypeError("full(): argument 'fill_value' (position 2) must be Number, not Tensor")
        kind = _kind(dtype or fill_value.dtype)
        fill_value = fill_value.item()
    else:
        if not isinstance(fill_value, (*NUMBERS, np.generic)):
            raise wrong_argument("full", "fill_value", 2, "Number", fill_value)
        own = None if out is None else out.dtype
        found = dtype or own or types.of_scalar(fill_value)
        kind = _kind(types.complex64 if found is types.complex32 and not dtype else found)
    if not isinstance(size, (list, tuple)):
        raise wrong_argument("full", "size", 1, "tuple of ints", size)
    shape = _size((size,), None, "full")

    def make(xp: ArrayModule) -> Any:
        value = as_filling(np, fill_value, np.dtype(kind), math.prod(shape))[()]
        return xp.full(shape, value, kind)

    made = finish(make, device, requires_grad, "full")
    return put_out(made, out, names, dtype=dtype, aten="full")


def made_like(
    fill: str,
    input: Tensor,
    dtype: DType | None,
    layout: Layout | None,
    device: Device,
    requires_grad: builtins.bool,
    memory_format: MemoryFormat | None,
) -> Tensor:
    """A tensor like another one, whatever its layout and what is asked for."""
    if input._batches is not None:
        how = dtype, layout, device, requires_grad, memory_format
        made = of_each(input, lambda whole, size: made_like(fill, whole, *how))
        if made is not None:
            return made
    wanted = input.layout if layout is None else layout
    if wanted is not strided and memory_format is not None:
        raise RuntimeError("memory format option is only supported by strided tensors")
    if wanted is sparse_coo and input.layout is strided and fill == "empty":
        raise NotImplementedError(sparse.unsupported("empty_strided", "SparseCPU"))
    if input._compressed:
        if wanted is not input.layout:
            raise RuntimeError(
                "empty_like with different sparse layout is not supported (self is "
                f"{layout_name(input.layout)} but you requested {layout_name(wanted)})"
            )
        return like_compressed(input, fill, dtype, device, requires_grad)
    if wanted is not strided:
        refuse_fill(fill)
        kind, where = dtype or input.dtype, input.device if device is None else device
        dims = input._array.sparse_dim if input.is_sparse else None
        return without_entries(fill, input.shape, kind, where, requires_grad, dims, wanted)
    kind, source = _kind(dtype or input.dtype), input._array
    same = device is None or device_class(device).type == input.device.type
    if (
        same
        and (source.__class__ is np.ndarray or input.is_meta)
        and (memory_format is None or memory_format.name == "preserve_format")
    ):
        array = getattr(place(input.device)[0], fill + "_like")(
            source, dtype=kind, subok=False, order=copy_order(source)
        )
        array = kept(array, source) if source.__class__ is np.ndarray else array
        made = wrap(settled(array, fill))
        return asking(made) if requires_grad else made
    made = finish(
        lambda xp: settled(getattr(xp, fill)(source.shape, kind), fill),
        given(device, input.device),
        requires_grad,
    )
    return in_format(made, memory_format)


def _like(name: str, fill: str) -> Any:
    def function(
        input: Tensor,
        *,
        dtype: DType | None = None,
        layout: Layout | None = None,
        device: Device = None,
        requires_grad: builtins.bool = False,
        pin_memory: bool = False,
        memory_format: MemoryFormat | None = None,
    ) -> Tensor:
        source = input._array
        if (
            source.__class__ is np.ndarray
            and layout is None
            and memory_format is None
            and (dtype is None or dtype.__class__ is types.dtype)
            and (device is None or on_cpu(device))
            and source.flags.c_contiguous
            and source.size
            and state.fast_path is not state.SLOW
        ):
            shape, kind = source.shape, dtype or input._dtype
            array = FILLS[fill](shape, kind.numpy)
            if 1 in shape:  # where a stride may be any
                array = kept(array, source)
            made = wrap(settled(array, fill) if fill == "empty" else array, kind)
            return asking(made) if requires_grad else made
        return made_like(fill, input, dtype, layout, device, requires_grad, memory_format)

    doc = f"`{fill}` in the shape, type and place of another tensor."
    return public(name)(creating(called(name, doc, function)))


zeros_like, ones_like = _like("zeros_like", "zeros"), _like("ones_like", "ones")
empty_like = _like("empty_like", "empty")


@public("full_like")
@creating
def full_like(
    input: Tensor,
    fill_value: Scalar,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
    memory_format: MemoryFormat | None = None,
) -> Tensor:
    """A tensor of one value in the shape, type and place of another.

    >>> full_like(ones(2), 7)
    tensor([7., 7.])
    """
    if (
        input._array.__class__ is np.ndarray
        and state.fast_path is not state.SLOW
        and layout is None
        and memory_format is None
        and (device is None or on_cpu(device))
        and input._array.flags.c_contiguous
        and 1 not in input._array.shape
        and 0 not in input._array.shape  # whose strides are taken over
    ):
        made = plain_full(input._array.shape, fill_value, dtype or input.dtype)
        if made is not None:
            return asking(made) if requires_grad else made
    if input._batches is not None:
        words: dict[str, Any] = {"dtype": dtype, "layout": layout, "device": device}
        words |= {"requires_grad": requires_grad, "memory_format": memory_format}
        made = of_each(input, lambda whole, size: full_like(whole, fill_value, **words))
        if made is not None:
            return made
    if input._compressed and layout in (None, input.layout):
        made = like_compressed(input, "empty", dtype, device, False)
        made._array.values[...] = fill_value
        return asking(made) if requires_grad else made
    if (input.layout if layout is None else layout) is sparse_coo:
        refuse_fill("full")
    made = full(
        input.shape, fill_value, dtype=dtype or input.dtype, device=given(device, input.device)
    )
    return lying_as(made, input, memory_format, requires_grad)


def lying_as(
    made: Tensor, input: Tensor, memory_format: MemoryFormat | None, requires_grad: builtins.bool
) -> Tensor:
    """A new tensor in the order of memory of another, if no other is asked for."""
    if memory_format is None or memory_format.name == "preserve_format":
        if input._array.__class__ is np.ndarray:
            made._array = kept(made._array, input._array)
        elif input.is_meta:  # which has no values
            made = empty_like(input, dtype=made.dtype)
    elif memory_format.name != "contiguous_format":
        made = made.clone(memory_format=memory_format)
    return asking(made) if requires_grad else made


@creating
def empty_strided(
    size: Shape,
    stride: Shape,
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor with given strides whose memory has not been written to.

    >>> empty_strided((2, 3), (1, 2)).stride()
    (1, 2)
    """
    if len(size) != len(stride):
        raise RuntimeError(
            f"dimensionality of sizes ({len(size)}) must match dimensionality of strides "
            f"({len(stride)})"
        )
    needed = 1 + builtins.sum((n - 1) * s for n, s in zip(size, stride)) if 0 not in size else 0
    flat = empty(needed, dtype=dtype, device=device)
    array, size, stride = flat._array, tuple(size), tuple(stride)
    plain = array.__class__ is np.ndarray and state.fast_path is None and array.size
    if not plain or builtins.min(stride, default=0) < 0:
        made = flat.as_strided(size, stride).detach()
    else:
        made = wrap(np.ndarray(size, array.dtype, array, 0, [s * array.itemsize for s in stride]))
        made._dtype = flat._dtype
    return asking(made) if requires_grad else made


@public("empty_permuted", tensor_first=False)
@creating
def empty_permuted(
    size: Shape,
    physical_layout: Sequence[int],
    *,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """A tensor whose dimensions lie in memory in a given order, the outermost first.

    >>> empty_permuted((2, 3), (1, 0)).stride()
    (1, 2)
    """
    size, order = tuple(size), tuple(physical_layout)
    if len(order) != len(size):
        raise RuntimeError(
            "Number of dimensions in size does not match the length of the physical_layout; i.e. "
            f"len(size) = {len(size)} is not equal to len(physical_layout) = {len(order)}"
        )
    if sorted(order) != list(builtins.range(len(size))):
        bad = [d for d in order if not 0 <= d < len(size)]
        raise RuntimeError(
            f"Dimension out of range (expected to be between 0 and {len(size) - 1}, "
            f"but got {bad[0]})"
            if bad
            else "Duplicate dim not allowed"
        )
    strides, step = [0] * len(size), 1
    for d in reversed(order):
        strides[d], step = step, step * builtins.max(size[d], 1)
    return empty_strided(size, strides, dtype=dtype, device=device, requires_grad=requires_grad)


@creating
def eye(
    n: int,
    m: int = NOT_GIVEN,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
    layout: Layout | None = None,
    device: Device = None,
    requires_grad: builtins.bool = False,
    pin_memory: bool = False,
) -> Tensor:
    """The identity matrix.

    >>> eye(2)
    tensor([[1., 0.],
            [0., 1.]])
    """
    m = n if m is NOT_GIVEN else m
    for name, value in (("n", n), ("m", m)):
        if value < 0:
            raise RuntimeError(f"{name} must be greater or equal to 0, got {value}")
    kind = _kind(dtype if dtype is not None or out is None else out.dtype)
    made = finish(lambda xp: xp.eye(n, m, dtype=kind), device, requires_grad, "eye")
    return put_out(made, out, dtype=dtype, aten="eye")


# -- from data ------------------------------------------------------------------------------------
