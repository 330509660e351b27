"""The order in which a kernel's results lie in memory.

NumPy's functions often leave a result in the order of their input; PyTorch's leave it in rows, and
programs count on it: `.view` of a result works or fails by its strides. A record says which order
its results have, and its kernel is wrapped by one of these.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from operator import ge, gt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.stride_tricks import as_strided

from toytorch.backends import base, generic
from toytorch.backends.no_elements import lying, strided, with_strides
from toytorch.facts.device import memory_format
from toytorch.facts.hints import Array, Fn, Shape, Sizes
from toytorch.kernels.memory_format import with_last

if TYPE_CHECKING:
    from toytorch.core.op import Op

ndarray = np.ndarray
MANY = 1 << 12  # bytes, from which it is worth asking for a kernel that copies them


def rows(kernel: Fn) -> Fn:
    """A kernel whose results are in row-major order.

    >>> rows(np.negative)(np.ones((2, 3)).T).strides
    (16, 8)
    """

    def with_rows(*args: object, **named: object) -> Any:
        made = kernel(*args, **named)
        if made.__class__ is ndarray:
            return made if made.flags.c_contiguous else in_rows(made)
        if made.__class__ is tuple:
            return tuple([row_major(m) for m in made])
        return made

    return with_rows


def row_major(made: Any) -> Any:
    """An array in row-major order; what is none of NumPy's as it is."""
    if made.__class__ is not ndarray or made.flags.c_contiguous:
        return made
    return in_rows(made)


def in_rows(a: Array) -> Any:
    """A copy in row-major order."""
    if a.__class__ is not ndarray:
        return a.copy()
    worth = a.nbytes >= (4 * MANY if a.flags.c_contiguous else MANY)
    made = generic.attempt(np, "in_rows", a) if worth else None
    return a.copy("C") if made is None else made


def copied(a: Array) -> Any:
    """A copy to write to: in the array's own order of memory, in rows after `expand`."""
    if a.flags.c_contiguous or 0 in a.strides:
        return in_rows(a)
    if a.nbytes >= MANY and all(map(ge, a.strides, a.strides[1:])):
        return in_rows(a)  # rows with gaps between them
    return a.copy("K")


def assign(to: Array, source: Any) -> None:
    """to[...] = source, which may be any part of what it is written to."""
    if (
        to.__class__ is not ndarray
        or to.nbytes < MANY
        or source.__class__ is not ndarray
        or source.dtype != to.dtype
        or source.shape != to.shape
        or np.may_share_memory(to, source)
    ):
        to[...] = source
    else:
        generic.attempt(np, "assign", to, source)


def each(lay: Callable[[Any, Array], Any]) -> Fn:
    """What lays all results of a kernel as `lay(result, first argument)` does."""

    def as_first(made: Any, first: Array) -> Any:
        if first.__class__ is not ndarray:
            return made
        if made.__class__ is tuple:
            return tuple([lay(m, first) for m in made])
        return lay(made, first)

    return as_first


def one_format(made: Any, first: Any) -> Any:
    """The results of a kernel over images, or a list of them: channels last if these have, else rows."""
    if made.__class__ is ndarray and made.ndim < 4 and made.flags.c_contiguous:
        return made  # no images
    if first.__class__ is ndarray and first.flags.c_contiguous and not has_channels_last(first):
        for m in made if made.__class__ is tuple else (made,):
            if m.__class__ is not ndarray or not m.flags.c_contiguous:
                break
        else:
            return made
    images = first if first.__class__ in (list, tuple) else [first]
    if (
        made.__class__ is ndarray
        and made.flags.c_contiguous
        and (not images or (images[0].flags.c_contiguous and not has_channels_last(images[0])))
    ):
        return made
    orders = [has_channels_last(a) for a in images if a.size]
    last = bool(orders) and all(orders)
    if made.__class__ is tuple:
        return tuple(in_format(m, last) for m in made)
    return in_format(made, last)


def laid(lay: Fn) -> Callable[[Fn], Fn]:
    """What makes of a kernel one whose results are laid in memory by `lay(results, first argument)`.

    >>> laid(LAYS["like"])(lambda a: -a.copy("C"))(np.ones((2, 3)).T).strides
    (8, 24)
    """

    def of(kernel: Fn) -> Fn:
        return lambda *args, **named: lay(kernel(*args, **named), args[0])

    return of


def one_volume(kernel: Fn) -> Fn:
    """`one_format` for volumes (N, C, D, H, W), or one of them, without N."""
    formatted = laid(one_format)(kernel)

    def run(a: Array, *args: Any, **named: Any) -> Any:
        if a.ndim != 4 or a.__class__ is not ndarray:
            return formatted(a, *args, **named)
        whole = max(a.size, 1) * a.itemsize  # what the step from one volume to the next would be
        batch = as_strided(a, (1, *a.shape), (whole, *a.strides))
        made = formatted(batch, *args, **named)
        return tuple(m[0] for m in made) if made.__class__ is tuple else made[0]

    return run


