"""Twelve rules of pytorch_optimizer, three steps each."""

import pytorch_optimizer as po
import torch

torch.manual_seed(0)
x = torch.randn(64, 4)  # so many that no curvature is singular
for name in (
    "lion",
    "adabelief",
    "lamb",
    "adan",
    "ranger21",
    "sophiah",
    "prodigy",
    "shampoo",
    "yogi",
    "adafactor",
    "lars",
    "nadam",
):
    m = torch.nn.Linear(4, 4)
    C = po.load_optimizer(name)
    o = C(m.parameters()) if name != "ranger21" else C(m.parameters(), num_iterations=10)
    for _ in range(3):
        o.zero_grad()
        m(x).pow(2).sum().backward(create_graph=(name == "sophiah"))
        o.step()
    print(name, m.weight.sum().item())
