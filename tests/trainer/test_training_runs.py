"""Real training: the examples, PyTorch step by step beside the language models, fine-tuning."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from toytorch import nn
from toytorch.trainer import Trainer, TrainerModule
from toytorch.utils.data import DataLoader, TensorDataset
from toytorch.vision import datasets, models

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def example(name: str, on_pytorch: bool = False) -> Any:
    """A script of examples/ as a module; on PyTorch, with nothing but its imports changed."""
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    label = f"example_{name}{'_torch' if on_pytorch else ''}"
    if on_pytorch:
        kept = "from toytorch.vision"
        source = "\n".join(
            line
            if line.startswith(kept)
            else line.replace("import toytorch as torch", "import torch").replace(
                "from toytorch", "from torch"
            )
            for line in source.split("\n")
        )
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(label, None))
    sys.modules[label] = module
    exec(compile(source, label, "exec"), vars(module))
    return module


def test_a_cnn_reads_the_digits():
    right, seconds = example("digits_cnn").main()
    assert right >= 0.985
    assert seconds < 60


def test_the_tutorial(tmp_path, capsys):
    assert example("tutorial").main(epochs=4, folder=str(tmp_path)) > 0.9
    out = capsys.readouterr().out
    assert "<All keys matched successfully>" in out
    assert "(linear_relu_stack): Sequential(" in out


def test_the_tutorial_runs_on_pytorch_too(tmp_path, capsys):
    oracle = pytest.importorskip("torch", reason="PyTorch, the oracle, is absent")
    script = example("tutorial", on_pytorch=True)
    assert script.torch is oracle
    script.digits = lambda train: tuple(
        oracle.tensor(part.numpy()) for part in datasets.digits(train=train)
    )
    assert script.main(epochs=3, folder=str(tmp_path)) > 0.9


@pytest.mark.parametrize("kind", ["LSTM", "GPT"])
def test_fifty_steps_beside_pytorch(kind):
    """The same starting weights and batches: the losses stay within 1e-3 of each other."""
    oracle = pytest.importorskip("torch", reason="PyTorch, the oracle, is absent")
    here, there = example("language_model"), example("language_model", on_pytorch=True)
    story = datasets.text()
    letters = sorted(set(story))
    data = np.array([letters.index(letter) for letter in story])
    torch.manual_seed(0)
    mine, theirs = getattr(here, kind)(len(letters)), getattr(there, kind)(len(letters))
    theirs.load_state_dict({k: oracle.tensor(v.numpy()) for k, v in mine.state_dict().items()})
    optimizers = (
        torch.optim.AdamW(mine.parameters(), lr=3e-3),
        oracle.optim.AdamW(theirs.parameters(), lr=3e-3),
    )
    rng, losses = np.random.default_rng(0), []
    for _ in range(50):
        at = rng.integers(0, len(data) - 48, (16, 1)) + np.arange(49)
        pair = []
        for m, script, model, optimizer in (
            (torch, here, mine, optimizers[0]),
            (oracle, there, theirs, optimizers[1]),
        ):
            pieces = m.tensor(data[at])
            loss = script.loss_of(model, pieces[:, :-1], pieces[:, 1:])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            pair.append(loss.item())
        losses.append(pair)
    ours, expected = np.array(losses).T
    assert expected[-1] < expected[0] - 1
    np.testing.assert_allclose(ours, expected, atol=1e-3, rtol=0)


def test_the_language_model_learns_and_writes(capsys):
    first, last = example("language_model").main("lstm", 60)
    assert last < first - 1.2
    assert "The machine " in capsys.readouterr().out


class FineTuned(TrainerModule):
    """The shipped LeNet, frozen but for a new last layer that tells even from odd."""

    def __init__(self) -> None:
        super().__init__()
        self.backbone = models.lenet(weights="digits").requires_grad_(False)
        self.backbone.classifier[4] = nn.Linear(84, 2)

    def training_step(self, batch: Any, batch_idx: int) -> Any:
        images, labels = batch
        return nn.functional.cross_entropy(self.backbone(images), labels)

    def test_step(self, batch: Any, batch_idx: int) -> None:
        images, labels = batch
        self.log("accuracy", (self.backbone(images).argmax(1) == labels).float().mean())

    def configure_optimizers(self) -> Any:
        return torch.optim.Adam((p for p in self.parameters() if p.requires_grad), lr=0.01)


def parity(train: bool) -> Any:
    images, labels = datasets.digits(train=train)
    return DataLoader(TensorDataset(images, labels % 2), batch_size=64, shuffle=train)


def test_fine_tuning_trains_the_last_layer_only():
    torch.manual_seed(0)
    model = FineTuned()
    before = {name: p.clone() for name, p in model.named_parameters()}
    trainer = Trainer(max_epochs=3, enable_progress_bar=False)
    trainer.fit(model, parity(train=True))
    changed = [name for name, p in model.named_parameters() if not torch.equal(p, before[name])]
    assert changed == ["backbone.classifier.4.weight", "backbone.classifier.4.bias"]
    assert all(p.grad is None for name, p in model.named_parameters() if name not in changed)
    assert trainer.test(model, parity(train=False))[0]["accuracy"] > 0.97


def saved_by(model: Any, images: Any, labels: Any) -> tuple[Any, list[Any]]:
    """The loss, and the shapes of what its graph saved."""
    shapes = []

    def pack(t: Any) -> Any:
        shapes.append(tuple(t.shape))
        return t

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        loss = nn.functional.cross_entropy(model(images), labels)
    return loss, shapes


def nodes(loss: Any) -> list[str]:
    """The names of the graph's nodes."""
    found, waiting, seen = [], [loss.grad_fn], set()
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found.append(type(node).__name__)
        waiting += [after for after, _ in node.next_functions]
    return sorted(found)


def test_a_frozen_backbone_saves_nothing():
    images, labels = datasets.digits(train=False)
    model = FineTuned().backbone
    loss, shapes = saved_by(model, images[:32], labels[:32] % 2)
    assert nodes(loss) == [
        "AccumulateGrad",
        "AccumulateGrad",
        "AddmmBackward0",
        "LogSoftmaxBackward0",
        "NllLossBackward0",
    ]
    # the last layer's input, log-probabilities, labels; nothing of a convolution or a pool
    assert (32, 84) in shapes
    assert all(len(shape) < 3 for shape in shapes)
    _, all_shapes = saved_by(model.requires_grad_(True), images[:32], labels[:32] % 2)
    assert any(len(shape) == 4 for shape in all_shapes)
    assert len(all_shapes) > 3 * len(shapes)
