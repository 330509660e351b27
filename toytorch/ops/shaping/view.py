"""Ops that show the same memory in another layout; none of them copies an element."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from toytorch.backends import base
from toytorch.core.op import Op
from toytorch.core.tensor import strides_of
from toytorch.facts.dtype import FROM_NUMPY, from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, DType
from toytorch.facts.size import infer_size, view_strides, wrap_dim, wrap_dims
from toytorch.ops import batching, named_dims
from toytorch.ops.define import general, view

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor


def restride(
    array: Array, shape: tuple[int, ...], strides: tuple[int, ...], offset: int = 0
) -> Any:
    """The array's memory in another shape, with strides and offset in elements."""
    step = array.itemsize
    if 0 in shape:
        return (
            array.reshape(-1)[:0].reshape(shape)
            if not array.size
            else array[(slice(0, 0),) * array.ndim].reshape(shape)
        )
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


def _view(xp: ArrayModule, a: Any, shape: Any) -> Any:
    if len(shape) == 1 and shape[0].__class__ is not int:
        return a.view(shape[0].numpy)
    new = infer_size(shape, a.size)
    if a.flags.c_contiguous:
        return a.reshape(new)
    strides = view_strides(a.shape, strides_of(a), new)
    if strides is None:
        raise RuntimeError(
            "view size is not compatible with input tensor's size and stride (at "
            "least one dimension spans across two contiguous subspaces). Use "
            ".reshape(...) instead."
        )
    return restride(a, new, strides)


view_ = view(
    "view(Tensor self, int... shape) -> Tensor",
    _view,
    function=False,
    d_self=lambda g, self_shape: g.reshape(self_shape),
    absorbs=True,
    batch=batching.reshaped,
    doc="The same elements in another shape, where strides allow it without a copy.",
)
unsafe_view = view(
    "_unsafe_view(Tensor self, int... shape) -> Tensor",
    _view,
    function=False,
    d_self=lambda g, self_shape: g.reshape(self_shape),
    node="UnsafeViewBackward0",
    absorbs=True,
    batch=batching.reshaped,
    doc="`view` of a fresh copy.",
)


def _view_dtype(xp: ArrayModule, a: Array, dtype: DType) -> Any:
    target = np.dtype(dtype.numpy)
    if target.itemsize == a.dtype.itemsize:
        return a.view(target)
    if a.ndim == 0:
        raise RuntimeError(
            f"self.dim() cannot be 0 to view {_legacy(a.dtype)} as "
            f"{_legacy(target)} (different element sizes)"
        )
    if target.itemsize > a.dtype.itemsize:
        _need_whole(a, target)
    return a.view(target)


def _legacy(kind: np.dtype[Any]) -> str:
    return FROM_NUMPY[kind].legacy


