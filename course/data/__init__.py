"""Data that comes with the course: the framework's own, as NumPy arrays for the first chapters."""

from __future__ import annotations

from typing import Any

import numpy as np

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
