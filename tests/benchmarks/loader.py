"""Batches of 38 MB through two worker processes, against PyTorch's DataLoader.

    python -m tests.benchmarks.loader

The workers are kept (persistent_workers), a first epoch warms up, and epochs alternate between the
two; what is printed is milliseconds per batch and the median of the paired ratios.
"""

from __future__ import annotations

import os
import statistics
import sys
import time
from typing import Any

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

ITEMS, BATCHES, EPOCHS = 64, 20, 7
NUMBERS = 38_000_000 // 4 // ITEMS  # of one item


def loader(m: Any) -> Any:
    """A loader of rows that lie ready: what is timed is the way to the main process."""
    data = m.utils.data

    class Rows(data.Dataset):  # type: ignore[misc,name-defined]  # of either module
        def __init__(self) -> None:
            self.rows = m.ones(ITEMS, NUMBERS)

        def __len__(self) -> int:
            return ITEMS * BATCHES

        def __getitem__(self, i: int) -> Any:
            return self.rows[i % ITEMS]

    return data.DataLoader(Rows(), batch_size=ITEMS, num_workers=2, persistent_workers=True)


def epoch(batches: Any) -> float:
    """Seconds per batch."""
    start = time.perf_counter()
    for batch in batches:
        assert batch.shape == (ITEMS, NUMBERS)
    return (time.perf_counter() - start) / BATCHES


def main() -> int:
    import torch as theirs
    import torch.utils.data

    import toytorch as ours
    import toytorch.utils.data

    theirs.set_num_threads(1)
    sides = [loader(ours), loader(theirs)]
    pairs = [[epoch(side) for side in sides] for _ in range(EPOCHS)][1:]
    for a, b in pairs:
        print(f"toytorch {a * 1e3:6.1f} ms, PyTorch {b * 1e3:6.1f} ms: {a / b:.2f}")
    print(f"median ratio {statistics.median(a / b for a, b in pairs):.2f}, limit 0.3")
    return 0


if __name__ == "__main__":
    sys.exit(main())
