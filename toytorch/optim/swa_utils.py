"""Means of weights over training: stochastic weight averaging, and exponential moving averages."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import int64
from toytorch.facts.hints import Array, Device, Fn
from toytorch.nn.modules.batchnorm import _BatchNorm
from toytorch.nn.modules.module import Module
from toytorch.ops.creation.create import zeros
from toytorch.optim.schedules.base import LRScheduler, for_groups


def get_ema_avg_fn(decay: float = 0.999) -> Fn:
    """average ← decay·average + (1 - decay)·weights."""
    if not 0.0 <= decay <= 1.0:
        raise ValueError(
            f"Invalid decay value {decay} provided. Please provide a value in [0,1] range."
        )

    def average(mean: Tensor, current: Tensor, count: Tensor) -> Any:
        with no_grad():
            return mean * decay + current * (1 - decay)

    return average


def get_swa_avg_fn() -> Fn:
    """average ← average + (weights - average)/(n + 1): the plain mean."""

    def average(mean: Tensor, current: Tensor, count: Tensor) -> Any:
        with no_grad():
            return mean + (current - mean) / (count + 1)

    return average


def _for_all(average: Fn) -> Callable[..., None]:
    def averages(means: Sequence[Tensor], currents: Sequence[Tensor], count: Tensor) -> None:
        with no_grad():
            for mean, current in zip(means, currents):
                mean.copy_(average(mean, current, count))

    return averages


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """The exponential average of lists of tensors."""
    return _for_all(get_ema_avg_fn(decay))


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """The plain mean of lists of tensors."""
    return _for_all(get_swa_avg_fn())


class AveragedModel(Module):
    """A copy of a model whose weights are means of the model's; Izmailov et al. 2018.

    >>> model = torch.nn.Linear(1, 1, bias=False)
    >>> mean = AveragedModel(model)
    >>> for value in (1., 3.):
    ...     _ = torch.nn.init.constant_(model.weight, value)
    ...     mean.update_parameters(model)
    >>> mean.module.weight.item()
    2.0
    """

    def __init__(
        self,
        model: Module,
        device: Device = None,
        avg_fn: Fn | None = None,
        multi_avg_fn: Any = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = copy.deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", zeros((), dtype=int64, device=device))
        self.avg_fn, self.multi_avg_fn, self.use_buffers = avg_fn, multi_avg_fn, use_buffers

    def forward(self, *args: Array | float, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs)

    def _averaged(self, model: Module) -> list[Tensor]:
        """What is averaged: parameters, and buffers where they count."""
        found = [*model.parameters(), *(model.buffers() if self.use_buffers else ())]
        return [t.detach() for t in found]

    def update_parameters(self, model: Module) -> None:
        """Takes the model's weights into the means."""
        means = self._averaged(self.module)
        currents = [t.to(m.device) for t, m in zip(self._averaged(model), means)]
        count = self.n_averaged
        if int(count) == 0:
            for mean, current in zip(means, currents):
                mean.copy_(current)
        elif self.avg_fn is not None:
            for mean, current in zip(means, currents):
                mean.copy_(self.avg_fn(mean, current, count))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(means, currents, count)
        if not self.use_buffers:
            for mine, theirs in zip(self.module.buffers(), model.buffers()):
                mine.detach().copy_(theirs.detach().to(mine.device))
        count.add_(1)


def update_bn(loader: Iterable[Any], model: Module, device: Device = None) -> None:
    """Computes the statistics of all batch norms anew, over one pass through the data."""
    norms = [m for m in model.modules() if isinstance(m, _BatchNorm)]
    if not norms:
        return
    before, training = [m.momentum for m in norms], model.training
    model.train()
    for m in norms:
        m.reset_running_stats()
        m.momentum = None
    with no_grad():
        for batch in loader:
            input = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(input if device is None else input.to(device))
    for m, momentum in zip(norms, before):
        m.momentum = momentum
    model.train(training)


class SWALR(LRScheduler):
    """From the rates of now to a constant rate, over `anneal_epochs` epochs."""

    def __init__(
        self,
        optimizer: Any,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must by one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        for rate, group in zip(for_groups("swa_lr", optimizer, swa_lr), optimizer.param_groups):
            group["swa_lr"] = rate
        self._anneal_strategy, self.anneal_epochs = anneal_strategy, anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """How much of the way is behind, in [0, 1]."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(max(0, step - 1)), self._part(step)
        rates = []
        for group, lr in zip(self.optimizer.param_groups, self._rates()):
            goal = group["swa_lr"]
            start = goal if before == 1 else (lr - before * goal) / (1 - before)
            rates.append(goal * now + start * (1 - now))
        return rates
