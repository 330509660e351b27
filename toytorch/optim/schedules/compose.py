"""Schedules made of schedules: one after the other, or all at once."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from toytorch.optim.schedules.base import LRScheduler, put, values_of
from toytorch.optim.schedules.plateau import ReduceLROnPlateau

if TYPE_CHECKING:
    from toytorch.optim.optimizer import Optimizer


class _Several(LRScheduler):
    """What both kinds share: their parts, whose state is theirs."""

    _schedulers: list[Any]

    def _check(self, optimizer: Optimizer, schedulers: Sequence[LRScheduler]) -> None:
        name = type(self).__name__
        for i, s in enumerate(schedulers):
            if not hasattr(s, "optimizer"):
                raise TypeError(f"{name} at index {i} should have `optimizer` as its attribute.")
            if isinstance(s, ReduceLROnPlateau):
                raise ValueError(
                    f"{name} does not support `ReduceLROnPlateau` scheduler as it "
                    "requires additional kwargs to be specified when calling `step`, "
                    f"but got one at index {i} in the given schedulers sequence."
                )
            if s.optimizer is not optimizer:
                raise ValueError(
                    f"{name} expects all schedulers to belong to the same optimizer, but got "
                    f"scheduler {type(s).__name__} at index {i} has {s.optimizer}, which is "
                    f"different from {type(optimizer).__name__}."
                )

    def state_dict(self) -> dict[str, Any]:
        """Everything but the optimizer, with the states of the parts."""
        state = super().state_dict()
        del state["_schedulers"]  # which is the last that PyTorch writes
        state["_schedulers"] = [s.state_dict() for s in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Takes back what `state_dict` gave."""
        super().load_state_dict({k: v for k, v in state_dict.items() if k != "_schedulers"})
        for s, state in zip(self._schedulers, state_dict["_schedulers"]):
            s.load_state_dict(state)


class SequentialLR(_Several):
    """One schedule up to the first milestone, the next up to the second, and so on.

    >>> from toytorch.optim.lr_scheduler import ConstantLR, ExponentialLR
    >>> optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=1.0)
    >>> parts = [ConstantLR(optimizer, 0.1), ExponentialLR(optimizer, 0.5)]
    >>> schedule, seen = SequentialLR(optimizer, parts, milestones=[2]), []
    >>> for _ in range(4):
    ...     seen += schedule.get_last_lr()
    ...     optimizer.step(); schedule.step()
    >>> seen
    [0.1, 0.1, 1.0, 0.5]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        schedulers: list[Any],
        milestones: list[int],
        last_epoch: int = -1,
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        self._check(optimizer, schedulers)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than "
                f"the number of milestone points, but got number of schedulers {len(schedulers)} "
                f"and the number of milestones to be equal to {len(milestones)}"
            )
        self._schedulers, self._milestones = schedulers, milestones
        self.last_epoch, self.optimizer = last_epoch + 1, optimizer
        for group in optimizer.param_groups:  # undo the first step of every part but one
            put(group, "lr", group["initial_lr"])
        self.recursive_undo()
        first = schedulers[bisect_right(milestones, 0)]
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def recursive_undo(self, sched: Any = None) -> None:
        """Takes back one epoch of a schedule and of all that it is made of."""
        sched = self if sched is None else sched
        if hasattr(sched, "_schedulers"):
            for s in sched._schedulers:
                self.recursive_undo(s)
        elif hasattr(sched, "last_epoch"):
            sched.last_epoch -= 1

    def step(self) -> None:  # type: ignore[override]  # takes no epoch, as PyTorch's
        """Goes on by one epoch of the schedule whose turn it is."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        current = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            current._update_lr(0)
        else:
            current.step()
        self._last_lr = current.get_last_lr()


class ChainedScheduler(_Several):
    """All schedules at every step, each working on what the one before made of the rates."""

    def __init__(self, schedulers: Any, optimizer: Any = None) -> None:
        if not schedulers:
            raise ValueError(
                "ChainedScheduler expects at least one scheduler to be chained, but "
                "got no scheduler."
            )
        optimizer = optimizer or schedulers[0].optimizer
        self._check(optimizer, schedulers)
        self._schedulers, self.optimizer = schedulers, optimizer
        self._last_lr = values_of(optimizer, "lr")

    def step(self) -> None:  # type: ignore[override]  # takes no epoch, as PyTorch's
        """One step of every schedule."""
        for s in self._schedulers:
            s.step()
        self._last_lr = values_of(self.optimizer, "lr")
