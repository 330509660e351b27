"""`x[...]`, reading and writing: ints, slices, None, Ellipsis, lists, masks and tensors in any mix.

An index is worked off from left to right, as PyTorch does: ints, slices and None become views; what
is left are index tensors, for which one gather of elements follows.
"""

from __future__ import annotations

import operator
from _thread import get_ident
from typing import Any, SupportsIndex

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.core import inplace as writing
from toytorch.core import write
from toytorch.core.arguments import all_int
from toytorch.core.scalars import as_element, as_filling
from toytorch.core.storage import Storage
from toytorch.core.tensor import Tensor, new, wrap
from toytorch.core.views import made_view, quick, unrecorded_view
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.device import strided
from toytorch.facts.hints import Sizes
from toytorch.ops.creation.from_data import tensor as make_tensor
from toytorch.ops.define import on_tensors
from toytorch.ops.indexing import by_index as gathering
from toytorch.ops.shaping.slices import select, slice_
from toytorch.ops.shaping.view import alias, unsqueeze

OLD_MASK = (
    "indexing with dtype torch.uint8 is now deprecated, please use a dtype torch.bool instead."
)
PARTS = (slice, Tensor, type(None), type(...))
INDEX_TYPES = (types.int64, types.int32, types.uint8, types.bool)


def as_tuple(index: Any) -> tuple[Any, ...]:
    """The parts of an index; a short sequence that holds more than numbers counts as a tuple, as it
    did in NumPy."""
    if isinstance(index, tuple):
        return index
    if index.__class__ is not Tensor and holds_parts(index):
        warned.at_call(
            "Using a non-tuple sequence for multidimensional indexing is deprecated and will be "
            "changed in pytorch 2.9; use x[tuple(seq)] instead of x[seq]. In pytorch 2.9 this will "
            "be interpreted as tensor index, x[torch.tensor(seq)], which will result either in an "
            "error or a different result"
        )
        return tuple(index)
    return (index,)


def holds_parts(index: Any) -> bool:
    """Whether a sequence is short, and one of its elements cannot be a number: a list, too."""
    if index.__class__ is np.ndarray or not hasattr(index, "__getitem__"):
        return False
    from toytorch.core.nested_data import is_sequence  # indices are seldom lists

    if not is_sequence(index):
        return False
    try:
        if len(index) >= 32:
            return False
        parts = index if index.__class__ is list else [index[i] for i in range(len(index))]
    except Exception:  # whatever a class of the user's raises: it is no tuple then
        return False
    odd = [part for part in parts if part.__class__ is not int]
    return any(isinstance(part, PARTS) or is_sequence(part) for part in odd)


def as_index(part: object) -> Any:
    """A part of an index in one of its basic forms: int, slice, None, Ellipsis, bool or tensor."""
    if part is None or part is Ellipsis or part.__class__ in (int, slice, bool):
        return part
    if isinstance(part, Tensor):
        if part.dtype not in INDEX_TYPES and (part.dtype.rank > 1 or part._array.ndim):
            raise IndexError("tensors used as indices must be long, int, byte or bool tensors")
        if part._batches is not None:  # inside vmap: every example has its own
            if part.dtype is types.bool:
                raise RuntimeError(
                    "vmap: a mask selects another number of elements in every "
                    "example; use torch.where instead"
                )
            return part
        if part._array.ndim == 0:
            if part.dtype in (types.bool, types.uint8):
                return part if state.fast_path is state.SLOW else bool(part._array)
            return part.__index__()
        return part
    if isinstance(part, np.bool_):
        return bool(part)
    from toytorch.core.nested_data import infer_dtype, is_sequence  # ints and slices need none

    if is_sequence(part):
        if part.__class__ is list and part and part[0].__class__ is int:
            made = make_tensor(part)  # numbers of one kind are soon read
            if made.dtype is types.int64:
                return made
        kind = infer_dtype(part)
        return as_index(
            make_tensor(part, dtype=kind if kind in (types.bool, types.uint8) else types.int64)
        )
    if hasattr(part, "__index__"):
        return int(part.__index__())
    raise IndexError(
        "only integers, slices (`:`), ellipsis (`...`), None and long or byte "
        f"Variables are valid indices (got {type(part).__name__})"
    )


