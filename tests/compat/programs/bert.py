"""Pretraining of a small BERT: masked words and whether one sentence follows the other."""

import random

import torch
from torch import nn

random.seed(0)
TOPICS = [["the cat sat down", "it purred all day", "then it ate fish"],
          ["we built a boat", "the boat was blue", "it sank at once"],
          ["rain fell on hills", "rivers rose at night", "the hills were green"]]  # fmt: skip
words = sorted({w for t in TOPICS for s in t for w in s.split()})
vocab = {w: i for i, w in enumerate(["<pad>", "<mask>", "<cls>", "<sep>", *words])}
MOST = 14


def tokens_and_segments(a, b):
    tokens = ["<cls>", *a, "<sep>", *b, "<sep>"]
    return tokens, [0] * (len(a) + 2) + [1] * (len(b) + 1)


def example(topic, k):
    a = TOPICS[topic][k].split()
    follows = random.random() < 0.5
    b = TOPICS[topic][k + 1] if follows else random.choice(random.choice(TOPICS))
    tokens, segments = tokens_and_segments(a, b.split())
    places = [i for i, t in enumerate(tokens) if t not in ("<cls>", "<sep>")]
    random.shuffle(places)
    chosen = sorted(places[:2])
    labels = [vocab[tokens[i]] for i in chosen]
    for i in chosen:
        if random.random() < 0.8:
            tokens[i] = "<mask>"
        elif random.random() < 0.5:
            tokens[i] = random.choice(words)
    ids = [vocab[t] for t in tokens]
    return (
        ids + [0] * (MOST - len(ids)), segments + [0] * (MOST - len(segments)), len(ids), chosen, labels, int(follows)
    )  # fmt: skip


class DataSet(torch.utils.data.Dataset):
    def __init__(self):
        rows = [example(t, k) for _ in range(6) for t in range(3) for k in range(2)]
        self.columns = [torch.tensor(c) for c in zip(*rows)]

    def __getitem__(self, i):
        return tuple(c[i] for c in self.columns)

    def __len__(self):
        return len(self.columns[0])


class Encoder(nn.Module):
    def __init__(self, size, width, inner, heads, layers, dropout):
        super().__init__()
        self.tokens, self.segments = nn.Embedding(size, width), nn.Embedding(2, width)
        block = nn.TransformerEncoderLayer(
            width, heads, inner, dropout, activation="gelu", batch_first=True
        )
        self.blocks = nn.TransformerEncoder(block, layers, enable_nested_tensor=False)
        self.positions = nn.Parameter(torch.randn(1, MOST, width))

    def forward(self, tokens, segments, valid):
        x = self.tokens(tokens) + self.segments(segments)
        x = x + self.positions.data[:, : x.shape[1], :]
        hidden = torch.arange(tokens.shape[1])[None, :] >= valid[:, None]
        return self.blocks(x, src_key_padding_mask=hidden)


class MaskLM(nn.Module):
    def __init__(self, size, width):
        super().__init__()
        self.mlp = nn.Sequential(
            nn.LazyLinear(width), nn.ReLU(), nn.LayerNorm(width), nn.LazyLinear(size)
        )

    def forward(self, x, positions):
        count = positions.shape[1]
        batch = torch.repeat_interleave(torch.arange(0, x.shape[0]), count)
        chosen = x[batch, positions.reshape(-1)].reshape((x.shape[0], count, -1))
        return self.mlp(chosen)


class BERT(nn.Module):
    def __init__(self, size, width=16):
        super().__init__()
        self.encoder = Encoder(size, width, 32, 2, 2, 0.1)
        self.hidden = nn.Sequential(nn.LazyLinear(width), nn.Tanh())
        self.mlm, self.nsp = MaskLM(size, width), nn.LazyLinear(2)

    def forward(self, tokens, segments, valid, positions):
        x = self.encoder(tokens, segments, valid)
        return x, self.mlm(x, positions), self.nsp(self.hidden(x[:, 0, :]))


data = DataSet()
loader = torch.utils.data.DataLoader(data, 9, shuffle=True)
net, loss = BERT(len(vocab)), nn.CrossEntropyLoss()
for batch in loader:
    net(*batch[:4])
    break
trainer = torch.optim.Adam(net.parameters(), lr=0.01)
for epoch in range(4):
    sums = torch.zeros(3)
    net.train()
    for tokens, segments, valid, positions, labels, follows in loader:
        trainer.zero_grad()
        _, words_hat, follows_hat = net(tokens, segments, valid, positions)
        masked = loss(words_hat.reshape(-1, len(vocab)), labels.reshape(-1))
        after = loss(follows_hat, follows)
        (masked + after).backward()
        trainer.step()
        with torch.no_grad():
            sums += torch.stack([masked, after, torch.ones(())])
    print(f"epoch {epoch}: words {sums[0] / sums[2]:.3f}, sentences {sums[1] / sums[2]:.3f}")
net.eval()
with torch.no_grad():
    tokens, segments = tokens_and_segments("the boat was blue".split(), "it sank at once".split())
    ids = torch.tensor([[vocab[t] for t in tokens]])
    encoded = net.encoder(ids, torch.tensor([segments]), torch.tensor([len(tokens)]))
print(encoded.shape, encoded[:, 0, :3])
