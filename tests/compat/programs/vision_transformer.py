"""A vision transformer: patches, a class token, positions, encoder layers, stochastic depth."""

import torch
import torch.nn as nn
from common import array, digits, fill
from torch.nn import TransformerEncoder, TransformerEncoderLayer


class PatchEmbed(nn.Module):
    def __init__(self, img_size=12, patch_size=4, in_chans=1, embed_dim=16):
        super().__init__()
        self.num_patches = (img_size // patch_size) ** 2
        self.proj = nn.Conv2d(in_chans, embed_dim, kernel_size=patch_size, stride=patch_size)

    def forward(self, x):
        return self.proj(x).flatten(2).transpose(1, 2)


class DropPath(nn.Module):
    def __init__(self, p=0.0):
        super().__init__()
        self.p = p

    def forward(self, x):
        if self.p == 0.0 or not self.training:
            return x
        keep = x.new_empty((x.shape[0],) + (1,) * (x.ndim - 1)).bernoulli_(1 - self.p)
        return x * keep.div_(1 - self.p)

    def extra_repr(self):
        return f"p={self.p}"


class ViT(nn.Module):
    def __init__(self, classes=4, dim=16, depth=2, heads=4):
        super().__init__()
        self.patch_embed = PatchEmbed(embed_dim=dim)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, self.patch_embed.num_patches + 1, dim))
        layer = TransformerEncoderLayer(
            dim, heads, 4 * dim, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        )
        self.encoder = TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.drop_path, self.norm = DropPath(0.0), nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, classes)
        nn.init.trunc_normal_(self.pos_embed, std=0.02)
        self.apply(self._init_weights)

    def _init_weights(self, m):
        if isinstance(m, nn.Linear):
            nn.init.trunc_normal_(m.weight, std=0.02)
            if m.bias is not None:
                nn.init.constant_(m.bias, 0)

    def no_weight_decay(self):
        return {"pos_embed", "cls_token"}

    def forward(self, x):
        x = self.patch_embed(x)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        return self.head(self.norm(self.drop_path(self.encoder(x)))[:, 0])


model = fill(ViT())
print(model.drop_path, sum(p.numel() for p in model.parameters()), model.encoder.layers[0].linear1)
skip = model.no_weight_decay()
groups = [
    {
        "params": [p for n, p in model.named_parameters() if n in skip or p.ndim == 1],
        "weight_decay": 0.0,
    },
    {"params": [p for n, p in model.named_parameters() if not (n in skip or p.ndim == 1)]},
]
optimizer = torch.optim.AdamW(groups, lr=2e-3, weight_decay=0.05)
x, y = digits(24)
model.train()
for epoch in range(6):
    mix = torch.tensor(0.8)
    mixed = mix * x + (1 - mix) * x.flip(0)
    out = model(mixed)
    loss = mix * nn.functional.cross_entropy(out, y) + (1 - mix) * nn.functional.cross_entropy(
        out, y.flip(0)
    )
    optimizer.zero_grad()
    loss.backward()
    norm = torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])
    optimizer.step()
    print(epoch, f"{loss.item():.4f} {norm.item():.3f}")
model.eval()
with torch.no_grad():
    mask = torch.zeros(10, 10, dtype=torch.bool)
    mask[:, 5:] = True
    tokens = array(2, 10, 16)
    print(model(x[:4]).softmax(-1).argmax(-1), model.encoder(tokens, mask=mask).mean())
    print(model.encoder(tokens, src_key_padding_mask=mask[:2])[:, :5].mean().item() < 1)
print(DropPath(0.5)(torch.ones(6, 2, 2)).unique().numel() <= 2)
