"""Files from which training can go on: the best, the last, every so often."""

from __future__ import annotations

import math
import os
import re
from typing import TYPE_CHECKING, Any

from toytorch.facts import warned
from toytorch.trainer import checkpoint as files
from toytorch.trainer.callbacks.early_stopping import check_mode
from toytorch.trainer.errors import MisconfigurationException
from toytorch.trainer.hooks import Callback

if TYPE_CHECKING:
    from toytorch.trainer.module import TrainerModule
    from toytorch.trainer.trainer import Trainer


class ModelCheckpoint(Callback):
    """Keeps the `save_top_k` checkpoints with the best `monitor`; -1 keeps all, 0 none.

    Written at the end of every `every_n_epochs`-th epoch, or after every `every_n_train_steps`-th
    step, to `dirpath` (default: checkpoints/ in the trainer's root), under `filename`, where
    {epoch}, {step} and names of metrics stand for values: "{epoch:02d}-{val_loss:.2f}" gives
    `epoch=02-val_loss=0.32.ckpt`. Without `monitor` the newest is kept. `save_last` writes
    last.ckpt as well. A file is complete at any moment, whatever kills the program.
    """

    last = True  # the other callbacks' states of this moment belong into the file

    def __init__(
        self,
        dirpath: str | os.PathLike[str] | None = None,
        filename: str | None = None,
        monitor: str | None = None,
        verbose: bool = False,
        save_last: bool | None = None,
        save_top_k: int = 1,
        save_weights_only: bool = False,
        mode: str = "min",
        auto_insert_metric_name: bool = True,
        every_n_train_steps: int | None = None,
        every_n_epochs: int | None = None,
    ) -> None:
        check_mode(mode)
        if save_top_k < -1:
            raise MisconfigurationException(
                f"Invalid value for save_top_k={save_top_k}. Must be >= -1"
            )
        if monitor is None and save_top_k not in (-1, 0, 1):
            raise MisconfigurationException(
                f"ModelCheckpoint(save_top_k={save_top_k}, monitor=None) is not a valid "
                "configuration. No quantity for top_k to track."
            )
        if every_n_train_steps is not None and every_n_epochs is not None:
            raise MisconfigurationException(
                "every_n_train_steps and every_n_epochs should be mutually exclusive."
            )
        for name, value in (
            ("every_n_train_steps", every_n_train_steps),
            ("every_n_epochs", every_n_epochs),
        ):
            if value is not None and value < 1:
                raise MisconfigurationException(f"Invalid value for {name}={value}. Must be >= 1")
        self.dirpath = None if dirpath is None else os.path.abspath(os.fspath(dirpath))
        self.filename, self.monitor, self.verbose, self.mode = filename, monitor, verbose, mode
        self.save_last, self.save_top_k = save_last, save_top_k
        self.save_weights_only = save_weights_only
        self.auto_insert_metric_name = auto_insert_metric_name
        self.every_n_train_steps = every_n_train_steps
        self.every_n_epochs = every_n_epochs or 1
        self.best_k_models: dict[str, float] = {}  # path: score
        self.best_model_path = self.last_model_path = ""
        self.best_model_score: float | None = None
        self._last_step = -1

    @property
    def state_key(self) -> str:
        """Two of them may keep different files."""
        return f"{type(self).__qualname__}({self.monitor}, {self.mode}, {self.filename})"

    def state_dict(self) -> dict[str, Any]:
        """What is kept, and how good it is."""
        return {
            "best_k_models": dict(self.best_k_models),
            "best_model_path": self.best_model_path,
            "best_model_score": self.best_model_score,
            "last_model_path": self.last_model_path,
            "dirpath": self.dirpath,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes the list back; files of another folder are left alone."""
        if state_dict["dirpath"] != self.dirpath and self.dirpath is not None:
            warned.at_call(
                f"The dirpath has changed from {state_dict['dirpath']!r} to "
                f"{self.dirpath!r}, therefore the kept checkpoints won't be reloaded."
            )
            return
        self.best_k_models = dict(state_dict["best_k_models"])
        self.best_model_path = state_dict["best_model_path"]
        self.best_model_score = state_dict["best_model_score"]
        self.last_model_path = state_dict["last_model_path"]

    def written(self, trainer: Trainer) -> list[str]:
        """The checkpoints in this callback's folder."""
        folder = self._folder(trainer)
        names = os.listdir(folder) if os.path.isdir(folder) else []
        return [os.path.join(folder, name) for name in names if name.endswith(".ckpt")]

    # -- moments --------------------------------------------------------------------------------

    def on_train_batch_end(self, trainer: Trainer, module: TrainerModule, *args: object) -> None:
        """Saves after a number of steps."""
        every, step = self.every_n_train_steps, trainer.global_step
        if every is not None and step and step % every == 0 and step != self._last_step:
            self.save(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        """Saves after an epoch; those without the metric are passed over."""
        if self.every_n_train_steps is not None:
            return
        if (trainer.current_epoch + 1) % self.every_n_epochs:
            return
        loop = trainer.fit_loop
        waits = loop.val_loader is not None and not loop.validated
        if self.monitor is None or self.monitor in loop.metrics or not waits:
            self.save(trainer)

    # -- files ----------------------------------------------------------------------------------

    def save(self, trainer: Trainer) -> None:
        """Writes what should be kept of the present state, and removes what it displaces."""
        self._last_step = trainer.global_step
        score = self._score(trainer)
        if self.save_top_k != 0 and self._is_good(score):
            self._keep(trainer, score)
        if self.save_last:
            self.last_model_path = os.path.join(self._folder(trainer), "last.ckpt")
            self._write(trainer, self.last_model_path)

    def _score(self, trainer: Trainer) -> float:
        """The metric; without one newer is better."""
        if self.monitor is None:
            return 0.0
        if self.monitor not in trainer.callback_metrics:
            raise MisconfigurationException(
                f"`ModelCheckpoint(monitor={self.monitor!r})` could not find the monitored key in "
                f"the returned metrics: {sorted(trainer.callback_metrics)}. HINT: Did you call "
                f"`log({self.monitor!r}, value)` in the `TrainerModule`?"
            )
        value = float(trainer.callback_metrics[self.monitor])
        return (math.inf if self.mode == "min" else -math.inf) if math.isnan(value) else value

    def _better(self, a: float, b: float) -> bool:
        return a < b if self.mode == "min" else a > b

    def _worst(self) -> str:
        return (max if self.mode == "min" else min)(
            self.best_k_models, key=lambda p: self.best_k_models[p]
        )

    def _is_good(self, score: float) -> bool:
        if (
            self.monitor is None
            or len(self.best_k_models) < self.save_top_k
            or (self.save_top_k == -1)
        ):
            return True
        return self._better(score, self.best_k_models[self._worst()])

    def _keep(self, trainer: Trainer, score: float) -> None:
        surplus = None
        if self.save_top_k != -1 and len(self.best_k_models) >= self.save_top_k:
            surplus = self._worst()
            del self.best_k_models[surplus]
        path = self._path(trainer, surplus)
        self.best_k_models[path] = score
        if self.monitor is None:
            self.best_model_path, self.best_model_score = path, None
        else:
            self.best_model_path = (min if self.mode == "min" else max)(
                self.best_k_models, key=lambda p: self.best_k_models[p]
            )
            self.best_model_score = self.best_k_models[self.best_model_path]
        self._write(trainer, path)
        if surplus is not None and surplus != path and os.path.isfile(surplus):
            os.remove(surplus)  # only now, so that one of them is there at any moment

    def _write(self, trainer: Trainer, path: str) -> None:
        files.write(trainer, path, self.save_weights_only)
        if self.verbose:
            print(f"Epoch {trainer.current_epoch}, global step {trainer.global_step}: saved {path}")

    def _folder(self, trainer: Trainer) -> str:
        return self.dirpath or os.path.join(trainer.default_root_dir, "checkpoints")

    def _path(self, trainer: Trainer, replaced: str | None) -> str:
        """The file to write; a number is added where another file has the name."""
        values = {
            **trainer.callback_metrics,
            "epoch": trainer.current_epoch,
            "step": trainer.global_step,
        }
        start = os.path.join(self._folder(trainer), self.format_checkpoint_name(values))
        path, version = f"{start}.ckpt", 1
        while os.path.exists(path) and path != replaced:
            path, version = f"{start}-v{version}.ckpt", version + 1
        return path

    def format_checkpoint_name(self, metrics: dict[str, Any]) -> str:
        """The file's name without its ending.

        >>> keeper = ModelCheckpoint(filename="{epoch:02d}-{val_loss:.2f}")
        >>> keeper.format_checkpoint_name({"epoch": 2, "val_loss": 0.321})
        'epoch=02-val_loss=0.32'
        """

        def value(found: re.Match[str]) -> str:
            name, spec = found[1], found[2] or ""
            text = format(metrics.get(name, 0), spec[1:])
            return f"{name}={text}" if self.auto_insert_metric_name else text

        pattern = self.filename or "{epoch}-{step}"
        return re.sub(r"\{([^}:]+)(:[^}]*)?\}", value, pattern).replace("/", "_")
