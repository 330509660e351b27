"""Schedules along a cosine: once, or with warm restarts."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from toytorch.optim.schedules.base import LRScheduler

if TYPE_CHECKING:
    from toytorch.optim.optimizer import Optimizer


class CosineAnnealingLR(LRScheduler):
    """eta_min + ½(base_lr - eta_min)(1 + cos(π·epoch/T_max)); Loshchilov and Hutter 2017."""

    def __init__(
        self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1
    ) -> None:
        self.T_max, self.eta_min = T_max, eta_min
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        epoch, most, least = self.last_epoch, self.T_max, self.eta_min
        if self._is_initial:
            return self._rates()
        if self._step_count == 1 and epoch > 0:
            return self._get_closed_form_lr()
        if (epoch - 1 - most) % (2 * most) == 0:  # the lowest point: nothing to multiply
            return [
                lr + (base - least) * (1 - math.cos(math.pi / most)) / 2
                for base, lr in zip(self.base_lrs, self._rates(), strict=True)
            ]
        ratio = (1 + math.cos(math.pi * epoch / most)) / (
            1 + math.cos(math.pi * (epoch - 1) / most)
        )
        return [ratio * (lr - least) + least for lr in self._rates()]

    def _get_closed_form_lr(self) -> list[Any]:
        high = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * high for base in self.base_lrs]


class CosineAnnealingWarmRestarts(LRScheduler):
    """A cosine from base_lr to eta_min over T_0 epochs, then again over T_0·T_mult, and so on.

    Loshchilov and Hutter 2017.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,
        T_mult: int = 1,
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if not isinstance(T_0, int) or T_0 <= 0:
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if not isinstance(T_mult, int) or T_mult < 1:
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(
                f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}"
            )
        self.T_0 = self.T_i = T_0
        self.T_mult, self.eta_min, self.T_cur = T_mult, eta_min, last_epoch
        super().__init__(optimizer, last_epoch)

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        high = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * high for base in self.base_lrs]

    def step(self, epoch: float | None = None) -> None:
        """Goes on by one epoch, or to an epoch that may be a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur -= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._go_to(epoch)
        self.last_epoch = math.floor(epoch)
        with self._asking():
            rates = self.get_lr()
        self._set(rates)

    def _go_to(self, epoch: Any) -> None:
        """Finds the cosine that an epoch is in, and the place there."""
        self.T_i, self.T_cur = self.T_0, epoch
        if epoch >= self.T_0 and self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        elif epoch >= self.T_0:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n
