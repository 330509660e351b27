"""e3nn: spherical harmonics, tensor products."""

import torch
from e3nn import o3

torch.manual_seed(0)
print(o3.Irreps("1x0e+1x1o").dim, o3.spherical_harmonics([0, 1, 2], torch.randn(2, 3), True))
print(o3.wigner_3j(1, 1, 2).abs().sum(), o3.rand_matrix().shape)