def has_channels_last(a: Any) -> bool:
    """Whether images (N, C, …) have strides that rise from channels over places to images.

    Parts of images whose channels lie last have them too, though they leave gaps in memory.
    """
    if a.ndim < 4:
        return False
    shape, strides = a.shape, a.strides
    if strides[-1] < strides[1] * shape[1] or 0 in shape:  # the usual case is soon known
        return False
    return channels_rise(shape, [s // a.itemsize for s in strides])


def channels_rise(shape: Shape, strides: Sequence[int]) -> bool:
    """Whether strides rise from channels over places to images, each past what the last one spans."""
    least = 1
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if strides[d] < least or (d == 0 and least == strides[1]):
            return False
        least = strides[d] * shape[d]
    return True


def in_format(made: Array, last: bool) -> Any:
    """A result with its channels last, or in rows."""
    if made.__class__ is not ndarray:
        return made
    if not last or made.ndim < 4:
        return made if made.flags.c_contiguous else in_rows(made)
    return with_last(made)


def ordered(made: Array, first: Array) -> Any:
    """A result in the order of an array of its shape; in rows where that has none of its own."""
    if made.__class__ is not ndarray:
        return made
    if not made.size and made.shape == first.shape:
        return kept(made, first)
    if made.flags.c_contiguous and first.flags.c_contiguous:
        return made
    if made.shape != first.shape or 0 in first.strides:
        return made if made.flags.c_contiguous else in_rows(made)
    order = sorted(range(made.ndim), key=lambda d: -abs(first.strides[d]))
    moved = made.transpose(order)
    if moved.flags.c_contiguous:
        return made
    back = sorted(range(made.ndim), key=order.__getitem__)
    return in_rows(moved).transpose(back)


def walk(*arrays: Array) -> list[int]:
    """The dimensions in the order in which a loop over elements of arrays of one shape goes through
    them, the outermost first: that of memory, as PyTorch's TensorIterator finds it."""
    return order_of(arrays[0].shape, [a.strides for a in arrays])


def order_of(shape: Sizes, strides: list[Sizes]) -> list[int]:
    """`walk` for strides; 0 where an operand is repeated along a dimension."""
    return list(found_order(shape, tuple(strides)))


@lru_cache(1024)
def found_order(shape: Sizes, strides: tuple[Sizes, ...]) -> tuple[int, ...]:
    """`order_of`, whose results nobody may change."""
    order = list(range(len(shape)))[::-1]

    def later(one: int, other: int) -> int:
        for s in strides:
            a, b = abs(s[one]), abs(s[other])
            if a and b:
                if a != b:
                    return 1 if a > b else -1
                if shape[one] > shape[other]:
                    return 1
        return 0

    for i in range(1, len(order)):
        at = i
        for k in range(i - 1, -1, -1):
            found = later(order[k], order[at])
            if found > 0:
                order[k], order[at] = order[at], order[k]
                at = k
            elif found < 0:
                break
    return tuple(order[::-1])


def placed(made: Any, *operands: Any) -> Any:
    """An elementwise result in the order that PyTorch gives it: that of the first operand which
    tells two dimensions apart. NumPy takes rows as soon as one operand lies in rows.

    >>> a = np.ones((2, 3))
    >>> (a.T + np.ones((3, 2))).strides, placed(a.T + np.ones((3, 2)), a.T, np.ones((3, 2))).strides
    ((16, 8), (8, 24))
    """
    if made.__class__ is not ndarray or made.ndim < 2:
        return made
    shape, first = made.shape, operands[0]
    if made.flags.c_contiguous and 1 not in shape and 0 not in shape:
        if first.__class__ is not ndarray or not any(first.strides):  # one number everywhere
            first = next((a for a in operands if a.__class__ is ndarray and any(a.strides)), made)
        # The common case: rows give rows.
        if first.shape == shape and (first.flags.c_contiguous or falling(first.strides)):
            return made
    step = made.itemsize
    arrays = [a for a in operands if a.__class__ is ndarray]
    if not made.size:
        return placed_nowhere(made, arrays, len(operands))
    lies = tuple([(a.shape, a.strides, a.itemsize, a.flags.c_contiguous) for a in arrays])
    return with_layout(made, found_strides(shape, step, lies, len(arrays) == len(operands)))


@lru_cache(1024)
def found_strides(
    shape: Sizes, step: int, lies: tuple[tuple[Sizes, Sizes, int, bool], ...], all_arrays: bool
) -> Sizes:
    """The strides of an elementwise result with elements, for operands that lie in memory so: shape,
    strides, size of an element, and whether they are in rows."""
    alike = all_arrays and all(own == shape for own, *_ in lies)
    if alike and all(in_rows for *_, in_rows in lies):
        return dense_strides(shape, list(range(len(shape))), step)
    if alike and all(is_channels_last(*lie[:3]) for lie in lies):
        return dense_strides(shape, [0, *range(2, len(shape)), 1], step)
    if alike and len({tuple(s // size for s in strides) for _, strides, size, _ in lies}) == 1:
        _, strides, size, _ = lies[0]
        wanted = tuple(s // size * step for s in strides)
        if is_dense(shape, wanted, step):
            return wanted
    spread = [repeated(own, strides, shape) for own, strides, *_ in lies if own]
    return dense_strides(shape, order_of(shape, spread), step)


def falling(strides: Sizes) -> bool:
    """Whether each stride is smaller than the one before it, and the last not 0."""
    last = strides[-1]
    if last <= 0:
        return False
    for s in strides[-2::-1]:
        if s <= last:
            return False
        last = s
    return True


def in_order(op: Op, result: Any, operands: list[Any]) -> Any:
    """A pointwise result in the order of memory that PyTorch gives it, for these operands."""
    if op.memory == "tensor first":
        if not isinstance(operands[0], ndarray):
            return row_major(result)
        return placed(result, *operands)
    if op.memory not in ("", "second"):
        return result
    return placed(result, *(operands[::-1] if op.memory else operands))


def placed_nowhere(made: Array, arrays: list[Array], count: int) -> Any:
    """`placed` for a result without elements: a step over nothing is 0."""
    if len(arrays) == count and all(a.shape == made.shape for a in arrays):
        return made
    arrays = [with_strides(a) for a in arrays if a.ndim]
    order = order_of(made.shape, [repeated(a.shape, a.strides, made.shape) for a in arrays])
    return with_layout(made, loop_strides(made.shape, order, made.itemsize))


def loop_strides(shape: Sizes, order: list[int], step: int) -> Sizes:
    """`dense_strides` as PyTorch's loops give them: a step over nothing is 0, if not in rows."""
    if order == list(range(len(shape))):
        return dense_strides(shape, order, step)
    strides = [0] * len(shape)
    for d in reversed(order):
        strides[d] = step
        step *= shape[d]
    return tuple(strides)


def dense_strides(shape: Sizes, order: list[int], step: int) -> Sizes:
    """Strides without gaps, in bytes, for dimensions in an order, the outermost first."""
    strides = [0] * len(shape)
    for d in reversed(order):
        strides[d] = step
        step *= max(shape[d], 1)
    return tuple(strides)


def kept(made: Any, source: Array) -> Any:
    """A copy that lies as its source does, where that has no gaps; else without gaps, in the order
    of the source's dimensions: what PyTorch calls preserve_format.

    >>> a = np.ones((4, 6)).T[::2]
    >>> a.strides, kept(a.copy("C"), a).strides
    ((16, 48), (8, 24))
    """
    if made.__class__ is not ndarray:
        return made
    if made.strides == source.strides and made.itemsize == source.itemsize:
        return made
    shape, step = made.shape, made.itemsize
    if min(shape, default=2) > 1 and made.flags.c_contiguous:
        steps = source.strides
        if source.flags.c_contiguous or (0 not in steps and all(map(gt, steps, steps[1:]))):
            return made  # only sizes of 0 and 1 leave a stride open
    if not source.size:
        source = with_strides(source)
    wanted = tuple(s // source.itemsize * step for s in source.strides)
    if made.size and not is_dense(shape, wanted, step):
        wanted = dense_strides(shape, order_of(shape, [source.strides]), step)
    return with_layout(made, wanted)


def repeated(own: tuple[int, ...], strides: Sizes, shape: Sizes) -> tuple[int, ...]:
    """The strides of an operand of a shape of its own in the shape of the result."""
    lead = len(shape) - len(own)
    return (0,) * lead + tuple(s if m == n else 0 for s, m, n in zip(strides, own, shape[lead:]))


def is_channels_last(shape: Sizes, strides: Sizes, step: int) -> bool:
    """Whether images, or volumes, of elements of `step` bytes are what PyTorch calls contiguous in
    channels_last; strides of elements have a step of 1.

    >>> is_channels_last((0, 3, 2, 2), (12, 1, 6, 3), 1), is_channels_last((0, 3, 2, 2), (12, 4, 2, 1), 1)
    (True, False)
    """
    if len(shape) not in (4, 5):
        return False
    for d in (1, *range(len(shape) - 1, 1, -1), 0):
        if shape[d] != 1:
            if strides[d] != step:
                return False
            step *= shape[d]
    return True


def is_dense(shape: Sizes, strides: Sizes, step: int) -> bool:
    """Whether elements lie side by side in some order, none of them twice; strides in bytes."""
    for s, n in sorted((s, n) for s, n in zip(strides, shape) if n > 1):
        if s != step:
            return False
        step *= n
    return True


def with_layout(made: Array, strides: Sizes) -> Any:
    """The same elements with these strides, which leave no gaps."""
    if made.strides == strides:
        return made
    if not made.size:
        return lying(made, made.shape, strides)
    if all(s == t for s, t, n in zip(made.strides, strides, made.shape) if n != 1):
        return strided(np, made, made.shape, strides)
    new = np.ndarray(made.shape, made.dtype, np.empty(made.size, made.dtype), 0, strides)
    assign(new, made)
    return new


def in_memory_order(draw: Callable[[int], Any], shape: Sizes, *like: Array | None) -> Any:
    """What `draw(count)` gives, as an array whose elements are drawn in the order in which arrays of
    that shape lie in memory; without any, in rows."""
    first = like[0] if like else None
    try:
        made = draw(math.prod(shape))
        rows = first is None or first.ndim < 2 or first.flags.c_contiguous
        made = made.reshape(shape) if rows else made
    except (MemoryError, ValueError) as error:
        base.raise_too_large(error, shape)
        raise
    if rows:
        return made if first is None or 1 not in shape else kept(made, first)
    order = walk(*(a for a in like if a is not None))
    moved = made.reshape([shape[d] for d in order])
    return moved.transpose(sorted(range(len(order)), key=order.__getitem__))


def columns(made: Any) -> Any:
    """Matrices whose columns lie side by side, as LAPACK leaves them.

    >>> columns(np.ones((2, 3))).strides
    (8, 16)
    """
    if made.__class__ is not ndarray or made.ndim < 2:
        return made
    n = made.ndim
    order = [*range(n - 2), n - 1, n - 2]
    return with_layout(made, dense_strides(made.shape, order, made.itemsize))


def in_columns(kernel: Fn) -> Fn:
    """A kernel all of whose matrices lie in columns; the vectors beside them lie in rows."""

    def turned(*args: object) -> Any:
        made = kernel(*args)
        if made.__class__ is not tuple:
            return columns(made)
        most = max(m.ndim for m in made)
        return tuple(columns(m) if m.ndim == most else row_major(m) for m in made)

    return turned


# How results lie by their first argument: as it does where they have its shape, or as its copy would.
LAYS: dict[str, Fn] = {"like": each(ordered), "kept": each(kept), "format": one_format}
ORDERS: dict[str, Callable[[Fn], Fn]] = {
    "": lambda kernel: kernel,
    "rows": rows,
    **{name: laid(lay) for name, lay in LAYS.items()},
    "volume": one_volume,
    "columns": in_columns,
    "second": lambda kernel: kernel,  # as an elementwise op of the second operand and the first
    "tensor first": lambda kernel: kernel,  # as of both, but in rows where the first is a number
}


def dim_order(
    sizes: Sizes, strides: Sizes, ambiguity_check: Any, fits: Callable[[memory_format], bool]
) -> tuple[int, ...]:
    """`Tensor.dim_order`; `fits` tells whether the tensor lies in a format."""
    formats = isinstance(ambiguity_check, list) and all(
        isinstance(f, memory_format) for f in ambiguity_check
    )
    if not formats and not isinstance(ambiguity_check, bool):
        raise TypeError("The ambiguity_check argument must be a bool or a list of memory formats.")
    if formats:
        several = several_orders(sizes, strides) and sum(map(fits, ambiguity_check)) != 1
    else:
        several = ambiguity_check and several_orders(sizes, strides)
    if several:
        raise RuntimeError(
            "The tensor does not have unique dim order, or cannot map to exact one of the given "
            "memory formats."
        )
    order = list(range(len(sizes)))
    for i in range(1, len(order)):
        place = i
        for before in reversed(range(i)):
            a, b = strides[order[before]], strides[order[place]]
            if not a or not b:  # what is repeated may stand anywhere, so it stays
                if ambiguity_check:
                    raise RuntimeError("The tensor does not have unique dim order.")
                continue
            if a >= b:
                break
            order[before], order[place] = order[place], order[before]
            place = before
    return tuple(order)


def several_orders(sizes: Sizes, strides: Sizes) -> bool:
    """Whether a dimension may stand in several places: one of size 1, or neighbours of one stride."""
    return 1 in sizes or any(a == b for a, b in zip(strides, strides[1:]))
