"""Three quantiles at once by the pinball loss; early stopping on a validation set."""

import copy

import torch
from common import array, fill
from torch import nn
from torch.utils.data import DataLoader, TensorDataset, random_split


class PinballLoss(nn.Module):
    def __init__(self, quantiles):
        super().__init__()
        self.register_buffer("quantiles", torch.tensor(quantiles))

    def forward(self, prediction, target):
        error = target - prediction
        return torch.max(self.quantiles * error, (self.quantiles - 1) * error).sum(-1).mean()


x = array(240, 1, seed=1)
y = x**2 + 0.5 * array(240, 1, seed=2) * x.abs()
generator = torch.Generator().manual_seed(0)
train, valid = random_split(TensorDataset(x, y), [0.75, 0.25], generator=generator)
print(len(train), len(valid), sorted(train.indices + valid.indices) == list(range(240)))
train = TensorDataset(x[:180], y[:180])
valid_x, valid_y = x[180:], y[180:]
model = fill(
    nn.Sequential(nn.Linear(1, 24), nn.Tanh(), nn.Linear(24, 24), nn.Tanh(), nn.Linear(24, 3))
)
criterion = PinballLoss([0.1, 0.5, 0.9])
optimizer = torch.optim.RMSprop(model.parameters(), lr=5e-3)
best, best_state, patience = float("inf"), None, 0
for epoch in range(30):
    model.train()
    running = 0.0
    for xb, yb in DataLoader(train, batch_size=60, shuffle=False):
        optimizer.zero_grad()
        loss = criterion(model(xb), yb)
        loss.backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.5)
        optimizer.step()
        running += loss.item() * xb.size(0)
    model.eval()
    with torch.no_grad():
        current = criterion(model(valid_x), valid_y).item()
    if current < best - 1e-3:
        best, best_state, patience = current, copy.deepcopy(model.state_dict()), 0
    else:
        patience += 1
    if epoch % 5 == 0:
        print(f"{epoch:3d} train {running / 180:.4f} valid {current:.4f}")
    if patience > 6:
        print("stopped early")
        break
print(model.load_state_dict(best_state))
with torch.no_grad():
    q = torch.quantile(model(valid_x), torch.tensor([0.25, 0.75]), dim=0)
print(q, f"best {best:.4f}")
