"""Attributions of captum: gradients, DeepLift with hooks, Grad-CAM, occlusion."""

import torch
from captum.attr import (
    DeepLift,
    IntegratedGradients,
    LayerGradCam,
    Occlusion,
    Saliency,
)

torch.manual_seed(0)
m = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 3))
x = torch.randn(2, 4)
for A in (IntegratedGradients, Saliency, DeepLift):
    print(A.__name__, A(m).attribute(x, target=1))
print(Occlusion(m).attribute(x, sliding_window_shapes=(1,), target=1))
c = torch.nn.Sequential(
    torch.nn.Conv2d(1, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(4 * 36, 3)
)
print(LayerGradCam(c, c[0]).attribute(torch.randn(1, 1, 8, 8), target=0).shape)
