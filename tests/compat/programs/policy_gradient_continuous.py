"""A policy of normal actions, a critic of beta rewards, and divergences between old and new."""

import torch
from torch import nn
from torch.distributions import (
    Categorical,
    Independent,
    Normal,
    TransformedDistribution,
    biject_to,
    constraints,
    kl_divergence,
)
from torch.distributions.transforms import AffineTransform, TanhTransform

torch.manual_seed(3)


class Policy(nn.Module):
    def __init__(self, states, actions):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(states, 16), nn.Tanh())
        self.mean = nn.Linear(16, actions)
        self.log_std = nn.Parameter(torch.zeros(actions))
        self.mode = nn.Linear(16, 3)

    def forward(self, state):
        hidden = self.body(state)
        moves = Independent(Normal(self.mean(hidden), self.log_std.exp()), 1)
        return moves, Categorical(logits=self.mode(hidden))


policy = Policy(4, 2)
optimizer = torch.optim.Adam(policy.parameters(), lr=0.02)
states = torch.randn(64, 4)
target = torch.stack([states[:, 0] - states[:, 1], states[:, 2]], 1)
for step in range(30):
    moves, modes = policy(states)
    with torch.no_grad():
        old = Independent(Normal(moves.base_dist.loc.clone(), moves.base_dist.scale.clone()), 1)
        action, mode = moves.sample(), modes.sample()
    reward = -((action - target) ** 2).sum(1) - (mode != 1).float()
    advantage = (reward - reward.mean()) / reward.std()
    log_prob = moves.log_prob(action) + modes.log_prob(mode)
    loss = -(log_prob * advantage).mean() - 0.01 * (moves.entropy() + modes.entropy()).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 10 == 0:
        moved = kl_divergence(old, policy(states)[0]).mean()
        print(
            f"{step:3d}  reward {reward.mean():.4f}  loss {loss.item():.4f}  kl {moved.item():.3e}"
        )

squashed = TransformedDistribution(
    Normal(torch.zeros(2), torch.ones(2)), [TanhTransform(cache_size=1), AffineTransform(1.0, 2.0)]
)
action = squashed.rsample((3,))
print(squashed)
print(action, squashed.log_prob(action), type(squashed.support).__name__)
to_positive = biject_to(constraints.positive)
raw = to_positive.inv(torch.tensor([0.5, 2.0])).requires_grad_()
gamma = torch.distributions.Gamma(to_positive(raw), 1.0)
gamma.log_prob(torch.tensor([1.0, 1.0])).sum().backward()
print(gamma, raw.grad, gamma.sample())
print(torch.distributions.transforms.TanhTransform.__module__, Normal.__module__)
try:
    Normal(torch.zeros(2), torch.tensor([1.0, -1.0]))
except ValueError as error:
    print(error)