def bound(value: SupportsIndex) -> int:
    """The start, end or step of a slice."""
    try:
        return operator.index(value)
    except TypeError:
        if isinstance(value, Tensor):
            raise
        raise TypeError(
            "slice indices must be integers or None or have an __index__ method"
        ) from None


def sliced(x: Tensor, dim: int, part: slice, among: bool = True) -> Tensor:
    """One dimension cut by a slice; the tensor itself where the slice, which is `among` others,
    takes all of it."""
    start, stop, step = part.start, part.stop, part.step
    if not (start.__class__ is int is stop.__class__):  # the common case needs no calls
        start = None if start is None else bound(start)
        stop = None if stop is None else bound(stop)
    step = 1 if step is None else bound(step)
    if not step:
        raise ValueError("slice step cannot be zero")
    if step < 0:
        raise ValueError("step must be greater than zero")
    if among and not start and step == 1 and (stop is None or stop >= x._array.shape[dim]):
        return x
    return slice_.function(x, dim, start, stop, step)  # an op's result


def apply_views(x: Tensor, parts: list[Any]) -> tuple[Tensor, list[Any]]:
    """The views that the basic parts make, and index tensors by dimension of the result."""
    used = sum(
        p.ndim if isinstance(p, Tensor) and p.dtype in (types.bool, types.uint8) else 1
        for p in parts
        if p is not None and p is not Ellipsis and p.__class__ is not bool
    )
    ndim = x._array.ndim
    if used > ndim:
        if ndim == 0 and len(parts) == 1 and isinstance(parts[0], int):
            raise IndexError(
                "invalid index of a 0-dim tensor. Use `tensor.item()` in Python or "
                "`tensor.item<T>()` in C++ to convert a 0-dim tensor to a number"
            )
        if ndim == 0 and len(parts) == 1 and isinstance(parts[0], slice):
            bool(x._grad_edge)  # a view that is not to be used any more is refused as such
            raise IndexError("slice() cannot be applied to a 0-dim tensor.")
        raise IndexError(f"too many indices for tensor of dimension {ndim}")
    dim = 0
    tensors: list[Tensor | None] = []
    for place, part in enumerate(parts):
        if part is Ellipsis:
            skip = ndim - used
            dim += skip
            tensors += [None] * skip
        elif part is None:
            x = unsqueeze.function(x, dim)
            tensors.append(None)
            dim += 1
        elif part.__class__ is bool:
            x = unsqueeze.function(x, dim)
            tensors.append(wrap(np.zeros(1 if part else 0, np.int64)))
            dim += 1
        elif isinstance(part, int):
            n = x._array.shape[dim]
            if not -n <= part < n:
                raise IndexError(
                    f"index {part} is out of bounds for dimension {place} with size {n}"
                )
            x = select.function(x, dim, part)
        elif part.__class__ is slice:
            x = sliced(x, dim, part)
            dim += 1
            tensors.append(None)
        elif part.dtype in (types.bool, types.uint8):
            for k in range(part.ndim):
                if part.shape[k] != x.shape[dim + k]:
                    raise IndexError(
                        f"The shape of the mask {list(part.shape)} at index {k} does not match the "
                        f"shape of the indexed tensor {list(x.shape)} at index {dim + k}"
                    )
            if state.fast_path is state.SLOW:  # whoever watches sees its origin
                if not part.ndim:
                    x, part = unsqueeze.function(x, dim), part.unsqueeze(0)
                tensors += gathering.nonzero.function(part).unbind(1)
            else:
                places = (
                    part._array.nonzero() if part.ndim else (np.zeros(int(bool(part)), np.int64),)
                )
                tensors += [wrap(p) for p in places]
            dim += part.ndim
        else:
            tensors.append(part if part.dtype is types.int64 else part.long())
            dim += 1
    return x, tensors


