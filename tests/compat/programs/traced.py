"""Traced and scripted modules, saved and loaded; torch.compile around a step."""

import io
from typing import List

import torch
from common import array, fill
from torch import nn


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor, h: torch.Tensor):
        if float(x.sum()) > 0:
            h = torch.tanh(self.linear(x) + h)
        else:
            h = torch.relu(h - self.linear(x))
        return h, h.mean()


@torch.jit.script
def running(values: List[float], decay: float) -> float:
    total = 0.0
    for v in values:
        total = decay * total + (1 - decay) * v
    return total


gate = fill(Gate())
scripted = torch.jit.script(gate)
x, h = array(3, 4).abs(), array(3, 4, seed=1)
for sign in (1, -1):
    ours, eager = scripted(sign * x, h), gate(sign * x, h)
    print(torch.allclose(ours[0], eager[0]), f"{ours[1].item():.4f}")
print(f"{running([1.0, 2.0, 3.0], 0.5):.4f}", "prim::If" in str(scripted.graph))
net = fill(
    nn.Sequential(
        nn.Conv1d(2, 4, 3),
        nn.BatchNorm1d(4),
        nn.ReLU(),
        nn.AdaptiveMaxPool1d(2),
        nn.Flatten(),
        nn.Linear(8, 3),
    )
).eval()
example = array(2, 2, 9)
traced = torch.jit.trace(net, example)
buffer = io.BytesIO()
torch.jit.save(traced, buffer)
buffer.seek(0)
loaded = torch.jit.load(buffer)
with torch.no_grad():
    print(torch.allclose(loaded(example), net(example), atol=1e-6), loaded(array(5, 2, 9)).shape)
frozen = torch.jit.freeze(traced)
print(torch.allclose(frozen(example), net(example), atol=1e-5))
print(sorted(loaded.state_dict())[:3], traced.training)


def step(w, x, y):
    return ((x @ w - y) ** 2).mean() + 0.1 * w.abs().sum()


w = array(4, 1, seed=3).requires_grad_()
loss = step(w, array(6, 4), array(6, 1, seed=2))
loss.backward()
print(f"{loss.item():.4f}", w.grad.flatten())
g = torch.func.grad(step)(w.detach(), array(6, 4), array(6, 1, seed=2))
print(torch.allclose(g, w.grad, atol=1e-6))
