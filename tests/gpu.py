"""Whether tests of CUDA run on a card; asked for without PyTorch, which the oracle needs."""

from __future__ import annotations

import os

GPU = bool(os.environ.get("TOYTORCH_TEST_GPU"))  # set by `python3 -m course test --gpu`
