"""Sample inputs of every op: `ENTRIES[name].samples()`.

A new op needs an entry in one of these modules; `test_records.py` fails until it has one.
"""

from __future__ import annotations

from tests.ops.samples import (
    create,
    fft,
    index,
    linalg,
    masked,
    matmul,
    network_activation,
    network_image,
    network_loss,
    pointwise,
    random,
    reduce,
    shape,
    signal,
    sparse,
    special,
    view,
)  # fmt: skip
from tests.ops.samples.base import ENTRIES, Entry, Sample

__all__ = ["ENTRIES", "Entry", "Sample"]
assert all(
    (
        create,
        fft,
        index,
        linalg,
        masked,
        matmul,
        network_activation,
        network_image,
        network_loss,
        pointwise,
        random,
        reduce,
        shape,
        signal,
        sparse,
        special,
        view,
    )
)
