"""Ratings by factors with biases, a mask for what is unknown, and alternating least squares."""

import torch
from common import array, labels
from torch import nn
from torch.utils.data import DataLoader, TensorDataset

users, items, k = 20, 15, 3
truth = array(users, k, seed=1) @ array(k, items, seed=2) + 0.1 * array(users, items, seed=3)
known = array(users, items, seed=4) > -0.3
u, i = known.nonzero(as_tuple=True)
ratings = truth[known]


class Factors(nn.Module):
    def __init__(self):
        super().__init__()
        self.user, self.item = nn.Embedding(users, k), nn.Embedding(items, k)
        self.user_bias, self.item_bias = nn.Embedding(users, 1), nn.Embedding(items, 1)
        for n, table in enumerate(self.children()):
            table.weight.data = array(*table.weight.shape, seed=n, scale=0.3)

    def forward(self, u, i):
        dot = (self.user(u) * self.item(i)).sum(dim=1, keepdim=True)
        return (dot + self.user_bias(u) + self.item_bias(i)).squeeze()


model = Factors()
optimizer = torch.optim.Adamax(model.parameters(), lr=0.05, weight_decay=1e-4)
loader = DataLoader(TensorDataset(u, i, ratings), batch_size=64, shuffle=False, drop_last=False)
for epoch in range(8):
    total = 0.0
    for ub, ib, rb in loader:
        optimizer.zero_grad(set_to_none=False)
        loss = nn.functional.huber_loss(model(ub, ib), rb, delta=1.5)
        loss.backward()
        optimizer.step()
        total += loss.item() * len(rb)
    if epoch % 2:
        print(epoch, f"{total / len(ratings):.4f}")
U, V = array(users, k, seed=8), array(items, k, seed=9)
eye = 0.1 * torch.eye(k)
for sweep in range(5):
    for fixed, free, mask, target in ((V, U, known, truth), (U, V, known.T, truth.T)):
        weights = mask.float()
        left = torch.einsum("ij,jk,jl->ikl", weights, fixed, fixed) + eye
        right = (weights * target) @ fixed
        free.copy_(torch.linalg.solve(left, right.unsqueeze(-1)).squeeze(-1))
    error = ((U @ V.T - truth)[known] ** 2).mean().sqrt()
    print(sweep, f"rmse {error.item():.4f}")
scores = (U @ V.mT).masked_fill(known, float("-inf"))
top = scores.topk(2, dim=1)
print(top.indices[:3], torch.isfinite(top.values).all().item(), known.sum(1).float().mean())
print(torch.bincount(u, minlength=users)[:6], torch.unique(i, return_counts=True)[1][:5])
both = torch.stack([ratings, model(u, i).detach()])
print(torch.histc(ratings, bins=4, min=-2, max=2), torch.corrcoef(both)[0, 1] > 0.5)
