"""A training step as one CUDA graph, after PyTorch's notes on CUDA semantics."""

import torch
from data import fill, waves

model = fill(
    torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
).cuda()
loss_fn = torch.nn.MSELoss()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
static_input = torch.zeros(8, 12, device="cuda")
static_target = torch.zeros(8, 1, device="cuda")

s = torch.cuda.Stream()
s.wait_stream(torch.cuda.current_stream())
with torch.cuda.stream(s):
    for _ in range(3):
        optimizer.zero_grad(set_to_none=True)
        loss_fn(model(static_input), static_target).backward()
torch.cuda.current_stream().wait_stream(s)

g = torch.cuda.CUDAGraph()
optimizer.zero_grad(set_to_none=True)
with torch.cuda.graph(g):
    static_loss = loss_fn(model(static_input), static_target)
    static_loss.backward()
    optimizer.step()

fill(model)
for k in range(5):
    static_input.copy_(waves(8, 12, phase=k))
    static_target.copy_(waves(8, 1, phase=2 * k))
    g.replay()
    print(k, f"{static_loss.item():.5f}")
