"""Schedules in which rate and momentum go up and down against each other."""

from __future__ import annotations

import math
import types
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toytorch.facts.hints import Fn
from toytorch.optim.optimizer import Group
from toytorch.optim.schedules.base import LRScheduler, for_groups, need_optimizer, put

if TYPE_CHECKING:
    from toytorch.optim.optimizer import Optimizer


class _WithMomentum(LRScheduler):
    """What both kinds share: the momentum, or the first beta, moves with the rate."""

    cycle_momentum: bool
    use_beta1: bool

    def _set_up_momentum(
        self, optimizer: Optimizer, base: float, most: float, first: bool
    ) -> tuple[list[float], list[float]]:
        """Puts the bounds of the momentum into the groups; returns the lower and the upper ones."""
        if not {"momentum", "betas"} & optimizer.defaults.keys():
            raise ValueError(
                "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"
            )
        self.use_beta1 = "betas" in optimizer.defaults
        lows = for_groups("base_momentum", optimizer, base)
        highs = for_groups("max_momentum", optimizer, most)
        if first:
            for high, low, group in zip(highs, lows, optimizer.param_groups):
                self._put_momentum(group, high)
                group["max_momentum"], group["base_momentum"] = high, low
        return lows, highs

    def _put_momentum(self, group: Group, value: float) -> None:
        if self.use_beta1:
            group["betas"] = (value, *group["betas"][1:])
        else:
            group["momentum"] = value


class CyclicLR(_WithMomentum):
    """From base_lr to max_lr and back, again and again; Smith 2017.

    mode: "triangular", "triangular2" (each cycle half as high) or "exp_range" (height gammaᵉᵖᵒᶜʰ);
    scale_fn, of the cycle or of the iteration by `scale_mode`, says the height instead.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: float | Sequence[float],
        max_lr: float | Sequence[float],
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Fn | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: float = 0.8,
        max_momentum: float = 0.9,
        last_epoch: int = -1,
    ) -> None:
        need_optimizer(optimizer)
        base_lrs = for_groups("base_lr", optimizer, base_lr)
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups):
                put(group, "lr", lr)
        self.max_lrs = for_groups("max_lr", optimizer, max_lr)
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode, self.gamma, self._scale_fn_custom = mode, gamma, scale_fn
        self.scale_mode = scale_mode
        if scale_fn is None:
            self.scale_mode = "iterations" if mode == "exp_range" else "cycle"
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.base_momentums, self.max_momentums = self._set_up_momentum(
                optimizer, base_momentum, max_momentum, last_epoch == -1
            )
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def scale_fn(self, x: float) -> float:
        """The height of a cycle, or of an iteration."""
        if self._scale_fn_custom is not None:
            return float(self._scale_fn_custom(x))
        if self.mode == "exp_range":
            return float(self.gamma**x)
        return 1.0 if self.mode == "triangular" else 1 / 2.0 ** (x - 1)

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        part = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        part *= self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            pairs = zip(self.base_momentums, self.max_momentums, strict=True)
            moved = [high - (high - low) * part for low, high in pairs]
            for group, value in zip(self.optimizer.param_groups, moved, strict=True):
                self._put_momentum(group, value)
        return [low + (high - low) * part for low, high in zip(self.base_lrs, self.max_lrs)]

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer; of scale_fn, the attributes of an object that is called."""
        state, f = super().state_dict(), self._scale_fn_custom
        own = f is not None and not isinstance(f, types.FunctionType)
        del state["_scale_fn_custom"]  # which is the last that PyTorch writes
        state["_scale_fn_custom"] = f.__dict__.copy() if own else None
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        attributes = state_dict.get("_scale_fn_custom")
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_scale_fn_custom"})
        if attributes is not None:
            self._scale_fn_custom.__dict__.update(attributes)


class OneCycleLR(_WithMomentum):
    """From a small rate up to max_lr and down to almost nothing, momentum the other way round.

    Smith and Topin 2019. The rate starts at max_lr/div_factor and ends at that/final_div_factor;
    `pct_start` is the share of the way up. With three_phase, it falls as it rose, then
    dies out.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: float | Sequence[float],
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: float = 0.85,
        max_momentum: float = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        need_optimizer(optimizer)
        self.total_steps = _total(total_steps, epochs, steps_per_epoch)
        if not isinstance(pct_start, float) or not 0 <= pct_start <= 1:
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(
                f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}"
            )
        self._schedule_phases = _phases(self.total_steps, pct_start, three_phase)
        self._anneal_func_type = anneal_strategy
        max_lrs = for_groups("max_lr", optimizer, max_lr)
        if last_epoch == -1:
            for most, group in zip(max_lrs, optimizer.param_groups):
                group["initial_lr"], group["max_lr"] = most / div_factor, most
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self._set_up_momentum(optimizer, base_momentum, max_momentum, last_epoch == -1)
        super().__init__(optimizer, last_epoch)

    def _between(self, start: float, end: float, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return start + (end - start) * part
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def get_lr(self) -> list[Any]:
        self._warn_if_asked()
        step, phases = self.last_epoch, self._schedule_phases
        if step > self.total_steps:
            raise ValueError(
                f"Tried to step {step} times. The specified number of total steps is "
                f"{self.total_steps}"
            )
        at = next((i for i, p in enumerate(phases) if step <= p["end_step"]), len(phases) - 1)
        phase, begin = phases[at], phases[at - 1]["end_step"] if at else 0.0
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._between(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                self._put_momentum(
                    group,
                    self._between(
                        group[phase["start_momentum"]], group[phase["end_momentum"]], part
                    ),
                )
        return rates


def _total(total_steps: int | None, epochs: int | None, steps_per_epoch: int | None) -> int:
    """The number of steps, given directly or as epochs of steps."""

    def positive(name: str, value: int) -> int:
        if not isinstance(value, int) or value <= 0:
            raise ValueError(f"Expected positive integer {name}, but got {value}")
        return value

    if total_steps is not None:
        return positive("total_steps", total_steps)
    if epochs is None or steps_per_epoch is None:
        raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
    return positive("epochs", epochs) * positive("steps_per_epoch", steps_per_epoch)


def _phases(total: int, start: float, three: bool) -> list[dict[str, Any]]:
    """The phases of one cycle: where each ends, and between what it goes."""
    names = ("end_step", "start_lr", "end_lr", "start_momentum", "end_momentum")
    rows: list[tuple[Any, ...]] = [
        (start * total - 1, "initial_lr", "max_lr", "max_momentum", "base_momentum")
    ]
    if three:
        rows += [
            (2 * start * total - 2, "max_lr", "initial_lr", "base_momentum", "max_momentum"),
            (total - 1, "initial_lr", "min_lr", "max_momentum", "max_momentum"),
        ]
    else:
        rows += [(total - 1, "max_lr", "min_lr", "base_momentum", "max_momentum")]
    return [dict(zip(names, row)) for row in rows]
