"""Clusters, principal components, and low rank: linear algebra on data."""

import torch
from common import array

x = torch.cat([array(20, 5, seed=k) * 0.3 + torch.arange(5) * k for k in range(3)])


def kmeans(x, k, steps=10):
    c = x[torch.arange(0, len(x), len(x) // k)[:k]].clone()
    for _ in range(steps):
        label = torch.cdist(x, c).argmin(dim=1)
        c.zero_()
        c.scatter_add_(0, label[:, None].repeat(1, x.shape[1]), x)
        count = torch.bincount(label, minlength=k).type_as(c).view(k, 1)
        c /= count
    return label, c


label, centres = kmeans(x, 3)
print(torch.bincount(label), centres.sum(1))
mean = x.mean(dim=0, keepdim=True)
U, S, Vh = torch.linalg.svd(x - mean, full_matrices=False)
print("explained", (S**2 / (S**2).sum())[:3], U.shape, Vh.shape)
cov = torch.cov(x.T)
w, v = torch.linalg.eigh(cov)
print(w.flip(0)[:3] * (len(x) - 1), (S**2)[:3])
low = U[:, :2] @ torch.diag(S[:2]) @ Vh[:2] + mean
print("error", torch.linalg.norm(low - x).item(), torch.linalg.matrix_rank(low - mean).item())
q, r = torch.linalg.qr(x[:5])
print(torch.dist(q @ r, x[:5]).item() < 1e-4, torch.linalg.det(x[:5]).abs().item())
A, b = x[:, :4], x[:, 4:]
solution = torch.linalg.lstsq(A, b).solution
print(solution.flatten(), torch.linalg.pinv(A).matmul(b).flatten())
print(torch.linalg.cond(cov).item(), torch.trace(torch.linalg.inv(cov + torch.eye(5))).item())
print(torch.einsum("ij,kj->ik", centres, centres).diagonal(), torch.corrcoef(x.T)[0])
