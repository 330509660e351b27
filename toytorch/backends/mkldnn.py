"""The switches and questions of `torch.backends.mkldnn`: toytorch does not use oneDNN."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from toytorch.backends.mkl import VERBOSE_OFF, VERBOSE_ON, verbose

__all__ = ["VERBOSE_OFF", "VERBOSE_ON", "VERBOSE_ON_CREATION", "flags", "is_available", "verbose"]

VERBOSE_ON_CREATION = 2
enabled, deterministic, allow_tf32 = True, False, True  # kept for the programs that set them


def is_available() -> bool:
    """Whether oneDNN can be used: never."""
    return False


@contextlib.contextmanager
def flags(enabled: bool = False, deterministic: bool = False, **more: object) -> Iterator[None]:
    """Changes nothing inside: no result here depends on oneDNN."""
    yield
