"""A bar that shows how far an epoch is: tqdm's where it is installed, else one of our own."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any, TextIO

from toytorch.facts.hints import Fn
from toytorch.trainer.hooks import Callback

if TYPE_CHECKING:
    from toytorch.trainer.module import TrainerModule
    from toytorch.trainer.trainer import Trainer


class TextBar:
    """A bar of plain text, redrawn on its line ten times a second at most.

    >>> import sys
    >>> bar = TextBar(2, "Epoch 0", sys.stdout)
    >>> bar.update(2); bar.set_postfix_str("loss=0.5"); bar.text().split(" [")[0]
    'Epoch 0: 100% |####################| 2/2'
    """

    WIDTH = 20

    def __init__(self, total: int | None, desc: str, file: TextIO | None = None) -> None:
        self.total, self.desc, self.file = total, desc, file or sys.stdout
        self.n, self.postfix, self.start = 0, "", time.perf_counter()
        self._drawn, self._length = 0.0, 0

    def text(self) -> str:
        """The line as it is now."""
        seconds = time.perf_counter() - self.start
        rate = f"{self.n / seconds:.1f}it/s" if seconds > 0 and self.n else "?it/s"
        tail = f"[{seconds:.0f}s, {rate}{', ' if self.postfix else ''}{self.postfix}]"
        if not self.total:
            return f"{self.desc}: {self.n} {tail}"
        share = min(self.n / self.total, 1.0)
        bar = ("#" * int(self.WIDTH * share)).ljust(self.WIDTH, ".")
        return f"{self.desc}: {100 * share:.0f}% |{bar}| {self.n}/{self.total} {tail}"

    def update(self, n: int = 1) -> None:
        """n more are done."""
        self.n += n
        if time.perf_counter() - self._drawn > 0.1 and self.file.isatty():
            self._draw("\r")

    def set_postfix_str(self, text: str, refresh: bool = False) -> None:
        """What stands behind the bar."""
        self.postfix = text

    def _draw(self, start: str, end: str = "") -> None:
        line = self.text()
        self.file.write(start + line.ljust(self._length) + end)
        self.file.flush()
        self._drawn, self._length = time.perf_counter(), len(line)

    def close(self) -> None:
        """The last state stays on a line of its own."""
        self._draw("\r" if self.file.isatty() else "", "\n")


def open_bar(total: int | None, desc: str) -> Any:
    """A bar with `update`, `set_postfix_str` and `close`."""
    try:
        from tqdm import tqdm  # an optional package
    except ImportError:
        return TextBar(total, desc)
    return tqdm(total=total, desc=desc, file=sys.stdout, dynamic_ncols=True, mininterval=0.2)


class ProgressBar(Callback):
    """One bar per epoch with what was logged with `prog_bar=True`; also for test and predict.

    `bar` makes the bars: (number of batches or None, name) to something like `TextBar`.
    """

    def __init__(self, bar: Fn = open_bar) -> None:
        self._make, self._bar = bar, None

    def _open(self, total: int | None, name: str) -> None:
        self._close()
        self._bar = self._make(total, name)

    def _close(self) -> None:
        if self._bar is not None:
            self._bar.close()
        self._bar = None

    def _advance(self, metrics: dict[str, float]) -> None:
        if self._bar is not None:
            self._show(metrics)
            self._bar.update(1)

    def _show(self, metrics: dict[str, float]) -> None:
        self._bar.set_postfix_str(  # type: ignore[attr-defined]  # called while there is a bar
            ", ".join(f"{k}={v:.4g}" for k, v in metrics.items()), refresh=False
        )

    def on_train_epoch_start(self, trainer: Any, module: Any) -> None:
        """A new bar, with what a resumed epoch has done already."""
        self._open(trainer.fit_loop.total, f"Epoch {trainer.current_epoch}")
        if trainer.fit_loop.batches_done and self._bar is not None:
            self._bar.update(trainer.fit_loop.batches_done)

    def on_train_batch_end(self, trainer: Trainer, module: TrainerModule, *args: object) -> None:
        """One batch further."""
        self._advance(trainer.progress_bar_metrics)

    def on_train_epoch_end(self, trainer: Trainer, module: TrainerModule) -> None:
        """The bar stays with the epoch's metrics."""
        if self._bar is not None:
            self._show(trainer.progress_bar_metrics)
        self._close()

    def on_test_start(self, trainer: Trainer, module: TrainerModule) -> None:
        """A bar without a total: the loader is not known here."""
        self._open(None, "Test")

    def on_test_batch_end(self, trainer: Trainer, module: TrainerModule, *args: object) -> None:
        """One batch further."""
        self._advance(trainer.results.for_bar())

    def on_predict_start(self, trainer: Trainer, module: TrainerModule) -> None:
        """A bar without a total."""
        self._open(None, "Predict")

    def on_predict_batch_end(self, trainer: Trainer, module: TrainerModule, *args: object) -> None:
        """One batch further."""
        self._advance({})

    def _end(
        self, trainer: Trainer, module: TrainerModule, exception: BaseException | None = None
    ) -> None:
        """Done; the bar of an epoch that was not finished is closed before an error is shown."""
        self._close()

    on_train_end = on_test_end = on_predict_end = on_exception = _end
