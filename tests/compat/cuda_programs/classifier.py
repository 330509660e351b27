import torch
import torch.nn as nn
import torch.nn.functional as F
from data import fill, waves

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = fill(nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 4))).to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
x, y = waves(64, 20).to(device), (torch.arange(64) % 4).to(device)
for epoch in range(5):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
    print(f"epoch {epoch}: loss {loss.item():.4f}")
accuracy = (model(x).argmax(1) == y).float().mean()
print("accuracy", round(accuracy.item(), 3), accuracy.device.type == device.type)
