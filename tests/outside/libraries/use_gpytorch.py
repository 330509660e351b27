"""A Gaussian process of gpytorch, trained and asked."""

import gpytorch
import torch


class GP(gpytorch.models.ExactGP):
    def __init__(self, x, y, likelihood):
        super().__init__(x, y, likelihood)
        self.mean_module = gpytorch.means.ConstantMean()
        self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

    def forward(self, x):
        return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))


x = torch.linspace(0, 1, 20)
y = torch.sin(6 * x)
likelihood = gpytorch.likelihoods.GaussianLikelihood()
m = GP(x, y, likelihood)
m.train()
likelihood.train()
o = torch.optim.Adam(m.parameters(), lr=0.1)
mll = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, m)
for _ in range(10):
    o.zero_grad()
    loss = -mll(m(x), y)
    loss.backward()
    o.step()
print(loss.item())
m.eval()
likelihood.eval()
with torch.no_grad():
    p = likelihood(m(torch.linspace(0, 1, 5)))
    print(p.mean, p.variance)
