"""Least squares, eigenvalues and decompositions, with gradients through some."""

import torch
from common import array

A = array(12, 4, seed=1)
b = array(12, seed=2)
solution = torch.linalg.lstsq(A, b.unsqueeze(1)).solution.squeeze(1)
normal = torch.linalg.solve(A.T @ A, A.T @ b)
Q, R = torch.linalg.qr(A)
by_qr = torch.linalg.solve_triangular(R, (Q.T @ b).unsqueeze(1), upper=True).squeeze(1)
print(solution, torch.allclose(solution, normal, atol=1e-5))
print(torch.allclose(solution, by_qr, atol=1e-5))
print(f"residual {torch.linalg.vector_norm(A @ solution - b).item():.4f}")
S = A.T @ A / 12 + 0.1 * torch.eye(4)
values, vectors = torch.linalg.eigh(S)
print(values, torch.dist(vectors @ torch.diag(values) @ vectors.mT, S) < 1e-5)
U, s, Vh = torch.linalg.svd(A, full_matrices=False)
rank2 = U[:, :2] @ torch.diag_embed(s[:2]) @ Vh[:2]
print(s, torch.linalg.matrix_norm(A - rank2, ord=2), torch.linalg.matrix_rank(rank2))
L = torch.linalg.cholesky(S)
print(torch.logdet(S), 2 * L.diagonal().log().sum(), torch.linalg.slogdet(S))
print(torch.cholesky_solve(torch.eye(4), L).sub(torch.linalg.inv(S)).abs().max() < 1e-4)
P, Lo, Up = torch.linalg.lu(S)
print((P @ Lo @ Up - S).norm() < 1e-5, torch.linalg.cond(S), torch.linalg.det(S))
try:
    torch.linalg.cholesky(-S)
except torch.linalg.LinAlgError as error:
    print(type(error).__name__, str(error).split(".")[0])
try:
    torch.linalg.inv(torch.zeros(2, 2))
except RuntimeError as error:
    print(str(error)[:60])
x = torch.tensor([[2.0, 0.3], [0.3, 1.0]], requires_grad=True)
(torch.linalg.eigvalsh(x).max() + torch.logdet(x) + torch.matrix_exp(x).trace()).backward()
print(x.grad)
v = torch.ones(4) / 2
for _ in range(30):
    v = S @ v
    v = v / v.norm()
print(f"{(v @ S @ v).item():.4f}")
print(torch.linalg.eigvals(array(3, 3, seed=9)).abs().sort().values)
batch = torch.stack([S, 2 * S, S @ S])
cube = torch.einsum("bij,bjk,bk->bi", batch, batch, torch.ones(3, 4))
print(cube[0], torch.trace(S))
print(torch.linalg.pinv(A).shape, torch.kron(torch.eye(2), S).shape, torch.block_diag(S, S).sum())