def _need_whole(a: Array, target: np.dtype[Any]) -> None:
    """Refuses to read elements of a larger type where they do not fill whole rows."""
    ratio = target.itemsize // a.dtype.itemsize
    steps = [s // a.dtype.itemsize for s in a.strides]
    why = f"to view {_legacy(a.dtype)} as {_legacy(target)} (different element sizes), but got"
    if a.shape[-1] % ratio:
        raise RuntimeError(f"self.size(-1) must be divisible by {ratio} {why} {a.shape[-1]}")
    if steps[-1] != 1 and a.size:
        raise RuntimeError(f"self.stride(-1) must be 1 {why} {steps[-1]}")
    for i, step in enumerate(steps[:-1]):
        if step % ratio:
            raise RuntimeError(f"self.stride({i}) must be divisible by {ratio} {why} {step}")


view_dtype = view(
    "view.dtype(Tensor self, dtype dtype) -> Tensor",
    _view_dtype,
    function=False,
    doc="The same bytes read as another type.",
)


def _permute(xp: ArrayModule, a: Array, dims: tuple[int, ...]) -> Any:
    if len(dims) != a.ndim:
        raise RuntimeError(
            "permute(sparse_coo): number of dimensions in the tensor input does not "
            "match the length of the desired ordering of dimensions i.e. "
            f"input.dim() = {a.ndim} is not equal to len(dims) = {len(dims)}"
        )
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
    d0, d1 = wrap_dim(dim0, a.ndim), wrap_dim(dim1, a.ndim)
    return a.swapaxes(d0, d1) if a.ndim else a.view()


transpose = view(
    "transpose(Tensor self, int dim0, int dim1) -> Tensor",
    _transpose,
    d_self=lambda g, dim0, dim1: g.transpose(dim0, dim1),
    batch="along",
    names=named_dims.swapped,
    doc="Two dimensions exchanged.",
)


def _t(xp: ArrayModule, a: Array) -> Any:
    if a.ndim > 2:
        raise RuntimeError(f"t() expects a tensor with <= 2 dimensions, but self is {a.ndim}D")
    return a.T


t = view(
    "t(Tensor self) -> Tensor",
    _t,
    d_self=lambda g: g.t(),
    node="TBackward0",
    batch=batching.turned,
    names=named_dims.swapped,
    doc="The transpose of a matrix.",
)


def _unsqueeze(xp: ArrayModule, a: Array, dim: int) -> Any:
    d = wrap_dim(dim, a.ndim + 1)
    if a.flags.c_contiguous or not a.size:
        return xp.expand_dims(a, d)
    step = a.itemsize if d == a.ndim else a.shape[d] * a.strides[d]
    return xp.lib.stride_tricks.as_strided(
        a, (*a.shape[:d], 1, *a.shape[d:]), (*a.strides[:d], step, *a.strides[d:])
    )


unsqueeze = view(
    "unsqueeze(Tensor self, int dim) -> Tensor",
    _unsqueeze,
    d_self=lambda g, dim: g.squeeze(dim),
    batch=batching.unsqueezed,
    names=named_dims.unsqueezed,
    doc="A new dimension of size 1.",
)


def _squeeze(xp: ArrayModule, a: Array, dim: Sequence[int] | int | None) -> Any:
    if dim is None:
        dims: Any = range(a.ndim)
    else:
        dims = wrap_dims(dim, a.ndim) if not isinstance(dim, int) else (wrap_dim(dim, a.ndim),)
    return a.squeeze(tuple(d for d in dims if a.ndim and a.shape[d] == 1))


squeeze = view(
    "squeeze(Tensor self, int[]? dim=None) -> Tensor",
    _squeeze,
    variant=lambda self, dim: 0 if dim is None else 1 if isinstance(dim, int) else 2,
    d_self=lambda g, self_shape: g.reshape(self_shape),
    batch=batching.squeezed,
    names=named_dims.squeezed,
    sparse="strides",
    doc="Without dimensions of size 1.",
)


def _expand(xp: ArrayModule, a: Array, sizes: tuple[int, ...]) -> Any:
    lead = len(sizes) - a.ndim
    if lead < 0:
        raise RuntimeError(
            f"expand({tensor_kind(a)}{list(a.shape)}, size={list(sizes)}): the "
            f"number of sizes provided ({len(sizes)}) must be greater or equal to "
            f"the number of dimensions in the tensor ({a.ndim})"
        )
    shape = []
    for i, n in enumerate(sizes):
        old = a.shape[i - lead] if i >= lead else None
        if n == -1:
            if old is None:
                raise RuntimeError(
                    f"expand({tensor_kind(a)}{list(a.shape)}, size={list(sizes)}): "
                    "the expanded size of the tensor (-1) isn't allowed in a "
                    f"leading, non-existing dimension {i}"
                )
            n = old
        elif old is not None and old not in (1, n):
            raise RuntimeError(
                f"The expanded size of the tensor ({n}) must match the existing size"
                f" ({old}) at non-singleton dimension {i}.  Target sizes: "
                f"{list(sizes)}.  Tensor sizes: {list(a.shape)}"
            )
        shape.append(n)
    if a.__class__ is np.ndarray:  # np.broadcast_to would make a read-only array
        strides = [0] * lead + [
            s if m == n else 0 for s, m, n in zip(a.strides, a.shape, shape[lead:])
        ]
        return np.lib.stride_tricks.as_strided(a, shape, strides)
    return xp.broadcast_to(a, shape)


def tensor_kind(a: Array) -> str:
    """The legacy name of a tensor type, as error messages use it."""
    return f"torch.{from_numpy_dtype(a.dtype).legacy}Tensor"


expand = view(
    "expand(Tensor self, int... sizes) -> Tensor",
    _expand,
    function=False,
    d_self=lambda g: g,
    batch=batching.expanded,
    names=named_dims.expanded,
    doc="Dimensions of size 1 repeated with stride 0.",
)


def _narrow(xp: ArrayModule, a: Array, dim: int, start: Any, length: int) -> Any:
    if a.ndim == 0:
        raise RuntimeError("narrow() cannot be applied to a 0-dim tensor.")
    if length < 0:
        raise RuntimeError("narrow(): length must be non-negative.")
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if hasattr(start, "dtype") and (start.ndim or start.dtype.rank != 1):
        raise RuntimeError("start must be an 0-dim integral Tensor.")
    start = int(start)
    if not -n <= start <= n:
        raise IndexError(
            f"start out of range (expected to be in range of [{-n}, {n}], but got {start})"
        )
    begin = start + n if start < 0 else start
    if begin + length > n:
        raise RuntimeError(f"start ({begin}) + length ({length}) exceeds dimension size ({n}).")
    return a[(slice(None),) * d + (slice(begin, begin + length),)]


def _slice_gradient(
    g: Tensor, self_shape: tuple[int, ...], dim: int, start: int, length: int
) -> Any:
    n = self_shape[dim]
    start = int(start) % n if int(start) < 0 else int(start)
    return slice_backward.function(g, self_shape, dim, start, start + length, 1)


narrow = view(
    "narrow(Tensor self, int dim, int start, int length) -> Tensor",
    _narrow,
    d_self=_slice_gradient,
    node="SliceBackward0",
    batch="along",
    names="same",
    sparse="strides",
    doc="A range of one dimension.",
)


def _slice(
    xp: ArrayModule, a: Array, dim: int, start: int | None, end: int | None, step: int
) -> Any:
    if step <= 0:
        raise RuntimeError("slice step must be positive")
    return a[(slice(None),) * wrap_dim(dim, a.ndim) + (slice(start, end, step),)]


slice_ = view(
    "slice(Tensor self, int dim=0, int? start=None, int? end=None, int step=1) -> Tensor",
    _slice,
    function=False,
    method=False,
    d_self=lambda g, self_shape, dim, start, end, step: slice_backward.function(
        g, self_shape, dim, start, end, step
    ),
    batch="along",
    names="same",
    sparse="strides",
    doc="Elements start, start+step … before end of one dimension.",
)


def _slice_backward(
    xp: ArrayModule,
    g: Array,
    shape: tuple[int, ...],
    dim: int,
    start: int | None,
    end: int | None,
    step: int,
) -> Any:
    full = xp.zeros(shape, g.dtype)
    full[(slice(None),) * (dim % len(shape)) + (slice(start, end, step),)] = g
    return full


slice_backward: Op = general(
    "slice_backward(Tensor grad_output, int[] input_sizes, int dim, int? start, int? end, int step)"
    " -> Tensor",
    _slice_backward,
    method=False,
    d_grad_output=lambda g, dim, start, end, step: slice_.function(g, dim, start, end, step),
    doc="Zeros with a slice filled in: the gradient of slice.",
)


def _select(xp: ArrayModule, a: Array, dim: int, index: int) -> Any:
    if a.ndim == 0:
        raise IndexError("select() cannot be applied to a 0-dim tensor.")
    d = wrap_dim(dim, a.ndim)
    if not -a.shape[d] <= index < a.shape[d]:
        raise IndexError(
            f"select(): index {index} out of range for tensor of size "
            f"{list(a.shape)} at dimension {d}"
        )
    return a[(slice(None),) * d + (slice(index, index + 1 or None),)].squeeze(d)


def _select_backward(xp: ArrayModule, g: Array, shape: Sequence[int], dim: int, index: int) -> Any:
    full = xp.zeros(shape, g.dtype)
    full[(slice(None),) * (dim % len(shape)) + (index,)] = g
    return full


select = view(
    "select(Tensor self, int dim, int index) -> Tensor",
    _select,
    d_self=lambda g, self_shape, dim, index: select_backward.function(
        g, self_shape, dim, int(index)
    ),
    batch="along",
    names="reduced",
    doc="One place of a dimension.",
)
select_backward: Op = general(
    "select_backward(Tensor grad_output, int[] input_sizes, int dim, int index) -> Tensor",
    _select_backward,
    method=False,
    d_grad_output=lambda g, dim, index: select.function(g, dim, index),
    doc="Zeros with one place filled in: the gradient of select.",
)


def _diagonal(xp: ArrayModule, a: Array, offset: int, dim1: int, dim2: int) -> Any:
    d1, d2 = wrap_dim(dim1, a.ndim), wrap_dim(dim2, a.ndim)
    if d1 == d2:
        raise RuntimeError(f"diagonal dimensions cannot be identical {dim1}, {dim2}")
    rows, cols = a.shape[d1], a.shape[d2]
    skip = (slice(None),) * d1
    a1 = a[(*skip, slice(min(-offset, rows), None))] if offset < 0 else a
    start = (slice(None),) * d2
    a1 = a1[(*start, slice(min(offset, cols), None))] if offset > 0 else a1
    n = min(a1.shape[d1], a1.shape[d2])
    rest = [i for i in range(a.ndim) if i not in (d1, d2)]
    shape = [a1.shape[i] for i in rest] + [n]
    if not n:
        return (
            a1[(slice(0, 0),) * a.ndim].reshape([*shape[:-1], 0])
            if not a1.size
            else xp.zeros(shape, a.dtype)
        )
    strides = [a1.strides[i] for i in rest] + [a1.strides[d1] + a1.strides[d2]]
    return xp.lib.stride_tricks.as_strided(a1, shape, strides)


diagonal = view(
    "diagonal(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor",
    _diagonal,
    d_self=lambda g, self_shape, offset, dim1, dim2: diagonal_backward.function(
        g, self_shape, offset, dim1, dim2
    ),
    batch="along",
    sparse="strides",
    doc="A diagonal of two dimensions.",
)


def _diagonal_backward(
    xp: ArrayModule, g: Array, shape: tuple[int, ...], offset: int, dim1: int, dim2: int
) -> Any:
    full = xp.zeros(shape, g.dtype)
    _diagonal(xp, full, offset, dim1, dim2)[...] = g
    return full


diagonal_backward: Op = general(
    "diagonal_backward(Tensor grad_output, int[] input_sizes, int offset, int dim1, int dim2) "
    "-> Tensor",
    _diagonal_backward,
    method=False,
    d_grad_output=lambda g, offset, dim1, dim2: diagonal.function(g, offset, dim1, dim2),
    doc="Zeros with a diagonal filled in: the gradient of diagonal.",
)


def _unfold(xp: ArrayModule, a: Array, dimension: int, size: int, step: int) -> Any:
    d = wrap_dim(dimension, a.ndim)
    n = a.shape[d] if a.ndim else 1
    if size > n:
        raise RuntimeError(f"maximum size for tensor at dimension {d} is {n} but size is {size}")
    if step <= 0:
        raise RuntimeError(f"step is {step} but must be > 0")
    if a.ndim == 0:
        return a.reshape(1)[:size]
    count = (n - size) // step + 1
    shape = (*a.shape[:d], count, *a.shape[d + 1 :], size)
    strides = (*a.strides[:d], a.strides[d] * step, *a.strides[d + 1 :], a.strides[d])
    if not a.size:
        return a.reshape(shape) if 0 in a.shape else a
    return xp.lib.stride_tricks.as_strided(a, shape, strides)


def _unfold_backward(
    xp: ArrayModule, g: Array, shape: Sequence[int], dimension: int, size: int, step: int
) -> Any:
    full = xp.zeros(shape, g.dtype)
    if not shape:
        return full + g.sum()
    d = dimension % len(shape)
    for i in range(size):
        count = g.shape[d]
        place = (slice(None),) * d + (slice(i, i + (count - 1) * step + 1, step),)
        full[place] += g[..., i]
    return full


unfold = view(
    "unfold(Tensor self, int dimension, int size, int step) -> Tensor",
    _unfold,
    function=False,
    d_self=lambda g, self_shape, dimension, size, step: unfold_backward.function(
        g, self_shape, dimension, size, step
    ),
    batch="along",
    sparse="strides",
    doc="Sliding windows over a dimension, in a new last dimension.",
)
unfold_backward: Op = general(
    "unfold_backward(Tensor grad_in, int[] input_sizes, int dim, int size, int step) -> Tensor",
    _unfold_backward,
    method=False,
    d_grad_in=lambda g, dim, size, step: g.unfold(dim, size, step),
    doc="Windows added back to where they came from: the gradient of unfold.",
)


def _as_strided(
    xp: ArrayModule,
    a: Array,
    size: tuple[int, ...],
    stride: tuple[int, ...],
    storage_offset: int | None,
) -> Any:
    if len(size) != len(stride):
        raise RuntimeError("mismatch in length of strides and shape")
    if any(s < 0 for s in stride):
        raise RuntimeError(
            "as_strided: Negative strides are not supported at the moment, got "
            f"strides: {list(stride)}"
        )
    backend = base.of_array(a)
    flat = backend.flat(a)
    flat = flat if flat.dtype == a.dtype else flat.view(a.dtype)
    if storage_offset is None:
        storage_offset = (
            (backend.data_ptr(a) - backend.data_ptr(flat)) // a.itemsize if a.size else 0
        )
    last = storage_offset + sum((n - 1) * s for n, s in zip(size, stride))
    if 0 not in size and last >= flat.size:
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {list(stride)}, storage offset "
            f"{storage_offset}, and itemsize {a.itemsize} requiring a storage size of "
            f"{(last + 1) * a.itemsize} are out of bounds for storage of size {flat.nbytes}"
        )
    return backend.as_strided(flat, tuple(size), tuple(stride), storage_offset)


