"""All of a training run in one file, and back."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from toytorch.facts import warned
from toytorch.serialization import load, save
from toytorch.version import own

if TYPE_CHECKING:
    from toytorch.trainer.trainer import Trainer


NEEDED = ("state_dict", "optimizer_states", "lr_schedulers", "loops", "global_step")


def collect(trainer: Any, weights_only: bool = False) -> dict[str, Any]:
    """Everything that training needs to go on, as containers of tensors and plain values."""
    checkpoint: dict[str, Any] = {
        "epoch": trainer.current_epoch,
        "global_step": trainer.global_step,
        "toytorch_version": own,
        "state_dict": trainer.model.state_dict(),
    }
    if not weights_only:
        checkpoint["loops"] = trainer.fit_loop.state_dict() if trainer.fit_loop else None
        checkpoint["optimizer_states"] = [o.state_dict() for o in trainer.optimizers]
        checkpoint["lr_schedulers"] = [
            c.scheduler.state_dict() for c in trainer.lr_scheduler_configs
        ]
        checkpoint["callbacks"] = {
            c.state_key: state for c in trainer.callbacks if (state := c.state_dict())
        }
        checkpoint["metrics"] = dict(trainer.callback_metrics)
    for callback in trainer.callbacks:
        callback.on_save_checkpoint(trainer, trainer.model, checkpoint)
    trainer.model.on_save_checkpoint(checkpoint)
    return checkpoint


def write(trainer: Trainer, path: str | os.PathLike[str], weights_only: bool = False) -> None:
    """Writes a checkpoint; under its name stands the old file or the whole new one, never less."""
    folder = os.path.dirname(os.path.abspath(os.fspath(path)))
    os.makedirs(folder, exist_ok=True)
    save(collect(trainer, weights_only), path)


def read(path: str | os.PathLike[str], whole: bool) -> dict[str, Any]:
    """A checkpoint; with `whole` it must be one from which training can go on."""
    if not os.path.isfile(path):
        raise FileNotFoundError(f"Checkpoint file not found: {os.fspath(path)}")
    checkpoint = load(path, map_location="cpu")
    missing = [
        key
        for key in (NEEDED if whole else NEEDED[:1])
        if not isinstance(checkpoint, dict) or checkpoint.get(key) is None
    ]
    if missing:
        raise KeyError(
            f"{os.fspath(path)} is no checkpoint to {'go on' if whole else 'load'} "
            f"from: it lacks {missing}"
        )
    return checkpoint


def put_back(trainer: Any, checkpoint: dict[str, Any]) -> None:
    """Brings model, optimizers, schedules, callbacks and position to where they were."""
    model = trainer.model
    for name, mine in (
        ("optimizer_states", trainer.optimizers),
        ("lr_schedulers", trainer.lr_scheduler_configs),
    ):
        if len(checkpoint[name]) != len(mine):
            raise ValueError(
                f"the checkpoint has {len(checkpoint[name])} {name}, but the model "
                f"configures {len(mine)}"
            )
    model.on_load_checkpoint(checkpoint)
    model.load_state_dict(checkpoint["state_dict"])
    for optimizer, state in zip(trainer.optimizers, checkpoint["optimizer_states"]):
        optimizer.load_state_dict(state)
        optimizer._opt_called = checkpoint["global_step"] > 0  # or schedules warn of a wrong order
    for config, state in zip(trainer.lr_scheduler_configs, checkpoint["lr_schedulers"]):
        config.scheduler.load_state_dict(state)
    _callbacks(trainer, checkpoint)
    trainer.global_step = checkpoint["global_step"]
    trainer.callback_metrics.update(checkpoint.get("metrics", {}))
    trainer.fit_loop.load_state_dict(checkpoint["loops"])


def _callbacks(trainer: Any, checkpoint: dict[str, Any]) -> None:
    states = dict(checkpoint.get("callbacks", {}))
    for callback in trainer.callbacks:
        if callback.state_key in states:
            callback.load_state_dict(states.pop(callback.state_key))
        callback.on_load_checkpoint(trainer, trainer.model, checkpoint)
    if states:
        warned.at_call(
            "the checkpoint has states of callbacks that this trainer does not have: "
            f"{sorted(states)}"
        )
