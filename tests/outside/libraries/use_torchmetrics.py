"""Metrics of torchmetrics, alone and in a collection."""

import torch
import torchvision_operators  # noqa: F401 - before torchvision is imported

# isort: split
import torchmetrics
from torchmetrics.classification import (
    BinaryAUROC,
    ConfusionMatrix,
    MulticlassAccuracy,
    MulticlassF1Score,
)
from torchmetrics.regression import MeanSquaredError, PearsonCorrCoef, R2Score

torch.manual_seed(0)
p = torch.randn(20, 5).softmax(-1)
t = torch.randint(5, (20,))
for m in (
    MulticlassAccuracy(5),
    MulticlassF1Score(5),
    ConfusionMatrix(task="multiclass", num_classes=5),
):
    print(m(p, t))
print(BinaryAUROC()(torch.rand(30), torch.randint(2, (30,))))
for m in (MeanSquaredError(), R2Score(), PearsonCorrCoef()):
    m.update(torch.randn(10), torch.randn(10))
    print(m.compute())
mc = torchmetrics.MetricCollection([MulticlassAccuracy(5), MulticlassF1Score(5)])
print(mc(p, t))
mc.reset()
