"""Schedules of learning rates, like `torch.optim.lr_scheduler`."""

from toytorch.optim.schedules.base import EPOCH_DEPRECATION_WARNING as EPOCH_DEPRECATION_WARNING
from toytorch.optim.schedules.base import LRScheduler
from toytorch.optim.schedules.compose import ChainedScheduler, SequentialLR
from toytorch.optim.schedules.cosine import CosineAnnealingLR, CosineAnnealingWarmRestarts
from toytorch.optim.schedules.cycle import CyclicLR, OneCycleLR
from toytorch.optim.schedules.plain import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from toytorch.optim.schedules.plateau import ReduceLROnPlateau

_LRScheduler = LRScheduler  # its name before PyTorch 2.0

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts",
    "CyclicLR", "ExponentialLR", "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR",
    "MultiplicativeLR", "OneCycleLR", "PolynomialLR", "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
