"""torchinfo, torchsummary, thop, schedulefree, torch-optimizer."""

import torch
import torch_optimizer
import torchinfo
from schedulefree import AdamWScheduleFree, SGDScheduleFree


def net():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 4, 3, bias=False),
        torch.nn.BatchNorm2d(4),
        torch.nn.ReLU(),
        torch.nn.Flatten(),
        torch.nn.Linear(4 * 36, 5),
    )


print(
    torchinfo.summary(
        net(),
        (2, 1, 8, 8),
        verbose=0,
        col_names=("input_size", "output_size", "num_params", "mult_adds"),
    )
)

fs = [lambda p: AdamWScheduleFree(p, lr=0.01), lambda p: SGDScheduleFree(p, lr=0.01)]
for n in (
    "RAdam",
    "Lamb",
    "DiffGrad",
    "AdaBound",
    "Yogi",
    "QHAdam",
    "NovoGrad",
    "Ranger",
    "Shampoo",
    "MADGRAD",
    "AdaBelief",
    "Apollo",
):
    fs.append(lambda p, n=n: getattr(torch_optimizer, n)(p, lr=0.01))
for f in fs:
    torch.manual_seed(0)
    m = net()
    o = f(m.parameters())
    if hasattr(o, "train"):
        o.train()
    for _ in range(5):
        loss = torch.nn.functional.cross_entropy(m(torch.randn(4, 1, 8, 8)), torch.randint(5, (4,)))
        o.zero_grad()
        loss.backward()
        o.step()
    print(type(o).__name__, loss.item(), sum(p.sum().item() for p in m.parameters()))
