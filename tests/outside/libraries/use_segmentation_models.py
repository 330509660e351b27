"""Segmentation models."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
import segmentation_models_pytorch as smp

torch.manual_seed(0)
for M in (smp.Unet, smp.FPN, smp.DeepLabV3Plus):
    m = M("resnet18", encoder_weights=None, classes=2)
    m.eval()
    y = m(torch.randn(1, 3, 64, 64))
    print(M.__name__, y.sum().item())
    loss = smp.losses.DiceLoss("multiclass")(y, torch.zeros(1, 64, 64, dtype=torch.long))
    loss.backward()
    print(loss.item())
