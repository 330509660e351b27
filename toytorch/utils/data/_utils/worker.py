"""What worker processes know, under PyTorch's name."""

import numpy as np

from toytorch.utils.data.worker import WorkerInfo, get_worker_info

__all__ = ["WorkerInfo", "get_worker_info"]


def _generate_state(base_seed: int, worker_id: int) -> list[int]:
    """Four words that seed NumPy in a worker."""
    return list(map(int, np.random.SeedSequence((worker_id, base_seed)).generate_state(4)))
