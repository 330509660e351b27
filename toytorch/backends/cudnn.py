"""The switches of `torch.backends.cudnn`.

Convolutions do not run through cuDNN here, so the switches are kept for the programs that set them,
and change nothing: results are the same from run to run with any of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

enabled = True
benchmark = False  # whether to try several algorithms for each shape
benchmark_limit = 10
deterministic = False  # whether to use algorithms only that give the same bits in every run
allow_tf32 = True


def is_available() -> bool:
    """Whether cuDNN can be used: never."""
    return False


def version() -> int | None:
    """The version of cuDNN, None where there is none."""
    return None


@contextmanager
def flags(
    enabled: bool = False,
    benchmark: bool = False,
    benchmark_limit: int = 10,
    deterministic: bool = False,
    allow_tf32: bool = True,
) -> Iterator[None]:
    """Sets the switches for a while.

    >>> from toytorch.backends import cudnn
    >>> with cudnn.flags(enabled=True, benchmark=True):
    ...     cudnn.benchmark
    True
    """
    given = dict(locals())
    before = {name: globals()[name] for name in given}
    globals().update(given)
    try:
        yield
    finally:
        globals().update(before)