def _as_strided_gradient(
    g: Tensor,
    self_layout: tuple[int | tuple[int, ...], ...],
    size: Sequence[int],
    stride: Sequence[int],
    storage_offset: Any,
) -> Any:
    shape, strides, at = self_layout
    offset = 0 if storage_offset is None else storage_offset - at
    return g._scatter_strided(shape, strides, tuple(size), tuple(stride), offset)


as_strided = view(
    "as_strided(Tensor self, int[] size, int[] stride, int? storage_offset=None) -> Tensor",
    _as_strided,
    d_self=_as_strided_gradient,
    batch=batching.strided,
    doc="Any layout over the same memory.",
)

# -- the layouts of writes through views (see core/inplace.py) ------------------------------------


def _both(
    xp: ArrayModule,
    dtype: npt.DTypeLike,
    owner: Sequence[int],
    owner_strides: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
) -> Any:
    """Fresh memory seen as a base and as a view of it."""

    def end(sizes: Sequence[int], steps: Sequence[int], start: int) -> int:
        return start + sum((n - 1) * s for n, s in zip(sizes, steps)) + 1 if 0 not in sizes else 1

    low = min(0, offset)
    size = max(end(owner, owner_strides, -low), end(shape, strides, offset - low))
    memory = xp.zeros(size, dtype)
    backend = base.of_array(memory)
    return (
        backend.as_strided(memory, owner, owner_strides, -low),
        backend.as_strided(memory, shape, strides, offset - low),
    )


