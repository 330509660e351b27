"""Models of timm with random weights."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
import timm

for name in (
    "resnet18",
    "vit_tiny_patch16_224",
    "mobilenetv3_small_050",
    "efficientnet_b0",
    "convnext_atto",
    "swin_tiny_patch4_window7_224",
    "mixer_s32_224",
):
    torch.manual_seed(0)
    m = timm.create_model(name, pretrained=False, num_classes=5)
    size = 224 if any(t in name for t in ("224",)) else 64
    x = torch.randn(2, 3, size, size)
    y = m(x)
    print(name, sum(p.numel() for p in m.parameters()), y.detach().flatten()[:6])
    y.square().sum().backward()
    print(sum(p.grad.abs().sum().item() for p in m.parameters() if p.grad is not None))