def by_mask(x: Tensor, mask: Tensor) -> Tensor | None:
    """x[mask] without the places of its elements, where nobody wants them for a gradient."""
    a, m, mode = x._array, mask._array, state.fast_path
    if (
        a.__class__ is m.__class__ is np.ndarray
        and a.shape == m.shape
        and ((mode is None and not x._requires_grad) or mode == get_ident())
    ):
        made = attempt(np, "picked", a, m)
        return wrap(a[m] if made is None else made, x._dtype)
    return None


def plain_part(part: Any) -> bool:
    """Whether NumPy makes the same view of a part of an index: an int, or a slice of ints that does
    not go backwards."""
    if part.__class__ is int:
        return True
    if part.__class__ is not slice:
        return False
    step = part.step
    return (
        (part.start is None or part.start.__class__ is int)
        and (part.stop is None or part.stop.__class__ is int)
        and (step is None or (step.__class__ is int and step > 0))
    )


def takes_all(part: Any, n: int) -> bool:
    """Whether a plain part of an index takes the whole of a dimension of size n, by what it says."""
    if part.__class__ is int:
        return False
    stop = part.stop
    return not part.start and part.step in (None, 1) and (stop is None or stop >= n)


def quick_part(x: Tensor, index: Any) -> Tensor | None:
    """x[index] for ints and slices of a plain tensor; None for what takes more, or is refused."""
    a = x._array
    try:
        if index.__class__ is int:
            if a.ndim:
                return made_view(select, (x, 0, index), a[index, ...])
        elif index.__class__ is slice:
            start, stop, step = index.start, index.stop, index.step
            if a.ndim and plain_part(index) and not (start is stop is None and step in (None, 1)):
                args = (x, 0, start, stop, 1 if step is None else step)
                part = a[index]
                return made_view(slice_, args, part) if part.size else None
        elif index.__class__ is tuple and index:
            if x._requires_grad and state.fast_path is None:
                return by_parts(x, index)
            whole = True
            for part in index:
                if part.__class__ is int:
                    whole = False
                elif not plain_part(part):
                    return None if part.__class__ in (Tensor, list) else by_parts(x, index)
                elif part != WHOLE:
                    whole = False
            if not whole:
                part = a[(*index, ...)]
                return unrecorded_view(x, part) if part.size else None
        elif index is None:
            shape = a.shape  # of 1 the stride is no affair of NumPy's
            part = unsqueeze.on_cpu(a, 0) if 1 in shape else a.reshape((1,) + shape)
            return made_view(unsqueeze, (x, 0), part)
    except IndexError:
        return None
    return None


def by_parts(x: Tensor, index: tuple[Any, ...]) -> Tensor | None:
    """x[index] for ints, slices, None and one Ellipsis, of which each is a view of its own, as a graph
    has them; None for what takes more, or is refused."""
    left = x._array.ndim
    for part in index:
        if part is not None and part is not Ellipsis:
            if not plain_part(part):
                return None
            left -= 1
    if left < 0 or (left == 0 and not x._array.ndim):
        return None
    made, dim = x, 0
    for part in index:
        a = made._array
        if part.__class__ is int:
            made = made_view(select, (made, dim, part), a[(*(WHOLE,) * dim, part, ...)])
        elif part is None:
            made = made_view(unsqueeze, (made, dim), unsqueeze.on_cpu(a, dim))
            dim += 1
        elif part is Ellipsis:
            dim, left = dim + left, 0
        else:
            start, stop, step = part.start, part.stop, 1 if part.step is None else part.step
            if start or step != 1 or not (stop is None or stop >= a.shape[dim]):
                cut = a[(*(WHOLE,) * dim, part)]
                if not cut.size:
                    return None
                made = made_view(slice_, (made, dim, start, stop, step), cut)
            dim += 1
    return None if made is x else made


WHOLE = slice(None)
LARGE = 1 << 15  # elements that are picked, from which it is worth asking for a kernel


