"""vit-pytorch, vector-quantize-pytorch, ema-pytorch, denoising-diffusion-pytorch."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
from ema_pytorch import EMA
from vector_quantize_pytorch import FSQ, LFQ, ResidualVQ, VectorQuantize
from vit_pytorch import SimpleViT, ViT

torch.manual_seed(0)
for m in (
    ViT(
        image_size=16, patch_size=4, num_classes=3, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8
    ),
    SimpleViT(
        image_size=16, patch_size=4, num_classes=3, dim=16, depth=2, heads=2, mlp_dim=32, dim_head=8
    ),
):
    y = m(torch.randn(2, 3, 16, 16))
    y.sum().backward()
    print(y)
x = torch.randn(1, 32, 8)
for q in (
    VectorQuantize(dim=8, codebook_size=16, decay=0.8),
    VectorQuantize(dim=8, codebook_size=16, use_cosine_sim=True),
    ResidualVQ(dim=8, num_quantizers=2, codebook_size=8),
    LFQ(codebook_size=256, dim=8),
):
    o = q(x)
    print(type(q).__name__, o[0].sum(), o[1].flatten()[:5], o[2].sum())
print(FSQ(levels=[8, 5, 5], dim=8)(x)[1].flatten()[:8])
n = torch.nn.Linear(3, 3)
e = EMA(n, beta=0.9, update_every=1)
with torch.no_grad():
    n.weight.add_(1)
e.update()
e.update()
print(e(torch.ones(1, 3)))
