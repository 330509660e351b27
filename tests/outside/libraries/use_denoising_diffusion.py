"""denoising-diffusion-pytorch."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
from denoising_diffusion_pytorch import GaussianDiffusion, Unet

torch.manual_seed(0)
m = Unet(dim=8, dim_mults=(1, 2), flash_attn=False)
d = GaussianDiffusion(m, image_size=16, timesteps=8)
loss = d(torch.rand(2, 3, 16, 16))
loss.backward()
print(loss.item())
print(d.sample(batch_size=1).sum())
