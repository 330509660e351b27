"""Features of inner layers by hooks, frozen layers, and how large gradients are."""

from collections import OrderedDict

import torch
import torch.nn as nn
from common import digits, fill


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer1 = nn.Sequential(
            OrderedDict([("conv", nn.Conv2d(1, 4, 3, padding=1)), ("relu", nn.ReLU())])
        )
        self.layer2 = nn.Sequential(nn.Conv2d(4, 8, 3, stride=2), nn.ReLU(), nn.MaxPool2d(2))
        self.fc = nn.Linear(32, 4)

    def forward(self, x):
        return self.fc(torch.flatten(self.layer2(self.layer1(x)), 1))


def extract(name, store):
    def hook(module, inputs, output):
        store[name] = output.detach()

    return hook


model = fill(Net())
x, y = digits(16)
features, gradients = {}, {}
handles = [
    m.register_forward_hook(extract(n, features))
    for n, m in model.named_modules()
    if isinstance(m, (nn.Conv2d, nn.Linear))
]
handles.append(
    model.layer2.register_full_backward_hook(
        lambda module, gin, gout: gradients.update(layer2=(gin[0].norm(), gout[0].norm()))
    )
)
handles.append(model.fc.register_forward_pre_hook(lambda module, args: (args[0] * 2,)))
model.fc.weight.register_hook(lambda g: g.clamp(-0.1, 0.1))
loss = nn.CrossEntropyLoss()(model(x), y)
loss.backward()
for name, value in sorted(features.items()):
    print(f"{name:12s} {tuple(value.shape)} mean {value.mean():.4f} std {value.std():.4f}")
print({k: [f"{v.item():.4f}" for v in g] for k, g in gradients.items()})
print(f"{loss.item():.4f}", model.fc.weight.grad.abs().max())
for handle in handles:
    handle.remove()
for name, p in model.named_parameters():
    p.requires_grad_(name.startswith("fc"))
model.zero_grad()
print(sum(p.numel() for p in model.parameters() if p.requires_grad), model.layer1.conv.weight.grad)
optimizer = torch.optim.SGD(
    filter(lambda p: p.requires_grad, model.parameters()), lr=0.1, momentum=0.9, nesterov=True
)
before = model.layer1.conv.weight.clone()
for step in range(5):
    optimizer.zero_grad()
    loss = nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
print(torch.equal(before, model.layer1.conv.weight), [n for n, _ in model.named_children()])
print(model)
