"""Q-learning with a target network, a replay memory and a soft update, on a corridor."""

import random
from collections import deque, namedtuple

import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from common import fill

Transition = namedtuple("Transition", ("state", "action", "next_state", "reward"))
SIZE, GAMMA, TAU, BATCH = 6, 0.9, 0.1, 16


class ReplayMemory:
    def __init__(self, capacity):
        self.memory = deque([], maxlen=capacity)

    def push(self, *args):
        self.memory.append(Transition(*args))

    def sample(self, count):
        return random.sample(self.memory, count)

    def __len__(self):
        return len(self.memory)


class DQN(nn.Module):
    def __init__(self):
        super(DQN, self).__init__()
        self.layer1 = nn.Linear(SIZE, 24)
        self.layer2 = nn.Linear(24, 2)

    def forward(self, x):
        return self.layer2(F.relu(self.layer1(x)))


def one_hot(place):
    return F.one_hot(torch.tensor([place]), SIZE).float()


def move(place, action):
    place = max(0, place - 1) if action == 0 else place + 1
    return (None, 1.0) if place == SIZE - 1 else (place, -0.05)


random.seed(1)
policy, target = fill(DQN()), DQN()
target.load_state_dict(policy.state_dict())
optimizer = optim.AdamW(policy.parameters(), lr=1e-2, amsgrad=True)
memory = ReplayMemory(200)
for episode in range(14):
    place, steps, losses = 0, 0, []
    while place is not None and steps < 25:
        explore = random.random() < max(0.1, 0.9 - 0.1 * episode)
        with torch.no_grad():
            greedy = policy(one_hot(place)).max(1).indices.view(1, 1)
        action = torch.tensor([[random.randrange(2)]]) if explore else greedy
        after, reward = move(place, action.item())
        memory.push(
            one_hot(place),
            action,
            None if after is None else one_hot(after),
            torch.tensor([reward]),
        )
        place, steps = after, steps + 1
        if len(memory) < BATCH:
            continue
        batch = Transition(*zip(*memory.sample(BATCH)))
        mask = torch.tensor([s is not None for s in batch.next_state], dtype=torch.bool)
        values = policy(torch.cat(batch.state)).gather(1, torch.cat(batch.action))
        next_values = torch.zeros(BATCH)
        with torch.no_grad():
            rest = torch.cat([s for s in batch.next_state if s is not None])
            next_values[mask] = target(rest).max(1).values
        wanted = next_values * GAMMA + torch.cat(batch.reward)
        loss = nn.SmoothL1Loss()(values, wanted.unsqueeze(1))
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_value_(policy.parameters(), 100)
        optimizer.step()
        losses.append(loss.item())
        state, new = target.state_dict(), policy.state_dict()
        for key in new:
            state[key] = new[key] * TAU + state[key] * (1 - TAU)
        target.load_state_dict(state)
    print(episode, steps, f"{sum(losses) / max(1, len(losses)):.4f}")
print(policy(torch.eye(SIZE)).argmax(1))
