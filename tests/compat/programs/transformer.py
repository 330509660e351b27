"""The transformer by parts: attention with several heads, masks, positions, an encoder, a decoder."""

import copy
import math

import torch
import torch.nn as nn
from torch.nn.functional import log_softmax, pad


def clones(module, n):
    return nn.ModuleList([copy.deepcopy(module) for _ in range(n)])


def subsequent_mask(size):
    return torch.triu(torch.ones(1, size, size), diagonal=1).type(torch.uint8) == 0


def attention(query, key, value, mask=None, dropout=None):
    scores = torch.matmul(query, key.transpose(-2, -1)) / math.sqrt(query.size(-1))
    if mask is not None:
        scores = scores.masked_fill(mask == 0, -1e9)
    p = scores.softmax(dim=-1)
    if dropout is not None:
        p = dropout(p)
    return torch.matmul(p, value), p


class LayerNorm(nn.Module):
    def __init__(self, features, eps=1e-6):
        super().__init__()
        self.a, self.b = nn.Parameter(torch.ones(features)), nn.Parameter(torch.zeros(features))
        self.eps = eps

    def forward(self, x):
        mean, std = x.mean(-1, keepdim=True), x.std(-1, keepdim=True)
        return self.a * (x - mean) / (std + self.eps) + self.b


class Sublayer(nn.Module):
    def __init__(self, size, dropout):
        super().__init__()
        self.norm, self.dropout = LayerNorm(size), nn.Dropout(dropout)

    def forward(self, x, layer):
        return x + self.dropout(layer(self.norm(x)))


class Heads(nn.Module):
    def __init__(self, h, width, dropout=0.1):
        super().__init__()
        assert width % h == 0
        self.d_k, self.h = width // h, h
        self.linears = clones(nn.Linear(width, width), 4)
        self.attn = None
        self.dropout = nn.Dropout(p=dropout)

    def forward(self, query, key, value, mask=None):
        mask = mask.unsqueeze(1) if mask is not None else None
        n = query.size(0)
        query, key, value = [
            lin(x).view(n, -1, self.h, self.d_k).transpose(1, 2)
            for lin, x in zip(self.linears, (query, key, value))
        ]
        x, self.attn = attention(query, key, value, mask=mask, dropout=self.dropout)
        x = x.transpose(1, 2).contiguous().view(n, -1, self.h * self.d_k)
        del query, key, value
        return self.linears[-1](x)