def _gather_strided(
    xp: ArrayModule,
    g: Array,
    owner: Sequence[int],
    owner_strides: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
) -> Any:
    full, part = _both(xp, g.dtype, owner, owner_strides, shape, strides, offset)
    full[...] = g
    return part.copy()


def _scatter_strided(
    xp: ArrayModule,
    g: Array,
    owner: Sequence[int],
    owner_strides: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
) -> Any:
    # Several elements of a view may be one of the base; their gradients add up. Several elements of
    # the base may be one of memory (an expanded base); each then gets its share.
    places, part = _both(xp, np.int64, owner, owner_strides, shape, strides, offset)
    memory = base.of_array(places).flat(places)
    memory[...] = xp.arange(memory.size)
    total = xp.zeros(memory.size, g.dtype)
    np.add.at(total, part.reshape(-1), g.reshape(-1))
    counts = xp.bincount(places.reshape(-1), minlength=memory.size)
    result = total[places.reshape(-1)]
    shared = counts[places.reshape(-1)]
    return (result if (shared == 1).all() else result / shared.astype(g.dtype)).reshape(owner)


def _fill_strided(
    xp: ArrayModule,
    g: Array,
    part: Array,
    owner: Sequence[int],
    owner_strides: Sequence[int],
    shape: Sequence[int],
    strides: Sequence[int],
    offset: int,
) -> Any:
    full, window = _both(xp, g.dtype, owner, owner_strides, shape, strides, offset)
    full[...] = g
    window[...] = part
    return full.copy()


