import torch
from data import fill
from torch import nn

text = "the cat sat on the mat and the rat sat on the cat. " * 4
letters = sorted(set(text))
codes = torch.tensor([letters.index(c) for c in text]).cuda()


class Model(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.embed, self.rnn, self.head = nn.Embedding(n, 16), nn.LSTM(16, 24), nn.Linear(24, n)

    def forward(self, x, state=None):
        out, state = self.rnn(self.embed(x), state)
        return self.head(out), state


model = fill(Model(len(letters))).cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-3)
for step in range(6):
    state = None
    total = 0.0
    for start in range(0, 120, 40):
        x, y = codes[start : start + 40, None], codes[start + 1 : start + 41, None]
        if state is not None:
            state = tuple(s.detach() for s in state)
        logits, state = model(x, state)
        loss = nn.functional.cross_entropy(logits.view(-1, len(letters)), y.reshape(-1))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        total += loss.item()
    print(step, f"{total / 3:.3f}")
