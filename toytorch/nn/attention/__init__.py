"""The choice between ways of computing attention.

Of PyTorch's there are two here: `FLASH_ATTENTION` in blocks, and `MATH`, which all operands can take.
`attention.bias` has causal masks by name, `attention.flex_attention` attention with a function of one's own.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from toytorch.backends.cuda import switched

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(enum.IntEnum):
    """The ways that PyTorch has, by its numbers."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4

    __repr__ = enum.Enum.__repr__
    __str__ = enum.Enum.__str__


@contextmanager
def sdpa_kernel(backends: Any, set_priority: bool = False) -> Iterator[None]:
    """Allows some ways only, inside of the context; raises where a way is not an SDPBackend.

    >>> with sdpa_kernel(SDPBackend.MATH):
    ...     pass
    """
    if not isinstance(backends, (list, SDPBackend)):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances"
        )
    chosen = set([backends] if isinstance(backends, SDPBackend) else backends)
    with switched(
        SDPBackend.FLASH_ATTENTION in chosen,
        SDPBackend.MATH in chosen,
        SDPBackend.EFFICIENT_ATTENTION in chosen,
        SDPBackend.CUDNN_ATTENTION in chosen,
    ):
        yield
