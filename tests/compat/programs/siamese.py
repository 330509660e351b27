"""Two pictures through one network: the same class or not; then triplets and contrast."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import digits, fill
from torch.utils.data import DataLoader, Dataset


class Pairs(Dataset):
    def __init__(self, count):
        self.x, self.y = digits(count)

    def __len__(self):
        return len(self.x)

    def __getitem__(self, i):
        j = (i * 7 + 3) % len(self.x)
        return self.x[i], self.x[j], torch.tensor(float(self.y[i] == self.y[j]))


class SiameseNetwork(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(
            nn.Conv2d(1, 8, 3, stride=2),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        )
        self.fc = nn.Sequential(nn.Linear(64, 16), nn.ReLU(inplace=True), nn.Linear(16, 1))
        self.sigmoid = nn.Sigmoid()

    def forward(self, a, b):
        return self.sigmoid(self.fc(torch.cat((self.body(a), self.body(b)), 1)))


model = fill(SiameseNetwork())
optimizer = torch.optim.Adadelta(model.parameters(), lr=1.0)
for epoch in range(3):
    total = 0.0
    for a, b, same in DataLoader(Pairs(32), batch_size=8):
        optimizer.zero_grad()
        loss = F.binary_cross_entropy(model(a, b).squeeze(), same)
        loss.backward()
        optimizer.step()
        total += loss.item()
    print(epoch, total)

x, y = digits(24, seed=3)
z = F.normalize(model.eval().body(x), dim=1)
print(F.triplet_margin_loss(z[:8], z[8:16], z[16:], margin=0.5).item())
print(F.cosine_embedding_loss(z[:12], z[12:], torch.where(y[:12] == y[12:], 1, -1)).item())
distance = F.pairwise_distance(z[:12], z[12:])
near = (y[:12] == y[12:]).float()
contrastive = near * distance**2 + (1 - near) * torch.clamp(1.0 - distance, min=0.0) ** 2
print(contrastive.mean().item())
sim = z @ z.T / 0.1
sim.fill_diagonal_(float("-inf"))
positives = torch.cat([torch.arange(12, 24), torch.arange(0, 12)])
print("NT-Xent", F.cross_entropy(sim, positives).item())
