"""Sizes, strides and dimension numbers: the arithmetic of shapes, free of any data."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from toytorch.facts.hints import Array, Shape

# One number, where there may be several, is one of these; int() would end a trace.
WHOLE = (int, np.integer)


class Size(tuple[int, ...]):
    """The shape of a tensor: a tuple that prints like `torch.Size`.

    >>> Size([2, 3]), Size([2, 3]).numel(), Size([2, 3]) + (4,)
    (torch.Size([2, 3]), 6, torch.Size([2, 3, 4]))
    """

    __slots__ = ()

    def __new__(cls, sizes: Iterable[Any] = ()) -> Size:
        made = tuple.__new__(cls, sizes)
        for n in made:
            if n.__class__ is not int:
                return tuple.__new__(cls, [whole(n, i) for i, n in enumerate(made)])
        return made

    def numel(self) -> int:
        """The number of elements: the product of the sizes."""
        return math.prod(self)

    def __repr__(self) -> str:
        return f"torch.Size([{', '.join(map(str, self))}])"

    __str__ = __repr__

    def __add__(self, other: Any) -> Size:
        if not isinstance(other, tuple):
            if hasattr(other, "__radd__") and type(other).__module__ != "builtins":
                return NotImplemented
            kind = type(other).__name__
            raise TypeError(f"can only concatenate tuple (not {kind}) to torch.Size")
        return Size(tuple.__add__(self, other))

    def __radd__(self, other: Any) -> Size:
        return Size(other + tuple(self)) if isinstance(other, tuple) else NotImplemented

    def __mul__(self, count: Any) -> Size:
        return Size(tuple.__mul__(self, count))

    __rmul__ = __mul__

    def __getitem__(self, index: Any) -> Any:
        item = tuple.__getitem__(self, index)
        return tuple.__new__(Size, item) if isinstance(index, slice) else item

    def __reduce__(self) -> Any:
        return Size, (tuple(self),)


def whole(size: Any, place: int) -> Any:
    """A size of a shape: a whole number, or what stands for one while a function is traced."""
    if isinstance(size, bool) or not isinstance(size, int):
        try:
            return size.__index__()
        except (AttributeError, TypeError):
            kind = type(size).__name__
            raise TypeError(
                f"torch.Size() takes an iterable of 'int' (item {place} is '{kind}')"
            ) from None
    return size


def contiguous_strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a row-major tensor: strideᵢ = Π_{j>i} max(sizeⱼ, 1).

    >>> contiguous_strides((2, 3, 4)), contiguous_strides((2, 0, 4))
    ((12, 4, 1), (4, 4, 1))
    """
    strides, step = [], 1
    for n in reversed(shape):
        strides.append(step)
        step *= max(n, 1)
    return tuple(reversed(strides))


