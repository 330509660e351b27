"""Sparse softmaxes of entmax and their gradients."""

import torch
from entmax import entmax15, entmax_bisect, sparsemax

x = torch.tensor([[1.0, 2.0, 3.0, 0.5]], requires_grad=True)
for f in (sparsemax, entmax15):
    y = f(x, -1)
    y[0, 2].backward(retain_graph=True)
    print(y, x.grad)
print(entmax_bisect(x, 1.5))
