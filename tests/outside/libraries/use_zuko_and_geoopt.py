"""zuko flows and geoopt."""

import geoopt
import torch
import zuko

torch.manual_seed(0)
for F in (zuko.flows.NSF, zuko.flows.MAF):
    f = F(features=2, transforms=2, hidden_features=(8, 8))
    x = torch.randn(5, 2)
    loss = -f().log_prob(x).mean()
    loss.backward()
    print(loss.item())
    print(f().sample((3,)).sum().item())
p = geoopt.ManifoldParameter(torch.randn(4), manifold=geoopt.Sphere())
with torch.no_grad():
    p.proj_()
o = geoopt.optim.RiemannianAdam([p], lr=0.1)
for _ in range(3):
    o.zero_grad()
    loss = (p - torch.ones(4)).square().sum()
    loss.backward()
    o.step()
    print(loss.item())
