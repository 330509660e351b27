"""Digits are read by attention, in a kernel of one's own.

Each unseen digit asks all seen ones. What it gets back is the mean of their labels, weighted by a
softmax. The scores are never stored, and no thread races with another.
"""

import sys
from pathlib import Path

import numpy as np

from mytorch.flash import flash_attention
from mytorch.kernels import Machine

SEEN, ASKED, THREADS, SHARP = 300, 64, 16, 30.0

with np.load(Path(sys.argv[1]) / "digits.npz") as file:
    images, labels = file["images"].reshape(-1, 64).astype(float), file["labels"]
order = np.random.default_rng(15).permutation(len(images))
seen, asked = order[:SEEN], order[SEEN : SEEN + ASKED]
rows = images - images[seen].mean(0)
rows /= np.linalg.norm(rows, axis=1, keepdims=True)
q = SHARP * np.sqrt(64) * rows[asked]  # scores are SHARP times the cosine
k, v = rows[seen], np.eye(10)[labels[seen]]

machine = Machine()
votes = flash_attention(machine, q, k, v, threads=THREADS)

scores = q @ k.T / np.sqrt(64)
weights = np.exp(scores - scores.max(1, keepdims=True))
wanted = weights / weights.sum(1, keepdims=True) @ v
blocks = -(-ASKED // THREADS)
predicted = ASKED * 64 + blocks * SEEN * (64 + 10)
share = (votes.argmax(1) == labels[asked]).mean()

print(f"{ASKED} digits ask {SEEN} others: {blocks} blocks of {THREADS} threads")
print(f"read {machine.reads} elements, {predicted} were predicted; written {machine.writes}")
print(f"without tiles it would be {ASKED * 64 + ASKED * SEEN * (64 + 10)}")
print(f"{machine.barriers} barriers, {len(machine.races)} races")
print("the same as by NumPy:", np.allclose(votes, wanted))
print(f"{share:.1%} of the digits are read; aim: 90 %")
right = np.allclose(votes, wanted) and machine.reads == predicted and not machine.races
sys.exit(0 if right and share >= 0.9 else "the attention is wrong, races, or reads too much")
