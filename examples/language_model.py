"""Two small language models, an LSTM and a GPT, learn a story letter by letter and go on writing.

    python examples/language_model.py lstm
    python examples/language_model.py gpt [steps]

Change the imports to `torch` and it runs on PyTorch (but for the text).
"""

import sys
import time

import toytorch as torch
from toytorch import nn
from toytorch.nn import functional as F
from toytorch.vision.datasets import text


class LSTM(nn.Module):
    """Letters (B, T) to scores of the next letters (B, T, V), with a memory that goes along."""

    def __init__(self, letters: int, wide: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(letters, 32)
        self.lstm = nn.LSTM(32, wide, num_layers=1, batch_first=True)
        self.head = nn.Linear(wide, letters)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        memory, _ = self.lstm(self.embedding(x))
        return self.head(memory)


class Block(nn.Module):
    """Attention to earlier letters, then a small network, each added to what came in."""

    def __init__(self, wide: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(wide), nn.LayerNorm(wide)
        self.qkv, self.out = nn.Linear(wide, 3 * wide), nn.Linear(wide, wide)
        self.mlp = nn.Sequential(nn.Linear(wide, 4 * wide), nn.GELU(), nn.Linear(4 * wide, wide))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        B, T, C = x.shape
        q, k, v = (
            part.view(B, T, self.heads, C // self.heads).transpose(1, 2)
            for part in self.qkv(self.norm1(x)).split(C, dim=2)
        )  # (B, nh, T, hs)
        seen = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).reshape(B, T, C))
        return x + self.mlp(self.norm2(x))


class GPT(nn.Module):
    """Letters (B, T) to scores of the next letters (B, T, V), each position looking back."""

    def __init__(
        self, letters: int, wide: int = 64, heads: int = 4, layers: int = 2, longest: int = 64
    ) -> None:
        super().__init__()
        self.longest = longest
        self.letter, self.place = nn.Embedding(letters, wide), nn.Embedding(longest, wide)
        self.blocks = nn.Sequential(*(Block(wide, heads) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(wide), nn.Linear(wide, letters, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        places = torch.arange(x.shape[1])
        return self.head(self.norm(self.blocks(self.letter(x) + self.place(places))))


def batch(data: torch.Tensor, size: int, length: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Random pieces of the text and the same one letter later: two of (size, length)."""
    starts = torch.randint(len(data) - length, (size, 1))
    pieces = data[starts + torch.arange(length + 1)]
    return pieces[:, :-1], pieces[:, 1:]


def loss_of(model: nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """The mean cross-entropy of the next letter, in nats."""
    return F.cross_entropy(model(x).flatten(0, 1), y.flatten())


def write(model: nn.Module, start: torch.Tensor, count: int, longest: int = 64) -> torch.Tensor:
    """Letters drawn one after the other, each from the model's distribution for the next."""
    model.eval()
    with torch.no_grad():
        for _ in range(count):
            scores = model(start[:, -longest:])[:, -1]
            start = torch.cat([start, torch.multinomial(F.softmax(scores / 0.8, -1), 1)], 1)
    return start


def main(kind: str = "gpt", steps: int = 600) -> tuple[float, float]:
    """Trains and writes; (the loss at the start, the mean of the last twenty)."""
    torch.manual_seed(0)
    story = text()
    letters = sorted(set(story))
    number = {letter: i for i, letter in enumerate(letters)}
    data = torch.tensor([number[letter] for letter in story])
    model = LSTM(len(letters)) if kind == "lstm" else GPT(len(letters))
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    start, losses = time.perf_counter(), []
    for step in range(steps):
        loss = loss_of(model, *batch(data, 32, 64))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        if step % 100 == 0 or step == steps - 1:
            print(f"step {step:4}: loss {losses[-1]:.3f}, {time.perf_counter() - start:.1f} s")
    begin = torch.tensor([[number[letter] for letter in "The machine "]])
    print("".join(letters[i] for i in write(model, begin, 200)[0].tolist()))
    return losses[0], sum(losses[-20:]) / len(losses[-20:])


if __name__ == "__main__":
    main(*sys.argv[1:2], *map(int, sys.argv[2:3]))
