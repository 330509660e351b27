"""The switches of `torch.backends.cuda`, kept for the programs that set them."""

from __future__ import annotations

import importlib.util


class _Matmul:
    """How products of matrices may be rounded on a GPU."""

    allow_tf32 = False
    allow_fp16_reduced_precision_reduction = True
    allow_bf16_reduced_precision_reduction = True


matmul = _Matmul()


def is_built() -> bool:
    """Whether the library for GPUs is installed, with or without a GPU."""
    return importlib.util.find_spec("cupy") is not None
