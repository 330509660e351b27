"""A polynomial by gradients, layers trained one by one (forward-forward), rows of digits read by an LSTM."""

from itertools import count

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.optim import Adadelta, Adam
from torch.optim.lr_scheduler import StepLR

DEGREE = 4
W_target, b_target = torch.randn(DEGREE, 1) * 5, torch.randn(1) * 5


def make_features(x):
    x = x.unsqueeze(1)
    return torch.cat([x**i for i in range(1, DEGREE + 1)], 1)


def poly_desc(W, b):
    result = "y = "
    for i, w in enumerate(W):
        result += f"{w:+.2f} x^{i + 1} "
    return result + f"{b[0]:+.2f}"


fc = nn.Linear(W_target.size(0), 1)
for batch_idx in count(1):
    random = torch.randn(32)
    batch_x = make_features(random)
    batch_y = batch_x.mm(W_target) + b_target.item()
    fc.zero_grad()
    output = F.smooth_l1_loss(fc(batch_x), batch_y)
    loss = output.item()
    output.backward()
    for param in fc.parameters():
        param.data.add_(-0.1 * param.grad)
    if loss < 0.5 or batch_idx == 300:
        break
print(f"Loss: {loss:.6f} after {batch_idx} batches")
print("==> Learned function:\t" + poly_desc(fc.weight.view(-1), fc.bias))
print("==> Actual function:\t" + poly_desc(W_target.view(-1), b_target))

y = torch.randint(0, 4, (120,))
x = torch.randn(120, 8, 8) * 0.3
for i, k in enumerate(y):
    x[i, 2 * k : 2 * k + 2] += 1.0


def overlay(x, y):
    x_ = x.clone()
    x_[:, :4] *= 0.0
    x_[range(x.shape[0]), y] = x.max()
    return x_


class Layer(nn.Linear):
    def __init__(self, fan_in, fan_out):
        super().__init__(fan_in, fan_out)
        self.opt, self.threshold = Adam(self.parameters(), lr=0.03), 2.0

    def forward(self, x):
        direction = x / (x.norm(2, 1, keepdim=True) + 1e-4)
        return F.relu(torch.mm(direction, self.weight.T) + self.bias.unsqueeze(0))

    def train_alone(self, pos, neg):
        for _ in range(20):
            good, bad = self.forward(pos).pow(2).mean(1), self.forward(neg).pow(2).mean(1)
            loss = torch.log(
                1 + torch.exp(torch.cat([-good + self.threshold, bad - self.threshold]))
            ).mean()
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        print(f"layer {tuple(self.weight.shape)}: {loss.item():.4f}")
        return self.forward(pos).detach(), self.forward(neg).detach()


flat = x.view(120, -1)
layers = [Layer(64, 24), Layer(24, 24)]
wrong = y.clone()
for i, k in enumerate(wrong):
    allowed = [c for c in range(4) if c != k.item()]
    wrong[i] = torch.tensor(allowed)[torch.randint(3, size=(1,))].item()
pos, neg = overlay(flat, y), overlay(flat, wrong)
for layer in layers:
    pos, neg = layer.train_alone(pos, neg)
goodness = []
with torch.no_grad():
    for label in range(4):
        h, total = overlay(flat, torch.full((120,), label)), 0
        for layer in layers:
            h = layer(h)
            total = total + h.pow(2).mean(1)
        goodness.append(total.unsqueeze(1))
print(f"error: {1.0 - torch.cat(goodness, 1).argmax(1).eq(y).float().mean().item():.3f}")


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.LSTM(input_size=8, hidden_size=16, batch_first=True)
        self.batchnorm = nn.BatchNorm1d(16)
        self.dropout1, self.dropout2 = nn.Dropout2d(0.25), nn.Dropout2d(0.5)
        self.fc1, self.fc2 = nn.Linear(16, 12), nn.Linear(12, 4)

    def forward(self, inputs):
        inputs = inputs.reshape(-1, 8, 8)
        output, _ = self.rnn(inputs)
        output = self.batchnorm(output[:, -1, :])
        output = self.dropout1(output[:, :, None, None]).flatten(1)
        output = F.relu(self.fc1(output))
        output = self.dropout2(output[:, :, None, None]).flatten(1)
        return F.log_softmax(self.fc2(output), dim=1)


model = Net()
optimizer = Adadelta(model.parameters(), lr=1.0)
scheduler = StepLR(optimizer, step_size=1, gamma=0.7)
loader = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 24, shuffle=True)
for epoch in range(1, 4):
    model.train()
    for batch_idx, (data, target) in enumerate(loader):
        optimizer.zero_grad()
        loss = F.nll_loss(model(data), target)
        loss.backward()
        optimizer.step()
        if batch_idx % 2 == 0:
            print(
                f"Train Epoch: {epoch} [{batch_idx * len(data)}/{len(loader.dataset)}]\tLoss: {loss.item():.5f}"
            )
    model.eval()
    test_loss = correct = 0
    with torch.no_grad():
        for data, target in loader:
            output = model(data)
            test_loss += F.nll_loss(output, target, reduction="sum").item()
            pred = output.argmax(dim=1, keepdim=True)
            correct += pred.eq(target.view_as(pred)).sum().item()
    print(f"Test: average loss {test_loss / 120:.4f}, accuracy {correct}/120")
    scheduler.step()
