"""LeNet: two convolutions and three linear layers, the first network that read handwriting."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.nn import modules as nn
from toytorch.serialization import safetensors

WEIGHTS = {"digits": "lenet_digits.safetensors"}  # trained on `datasets.digits(train=True)`


class LeNet(nn.Module):
    """LeNet-5 for square pictures of `size` pixels: (B, in_channels, size, size) to (B, classes).

    Convolution of 5 × 5, ReLU, 2 × 2 maximum, twice; then linear layers of 120, 84 and
    `num_classes`. `padding` of the convolutions is (0, 0) for pictures of 32 pixels as in the
    paper, (2, 0) for MNIST's 28, and (2, 2) for smaller ones. After Y. LeCun et al.,
    *Gradient-Based Learning Applied to Document Recognition* (1998), with ReLU and maxima in place
    of tanh and means. Raises ValueError for pictures so small that nothing is left of them.

    >>> LeNet(size=8)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    def __init__(
        self,
        num_classes: int = 10,
        in_channels: int = 1,
        size: int = 28,
        padding: tuple[int, int] | None = None,
    ) -> None:
        super().__init__()
        if padding is None:
            padding = (0, 0) if size >= 32 else (2, 0) if size >= 20 else (2, 2)
        left = size
        for p in padding:
            left = (left + 2 * p - 4) // 2
        if left < 1:
            raise ValueError(
                f"LeNet with padding={padding} needs larger pictures than {size} × "
                f"{size}: nothing is left after two convolutions and pools"
            )
        self.size = size
        self.features = nn.Sequential(
            nn.Conv2d(in_channels, 6, 5, padding=padding[0]),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5, padding=padding[1]),
            nn.ReLU(),
            nn.MaxPool2d(2),
        )
        self.flatten = nn.Flatten()
        self.classifier = nn.Sequential(
            nn.Linear(16 * left * left, 120),
            nn.ReLU(),
            nn.Linear(120, 84),
            nn.ReLU(),
            nn.Linear(84, num_classes),
        )

    def forward(self, x: Tensor) -> Tensor:
        return self.classifier(self.flatten(self.features(x)))


def lenet(*, weights: str | None = None, **kwargs: Any) -> LeNet:
    """A LeNet; with `weights="digits"` one that reads the 8 × 8 digits of this package.

    The weights travel with the package (`examples/lenet_weights.py` made them), so a pretrained
    network to freeze and fine-tune needs no download. Raises ValueError for other names, and for
    arguments that the weights do not fit.

    >>> from toytorch.vision.datasets import digits
    >>> images, labels = digits(train=False)
    >>> found = lenet(weights="digits").eval()(images).argmax(1)
    >>> (found == labels).float().mean().item() > 0.98
    True
    """
    if weights is None:
        return LeNet(**kwargs)
    if weights not in WEIGHTS:
        raise ValueError(f"lenet has weights {sorted(WEIGHTS)}, but got weights={weights!r}")
    for name, needed in (("num_classes", 10), ("in_channels", 1), ("size", 8), ("padding", (2, 2))):
        if kwargs.setdefault(name, needed) != needed:
            raise ValueError(
                f"weights={weights!r} were trained with {name}={needed}, but got "
                f"{name}={kwargs[name]}"
            )
    model = LeNet(**kwargs)
    source = files("toytorch.vision") / "data" / WEIGHTS[weights]
    model.load_state_dict(safetensors.load(source.read_bytes()))
    return model
