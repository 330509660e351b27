"""Variational inference and MCMC of pyro."""

import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS, SVI, Predictive, Trace_ELBO
from pyro.infer.autoguide import AutoMultivariateNormal, AutoNormal

pyro.set_rng_seed(0)
x = torch.randn(30)
y = 2 * x + 0.5 + 0.1 * torch.randn(30)


def model(x, y=None):
    a = pyro.sample("a", dist.Normal(0.0, 3.0))
    b = pyro.sample("b", dist.Normal(0.0, 3.0))
    s = pyro.sample("s", dist.LogNormal(0.0, 1.0))
    with pyro.plate("data", len(x)):
        return pyro.sample("y", dist.Normal(a * x + b, s), obs=y)


for G in (AutoNormal, AutoMultivariateNormal):
    pyro.clear_param_store()
    g = G(model)
    svi = SVI(model, g, pyro.optim.Adam({"lr": 0.05}), Trace_ELBO())
    for _i in range(40):
        loss = svi.step(x, y)
    print(G.__name__, loss, {k: v.item() for k, v in g.median().items()})
pyro.set_rng_seed(1)
k = MCMC(NUTS(model), num_samples=10, warmup_steps=10, disable_progbar=True)
k.run(x, y)
print({n: v.mean().item() for n, v in k.get_samples().items()})
print(Predictive(model, k.get_samples())(x)["y"].shape)
