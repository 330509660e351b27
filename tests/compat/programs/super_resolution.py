"""Pictures made larger by a network with a pixel shuffle at its end."""

import math

import torch
import torch.nn as nn
import torch.nn.init as init
from common import digits, fill
from torch import optim


class Net(nn.Module):
    def __init__(self, upscale_factor):
        super().__init__()
        self.relu = nn.ReLU()
        self.conv1 = nn.Conv2d(1, 16, (5, 5), (1, 1), (2, 2))
        self.conv2 = nn.Conv2d(16, 8, (3, 3), (1, 1), (1, 1))
        self.conv3 = nn.Conv2d(8, upscale_factor**2, (3, 3), (1, 1), (1, 1))
        self.pixel_shuffle = nn.PixelShuffle(upscale_factor)
        self._initialize_weights()

    def forward(self, x):
        x = self.relu(self.conv1(x))
        x = self.relu(self.conv2(x))
        return self.pixel_shuffle(self.conv3(x))

    def _initialize_weights(self):
        init.orthogonal_(self.conv1.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv2.weight, init.calculate_gain("relu"))
        init.orthogonal_(self.conv3.weight)


target = digits(16)[0]
input = nn.functional.interpolate(target, scale_factor=0.5, mode="bilinear", align_corners=False)
model = Net(upscale_factor=2)
w = model.conv2.weight.detach().reshape(8, -1)
print(torch.allclose(w @ w.t(), 2 * torch.eye(8), atol=1e-4))
fill(model)
criterion = nn.MSELoss()
optimizer = optim.Adam(model.parameters(), lr=1e-2)
for epoch in range(6):
    optimizer.zero_grad()
    loss = criterion(model(input), target)
    loss.backward()
    optimizer.step()
    print("epoch", epoch, loss.item(), "psnr", 10 * math.log10(1 / loss.item()))
back = nn.PixelUnshuffle(2)(model(input))
print(back.shape, nn.Upsample(scale_factor=2, mode="bicubic")(input)[0, 0, 0, :4])
