"""Denoising diffusion in two dimensions: schedule buffers, time embeddings, mean weights."""

import math

import torch
import torch.nn as nn
from common import array, fill
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn


class TimeEmbedding(nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.dim = dim

    def forward(self, t):
        half = self.dim // 2
        freq = torch.exp(-math.log(10000) * torch.arange(half, dtype=torch.float32) / half)
        angles = t[:, None].float() * freq[None]
        return torch.cat([angles.sin(), angles.cos()], dim=-1)


class Denoiser(nn.Module):
    def __init__(self, steps=40, width=32):
        super().__init__()
        betas = torch.linspace(1e-4, 0.2, steps)
        alphas_bar = torch.cumprod(1.0 - betas, dim=0)
        self.register_buffer("betas", betas)
        self.register_buffer("alphas_bar", alphas_bar, persistent=False)
        self.time = nn.Sequential(TimeEmbedding(16), nn.Linear(16, width), nn.SiLU())
        self.inp, self.out = nn.Linear(2, width), nn.Linear(width, 2)
        self.mid = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.norm = nn.LayerNorm(width)

    def forward(self, x, t):
        h = self.inp(x) + self.time(t)
        for layer in self.mid:
            h = h + nn.functional.silu(layer(self.norm(h)))
        return self.out(h)

    def q_sample(self, x0, t, noise):
        a = self.alphas_bar[t].unsqueeze(-1)
        return a.sqrt() * x0 + (1 - a).sqrt() * noise

    @torch.no_grad()
    def p_step(self, x, i, noise):
        t = torch.full((x.shape[0],), i, dtype=torch.long)
        beta, bar = self.betas[i], self.alphas_bar[i]
        mean = (x - beta / (1 - bar).sqrt() * self(x, t)) / (1 - beta).sqrt()
        return mean + beta.sqrt() * noise if i > 0 else mean


torch.manual_seed(0)
model = fill(Denoiser())
ema = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
angle = torch.linspace(0, 2 * math.pi, 65)[:-1]
data = torch.stack([angle.cos(), angle.sin()], dim=1)
for step in range(20):
    t = (torch.arange(64) * 7 + step * 3) % 40
    noise = array(64, 2, seed=step)
    loss = nn.functional.mse_loss(model(model.q_sample(data, t, noise), t), noise)
    optimizer.zero_grad()
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    ema.update_parameters(model)
    if step % 5 == 4:
        print(step, f"loss {loss.item():.4f} norm {norm.item():.3f}")
x = array(16, 2, seed=77)
for i in reversed(range(40)):
    x = ema.module.p_step(x, i, array(16, 2, seed=100 + i))
state = model.state_dict()
print(f"{x.norm(dim=1).mean().item():.2f}", "betas" in state, "alphas_bar" in state)
