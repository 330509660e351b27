"""Data sets of images small enough to travel inside the package: nothing is downloaded."""

from __future__ import annotations

import functools
from importlib.resources import files
from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.ops.create import tensor

TRAIN = 1437  # of 1,797, the other 360 are for testing
_SEED = 0  # of the split, which is the same for everyone


def digits(train: bool = True) -> tuple[Tensor, Tensor]:
    """1,797 handwritten digits of 8 × 8 pixels: (images, labels), 1,437 to train and 360 to test.

    Images are float32 in 0..1 of shape (n, 1, 8, 8), labels are int64 of shape (n,). The split is
    a fixed shuffle, because the file has the writers in turn. Every call gives tensors of their
    own. `torchvision.datasets.MNIST` is the larger relative; source and licence (E. Alpaydin and
    C. Kaynak, UCI, CC BY 4.0) stand in `data/README.md`.

    >>> images, labels = digits()
    >>> images.shape, labels.shape
    (torch.Size([1437, 1, 8, 8]), torch.Size([1437]))
    >>> len(digits(train=False)[1])
    360
    """
    images, labels = _read()
    order = np.random.RandomState(_SEED).permutation(len(labels))  # its stream is frozen for good
    chosen = order[:TRAIN] if train else order[TRAIN:]
    scaled = images[chosen, None].astype(np.float32) / np.float32(16)
    return tensor(scaled), tensor(labels[chosen].astype(np.int64))


def everything() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """All digits in the file's order, as NumPy arrays: images (1797, 8, 8) in 0..1, and labels."""
    images, labels = _read()
    return images.astype(np.float32) / np.float32(16), labels.astype(np.int64)


@functools.cache
def _read() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    with (files("toytorch.vision") / "data" / "digits.npz").open("rb") as source:
        found = np.load(source)
        return found["images"], found["labels"]
