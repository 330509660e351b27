"""Files without their data."""

from __future__ import annotations

import threading


class Skipping(threading.local):
    """Whether this thread saves and loads without data."""

    on = False


skipping = Skipping()


class skip_data:
    """A context in which `save` leaves zeros in place of data, and `load` gives zeros.

    >>> import io
    >>> file = io.BytesIO()
    >>> with torch.serialization.skip_data():
    ...     torch.save(torch.ones(2), file)
    >>> torch.load(io.BytesIO(file.getvalue()))
    tensor([0., 0.])
    """

    def __init__(self, materialize_fake_tensors: bool = False) -> None:
        self.materialize_fake_tensors = materialize_fake_tensors

    def __enter__(self) -> None:
        self.before, skipping.on = skipping.on, True

    def __exit__(self, *error: object) -> None:
        skipping.on = self.before
