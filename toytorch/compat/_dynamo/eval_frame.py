"""Names of `torch._dynamo.eval_frame` that libraries import."""

from __future__ import annotations

from toytorch.jit.compile import OptimizedModule

__all__ = ["OptimizedModule", "is_dynamo_supported"]


def is_dynamo_supported() -> bool:
    """Whether functions can be compiled here."""
    return True
