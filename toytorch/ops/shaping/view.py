"""Ops that show the same memory in another layout; none of them copies an element."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from toytorch.backends import base, no_elements
from toytorch.backends.no_elements import lying, strided
from toytorch.core.memory_order import MANY, in_rows
from toytorch.core.op import Op
from toytorch.core.record import recorder
from toytorch.core.tensor import Tensor, strides_of, wrap
from toytorch.core.views import made_view, of_its_own, plain, quick
from toytorch.facts import state
from toytorch.facts.dtype import FROM_NUMPY, PAIR, from_numpy_dtype, part_of
from toytorch.facts.hints import Array, ArrayModule, DType, Ints, Sizes
from toytorch.facts.size import infer_size, view_strides, wrap_dim, wrap_dims
from toytorch.ops import aten_words, batching, named_dims
from toytorch.ops.define import view


def restride(array: Array, shape: Sizes, strides: Sizes, offset: int = 0) -> Any:
    """The array's memory in another shape, with strides and offset in elements."""
    step = array.itemsize
    if 0 in shape:
        return lying(array, shape, [s * step for s in strides], offset * step)
    if array.__class__ is np.ndarray:
        return np.ndarray(
            shape, array.dtype, _bytes_from(array), offset * step, [s * step for s in strides]
        )
    return base.of_array(array).as_strided(array, shape, strides, offset)


def _bytes_from(array: Array) -> Any:
    """A flat view from the array's first element to the end of its memory."""
    backend = base.of_array(array)
    flat = backend.flat(array)
    flat = flat if flat.dtype == array.dtype else flat.view(array.dtype)
    start = (backend.data_ptr(array) - backend.data_ptr(flat)) // array.itemsize
    return flat[start:]


def steps_of_view(a: Array, shape: Sizes) -> tuple[int, ...]:
    """The strides of a view of another shape, which is refused where there is none."""
    strides = view_strides(a.shape, strides_of(a), shape)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at least one "
            "dimension spans across two contiguous subspaces). Use .reshape(...) instead."
        )
    return strides


def _view(xp: ArrayModule, a: Any, shape: Any) -> Any:
    if len(shape) == 1 and shape[0].__class__ is not int:
        return a.view(shape[0].numpy)
    new = infer_size(shape, a.size)
    odd = 1 in a.shape and a.strides[-1] != a.itemsize  # a last dimension whose stride goes on
    if a.flags.c_contiguous and a.size and new != a.shape and not odd:
        return a.reshape(new)
    strides = steps_of_view(a, new)
    made = as_numpy_views(a, new, strides)
    return restride(a, new, strides) if made is None else made


def as_numpy_views(a: Array, shape: Sizes, strides: Sizes) -> Any:
    """What NumPy's `reshape` makes of an array, where that has these strides (in elements); None
    else. It is no copy then: an array whose elements do not lie in rows has no copy that lies so,
    as NumPy's copies do."""
    if a.__class__ is not np.ndarray or not a.size:
        return None
    made, step = a.reshape(shape), a.itemsize
    return made if made.strides == tuple([s * step for s in strides]) else None


view_ = view(
    "view(Tensor self, int... shape) -> Tensor",
    _view,
    forms="method",
    d_self="g.reshape(self_shape)",
    absorbs=True,
    batch=batching.reshaped,
    doc="The same elements in another shape, where strides allow it without a copy.",
)
unsafe_view = view(
    "_unsafe_view(Tensor self, int... shape) -> Tensor",
    _view,
    forms="method",
    d_self="g.reshape(self_shape)",
    absorbs=True,
    batch=batching.reshaped,
    doc="`view` of a fresh copy.",
)

reshape_alias = view(
    "_reshape_alias(Tensor self, int... shape) -> Tensor",
    _view,
    d_self="g.reshape(self_shape)",
    absorbs=True,
    batch=batching.reshaped,
    doc="`view` of what does not lie in rows, as reshape makes it.",
)


def viewed(x: Tensor, shape: Sizes, op: Op = view_) -> Tensor:
    """x.view(shape), or `unsafe_view` of it."""
    made: Tensor | None = quick_view(x, shape, op)
    return op.function(x, shape) if made is None else made


