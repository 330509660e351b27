"""Words from neighbours: skip-grams with negative samples, a bag of words; sparse gradients."""

import torch
import torch.nn as nn
import torch.nn.functional as F
from common import array, labels

TEXT = (
    "the quick brown fox jumps over the lazy dog while the slow red fox sleeps under the "
    "old tree and the dog barks at the quick red bird"
).split()
vocab = sorted(set(TEXT))
index = {w: i for i, w in enumerate(vocab)}
ids = torch.tensor([index[w] for w in TEXT])


class SkipGram(nn.Module):
    def __init__(self, size, dim=8):
        super().__init__()
        self.u = nn.Embedding(size, dim, sparse=True)
        self.v = nn.Embedding(size, dim, sparse=True)
        with torch.no_grad():
            self.u.weight.copy_(array(size, dim, seed=1, scale=0.3))
            self.v.weight.copy_(array(size, dim, seed=2, scale=0.3))

    def forward(self, center, context, negative):
        u, v, n = self.u(center), self.v(context), self.v(negative)
        good = F.logsigmoid((u * v).sum(-1))
        bad = F.logsigmoid(-torch.bmm(n, u.unsqueeze(2)).squeeze(2)).sum(-1)
        return -(good + bad).mean()


pairs = torch.tensor(
    [(ids[i], ids[j]) for i in range(len(ids)) for j in (i - 1, i + 1) if 0 <= j < len(ids)]
)
model = SkipGram(len(vocab))
optimizer = torch.optim.SparseAdam(list(model.parameters()), lr=0.05)
for epoch in range(6):
    negative = labels(len(pairs) * 4, len(vocab), seed=epoch).view(-1, 4)
    optimizer.zero_grad()
    loss = model(pairs[:, 0], pairs[:, 1], negative)
    loss.backward()
    optimizer.step()
    print(epoch, f"{loss.item():.4f}", model.u.weight.grad.is_sparse)
print(model.u.weight.grad.coalesce().indices().shape)


class CBOW(nn.Module):
    def __init__(self, size, dim=10):
        super().__init__()
        self.bag = nn.EmbeddingBag(size, dim, mode="mean")
        self.linear = nn.Linear(dim, size)
        with torch.no_grad():
            self.bag.weight.copy_(array(size, dim, seed=3))
            self.linear.weight.copy_(array(size, dim, seed=4, scale=0.3))
            self.linear.bias.zero_()

    def forward(self, words, offsets=None):
        return self.linear(self.bag(words, offsets))


context = ids.unfold(0, 5, 1)[:, [0, 1, 3, 4]]
middle = ids[2:-2]
model = CBOW(len(vocab))
optimizer = torch.optim.Adagrad(model.parameters(), lr=0.1)
for epoch in range(8):
    optimizer.zero_grad()
    loss = F.cross_entropy(model(context), middle)
    loss.backward()
    optimizer.step()
    if epoch % 2:
        print(epoch, f"{loss.item():.4f}")
ragged = model(torch.cat([context[0], context[1, :2]]), torch.tensor([0, 4]))
near = F.cosine_similarity(model.bag.weight[:1], model.bag.weight)
print(ragged.shape, vocab[ragged[0].argmax()], near.topk(3).indices)
