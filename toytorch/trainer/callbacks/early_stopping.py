"""The end of training when a metric has stopped getting better."""

from __future__ import annotations

import math
from typing import Any

from toytorch.trainer.errors import MisconfigurationException
from toytorch.trainer.hooks import Callback

MODES = ("min", "max")


def check_mode(mode: str) -> None:
    """Refuses what is neither "min" nor "max"."""
    if mode not in MODES:
        raise MisconfigurationException(f"`mode` can be {', '.join(MODES)}, got {mode}")


class EarlyStopping(Callback):
    """Stops after `patience` epochs in a row in which `monitor` did not improve by `min_delta`.

    Only epochs that log the metric count. With `strict` a metric that is missing is an error.
    `check_finite` stops at NaN and infinity, `stopping_threshold` where the metric is good enough,
    `divergence_threshold` where it is hopeless.
    """

    def __init__(
        self,
        monitor: str,
        min_delta: float = 0.0,
        patience: int = 3,
        verbose: bool = False,
        mode: str = "min",
        strict: bool = True,
        check_finite: bool = True,
        stopping_threshold: float | None = None,
        divergence_threshold: float | None = None,
    ) -> None:
        check_mode(mode)
        self.monitor, self.patience, self.verbose, self.mode = monitor, patience, verbose, mode
        self.min_delta, self.strict, self.check_finite = min_delta, strict, check_finite
        self.stopping_threshold = stopping_threshold
        self.divergence_threshold = divergence_threshold
        self.wait_count = self.stopped_epoch = 0
        self.best_score = math.inf if mode == "min" else -math.inf

    @property
    def state_key(self) -> str:
        """Two of them may watch two metrics."""
        return f"{type(self).__qualname__}({self.monitor}, {self.mode})"

    def state_dict(self) -> dict[str, Any]:
        """How long it has waited, and for what."""
        return {
            "wait_count": self.wait_count,
            "stopped_epoch": self.stopped_epoch,
            "best_score": self.best_score,
            "patience": self.patience,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Goes on waiting."""
        self.wait_count, self.best_score = state_dict["wait_count"], state_dict["best_score"]
        self.stopped_epoch = state_dict["stopped_epoch"]

    def _better(self, value: float, than: float, by: float = 0.0) -> bool:
        return value < than - by if self.mode == "min" else value > than + by

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Looks at the metric of the epoch."""
        loop = trainer.fit_loop
        if self.monitor not in loop.metrics:
            if self.strict and (loop.validated or loop.val_loader is None):
                known = "`, `".join(sorted(trainer.callback_metrics))
                raise RuntimeError(
                    f"Early stopping conditioned on metric `{self.monitor}` which is not available."
                    " Pass in or modify your `EarlyStopping` callback to use any of the following: "
                    f"`{known}`"
                )
            return
        reason = self._reason(trainer.callback_metrics[self.monitor])
        if reason:
            trainer.should_stop = True
            self.stopped_epoch = trainer.current_epoch
            if self.verbose:
                print(reason)

    def _reason(self, value: float) -> str:
        """Why to stop at this value; empty where there is no reason."""
        name = self.monitor
        if self.check_finite and not math.isfinite(value):
            return f"Monitored metric {name} = {value} is not finite."
        if self.stopping_threshold is not None and self._better(value, self.stopping_threshold):
            return f"Stopping threshold reached: {name} = {value}."
        if self.divergence_threshold is not None and self._better(self.divergence_threshold, value):
            return f"Divergence threshold reached: {name} = {value}."
        if self._better(value, self.best_score, self.min_delta):
            self.best_score, self.wait_count = value, 0
            return ""
        self.wait_count += 1
        if self.wait_count < self.patience:
            return ""
        return (
            f"Monitored metric {name} did not improve in the last {self.wait_count} records. "
            f"Best score: {self.best_score:.3f}."
        )
