"""Functions with a backward of one's own: a polynomial, straight through, a checkpoint."""

import math

import torch
from torch import Tensor
from torch.autograd import Function, gradcheck
from torch.autograd.function import once_differentiable
from torch.utils.checkpoint import checkpoint


class LegendrePolynomial3(Function):
    @staticmethod
    def forward(ctx, input):
        ctx.save_for_backward(input)
        return 0.5 * (5 * input**3 - 3 * input)

    @staticmethod
    def backward(ctx, grad_output):
        (input,) = ctx.saved_tensors
        return grad_output * 1.5 * (5 * input**2 - 1)


class Round(Function):
    @staticmethod
    def forward(ctx, x, levels: int):
        ctx.mark_non_differentiable()
        return torch.round(x * levels) / levels

    @staticmethod
    @once_differentiable
    def backward(ctx, g):
        return g, None


class Exp(Function):
    @staticmethod
    def forward(i: Tensor):
        return i.exp()

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(output)

    @staticmethod
    def backward(ctx, g):
        (result,) = ctx.saved_tensors
        return g * result


x = torch.linspace(-math.pi, math.pi, 200)
y = torch.sin(x)
a, b, c, d = (torch.full((), v, requires_grad=True) for v in (0.0, -1.0, 0.0, 0.3))
for t in range(201):
    loss = (a + b * LegendrePolynomial3.apply(c + d * x) - y).pow(2).sum()
    if t % 50 == 0:
        print(t, f"{loss.item():.3f}")
    loss.backward()
    with torch.no_grad():
        for p in (a, b, c, d):
            p -= 5e-6 * p.grad
            p.grad = None
print(f"y = {a.item():.3f} + {b.item():.3f} P3({c.item():.3f} + {d.item():.3f} x)")
inputs = torch.tensor([0.3, -0.8, 0.1], dtype=torch.float64, requires_grad=True)
print(gradcheck(LegendrePolynomial3.apply, (inputs,)), gradcheck(Exp.apply, (inputs,)))
print(str(LegendrePolynomial3.apply(inputs).grad_fn).split(" at ")[0])
print(Exp.apply(inputs).sum().grad_fn.name())
Round.apply(inputs, 4).sum().backward()
print(inputs.grad, Round.apply(inputs, 4))
w = torch.ones(3, requires_grad=True)
out = checkpoint(lambda v: torch.exp(torch.sin(v * w.double())), inputs, use_reentrant=False)
print(torch.autograd.grad(out.sum(), (inputs, w)))
