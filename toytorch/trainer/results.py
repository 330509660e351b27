"""What `self.log` records: values of steps, and epochs' means weighted by examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.trainer.errors import MisconfigurationException

REDUCTIONS = ("mean", "sum", "min", "max")


@dataclass
class Entry:
    """One logged name: the last value, and what an epoch's value is made of."""

    on_step: bool
    on_epoch: bool
    prog_bar: bool
    logger: bool
    reduce_fx: str
    value: float = 0.0
    total: float = 0.0
    weight: float = 0.0

    def add(self, value: float, weight: int) -> None:
        """Takes in the value of a batch."""
        self.value = value
        if self.reduce_fx == "mean":
            self.total += value * weight
        elif self.reduce_fx == "sum" or not self.weight:
            self.total += value
        else:
            self.total = (min if self.reduce_fx == "min" else max)(self.total, value)
        self.weight += weight

    def over_epoch(self) -> float:
        """The value of all batches so far."""
        if self.reduce_fx != "mean":
            return self.total
        return self.total / self.weight if self.weight else float("nan")


class Results:
    """All names logged in one pass over the data."""

    def __init__(self, training: bool) -> None:
        self.training = training
        self.entries: dict[str, Entry] = {}
        self.batch: Any = None  # the batch whose step runs; None between batches

    def log(
        self,
        name: str,
        value: Tensor,
        prog_bar: bool,
        logger: bool,
        on_step: bool | None,
        on_epoch: bool | None,
        reduce_fx: str,
        batch_size: int | None,
    ) -> None:
        """Records a number under a name."""
        if reduce_fx not in REDUCTIONS:
            raise MisconfigurationException(
                f"log({name!r}): reduce_fx should be one of {REDUCTIONS}, but got {reduce_fx!r}"
            )
        steps = self.training and self.batch is not None
        on_step = steps if on_step is None else on_step
        on_epoch = not steps if on_epoch is None else on_epoch
        if not (on_step or on_epoch):
            raise MisconfigurationException(
                f"log({name!r}): on_step and on_epoch are both False, so nothing would be recorded"
            )
        entry = self.entries.setdefault(name, Entry(on_step, on_epoch, prog_bar, logger, reduce_fx))
        if (entry.on_step, entry.on_epoch, entry.reduce_fx) != (on_step, on_epoch, reduce_fx):
            raise MisconfigurationException(
                f"log({name!r}) was called before with other settings "
                "of on_step, on_epoch or reduce_fx"
            )
        weighs = 1 if self.batch is None else None
        if weighs is None and entry.on_epoch:
            weighs = batch_size if batch_size is not None else batch_length(self.batch)
        entry.add(_number(name, value), weighs or 1)

    def of_step(self, for_logger: bool = False) -> dict[str, float]:
        """Values of the last batch."""
        return {
            f"{name}_step" if e.on_epoch else name: e.value
            for name, e in self.entries.items()
            if e.on_step and (e.logger or not for_logger)
        }

    def of_epoch(self, for_logger: bool = False) -> dict[str, float]:
        """Values of the whole pass; `name_epoch` where the steps' values are kept too."""
        return {
            f"{name}_epoch" if e.on_step else name: e.over_epoch()
            for name, e in self.entries.items()
            if e.on_epoch and (e.logger or not for_logger)
        }

    def by_name(self) -> dict[str, float]:
        """Values under the names that were logged, as callbacks monitor them."""
        return {name: e.over_epoch() if e.on_epoch else e.value for name, e in self.entries.items()}

    def for_bar(self) -> dict[str, float]:
        """Values that the progress bar shows."""
        return {
            name: e.value if e.on_step else e.over_epoch()
            for name, e in self.entries.items()
            if e.prog_bar
        }

    def state_dict(self) -> dict[str, Any]:
        """All entries as plain values."""
        return {name: dict(vars(e)) for name, e in self.entries.items()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Takes the entries back."""
        self.entries = {name: Entry(**values) for name, values in state.items()}


def _number(name: str, value: Tensor) -> float:
    if isinstance(value, Tensor):
        if value.numel() != 1:
            raise ValueError(
                f"`self.log({name}, {value})` was called, but the tensor must have a single "
                f"element. You can try doing `self.log({name}, {value}.mean())`"
            )
        return float(value.item())
    if isinstance(value, (bool, int, float)):
        return float(value)
    raise ValueError(
        f"`self.log({name}, {value})` was called, but `{type(value).__name__}` values "
        "cannot be logged"
    )


def batch_length(batch: Tensor | Sequence[Tensor]) -> int:
    """The number of examples: the length of the first tensor in a nest of containers.

    >>> batch_length({"x": [torch.zeros(3, 2)], "name": "a"})
    3
    """
    if isinstance(batch, Tensor):
        return int(batch.shape[0]) if batch.ndim else 1
    parts = batch.values() if isinstance(batch, dict) else batch
    if isinstance(parts, str) or not hasattr(parts, "__iter__"):
        return 0
    for part in parts:
        found = batch_length(part)
        if found:
            return found
    return 0
