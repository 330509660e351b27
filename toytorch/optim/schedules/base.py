"""What all schedules share: groups, epochs, state."""

from __future__ import annotations

import types
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.optim.optimizer import Group, Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated "
    "where possible. Please use `scheduler.step()` to step the scheduler. During the "
    "deprecation, if epoch is different from None, the closed form is used instead of the "
    "new chainable form, where available. Please open an issue if you are unable to "
    "replicate your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
OVERRIDDEN = (
    "Seems like `optimizer.step()` has been overridden after learning rate scheduler "
    "initialization. Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. "
    "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)
TOO_EARLY = (
    "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 "
    "and later, you should call them in the opposite order: `optimizer.step()` before "
    "`lr_scheduler.step()`.  Failure to do this will result in PyTorch skipping the first "
    "value of the learning rate schedule. See more details at "
    "https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
)


def values_of(optimizer: Optimizer, key: str) -> list[Any]:
    """A hyperparameter of every group, copied where it is a tensor."""
    return [
        g[key].clone() if isinstance(g[key], Tensor) else g[key] for g in optimizer.param_groups
    ]


def put(group: Group, key: str, value: float) -> None:
    """Sets a hyperparameter, in place where it is a tensor."""
    if isinstance(group[key], Tensor):
        group[key].fill_(float(value))
    else:
        group[key] = value


def for_groups(name: str, optimizer: Optimizer, value: float | Sequence[float]) -> list[Any]:
    """One value for each group, given as one for all or as a list."""
    n = len(optimizer.param_groups)
    if isinstance(value, (list, tuple)):
        if len(value) != n:
            raise ValueError(
                f"{name} must have the same length as optimizer.param_groups. {name} "
                f"has {len(value)} values, param_groups has {n}."
            )
        return list(value)
    return [value.clone() if isinstance(value, Tensor) else value for _ in range(n)]


def need_optimizer(optimizer: Optimizer) -> None:
    """Refuses what is no optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


class LRScheduler:
    """Sets the learning rate of every group at every step.

    A subclass defines `get_lr`, which computes the rates for `last_epoch` from the rates before
    (so that several schedules can work on one optimizer), and perhaps `_get_closed_form_lr`, which
    computes them from `base_lrs` alone.
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        need_optimizer(optimizer)
        self.optimizer = optimizer
        for i, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                rate = group["lr"]
                group.setdefault("initial_lr", rate.clone() if isinstance(rate, Tensor) else rate)
            elif "initial_lr" not in group:
                raise KeyError(
                    f"param 'initial_lr' is not specified in param_groups[{i}] when "
                    "resuming scheduler with last_epoch >= 0.\nThis typically happens when:\n1. "
                    "You're trying to resume training from a checkpoint but haven't properly loaded "
                    "the optimizer state\n2. You're using last_epoch >= 0 for a fresh training run "
                    "(not recommended)"
                )
        self.base_lrs = values_of(optimizer, "initial_lr")
        self.last_epoch = last_epoch
        optimizer._scheduled_step = vars(optimizer).get("step")
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def get_lr(self) -> list[Any]:
        """The rates for `last_epoch`."""
        raise NotImplementedError

    def get_last_lr(self) -> list[Any]:
        """The rates that were set last."""
        return self._last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes on by one epoch, and sets the rates."""
        if self._step_count == 1 and vars(self.optimizer).get("step") is not (
            self.optimizer._scheduled_step
        ):
            warned.at_call(OVERRIDDEN)
        elif self._step_count == 1 and not getattr(self.optimizer, "_opt_called", True):
            warned.at_call(TOO_EARLY)
        self._step_count += 1
        if epoch is not None:
            warned.at_call(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    @contextmanager
    def _asking(self) -> Iterator[None]:
        """While `get_lr` is called by `step`, and not by a user who wants `get_last_lr`."""
        self._get_lr_called_within_step = True
        try:
            yield
        finally:
            self._get_lr_called_within_step = False

    def _warn_if_asked(self) -> None:
        if not self._get_lr_called_within_step:
            warned.at_call(
                "To get the last learning rate computed by the scheduler, please use "
                "`get_last_lr()`."
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        with self._asking():
            self.last_epoch = self.last_epoch + 1 if epoch is None else epoch
            closed = None if epoch is None else getattr(self, "_get_closed_form_lr", None)
            rates = self.get_lr() if closed is None else closed()
        self._set(rates)

    def _set(self, rates: list[Any]) -> None:
        for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
            put(group, "lr", rate)
        self._last_lr = values_of(self.optimizer, "lr")

    def _rates(self) -> list[Any]:
        """The rates that the groups have now."""
        return values_of(self.optimizer, "lr")

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer."""
        return {k: v for k, v in self.__dict__.items() if k != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        self.__dict__.update(state_dict)


class ByFunction(LRScheduler):
    """A schedule by a function of the epoch, or by one function for each group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        n = len(optimizer.param_groups)
        if not isinstance(lr_lambda, (list, tuple)):
            lr_lambda = [lr_lambda] * n
        elif len(lr_lambda) != n:
            raise ValueError(f"Expected {n} lr_lambdas, but got {len(lr_lambda)}")
        for f in lr_lambda:
            if not callable(f):
                raise TypeError(f"lr_lambda should be a function, but got {type(f).__name__}")
        self.lr_lambdas = list(lr_lambda)
        super().__init__(optimizer, last_epoch)

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of functions, the attributes of objects that are called."""
        state = super().state_dict()
        del state["lr_lambdas"]  # it comes last
        state["lr_lambdas"] = [
            None if isinstance(f, types.FunctionType) else f.__dict__.copy()
            for f in self.lr_lambdas
        ]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "lr_lambdas"})
        for f, attributes in zip(self.lr_lambdas, state_dict["lr_lambdas"]):
            if attributes is not None:
                f.__dict__.update(attributes)
