"""Data that comes with the course: the framework's own, as NumPy arrays for the first chapters.

And two datasets to watch loaders with. They stand in a module, because worker processes on most
systems import what they work on, and nothing can be imported from a notebook.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import numpy as np

from toytorch.utils.data import Dataset, IterableDataset
from toytorch.vision import datasets


def digits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """1,797 handwritten digits as images (1797, 8, 8) float32 in [0, 1] and labels (1797,) int64.

    Source and licence stand in `toytorch/vision/data/README.md`.

    >>> images, labels = digits()
    >>> images.shape, labels[:5].tolist()
    ((1797, 8, 8), [0, 1, 2, 3, 4])
    """
    images, labels = datasets.everything()
    return images, labels


class Slow(Dataset):
    """Another dataset, each of whose examples takes `seconds` to come, as if from a slow disk.

    >>> Slow([10, 20], 0.0)[1]
    20
    """

    def __init__(self, dataset: Any, seconds: float) -> None:
        self.dataset, self.seconds = dataset, seconds

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, i: int) -> Any:
        time.sleep(self.seconds)
        return self.dataset[i]


class Stream(IterableDataset):
    """What `items` gives, in a stream; workers do not share it out among themselves.

    >>> list(Stream("ab"))
    ['a', 'b']
    """

    def __init__(self, items: Any) -> None:
        self.items = items

    def __iter__(self) -> Iterator[Any]:
        return iter(self.items)
