"""Filters, colours, geometry and augmentations of kornia."""

import kornia
import torch

torch.manual_seed(0)
x = torch.rand(2, 3, 16, 16, requires_grad=True)
print(kornia.filters.gaussian_blur2d(x, (3, 3), (1.0, 1.0)).sum())
print(
    kornia.filters.sobel(x).sum(),
    kornia.filters.median_blur(x, (3, 3)).sum(),
    kornia.filters.canny(x)[0].sum(),
)
print(kornia.color.rgb_to_hsv(x).sum(), kornia.color.rgb_to_lab(x).sum())
print(kornia.geometry.rotate(x, torch.tensor([30.0, 60.0])).sum())
print(kornia.geometry.warp_perspective(x, torch.eye(3)[None].repeat(2, 1, 1), (8, 8)).sum())
print(kornia.losses.ssim_loss(x, x.flip(0), 5), kornia.losses.total_variation(x))
print(kornia.morphology.dilation(x, torch.ones(3, 3)).sum())
a = kornia.augmentation.AugmentationSequential(
    kornia.augmentation.RandomHorizontalFlip(p=0.5),
    kornia.augmentation.ColorJitter(0.1, 0.1, 0.1, 0.1, p=1.0),
    kornia.augmentation.RandomAffine(20.0, p=1.0),
)
y = a(x)
print(y.sum(), y.shape)
y.sum().backward()
print(x.grad.abs().sum())
h = kornia.geometry.find_homography_dlt(torch.rand(1, 6, 2), torch.rand(1, 6, 2))
print(h.shape)
