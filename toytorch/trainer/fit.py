"""The training loop: epochs of batches, with a position from which it can go on.

The position is the number of epochs done and of batches done in the present one. A checkpoint
holds it with the random streams as they are, and as they were when the present epoch began. To go
on in the middle of an epoch, the streams are put back to the epoch's start, the loader is asked for
the same batches again, those that were done are dropped, and then the streams are put to where they
were: every later number is as if nothing had happened.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.nn.utils import clip_grad_norm_, clip_grad_value_
from toytorch.optim.optimizer import Optimizer
from toytorch.trainer import random_state
from toytorch.trainer.data import number_of_batches, to_device
from toytorch.trainer.errors import MisconfigurationException
from toytorch.trainer.evaluation import evaluate
from toytorch.trainer.results import Results
from toytorch.utils.data.dataloader import DataLoader


class FitLoop:
    """One call of `Trainer.fit`: what runs, and where it is."""

    def __init__(self, trainer: Any, loader: Any, val_loader: DataLoader | None) -> None:
        self.trainer, self.loader, self.val_loader = trainer, loader, val_loader
        self.total = number_of_batches(loader, trainer.limit_train_batches)
        self.epochs_done = 0
        self.batches_done = 0
        self.epoch_start: dict[str, Any] | None = None  # the random streams as the epoch began
        self.resumed: dict[str, Any] | None = None  # the streams of a checkpoint, not yet put back
        self.results = Results(training=True)
        self.metrics: set[str] = set()  # names that were logged in the present epoch
        self.validated = False  # whether the present epoch has been validated
        self.whole = True  # whether model, streams and position belong together right now
        self._loss: Any = None

    # -- the position, for checkpoints --------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Position, random streams, what was logged in this epoch, gradients under way."""
        model = self.trainer.model
        waiting = self.batches_done % self.trainer.accumulate_grad_batches
        gradients = {
            name: p.grad for name, p in model.named_parameters() if waiting and p.grad is not None
        }
        return {
            "epochs_done": self.epochs_done,
            "batches_done": self.batches_done,
            "random": random_state.capture(self.loader),
            "epoch_start": self.epoch_start,
            "results": self.results.state_dict() if self.batches_done else {},
            "gradients": gradients,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Goes to a position; the streams follow when the first epoch starts."""
        self.epochs_done, self.batches_done = state["epochs_done"], state["batches_done"]
        self.epoch_start, self.resumed = state["epoch_start"], state["random"]
        self.results.load_state_dict(state["results"])
        params = dict(self.trainer.model.named_parameters())
        for name, gradient in state["gradients"].items():
            params[name].grad = gradient.to(params[name].device)

    # -- epochs ---------------------------------------------------------------------------------

    def run(self) -> None:
        """Epochs until one of the limits is reached."""
        trainer = self.trainer
        trainer.results = self.results
        trainer.current_epoch = self.epochs_done
        trainer.call("on_train_start")
        while not self._finished():
            self._epoch()
            if trainer.interrupted:
                raise KeyboardInterrupt
        trainer.call("on_train_end")

    def _finished(self) -> bool:
        t = self.trainer
        if self.total == 0 or t.should_stop or 0 <= t.max_steps <= t.global_step:
            return True
        return bool(0 <= t.max_epochs <= self.epochs_done)

    def _epoch(self) -> None:
        trainer = self.trainer
        trainer.current_epoch = self.epochs_done
        if not self.batches_done:
            self.results = Results(training=True)
        trainer.results, self.metrics, self.validated = self.results, set(), False
        if self.resumed is not None and not self.batches_done:
            random_state.restore(self.resumed, self.loader)
            self.resumed = None
        for holder in (
            getattr(self.loader, "sampler", None),
            getattr(self.loader, "batch_sampler", None),
        ):
            set_epoch = getattr(holder, "set_epoch", None)
            if set_epoch is not None:
                set_epoch(self.epochs_done)
        trainer.call("on_train_epoch_start")
        if not self._batches():
            return
        if (
            self.val_loader is not None
            and (self.epochs_done + 1) % trainer.check_val_every_n_epoch == 0
        ):
            self._validate()
            if trainer.interrupted:
                return
        self._end_of_epoch()

    def _validate(self) -> None:
        """A pass over the validation data. Interrupted, it leaves the streams as they were."""
        before = random_state.capture(self.loader)
        trainer, self.whole = self.trainer, False
        found = evaluate(trainer, "validation", self.val_loader, trainer.limit_val_batches)
        trainer.results = self.results
        if trainer.interrupted:
            random_state.restore(before, self.loader)
        else:
            self.validated = True
            self.metrics.update(found)
        self.whole = True

    def _end_of_epoch(self) -> None:
        trainer = self.trainer
        trainer.call_model("on_train_epoch_end")
        self.metrics.update(self.results.by_name())
        trainer.publish(self.results, trainer.global_step, epoch=True)
        for config in trainer.lr_scheduler_configs:
            if config.interval == "epoch" and (self.epochs_done + 1) % config.frequency == 0:
                config.step(
                    trainer.callback_metrics,
                    may_lack=self.val_loader is not None and not self.validated,
                )
        self.epochs_done += 1
        self.batches_done = 0
        trainer.call_callbacks("on_train_epoch_end")

    # -- batches --------------------------------------------------------------------------------

    def _start(self) -> Iterator[Any]:
        """The epoch's batches; those done before are dropped."""
        if self.batches_done and self.resumed is not None:
            if self.epoch_start is None:
                raise RuntimeError("the checkpoint lacks the state in which its epoch began")
            random_state.restore(self.epoch_start, self.loader)
            batches: Iterator[Any] = iter(self.loader)
            for done in range(self.batches_done):
                if next(batches, self) is self:
                    raise RuntimeError(
                        f"the checkpoint was written after {self.batches_done} "
                        f"batches of an epoch, but the loader gives only {done}: it "
                        "is not the loader that was used then"
                    )
            random_state.restore(self.resumed, self.loader)
            self.resumed = None
            return batches
        self.epoch_start = random_state.capture(self.loader)
        return iter(self.loader)

    def _batches(self) -> bool:
        """Trains on the rest of the epoch; whether it came to the epoch's end."""
        trainer = self.trainer
        batches = self._start()
        while self.total is None or self.batches_done < self.total:
            self.whole = False
            batch = next(batches, self)
            if batch is self:
                self.whole = True
                break
            batch = to_device(batch, trainer.model.device)
            if not self._batch(batch, self.batches_done):
                break
            whole = self.total is not None and self.batches_done >= self.total
            if trainer.interrupted:
                return False
            if not whole and (trainer.should_stop or 0 <= trainer.max_steps <= trainer.global_step):
                return False
        if self.total is None and self.batches_done % trainer.accumulate_grad_batches:
            self._late_step()
        return True

    def _batch(self, batch: object, index: int) -> bool:
        """One batch, from its start hooks to its end hooks; False if a hook ended the epoch."""
        trainer, model = self.trainer, self.trainer.model
        self.results.batch = batch
        if -1 in trainer.call("on_train_batch_start", batch, index):
            self.results.batch, self.whole = None, True
            return False
        steps = trainer.global_step
        if model.automatic_optimization and trainer.optimizers:
            output = self._optimize(batch, index)
        else:
            output = self._forward(batch, index)
        stepped = trainer.global_step > steps
        self.batches_done = index + 1
        log = stepped and trainer.global_step % trainer.log_every_n_steps == 0
        trainer.publish(self.results, trainer.global_step, epoch=False, log=log)
        for config in trainer.lr_scheduler_configs:
            if (
                config.interval == "step"
                and stepped
                and (trainer.global_step % config.frequency == 0)
            ):
                config.step(trainer.callback_metrics)
        self.whole = True
        trainer.call("on_train_batch_end", output, batch, index)
        self.results.batch = None
        return True

    def _forward(self, batch: object, index: int) -> Any:
        """What training_step returned, and its loss in `_loss`, checked."""
        output = self.trainer.model.training_step(batch, index)
        self._loss = output.get("loss") if isinstance(output, dict) else output
        if not self.trainer.model.automatic_optimization:
            return output
        if isinstance(output, dict) and "loss" not in output:
            raise MisconfigurationException(
                "In automatic_optimization, when `training_step` returns a dict, the 'loss' key "
                f"needs to be present, but got the keys {sorted(map(str, output))}"
            )
        if self._loss is not None and not isinstance(self._loss, Tensor):
            raise MisconfigurationException(
                "In automatic_optimization, `training_step` must return a Tensor, a dict, or None "
                f"(where the step will be skipped), but got {type(output).__name__}"
            )
        if self._loss is not None and self._loss.numel() != 1:
            raise MisconfigurationException(
                "the loss that `training_step` returned should have "
                f"one element, but has the shape {self._loss.shape}"
            )
        if (
            self.trainer.terminate_on_nan
            and self._loss is not None
            and not math.isfinite(self._loss.item())
        ):
            raise ValueError(
                f"The loss returned in `training_step` is {self._loss.item()} in "
                f"epoch {self.trainer.current_epoch}, batch {index}."
            )
        return output

    def _optimize(self, batch: object, index: int) -> Any:
        """Forward, backward, and where enough batches were gathered a step."""
        trainer = self.trainer
        many = trainer.accumulate_grad_batches
        stepping = (index + 1) % many == 0 or index + 1 == self.total
        optimizer, output = trainer.optimizers[0], None

        def closure() -> Any:
            nonlocal output
            output = self._forward(batch, index)
            if index % many == 0:
                trainer.call("on_before_zero_grad", optimizer)
                optimizer.zero_grad()
            if self._loss is not None:
                trainer.call("on_before_backward", self._loss)
                (self._loss if many == 1 else self._loss / many).backward()
                trainer.call("on_after_backward")
            if stepping:
                self._before_step(optimizer)
            return self._loss

        if stepping:
            optimizer.step(closure)
        else:
            closure()
        return _detached(output)

    def _before_step(self, optimizer: Optimizer) -> None:
        trainer = self.trainer
        trainer.call("on_before_optimizer_step", optimizer)
        if trainer.gradient_clip_val:
            params = [p for group in optimizer.param_groups for p in group["params"]]
            clip = (
                clip_grad_norm_ if trainer.gradient_clip_algorithm == "norm" else clip_grad_value_
            )
            clip(params, trainer.gradient_clip_val)

    def _late_step(self) -> None:
        """The step of batches gathered when a loader without a length came to its end."""
        for optimizer in self.trainer.optimizers[:1]:
            self._before_step(optimizer)
            optimizer.step()


def _detached(output: object) -> Any:
    """The loss of a step without its graph, which would keep memory."""
    if isinstance(output, dict):
        return {k: v.detach() if isinstance(v, Tensor) else v for k, v in output.items()}
    return {"loss": output.detach()} if isinstance(output, Tensor) else output
