"""Batches are copied on a stream of their own while the model works on the ones before."""

import torch
from data import fill, waves


class Prefetcher:
    def __init__(self, loader):
        self.loader, self.stream = iter(loader), torch.cuda.Stream()
        self.preload()

    def preload(self):
        try:
            self.next_input, self.next_target = next(self.loader)
        except StopIteration:
            self.next_input = self.next_target = None
            return
        with torch.cuda.stream(self.stream):
            self.next_input = self.next_input.cuda(non_blocking=True)
            self.next_target = self.next_target.cuda(non_blocking=True)
            self.next_input = self.next_input.sub_(0.5).div_(2)

    def next(self):
        torch.cuda.current_stream().wait_stream(self.stream)
        input, target = self.next_input, self.next_target
        if input is not None:
            input.record_stream(torch.cuda.current_stream())
            target.record_stream(torch.cuda.current_stream())
        self.preload()
        return input, target


data = torch.utils.data.TensorDataset(waves(48, 10), torch.arange(48) % 2)
loader = torch.utils.data.DataLoader(data, batch_size=8, pin_memory=True)
model = fill(torch.nn.Linear(10, 2)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
for epoch in range(2):
    prefetcher = Prefetcher(loader)
    input, target = prefetcher.next()
    while input is not None:
        loss = torch.nn.functional.cross_entropy(model(input), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        input, target = prefetcher.next()
    torch.cuda.synchronize()
    print(epoch, f"{loss.item():.4f}")
