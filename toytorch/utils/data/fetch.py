"""One batch from a dataset: by numbers, or the next of a stream.

StopIteration means the end of a stream. Where a dataset that is asked by numbers raises it, it is
an error like any other, for whoever calls `next` to see; a `for` loop takes it for the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from toytorch.utils.data.dataset import IterableDataset


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
        return self._by_index

    def _by_index(self, index: Any) -> Any:
        if not self.batching:
            return self.collate(self.dataset[index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate(self.dataset.__getitems__(index))
        return self.collate([self.dataset[i] for i in index])


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
