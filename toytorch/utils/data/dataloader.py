"""Batches from a dataset, fetched ahead where there are workers."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import weakref
from collections.abc import Callable, Iterator, Sequence
from multiprocessing.context import BaseContext
from types import GenericAlias
from typing import Any, TypeVar

from toytorch.backends import base
from toytorch.core.random import Generator
from toytorch.facts import state, warned
from toytorch.facts.hints import Fn
from toytorch.utils.data.collate import default_collate, default_convert
from toytorch.utils.data.dataset import IterableDataset
from toytorch.utils.data.fetch import Recipe
from toytorch.utils.data.pool import Pool, batches
from toytorch.utils.data.sampler import BatchSampler, RandomSampler, SequentialSampler, any_seed
from toytorch.utils.data.worker import Failure

Pass = TypeVar("Pass", bound="_BaseDataLoaderIter")


def timed(kind: str, function: Fn, *arguments: Sequence[int]) -> Any:
    """function(*arguments), which a profiler shows under PyTorch's name for it."""
    if state.profiler is None:
        return function(*arguments)
    return state.profiler.around(
        f"enumerate(DataLoader)#{kind}DataLoaderIter.__next__", (), function, *arguments
    )


def check_workers(
    num_workers: int, timeout: float, prefetch_factor: int | None, persistent_workers: bool
) -> None:
    """Refuses options of workers that do not fit each other."""
    if num_workers < 0:
        raise ValueError(
            "num_workers option should be non-negative; use num_workers=0 to "
            "disable multiprocessing."
        )
    if timeout < 0:
        raise ValueError("timeout option should be non-negative")
    if num_workers == 0 and prefetch_factor is not None:
        raise ValueError(
            "prefetch_factor option could only be specified in multiprocessing.let num_workers "
            "> 0 to enable multiprocessing, otherwise set prefetch_factor to None."
        )
    if persistent_workers and num_workers == 0:
        raise ValueError("persistent_workers option needs num_workers > 0")


