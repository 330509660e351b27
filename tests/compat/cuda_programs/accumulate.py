import torch
from data import fill, waves
from torch.utils.data import DataLoader, TensorDataset

torch.backends.cudnn.benchmark = True
torch.cuda.manual_seed_all(1)
loader = DataLoader(TensorDataset(waves(32, 5), waves(32, 1)), batch_size=4, pin_memory=True)
model = fill(torch.nn.Linear(5, 1)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
losses = torch.zeros(8, device="cuda")
for i, (x, y) in enumerate(loader):
    x, y = x.cuda(non_blocking=True), y.cuda(non_blocking=True)
    loss = (model(x) - y).abs().mean() / 2
    loss.backward()
    losses[i] = loss.detach()
    if i % 2:
        optimizer.step()
        optimizer.zero_grad()
print([f"{v:.4f}" for v in losses.cpu().tolist()])
print(model.weight.detach().cpu().numpy().round(4).tolist())
