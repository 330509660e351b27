"""Differential equations and their adjoints, by torchdiffeq."""

import torch
from torchdiffeq import odeint, odeint_adjoint


class F(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.l = torch.nn.Linear(2, 2)

    def forward(self, t, y):
        return self.l(y).tanh()


torch.manual_seed(0)
f = F()
y = torch.tensor([[1.0, 0.0]], requires_grad=True)
t = torch.linspace(0, 1, 5)
for m in ("dopri5", "rk4", "euler", "adaptive_heun"):
    print(m, odeint(f, y, t, method=m)[-1])
odeint_adjoint(f, y, t)[-1].sum().backward()
print(y.grad, f.l.weight.grad)
