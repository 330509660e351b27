"""Weights made of other weights: spectral and weight norm, symmetric and orthogonal matrices."""

import torch
import torch.nn.utils.parametrize as P
from common import array, fill
from torch import nn
from torch.nn.utils import parameters_to_vector, parametrizations, vector_to_parameters


class Symmetric(nn.Module):
    def forward(self, X):
        return X.triu() + X.triu(1).transpose(-1, -2)

    def right_inverse(self, A):
        return A.triu()


class MatrixExponential(nn.Module):
    def forward(self, X):
        return torch.matrix_exp(X - X.mT)


model = fill(nn.Sequential(nn.Linear(5, 5), nn.ELU(), nn.Linear(5, 5), nn.ELU(), nn.Linear(5, 2)))
P.register_parametrization(model[0], "weight", Symmetric())
P.register_parametrization(model[2], "weight", MatrixExponential())
parametrizations.weight_norm(model[4])
print([n for n, _ in model.named_parameters()])
x, target = array(12, 5), array(12, 2, seed=5)
optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
for step in range(6):
    optimizer.zero_grad()
    with P.cached():
        loss = nn.functional.mse_loss(model(x), target)
    loss.backward()
    optimizer.step()
    print(step, f"{loss.item():.4f}")
w = model[2].weight
print(torch.allclose(w @ w.T, torch.eye(5), atol=1e-5), P.is_parametrized(model[0]))
print(torch.equal(model[0].weight, model[0].weight.T), model[0])
P.remove_parametrizations(model[0], "weight")
print(type(model[0]).__name__, sorted(model[0].state_dict()))
flat = parameters_to_vector(model.parameters())
vector_to_parameters(torch.zeros_like(flat), model.parameters())
print(flat.shape, model(x).abs().sum())
linear = parametrizations.orthogonal(nn.Linear(4, 4))
print(torch.dist(linear.weight.T @ linear.weight, torch.eye(4)) < 1e-5)
critic = parametrizations.spectral_norm(fill(nn.Linear(6, 4)), n_power_iterations=30)
for _ in range(3):
    critic(array(2, 6))
critic.eval()
print(f"{torch.linalg.matrix_norm(critic.weight, 2).item():.3f}")
