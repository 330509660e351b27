"""A network as the right-hand side of an equation, integrated by Runge and Kutta's method."""

import torch
import torch.nn as nn
from common import fill


class ODEFunc(nn.Module):
    def __init__(self):
        super(ODEFunc, self).__init__()
        self.net = nn.Sequential(nn.Linear(2, 20), nn.Tanh(), nn.Linear(20, 2))
        for m in self.net.modules():
            if isinstance(m, nn.Linear):
                nn.init.normal_(m.weight, mean=0, std=0.1)
                nn.init.constant_(m.bias, val=0)

    def forward(self, t, y):
        return self.net(y**3)


def rk4(func, y, t):
    found = [y]
    for t0, t1 in zip(t[:-1], t[1:]):
        h = t1 - t0
        k1 = func(t0, y)
        k2 = func(t0 + h / 2, y + h / 2 * k1)
        k3 = func(t0 + h / 2, y + h / 2 * k2)
        k4 = func(t1, y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        found.append(y)
    return torch.stack(found)


true_A = torch.tensor([[-0.1, 2.0], [-2.0, -0.1]])
t = torch.linspace(0.0, 2.0, 20)
y0 = torch.tensor([[2.0, 0.0]])
with torch.no_grad():
    true_y = rk4(lambda t, y: torch.mm(y**3, true_A), y0, t)
func = fill(ODEFunc())
optimizer = torch.optim.RMSprop(func.parameters(), lr=1e-2)
for itr in range(1, 6):
    optimizer.zero_grad()
    pred_y = rk4(func, y0, t)
    loss = torch.mean(torch.abs(pred_y - true_y))
    loss.backward()
    optimizer.step()
    print("Iter {:04d} | Total Loss {:.6f}".format(itr, loss.item()))
print(true_y[::5, 0])
