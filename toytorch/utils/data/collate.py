"""From a list of examples to a batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.dtype import float64
from toytorch.ops.creation.from_data import as_tensor, tensor
from toytorch.ops.shaping.rearrange import stack
from toytorch.utils.data import slots


def default_collate(batch: Sequence[Any]) -> Any:
    """Stacks tensors, arrays and numbers; keeps the structure of tuples, lists and dicts.

    >>> default_collate([(1, 2.0), (3, 4.0)])
    [tensor([1, 3]), tensor([2., 4.], dtype=torch.float64)]
    """
    first = batch[0]
    if isinstance(first, Tensor):
        return stacked(batch)
    if isinstance(first, np.ndarray):
        if first.dtype.kind in "SUO":
            raise TypeError(
                "default_collate: batch must contain tensors, numpy arrays, numbers, "
                f"dicts or lists; found {first.dtype}"
            )
        return stacked([as_tensor(a) for a in batch])
    if isinstance(first, np.generic):
        return as_tensor(np.asarray(batch))
    if isinstance(first, float):
        return tensor(list(batch), dtype=float64)
    if isinstance(first, int):
        return tensor(list(batch))
    if isinstance(first, (str, bytes)):
        return batch
    if isinstance(first, Mapping):
        return {k: default_collate([d[k] for d in batch]) for k in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(s) for s in zip(*batch)))
    if isinstance(first, Sequence):
        if any(len(e) != len(first) for e in batch):
            raise RuntimeError("each element in list of batch should be of equal size")
        return [default_collate(s) for s in zip(*batch)]
    raise TypeError(
        "default_collate: batch must contain tensors, numpy arrays, numbers, dicts or "
        f"lists; found {type(first)}"
    )


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


def default_convert(data: Any) -> Any:
    """NumPy arrays as tensors; everything else as it is."""
    return as_tensor(data) if isinstance(data, (np.ndarray, np.generic)) else data
