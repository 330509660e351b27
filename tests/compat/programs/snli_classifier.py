"""Two sentences, packed to their lengths, through one encoder; three classes."""

import torch
import torch.nn as nn
from common import fill, labels
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence


class Bottle(nn.Module):
    def forward(self, input):
        if len(input.size()) <= 2:
            return super(Bottle, self).forward(input)
        size = input.size()[:2]
        out = super(Bottle, self).forward(input.view(size[0] * size[1], -1))
        return out.view(size[0], size[1], -1)


class Linear(Bottle, nn.Linear):
    pass


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(30, 8, padding_idx=0)
        self.project = Linear(8, 6)
        self.rnn = nn.LSTM(input_size=6, hidden_size=5, bidirectional=True, batch_first=True)

    def forward(self, tokens, lengths):
        x = torch.relu(self.project(self.embed(tokens)))
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        out, (h, _) = self.rnn(packed)
        out, n = pad_packed_sequence(out, batch_first=True)
        assert n.tolist() == lengths.tolist()
        return h.transpose(0, 1).contiguous().view(len(tokens), -1)


class Classifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = Encoder()
        self.out = nn.Sequential(nn.Linear(20, 16), nn.ReLU(), nn.Dropout(p=0.0), nn.Linear(16, 3))

    def forward(self, a, b):
        return self.out(torch.cat([self.encoder(*a), self.encoder(*b)], 1))


def sentences(seed):
    parts = [labels(3 + (i * seed) % 5, 29, seed=i + seed) + 1 for i in range(8)]
    return pad_sequence(parts, batch_first=True), torch.tensor([len(p) for p in parts])


model = fill(Classifier())
with torch.no_grad():
    model.encoder.embed.weight[0].zero_()
criterion = nn.CrossEntropyLoss(label_smoothing=0.1)
opt = torch.optim.Adam(
    [{"params": model.encoder.parameters(), "lr": 1e-2}, {"params": model.out.parameters()}],
    lr=3e-2,
)
a, b, y = sentences(2), sentences(3), labels(8, 3)
for epoch in range(5):
    opt.zero_grad()
    answer = model(a, b)
    n_correct = (torch.max(answer, 1)[1].view(y.size()) == y).sum().item()
    loss = criterion(answer, y)
    loss.backward()
    opt.step()
    print(epoch, loss.item(), n_correct, model.encoder.embed.weight.grad[0].abs().sum().item())
print([g["lr"] for g in opt.param_groups], sum(p.numel() for p in model.parameters()))
