"""A small U-Net, schedulers and an autoencoder of diffusers."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
from diffusers import AutoencoderKL, DDIMScheduler, DDPMScheduler, UNet2DConditionModel, UNet2DModel

torch.manual_seed(0)
m = UNet2DModel(
    sample_size=16,
    in_channels=3,
    out_channels=3,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    down_block_types=("DownBlock2D", "AttnDownBlock2D"),
    up_block_types=("AttnUpBlock2D", "UpBlock2D"),
)
x = torch.randn(2, 3, 16, 16)
s = DDPMScheduler(num_train_timesteps=50)
n = torch.randn_like(x)
t = torch.randint(0, 50, (2,))
y = m(s.add_noise(x, n, t), t).sample
loss = torch.nn.functional.mse_loss(y, n)
loss.backward()
print(loss.item(), sum(p.grad.abs().sum().item() for p in m.parameters() if p.grad is not None))
for S in (DDPMScheduler, DDIMScheduler):
    s = S(num_train_timesteps=50)
    s.set_timesteps(4)
    g = torch.Generator().manual_seed(0)
    z = torch.randn(1, 3, 16, 16, generator=g)
    for t in s.timesteps:
        with torch.no_grad():
            z = s.step(m(z, t).sample, t, z, generator=g).prev_sample
    print(S.__name__, z.abs().sum().item())
v = AutoencoderKL(
    in_channels=3,
    out_channels=3,
    down_block_types=("DownEncoderBlock2D",),
    up_block_types=("UpDecoderBlock2D",),
    block_out_channels=(16,),
    latent_channels=4,
    norm_num_groups=8,
)
print(v(x).sample.sum())
c = UNet2DConditionModel(
    sample_size=8,
    in_channels=4,
    out_channels=4,
    layers_per_block=1,
    block_out_channels=(16, 32),
    norm_num_groups=8,
    down_block_types=("CrossAttnDownBlock2D", "DownBlock2D"),
    up_block_types=("UpBlock2D", "CrossAttnUpBlock2D"),
    cross_attention_dim=16,
    attention_head_dim=8,
)
print(c(torch.randn(1, 4, 8, 8), 3, torch.randn(1, 5, 16)).sample.sum())