def is_contiguous(shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether elements in row-major order lie side by side; sizes of 1 may have any stride."""
    step = 1
    for n, s in zip(reversed(shape), reversed(strides)):
        if n == 0:
            return True
        if n != 1 and s != step:
            return 0 in shape
        step *= n
    return True


def wrap_dim(dim: Any, ndim: int, wrap_scalar: bool = True) -> int:
    """A dimension number counted from the front.

    >>> wrap_dim(-1, 3)
    2
    >>> wrap_dim(3, 3)
    Traceback (most recent call last):
    IndexError: Dimension out of range (expected to be in range of [-3, 2], but got 3)
    """
    if dim.__class__ is int and -ndim <= dim < ndim:  # the usual case
        found: int = dim + ndim if dim < 0 else dim
        return found
    if ndim == 0:
        if not wrap_scalar:
            raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
        ndim = 1
    if -ndim <= dim < ndim:
        return int(dim + ndim if dim < 0 else dim)
    if not -(1 << 63) <= int(dim) < 1 << 63:  # a tensor's own comparison wraps
        raise ValueError("Overflow when unpacking long long")
    raise IndexError(
        f"Dimension out of range (expected to be in range of [{-ndim}, {ndim - 1}], but got {dim})"
    )


def wrap_dims(dims: Sequence[int | str] | int, ndim: int) -> tuple[int, ...]:
    """Dimension numbers counted from the front; each may appear once.

    >>> wrap_dims((0, -1), 3)
    (0, 2)
    """
    if dims.__class__ is tuple and len(dims) == 1:
        return (wrap_dim(dims[0], ndim),)
    if isinstance(dims, WHOLE):
        return (wrap_dim(dims, ndim),)
    wrapped = tuple(wrap_dim(d, ndim) for d in dims)
    for i, d in enumerate(wrapped):
        if d in wrapped[:i]:
            raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
    return wrapped


def broadcast_shapes(*shapes: Any) -> Size:
    """The shape that all of `shapes` broadcast to.

    >>> broadcast_shapes((3, 1), (4,), (1, 3, 1))
    torch.Size([1, 3, 4])
    >>> broadcast_shapes((3,), (4,))
    Traceback (most recent call last):
    RuntimeError: Attempting to broadcast a dimension of length 4 at -1! ...
    """
    each = [(s,) if isinstance(s, int) else s for s in shapes]
    common = [1] * max(map(len, each), default=0)
    for index, shape in enumerate(each):
        for at in range(-1, -1 - len(shape), -1):
            length = shape[at]
            if length < 0 and common[at] == 1:
                raise ValueError("Attempting to broadcast a dimension with negative length!")
            if length not in (1, common[at]):
                if common[at] != 1:
                    raise RuntimeError(
                        f"Attempting to broadcast a dimension of length {length} at {at}! "
                        f"Mismatching argument at index {index} had {shape}; but expected shape "
                        f"should be broadcastable to {common}"
                    )
                common[at] = length
    return Size(common)


def copy_order(array: Array) -> str:
    """NumPy's name for the layout of a copy: the array's own, but row-major after `expand`."""
    return "C" if 0 in array.strides else "K"


def broadcast_pair(a: Sequence[int], b: Sequence[int]) -> tuple[int, ...]:
    """The common shape of two operands; PyTorch's error where there is none."""
    ndim = max(len(a), len(b))
    a, b = (1,) * (ndim - len(a)) + tuple(a), (1,) * (ndim - len(b)) + tuple(b)
    shape = []
    for m, n in zip(a, b):
        if m != n and m != 1 and n != 1:
            worst = max(j for j in range(ndim) if a[j] != b[j] and 1 not in (a[j], b[j]))
            raise RuntimeError(
                f"The size of tensor a ({a[worst]}) must match the size of tensor b "
                f"({b[worst]}) at non-singleton dimension {worst}"
            )
        shape.append(n if m == 1 else m)
    return tuple(shape)


def cannot_broadcast(target: Sequence[int], shape: Sequence[int]) -> RuntimeError:
    """What PyTorch says of an output that would have to grow to the operands' common shape."""
    return RuntimeError(
        f"output with shape {list(target)} doesn't match the broadcast shape {list(shape)}"
    )


def infer_size(shape: Sequence[int], numel: int) -> tuple[int, ...]:
    """`shape` with its one -1 replaced by what `numel` elements leave for it.

    >>> infer_size((2, -1), 6)
    (2, 3)
    >>> infer_size((4, -1), 6)
    Traceback (most recent call last):
    RuntimeError: shape '[4, -1]' is invalid for input of size 6
    """
    shape = tuple(shape)
    known, unknown = 1, None
    for i, n in enumerate(shape):
        if n == -1:
            if unknown is not None:
                raise RuntimeError("only one dimension can be inferred")
            unknown = i
        elif n < 0:
            raise RuntimeError(f"invalid shape dimension {n} at index {i} of shape {list(shape)}")
        else:
            known *= n
    if unknown is None and known == numel:
        return shape
    text = f"shape '[{', '.join(map(str, shape))}]' is invalid for input of size {numel}"
    if unknown is None:
        raise RuntimeError(text)
    if known == 0:
        if numel == 0:
            raise RuntimeError(
                f"cannot reshape tensor of 0 elements into shape {list(shape)} because the "
                "unspecified dimension size -1 can be any value and is ambiguous"
            )
        raise RuntimeError(text)
    if numel % known:
        raise RuntimeError(text)
    return (*shape[:unknown], numel // known, *shape[unknown + 1 :])


def view_strides(
    shape: Sequence[int], strides: Sequence[int], new: Sequence[int]
) -> tuple[int, ...] | None:
    """Strides that show the same memory in the shape `new`, or None where a copy is needed.

    Neighbouring dimensions that lie in memory like one are one chunk; every new dimension must
    fall inside a chunk.

    >>> view_strides((2, 3, 4), (12, 4, 1), (6, 2, 2)), view_strides((2, 3), (1, 2), (6,))
    ((4, 2, 1), None)
    """
    if 0 in shape:
        return tuple(strides) if tuple(shape) == tuple(new) else contiguous_strides(new)
    if not shape:
        return (1,) * len(new)
    out = [0] * len(new)
    position = len(new) - 1
    chunk_stride, chunk, filled = strides[-1], 1, 1
    for i in range(len(shape) - 1, -1, -1):
        chunk *= shape[i]
        if i == 0 or (shape[i - 1] != 1 and strides[i - 1] != chunk * chunk_stride):
            while position >= 0 and (filled < chunk or new[position] == 1):
                out[position] = filled * chunk_stride
                filled *= new[position]
                position -= 1
            if filled != chunk:
                return None
            if i > 0:
                chunk_stride, chunk, filled = strides[i - 1], 1, 1
    return tuple(out) if position == -1 else None


def need_room(
    size: Shape, stride: Shape, start: int, item: int, held: int, said: Shape | None = None
) -> None:
    """Refuses a view, of elements of `item` bytes, that reaches beyond its storage's `held` bytes; the
    strides may be `said` otherwise."""
    needed = (start + 1 + sum((n - 1) * s for n, s in zip(size, stride))) * item
    if 0 not in size and needed > held:
        strides = list(stride if said is None else said)
        raise RuntimeError(
            f"setStorage: sizes {list(size)}, strides {strides}, storage offset {start}, and itemsize "
            f"{item} requiring a storage size of {needed} are out of bounds for storage of size {held}"
        )
