"""LeNet and ResNet: shapes, keys, starting values, shipped weights, and PyTorch beside them."""

from __future__ import annotations

import numpy as np
import pytest

import toytorch as torch
from toytorch import nn
from toytorch.vision import datasets, models


@pytest.mark.parametrize(("size", "channels"), [(8, 1), (28, 1), (32, 3)])
def test_lenet(size, channels):
    model = models.LeNet(num_classes=7, in_channels=channels, size=size)
    assert model(torch.zeros(2, channels, size, size)).shape == (2, 7)


def test_lenet_has_the_papers_sizes():
    assert models.LeNet(size=32).classifier[0].in_features == 400
    assert models.LeNet(size=28).classifier[0].in_features == 400
    with pytest.raises(ValueError, match="nothing is left"):
        models.LeNet(size=3)


def test_the_shipped_weights_read_digits():
    model = models.lenet(weights="digits").eval()
    images, labels = datasets.digits(train=False)
    right = (model(images).argmax(1) == labels).float().mean().item()
    assert right >= 0.985
    with pytest.raises(ValueError, match="\\['digits'\\], but got weights='mnist'"):
        models.lenet(weights="mnist")
    with pytest.raises(ValueError, match="num_classes=10, but got num_classes=2"):
        models.lenet(weights="digits", num_classes=2)


@pytest.mark.parametrize(
    ("make", "parameters"), [(models.resnet18, 11_689_512), (models.resnet34, 21_797_672)]
)
def test_residual_networks(make, parameters):
    model = make()
    assert sum(p.numel() for p in model.parameters()) == parameters
    keys = model.state_dict()
    for key in (
        "conv1.weight",
        "bn1.running_mean",
        "layer1.0.conv1.weight",
        "layer2.0.downsample.0.weight",
        "layer4.1.bn2.num_batches_tracked",
        "fc.bias",
    ):
        assert key in keys
    assert "layer1.0.downsample.0.weight" not in keys


def test_starting_values_and_options():
    torch.manual_seed(0)
    model = models.resnet18(num_classes=4, zero_init_residual=True)
    weight = model.layer3[0].conv1.weight
    assert weight.std().item() == pytest.approx((2 / (256 * 9)) ** 0.5, rel=0.02)
    assert model.layer1[0].bn2.weight.abs().sum().item() == 0
    assert model.fc.weight.shape == (4, 512)
    with pytest.raises(ValueError, match="resnet18 has no weights"):
        models.resnet18(weights="DEFAULT")


def resnet18_of_pytorch():
    """The same network written with PyTorch's layers."""
    torch = pytest.importorskip("torch", reason="PyTorch, the oracle, is absent")
    tnn = torch.nn

    class Block(tnn.Module):
        def __init__(self, wide_in, wide, stride):
            super().__init__()
            self.conv1 = tnn.Conv2d(wide_in, wide, 3, stride, 1, bias=False)
            self.bn1 = tnn.BatchNorm2d(wide)
            self.conv2 = tnn.Conv2d(wide, wide, 3, 1, 1, bias=False)
            self.bn2 = tnn.BatchNorm2d(wide)
            self.downsample = None
            if stride != 1 or wide_in != wide:
                self.downsample = tnn.Sequential(
                    tnn.Conv2d(wide_in, wide, 1, stride, bias=False), tnn.BatchNorm2d(wide)
                )

        def forward(self, x):
            y = self.bn2(self.conv2(self.bn1(self.conv1(x)).relu()))
            return (y + (x if self.downsample is None else self.downsample(x))).relu()

    class Net(tnn.Module):
        def __init__(self):
            super().__init__()
            self.conv1 = tnn.Conv2d(3, 64, 7, 2, 3, bias=False)
            self.bn1 = tnn.BatchNorm2d(64)
            self.maxpool = tnn.MaxPool2d(3, 2, 1)
            wide_in = 64
            for i, wide in enumerate((64, 128, 256, 512)):
                blocks = tnn.Sequential(
                    Block(wide_in, wide, 1 if i == 0 else 2), Block(wide, wide, 1)
                )
                setattr(self, f"layer{i + 1}", blocks)
                wide_in = wide
            self.fc = tnn.Linear(512, 10)

        def forward(self, x):
            x = self.maxpool(self.bn1(self.conv1(x)).relu())
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(x.mean((2, 3)))

    return torch, Net()


def test_resnet18_beside_pytorch():
    """Outputs, gradients and statistics in training, then outputs in eval."""
    oracle, theirs = resnet18_of_pytorch()
    torch.manual_seed(0)
    mine = models.resnet18(num_classes=10)
    state = {k: oracle.tensor(v.numpy()) for k, v in mine.state_dict().items()}
    assert list(state) == list(theirs.state_dict())
    theirs.load_state_dict(state)
    x = np.random.default_rng(0).standard_normal((4, 3, 64, 64)).astype(np.float32)
    labels = [3, 1, 9, 0]
    a, b = mine(torch.tensor(x)), theirs(oracle.tensor(x))
    np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), atol=1e-4, rtol=1e-4)
    nn.functional.cross_entropy(a, torch.tensor(labels)).backward()
    oracle.nn.functional.cross_entropy(b, oracle.tensor(labels)).backward()
    for (name, p), q in zip(mine.named_parameters(), theirs.parameters()):
        scale = max(q.grad.abs().max().item(), 1e-3)
        worst = np.abs(p.grad.numpy() - q.grad.numpy()).max() / scale
        assert worst < 2e-3, f"{name}: {worst}"
    for (name, p), q in zip(mine.named_buffers(), theirs.buffers()):
        np.testing.assert_allclose(p.numpy(), q.numpy(), atol=1e-4, rtol=1e-4, err_msg=name)
    mine.eval(), theirs.eval()
    with torch.no_grad(), oracle.no_grad():
        np.testing.assert_allclose(
            mine(torch.tensor(x)).numpy(), theirs(oracle.tensor(x)).numpy(), atol=1e-4, rtol=1e-4
        )