def unsafe_viewed(fresh: Tensor, shape: Sizes) -> Tensor:
    """`_unsafe_view` of a result that nobody has seen: no view of it, as far as programs can tell."""
    if not (fresh._array.flags.c_contiguous and quick(fresh)):
        return of_its_own(unsafe_view.function(fresh, shape))
    made = wrap(fresh._array.reshape(shape), fresh.dtype)
    made._storage = fresh._storage
    if fresh._requires_grad:
        (unsafe_view.remember or recorder(unsafe_view))((fresh, shape), made)
    return made


@functools.lru_cache(1024)
def copied_as(
    own: tuple[int, ...], strides: tuple[int, ...], shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """The shape with -1 replaced, where what has these strides has no view of it, and None else."""
    wanted = infer_size(shape, math.prod(own))
    return wanted if view_strides(own, strides, wanted) is None else None


def quick_view(
    x: Tensor, shape: tuple[Any, ...], op: Op = view_, copies: bool = False
) -> Tensor | None:
    """x.view(shape) where NumPy makes the same of it, or where it is the shape that x has; with
    `copies` also a copy, where there is no such view and the copy has no history; None else."""
    for n in shape:
        if n.__class__ is not int or n < -1:
            return None
    array = x._array
    if array.__class__ is not np.ndarray or not (
        array.size if state.fast_path is None else plain(x)
    ):
        return None
    own, rows = array.shape, array.flags.c_contiguous
    if copies and not rows:
        op = reshape_alias
    if own == shape:
        if 1 in shape:
            return None  # whose steps are counted anew
        return made_view(op, (x, shape), array[...])
    if copies and not rows and array.nbytes >= MANY:
        wanted = copied_as(own, array.strides, shape)
        if wanted is not None:
            if x._requires_grad and state.fast_path is None:
                return None
            return wrap(in_rows(array).reshape(wanted), x.dtype)
    try:
        made = array.reshape(shape)
    except ValueError:
        return None
    if rows and 1 not in own:
        return made_view(op, (x, shape), made)
    if 1 in own and made.shape == own:
        return None  # as above, where a size was to be inferred
    if not rows and made.flags.c_contiguous:
        # It was copied: no view of what does not lie in rows lies so.
        kept = not copies or (x._requires_grad and state.fast_path is None)
        return None if kept else wrap(made, x.dtype)
    if (
        1 in made.shape  # a dimension whose stride NumPy may have chosen otherwise
        and (not rows or array.strides[-1] != array.itemsize)
        and made.strides != view_strides(own, array.strides, made.shape)
    ):
        return None
    return made_view(op, (x, shape), made)


def _view_dtype(xp: ArrayModule, a: Array, dtype: DType) -> Any:
    target = np.dtype(dtype.numpy)
    if target.itemsize == a.dtype.itemsize:
        made = a.view(target)
        if made.strides == a.strides or not a.size:
            return made
        return restride(made, a.shape, strides_of(a))  # NumPy's view of one row forgets its stride
    if a.ndim == 0:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {_legacy(a.dtype)} as "
            f"{_legacy(target)} (different element sizes)"
        )
    _need_whole(a, target)
    return a.view(target)


def _legacy(kind: np.dtype[Any]) -> str:
    return FROM_NUMPY[kind].legacy