class DataLoader:
    """Iterates over a dataset in batches, like `torch.utils.data.DataLoader`.

    With `num_workers`, that many processes fetch batches ahead, in order, and hand them over in
    shared memory. They end with the iterator, or with the loader if `persistent_workers`.

    >>> data = torch.utils.data.TensorDataset(torch.arange(5))
    >>> [batch.tolist() for batch, in DataLoader(data, batch_size=2)]
    [[0, 1], [2, 3], [4]]
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int | None = 1,
        shuffle: bool | None = None,
        sampler: Any = None,
        batch_sampler: Any = None,
        num_workers: int = 0,
        collate_fn: Callable[[Any], Any] | None = None,
        pin_memory: bool = False,
        drop_last: bool = False,
        timeout: float = 0,
        worker_init_fn: Callable[[int], None] | None = None,
        multiprocessing_context: str | None = None,
        generator: Generator | None = None,
        *,
        prefetch_factor: int | None = None,
        persistent_workers: bool = False,
        pin_memory_device: str = "",
        in_order: bool = True,
    ) -> None:
        check_workers(num_workers, timeout, prefetch_factor, persistent_workers)
        self._stream = isinstance(dataset, IterableDataset)
        self._check_sampling(batch_size, shuffle, sampler, batch_sampler, drop_last)
        if batch_sampler is not None:
            batch_size = None
        self.dataset, self.num_workers, self.timeout = dataset, num_workers, timeout
        self.worker_init_fn, self.generator = worker_init_fn, generator
        self.pin_memory, self.batch_size, self.drop_last = pin_memory, batch_size, drop_last
        self.prefetch_factor = 2 if prefetch_factor is None and num_workers else prefetch_factor
        if sampler is None and not self._stream:
            if shuffle:
                sampler = RandomSampler(dataset, generator=generator)
            else:
                sampler = SequentialSampler(dataset)
        if batch_size is not None and batch_sampler is None:
            made = BatchSampler(sampler, batch_size, drop_last)  # which looks at both
            batch_sampler = None if self._stream else made
        self.sampler, self.batch_sampler = sampler, batch_sampler
        batching = batch_sampler is not None or (self._stream and batch_size is not None)
        self.collate_fn = collate_fn or (default_collate if batching else default_convert)
        self._batching = batching
        self.multiprocessing_context = multiprocessing_context
        self.persistent_workers, self.in_order = persistent_workers, in_order
        self.pin_memory_device = pin_memory_device
        self._kept: Pool | None = None
        self._end_of_kept: Any = None
        self._told_length: int | None = None  # what a stream said of its length, when asked
        warn_of_workers(num_workers)
        self._whole = True  # from now on, `__setattr__` refuses what is FIXED

    def _check_sampling(
        self, batch_size: Any, shuffle: Any, sampler: Any, batch_sampler: Any, drop_last: bool
    ) -> None:
        """Refuses what chooses the elements of a batch in two ways, or cannot."""
        if self._stream and (shuffle or sampler is not None or batch_sampler is not None):
            what = "shuffle" if shuffle else "sampler" if sampler is not None else "batch_sampler"
            given = {"shuffle": shuffle, "sampler": sampler, "batch_sampler": batch_sampler}[what]
            raise ValueError(
                f"DataLoader with IterableDataset: expected unspecified {what} option, but got "
                f"{what}={given}"
            )
        if sampler is not None and shuffle:
            raise ValueError("sampler option is mutually exclusive with shuffle")
        if batch_sampler is not None:
            if batch_size != 1 or shuffle or sampler is not None or drop_last:
                raise ValueError(
                    "batch_sampler option is mutually exclusive with batch_size, "
                    "shuffle, sampler, and drop_last"
                )
        elif batch_size is None and drop_last:
            raise ValueError(
                "batch_size=None option disables auto-batching and is mutually "
                "exclusive with drop_last"
            )

    FIXED = ("batch_size", "batch_sampler", "sampler", "drop_last", "dataset", "persistent_workers")

    def __setattr__(self, name: str, value: object) -> None:
        if name in self.FIXED and "_whole" in self.__dict__:
            raise ValueError(
                f"{name} attribute should not be set after {type(self).__name__} is initialized"
            )
        if name == "multiprocessing_context" and value is not None:
            check_context(value, self.num_workers)
        super().__setattr__(name, value)

    def __class_getitem__(cls, item: Any) -> Any:
        return GenericAlias(cls, item)  # `DataLoader[int]`, in annotations

    @property
    def _auto_collation(self) -> bool:
        """Whether examples are gathered into batches here."""
        return self.batch_sampler is not None

    def __iter__(self) -> Iterator[Any]:
        if self.num_workers:
            if self._kept is None:
                warn_of_workers(self.num_workers)
            return _MultiProcessingDataLoaderIter(self)
        any_seed(self.generator)  # as with workers, so that shuffling does not depend on them
        return _SingleProcessDataLoaderIter(self)

    def check_worker_number_rationality(self) -> None:
        """Warns of more workers than processors."""
        warn_of_workers(self.num_workers)

    def _indices(self) -> Iterator[Any]:
        if self._stream:
            return itertools.repeat(None)
        return iter(self.batch_sampler if self.batch_sampler is not None else self.sampler)

    def _recipe(self) -> Recipe:
        return Recipe(
            self.dataset, self._batching, self.collate_fn, self.batch_size, self.drop_last
        )

    def _workers(self) -> Pool:
        """Running workers: those of the epoch before, if they persist."""
        if self._kept is not None:
            return self._kept
        pool = Pool(
            self._recipe(),
            self.num_workers,
            self.multiprocessing_context,
            any_seed(self.generator),
            self.worker_init_fn,
        )
        if self.persistent_workers:
            self._kept = pool
            self._end_of_kept = weakref.finalize(self, pool.close)
        return pool

    def deliver(self, pool: Pool, indices: Iterator[Any]) -> Iterator[Any]:
        """The batches of one epoch by workers: who is asked for what, and in which order it comes.

        A subclass may go about it in another way: `pool.ask(worker, order, index)` sends out a
        job, `pool.hear()` waits for one and gives (worker, order, batch), `len(pool)` is how many
        workers there are.
        """
        return batches(
            pool, indices, self.prefetch_factor or 2, self.timeout, self._stream, self.in_order
        )

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_kept": None, "_end_of_kept": None}

    def __len__(self) -> int:
        if self._stream:
            n = self._told_length = len(self.dataset)
            if self.batch_size is None:
                return n
            return n // self.batch_size if self.drop_last else -(-n // self.batch_size)
        return len(self.batch_sampler if self.batch_sampler is not None else self.sampler)


def warn_of_workers(count: int) -> None:
    """Says that more workers than processors are slow."""
    here = getattr(os, "sched_getaffinity", None)  # which not every system has
    most = len(here(0)) if here is not None else os.cpu_count() or count
    if count > most:
        warned.at_call(
            f"This DataLoader will create {count} worker processes in total. Our suggested max "
            f"number of worker in current system is {most}, which is smaller than what this "
            "DataLoader is going to create. Please be aware that excessive worker creation might "
            "get DataLoader running slow or even freeze, lower the worker number to avoid potential "
            "slowness/freeze if necessary."
        )


def _begun(pool: Pool, delivered: Iterator[Any]) -> Iterator[Any]:
    """What is delivered, in an epoch of its own: answers to earlier questions are passed over."""
    pool.epoch += 1
    yield from delivered


def pinned(batch: object) -> Any:
    """A batch in pinned memory, where there is a device to copy it to."""
    if not base.of_kind("cuda").is_available():
        return batch
    if hasattr(batch, "pin_memory"):
        return batch.pin_memory()
    if isinstance(batch, dict):
        return type(batch)((key, pinned(value)) for key, value in batch.items())
    if isinstance(batch, tuple) and hasattr(batch, "_fields"):
        return type(batch)(*map(pinned, batch))
    return type(batch)(map(pinned, batch)) if isinstance(batch, (list, tuple)) else batch


class _BaseDataLoaderIter:
    """One pass over a loader's data."""

    _loader: DataLoader
    _given = 0

    def _begin(self, loader: DataLoader) -> None:
        """Keeps the loader, and warns where its batches are to be pinned and nothing wants them."""
        self._loader = loader
        if not loader.pin_memory:
            return
        if loader.pin_memory_device:
            warned.at_call(
                "pin_memory_device is deprecated, the current accelerator will be used as the device,"
                f"ignore pin_memory_device='{loader.pin_memory_device}'."
            )
        if not base.of_kind("cuda").is_available():
            warned.at_call(
                "'pin_memory' argument is set as true but no accelerator is found, "
                "then device pinned memory won't be used."
            )

    def __iter__(self: Pass) -> Pass:
        return self

    def _count(self) -> None:
        """Counts a batch, and says where a stream gives more than it said it would."""
        self._given += 1
        told = self._loader._told_length
        if told is not None and self._given > told:
            several = (
                "For multiprocessing data-loading, this could be caused by not properly configuring "
                "the IterableDataset replica at each worker. Please see "
                "https://pytorch.org/docs/stable/data.html#torch.utils.data.IterableDataset for "
                "examples."
            )
            warned.at_call(
                f"Length of IterableDataset {self._loader.dataset} was reported to be {told}"
                f"(when accessing len(dataloader)), but {self._given} samples have been fetched. "
                f"{several if self._loader.num_workers else ''}"
            )

    def __len__(self) -> int:
        return len(self._loader)


