"""Averages of weights: stochastic weight averaging, exponential, and by hand."""

import copy

import torch
from common import array, fill, labels
from torch import nn
from torch.optim.swa_utils import SWALR, AveragedModel, get_ema_multi_avg_fn, update_bn
from torch.utils.data import DataLoader, TensorDataset

x, y = array(32, 4), labels(32, 2)
loader = DataLoader(TensorDataset(x, y), batch_size=8)
model = fill(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, 2)))
swa_model = AveragedModel(model)
ema_model = AveragedModel(model, multi_avg_fn=get_ema_multi_avg_fn(0.9))
by_hand = copy.deepcopy(model)
for p in by_hand.parameters():
    p.requires_grad_(False)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, weight_decay=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, 0.8)
swa_scheduler = SWALR(optimizer, swa_lr=0.05, anneal_epochs=2)
for epoch in range(6):
    for a, b in loader:
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(a), b)
        loss.backward()
        optimizer.step()
        ema_model.update_parameters(model)
        with torch.no_grad():
            for old, new in zip(by_hand.parameters(), model.parameters()):
                old.mul_(0.9).add_(new, alpha=0.1)
    if epoch >= 3:
        swa_model.update_parameters(model)
        swa_scheduler.step()
    else:
        scheduler.step()
    print(epoch, loss.item(), optimizer.param_groups[0]["lr"])
update_bn(loader, swa_model)
swa_model.eval()
print(swa_model(x[:3]), swa_model.n_averaged)
print(ema_model.module[0].weight[0], by_hand[0].weight[0])
