"""One batch from a dataset: by numbers, or the next of a stream."""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
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
            stream = iter(self.dataset)
            return lambda index: self._next(stream)
        return self._by_index

    def _next(self, stream: Any) -> Any:
        if not self.batching:
            return self.collate(next(stream))
        batch = list(islice(stream, self.batch_size))
        if not batch or (self.drop_last and len(batch) < (self.batch_size or 0)):
            raise StopIteration
        return self.collate(batch)

    def _by_index(self, index: Any) -> Any:
        if not self.batching:
            return self.collate(self.dataset[index])
        if getattr(self.dataset, "__getitems__", None):
            return self.collate(self.dataset.__getitems__(index))
        return self.collate([self.dataset[i] for i in index])
