"""Where PyTorch keeps the functions that it writes in Python; they are those of the package."""

from typing import Any

import toytorch
from toytorch.core.tensor import Tensor as Tensor

NAMES = frozenset(
    [
        "align_tensors", "atleast_1d", "atleast_2d", "atleast_3d", "block_diag", "broadcast_shapes",
        "broadcast_tensors", "cartesian_prod", "cdist", "chain_matmul", "einsum", "istft", "lu",
        "meshgrid", "norm", "pca_lowrank", "split", "stft", "svd_lowrank", "tensordot", "unique",
        "unique_consecutive", "unravel_index",
    ]
)  # fmt: skip


def __getattr__(name: str) -> Any:
    if name in NAMES:
        return getattr(toytorch, name)
    raise AttributeError(f"module 'torch.functional' has no attribute '{name}'")
