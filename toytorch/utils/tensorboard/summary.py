"""Messages of TensorBoard under the name of PyTorch's file, for loggers that write them themselves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from toytorch.utils.tensorboard.hparams import summaries


def hparams(
    hparam_dict: Any = None,
    metric_dict: Any = None,
    hparam_domain_discrete: Mapping[str, Sequence[object]] | None = None,
) -> tuple[Any, ...]:
    """What the experiment varies, what this run has, and that it has ended; see `add_hparams`."""
    return tuple(summaries(hparam_dict, metric_dict, hparam_domain_discrete))
