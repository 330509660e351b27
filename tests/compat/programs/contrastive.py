"""Representations from pairs of views: the loss of SimCLR, with a projection head."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import array, digits, fill


class Encoder(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.backbone = nn.Sequential(
            nn.Conv2d(1, 6, 3, stride=2),
            nn.BatchNorm2d(6),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(3),
            nn.Flatten(),
        )
        self.head = nn.Sequential(nn.Linear(54, 32), nn.ReLU(inplace=True), nn.Linear(32, dim))

    def forward(self, x):
        h = self.backbone(x)
        return h, F.normalize(self.head(h), dim=1)


def nt_xent(a, b, temperature=0.5):
    n = a.size(0)
    z = torch.cat([a, b], dim=0)
    sim = torch.mm(z, z.t()) / temperature
    sim.fill_diagonal_(float("-inf"))
    target = torch.cat([torch.arange(n, 2 * n), torch.arange(n)])
    return F.cross_entropy(sim, target), (sim.argmax(1) == target).float().mean()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = fill(Encoder()).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=1e-2)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=8, eta_min=1e-5)
x, y = digits(48)
for epoch in range(8):
    one = torch.flip(x, dims=[3]) + array(*x.shape, seed=2 * epoch, scale=0.1)
    two = torch.roll(x, shifts=1, dims=3) + array(*x.shape, seed=2 * epoch + 1, scale=0.1)
    loss, accuracy = nt_xent(model(one.to(device))[1], model(two.to(device))[1])
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    print("epoch %2d loss %.4f lr %.6f" % (epoch, loss.item(), scheduler.get_last_lr()[0]))
model.eval()
with torch.inference_mode():
    h, z = model(x)
    near = (z @ z.t()).fill_diagonal_(-1).argmax(dim=1)
    alike = (y[near] == y).sum().item()
    print("neighbours of the same class:", alike > 24, h.shape, z.is_inference())
