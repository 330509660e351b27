"""A record of the learning rates."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toytorch.trainer.errors import MisconfigurationException
from toytorch.trainer.hooks import Callback

if TYPE_CHECKING:
    from toytorch.core.tensor import Tensor
    from toytorch.trainer.module import TrainerModule
    from toytorch.trainer.trainer import Trainer


class LearningRateMonitor(Callback):
    """Logs the rate of every parameter group, at each "step" or "epoch" (None: both).

    The names are `lr-Adam`, with several groups `lr-Adam/pg1`, with several optimizers of a kind
    `lr-Adam-1`. `log_momentum` adds momenta, or the first beta.
    """

    def __init__(self, logging_interval: str | None = None, log_momentum: bool = False) -> None:
        if logging_interval not in (None, "step", "epoch"):
            raise MisconfigurationException(
                "logging_interval should be `step` or `epoch` or `None`."
            )
        self.logging_interval, self.log_momentum = logging_interval, log_momentum

    def on_train_start(self, trainer: Trainer, module: TrainerModule) -> None:
        """Refuses to log to nowhere."""
        if not trainer.loggers:
            raise MisconfigurationException(
                "Cannot use `LearningRateMonitor` callback with `Trainer` that has no logger."
            )

    def on_train_batch_start(
        self, trainer: Any, module: TrainerModule, *args: int | Sequence[Tensor]
    ) -> None:
        """Logs the rates of a step."""
        if (
            self.logging_interval != "epoch"
            and trainer.global_step % (trainer.log_every_n_steps) == 0
        ):
            trainer.log_metrics(self.rates(trainer), trainer.global_step)

    def on_train_epoch_start(self, trainer: Trainer, module: TrainerModule) -> None:
        """Logs the rates of an epoch."""
        if self.logging_interval != "step":
            trainer.log_metrics(self.rates(trainer), trainer.global_step)

    def rates(self, trainer: Trainer) -> dict[str, float]:
        """All rates by name."""
        found: dict[str, float] = {}
        seen: dict[str, int] = {}
        for optimizer in trainer.optimizers:
            name = f"lr-{type(optimizer).__name__}"
            number = seen[name] = seen.get(name, -1) + 1
            name += f"-{number}" if number else ""
            for i, group in enumerate(optimizer.param_groups):
                full = name if len(optimizer.param_groups) == 1 else f"{name}/pg{i + 1}"
                found[full] = float(group["lr"])
                if self.log_momentum:
                    betas = group.get("betas")
                    momentum = betas[0] if betas else group.get("momentum", 0)
                    found[f"{full}-momentum"] = float(momentum)
        return found
