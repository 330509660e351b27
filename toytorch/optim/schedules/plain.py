"""Schedules that multiply: by a function, in steps, along a line, a polynomial, an exponential."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toytorch.optim.schedules.base import ByFunction, LRScheduler

if TYPE_CHECKING:
    from toytorch.optim.optimizer import Optimizer


class LambdaLR(ByFunction):
    """base_lr·f(epoch).

    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> schedule = LambdaLR(optimizer, lambda epoch: 0.5 ** epoch)
    >>> optimizer.step(); schedule.step(); schedule.get_last_lr()
    [0.5]
    """

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        pairs = zip(self.lr_lambdas, self.base_lrs, strict=True)
        return [base * f(self.last_epoch) for f, base in pairs]


class MultiplicativeLR(ByFunction):
    """lr·f(epoch) at every step."""

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        if self._is_initial:
            return self._rates()
        pairs = zip(self.lr_lambdas, self._rates(), strict=True)
        return [lr * f(self.last_epoch) for f, lr in pairs]


class Factor(LRScheduler):
    """A schedule that multiplies all rates by one factor at each step."""

    def factor_now(self) -> float:
        """The factor for `last_epoch`."""
        raise NotImplementedError

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        factor = self.factor_now()
        return [lr * factor for lr in self._rates()] if factor != 1.0 else self._rates()

    def share(self, epoch: int) -> float:
        """The rate of an epoch in units of the base rate."""
        raise NotImplementedError

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.share(self.last_epoch) for base in self.base_lrs]


class StepLR(Factor):
    """gamma times as much every `step_size` epochs."""

    def __init__(
        self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.step_size, self.gamma = step_size, gamma
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float:
        return self.gamma if self.last_epoch and self.last_epoch % self.step_size == 0 else 1.0

    def share(self, epoch: int) -> float:
        return float(self.gamma ** (epoch // self.step_size))


class MultiStepLR(Factor):
    """gamma times as much at every milestone; one that is named twice counts twice."""

    def __init__(
        self,
        optimizer: Optimizer,
        milestones: Sequence[int],
        gamma: float = 0.1,
        last_epoch: int = -1,
    ) -> None:
        self.milestones, self.gamma = Counter(milestones), gamma
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float:
        return float(self.gamma ** self.milestones.get(self.last_epoch, 0))

    def share(self, epoch: int) -> float:
        return float(self.gamma ** bisect_right(sorted(self.milestones.elements()), epoch))


class ConstantLR(Factor):
    """A fraction of the rate for the first epochs, then the rate itself."""

    def __init__(
        self,
        optimizer: Optimizer,
        factor: float = 1.0 / 3,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 <= factor <= 1:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor, self.total_iters = factor, total_iters
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float:
        if self.last_epoch == 0:
            return self.factor
        return 1.0 / self.factor if self.last_epoch == self.total_iters else 1.0

    def share(self, epoch: int) -> float:
        return 1.0 if epoch >= self.total_iters else self.factor


class LinearLR(Factor):
    """From one fraction of the rate to another, along a line."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if not 0 < start_factor <= 1:
            raise ValueError(
                "Starting multiplicative factor expected to be greater than 0 and less"
                " or equal to 1."
            )
        if not 0 <= end_factor <= 1:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor, self.end_factor = start_factor, end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float:
        if self.last_epoch == 0:
            return self.start_factor
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        slope = self.end_factor - self.start_factor
        return 1.0 + slope / (self.total_iters * self.start_factor + (self.last_epoch - 1) * slope)

    def share(self, epoch: int) -> float:
        part = min(self.total_iters, epoch) / self.total_iters
        return self.start_factor + (self.end_factor - self.start_factor) * part


class ExponentialLR(Factor):
    """gamma times as much at every step."""

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float:
        return 1.0 if self._is_initial else self.gamma

    def share(self, epoch: int) -> float:
        return float(self.gamma**epoch)


class PolynomialLR(Factor):
    """base_lr·(1 - epoch/total_iters)^power, down to 0."""

    def __init__(
        self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1
    ) -> None:
        self.total_iters, self.power = total_iters, power
        super().__init__(optimizer, last_epoch)

    def factor_now(self) -> float:
        if self._is_initial or self.last_epoch > self.total_iters:
            return 1.0
        left = self.total_iters - self.last_epoch
        return float((left / (left + 1)) ** self.power)

    def share(self, epoch: int) -> float:
        return float((1.0 - min(self.total_iters, epoch) / self.total_iters) ** self.power)