class _SingleProcessDataLoaderIter(_BaseDataLoaderIter):
    """One pass over the data in this process.

    No generator: in one, a StopIteration of the dataset would become a RuntimeError.
    """

    def __init__(self, loader: DataLoader) -> None:
        self._begin(loader)
        self._indices = loader._indices()
        self._fetch = loader._recipe().start()

    def __next__(self) -> Any:
        batch = timed("_SingleProcess", self._fetch, next(self._indices))
        self._count()
        return pinned(batch) if self._loader.pin_memory else batch


class _MultiProcessingDataLoaderIter(_BaseDataLoaderIter):
    """One pass over the data by workers; whatever ends it, they end with it (unless they stay)."""

    def __init__(self, loader: DataLoader) -> None:
        self._begin(loader)
        pool = loader._workers()
        stays = loader.persistent_workers
        self._end = weakref.finalize(self, (lambda: None) if stays else pool.close)
        self._pool = pool
        self._batches = _begun(pool, loader.deliver(pool, loader._indices()))

    def __next__(self) -> Any:
        batch = timed("_MultiProcessing", self._next)
        self._count()
        return batch

    def _next(self) -> Any:
        try:
            batch = next(self._batches)
        except StopIteration:
            self._end()
            raise
        except BaseException as error:
            self._end()
            stays = self._loader._kept is not None
            if isinstance(error, RuntimeError | KeyboardInterrupt) and stays:
                self._loader._end_of_kept()  # they may be stuck or dead; the next epoch has new
                self._loader._kept = None
            raise
        if isinstance(batch, Failure):
            batch.reraise()
        return pinned(batch) if self._loader.pin_memory else batch


def check_context(context: object, num_workers: int) -> None:
    """Refuses what is no way to start processes, and any way where none are started."""
    if num_workers <= 0:
        raise ValueError(
            "multiprocessing_context can only be used with multi-process loading (num_workers > 0), "
            f"but got num_workers={num_workers}"
        )
    if isinstance(context, str):
        methods = multiprocessing.get_all_start_methods()
        if context not in methods:
            raise ValueError(
                "multiprocessing_context option should specify a valid start method in "
                f"{methods!r}, but got multiprocessing_context={context!r}"
            )
    elif not isinstance(context, BaseContext):
        raise TypeError(
            "multiprocessing_context option should be a valid context object or a string specifying "
            f"the start method, but got multiprocessing_context={context}"
        )
