"""A letter model by hand from cells: teacher forcing, detached states, sampling, perplexity."""

import math
import string
from collections import Counter

import torch
from common import fill
from torch import nn

text = "in the beginning there was a tensor and the tensor was with a gradient " * 3
letters = sorted(Counter(text), key=lambda c: (-Counter(text)[c], c))
to_id = {c: i for i, c in enumerate(letters)}
data = torch.tensor([to_id[c] for c in text], dtype=torch.long)
print(len(letters), data[:10], all(c in string.ascii_lowercase + " " for c in letters))


class CharModel(nn.Module):
    def __init__(self, size, hidden=24, layers=2, kind="lstm"):
        super().__init__()
        self.embed = nn.Embedding(size, hidden)
        cell = {"lstm": nn.LSTMCell, "gru": nn.GRUCell, "rnn": nn.RNNCell}[kind]
        self.cells = nn.ModuleList([cell(hidden, hidden) for _ in range(layers)])
        self.dropout = nn.Dropout(p=0.0)
        self.out = nn.Linear(hidden, size)
        self.hidden, self.kind = hidden, kind

    def start(self, batch):
        zero = self.out.weight.new_zeros(batch, self.hidden)
        return [(zero, zero) if self.kind == "lstm" else zero for _ in self.cells]

    def forward(self, word, states):
        h, new = self.embed(word), []
        for cell, state in zip(self.cells, states):
            state = cell(h, state)
            new.append(state)
            h = self.dropout(state[0] if isinstance(state, tuple) else state)
        return self.out(h), new


def detach(states):
    return [tuple(s.detach() for s in v) if isinstance(v, tuple) else v.detach() for v in states]


batch = data[:204].view(4, 51)
for kind in ("lstm", "gru", "rnn"):
    model = fill(CharModel(len(letters), kind=kind))
    optimizer = torch.optim.RAdam(model.parameters(), lr=0.02)
    for epoch in range(3):
        states, total = model.start(4), 0.0
        for begin in range(0, 50, 10):  # truncated backpropagation through time
            states, loss = detach(states), 0
            for t in range(begin, begin + 10):
                logits, states = model(batch[:, t], states)
                loss = loss + nn.functional.cross_entropy(logits, batch[:, t + 1])
            optimizer.zero_grad()
            (loss / 10).backward()
            nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5, norm_type=2)
            optimizer.step()
            total += loss.item()
        print(kind, epoch, f"loss {total / 50:.4f} perplexity {math.exp(total / 50):.3f}")
    model.eval()
    with torch.no_grad():
        states, word, said = model.start(1), torch.tensor([to_id["t"]]), []
        for _ in range(12):
            logits, states = model(word, states)
            weights = (logits / 0.5).softmax(-1)
            assert torch.multinomial(weights, 1).shape == (1, 1)
            word = weights.argmax(-1)
            said.append(letters[word.item()])
    print(repr("".join(said)))
