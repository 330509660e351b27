"""A small model with everything that a restart must keep: dropout, momenta, a schedule, logs."""

from __future__ import annotations

from typing import Any

import toytorch as torch
from toytorch import nn
from toytorch.trainer import Callback, Trainer, TrainerModule
from toytorch.utils.data import DataLoader, TensorDataset
from toytorch.vision.datasets import spirals


class Arms(TrainerModule):
    """Tells the arms of spirals apart."""

    def __init__(self, schedule: str = "epoch") -> None:
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(2, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Dropout(0.2), nn.Linear(16, 3)
        )
        self.schedule = schedule

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        x, y = batch
        loss = nn.functional.cross_entropy(self.net(x), y)
        self.log("loss", loss, on_step=True, on_epoch=True)
        return loss

    def validation_step(self, batch: Any, batch_idx: int) -> None:
        x, y = batch
        self.log("val_loss", nn.functional.cross_entropy(self.net(x), y))

    def configure_optimizers(self) -> Any:
        optimizer = torch.optim.AdamW(self.parameters(), lr=0.02)
        schedule = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.7)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": self.schedule},
        }


class Record(Callback):
    """Keeps every loss, and acts after a given number of batches."""

    def __init__(self, after: int | None = None, act: Any = None) -> None:
        self.losses: list[float] = []
        self.epochs: list[tuple[float, float]] = []
        self.after, self.act = after, act

    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, *args: Any) -> None:
        self.losses.append(outputs["loss"].item())
        if self.after == len(self.losses):
            self.act(trainer)

    def on_train_epoch_end(self, trainer: Any, module: Any) -> None:
        metrics = trainer.callback_metrics
        self.epochs.append((metrics["loss"], metrics.get("val_loss", 0.0)))


def loaders(own_generator: bool = False) -> tuple[Any, Any]:
    """70 points to train on in batches of 16 (the last has 6), and 30 to validate on."""
    points, labels = spirals(100, generator=torch.Generator().manual_seed(7))
    generator = torch.Generator().manual_seed(11) if own_generator else None
    train = DataLoader(
        TensorDataset(points[:70], labels[:70]), 16, shuffle=True, generator=generator
    )
    return train, DataLoader(TensorDataset(points[70:], labels[70:]), 16)


def fresh(seed: int = 5, **options: Any) -> tuple[Arms, Record]:
    """A model with starting values of its own, and a record."""
    torch.manual_seed(seed)
    return Arms(**options), Record()


def trainer(*callbacks: Any, **options: Any) -> Trainer:
    """A silent trainer."""
    return Trainer(callbacks=list(callbacks), enable_progress_bar=False, **options)
