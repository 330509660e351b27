"""The trainer's tests once more, with every model on a simulated device while it is used."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import toytorch as torch
from tests.trainer import test_resume, test_trainer, test_training_runs
from toytorch.trainer import Trainer

LEFT_OUT = (
    "test_a_killed_process",  # it trains in a process of its own, which has no device
    "test_the_tutorial_runs_on_pytorch_too",
    "test_the_loop_is_the_loop_that_one_would_write",  # its dropout draws from the CPU's generator
)
for module in (test_trainer, test_resume, test_training_runs):
    for name, test in vars(module).items():
        if name.startswith("test_") and name not in LEFT_OUT:
            globals()[name] = test


@pytest.fixture(autouse=True)
def sim(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A device, and trainers that use it: the model is there for a call, and comes back after it."""

    def on_device(method: str) -> Any:
        original = getattr(Trainer, method)

        def run(self: Trainer, model: Any = None, *args: Any, **more: Any) -> Any:
            if not isinstance(model, torch.nn.Module):
                return original(self, model, *args, **more)
            model.cuda()
            try:
                assert all(p.is_cuda for p in model.parameters())
                return original(self, model, *args, **more)
            finally:
                model.cpu()

        return run

    for method in ("fit", "validate", "test", "predict"):
        monkeypatch.setattr(Trainer, method, on_device(method))
    with torch.cuda.simulate(model="A100") as made:
        yield made