def by_places(x: Tensor, index: Tensor) -> Tensor | None:
    """x[index] for integers, where nobody wants a gradient; None for what takes more, is refused,
    or is so large that a kernel may be faster."""
    a, i, mode = x._array, index._array, state.fast_path
    if (
        a.__class__ is i.__class__ is np.ndarray
        and a.ndim
        and i.ndim
        and i.size
        and a.size
        and a.flags.c_contiguous
        and a.size // len(a) * i.size < LARGE
        and ((mode is None and not x._requires_grad) or mode == get_ident())
    ):
        try:
            return wrap(a.take(i, 0), x._dtype)
        except IndexError:
            return None
    return None


def by_numbers(x: Tensor, index: Any) -> list[Any] | None:
    """The index tensors by dimension, None for a whole one, where an index is of tensors or lists of
    numbers and whole slices; None for what takes more, or is refused."""
    parts = index if index.__class__ is tuple else (index,)
    if state.fast_path is state.SLOW or len(parts) > x._array.ndim:
        return None
    tensors: list[Any] = []
    for part in parts:
        if part.__class__ is Tensor:
            if part._dtype is not types.int64 or not part._array.ndim:
                return None
            tensors.append(part)
        elif part.__class__ is slice and part.start is part.stop is part.step is None:
            tensors.append(None)
        elif part.__class__ is list and part and all_int(part):
            tensors.append(as_index(part))
        else:
            return None
    for t in tensors:
        if t is not None:
            return tensors
    return None


def getitem(x: Tensor, index: Any) -> Tensor:
    """x[index]: a view for ints, slices, None and Ellipsis; a copy where tensors index."""
    if quick(x):
        made = quick_part(x, index)
        if made is not None:
            return made
    if index.__class__ is Tensor and index._dtype is types.bool:
        made = by_mask(x, index)
        if made is not None:
            return made
    elif index.__class__ is Tensor and index._dtype is types.int64:
        made = by_places(x, index)
        if made is not None:
            return made
    if index.__class__ is int:
        n = x._array.shape[0] if x._array.ndim else -1
        if -n <= index < n:
            return select.function(x, 0, index)  # an op's result
    if index.__class__ is slice and x._array.ndim:
        picked = sliced(x, 0, index, among=False)
    else:
        numbered = by_numbers(x, index)
        if numbered is not None:
            return gathering.index.function(x, numbered)
        parts = [as_index(p) for p in as_tuple(index)]
        warn_of_bytes(parts)
        picked, tensors = apply_views(x, parts)
        if any(t is not None for t in tensors):
            return gathering.index.function(picked, tensors)
    if picked is x:  # x[...] is a view, too
        return alias.function(x)  # an op's result
    return picked


def writable(value: float) -> bool:
    """Whether each type of plain floats has the number: a small one, an infinity or NaN."""
    return -1e38 < value < 1e38 or value - value != 0


def quick_write(x: Tensor, index: Any, value: Any) -> bool:
    """x[index] = value where that is one assignment of NumPy's; False, and nothing is done, for
    what takes more, or is refused."""
    a, kind, c = x._array, x._dtype, value.__class__
    if not write.quick(x):
        return False
    if c is float or c is int:
        if not (writable(value) if kind.plain else kind is types.int64 and c is int):
            return False
    elif (
        c is not Tensor
        or value._dtype is not kind
        or value._array.__class__ is not np.ndarray
        or (state.fast_path is None and value._requires_grad)
        or (value._storage is not None and writing.one_memory(value._storage, x._storage))
    ):
        return False
    if index.__class__ is tuple:
        for part in index:
            if not plain_part(part):
                return False
    elif index.__class__ is Tensor:
        mask = index._array
        if c is Tensor or index._dtype is not types.bool or mask.shape != a.shape:
            return False
        index = mask
    elif not plain_part(index):
        return False
    try:
        if c is Tensor:
            given = value._array
            part = a[(*index, ...) if index.__class__ is tuple else (index, ...)]
            if given.shape != part.shape and given.ndim:
                return False
            part[...] = given
        else:
            a[index] = value
    except (IndexError, OverflowError):
        return False
    writing.bump(x)
    return True


