"""Batches from a dataset, fetched ahead where there are workers."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

from toytorch.utils.data.collate import default_collate, default_convert
from toytorch.utils.data.dataset import IterableDataset
from toytorch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler


class DataLoader:
    """Iterates over a dataset in batches, like `torch.utils.data.DataLoader`.

    With `num_workers`, that many threads fetch batches ahead, in order; NumPy's work runs beside
    Python's, so transforms on arrays gain most.

    >>> import toytorch as torch
    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> [batch.tolist() for batch, in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(self, dataset: Any, batch_size: int | None = 1, shuffle: bool | None = None,
                 sampler: Any = None, batch_sampler: Any = None, num_workers: int = 0,
                 collate_fn: Callable[[Any], Any] | None = None, pin_memory: bool = False,
                 drop_last: bool = False, timeout: float = 0,
                 worker_init_fn: Callable[[int], None] | None = None,
                 multiprocessing_context: Any = None, generator: Any = None, *,
                 prefetch_factor: int | None = None, persistent_workers: bool = False,
                 pin_memory_device: str = "", in_order: bool = True) -> None:
        if num_workers < 0:
            raise ValueError("num_workers option should be non-negative; use num_workers=0 to "
                             "disable multiprocessing.")
        if timeout < 0:
            raise ValueError("timeout option should be non-negative")
        if num_workers == 0 and prefetch_factor is not None:
            raise ValueError("prefetch_factor option could only be specified in multiprocessing."
                             "let num_workers > 0 to enable multiprocessing, otherwise set "
                             "prefetch_factor to None.")
        if persistent_workers and num_workers == 0:
            raise ValueError("persistent_workers option needs num_workers > 0")
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        self._stream = isinstance(dataset, IterableDataset)
        if self._stream and (shuffle or sampler is not None or batch_sampler is not None):
            what = "shuffle" if shuffle else "sampler" if sampler is not None else "batch_sampler"
            raise ValueError("DataLoader with IterableDataset: expected unspecified "
                             f"{what} option")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError("batch_sampler option is mutually exclusive with batch_size, "
                                 "shuffle, sampler, and drop_last")
            batch_size = None
        elif batch_size is None and drop_last:
            raise ValueError("batch_size=None option disables auto-batching and is mutually "
                             "exclusive with drop_last")
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.worker_init_fn, self.generator = worker_init_fn, generator
        self.pin_memory, self.batch_size, self.drop_last = pin_memory, batch_size, drop_last
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        if sampler is None and not self._stream:
            sampler = RandomSampler(dataset, generator=generator) if shuffle else \
                SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None and not self._stream:
            batch_sampler = BatchSampler(sampler, batch_size, drop_last)
        self.sampler, self.batch_sampler = sampler, batch_sampler
        batching = batch_sampler is not None or (self._stream and batch_size is not None)
        self.collate_fn = collate_fn or (default_collate if batching else default_convert)

    def __iter__(self) -> Iterator[Any]:
        if self._stream:
            return self._batches_of_stream()
        return self._ahead() if self.num_workers else map(self._fetch, self._index_sampler())

    def _index_sampler(self) -> Iterator[Any]:
        return iter(self.batch_sampler if self.batch_sampler is not None else self.sampler)

    def _fetch(self, index: Any) -> Any:
        """One batch (or, without batching, one example)."""
        if self.batch_sampler is None:
            return self.collate_fn(self.dataset[index])
        if hasattr(self.dataset, "__getitems__"):
            return self.collate_fn(self.dataset.__getitems__(index))
        return self.collate_fn([self.dataset[i] for i in index])

    def _batches_of_stream(self) -> Iterator[Any]:
        stream = iter(self.dataset)
        if self.batch_size is None:
            yield from map(self.collate_fn, stream)
            return
        while True:
            batch = list(islice(stream, self.batch_size))
            if not batch or (self.drop_last and len(batch) < self.batch_size):
                return
            yield self.collate_fn(batch)

    def _ahead(self) -> Iterator[Any]:
        """Batches in order, a few of them under way in threads."""
        indices = self._index_sampler()
        started = iter(range(self.num_workers))
        pool = ThreadPoolExecutor(self.num_workers, "toytorch-loader", initializer=lambda: (
            self.worker_init_fn(next(started)) if self.worker_init_fn else None))
        under_way: deque[Future[Any]] = deque()
        try:
            for index in islice(indices, self.num_workers * (self.prefetch_factor or 2)):
                under_way.append(pool.submit(self._fetch, index))
            while under_way:
                try:
                    batch = under_way.popleft().result(self.timeout or None)
                except TimeoutError:
                    raise RuntimeError(f"DataLoader timed out after {self.timeout} seconds"
                                       ) from None
                for index in islice(indices, 1):
                    under_way.append(pool.submit(self._fetch, index))
                yield batch
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    def __len__(self) -> int:
        if self._stream:
            n = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)
