"""Linear regression and softmax regression, by hand and from modules; dropout and weight decay by hand."""

import random

import torch
from torch import nn
from torch.utils import data


def made_data(w, b, count):
    x = torch.normal(0, 1, (count, len(w)))
    y = torch.matmul(x, w) + b
    y += torch.normal(0, 0.01, y.shape)
    return x, y.reshape((-1, 1))


def in_batches(size, x, y):
    order = list(range(len(x)))
    random.shuffle(order)
    for i in range(0, len(x), size):
        chosen = torch.tensor(order[i : min(i + size, len(x))])
        yield x[chosen], y[chosen]


def sgd(params, lr, size):
    with torch.no_grad():
        for p in params:
            p -= lr * p.grad / size
            p.grad.zero_()


random.seed(0)
true_w, true_b = torch.tensor([2, -3.4]), 4.2
features, labels = made_data(true_w, true_b, 300)
w = torch.normal(0, 0.01, size=(2, 1), requires_grad=True)
b = torch.zeros(1, requires_grad=True)
for epoch in range(3):
    for x, y in in_batches(10, features, labels):
        loss = ((x @ w + b - y.reshape(-1, 1)) ** 2 / 2).sum()
        loss.backward()
        sgd([w, b], 0.03, 10)
    with torch.no_grad():
        print(f"epoch {epoch + 1}, loss {float(((features @ w + b - labels) ** 2 / 2).mean()):f}")
print("off by", true_w - w.detach().reshape(true_w.shape), true_b - b)

loader = data.DataLoader(data.TensorDataset(features, labels), 10, shuffle=True)
print(next(iter(loader)))
net = nn.Sequential(nn.Linear(2, 1))
net[0].weight.data.normal_(0, 0.01)
net[0].bias.data.fill_(0)
trainer = torch.optim.SGD(net.parameters(), lr=0.03)
criterion = nn.MSELoss()
for epoch in range(2):
    for x, y in loader:
        trainer.zero_grad()
        criterion(net(x), y).backward()
        trainer.step()
    print(f"epoch {epoch + 1}, loss {criterion(net(features), labels):f}")
print(net[0].weight.data, net[0].bias.data)


class Accumulator:
    def __init__(self, n):
        self.data = [0.0] * n

    def add(self, *args):
        self.data = [a + float(b) for a, b in zip(self.data, args)]

    def __getitem__(self, i):
        return self.data[i]


def softmax(scores):
    exps = torch.exp(scores)
    return exps / exps.sum(1, keepdim=True)


def cross_entropy(probabilities, y):
    return -torch.log(probabilities[range(len(probabilities)), y])


def accuracy(scores, y):
    if len(scores.shape) > 1 and scores.shape[1] > 1:
        scores = scores.argmax(axis=1)
    hits = scores.type(y.dtype) == y
    return float(hits.type(y.dtype).sum())


def dropout_layer(x, p):
    if p == 1:
        return torch.zeros_like(x)
    mask = (torch.rand(x.shape) > p).float()
    return mask * x / (1.0 - p)


centres = torch.randn(4, 36) * 0.7
targets = torch.randint(0, 4, (240,))
images = centres[targets].reshape(-1, 1, 6, 6) + torch.randn(240, 1, 6, 6)
batches = data.DataLoader(data.TensorDataset(images, targets), 32, shuffle=True)
W = torch.normal(0, 0.01, size=(36, 4), requires_grad=True)
bias = torch.zeros(4, requires_grad=True)
for epoch in range(3):
    metric = Accumulator(3)
    for x, y in batches:
        guess = softmax(torch.matmul(x.reshape((-1, W.shape[0])), W) + bias)
        loss = cross_entropy(guess, y)
        loss.sum().backward()
        sgd([W, bias], 0.1, x.shape[0])
        metric.add(loss.sum(), accuracy(guess, y), y.numel())
    print(f"softmax {epoch}: {metric[0] / metric[2]:.4f} {metric[1] / metric[2]:.3f}")

W1 = nn.Parameter(torch.randn(36, 24) * 0.1)
b1 = nn.Parameter(torch.zeros(24))
W2 = nn.Parameter(torch.randn(24, 4) * 0.1)
b2 = nn.Parameter(torch.zeros(4))
params = [W1, b1, W2, b2]
updater = torch.optim.SGD(
    [{"params": [W1, W2], "weight_decay": 1e-2}, {"params": [b1, b2]}], lr=0.1
)
loss = nn.CrossEntropyLoss(reduction="none")
for epoch in range(3):
    total = 0.0
    for x, y in batches:
        hidden = torch.max(x.reshape(-1, 36) @ W1 + b1, torch.zeros(1))
        scores = dropout_layer(hidden, 0.2) @ W2 + b2
        updater.zero_grad()
        per_example = loss(scores, y)
        per_example.mean().backward()
        updater.step()
        total += float(per_example.sum())
    print(f"perceptron {epoch}: {total / 240:.4f} |W1| {W1.norm():.4f}")
print(dropout_layer(torch.arange(16, dtype=torch.float32).reshape((2, 8)), 0.5))


def init_weights(m):
    if type(m) == nn.Linear:  # noqa: E721 as such programs have it
        nn.init.normal_(m.weight, std=0.01)


mlp = nn.Sequential(nn.Flatten(), nn.Linear(36, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 4))
mlp.apply(init_weights)
optimizer = torch.optim.SGD(mlp.parameters(), lr=0.5)
for epoch in range(3):
    for x, y in batches:
        optimizer.zero_grad()
        step = nn.functional.cross_entropy(mlp(x), y)
        step.backward()
        optimizer.step()
    mlp.eval()
    with torch.no_grad():
        print(f"modules {epoch}: {step:.4f} {accuracy(mlp(images), targets) / 240:.3f}")
    mlp.train()
print(mlp)
