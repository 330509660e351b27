import torch
import torch.nn.functional as F
from data import fill, waves
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width)
        )

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.norm1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.norm2(x))


device = "cuda"
model = nn.Sequential(fill(Block(16, 4)), fill(Block(16, 4)), nn.Linear(16, 5)).to(device)
fill(model[2])
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.1)
x, y = waves(4, 9, 16).to(device), (torch.arange(36) % 5).view(4, 9).to(device)
for step in range(4):
    logits = model(x)
    loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    norm = nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    print(step, f"{loss.item():.4f} {norm.item():.4f}")
mask = torch.ones(9, 9, device=device).tril().bool()
print(mask.sum().item(), x[:, mask.any(0)].shape, torch.cuda.is_available())
