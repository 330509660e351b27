"""Networks, transforms and operators of torchvision."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
import torchvision
from torchvision import transforms as T
from torchvision.ops import box_iou, generalized_box_iou, sigmoid_focal_loss
from torchvision.transforms import v2

torch.manual_seed(0)
for f in (torchvision.models.resnet18, torchvision.models.mobilenet_v2, torchvision.models.vgg11):
    m = f(num_classes=4)
    m.eval()
    x = torch.randn(1, 3, 64, 64)
    print(f.__name__, m(x))
img = torch.rand(3, 20, 20)
t = T.Compose([T.Resize(16, antialias=True), T.CenterCrop(12), T.Normalize([0.5] * 3, [0.5] * 3)])
print(t(img).sum(), t(img).shape)
t = v2.Compose(
    [v2.RandomResizedCrop(8, antialias=True), v2.RandomHorizontalFlip(), v2.ColorJitter(0.2)]
)
torch.manual_seed(1)
print(t(img).sum())
b = torch.tensor([[0.0, 0, 2, 2], [1, 1, 3, 3]])
print(box_iou(b, b), generalized_box_iou(b, b))
print(sigmoid_focal_loss(torch.randn(4), torch.ones(4)).sum())
print(torchvision.utils.make_grid(torch.rand(4, 3, 5, 5)).shape)
