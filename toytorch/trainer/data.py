"""Loaders and batches: how many batches to take, and where to bring them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.device import device as device_class
from toytorch.trainer.errors import MisconfigurationException

Limit = int | float | None


def check_limit(name: str, limit: Limit) -> None:
    """Refuses what is neither a number of batches nor a share of them."""
    fine = (
        limit is None
        or (isinstance(limit, int) and limit >= 0)
        or (isinstance(limit, float) and 0 <= limit <= 1)
    )
    if not fine:
        raise MisconfigurationException(
            f"You have passed invalid value {limit} for {name}, it has "
            "to be in (0.0, 1.0) or an int."
        )


def number_of_batches(loader: Any, limit: Limit) -> int | None:
    """How many batches a pass takes; None where nobody knows before its end."""
    try:
        length: int | None = len(loader)
    except (TypeError, NotImplementedError):
        length = None
    if limit is None or (isinstance(limit, float) and limit == 1.0):
        return length
    if isinstance(limit, float):
        if length is None:
            raise MisconfigurationException(
                f"a limit of {limit} of the batches needs a loader "
                "with a length; give a number of batches instead"
            )
        return int(length * limit)
    return limit if length is None else min(limit, length)


def check_loader(name: str, loader: object) -> None:
    """Refuses what cannot be iterated over."""
    if not hasattr(loader, "__iter__"):
        raise TypeError(
            f"`{name}` should be an iterable of batches such as a DataLoader, but got "
            f"{type(loader).__name__}"
        )


def to_device(batch: Any, device: device_class) -> Any:
    """The batch with every tensor in it on the device; containers keep their type."""
    device = device_class(device)

    def move(value: Tensor | Sequence[Tensor]) -> Any:
        if isinstance(value, Tensor):
            return value if value.device == device else value.to(device)
        if isinstance(value, dict):
            return {k: move(v) for k, v in value.items()}
        if isinstance(value, tuple) and hasattr(value, "_fields"):
            return type(value)(*map(move, value))
        if isinstance(value, (list, tuple)):
            return type(value)(map(move, value))
        return value.to(device) if hasattr(value, "to") else value

    return move(batch)
