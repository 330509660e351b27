"""A network that has to satisfy u'' = -pi^2 sin(pi x): second derivatives in the loss."""

import math

import torch
from common import fill
from torch import autograd, nn


class PINN(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 16), nn.Tanh(), nn.Linear(16, 1)
        )

    def forward(self, x):
        return self.net(x)


def derivative(y, x):
    return autograd.grad(
        y, x, grad_outputs=torch.ones_like(y), create_graph=True, retain_graph=True
    )[0]


model = fill(PINN())
optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
x = torch.linspace(0, 1, 20).reshape(-1, 1).requires_grad_(True)
ends = torch.tensor([[0.0], [1.0]])
for epoch in range(10):
    optimizer.zero_grad()
    u = model(x)
    u_xx = derivative(derivative(u, x), x)
    residual = u_xx + math.pi**2 * torch.sin(math.pi * x)
    loss = residual.square().mean() + 10 * model(ends).square().mean()
    loss.backward()
    optimizer.step()
    if epoch % 3 == 0:
        print(epoch, loss.item())
lbfgs = torch.optim.LBFGS(model.parameters(), max_iter=5, line_search_fn="strong_wolfe")


def closure():
    lbfgs.zero_grad()
    u = model(x)
    residual = derivative(derivative(u, x), x) + math.pi**2 * torch.sin(math.pi * x)
    loss = residual.square().mean() + 10 * model(ends).square().mean()
    loss.backward()
    return loss


print(lbfgs.step(closure).item())
print(torch.func.jvp(lambda v: v.sin(), (torch.tensor(1.0),), (torch.tensor(2.0),)))
