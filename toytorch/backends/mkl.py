"""The questions of `torch.backends.mkl`: toytorch does not use Intel's MKL."""

from __future__ import annotations

import contextlib

VERBOSE_OFF, VERBOSE_ON = 0, 1


def is_available() -> bool:
    """Whether Intel's MKL can be used: never."""
    return False


class verbose(contextlib.nullcontext[None]):
    """A context that prints what a library runs: here nothing, since none is used."""

    def __init__(self, enable: int) -> None:
        super().__init__()
        self.enable = enable
