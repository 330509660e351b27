"""Learning to learn: gradients through a gradient step, with functional_call and torch.func."""

import torch
from common import array, fill
from torch import nn
from torch.func import functional_call, grad, jacrev, vmap

model = fill(nn.Sequential(nn.Linear(1, 16), nn.Tanh(), nn.Linear(16, 1)))
params = dict(model.named_parameters())


def loss_of(params, x, y):
    return nn.functional.mse_loss(functional_call(model, params, (x,)), y)


def adapted(params, x, y, lr=0.1):
    grads = grad(loss_of)(params, x, y)
    return {k: params[k] - lr * grads[k] for k in params}


def task(phase, seed):
    x = array(10, 1, seed=seed)
    return x, torch.sin(3 * x + phase)


meta = torch.optim.Adam(model.parameters(), lr=1e-2)
for iteration in range(4):
    xs, ys = zip(*[task(0.3 * k, iteration * 4 + k) for k in range(4)])
    x, y = torch.stack(xs), torch.stack(ys)

    def after(x, y):
        return loss_of(adapted(params, x[:5], y[:5]), x[5:], y[5:])

    losses = vmap(after)(x, y)
    meta.zero_grad()
    losses.mean().backward()
    meta.step()
    print(iteration, losses.detach(), model[0].weight.grad.norm().item())

fast = [p.detach().clone().requires_grad_() for p in model.parameters()]
x, y = task(1.0, 99)
h = torch.tanh(x @ fast[0].t() + fast[1])
loss = ((h @ fast[2].t() + fast[3] - y) ** 2).mean()
grads = torch.autograd.grad(loss, fast, create_graph=True)
second = sum((g**2).sum() for g in grads)
second.backward()
print(second.item(), [round(p.grad.norm().item(), 4) for p in fast])
per_sample = vmap(grad(loss_of), in_dims=(None, 0, 0))(
    {k: v.detach() for k, v in params.items()}, x.unsqueeze(1), y.unsqueeze(1)
)
print({k: v.shape for k, v in per_sample.items()})
J = jacrev(lambda v: functional_call(model, params, (v,)).squeeze())(x[0])
print(J.shape, torch.func.hessian(lambda v: model(v).sum())(x[0]).squeeze().item())
