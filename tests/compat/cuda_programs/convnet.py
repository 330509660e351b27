import torch
from data import fill, waves
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.bn = nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8)
        self.conv2, self.fc = nn.Conv2d(8, 8, 3, stride=2), nn.Linear(8 * 3 * 3, 3)

    def forward(self, x):
        x = torch.relu(self.bn(self.conv1(x)))
        x = nn.functional.max_pool2d(torch.relu(self.conv2(x)), 1)
        return self.fc(torch.flatten(x, 1))


net = fill(Net()).cuda().to(memory_format=torch.channels_last)
criterion = nn.CrossEntropyLoss().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2, 0.5)
images = waves(16, 1, 8, 8).contiguous(memory_format=torch.channels_last)
labels = torch.arange(16) % 3
for step in range(5):
    output = net(images.cuda(non_blocking=True))
    loss = criterion(output, labels.cuda(non_blocking=True))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, f"{loss.item():.4f}", scheduler.get_last_lr())
net.eval()
with torch.no_grad():
    print(net(images.cuda()).cpu().numpy().round(2)[:2].tolist())
