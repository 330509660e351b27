"""Regression by a Gaussian process: Cholesky factors, marginal likelihood, its gradient."""

import math

import torch
from common import array

torch.set_default_dtype(torch.float64)
x = torch.linspace(0, 1, 15).unsqueeze(-1)
y = torch.sin(6 * x).squeeze() + 0.1 * array(15).double()


class GP(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.log_length = torch.nn.Parameter(torch.tensor(-1.0))
        self.log_scale = torch.nn.Parameter(torch.tensor(0.0))
        self.log_noise = torch.nn.Parameter(torch.tensor(-2.0))

    def kernel(self, a, b):
        d = torch.cdist(a / self.log_length.exp(), b / self.log_length.exp())
        return (2 * self.log_scale).exp() * torch.exp(-0.5 * d.pow(2))

    def factor(self, x):
        return torch.linalg.cholesky(self.kernel(x, x) + self.log_noise.exp() * torch.eye(len(x)))

    def nll(self, x, y):
        L = self.factor(x)
        alpha = torch.cholesky_solve(y[:, None], L).squeeze(-1)
        return 0.5 * y @ alpha + L.diagonal().log().sum() + 0.5 * len(y) * math.log(2 * math.pi)

    def forward(self, x, y, new):
        L = self.factor(x)
        k = self.kernel(x, new)
        v = torch.linalg.solve_triangular(L, k, upper=False)
        mean = k.T @ torch.cholesky_solve(y[:, None], L)
        return mean.squeeze(), (self.kernel(new, new) - v.T @ v).diagonal()


gp = GP()
optimizer = torch.optim.Adam(gp.parameters(), lr=0.1)
for i in range(12):
    optimizer.zero_grad()
    loss = gp.nll(x, y)
    loss.backward()
    optimizer.step()
    if i % 3 == 0:
        print(i, loss.item(), gp.log_length.grad.item())
with torch.no_grad():
    mean, var = gp(x, y, torch.tensor([[0.25], [0.5], [2.0]]))
    print(mean, var.sqrt())
try:
    torch.linalg.cholesky(-torch.eye(2))
except torch.linalg.LinAlgError as error:
    print(str(error).split(":")[-1])
print(torch.linalg.cholesky_ex(-torch.eye(2)).info)
