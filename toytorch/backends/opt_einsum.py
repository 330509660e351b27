"""The switches of `torch.backends.opt_einsum`: `einsum` multiplies its operands from left to right."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

enabled, strategy = False, None


def is_available() -> bool:
    """Whether the package opt_einsum chooses the order of products: never."""
    return False


def get_opt_einsum() -> None:
    """The package, None where it is not used."""


def set_flags(_enabled: bool | None = None, _strategy: str | None = None) -> tuple[bool, None]:
    """Refuses to turn on what is not there, as PyTorch without the package; returns the switches.

    >>> set_flags(False)
    (False, None)
    """
    if _enabled or _strategy is not None:
        name, value = ("enabled", _enabled) if _enabled else ("strategy", _strategy)
        raise ValueError(
            f"opt_einsum is not available, so setting `{name}` to {value} has no effect: torch.einsum "
            "contracts from left to right."
        )
    return enabled, strategy


@contextlib.contextmanager
def flags(enabled: bool | None = None, strategy: str | None = None) -> Iterator[None]:
    """Sets the switches for a while."""
    set_flags(enabled, strategy)
    yield
