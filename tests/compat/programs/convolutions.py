"""Convolutional networks block by block: LeNet, VGG, NiN, inception, dense blocks, batch norm by hand."""

import torch
from torch import nn
from torch.nn import functional as F


def cross_correlate(x, k):
    h, w = k.shape
    y = torch.zeros((x.shape[0] - h + 1, x.shape[1] - w + 1))
    for i in range(y.shape[0]):
        for j in range(y.shape[1]):
            y[i, j] = (x[i : i + h, j : j + w] * k).sum()
    return y


x = torch.ones((6, 8))
x[:, 2:6] = 0
edges = cross_correlate(x, torch.tensor([[1.0, -1.0]]))
print(edges)
conv2d = nn.LazyConv2d(1, kernel_size=(1, 2), bias=False)
given, wanted = x.reshape((1, 1, 6, 8)), edges.reshape((1, 1, 6, 7))
for i in range(10):
    error = (conv2d(given) - wanted) ** 2
    conv2d.zero_grad()
    error.sum().backward()
    conv2d.weight.data[:] -= 3e-2 * conv2d.weight.grad
    if (i + 1) % 5 == 0:
        print(f"step {i + 1}, loss {error.sum():.3f}")
print(conv2d.weight.data.reshape((1, 2)))


def batch_norm(x, gamma, beta, moving_mean, moving_var, eps, momentum):
    if not torch.is_grad_enabled():
        hat = (x - moving_mean) / torch.sqrt(moving_var + eps)
    else:
        assert len(x.shape) in (2, 4)
        dims = (0,) if len(x.shape) == 2 else (0, 2, 3)
        mean = x.mean(dim=dims, keepdim=len(x.shape) == 4)
        var = ((x - mean) ** 2).mean(dim=dims, keepdim=len(x.shape) == 4)
        hat = (x - mean) / torch.sqrt(var + eps)
        moving_mean = (1.0 - momentum) * moving_mean + momentum * mean
        moving_var = (1.0 - momentum) * moving_var + momentum * var
    return gamma * hat + beta, moving_mean.data, moving_var.data


class BatchNorm(nn.Module):
    def __init__(self, features, dims):
        super().__init__()
        shape = (1, features) if dims == 2 else (1, features, 1, 1)
        self.gamma, self.beta = nn.Parameter(torch.ones(shape)), nn.Parameter(torch.zeros(shape))
        self.moving_mean, self.moving_var = torch.zeros(shape), torch.ones(shape)

    def forward(self, x):
        if self.moving_mean.device != x.device:
            self.moving_mean = self.moving_mean.to(x.device)
        y, self.moving_mean, self.moving_var = batch_norm(
            x, self.gamma, self.beta, self.moving_mean, self.moving_var, 1e-5, 0.1
        )
        return y


class Inception(nn.Module):
    def __init__(self, c1, c2, c3, c4):
        super().__init__()
        self.b1 = nn.LazyConv2d(c1, 1)
        self.b2_1, self.b2_2 = nn.LazyConv2d(c2[0], 1), nn.LazyConv2d(c2[1], 3, padding=1)
        self.b3_1, self.b3_2 = nn.LazyConv2d(c3[0], 1), nn.LazyConv2d(c3[1], 5, padding=2)
        self.b4_1, self.b4_2 = nn.MaxPool2d(3, stride=1, padding=1), nn.LazyConv2d(c4, 1)

    def forward(self, x):
        one = F.relu(self.b1(x))
        two = F.relu(self.b2_2(F.relu(self.b2_1(x))))
        three = F.relu(self.b3_2(F.relu(self.b3_1(x))))
        four = F.relu(self.b4_2(self.b4_1(x)))
        return torch.cat((one, two, three, four), dim=1)


