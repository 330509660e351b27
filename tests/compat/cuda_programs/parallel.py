import torch
from data import fill, waves
from torch import nn

model = fill(nn.Sequential(nn.Linear(6, 10), nn.ReLU(), nn.Linear(10, 2)))
if torch.cuda.device_count() > 1:
    model = nn.DataParallel(model)
model.to("cuda")
optimizer = torch.optim.RMSprop(model.parameters(), lr=0.01)
x, y = waves(12, 6), waves(12, 2, phase=1.0)
for step in range(4):
    output = model(x.to("cuda"))
    loss = ((output - y.to("cuda")) ** 2).mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, tuple(output.size()), f"{loss.item():.5f}")
