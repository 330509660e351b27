"""Stochastic differential equations of torchsde."""

import torch
import torchsde


class SDE(torch.nn.Module):
    noise_type = "diagonal"
    sde_type = "ito"

    def __init__(self):
        super().__init__()
        self.f_ = torch.nn.Linear(3, 3)
        self.g_ = torch.nn.Linear(3, 3)

    def f(self, t, y):
        return self.f_(y)

    def g(self, t, y):
        return self.g_(y).sigmoid()


torch.manual_seed(0)
s = SDE()
y0 = torch.ones(4, 3)
bm = torchsde.BrownianInterval(
    t0=0.0, t1=1.0, size=(4, 3), entropy=3, levy_area_approximation="space-time"
)
for method in ("euler", "milstein", "srk"):
    y = torchsde.sdeint(s, y0, torch.linspace(0, 1, 5), bm=bm, method=method, dt=0.1)
    print(method, y[-1])
    y.sum().backward()
    print(s.f_.weight.grad.sum())
y = torchsde.sdeint_adjoint(s, y0, torch.linspace(0, 1, 3), bm=bm, method="euler", dt=0.1)
y.sum().backward()
print(s.f_.weight.grad.sum())
