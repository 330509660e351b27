"""A small residual network: initialisation, warmup and steps, label smoothing, mixed precision."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import digits, fill
from torch.optim.lr_scheduler import LambdaLR, MultiStepLR, OneCycleLR, SequentialLR


def conv3x3(inp, out, stride=1):
    return nn.Conv2d(inp, out, kernel_size=3, stride=stride, padding=1, bias=False)


class BasicBlock(nn.Module):
    expansion = 1

    def __init__(self, inp, planes, stride=1, downsample=None):
        super(BasicBlock, self).__init__()
        self.conv1, self.bn1 = conv3x3(inp, planes, stride), nn.BatchNorm2d(planes)
        self.conv2, self.bn2 = conv3x3(planes, planes), nn.BatchNorm2d(planes)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = downsample

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(x)))))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, classes=4):
        super(ResNet, self).__init__()
        self.stem = nn.Sequential(conv3x3(1, 4), nn.BatchNorm2d(4), nn.ReLU(inplace=True))
        down = nn.Sequential(nn.Conv2d(4, 8, 1, stride=2, bias=False), nn.BatchNorm2d(8))
        self.layers = nn.Sequential(BasicBlock(4, 4), BasicBlock(4, 8, 2, down))
        self.fc = nn.Linear(8 * BasicBlock.expansion, classes)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
            elif isinstance(m, (nn.BatchNorm2d, nn.GroupNorm)):
                nn.init.constant_(m.weight, 1)
                nn.init.constant_(m.bias, 0)

    def forward(self, x):
        x = F.adaptive_avg_pool2d(self.layers(self.stem(x)), (1, 1))
        return self.fc(x.flatten(1))


x, y = digits(32)
for mixed in (False, True):
    model = fill(ResNet())
    model = model.to(memory_format=torch.channels_last)
    criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=1e-4)
    scheduler = SequentialLR(
        optimizer,
        [LambdaLR(optimizer, lambda e: (e + 1) / 3), MultiStepLR(optimizer, [2, 4], gamma=0.3)],
        [2],
    )
    scaler = torch.amp.GradScaler("cpu", enabled=False)
    for epoch in range(6):
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=mixed):
            out = model(x)
            loss = criterion(out, y)
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        scheduler.step()
        lr = optimizer.param_groups[0]["lr"]
        print(mixed, epoch, f"{loss.item():.{1 if mixed else 3}f}", f"{lr:.5f}", out.dtype)
cycle = OneCycleLR(optimizer, max_lr=0.1, total_steps=5)
lrs = []
for _ in range(4):
    optimizer.step()
    cycle.step()
    lrs.append(round(cycle.get_last_lr()[0], 5))
print(lrs, model.layers[1].bn1.num_batches_tracked)
