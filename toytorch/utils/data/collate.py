"""From a list of examples to a batch."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, MutableMapping, MutableSequence, Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.dtype import float64
from toytorch.facts.hints import Shape
from toytorch.ops.creation.from_data import as_tensor, tensor
from toytorch.ops.shaping.rearrange import stack
from toytorch.utils.data import slots

Map = dict[Any, Callable[..., Any]]


def collate(batch: Sequence[Any], *, collate_fn_map: Map | None = None) -> Any:
    """A list of examples as one batch, by functions for the types of what they hold.

    `collate_fn_map` gives for a type, or a tuple of types, a function(batch, collate_fn_map=...).
    Mappings, named tuples and sequences keep their structure. Raises TypeError for a type that is
    not in the map, RuntimeError for sequences of different lengths.

    >>> collate([1, 2], collate_fn_map={int: lambda batch, collate_fn_map: sum(batch)})
    3
    """
    first = batch[0]
    kind = type(first)
    if collate_fn_map is not None:
        found = collate_fn_map.get(kind)
        if found is None:
            found = next((f for k, f in collate_fn_map.items() if isinstance(first, k)), None)
        if found is not None:
            return found(batch, collate_fn_map=collate_fn_map)
    if isinstance(first, Mapping):
        made = {k: collate([d[k] for d in batch], collate_fn_map=collate_fn_map) for k in first}
        return like(first, made)
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return kind(*(collate(s, collate_fn_map=collate_fn_map) for s in zip(*batch)))
    if isinstance(first, Sequence) and not isinstance(first, str | bytes):
        if any(len(e) != len(first) for e in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        columns = [collate(s, collate_fn_map=collate_fn_map) for s in zip(*batch)]
        return columns if isinstance(first, tuple) else like(first, columns)
    raise cannot_collate(kind)


def cannot_collate(kind: object) -> TypeError:
    """What to say of a batch of things that no rule joins."""
    return TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or lists; "
        f"found {kind}"
    )


def like(first: Any, made: Any) -> Any:
    """A dict or list as the type of an example, if that can be made of it."""
    if type(first) is type(made):
        return made
    try:
        clone: Any = (
            copy.copy(first) if isinstance(first, MutableMapping | MutableSequence) else None
        )
        if isinstance(first, MutableMapping):
            clone.update(made)
            return clone
        if isinstance(first, MutableSequence):
            for i, value in enumerate(made):
                clone[i] = value
            return clone
        return type(first)(made)
    except TypeError:
        return made  # the type cannot be copied, or takes no such argument


def collate_tensor_fn(batch: Sequence[Tensor], *, collate_fn_map: Map | None = None) -> Any:
    """Tensors as one, along a new first dimension."""
    return stacked(batch)


def collate_numpy_array_fn(batch: Sequence[Any], *, collate_fn_map: Map | None = None) -> Any:
    """NumPy's arrays as one tensor."""
    if batch[0].dtype.kind in "SUO":
        raise cannot_collate(batch[0].dtype)
    return stacked([as_tensor(a) for a in batch])


def collate_numpy_scalar_fn(batch: Sequence[Any], *, collate_fn_map: Map | None = None) -> Any:
    """NumPy's numbers as a tensor."""
    return as_tensor(np.asarray(batch))


def collate_float_fn(batch: Sequence[float], *, collate_fn_map: Map | None = None) -> Any:
    """Floats as a tensor of float64."""
    return tensor(list(batch), dtype=float64)


def collate_int_fn(batch: Shape, *, collate_fn_map: Map | None = None) -> Any:
    """Integers as a tensor."""
    return tensor(list(batch))


def collate_str_fn(batch: Sequence[str], *, collate_fn_map: Map | None = None) -> Any:
    """Texts stay a list."""
    return batch


default_collate_fn_map: Map = {
    Tensor: collate_tensor_fn, np.ndarray: collate_numpy_array_fn,
    (np.bool_, np.number, np.object_): collate_numpy_scalar_fn, float: collate_float_fn,
    int: collate_int_fn, str: collate_str_fn, bytes: collate_str_fn,
}  # fmt: skip


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks tensors, arrays and numbers; keeps the structure of tuples, lists and dicts.

    >>> default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]
    """
    return collate(batch, collate_fn_map=default_collate_fn_map)


def stacked(batch: Sequence[Tensor]) -> Any:
    """The tensors as one; a worker makes it in shared memory, where it need not be copied to."""
    first = batch[0]
    arrays = [t._array for t in batch]
    if (
        slots.outbox is not None
        and first._array.__class__ is np.ndarray
        and not first._requires_grad
        and all(
            t.dtype is first.dtype
            and t._array.shape == first._array.shape
            and not t._requires_grad
            and t._array.__class__ is np.ndarray
            for t in batch
        )
    ):
        buffer = slots.outbox.buffer((len(batch), *first._array.shape), first._array.dtype)
        if buffer is not None:
            return wrap(np.stack(arrays, out=buffer), first.dtype)
    return stack.function(list(batch), 0)


def default_convert(data: object) -> Any:
    """NumPy's arrays as tensors, inside of mappings and sequences too; everything else as it is.

    >>> default_convert([np.zeros(1), "a"])
    [tensor([0.], dtype=torch.float64), 'a']
    """
    if isinstance(data, np.ndarray | np.generic):
        return data if data.dtype.kind in "SUO" else as_tensor(data)
    if isinstance(data, Mapping):
        return like(data, {k: default_convert(v) for k, v in data.items()})
    if isinstance(data, tuple) and hasattr(data, "_fields"):
        return type(data)(*(default_convert(v) for v in data))
    if isinstance(data, tuple):
        return [default_convert(v) for v in data]
    if isinstance(data, Sequence) and not isinstance(data, str | bytes):
        return like(data, [default_convert(v) for v in data])
    return data
