"""Segmentation by a U-net: skips, transposed convolutions, Dice and focal losses, augmentation."""

import torch
import torch.nn.functional as F
from common import array, digits, fill
from torch import nn


class DoubleConv(nn.Sequential):
    def __init__(self, inp, out, mid=None):
        mid = mid or out
        super().__init__(
            nn.Conv2d(inp, mid, 3, padding=1, bias=False),
            nn.GroupNorm(2, mid),
            nn.LeakyReLU(0.1, inplace=True),
            nn.Conv2d(mid, out, 3, padding="same", padding_mode="reflect"),
            nn.InstanceNorm2d(out, affine=True),
            nn.Hardswish(),
        )


class Up(nn.Module):
    def __init__(self, inp, out, bilinear=False):
        super().__init__()
        self.up = (
            nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True)
            if bilinear
            else nn.ConvTranspose2d(inp, inp // 2, kernel_size=2, stride=2)
        )
        self.conv = DoubleConv(inp + inp // 2 if bilinear else inp, out)

    def forward(self, x1, x2):
        x1 = self.up(x1)
        dy, dx = x2.size()[2] - x1.size()[2], x2.size()[3] - x1.size()[3]
        x1 = F.pad(x1, [dx // 2, dx - dx // 2, dy // 2, dy - dy // 2])
        return self.conv(torch.cat([x2, x1], dim=1))


class UNet(nn.Module):
    def __init__(self, bilinear):
        super().__init__()
        self.inc, self.down = DoubleConv(1, 4), nn.Sequential(nn.MaxPool2d(2), DoubleConv(4, 8))
        self.up, self.outc = Up(8, 4, bilinear), nn.Conv2d(4, 1, kernel_size=1)

    def forward(self, x):
        x1 = self.inc(x)
        return self.outc(self.up(self.down(x1), x1))


def dice_loss(logits, target, eps=1e-6):
    p = logits.sigmoid()
    inter = 2 * (p * target).sum(dim=(-1, -2))
    return (1 - (inter + eps) / (p.sum((-1, -2)) + target.sum((-1, -2)) + eps)).mean()


def focal_loss(logits, target, gamma=2.0, alpha=0.75):
    ce = F.binary_cross_entropy_with_logits(logits, target, reduction="none")
    p_t = torch.exp(-ce)
    weight = torch.where(target > 0, alpha, 1 - alpha)
    return (weight * (1 - p_t) ** gamma * ce).mean()


x, _ = digits(8, size=12)
x = x[..., :11]
target = (F.avg_pool2d(x, 3, stride=1, padding=1) > 0.4).float()
for bilinear in (False, True):
    model = fill(UNet(bilinear))
    optimizer = torch.optim.NAdam(model.parameters(), lr=1e-2)
    for step in range(5):
        out = model(x)
        loss = dice_loss(out, target) + focal_loss(out, target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        print(bilinear, step, f"{loss.item():.4f}", tuple(out.shape))
with torch.no_grad():
    prediction = model(x) > 0
iou = (prediction & target.bool()).sum() / (prediction | target.bool()).sum()
print(iou > 0.1, prediction.dtype, model.inc[3])
theta = torch.tensor([[[0.9, -0.2, 0.1], [0.2, 0.9, 0.0]]]).expand(8, 2, 3)
turned = F.grid_sample(x, F.affine_grid(theta, x.shape, align_corners=False), align_corners=False)
small = F.interpolate(x, size=(5, 7), mode="bicubic", align_corners=False)
print(f"{turned.mean().item():.4f}", small.std())
print(F.interpolate(x, scale_factor=0.5, mode="area").shape, F.unfold(x, 3).shape)
print(F.fold(F.unfold(x, 3), (12, 11), 3).sum(), array(2, 3).clamp(min=0).count_nonzero())