def _need_whole(a: Array, target: np.dtype[Any]) -> None:
    """Refuses to read elements of another size where rows have gaps, or hold no whole number of
    larger ones."""
    ratio = target.itemsize // a.dtype.itemsize
    steps = list(strides_of(a))
    why = f"to view {_legacy(a.dtype)} as {_legacy(target)} (different element sizes), but got"
    if ratio > 1 and a.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {why} {a.shape[-1]}")
    if steps[-1] != 1:
        raise RuntimeError(f"self.stride(-1) must be 1 {why} {steps[-1]}")
    if ratio < 2:
        return
    offset = begins_at(a)
    if offset % ratio:
        raise RuntimeError(f"self.storage_offset() must be divisible by {ratio} {why} {offset}")
    for i, step in enumerate(steps[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({i}) must be divisible by {ratio} {why} {step}")


def begins_at(a: Array) -> int:
    """The place of its memory at which an array begins, counted in elements."""
    backend = base.of_array(a)
    flat = backend.flat(a)
    if not a.size:
        return int(no_elements.offset(a, flat))
    return int(backend.data_ptr(a) - backend.data_ptr(flat)) // int(a.dtype.itemsize)


view_dtype = view(
    "view.dtype(Tensor self, dtype dtype) -> Tensor",
    _view_dtype,
    forms="method",
    doc="The same bytes read as another type.",
)


def _permute(xp: ArrayModule, a: Array, dims: tuple[int, ...]) -> Any:
    if len(dims) != a.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not "
            "match the length of the desired ordering of dimensions i.e. "
            f"input.dim() = {a.ndim} is not equal to len(dims) = {len(dims)}"
        )
    try:
        return a.transpose(dims)
    except (ValueError, TypeError):  # PyTorch says it in other words
        order = tuple(wrap_dim(d, a.ndim) for d in dims)
    if len(set(order)) != len(order):
        raise RuntimeError("permute(): duplicate dims are not allowed.")
    return a.transpose(order)


def _inverse(dims: tuple[int, ...]) -> list[int]:
    n = len(dims)
    order = [d % n for d in dims]
    return sorted(range(n), key=order.__getitem__)


permute = view(
    "permute(Tensor self, int... dims) -> Tensor",
    _permute,
    d_self=lambda g, dims: g.permute(_inverse(dims)) if dims else g,
    batch=batching.permuted,
    names=named_dims.permuted,
    doc="Dimensions in another order.",
)


def _transpose(xp: ArrayModule, a: Array, dim0: int, dim1: int) -> Any:
    try:
        return a.swapaxes(dim0, dim1)
    except IndexError:  # PyTorch says it in other words, and takes 0 and -1 of no dimensions
        d0, d1 = wrap_dim(dim0, a.ndim), wrap_dim(dim1, a.ndim)
        return a.swapaxes(d0, d1) if a.ndim else a.view()


transpose = view(
    "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    _transpose,
    d_self="transpose(g, dim0, dim1)",
    batch="along",
    names=named_dims.swapped,
    overload="int",
    doc="Two dimensions exchanged.",
)


def _t(xp: ArrayModule, a: Array) -> Any:
    if a.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return a.T


t = view(
    "t(Tensor self) -> Tensor",
    _t,
    d_self="t(g)",
    batch=batching.transposed,
    names=named_dims.swapped,
    doc="The transpose of a matrix.",
)


def _unsqueeze(xp: ArrayModule, a: Array, dim: int) -> Any:
    shape = a.shape
    d = 0 if dim.__class__ is int and dim == 0 else wrap_dim(dim, len(shape) + 1)
    if 1 not in shape and 0 not in shape:
        inside = d < len(shape) and a.__class__ is np.ndarray  # where NumPy chooses the same stride
        if inside or a.flags.c_contiguous:
            return a.reshape(shape[:d] + (1,) + shape[d:] if d else (1,) + shape)
    if a.flags.c_contiguous and a.size:
        made = a.reshape((*shape[:d], 1, *shape[d:]))
        if (*made.strides[:d], *made.strides[d + 1 :]) == a.strides:
            return made  # else a dimension of size 1 has a stride of its own, which stays
    step = a.itemsize if d == a.ndim else a.shape[d] * a.strides[d]
    return strided(xp, a, (*a.shape[:d], 1, *a.shape[d:]), (*a.strides[:d], step, *a.strides[d:]))


unsqueeze = view(
    "unsqueeze(Tensor self, int dim) -> Tensor",
    _unsqueeze,
    d_self="squeeze(g, dim)",
    batch=batching.unsqueezed,
    names=named_dims.unsqueezed,
    doc="A new dimension of size 1.",
)


def _squeeze(xp: ArrayModule, a: Array, dim: Ints | None) -> Any:
    if dim is None:
        return a.squeeze()
    if isinstance(dim, int):
        d = wrap_dim(dim, a.ndim)
        return a.squeeze(d if a.ndim and a.shape[d] == 1 else ())
    return a.squeeze(tuple(d for d in wrap_dims(dim, a.ndim) if a.ndim and a.shape[d] == 1))


squeeze = view(
    "squeeze(Tensor self, int[]? dim=None) -> Tensor",
    _squeeze,
    variant=lambda self, dim: 0 if dim is None else 1 if isinstance(dim, int) else 2,
    alone="no None",
    d_self=lambda g, self_shape: g if g.shape == self_shape else g.reshape(self_shape),
    batch=batching.squeezed,
    names=named_dims.squeezed,
    sparse="strides",
    overload=aten_words.along,
    doc="Without dimensions of size 1.",
)


def _expand(xp: ArrayModule, a: Array, sizes: Sizes) -> Any:
    own = a.shape
    lead = len(sizes) - len(own)
    if lead < 0:
        raise RuntimeError(
            f"expand({tensor_kind(a)}{{{list(own)}}}, size={list(sizes)}): the "
            f"number of sizes provided ({len(sizes)}) must be greater or equal to "
            f"the number of dimensions in the tensor ({len(own)})"
        )
    shape: list[int] = []
    for i, n in enumerate(sizes):
        old = own[i - lead] if i >= lead else None
        if n == -1:
            if old is None:
                raise RuntimeError(
                    "The expanded size of the tensor (-1) isn't allowed in a leading, "
                    f"non-existing dimension {i}"
                )
            n = old
        elif old is not None and old not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size"
                f" ({old}) at non-singleton dimension {i}.  Target sizes: "
                f"{list(sizes)}.  Tensor sizes: {list(own)}"
            )
        shape.append(n)
    if a.__class__ is np.ndarray:  # np.broadcast_to would make a read-only array
        strides = [s if m == n else 0 for s, m, n in zip(a.strides, own, shape[lead:])]
        for i in reversed(range(lead)):
            strides.insert(0, shape[i + 1] * strides[0] if strides and shape[i] == 1 else 0)
        if a.flags.c_contiguous and 0 not in shape:
            return np.ndarray(shape, a.dtype, a, 0, strides)  # three times as fast
        return strided(np, a, shape, strides)
    return xp.broadcast_to(a, shape)


