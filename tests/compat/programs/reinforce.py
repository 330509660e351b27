"""REINFORCE on a corridor: left or right until the end is reached. Draws come from NumPy."""

from collections import deque

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.optim as optim
from common import fill


class Corridor:
    def reset(self):
        self.place, self.steps = 2, 0
        return self.state()

    def state(self):
        return np.eye(6, dtype=np.float32)[self.place]

    def step(self, action):
        self.place = min(max(self.place + (1 if action else -1), 0), 5)
        self.steps += 1
        return self.state(), -0.1 + (self.place == 5), self.place == 5 or self.steps >= 12


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine1 = nn.Linear(6, 16)
        self.affine2 = nn.Linear(16, 2)
        self.saved_log_probs = []
        self.rewards = []

    def forward(self, x):
        return F.softmax(self.affine2(F.relu(self.affine1(x))), dim=1)


rng = np.random.default_rng(0)
env, policy = Corridor(), fill(Policy())
optimizer = optim.Adam(policy.parameters(), lr=1e-2)
eps = np.finfo(np.float32).eps.item()
running = 0.0
for episode in range(30):
    state = env.reset()
    done = False
    while not done:
        probs = policy(torch.from_numpy(state).float().unsqueeze(0))
        action = int(rng.random() < probs[0, 1].item())
        policy.saved_log_probs.append(probs[0, action].log().unsqueeze(0))
        state, reward, done = env.step(action)
        policy.rewards.append(reward)
    R, returns, policy_loss = 0, deque(), []
    for r in policy.rewards[::-1]:
        R = r + 0.99 * R
        returns.appendleft(R)
    returns = torch.tensor(returns)
    returns = (returns - returns.mean()) / (returns.std() + eps)
    for log_prob, R in zip(policy.saved_log_probs, returns):
        policy_loss.append(-log_prob * R)
    optimizer.zero_grad()
    policy_loss = torch.cat(policy_loss).sum()
    policy_loss.backward()
    optimizer.step()
    running = 0.1 * sum(policy.rewards) + 0.9 * running
    del policy.rewards[:]
    del policy.saved_log_probs[:]
    if episode % 10 == 9:
        print(episode, running, policy_loss.item())
print(torch.multinomial(torch.tensor([0.0, 1.0, 0.0]), 4, replacement=True))
