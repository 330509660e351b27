"""Where logged numbers go: a table in a file, or TensorBoard."""

from __future__ import annotations

import csv
import os
from typing import Any

from toytorch.serialization.atomic import replacing
from toytorch.utils.tensorboard import SummaryWriter


class Logger:
    """Takes numbers: a subclass defines `log_metrics`, and `save` if it keeps some back."""

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Takes the numbers of a step."""
        raise NotImplementedError("a Logger defines log_metrics(metrics, step)")

    def save(self) -> None:
        """Writes what was kept back; called when a run ends."""


def next_version(folder: str) -> int:
    """The first number that no folder version_N in it has."""
    taken = [
        int(name[8:])
        for name in (os.listdir(folder) if os.path.isdir(folder) else [])
        if name.startswith("version_") and name[8:].isdigit()
    ]
    return max(taken, default=-1) + 1


class _Versioned(Logger):
    """A logger with a folder of its own: save_dir/name/version_N."""

    def __init__(
        self,
        save_dir: str | os.PathLike[str],
        name: str = "training_logs",
        version: int | str | None = None,
    ) -> None:
        self.save_dir, self.name = os.fspath(save_dir), name
        home = os.path.join(self.save_dir, name)
        self.version = next_version(home) if version is None else version
        label = f"version_{self.version}" if isinstance(self.version, int) else self.version
        self.log_dir = os.path.join(home, label)


class CSVLogger(_Versioned):
    """The numbers as a table `metrics.csv`, one line per step; empty where nothing was logged.

    Lines are kept back until `flush_logs_every_n_steps` of them are there, and written with all
    earlier ones to a file that then takes the old one's place. A version that is given goes on
    with the file that is there.
    """

    def __init__(
        self,
        save_dir: str | os.PathLike[str],
        name: str = "training_logs",
        version: int | str | None = None,
        flush_logs_every_n_steps: int = 100,
    ) -> None:
        super().__init__(save_dir, name, version)
        self.flush_every = flush_logs_every_n_steps
        self.path = os.path.join(self.log_dir, "metrics.csv")
        self.rows: list[dict[str, Any]] = []
        self._new = 0
        if os.path.isfile(self.path):
            with open(self.path, newline="", encoding="utf-8") as file:
                self.rows = [{k: v for k, v in row.items() if v} for row in csv.DictReader(file)]

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Adds a line; numbers of one step and moment share it."""
        self.rows.append({"step": step, **metrics})
        self._new += 1
        if self._new >= self.flush_every:
            self.save()

    def save(self) -> None:
        """Writes the table."""
        if not self._new:
            return
        os.makedirs(self.log_dir, exist_ok=True)
        columns = list(dict.fromkeys(["epoch", "step", *(k for row in self.rows for k in row)]))
        lines = [columns, *([row.get(name, "") for name in columns] for row in self.rows)]
        with replacing(self.path) as file:
            for line in lines:
                file.write((",".join(_cell(value) for value in line) + "\n").encode())
        self._new = 0


def _cell(value: float | str) -> str:
    text = repr(value) if isinstance(value, float) else str(value)
    return '"' + text.replace('"', '""') + '"' if any(c in text for c in ',"\n') else text


class TensorBoardLogger(_Versioned):
    """The numbers as curves for TensorBoard, through `toytorch.utils.tensorboard.SummaryWriter`."""

    _writer: Any = None

    @property
    def experiment(self) -> Any:
        """The SummaryWriter, made when it is first asked for."""
        if self._writer is None:
            self._writer = SummaryWriter(log_dir=self.log_dir)
        return self._writer

    def log_metrics(self, metrics: dict[str, float], step: int) -> None:
        """Adds a point to each curve."""
        for name, value in metrics.items():
            self.experiment.add_scalar(name, value, step)

    def save(self) -> None:
        """Writes the points to the disk."""
        if self._writer is not None:
            self._writer.flush()
