"""Affine coupling layers: a density that can be computed, its inverse, and its training."""

import math

import torch
from common import array, fill
from torch import nn


class Coupling(nn.Module):
    def __init__(self, flip):
        super().__init__()
        self.flip = flip
        self.net = nn.Sequential(nn.Linear(1, 16), nn.ReLU(), nn.Linear(16, 2))
        self.scale = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        a, b = x.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).unbind(dim=1)
        s = torch.tanh(s).unsqueeze(1) * self.scale.exp()
        b = b * torch.exp(s) + t.unsqueeze(1)
        return torch.cat([b, a] if self.flip else [a, b], dim=1), s.sum(dim=1)

    def inverse(self, y):
        a, b = y.chunk(2, dim=1)
        if self.flip:
            a, b = b, a
        s, t = self.net(a).unbind(dim=1)
        b = (b - t.unsqueeze(1)) * torch.exp(-torch.tanh(s).unsqueeze(1) * self.scale.exp())
        return torch.cat([b, a] if self.flip else [a, b], dim=1)


class Flow(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(Coupling(bool(i % 2)) for i in range(4))
        self.register_buffer("loc", torch.zeros(2), persistent=False)

    def log_prob(self, x):
        total = x.new_zeros(len(x))
        for layer in self.layers:
            x, log_det = layer(x)
            total += log_det
        base = -0.5 * ((x - self.loc) ** 2).sum(1) - math.log(2 * math.pi)
        return base + total


noise = array(64, 2)
data = torch.stack([noise[:, 0], noise[:, 0] ** 2 + 0.3 * noise[:, 1]], dim=1)
flow = fill(Flow())
optimizer = torch.optim.Adamax(flow.parameters(), lr=0.01)
for step in range(6):
    optimizer.zero_grad()
    loss = -flow.log_prob(data).mean()
    loss.backward()
    optimizer.step()
    print(step, loss.item())
with torch.inference_mode():
    z = data
    for layer in flow.layers:
        z, _ = layer(z)
    for layer in reversed(flow.layers):
        z = layer.inverse(z)
print((z - data).abs().max().item() < 1e-4)
J = torch.autograd.functional.jacobian(lambda v: flow.layers[0](v[None])[0][0], data[0])
print(torch.linalg.slogdet(J)[1].item() - flow.layers[0](data[:1])[1].item() < 1e-5)
