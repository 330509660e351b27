"""A small GPT learns a story letter by letter, and goes on writing.

Embedding, two blocks of attention and a small network, layer norms: every piece is of one's own.
"""

import sys
from pathlib import Path

import numpy as np

from mytorch.adam import AdamW
from mytorch.attention import Attention
from mytorch.cross_entropy import CrossEntropy
from mytorch.embedding import Embedding
from mytorch.linear import Linear
from mytorch.module import Module
from mytorch.norm import LayerNorm

TIME, SIZE, HEADS, BLOCKS, BATCH = 32, 48, 4, 2, 16


class Block(Module):
    """x + attention(norm(x)), then x + network(norm(x))."""

    def __init__(self, seed):
        self.before = LayerNorm(SIZE)
        self.attention = Attention(SIZE, HEADS, seed=seed)
        self.between = LayerNorm(SIZE)
        self.wide = Linear(SIZE, 4 * SIZE, seed=(seed, 8))
        self.narrow = Linear(4 * SIZE, SIZE, seed=(seed, 9))

    def forward(self, x):
        x = x + self.attention(self.before(x))
        return x + self.narrow(self.wide(self.between(x)).relu())


class GPT(Module):
    def __init__(self, letters):
        self.token = Embedding(letters, SIZE, seed=1)
        self.place = Embedding(TIME, SIZE, seed=2)
        self.blocks = [Block(seed) for seed in range(BLOCKS)]
        self.norm = LayerNorm(SIZE)
        self.head = Linear(SIZE, letters, seed=3)

    def forward(self, tokens):
        x = self.token(tokens) + self.place(np.arange(tokens.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


story = (Path(sys.argv[1]) / "story.txt").read_text(encoding="utf-8")
letters = sorted(set(story))
data = np.array([letters.index(letter) for letter in story])
held = data[int(0.9 * len(data)) :]
data = data[: int(0.9 * len(data))]
draw = np.random.default_rng(19)


def batch(source):
    """Pieces of text, and the same one letter later."""
    starts = draw.integers(len(source) - TIME, size=BATCH)
    pieces = np.stack([source[s : s + TIME + 1] for s in starts])
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model, source):
    tokens, wanted = batch(source)
    scores = model(tokens).reshape(-1, len(letters))
    return CrossEntropy.apply(scores, wanted.ravel())


def goes_on(model, text, count):
    """Letters drawn one by one from what the model expects next."""
    tokens = [letters.index(letter) for letter in text]
    for _ in range(count):
        scores = model(np.array([tokens[-TIME:]])).data[0, -1] / 0.7
        p = np.exp(scores - scores.max())
        tokens.append(int(draw.choice(len(letters), p=p / p.sum())))
    return "".join(letters[t] for t in tokens)


model = GPT(len(letters))
optimizer = AdamW(model.parameters(), lr=3e-3, decay=0.01)
count = sum(p.data.size for p in model.parameters())
print(f"{count} parameters, {len(story)} letters, {len(letters)} different ones")
first = float(loss_of(model, held).data)
for step in range(1, 301):
    loss = loss_of(model, data)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 75 == 0:
        print(f"step {step}: loss {float(loss.data):.2f} nats a letter")

last = np.mean([float(loss_of(model, held).data) for _ in range(4)])
print(f"on text it has not seen: {first:.2f} before, {last:.2f} after; aim: below 2.2")
print("it writes:", goes_on(model, story[:12], 80).replace("\n", " "))
sys.exit(0 if last < 2.2 else "it has not learned enough")
