"""A pass over data without learning: validation, test, prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from toytorch.autograd.modes import no_grad
from toytorch.facts.hints import Fn
from toytorch.trainer.data import number_of_batches, to_device
from toytorch.trainer.results import Results

if TYPE_CHECKING:
    from toytorch.trainer.trainer import Trainer
    from toytorch.utils.data.dataloader import DataLoader


STEPS = {"validation": "validation_step", "test": "test_step", "predict": "predict_step"}


def evaluate(
    trainer: Any, kind: str, loader: Any, limit: int | None, keep: list[Any] | None = None
) -> dict[str, float]:
    """Runs the model's step on every batch, in eval mode and without gradients; the metrics.

    `keep` collects what the steps return. Every module gets back the mode it had.
    """
    model, results = trainer.model, Results(training=False)
    modes = [(module, module.training) for module in model.modules()]
    step, before = getattr(model, STEPS[kind]), trainer.results
    trainer.results = results
    model.eval()
    try:
        with no_grad():
            trainer.call(f"on_{kind}_start")
            trainer.call(f"on_{kind}_epoch_start")
            _pass(trainer, kind, step, loader, number_of_batches(loader, limit), keep)
            if not trainer.interrupted:
                trainer.call_model(f"on_{kind}_epoch_end")
                trainer.publish(results, trainer.global_step, epoch=True)
                trainer.call_callbacks(f"on_{kind}_epoch_end")
                trainer.call(f"on_{kind}_end")
    finally:
        trainer.results = before
        for module, mode in modes:
            module.training = mode
    return results.by_name()


def _pass(
    trainer: Trainer,
    kind: str,
    step: Fn,
    loader: DataLoader,
    total: int | None,
    keep: list[Any] | None,
) -> None:
    results = trainer.results
    for index, batch in enumerate(loader if total != 0 else ()):
        if index == total or trainer.interrupted:
            return
        batch = to_device(batch, trainer.model.device)
        results.batch = batch
        trainer.call(f"on_{kind}_batch_start", batch, index)
        output = step(batch, index)
        trainer.call(f"on_{kind}_batch_end", output, batch, index)
        results.batch = None
        if keep is not None:
            keep.append(output)