class Forward(nn.Module):
    def __init__(self, width, inner, dropout=0.1):
        super().__init__()
        self.w1, self.w2, self.dropout = (
            nn.Linear(width, inner),
            nn.Linear(inner, width),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        return self.w2(self.dropout(self.w1(x).relu()))


class Layer(nn.Module):
    """One of the encoder; with `source` attention as well one of the decoder."""

    def __init__(self, size, own, source, forward, dropout):
        super().__init__()
        self.own, self.source, self.feed = own, source, forward
        self.sublayer = clones(Sublayer(size, dropout), 2 if source is None else 3)
        self.size = size

    def forward(self, x, mask, memory=None, memory_mask=None):
        x = self.sublayer[0](x, lambda x: self.own(x, x, x, mask))
        if self.source is not None:
            x = self.sublayer[1](x, lambda x: self.source(x, memory, memory, memory_mask))
        return self.sublayer[-1](x, self.feed)


class Stack(nn.Module):
    def __init__(self, layer, n):
        super().__init__()
        self.layers, self.norm = clones(layer, n), LayerNorm(layer.size)

    def forward(self, x, *rest):
        for layer in self.layers:
            x = layer(x, *rest)
        return self.norm(x)


class Positions(nn.Module):
    def __init__(self, width, dropout, most=60):
        super().__init__()
        self.dropout = nn.Dropout(p=dropout)
        pe = torch.zeros(most, width)
        position = torch.arange(0, most).unsqueeze(1)
        div_term = torch.exp(torch.arange(0, width, 2) * -(math.log(10000.0) / width))
        pe[:, 0::2], pe[:, 1::2] = torch.sin(position * div_term), torch.cos(position * div_term)
        self.register_buffer("pe", pe.unsqueeze(0))

    def forward(self, x):
        return self.dropout(x + self.pe[:, : x.size(1)].requires_grad_(False))


class Embeddings(nn.Module):
    def __init__(self, width, vocab):
        super().__init__()
        self.lut, self.width = nn.Embedding(vocab, width), width

    def forward(self, x):
        return self.lut(x) * math.sqrt(self.width)


class Smoothing(nn.Module):
    def __init__(self, size, padding, smoothing=0.0):
        super().__init__()
        self.criterion = nn.KLDivLoss(reduction="sum")
        self.padding, self.smoothing, self.size = padding, smoothing, size

    def forward(self, x, target):
        true = x.data.clone()
        true.fill_(self.smoothing / (self.size - 2))
        true.scatter_(1, target.data.unsqueeze(1), 1.0 - self.smoothing)
        true[:, self.padding] = 0
        mask = torch.nonzero(target.data == self.padding)
        if mask.dim() > 0:
            true.index_fill_(0, mask.squeeze(), 0.0)
        return self.criterion(x, true.clone().detach())


V, WIDTH = 9, 16
heads, feed, place = Heads(4, WIDTH), Forward(WIDTH, 32), Positions(WIDTH, 0.1)
c = copy.deepcopy
encoder = Stack(Layer(WIDTH, c(heads), None, c(feed), 0.1), 2)
decoder = Stack(Layer(WIDTH, c(heads), c(heads), c(feed), 0.1), 2)
source = nn.Sequential(Embeddings(WIDTH, V), c(place))
target = nn.Sequential(Embeddings(WIDTH, V), c(place))
generator = nn.Linear(WIDTH, V)
model = nn.ModuleList([encoder, decoder, source, target, generator])
for p in model.parameters():
    if p.dim() > 1:
        nn.init.xavier_uniform_(p)
print(sum(p.numel() for p in model.parameters()), subsequent_mask(4).int())


def run(src, tgt, src_mask, tgt_mask):
    return decoder(target(tgt), tgt_mask, encoder(source(src), src_mask), src_mask)


def rate(step, width, factor, warmup):
    step = max(step, 1)
    return factor * (width**-0.5 * min(step**-0.5, step * warmup**-1.5))


criterion = Smoothing(V, 0, 0.1)
optimizer = torch.optim.Adam(model.parameters(), lr=0.5, betas=(0.9, 0.98), eps=1e-9)
scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: rate(step, WIDTH, 1.0, 40))
for epoch in range(4):
    model.train()
    total = tokens = 0
    for _ in range(8):
        data = torch.randint(1, V, size=(16, 6))
        data[:, 0] = 1
        src = pad(data, (0, 1)).requires_grad_(False).clone().detach()
        tgt, tgt_y = src[:, :-1], src[:, 1:]
        mask = (tgt != 0).unsqueeze(-2) & subsequent_mask(tgt.size(-1)).type_as(tgt.data)
        out = run(src, tgt, (src != 0).unsqueeze(-2), mask)
        x = log_softmax(generator(out), dim=-1)
        count = (tgt_y != 0).data.sum()
        loss = criterion(x.contiguous().view(-1, V), tgt_y.contiguous().view(-1)) / count
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        scheduler.step()
        total, tokens = total + loss.item() * count.item(), tokens + count.item()
    print(f"epoch {epoch}: {total / tokens:.3f}, rate {optimizer.param_groups[0]['lr']:.5f}")
model.eval()
src, mask = torch.LongTensor([[1, 2, 3, 4, 5, 6]]), torch.ones(1, 1, 6)
with torch.no_grad():
    ys = torch.zeros(1, 1).fill_(1).type_as(src.data)
    for _ in range(5):
        out = run(src, ys, mask, subsequent_mask(ys.size(1)).type_as(src.data))
        prob = log_softmax(generator(out[:, -1]), dim=-1)
        ys = torch.cat(
            [ys, torch.zeros(1, 1).type_as(src.data).fill_(prob.argmax(-1).item())], dim=1
        )
    print(ys.shape, f"{prob.max():.2f}")

whole = nn.Transformer(16, 4, 1, 1, 32, dropout=0.1, batch_first=True)
x, y = torch.randn(3, 5, 16), torch.randn(3, 4, 16)
causal = nn.Transformer.generate_square_subsequent_mask(4)
padding = torch.tensor([[False] * 5, [False] * 3 + [True] * 2, [False] * 4 + [True]])
out = whole(x, y, tgt_mask=causal, src_key_padding_mask=padding, memory_key_padding_mask=padding)
out.pow(2).mean().backward()
print(causal, out.shape, f"{sum(p.grad.norm() for p in whole.parameters()):.3f}")
