"""What PyTorch's compiler may log: this one logs nothing, and has nothing to choose."""

from __future__ import annotations

import logging


def set_logs(*, all: int | None = None, **artifacts: object) -> None:
    """Takes a choice of logs; `all` is the level of PyTorch's own logger.

    >>> set_logs(dynamo=20, graph_breaks=True)
    """
    if all is not None:
        logging.getLogger("torch").setLevel(all)
