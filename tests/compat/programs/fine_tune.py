"""A checkpoint of one network is the start of another: partial loading, groups, accumulation."""

import io
from dataclasses import asdict, dataclass, field
from typing import Optional

import torch
from common import array, fill, labels
from torch import Tensor, nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import ExponentialLR, ReduceLROnPlateau


@dataclass
class Config:
    hidden: int = 16
    lr: float = 1e-2
    betas: tuple = field(default=(0.9, 0.99))
    dropout: Optional[float] = None


class MLP(nn.Module):
    def __init__(self, config: Config, classes: int) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Linear(6, config.hidden), nn.LayerNorm(config.hidden), nn.GELU()
        )
        self.dropout = nn.Dropout(config.dropout) if config.dropout else nn.Identity()
        self.head = nn.Linear(config.hidden, classes)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.dropout(self.body(x)))


config = Config()
old = fill(MLP(config, 3))
buffer = io.BytesIO()
torch.save({"config": asdict(config), "model": old.state_dict(), "epoch": 7}, buffer)
buffer.seek(0)
checkpoint = torch.load(buffer, map_location="cpu", weights_only=True)
new = fill(MLP(Config(**{**checkpoint["config"], "dropout": 0.0}), 5), seed=4)
shapes = {k: v.shape for k, v in new.state_dict().items()}
state = {k: v for k, v in checkpoint["model"].items() if v.shape == shapes.get(k)}
print(new.load_state_dict(state, strict=False), checkpoint["epoch"])
try:
    new.load_state_dict(checkpoint["model"])
except RuntimeError as error:
    print(str(error).splitlines()[1].strip()[:90])
optimizer = torch.optim.AdamW(
    [{"params": new.body.parameters(), "lr": 1e-3}, {"params": new.head.parameters()}],
    lr=config.lr,
    betas=config.betas,
)
plateau = ReduceLROnPlateau(optimizer, mode="min", factor=0.5, patience=0, threshold=0.05)
x, y = array(24, 6, seed=8), labels(24, 5, seed=8)
for epoch in range(5):
    optimizer.zero_grad()
    total = 0.0
    for part in range(3):  # three small batches are one step
        rows = slice(8 * part, 8 * part + 8)
        loss = F.cross_entropy(new(x[rows]), y[rows]) / 3
        loss.backward()
        total += loss.detach()
    optimizer.step()
    plateau.step(total)
    print(epoch, f"{total:.4f}", [round(g["lr"], 6) for g in optimizer.param_groups])
decay = ExponentialLR(optimizer, gamma=0.5)
decay.load_state_dict(decay.state_dict())
again = torch.optim.AdamW(new.parameters(), lr=1.0)
print(sorted(optimizer.state_dict()["state"][0]), len(again.state_dict()["param_groups"]))
print(Config(lr=1), new.body[1], [tuple(p.shape) for p in new.head.parameters()])
torch.testing.assert_close(state["body.0.weight"], checkpoint["model"]["body.0.weight"])
try:
    torch.testing.assert_close(
        torch.tensor([1.0, 2.0]), torch.tensor([1.0, 2.1]), rtol=1e-3, atol=0.0
    )
except AssertionError as error:
    print(error)