def recorded_write(x: Tensor, index: Any, value: Any) -> bool:
    """x[index] = value for ints and slices of a plain tensor of floats, where a graph remembers it:
    through a view that nobody else sees. False, and nothing is done, for what takes more, or is
    refused."""
    a, kind, edge = x._array, x._dtype, x._grad_edge
    storage = x._storage or x._memory()
    if (
        state.fast_path is not None
        or a.__class__ is not np.ndarray
        or not kind.plain
        or storage.__class__ is not Storage
        or x._no_grad_view is not None
        or (edge is None and x._requires_grad)
    ):
        return False
    owner = x if x._base is None else x._base
    if owner._requires_grad and owner._grad_edge is None:
        return False
    parts = index if index.__class__ is tuple else (index,)
    for part in parts:
        if not plain_part(part):
            return False
    if all(takes_all(part, n) for part, n in zip(parts, a.shape)):
        return False  # which is no view
    try:
        part = a[(*parts, ...)]
    except IndexError:
        return False
    if value.__class__ is float or value.__class__ is int:
        if not writable(value):
            return False
        value = wrap(np.asarray(value, a.dtype), kind)
    elif (
        value.__class__ is not Tensor
        or value.dtype is not kind
        or writing.one_memory(value._storage, storage)
        or not fits(value._array.shape, part.shape)
    ):
        return False
    view: Tensor = new(Tensor)  # `view_of` would tell the owner of it
    view._array, view._dtype, view._storage, view._base = part, kind, storage, owner
    view._requires_grad, view._grad_edge = x._requires_grad, edge
    view.copy_(value)
    return True


def number_for(x: Tensor, value: Any) -> Tensor:
    """A number as a tensor of the type and the device of the one that it is written to."""
    if not isinstance(value, (bool, int, float, complex, np.integer)):
        name = type(value).__name__
        name = f"numpy.{name}" if isinstance(value, (np.ndarray, np.generic)) else name
        raise TypeError(f"can't assign a {name} to a torch.{x.dtype.legacy}Tensor")
    if isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise ValueError("Overflow when unpacking long long")
    element = as_filling(np, value, x._dtype.numpy)
    plain = state.fast_path is None and x._array.__class__ is np.ndarray
    return wrap(element, x._dtype) if plain else make_tensor(element, device=x.device)


def setitem(x: Tensor, index: Any, value: Any) -> None:
    """x[index] = value, with the value cast and broadcast."""
    if quick_write(x, index, value) or recorded_write(x, index, value):
        return
    if x.layout is not strided:
        raise TypeError("Cannot assign to a sparse tensor")
    numbered = by_numbers(x, index)
    if (
        numbered is not None
        and value.__class__ is Tensor
        and value.dtype is x.dtype
        and value._array.__class__ is np.ndarray is x._array.__class__
        and value._array.shape[:1] != (1,)
    ):
        gathering.index_put.written(x, numbered, value, False)
        return
    if not isinstance(value, Tensor):  # PyTorch looks at a number before it looks at the index
        value = number_for(x, value)
    parts = numbered or [as_index(p) for p in as_tuple(index)]
    if index is True:
        value = value.view(stripped(value.shape)) if value.ndim > x.ndim + 1 else value
        copy_to(unsqueeze.function(x, 0), value)
        return
    if index is False:
        return  # nothing is selected, and PyTorch does not even count a write
    if x.is_meta and value.numel() == 1 and one_mask(parts):
        x.zero_()  # where elements are is not known, and none of them is there
        return
    try:
        target, tensors = apply_views(x, parts) if numbered is None else (x, numbered)
    except IndexError as error:
        if "shape of the mask" in str(error):  # PyTorch looks at masks when it writes
            if x._requires_grad:
                writing.check(x, True)
            writing.refuse_any_shared(x, (value,))
        raise
    if (
        value._dtype is not x._dtype
        and value.numel() == 1
        and [t.dtype for t in parts if isinstance(t, Tensor)] in ([types.bool], [types.uint8])
    ):
        if value._array.__class__ is np.ndarray:
            # Which refuses what is too large.
            as_element(np, value._array.reshape(()), x._dtype.numpy)
        if value._requires_grad and state.local.grad:
            masked_put(target, tensors, parts, value)
            return
        value = value.to(x.dtype)  # as masked_fill would
    elif value.device != x.device and value.ndim == 0:
        value = value.to(x.device)
    if any(t is not None for t in tensors):
        target.index_put_(tensors, chosen_value(x, target, tensors, parts, value))
        return
    copy_to(target, value)


