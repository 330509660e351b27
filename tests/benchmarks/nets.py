"""The nets of `programs.py`, each made of a module (torch, or toytorch)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def mlp(m: Any, sizes: Sequence[int], activation: Any, last: bool = False) -> Any:
    """Linear layers with activations between them, and behind the last where that is asked for."""
    layers = []
    for a, b in zip(sizes, sizes[1:]):
        layers += [m.nn.Linear(a, b), activation()]
    return m.nn.Sequential(*(layers if last else layers[:-1]))


def lenet(m: Any) -> Any:
    nn = m.nn
    return nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip


def resnet(m: Any) -> Any:
    nn = m.nn

    class Block(nn.Module):
        def __init__(self, i: int, o: int, stride: int) -> None:
            super().__init__()
            self.first = nn.Conv2d(i, o, 3, stride, 1, bias=False)
            self.of_first = nn.BatchNorm2d(o)
            self.last = nn.Conv2d(o, o, 3, 1, 1, bias=False)
            self.of_last = nn.BatchNorm2d(o)
            self.beside = nn.Sequential()
            if stride != 1 or i != o:
                across = nn.Conv2d(i, o, 1, stride, bias=False)
                self.beside = nn.Sequential(across, nn.BatchNorm2d(o))

        def forward(self, x: Any) -> Any:
            y = nn.functional.relu(self.of_first(self.first(x)))
            return nn.functional.relu(self.of_last(self.last(y)) + self.beside(x))

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU(),
        Block(16, 16, 1), Block(16, 32, 2), Block(32, 64, 2),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
    )  # fmt: skip


def mobile(m: Any) -> Any:
    nn = m.nn

    class Inverted(nn.Module):
        def __init__(self, c: int, times: int) -> None:
            super().__init__()
            w = c * times
            self.body = nn.Sequential(
                nn.Conv2d(c, w, 1, bias=False), nn.BatchNorm2d(w), nn.ReLU6(),
                nn.Conv2d(w, w, 3, 1, 1, groups=w, bias=False), nn.BatchNorm2d(w), nn.ReLU6(),
                nn.Conv2d(w, c, 1, bias=False), nn.BatchNorm2d(c),
            )  # fmt: skip

        def forward(self, x: Any) -> Any:
            return x + self.body(x)

    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.Hardswish(),
        Inverted(16, 4), Inverted(16, 4),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.2), nn.Linear(16, 10),
    )  # fmt: skip


def vit(m: Any) -> Any:
    nn = m.nn

    class Vision(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(
                64, 4, 128, 0.1, "gelu", batch_first=True, norm_first=True
            )
            self.patches = nn.Conv2d(3, 64, 4, 4)
            self.token = nn.Parameter(m.zeros(1, 1, 64))
            self.places = nn.Parameter(m.zeros(1, 65, 64))
            self.body = nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
            self.out = nn.Linear(64, 10)

        def forward(self, x: Any) -> Any:
            y = self.patches(x).flatten(2).transpose(1, 2)
            y = m.cat([self.token.expand(len(y), -1, -1), y], 1) + self.places
            return self.out(self.body(y)[:, 0])

    return Vision()


def unet(m: Any) -> Any:
    nn = m.nn

    def convolved(i: int, o: int) -> Any:
        return nn.Sequential(nn.Conv2d(i, o, 3, padding=1), nn.GroupNorm(4, o), nn.SiLU())

    class UNet(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.left, self.deep, self.right = (
                convolved(1, 16),
                convolved(16, 32),
                convolved(32, 16),
            )
            self.down, self.up = nn.MaxPool2d(2), nn.ConvTranspose2d(32, 16, 2, 2)
            self.out = nn.Conv2d(16, 1, 1)

        def forward(self, x: Any) -> Any:
            left = self.left(x)
            deep = self.up(self.deep(self.down(left)))
            return self.out(self.right(m.cat([left, deep], 1)))

    return UNet()


def volumes(m: Any) -> Any:
    nn = m.nn
    return nn.Sequential(
        nn.Conv3d(1, 8, 3, padding=1), nn.BatchNorm3d(8), nn.ELU(), nn.MaxPool3d(2),
        nn.Conv3d(8, 16, 3, padding=1), nn.ELU(),
        nn.AdaptiveAvgPool3d(1), nn.Flatten(), nn.Linear(16, 10),
    )  # fmt: skip


def classifier(m: Any) -> Any:
    nn = m.nn
    return nn.Sequential(
        nn.Conv2d(3, 16, 3, 2, 1), nn.BatchNorm2d(16), nn.ReLU(),
        nn.Conv2d(16, 32, 3, 2, 1), nn.BatchNorm2d(32), nn.ReLU(),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip


def autoencoder(m: Any) -> Any:
    nn = m.nn

    class Autoencoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inwards, self.mu, self.log_var = (
                nn.Linear(784, 400),
                nn.Linear(400, 20),
                nn.Linear(400, 20),
            )
            self.outwards = mlp(m, (20, 400, 784), nn.ReLU)

        def forward(self, x: Any) -> Any:
            h = nn.functional.relu(self.inwards(x))
            mu, log_var = self.mu(h), self.log_var(h)
            z = mu + m.randn_like(mu) * m.exp(0.5 * log_var)
            return m.sigmoid(self.outwards(z)), mu, log_var

    return Autoencoder()


def adversaries(m: Any) -> tuple[Any, Any]:
    nn = m.nn
    generator = nn.Sequential(
        nn.ConvTranspose2d(32, 64, 4, 1, 0, bias=False), nn.BatchNorm2d(64), nn.ReLU(True),
        nn.ConvTranspose2d(64, 32, 4, 2, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU(True),
        nn.ConvTranspose2d(32, 1, 4, 2, 1), nn.Tanh(),
    )  # fmt: skip
    critic = nn.Sequential(
        nn.Conv2d(1, 32, 4, 2, 1), nn.LeakyReLU(0.2, True),
        nn.Conv2d(32, 64, 4, 2, 1), nn.BatchNorm2d(64), nn.LeakyReLU(0.2, True),
        nn.Conv2d(64, 1, 4), nn.Sigmoid(),
    )  # fmt: skip
    return generator, critic


def temporal(m: Any) -> Any:
    nn = m.nn
    normed = nn.utils.parametrizations.weight_norm
    return nn.Sequential(
        normed(nn.Conv1d(1, 25, 7, padding=6)), nn.ReLU(), nn.Dropout(0.1),
        normed(nn.Conv1d(25, 25, 7, padding=12, dilation=2)), nn.ReLU(),
        nn.AdaptiveAvgPool1d(1), nn.Flatten(), nn.Linear(25, 10),
    )  # fmt: skip


def characters(m: Any, kind: str) -> Any:
    nn = m.nn

    class Characters(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.out = nn.Embedding(65, 32), nn.Linear(64, 65)
            self.body = getattr(nn, kind)(32, 64, 2, batch_first=True, dropout=0.1)

        def forward(self, x: Any) -> Any:
            return self.out(self.body(self.table(x))[0])

    return Characters()


def gpt(m: Any, d: int = 64, heads: int = 4, layers: int = 2, letters: int = 65) -> Any:
    nn = m.nn

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(d), nn.LayerNorm(d)
            self.qkv, self.out = nn.Linear(d, 3 * d), nn.Linear(d, d)
            wide = nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d), nn.Dropout(0.1)
            self.wide = nn.Sequential(*wide)

        def forward(self, x: Any) -> Any:
            b, t, _ = x.shape
            parts = self.qkv(self.before(x)).split(d, 2)
            q, k, v = (z.view(b, t, heads, d // heads).transpose(1, 2) for z in parts)
            y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(b, t, d))
            return x + self.wide(self.between(x))

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.places = nn.Embedding(letters, d), nn.Embedding(64, d)
            self.body = nn.Sequential(*[Block() for _ in range(layers)])
            self.norm, self.out = nn.LayerNorm(d), nn.Linear(d, letters, bias=False)

        def forward(self, x: Any) -> Any:
            h = self.table(x) + self.places(m.arange(x.shape[1]))
            return self.out(self.norm(self.body(h)))

    return Model()


def heads(m: Any) -> Any:
    """Attention as a lecture writes it: a module for each head, masked by a triangle."""
    nn = m.nn

    class Head(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.key, self.query, self.value = (nn.Linear(32, 8, bias=False) for _ in range(3))
            self.register_buffer("tril", m.tril(m.ones(8, 8)))
            self.dropout = nn.Dropout(0.2)

        def forward(self, x: Any) -> Any:
            t = x.shape[1]
            weights = self.query(x) @ self.key(x).transpose(-2, -1) * x.shape[2] ** -0.5
            weights = weights.masked_fill(self.tril[:t, :t] == 0, float("-inf"))
            return self.dropout(nn.functional.softmax(weights, dim=-1)) @ self.value(x)

    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table, self.places = nn.Embedding(65, 32), nn.Embedding(8, 32)
            self.heads = nn.ModuleList([Head() for _ in range(4)])
            self.wide = mlp(m, (32, 128, 32), nn.ReLU)
            self.before, self.between = nn.LayerNorm(32), nn.LayerNorm(32)
            self.out = nn.Linear(32, 65)

        def forward(self, tokens: Any) -> Any:
            x = self.table(tokens) + self.places(m.arange(8))
            y = self.before(x)
            x = x + m.cat([h(y) for h in self.heads], -1)
            return self.out(x + self.wide(self.between(x)))

    return Model()


class Translator:
    """A GRU reads, and one with attention writes, word by word."""

    def __init__(self, m: Any) -> None:
        nn = m.nn
        self.m, self.f = m, nn.functional
        self.table, self.reader = nn.Embedding(50, 32), nn.GRU(32, 32)
        self.writer, self.out, self.score = nn.GRUCell(64, 32), nn.Linear(32, 50), nn.Linear(64, 1)
        self.whole = nn.ModuleList([self.table, self.reader, self.writer, self.out, self.score])

    def loss(self, x: Any, y: Any) -> Any:
        m, f, total = self.m, self.f, 0
        read, h = self.reader(self.table(x))
        h = h[0]
        for t in range(len(y)):
            pairs = m.cat([read, h.expand(len(x), -1, -1)], 2)
            weights = f.softmax(self.score(pairs).squeeze(2), 0)
            context = (weights.unsqueeze(2) * read).sum(0)
            h = self.writer(m.cat([self.table(y[t]), context], 1), h)
            total = total + f.cross_entropy(self.out(h), y[t])
        return total
