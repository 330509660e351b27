"""Modules, losses and optimizers with their tensors on a GPU: the same steps as on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from toytorch import nn

pytestmark = pytest.mark.usefixtures("device")


def image(*shape: int) -> Any:
    return torch.from_numpy(np.random.default_rng(0).random(shape, dtype=np.float32))


class Recurrent(nn.Module):
    def __init__(self, kind: str) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 6, padding_idx=0)
        self.cells = getattr(nn, kind)(6, 5, num_layers=2, batch_first=True)
        self.out = nn.Linear(5, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.cells(self.table(x))[0][:, -1])


class Attending(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(11, 8)
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
        self.out = nn.Linear(8, 3)

    def forward(self, x: Any) -> Any:
        return self.out(self.layer(self.table(x)).mean(1))


def words() -> Any:
    return torch.from_numpy(np.random.default_rng(1).integers(0, 11, (4, 7)))


NETWORKS: dict[str, tuple[Callable[[], Any], Callable[[], Any]]] = {
    "perceptron": (
        lambda: nn.Sequential(nn.Linear(6, 8), nn.GELU(), nn.LayerNorm(8), nn.Linear(8, 3)),
        lambda: image(4, 6),
    ),
    "convolution": (
        lambda: nn.Sequential(
            nn.Conv2d(2, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(4, 4, 3, groups=2, stride=2), nn.AvgPool2d(2, 1), nn.Flatten(),
            nn.Linear(4 * 2 * 2, 3),
        ),
        lambda: image(4, 2, 14, 14),
    ),
    "upsampling": (
        lambda: nn.Sequential(
            nn.ConvTranspose2d(2, 3, 3, stride=2), nn.GroupNorm(3, 3), nn.SiLU(),
            nn.Upsample(scale_factor=2, mode="bilinear"), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        ),
        lambda: image(4, 2, 5, 5),
    ),
    "lstm": (lambda: Recurrent("LSTM"), words),
    "gru": (lambda: Recurrent("GRU"), words),
    "transformer": (Attending, words),
}  # fmt: skip
OPTIMIZERS: dict[str, Callable[[Any], Any]] = {
    "SGD": lambda p: torch.optim.SGD(p, 0.05, momentum=0.9, weight_decay=1e-3, nesterov=True),
    "Adam": lambda p: torch.optim.Adam(p, 0.01, amsgrad=True),
    "AdamW": lambda p: torch.optim.AdamW(p, 0.01),
    "RMSprop": lambda p: torch.optim.RMSprop(p, 0.01, centered=True, momentum=0.5),
    "Adagrad": lambda p: torch.optim.Adagrad(p, 0.05),
    "Adadelta": lambda p: torch.optim.Adadelta(p),
    "Adamax": lambda p: torch.optim.Adamax(p),
    "NAdam": lambda p: torch.optim.NAdam(p),
    "RAdam": lambda p: torch.optim.RAdam(p),
    "ASGD": lambda p: torch.optim.ASGD(p),
    "Rprop": lambda p: torch.optim.Rprop(p),
    "Muon": lambda p: torch.optim.Muon([q for q in p if q.ndim == 2]),
    "Adafactor": lambda p: torch.optim.Adafactor(p),
}


def trained(network: str, optimizer: str, device: str, steps: int = 3) -> list[Any]:
    """Losses of some steps, and the parameters after them."""
    torch.manual_seed(0)
    make, data = NETWORKS[network]
    model = make().to(device)
    x, y = data().to(device), torch.tensor([0, 1, 2, 1]).to(device)
    rule = OPTIMIZERS[optimizer](list(model.parameters()))
    made = []
    for _ in range(steps):
        rule.zero_grad()
        loss = nn.functional.cross_entropy(model(x), y, label_smoothing=0.1)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        rule.step()
        made.append(loss)
    made += model.state_dict().values()
    assert all(t.device.type == device for t in made)
    for state in rule.state.values():
        for name, value in state.items():
            if isinstance(value, torch.Tensor) and name != "step" and value.ndim:
                assert value.device.type == device, name
    return [t.detach().cpu().numpy() for t in made]


def check(network: str, optimizer: str) -> None:
    for a, b in zip(trained(network, optimizer, "cuda"), trained(network, optimizer, "cpu")):
        np.testing.assert_allclose(a, b, rtol=2e-3, atol=2e-4)


@pytest.mark.parametrize("network", NETWORKS)
def test_networks(network: str) -> None:
    check(network, "SGD")


@pytest.mark.parametrize("optimizer", OPTIMIZERS)
def test_optimizers(optimizer: str) -> None:
    check("perceptron", optimizer)


def test_dropout_draws_from_the_devices_generator() -> None:
    torch.manual_seed(1)
    x = torch.ones(1000, device="cuda")
    a = nn.functional.dropout(x, 0.25)
    torch.manual_seed(1)
    b = nn.functional.dropout(x, 0.25)
    assert a.device.type == "cuda" and (a == b).all()
    assert 0.2 < float((a == 0).float().mean()) < 0.3


def test_autocast_and_scaler() -> None:
    model = nn.Linear(4, 2).to("cuda")
    rule = torch.optim.SGD(model.parameters(), 0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=8.0)
    with torch.autocast("cuda", torch.float16):
        out = model(torch.ones(3, 4, device="cuda"))
        assert out.dtype is torch.float16
        loss = out.float().square().mean()
    scaler.scale(loss).backward()
    scaler.step(rule)
    scaler.update()
    assert torch.isfinite(model.weight).all()


def test_checkpoints_go_from_device_to_device(tmp_path: Any) -> None:
    model = nn.Linear(3, 2).to("cuda")
    torch.save(model.state_dict(), tmp_path / "m.pt")
    here = torch.load(tmp_path / "m.pt", map_location="cpu")
    assert here["weight"].device.type == "cpu"
    assert torch.load(tmp_path / "m.pt")["weight"].device.type == "cuda"
    np.testing.assert_array_equal(here["weight"].numpy(), model.weight.detach().cpu().numpy())
