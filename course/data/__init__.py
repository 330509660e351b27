"""Data that comes with the course, so that no chapter needs a download."""

from __future__ import annotations

import functools
import gzip
from pathlib import Path
from typing import Any

import numpy as np

_HERE = Path(__file__).resolve().parent


def digits() -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """1,797 handwritten digits as images (1797, 8, 8) float32 in [0, 1] and labels (1797,) int64.

    Source and licence are in SOURCES.md beside this file.

    >>> images, labels = digits()
    >>> images.shape, labels[:5].tolist()
    ((1797, 8, 8), [0, 1, 2, 3, 4])
    """
    table = _table()
    images = (table[:, :64].reshape(-1, 8, 8) / 16).astype(np.float32)
    return images, table[:, 64].astype(np.int64)


@functools.cache
def _table() -> np.ndarray[Any, Any]:
    text = gzip.decompress((_HERE / "digits.csv.gz").read_bytes()).decode()
    numbers = np.array(text.replace("\n", ",").rstrip(",").split(","), dtype=np.uint8)
    return numbers.reshape(-1, 65)
