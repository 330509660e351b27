"""Letter models from tensors and from modules: RNN, GRU, LSTM, deep and in two directions; perplexity."""

import collections
import math
import re

import torch
from torch import nn
from torch.nn import functional as F

TEXT = """the time machine went on and on, through day and night. night followed day like the flapping
of a black wing, and the traveller saw the sun hopping swiftly across the sky"""


class Vocab:
    def __init__(self, tokens=(), min_freq=0, reserved=()):
        counter = collections.Counter(tokens)
        self.token_freqs = sorted(counter.items(), key=lambda x: x[1], reverse=True)
        kept = [t for t, n in self.token_freqs if n >= min_freq]
        self.idx_to_token = sorted(set(["<unk>", *reserved, *kept]))
        self.token_to_idx = {t: i for i, t in enumerate(self.idx_to_token)}

    def __len__(self):
        return len(self.idx_to_token)

    def __getitem__(self, tokens):
        if not isinstance(tokens, (list, tuple)):
            return self.token_to_idx.get(tokens, self.token_to_idx["<unk>"])
        return [self[t] for t in tokens]


tokens = list(re.sub("[^A-Za-z]+", " ", TEXT).lower())
vocab = Vocab(tokens)
corpus = torch.tensor(vocab[tokens])
print(len(vocab), vocab.token_freqs[:4], corpus[:10])
STEPS, HIDDEN = 8, 24
starts = torch.arange(0, len(corpus) - STEPS - 1, 3)
X = torch.stack([corpus[i : i + STEPS] for i in starts])
Y = torch.stack([corpus[i + 1 : i + STEPS + 1] for i in starts])


class Scratch(nn.Module):
    """The recurrences written out; `kind` is rnn, gru or lstm."""

    def __init__(self, kind, inputs, hiddens, sigma=0.1):
        super().__init__()
        self.kind, self.hiddens = kind, hiddens
        gates = {"rnn": "h", "gru": "zrh", "lstm": "ifoc"}[kind]
        for g in gates:
            setattr(self, f"x{g}", nn.Parameter(torch.randn(inputs, hiddens) * sigma))
            setattr(self, f"h{g}", nn.Parameter(torch.randn(hiddens, hiddens) * sigma))
            setattr(self, f"b{g}", nn.Parameter(torch.zeros(hiddens)))

    def gate(self, g, x, h):
        return (
            torch.matmul(x, getattr(self, "x" + g))
            + torch.matmul(h, getattr(self, "h" + g))
            + getattr(self, "b" + g)
        )

    def forward(self, inputs, state=None):
        if state is None:
            h = torch.zeros((inputs.shape[1], self.hiddens), device=inputs.device)
            state = (h, torch.zeros_like(h))
        h, c = state
        outputs = []
        for x in inputs:
            if self.kind == "rnn":
                h = torch.tanh(self.gate("h", x, h))
            elif self.kind == "gru":
                z, r = torch.sigmoid(self.gate("z", x, h)), torch.sigmoid(self.gate("r", x, h))
                new = torch.tanh(x @ self.xh + (r * h) @ self.hh + self.bh)
                h = z * h + (1 - z) * new
            else:
                i, f, o = (torch.sigmoid(self.gate(g, x, h)) for g in "ifo")
                c = f * c + i * torch.tanh(self.gate("c", x, h))
                h = o * torch.tanh(c)
            outputs.append(h)
        return torch.stack(outputs), (h, c)


class Model(nn.Module):
    def __init__(self, rnn, width):
        super().__init__()
        self.rnn = rnn
        self.linear = nn.Linear(width, len(vocab))

    def forward(self, x, state=None):
        embs = F.one_hot(x.T, len(vocab)).type(torch.float32)
        outputs, state = self.rnn(embs, state)
        return self.linear(outputs).swapaxes(0, 1), state

    def predict(self, prefix, n):
        state, outputs = None, [vocab[prefix[0]]]
        for i in range(len(prefix) + n - 1):
            x = torch.tensor([[outputs[-1]]])
            scores, state = self(x, state)
            if i < len(prefix) - 1:
                outputs.append(vocab[prefix[i + 1]])
            else:
                outputs.append(int(scores.argmax(axis=2).reshape(1)))
        return "".join(vocab.idx_to_token[i] for i in outputs)


def clip(model, most):
    params = [p for p in model.parameters() if p.requires_grad]
    norm = torch.sqrt(sum(torch.sum(p.grad**2) for p in params))
    if norm > most:
        for p in params:
            p.grad[:] *= most / norm
    return norm


KINDS = {
    "rnn by hand": lambda: (Scratch("rnn", len(vocab), HIDDEN), HIDDEN),
    "gru by hand": lambda: (Scratch("gru", len(vocab), HIDDEN), HIDDEN),
    "lstm by hand": lambda: (Scratch("lstm", len(vocab), HIDDEN), HIDDEN),
    "rnn": lambda: (nn.RNN(len(vocab), HIDDEN), HIDDEN),
    "two grus": lambda: (nn.GRU(len(vocab), HIDDEN, 2, dropout=0.2), HIDDEN),
    "lstm both ways": lambda: (nn.LSTM(len(vocab), HIDDEN, bidirectional=True), 2 * HIDDEN),
}
for label, make in KINDS.items():
    model = Model(*make())
    optimizer = torch.optim.SGD(model.parameters(), lr=2.0)
    model.train()
    for epoch in range(4):
        total = norms = 0.0
        for i in torch.randperm(len(X)).split(16):
            scores, _ = model(X[i])
            loss = F.cross_entropy(scores.reshape(-1, len(vocab)), Y[i].reshape(-1))
            optimizer.zero_grad()
            with torch.no_grad():
                pass
            loss.backward()
            norms += float(clip(model, 1.0))
            optimizer.step()
            total += float(loss) * len(i)
    model.eval()
    with torch.no_grad():
        print(
            f"{label}: perplexity {math.exp(total / len(X)):.2f} norms {norms:.3f} {model.predict('the t', 5)!r}"
        )
