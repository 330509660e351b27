"""A picture is optimised: content by features, style by Gram matrices, and smoothness."""

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from common import array, fill


class Normalization(nn.Module):
    def __init__(self, mean, std):
        super().__init__()
        self.mean = torch.tensor(mean).view(-1, 1, 1)
        self.std = torch.tensor(std).view(-1, 1, 1)

    def forward(self, img):
        return (img - self.mean) / self.std


class ContentLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = target.detach()

    def forward(self, input):
        self.loss = F.mse_loss(input, self.target)
        return input


def gram_matrix(input):
    a, b, c, d = input.size()
    features = input.view(a * b, c * d)
    return torch.mm(features, features.t()).div(a * b * c * d)


class StyleLoss(nn.Module):
    def __init__(self, target):
        super().__init__()
        self.target = gram_matrix(target).detach()

    def forward(self, input):
        self.loss = F.mse_loss(gram_matrix(input), self.target)
        return input


cnn = fill(
    nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1),
        nn.ReLU(),
        nn.Conv2d(6, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3, padding=1),
    )
).eval()
cnn.requires_grad_(False)
content, style = array(1, 3, 12, 12).sigmoid(), array(1, 3, 12, 12, seed=1).sigmoid()
model = nn.Sequential(Normalization([0.485, 0.456, 0.406], [0.229, 0.224, 0.225]))
losses, number = [], 0
for layer in cnn.children():
    if isinstance(layer, nn.Conv2d):
        number += 1
        name = f"conv_{number}"
    else:
        name = f"{type(layer).__name__.lower()}_{number}"
        layer = nn.ReLU(inplace=False) if isinstance(layer, nn.ReLU) else layer
    model.add_module(name, layer)
    if name == "conv_2":
        losses.append(("content", 1.0, ContentLoss(model(content))))
        model.add_module("content", losses[-1][2])
    if name.startswith("conv"):
        losses.append(("style", 1e3, StyleLoss(model(style))))
        model.add_module(f"style_{number}", losses[-1][2])
print([n for n, _ in model.named_children()])
image = content.clone().requires_grad_(True)
optimizer = optim.LBFGS([image], max_iter=4)
for run in range(4):

    def closure():
        with torch.no_grad():
            image.clamp_(0, 1)
        optimizer.zero_grad()
        model(image)
        loss = sum(weight * part.loss for _, weight, part in losses)
        loss = loss + 1e-3 * ((image[..., 1:] - image[..., :-1]) ** 2).sum()
        loss.backward()
        return loss

    print(run, f"{optimizer.step(closure).item():.3f}")
with torch.no_grad():
    print(image.clamp_(0, 1).shape, image.grad.shape, len(losses))