GEOMETRY = "int[] owner, int[] owner_stride, int[] size, int[] stride, int offset"
gather_strided = general(
    f"_gather_strided(Tensor self, {GEOMETRY}) -> Tensor",
    _gather_strided,
    function=False,
    d_self=lambda g, owner, owner_stride, size, stride, offset: g._scatter_strided(
        owner, owner_stride, size, stride, offset
    ),
    doc="The part of a base-shaped gradient that a view shows.",
)
scatter_strided = general(
    f"_scatter_strided(Tensor self, {GEOMETRY}) -> Tensor",
    _scatter_strided,
    function=False,
    d_self=lambda g, owner, owner_stride, size, stride, offset: g._gather_strided(
        owner, owner_stride, size, stride, offset
    ),
    doc="A view's gradient put where the view lies in its base.",
)
fill_strided = general(
    f"_fill_strided(Tensor self, Tensor part, {GEOMETRY}) -> Tensor",
    _fill_strided,
    function=False,
    d_self=lambda g, part, owner, owner_stride, size, stride, offset: g._fill_strided(
        part * 0, owner, owner_stride, size, stride, offset
    ),
    d_part=lambda g, owner, owner_stride, size, stride, offset: g._gather_strided(
        owner, owner_stride, size, stride, offset
    ),
    doc="A base-shaped gradient with the part that a view shows replaced.",
)

