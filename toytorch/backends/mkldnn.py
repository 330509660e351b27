"""The questions of `torch.backends.mkldnn`: toytorch does not use oneDNN."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


def is_available() -> bool:
    """Whether oneDNN can be used: never."""
    return False


@contextlib.contextmanager
def flags(enabled: bool = False, deterministic: bool = False, **more: object) -> Iterator[None]:
    """Changes nothing inside: no result here depends on oneDNN."""
    yield
