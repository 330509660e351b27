"""Questions about PyTorch's compiler."""

from __future__ import annotations


def is_compile_supported(device_type: str) -> bool:
    """Whether `torch.compile` makes kernels for a kind of device."""
    return device_type in ("cpu", "cuda")
