"""A model that knows how it is trained: its steps, its optimizers, what it logs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, TypeVar

from toytorch.core.tensor import Tensor
from toytorch.nn.modules.module import Module
from toytorch.serialization import load
from toytorch.trainer.errors import MisconfigurationException
from toytorch.trainer.hooks import ModelHooks

T = TypeVar("T", bound="TrainerModule")


class TrainerModule(ModelHooks, Module):
    """A `Module` with `training_step(batch, batch_idx)` and `configure_optimizers()`.

    `training_step` returns the loss, or a dict with the key "loss", or None to pass over a batch.
    `validation_step`, `test_step` and `predict_step` have the same arguments. `lightning`'s
    `LightningModule` is the counterpart.

    >>> class Line(TrainerModule):
    ...     def __init__(self):
    ...         super().__init__()
    ...         self.layer = torch.nn.Linear(1, 1)
    ...     def training_step(self, batch, batch_idx):
    ...         x, y = batch
    ...         loss = torch.nn.functional.mse_loss(self.layer(x), y)
    ...         self.log("train_loss", loss)
    ...         return loss
    ...     def configure_optimizers(self):
    ...         return torch.optim.SGD(self.parameters(), lr=0.5)
    >>> from toytorch.trainer import Trainer
    >>> model, x = Line(), torch.linspace(-1, 1, 8)[:, None]
    >>> trainer = Trainer(max_epochs=60, enable_progress_bar=False)
    >>> trainer.fit(model, [(x, 3 * x + 1)])
    >>> round(model.layer.weight.item(), 3)
    3.0
    """

    automatic_optimization = True  # False: training_step calls backward and step itself

    def __init__(self, *args: object, **kwargs: Any) -> None:
        super().__init__()
        object.__setattr__(self, "_trainer", None)  # no submodule, no part of the state

    @property
    def trainer(self) -> Any:
        """The trainer that this model is attached to."""
        found = self.__dict__.get("_trainer")
        if found is None:
            raise RuntimeError(f"{type(self).__qualname__} is not attached to a `Trainer`.")
        return found

    @property
    def current_epoch(self) -> int:
        """The epoch that runs, from 0; 0 without a trainer."""
        found = self.__dict__.get("_trainer")
        return 0 if found is None else int(found.current_epoch)

    @property
    def global_step(self) -> int:
        """How many optimizer steps were made."""
        found = self.__dict__.get("_trainer")
        return 0 if found is None else int(found.global_step)

    @property
    def device(self) -> Any:
        """Where the parameters are."""
        first = next(self.parameters(), None)
        return "cpu" if first is None else first.device

    def training_step(self, batch: Sequence[Tensor], batch_idx: int) -> Any:
        """The loss of a batch."""
        raise NotImplementedError("`training_step` must be implemented to be used with the Trainer")

    def validation_step(self, batch: Sequence[Tensor], batch_idx: int) -> Any:
        """Logs how good the model is on a batch it does not learn from."""
        raise NotImplementedError(
            "`validation_step` must be implemented to be used with the Trainer"
        )

    def test_step(self, batch: Sequence[Tensor], batch_idx: int) -> Any:
        """Logs how good the model is on a batch of the last test."""
        raise NotImplementedError("`test_step` must be implemented to be used with the Trainer")

    def predict_step(self, batch: Sequence[Tensor], batch_idx: int) -> Any:
        """What `Trainer.predict` collects: the output for the batch, or for its first part."""
        return self(batch[0] if isinstance(batch, (list, tuple)) else batch)

    def configure_optimizers(self) -> Any:
        """An optimizer; or {"optimizer", "lr_scheduler"}; or ([optimizers], [schedulers]).

        A scheduler may be a dict {"scheduler", "interval": "epoch" or "step", "frequency",
        "monitor": the metric a ReduceLROnPlateau looks at}.
        """
        raise NotImplementedError(
            "`configure_optimizers` must be implemented to be used with the Trainer"
        )

    def log(
        self,
        name: str,
        value: Any,
        prog_bar: bool = False,
        logger: bool = True,
        on_step: bool | None = None,
        on_epoch: bool | None = None,
        reduce_fx: str = "mean",
        batch_size: int | None = None,
    ) -> None:
        """Records a number, of each step, or over the epoch (mean by examples, sum, min, max).

        In training the default is each step, elsewhere the epoch. With both, the names get
        `_step` and `_epoch`. The mean weighs each batch by its number of examples: `batch_size`,
        or the length of the first tensor in the batch.
        """
        self.trainer.results.log(
            name, value, prog_bar, logger, on_step, on_epoch, reduce_fx, batch_size
        )

    def log_dict(self, dictionary: dict[str, Any], **kwargs: Any) -> None:
        """Records several numbers with the same settings."""
        for name, value in dictionary.items():
            self.log(name, value, **kwargs)

    def optimizers(self) -> Any:
        """The optimizer, or the list of several."""
        found = self.trainer.optimizers
        return found[0] if len(found) == 1 else found

    def lr_schedulers(self) -> Any:
        """The scheduler, the list of several, or None."""
        found = [entry.scheduler for entry in self.trainer.lr_scheduler_configs]
        return found[0] if len(found) == 1 else found or None

    def manual_backward(self, loss: Tensor, **kwargs: Any) -> None:
        """`loss.backward()`, for models that optimize by themselves."""
        if self.automatic_optimization:
            raise MisconfigurationException(
                "`manual_backward` needs `self.automatic_optimization = False`"
            )
        self.trainer.call("on_before_backward", loss)
        loss.backward(**kwargs)
        self.trainer.call("on_after_backward")

    def freeze(self) -> None:
        """No parameter learns any more, and the mode is eval."""
        self.requires_grad_(False)
        self.eval()

    def unfreeze(self) -> None:
        """All parameters learn again, and the mode is train."""
        self.requires_grad_(True)
        self.train()

    @classmethod
    def load_from_checkpoint(
        cls: type[T],
        checkpoint_path: str | os.PathLike[str],
        map_location: Any = None,
        strict: bool = True,
        **kwargs: object,
    ) -> T:
        """A model made from `kwargs`, with the weights of a trainer's checkpoint."""
        checkpoint = load(checkpoint_path, map_location=map_location)
        if not isinstance(checkpoint, dict) or "state_dict" not in checkpoint:
            raise KeyError(
                f"{os.fspath(checkpoint_path)} is no checkpoint of a Trainer: it has no "
                "'state_dict'"
            )
        model = cls(**kwargs)
        model.on_load_checkpoint(checkpoint)
        model.load_state_dict(checkpoint["state_dict"], strict=strict)
        return model