class DenseBlock(nn.Module):
    def __init__(self, convs, channels):
        super().__init__()
        self.net = nn.Sequential(
            *(
                nn.Sequential(
                    nn.LazyBatchNorm2d(), nn.ReLU(), nn.LazyConv2d(channels, 3, padding=1)
                )
                for _ in range(convs)
            )
        )

    def forward(self, x):
        for block in self.net:
            x = torch.cat((x, block(x)), dim=1)
        return x


def vgg_block(convs, channels):
    layers = []
    for _ in range(convs):
        layers += [nn.LazyConv2d(channels, 3, padding=1), nn.ReLU()]
    return nn.Sequential(*layers, nn.MaxPool2d(2, 2))


def nin_block(channels, size, padding):
    return nn.Sequential(
        nn.LazyConv2d(channels, size, padding=padding), nn.ReLU(),
        nn.LazyConv2d(channels, 1), nn.ReLU(), nn.LazyConv2d(channels, 1), nn.ReLU(),
    )  # fmt: skip


def init_cnn(module):
    if type(module) == nn.Linear or type(module) == nn.Conv2d:  # noqa: E721 as such programs have it
        nn.init.xavier_uniform_(module.weight)


NETS = {
    "lenet": lambda: nn.Sequential(
        nn.LazyConv2d(6, kernel_size=5, padding=2), nn.Sigmoid(), nn.AvgPool2d(2, 2),
        nn.LazyConv2d(8, kernel_size=3), nn.Sigmoid(), nn.AvgPool2d(2, 2),
        nn.Flatten(), nn.LazyLinear(24), nn.Sigmoid(), nn.LazyLinear(4),
    ),
    "batch norm": lambda: nn.Sequential(
        nn.LazyConv2d(6, 5), BatchNorm(6, 4), nn.Sigmoid(), nn.AvgPool2d(2, 2),
        nn.Flatten(), nn.LazyLinear(20), BatchNorm(20, 2), nn.Sigmoid(), nn.LazyLinear(4),
    ),
    "vgg": lambda: nn.Sequential(
        vgg_block(1, 4), vgg_block(2, 8), nn.Flatten(), nn.LazyLinear(16), nn.ReLU(), nn.Dropout(0.5),
        nn.LazyLinear(4),
    ),
    "nin": lambda: nn.Sequential(
        nin_block(6, 5, 2), nn.MaxPool2d(3, stride=2), nn.Dropout(0.5), nin_block(4, 3, 1),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(),
    ),
    "inception": lambda: nn.Sequential(
        nn.LazyConv2d(6, 3, padding=1), nn.ReLU(), Inception(4, (3, 6), (2, 4), 3),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.LazyLinear(4),
    ),
    "dense": lambda: nn.Sequential(
        nn.LazyConv2d(4, 3, padding=1), nn.LazyBatchNorm2d(), nn.ReLU(), DenseBlock(2, 4),
        nn.LazyBatchNorm2d(), nn.ReLU(), nn.LazyConv2d(6, 1), nn.AvgPool2d(2, 2),
        nn.AdaptiveAvgPool2d((1, 1)), nn.Flatten(), nn.LazyLinear(4),
    ),
}  # fmt: skip
target = torch.randint(4, (48,))
pictures = torch.randn(48, 1, 16, 16) * 0.4
for picture, k in zip(pictures, target):
    picture[0, 4 * k : 4 * k + 4] += 1
for name, make in NETS.items():
    net = make()
    net(pictures[:2])
    net.apply(init_cnn)
    shapes = []
    h = pictures[:2]
    for layer in net:
        h = layer(h)
        shapes.append(f"{layer.__class__.__name__}{tuple(h.shape)}")
    print(name, " ".join(shapes))
    optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.5)
    for epoch in range(3):
        net.train()
        for i in torch.randperm(48).split(16):
            loss = F.cross_entropy(net(pictures[i]), target[i])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        net.eval()
        with torch.no_grad():
            out = net(pictures)
        print(f"  {epoch}: {loss.item():.3f} {F.cross_entropy(out, target).item():.3f}")
