"""One batch from a dataset: by numbers, or the next of a stream.

StopIteration means the end of a stream. Where a dataset that is asked by numbers raises it, it is
an error like any other, for whoever calls `next` to see; a `for` loop takes it for the end.
"""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.utils.data import slots
from toytorch.utils.data.collate import collate_tensor_fn, default_collate, default_collate_fn_map
from toytorch.utils.data.dataset import IterableDataset, Subset, TensorDataset


class Recipe(NamedTuple):
    """All that it takes to make batches, here or in a worker."""

    dataset: Any
    batching: bool
    collate: Callable[[Any], Any]
    batch_size: int | None
    drop_last: bool

    def start(self) -> Callable[[Any], Any]:
        """A function from an index (or list of them) to a batch; StopIteration ends a stream."""
        if isinstance(self.dataset, IterableDataset):
            return Stream(self).next
        return self._by_take if self.collate is default_collate else self._by_index

    def _by_take(self, index: Any) -> Any:
        """A batch of tensors cut along their first dimension, by one take for each of them."""
        made = self.batching and taken(self.dataset, index)
        return made or self._by_index(index)

    def _by_index(self, index: Any) -> Any:
        if not self.batching:
            return self.collate(self.dataset[index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate(self.dataset.__getitems__(index))
        return self.collate([self.dataset[i] for i in index])


def taken(dataset: Any, index: Any) -> list[Tensor] | None:
    """What collating the examples would make of them; None where it takes more than NumPy's `take`:
    a graph, somebody who watches, or an error that has to be worded."""
    while dataset.__class__ is Subset and _numbers(index):
        try:
            dataset, index = dataset.dataset, [dataset.indices[i] for i in index]
        except (IndexError, TypeError):
            return None
    mode = state.fast_path
    if (
        dataset.__class__ is not TensorDataset
        or not _numbers(index)
        or not (mode is None or mode == get_ident())
        or default_collate_fn_map.get(Tensor) is not collate_tensor_fn
    ):
        return None
    places, made = np.array(index), list[Tensor]()
    if places.dtype != np.int64:
        return None  # a number of more than 64 bits
    low, high = int(places.min()), int(places.max())
    for t in dataset.tensors:
        if t.__class__ is not Tensor:
            return None
        a = t._array
        if a.__class__ is not np.ndarray or (t._requires_grad and mode is None):
            return None
        if not a.ndim or low < -len(a) or high >= len(a):
            return None
        room = None
        if slots.outbox is not None:
            room = slots.outbox.buffer((len(index), *a.shape[1:]), a.dtype)
        made.append(wrap(a.take(places, 0, room, "wrap"), t.dtype))
    return made


def _numbers(index: object) -> bool:
    """Whether an index is a list of plain integers."""
    return index.__class__ is list and set(map(type, index)) == {int}


class Stream:
    """A dataset's iterator, cut into batches."""

    def __init__(self, recipe: Recipe) -> None:
        self.recipe, self.left, self.ended = recipe, iter(recipe.dataset), False

    def next(self, index: Any) -> Any:
        """The next batch, whatever the index; nothing is asked of an iterator that has ended."""
        recipe = self.recipe
        if not recipe.batching:
            return recipe.collate(next(self.left))
        batch: list[Any] = []
        while not self.ended and len(batch) < (recipe.batch_size or 0):
            try:
                batch.append(next(self.left))
            except StopIteration:
                self.ended = True
        if not batch or (recipe.drop_last and len(batch) < (recipe.batch_size or 0)):
            raise StopIteration
        return recipe.collate(batch)