def quick_expand(x: Tensor, sizes: tuple[Any, ...]) -> Tensor | None:
    """x.expand(sizes) where these are the sizes of x, or its elements lie in rows and sizes of at
    least 2 are added or take the place of 1; None else."""
    array = x._array
    if not quick(x):
        return None
    for n in sizes:
        if n.__class__ is not int:
            return None
    shape = array.shape
    if shape == sizes and 1 not in shape:
        return made_view(expand, (x, sizes), array[...])
    if not array.flags.c_contiguous:
        return None
    strides = expanded_strides(shape, array.strides, sizes)
    if strides is None:
        return None
    return made_view(expand, (x, sizes), np.ndarray(sizes, array.dtype, array, 0, strides))


@functools.lru_cache(512)
def expanded_strides(shape: Sizes, strides: Sizes, sizes: Sizes) -> Sizes | None:
    """The strides of `quick_expand`, or None."""
    lead = len(sizes) - len(shape)
    made = [0] * len(sizes)
    for i, n in enumerate(sizes):
        if n < 1:
            return None
        if i >= lead and n == shape[i - lead]:
            made[i] = strides[i - lead]
        elif n == 1 or (i >= lead and shape[i - lead] != 1):
            return None
    return None if lead < 0 else tuple(made)


def tensor_kind(a: Array | Tensor) -> str:
    """The name of a tensor type, as error messages use it: of old types that of their class."""
    kind = a._dtype if isinstance(a, Tensor) else from_numpy_dtype(a.dtype)
    old = kind.legacy not in ("Bool", "BFloat16") and not kind.is_complex
    return f"torch.{kind.legacy}Tensor" if old else f"CPU{kind.legacy}Type"


expand = view(
    "expand(Tensor self, int... sizes) -> Tensor",
    _expand,
    forms="method",
    d_self="g",
    batch=batching.expanded,
    names=named_dims.expanded,
    doc="Dimensions of size 1 repeated with stride 0.",
)


def _real(xp: ArrayModule, a: Array) -> Any:
    return a[..., None].view(part_of(a.dtype))[..., 0] if a.dtype.kind == PAIR else a.real


def _imag(xp: ArrayModule, a: Array) -> Any:
    if part_of(a.dtype) is None:
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return a[..., None].view(part_of(a.dtype))[..., 1] if a.dtype.kind == PAIR else a.imag


real = view(
    "real(Tensor self) -> Tensor",
    _real,
    forms="function",
    holomorphic=False,
    d_self=lambda g: g.contiguous(),  # of which PyTorch makes the pairs of a complex gradient
    batch="leading",
    sparse="sums",
    doc="The real part.",
)
imag = view(
    "imag(Tensor self) -> Tensor",
    _imag,
    forms="function",
    holomorphic=False,
    d_self=lambda g: g.contiguous().to(g.dtype.to_complex()) * 1j,
    batch="leading",
    sparse="sums",
    doc="The imaginary part.",
)
alias = view(
    "alias(Tensor self) -> Tensor",
    lambda xp, a: a[...],
    forms="",
    d_self="g",
    batch="leading",
    names="same",
    doc="The whole tensor, as a view of itself.",
)
