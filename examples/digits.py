"""A network learns to read digits: 1,797 real ones, 8x8 pixels, in a few seconds on a laptop.

    python examples/digits.py

Change the first import to `import torch` and it runs on PyTorch (but for the data set).
"""

import time

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
from tqdm import trange

import toytorch as torch
from toytorch import nn
from toytorch.utils.data import DataLoader, TensorDataset
from toytorch.vision.datasets import digits

torch.manual_seed(0)
images, labels = digits(train=True)
held_out_images, held_out_labels = digits(train=False)
loader = DataLoader(TensorDataset(images, labels), batch_size=64, shuffle=True)

model = nn.Sequential(nn.Flatten(), nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 10))
optimizer = torch.optim.Adam(model.parameters(), lr=2e-3)
criterion = nn.CrossEntropyLoss()

start, losses = time.perf_counter(), []
progress = trange(40, desc="epochs")
for _ in progress:
    for x, y in loader:
        optimizer.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    progress.set_postfix(loss=f"{losses[-1]:.3f}")

with torch.no_grad():
    right = (model(held_out_images).argmax(1) == held_out_labels).float().mean().item()
seconds = time.perf_counter() - start
print(
    f"{100 * right:.1f} % of {len(held_out_labels)} held-out digits read right, "
    f"after {seconds:.1f} s of training"
)

plt.figure(figsize=(6, 2.6))
plt.plot(losses, lw=0.8)
plt.yscale("log")
plt.xlabel("step")
plt.ylabel("cross-entropy")
plt.tight_layout()
plt.savefig("digits-loss.png", dpi=120)
print("the loss is drawn in digits-loss.png")
