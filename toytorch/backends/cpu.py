"""The question of `torch.backends.cpu`."""

from __future__ import annotations

from toytorch.loops import processor

__all__ = ["get_cpu_capability"]


def get_cpu_capability() -> str:
    """Which instructions kernels use: "AVX512", "AVX2", or "DEFAULT" for all else."""
    found = processor.this()
    if found.masks:
        return "AVX512"
    return "AVX2" if found.fma and found.pauses else "DEFAULT"
