"""What `configure_optimizers` may return, brought into one form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from toytorch.facts import warned
from toytorch.optim import Optimizer
from toytorch.optim.lr_scheduler import ReduceLROnPlateau
from toytorch.trainer.errors import MisconfigurationException

KEYS = {"scheduler", "interval", "frequency", "monitor", "strict", "name"}


@dataclass
class SchedulerConfig:
    """A scheduler and when it takes a step."""

    scheduler: Any
    interval: str = "epoch"
    frequency: int = 1
    monitor: str | None = None
    strict: bool = True
    name: str | None = None

    def step(self, metrics: dict[str, float], may_lack: bool = False) -> None:
        """One step; a ReduceLROnPlateau gets its metric."""
        if not isinstance(self.scheduler, ReduceLROnPlateau):
            self.scheduler.step()
        elif self.monitor in metrics:
            self.scheduler.step(metrics[self.monitor])
        elif self.strict and not may_lack:
            raise MisconfigurationException(
                f"ReduceLROnPlateau conditioned on metric {self.monitor} which is not available. "
                f"Available metrics are: {sorted(metrics)}. Condition can be set using `monitor` "
                "key in lr scheduler dict"
            )


def configured(returned: object) -> tuple[list[Any], list[SchedulerConfig]]:
    """(optimizers, schedulers) of what a model returned."""
    if returned is None:
        warned.at_call(
            "`configure_optimizers` returned `None`, this fit will run with no optimizer"
        )
        return [], []
    if (
        isinstance(returned, (list, tuple))
        and len(returned) == 2
        and all(isinstance(part, (list, tuple)) for part in returned)
    ):
        optimizers, schedulers = list(returned[0]), list(returned[1])
    else:
        optimizers, schedulers = [], []
        for part in returned if isinstance(returned, (list, tuple)) else [returned]:
            if isinstance(part, dict):
                if "optimizer" not in part:
                    raise MisconfigurationException(
                        "the dict that `configure_optimizers` returned needs the key 'optimizer'"
                    )
                optimizers.append(part["optimizer"])
                if part.get("lr_scheduler") is not None:
                    schedulers.append(part["lr_scheduler"])
            else:
                optimizers.append(part)
    for optimizer in optimizers:
        if not isinstance(optimizer, Optimizer):
            raise MisconfigurationException(
                "Unknown configuration for model optimizers. Output from `model.configure_"
                f"optimizers()` should be an optimizer, a dict or lists of them, but got a "
                f"{type(optimizer).__name__}"
            )
    return optimizers, [_scheduler(entry) for entry in schedulers]


def _scheduler(entry: object) -> SchedulerConfig:
    if not isinstance(entry, dict):
        entry = {"scheduler": entry}
    if "scheduler" not in entry:
        raise MisconfigurationException(
            'The lr scheduler dict must have the key "scheduler" with '
            "its item being an lr scheduler"
        )
    unknown = set(entry) - KEYS
    if unknown:
        raise MisconfigurationException(
            f"the lr scheduler dict has unknown keys {sorted(unknown)}; known are {sorted(KEYS)}"
        )
    config = SchedulerConfig(**entry)
    if config.interval not in ("epoch", "step"):
        raise MisconfigurationException(
            'The "interval" key in lr scheduler dict must be "step" or '
            f'"epoch" but is "{config.interval}"'
        )
    if config.frequency < 1:
        raise MisconfigurationException(
            f'The "frequency" key in lr scheduler dict must be at least 1 but is {config.frequency}'
        )
    if isinstance(config.scheduler, ReduceLROnPlateau) and config.monitor is None:
        raise MisconfigurationException(
            "The lr scheduler dict must include a monitor when a "
            "`ReduceLROnPlateau` scheduler is used."
        )
    return config
