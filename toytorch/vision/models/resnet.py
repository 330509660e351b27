"""Residual networks: blocks that add what they compute to what came in."""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Kwargs
from toytorch.nn import init
from toytorch.nn import modules as nn


def conv3x3(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A convolution of 3 × 3 that keeps the size; no bias, for batch norm has one."""
    return nn.Conv2d(in_planes, out_planes, 3, stride, padding=1, bias=False)


def conv1x1(in_planes: int, out_planes: int, stride: int = 1) -> nn.Conv2d:
    """A convolution of 1 × 1: a linear map of each pixel's channels."""
    return nn.Conv2d(in_planes, out_planes, 1, stride, bias=False)


class BasicBlock(nn.Module):
    """relu(x + bn(conv(relu(bn(conv(x)))))); (B, inplanes, H, W) to (B, planes, H/s, W/s).

    s is the stride. Where the shape changes, `downsample` brings x into the new one.
    """

    expansion = 1

    def __init__(
        self, inplanes: int, planes: int, stride: int = 1, downsample: nn.Module | None = None
    ) -> None:
        super().__init__()
        self.conv1 = conv3x3(inplanes, planes, stride)
        self.bn1 = nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.conv2 = conv3x3(planes, planes)
        self.bn2 = nn.BatchNorm2d(planes)
        self.downsample = downsample
        self.stride = stride

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    """A residual network: (B, 3, H, W) to (B, num_classes).

    A convolution of 7 × 7, a pool, four stages of `layers[i]` blocks with 64, 128, 256 and 512
    planes, a mean over the picture, a linear layer. Convolutions start normal with variance
    2/fan_out; with `zero_init_residual` the last norm of each block starts at zero, so that blocks
    start as the identity. After K. He et al., *Deep Residual Learning for Image Recognition*
    (2015); names and keys are those of `torchvision.models.ResNet`.
    """

    def __init__(
        self,
        block: type[BasicBlock],
        layers: Sequence[int],
        num_classes: int = 1000,
        zero_init_residual: bool = False,
    ) -> None:
        super().__init__()
        if len(layers) != 4:
            raise ValueError(f"layers should have 4 numbers of blocks, but got {list(layers)}")
        self.inplanes = 64
        self.conv1 = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.relu = nn.ReLU(inplace=True)
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)
        self.layer1 = self._make_layer(block, 64, layers[0])
        self.layer2 = self._make_layer(block, 128, layers[1], stride=2)
        self.layer3 = self._make_layer(block, 256, layers[2], stride=2)
        self.layer4 = self._make_layer(block, 512, layers[3], stride=2)
        self.avgpool = nn.AdaptiveAvgPool2d((1, 1))
        self.fc = nn.Linear(512 * block.expansion, num_classes)
        self._start(zero_init_residual)

    def _make_layer(
        self, block: type[BasicBlock], planes: int, blocks: int, stride: int = 1
    ) -> nn.Sequential:
        """A stage: its first block changes the shape, the others keep it."""
        downsample, wide = None, planes * block.expansion
        if stride != 1 or self.inplanes != wide:
            downsample = nn.Sequential(conv1x1(self.inplanes, wide, stride), nn.BatchNorm2d(wide))
        first = block(self.inplanes, planes, stride, downsample)
        self.inplanes = wide
        return nn.Sequential(first, *(block(wide, planes) for _ in range(1, blocks)))

    def _start(self, zero_init_residual: bool) -> None:
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(module, BasicBlock) and zero_init_residual:
                init.zeros_(module.bn2.weight)

    def forward(self, x: Tensor) -> Tensor:
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(self.avgpool(x).flatten(1))


def resnet18(*, weights: None = None, **kwargs: object) -> ResNet:
    """ResNet-18: 11,689,512 parameters for 1000 classes; `torchvision.models.resnet18`.

    Weights for it are too large to travel with the package: load a file of torchvision's with
    `load_state_dict(toytorch.load(file))`, the keys are the same.

    >>> sum(p.numel() for p in resnet18().parameters())
    11689512
    """
    return _resnet("resnet18", [2, 2, 2, 2], weights, kwargs)


def resnet34(*, weights: None = None, **kwargs: object) -> ResNet:
    """ResNet-34: 21,797,672 parameters for 1000 classes; `torchvision.models.resnet34`."""
    return _resnet("resnet34", [3, 4, 6, 3], weights, kwargs)


def _resnet(name: str, layers: list[int], weights: object, kwargs: Kwargs) -> ResNet:
    if weights is not None:
        raise ValueError(
            f"{name} has no weights in this package, but got weights={weights!r}; "
            "load a file of torchvision's with load_state_dict(toytorch.load(file))"
        )
    return ResNet(BasicBlock, layers, **kwargs)
