"""Rearrangements, reductions and layers of einops."""

import torch
from einops import einsum, pack, rearrange, reduce, repeat, unpack
from einops.layers.torch import EinMix, Rearrange

x = torch.arange(24.0).reshape(2, 3, 4).requires_grad_()
print(
    rearrange(x, "a b c -> (a b) c").shape,
    reduce(x, "a b c -> b", "mean"),
    repeat(x, "a b c -> a b c d", d=2).shape,
)
layer = torch.nn.Sequential(Rearrange("a b c -> a (b c)"), torch.nn.Linear(12, 4))
print(layer(x).shape)
layer(x).sum().backward()
print(x.grad.shape)
print(einsum(x, x, "a b c, a d c -> a b d").sum())
print(EinMix("a b c -> a d", weight_shape="b c d", bias_shape="d", b=3, c=4, d=5)(x).shape)
p, ps = pack([x, x], "* b c")
print(p.shape, [u.shape for u in unpack(p, ps, "* b c")])
