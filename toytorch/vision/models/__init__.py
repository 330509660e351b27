"""Networks for pictures: LeNet and residual networks, under torchvision's names."""

from toytorch.vision.models.lenet import LeNet, lenet
from toytorch.vision.models.resnet import BasicBlock, ResNet, resnet18, resnet34

__all__ = ["BasicBlock", "LeNet", "ResNet", "lenet", "resnet18", "resnet34"]
