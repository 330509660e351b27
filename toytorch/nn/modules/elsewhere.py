"""Where to find modules that PyTorch keeps in another file than toytorch.

`from torch.nn.modules.activation import MultiheadAttention` looks into `activation`, which asks
here.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

PLACES = {
    "activation": {"GLU": "toytorch.nn", "MultiheadAttention": "toytorch.nn.modules.attention",
                   **dict.fromkeys(["LogSoftmax", "Softmax", "Softmax2d", "Softmin"],
                                   "toytorch.nn.modules.softmax")},
    "container": dict.fromkeys(["ParameterDict", "ParameterList"],
                               "toytorch.nn.modules.container_parameters"),
    "conv": dict.fromkeys([f"LazyConv{t}{n}d" for t in ("", "Transpose") for n in (1, 2, 3)],
                          "toytorch.nn.modules.lazy_conv"),
    "loss": dict.fromkeys(["CosineEmbeddingLoss", "HingeEmbeddingLoss", "MarginRankingLoss",
                           "MultiLabelMarginLoss", "MultiLabelSoftMarginLoss", "MultiMarginLoss",
                           "SoftMarginLoss", "TripletMarginLoss",
                           "TripletMarginWithDistanceLoss"], "toytorch.nn"),
    "rnn": dict.fromkeys(["GRUCell", "LSTMCell", "RNNCell", "RNNCellBase"],
                         "toytorch.nn.modules.rnn_cells"),
}


def finder(file: str) -> Callable[[str], Any]:
    """The `__getattr__` of one of these files."""
    def find(name: str) -> Any:
        if name not in PLACES[file]:
            raise AttributeError(f"module 'torch.nn.modules.{file}' has no attribute '{name}'")
        return getattr(importlib.import_module(PLACES[file][name]), name)
    return find
