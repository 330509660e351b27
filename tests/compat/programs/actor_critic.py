"""Actor and critic share a layer; advantages, entropy, smooth L1 for the values."""

from typing import List, NamedTuple, Tuple

import torch
import torch.nn.functional as F
from common import array, fill
from torch import Tensor, nn


class Saved(NamedTuple):
    log_prob: Tensor
    value: Tensor


class ActorCritic(nn.Module):
    def __init__(self, inputs: int = 4, actions: int = 3) -> None:
        super().__init__()
        self.affine = nn.Linear(inputs, 12)
        self.action_head = nn.Linear(12, actions)
        self.value_head = nn.Linear(12, 1)

    def forward(self, x: Tensor) -> Tuple[Tensor, Tensor]:
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


def gae(rewards: Tensor, values: Tensor, gamma: float = 0.99, lam: float = 0.95) -> Tensor:
    found = torch.zeros_like(rewards)
    last = torch.tensor(0.0)
    for t in reversed(range(len(rewards))):
        after = values[t + 1] if t + 1 < len(rewards) else torch.zeros(())
        last = rewards[t] + gamma * after - values[t] + gamma * lam * last
        found[t] = last
    return found


model = fill(ActorCritic())
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)
saved: List[Saved] = []
for episode in range(4):
    states, rewards = array(10, 4, seed=episode), array(10, seed=episode + 50)
    saved.clear()
    entropy = torch.zeros(())
    for s in states:
        probs, value = model(s)
        action = probs.detach().argmax()
        saved.append(Saved(probs[action].log(), value))
        entropy = entropy - (probs * probs.clamp_min(1e-8).log()).sum()
    values = torch.cat([s.value for s in saved])
    advantage = gae(rewards, values.detach())
    policy_losses = torch.stack([-s.log_prob * a for s, a in zip(saved, advantage)])
    value_losses = F.smooth_l1_loss(values, advantage + values.detach(), reduction="sum")
    loss = policy_losses.sum() + value_losses - 0.01 * entropy
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 1.0)
    optimizer.step()
    print(episode, loss.item(), entropy.item())
ratio = torch.exp(policy_losses.detach() - policy_losses.detach().mean())
print(torch.min(ratio * advantage, ratio.clamp(0.8, 1.2) * advantage).mean())
