"""Two networks and two optimizers, with detach, no_grad and a moving average."""

import copy

import torch
from data import fill, waves
from torch import nn

make = fill(nn.Sequential(nn.Linear(3, 8), nn.LeakyReLU(0.2), nn.Linear(8, 2))).cuda()
judge = fill(nn.Sequential(nn.Linear(2, 8), nn.LeakyReLU(0.2), nn.Linear(8, 1))).cuda()
average = copy.deepcopy(make)
loss = nn.BCEWithLogitsLoss()
for_make = torch.optim.Adam(make.parameters(), lr=0.01, betas=(0.5, 0.999))
for_judge = torch.optim.Adam(judge.parameters(), lr=0.01, betas=(0.5, 0.999))
ones, zeros = torch.ones(10, 1, device="cuda"), torch.zeros(10, 1, device="cuda")
for step in range(4):
    real, noise = waves(10, 2, phase=step).cuda(), waves(10, 3, phase=step).cuda()
    fake = make(noise)
    d = loss(judge(real), ones) + loss(judge(fake.detach()), zeros)
    for_judge.zero_grad()
    d.backward()
    for_judge.step()
    g = loss(judge(fake), ones)
    for_make.zero_grad()
    g.backward()
    for_make.step()
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), make.parameters()):
            slow.lerp_(fast, 0.1)
    print(step, f"{d.item():.4f} {g.item():.4f}")
print(f"{sum(p.abs().sum().item() for p in average.parameters()):.4f}")
