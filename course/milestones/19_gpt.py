"""A small GPT learns a story letter by letter, and goes on writing.

Embedding, two blocks of attention and a small network, layer norms: every piece is of one's own.
"""

import sys
from pathlib import Path

import numpy as np

from mytorch.adam import AdamW
from mytorch.gpt import GPT

TIME, SIZE, HEADS, BLOCKS, BATCH = 32, 48, 4, 2, 16


story = (Path(sys.argv[1]) / "story.txt").read_text(encoding="utf-8")
letters = sorted(set(story))
data = np.array([letters.index(letter) for letter in story])
held = data[int(0.9 * len(data)) :]
data = data[: int(0.9 * len(data))]
draw = np.random.default_rng(19)


def batch(source):
    """Pieces of text, one letter longer than the model sees."""
    starts = draw.integers(len(source) - TIME, size=BATCH)
    return np.stack([source[s : s + TIME + 1] for s in starts])


model = GPT(len(letters), SIZE, HEADS, BLOCKS, TIME)
optimizer = AdamW(model.groups(0.01), lr=3e-3)
count = sum(p.data.size for p in model.parameters())
print(f"{count} parameters, {len(story)} letters, {len(letters)} different ones")
first = float(model.loss(batch(held)).data)
for step in range(1, 301):
    loss = model.loss(batch(data))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step % 75 == 0:
        print(f"step {step}: loss {float(loss.data):.2f} nats a letter")

last = np.mean([float(model.loss(batch(held)).data) for _ in range(4)])
print(f"on text it has not seen: {first:.2f} before, {last:.2f} after; aim: below 2.2")
written = model.write([letters.index(letter) for letter in story[:12]], 80, temperature=0.7)
print("it writes:", "".join(letters[t] for t in written).replace("\n", " "))
sys.exit(0 if last < 2.2 else "it has not learned enough")