# -- several views at once ------------------------------------------------------------------------


def _sections(dim: int, ndim: int, sizes: Sequence[int]) -> list[Any]:
    skip, start, places = (slice(None),) * dim, 0, []
    for n in sizes:
        places.append((*skip, slice(start, start + n)))
        start += n
    return places


def _split(xp: ArrayModule, a: Array, split_size: int | Sequence[int], dim: int) -> Any:
    if a.ndim == 0:
        raise RuntimeError("split expects at least a 1-dimensional tensor")
    d = wrap_dim(dim, a.ndim)
    n = a.shape[d]
    if isinstance(split_size, int):
        if split_size < 0:
            raise RuntimeError(
                f"split expects split_size be non-negative, but got split_size={split_size}"
            )
        if split_size == 0 and n:
            raise RuntimeError(
                f"split_size can only be 0 if dimension size is 0, but got dimension size of {n}"
            )
        step = max(split_size, 1)
        sizes = [min(step, n - i) for i in range(0, n, step)] or [0]
    else:
        sizes = [int(s) for s in split_size]
        if sum(sizes) != n or any(s < 0 for s in sizes):
            raise RuntimeError(
                "split_with_sizes expects split_sizes to sum exactly to "
                f"{n} (input tensor's size at dimension {d}), but got split_sizes="
                f"{sizes}"
            )
    return [a[place] for place in _sections(d, a.ndim, sizes)]


def _join(gs: Sequence[Tensor], dim: int) -> Any:
    from toytorch.ops.shaping.rearrange import cat  # a circle otherwise

    return cat.function(gs, dim)


split = view(
    "split(Tensor self, int split_size_or_sections, int dim=0) -> Tensor[]",
    _split,
    words={"split_size": "split_size_or_sections"},
    d_self=lambda gs, dim: _join(gs, dim),
    batch="along",
    names="same",
    sparse="strides",
    doc="Parts of a dimension, as views.",
)


def _unbind(xp: ArrayModule, a: Array, dim: int) -> Any:
    if a.ndim == 0:
        raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
    d = wrap_dim(dim, a.ndim)
    return [_select(xp, a, d, i) for i in range(a.shape[d])]


def _stack(gs: Sequence[Tensor], dim: int) -> Any:
    from toytorch.ops.shaping.rearrange import stack  # a circle otherwise

    return stack.function(gs, dim)


unbind = view(
    "unbind(Tensor self, int dim=0) -> Tensor[]",
    _unbind,
    d_self=lambda gs, dim: _stack(gs, dim),
    batch="along",
    names=named_dims.without_dim,
    doc="The slices of a dimension, as views.",
)

# -- parts of complex numbers ---------------------------------------------------------------------


def _real(xp: ArrayModule, a: Array) -> Any:
    return a.real


def _imag(xp: ArrayModule, a: Array) -> Any:
    if a.dtype.kind != "c":
        raise RuntimeError("imag is not implemented for tensors with non-complex dtypes.")
    return a.imag


real = view(
    "real(Tensor self) -> Tensor",
    _real,
    method=False,
    holomorphic=False,
    d_self=lambda g: g,
    batch="leading",
    sparse="sums",
    doc="The real part.",
)
imag = view(
    "imag(Tensor self) -> Tensor",
    _imag,
    method=False,
    holomorphic=False,
    d_self=lambda g: g.to(g.dtype.to_complex()) * 1j,
    batch="leading",
    sparse="sums",
    doc="The imaginary part.",
)
alias = view(
    "alias(Tensor self) -> Tensor",
    lambda xp, a: a[...],
    function=False,
    method=False,
    d_self=lambda g: g,
    batch="leading",
    names="same",
    doc="The whole tensor, as a view of itself.",
)