def chosen_value(
    x: Tensor, target: Any, tensors: list[Any], parts: list[Any], value: Tensor
) -> Tensor:
    """The value as `index_put_` takes it for elements that tensors choose; refuses masks of bytes
    where PyTorch calls masked_fill."""
    given = [t for t in parts if isinstance(t, Tensor)]
    kinds = {t._dtype for t in given}
    if value.numel() == 1 and kinds == {types.uint8} and len(given) == 1:
        gathering.need_mask("masked_fill_", given[0]._array)  # which takes no bytes
    warn_of_bytes(given)
    masks = bool(kinds) and kinds <= {types.bool, types.uint8}
    shared = value is x or writing.one_memory(value._storage, x._storage)
    if value.numel() == 1 and masks and shared:
        value = value.clone()  # as masked_fill would read it
    if value.ndim and value.shape[0] == 1:
        named = [t.ndim for t in tensors if t is not None]
        # One element beside a dimension of elements that a mask chose may be several another
        # time, when a compiled function is run.
        if value.ndim > 1 or not (target.ndim - len(named) + max(named)):
            return value.view(stripped(value.shape))
    return value


def warn_of_bytes(parts: list[Any]) -> None:
    """Warns of masks that are bytes, once for each."""
    for part in parts:
        if isinstance(part, Tensor) and part.dtype is types.uint8 and part.ndim:
            warned.at_call(OLD_MASK)


def one_mask(parts: list[Any]) -> bool:
    """Whether of the tensors among indices there is one, a mask."""
    given = [p for p in parts if isinstance(p, Tensor)]
    return len(given) == 1 and given[0].dtype is types.bool and given[0].ndim > 0


def copy_to(target: Any, value: Tensor) -> None:
    """Writes a value over a part of a tensor. One element without dimensions fills it, of which
    integers get a history, too; of another shape it loses the ones in front, and is expanded."""
    if not value.ndim and target.ndim and value.device == target.device:
        target.fill_(value)
        return
    if value.shape != target.shape:
        shape = stripped(value.shape)
        value = value if shape == value.shape else value.view(shape)
        if shape != target.shape and writing.one_memory(target._storage, value._storage):
            value = value.expand(target.shape)  # its steps say whether it lies over the target
    if not fits(value.shape, target.shape):
        value = value.expand(target.shape)  # refuses it, in words of its own
    target.copy_(value)


def fits(shape: Any, into: Any) -> bool:
    """Whether a shape can be broadcast into another one."""
    pairs = zip(reversed(shape), reversed(into), strict=False)
    return len(shape) <= len(into) and all(n in (1, m) for n, m in pairs)


def masked_put(target: Tensor, tensors: list[Any], parts: list[Any], value: Tensor) -> None:
    """target[…, mask, …] = value of another type, which is cast and leaves a history: `tensors` has
    the places of the mask, in whose stead the mask itself is given."""
    mask = next(p for p in parts if isinstance(p, Tensor))
    value = value.reshape(())
    if mask.ndim:
        first = next(i for i, t in enumerate(tensors) if t is not None)
        tensors = [*tensors[:first], mask, *tensors[first + mask.ndim :]]
    target.index_put_(tensors, value if mask.ndim else value.to(target.dtype))


def stripped(shape: Sizes) -> tuple[int, ...]:
    """A shape without the ones at its beginning."""
    first = next((i for i, n in enumerate(shape) if n != 1), len(shape))
    return tuple(shape[first:])


def delitem(x: Tensor, index: Any) -> None:
    """Refuses: a tensor's size is fixed."""
    raise TypeError("Tensor does not support deleting items")


on_tensors(__delitem__=delitem, __getitem__=getitem, __setitem__=setitem)
