"""The names of torchvision's compiled operators, which it asks for when it is imported.

Its wheels are compiled for another build of PyTorch than the one for CPUs; without these names it
does not load there. Nothing here calls them.
"""

import torch

NAMES = (
    "nms qnms roi_align _roi_align_backward ps_roi_align _ps_roi_align_backward roi_pool "
    "_roi_pool_backward ps_roi_pool _ps_roi_pool_backward deform_conv2d _deform_conv2d_backward"
)
for name in NAMES.split():
    torch.library.define(f"torchvision::{name}", "(Tensor a, Tensor b, float c) -> Tensor")
