"""Sources of examples."""

from __future__ import annotations

import bisect
import itertools
import math
import warnings
from collections.abc import Iterable, Iterator, Sequence, Sized
from typing import Any

from toytorch.core.random import Generator
from toytorch.core.tensor import Tensor
from toytorch.ops.creation.random import randperm

__all__ = [
    "ChainDataset", "ConcatDataset", "Dataset", "IterableDataset", "StackDataset", "Subset",
    "TensorDataset", "random_split",
]  # fmt: skip


class Dataset:
    """Examples by number: a subclass defines `__getitem__` and usually `__len__`."""

    def __getitem__(self, index: Any) -> Any:
        raise NotImplementedError("Subclasses of Dataset should implement __getitem__.")

    def __add__(self, other: Dataset) -> ConcatDataset:
        return ConcatDataset([self, other])

    def __class_getitem__(cls, item: Any) -> Any:
        return cls


class IterableDataset(Dataset):
    """Examples in a stream: a subclass defines `__iter__`."""

    def __iter__(self) -> Iterator[Any]:
        raise NotImplementedError("Subclasses of IterableDataset should implement __iter__.")

    def __add__(self, other: Any) -> Any:
        return ChainDataset([self, other])


class ChainDataset(IterableDataset):
    """Streams one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = datasets

    def __iter__(self) -> Iterator[Any]:
        for dataset in self.datasets:
            if not isinstance(dataset, IterableDataset):
                raise AssertionError("ChainDataset only supports IterableDataset")
            yield from dataset

    def __len__(self) -> int:
        return sum(len(d) for d in self.datasets)


class TensorDataset(Dataset):
    """Tensors cut along their first dimension.

    >>> data = TensorDataset(torch.arange(4), torch.zeros(4))
    >>> len(data), data[2]
    (4, (tensor(2), tensor(0.)))
    """

    def __init__(self, *tensors: Tensor) -> None:
        if any(t.size(0) != tensors[0].size(0) for t in tensors):
            raise AssertionError("Size mismatch between tensors")
        self.tensors = tensors

    def __getitem__(self, index: int | slice) -> tuple[Any, ...]:
        return tuple(t[index] for t in self.tensors)

    def __len__(self) -> int:
        return len(self.tensors[0])


class StackDataset(Dataset):
    """Datasets side by side: example i is the tuple (or dict) of their examples i.

    >>> StackDataset([1, 2], ["a", "b"])[1], StackDataset(x=[1, 2])[0]
    ((2, 'b'), {'x': 1})
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if args and kwargs:
            raise ValueError(
                "Supported either ``tuple``- (via ``args``) or``dict``- (via "
                "``kwargs``) like input/output, but both types are given."
            )
        if not args and not kwargs:
            raise ValueError("At least one dataset should be passed")
        self.datasets: Any = kwargs or args
        parts = list(kwargs.values() or args)
        if any(len(d) != len(parts[0]) for d in parts):
            raise ValueError("Size mismatch between datasets")
        self._length = len(parts[0])

    def __getitem__(self, index: Any) -> Any:
        if isinstance(self.datasets, dict):
            return {k: d[index] for k, d in self.datasets.items()}
        return tuple(d[index] for d in self.datasets)

    def __getitems__(self, indices: list[int]) -> list[Any]:
        """The examples of several indices; a part that can fetch several at once is asked for all."""
        named = isinstance(self.datasets, dict)
        columns: dict[Any, Any] = {}
        for key, part in self.datasets.items() if named else enumerate(self.datasets):
            several = getattr(part, "__getitems__", None)
            columns[key] = several(indices) if several else [part[i] for i in indices]
            if len(columns[key]) != len(indices):
                raise ValueError(
                    "Nested dataset's output size mismatch. Expected "
                    f"{len(indices)}, got {len(columns[key])}"
                )
        rows = [{k: column[n] for k, column in columns.items()} for n in range(len(indices))]
        return rows if named else [tuple(row.values()) for row in rows]

    def __len__(self) -> int:
        return self._length


class Subset(Dataset):
    """Chosen examples of a dataset."""

    def __init__(self, dataset: Any, indices: Sequence[int]) -> None:
        self.dataset, self.indices = dataset, indices

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, list):
            return self.dataset[[self.indices[i] for i in index]]
        return self.dataset[self.indices[index]]

    def __len__(self) -> int:
        return len(self.indices)


class ConcatDataset(Dataset):
    """Datasets one after the other."""

    def __init__(self, datasets: Any) -> None:
        self.datasets = list(datasets)
        if not self.datasets:
            raise AssertionError("datasets should not be an empty iterable")
        if any(isinstance(d, IterableDataset) for d in self.datasets):
            raise AssertionError("ConcatDataset does not support IterableDataset")
        self.cumulative_sizes = self.cumsum(self.datasets)

    @staticmethod
    def cumsum(sequence: Iterable[Sized]) -> list[int]:
        """Where each dataset ends."""
        return list(itertools.accumulate(len(d) for d in sequence))

    @property
    def cummulative_sizes(self) -> list[int]:
        """`cumulative_sizes` by its older name."""
        warnings.warn(
            "`cummulative_sizes` attribute is renamed to `cumulative_sizes`",
            DeprecationWarning,
            stacklevel=2,
        )
        return self.cumulative_sizes

    def __len__(self) -> int:
        return self.cumulative_sizes[-1]

    def __getitem__(self, index: int) -> Any:
        if index < 0:
            if -index > len(self):
                raise ValueError("absolute value of index should not exceed dataset length")
            index += len(self)
        which = bisect.bisect_right(self.cumulative_sizes, index)
        before = self.cumulative_sizes[which - 1] if which else 0
        return self.datasets[which][index - before]


def random_split(
    dataset: Any, lengths: Sequence[Any], generator: Generator | None = None
) -> list[Subset]:
    """A dataset cut at random into parts of given sizes (or fractions that sum to 1)."""
    n = len(dataset)
    if math.isclose(sum(lengths), 1) and sum(lengths) <= 1:
        for i, f in enumerate(lengths):
            if not 0 <= f <= 1:
                raise ValueError(f"Fraction at index {i} is not between 0 and 1")
        sizes = [math.floor(n * f) for f in lengths]
        for i in range(n - sum(sizes)):
            sizes[i % len(sizes)] += 1
        lengths = sizes
    if sum(lengths) != n:
        raise ValueError("Sum of input lengths does not equal the length of the input dataset!")
    order = randperm(n, generator=generator).tolist()
    ends = list(itertools.accumulate(lengths))
    return [Subset(dataset, order[end - size : end]) for size, end in zip(lengths, ends)]
