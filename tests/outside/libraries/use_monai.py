"""Networks, losses, metrics and transforms of monai."""

import torch
from monai.inferers import sliding_window_inference
from monai.losses import DiceCELoss, DiceLoss, FocalLoss
from monai.metrics import DiceMetric
from monai.networks.nets import SegResNet, UNet
from monai.transforms import Compose, Rotate90, ScaleIntensity

torch.manual_seed(0)
m = UNet(
    spatial_dims=2,
    in_channels=1,
    out_channels=2,
    channels=(4, 8, 16),
    strides=(2, 2),
    num_res_units=1,
)
x = torch.randn(2, 1, 16, 16)
y = torch.randint(0, 2, (2, 1, 16, 16))
for L in (
    DiceLoss(to_onehot_y=True, softmax=True),
    DiceCELoss(to_onehot_y=True, softmax=True),
    FocalLoss(to_onehot_y=True),
):
    loss = L(m(x), y)
    loss.backward()
    print(loss.item())
d = DiceMetric()
d(
    y_pred=torch.nn.functional.one_hot(y[:, 0]).movedim(-1, 1),
    y=torch.nn.functional.one_hot(y[:, 0]).movedim(-1, 1),
)
print(d.aggregate())
print(Compose([ScaleIntensity(), Rotate90()])(x[0]).sum())
with torch.no_grad():
    print(sliding_window_inference(x, (8, 8), 2, m).sum())
    print(
        SegResNet(spatial_dims=3, init_filters=8, in_channels=1, out_channels=1)(
            torch.randn(1, 1, 16, 16, 16)
        ).sum()
    )
