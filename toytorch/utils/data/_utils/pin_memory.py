"""Pinned memory under PyTorch's name."""

from typing import Any

from toytorch.utils.data.dataloader import pinned


def pin_memory(data: Any, device: object = None) -> Any:
    """A batch in pinned memory, where there is a device to copy it to."""
    return pinned(data)
