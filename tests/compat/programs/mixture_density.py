"""A network that gives a mixture of normal densities, and one that gives quantiles."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import array, fill


class MDN(nn.Module):
    def __init__(self, n_hidden, n_gaussians):
        super(MDN, self).__init__()
        self.z_h = nn.Sequential(nn.Linear(1, n_hidden), nn.Tanh())
        self.z_pi = nn.Linear(n_hidden, n_gaussians)
        self.z_sigma = nn.Linear(n_hidden, n_gaussians)
        self.z_mu = nn.Linear(n_hidden, n_gaussians)

    def forward(self, x):
        z_h = self.z_h(x)
        return F.softmax(self.z_pi(z_h), -1), torch.exp(self.z_sigma(z_h)), self.z_mu(z_h)


def mdn_loss_fn(y, mu, sigma, pi):
    log = -0.5 * ((y.expand_as(mu) - mu) * torch.reciprocal(sigma)) ** 2
    log = log - sigma.log() - 0.5 * math.log(2 * math.pi)
    return -torch.logsumexp(log + pi.log(), dim=1).mean()


y = array(60, 1)
x = 7 * torch.sin(0.75 * y) + 0.5 * y + 0.3 * array(60, 1, seed=1)
network = fill(MDN(16, 3))
optimizer = torch.optim.Adam(network.parameters(), lr=0.02)
for epoch in range(8):
    pi, sigma, mu = network(x)
    loss = mdn_loss_fn(y, mu, sigma, pi)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(epoch, loss.data.tolist())

quantiles = torch.tensor([0.1, 0.5, 0.9])
net = fill(nn.Sequential(nn.Linear(1, 12), nn.Softplus(), nn.Linear(12, 3)))
optimizer = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.5)
for epoch in range(10):
    error = y - net(x)
    loss = torch.max(quantiles * error, (quantiles - 1) * error).sum(dim=1).mean()
    optimizer.zero_grad(), loss.backward(), optimizer.step()
print("pinball", loss.item(), torch.quantile(y, quantiles, dim=0).flatten())
nll = nn.GaussianNLLLoss()(mu[:, 0], y[:, 0], sigma[:, 0] ** 2)
print(nll.item(), nn.PoissonNLLLoss()(mu[:, 1], y[:, 0].abs()).item(), nn.HuberLoss()(mu, y).item())
