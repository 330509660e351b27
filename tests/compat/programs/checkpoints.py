"""What a run keeps in a file, and goes on from: model, optimizer, schedule, seeds."""

import os
import tempfile
from dataclasses import asdict, dataclass, field

import torch
from common import array, fill, labels
from torch import nn, optim
from torch.optim.lr_scheduler import CosineAnnealingLR, LambdaLR, OneCycleLR, SequentialLR


@dataclass
class Config:
    lr: float = 0.05
    steps: int = 8
    layers: list = field(default_factory=lambda: [6, 8, 3])


def build(config):
    sizes = config.layers
    model = nn.Sequential(
        nn.Linear(sizes[0], sizes[1]),
        nn.BatchNorm1d(sizes[1]),
        nn.SiLU(),
        nn.Linear(sizes[1], sizes[2]),
    )
    optimizer = optim.SGD(model.parameters(), lr=config.lr, momentum=0.9, nesterov=True)
    warm = LambdaLR(optimizer, lambda step: (step + 1) / 3)
    cosine = CosineAnnealingLR(optimizer, T_max=config.steps)
    return fill(model), optimizer, SequentialLR(optimizer, [warm, cosine], milestones=[2])


def step(model, optimizer, scheduler, x, y):
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    return loss.item()


config = Config()
x, y = array(16, 6), labels(16, 3)
model, optimizer, scheduler = build(config)
with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "ckpt.pt")
    for i in range(4):
        print(i, step(model, optimizer, scheduler, x, y), scheduler.get_last_lr())
    torch.save(
        {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "scheduler": scheduler.state_dict(),
            "config": asdict(config),
            "iter_num": 4,
            "rng": torch.get_rng_state(),
        },
        path,
    )
    later = [step(model, optimizer, scheduler, x, y) for _ in range(3)]
    checkpoint = torch.load(path, map_location="cpu", weights_only=True)
again, optimizer, scheduler = build(Config(**checkpoint["config"]))
state_dict = {"module." + k: v for k, v in checkpoint["model"].items()}
for k in list(state_dict.keys()):
    if k.startswith("module."):
        state_dict[k[len("module.") :]] = state_dict.pop(k)
print(again.load_state_dict(state_dict))
optimizer.load_state_dict(checkpoint["optimizer"])
scheduler.load_state_dict(checkpoint["scheduler"])
torch.set_rng_state(checkpoint["rng"])
more = [step(again, optimizer, scheduler, x, y) for _ in range(3)]
print(later, more == later)
try:
    again.load_state_dict({"0.weight": torch.zeros(2, 2)})
except RuntimeError as error:
    print(error)
net = nn.DataParallel(again)
print([k for k in net.state_dict()][:2], net.module is again)
schedule = OneCycleLR(optim.Adam(again.parameters()), max_lr=0.1, total_steps=6)
print([round(schedule.get_last_lr()[0], 5)])
