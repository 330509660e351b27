"""Whole steps of training, compiled: an MLP's with SGD, an LSTM forward and backward, and a
transformer block with AdamW.

    python -m tests.benchmarks.steps [-k TEXT] [--threads N] [--samples N] [--no-others]

The sides are those of `tests.benchmarks.fusion`, in turns in one run: toytorch compiled and eager,
PyTorch eager and torch.compile. The last column is compiled to our own eager.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from typing import Any

from tests.benchmarks.fusion import measure  # first: it settles the number of threads

Work = Callable[[], Any]


def mlp(m: Any, compile: Callable[[Any], Any]) -> Work:
    """Forward, cross-entropy, backward and SGD of three layers on a batch of 64."""
    net = m.nn.Sequential(
        m.nn.Linear(784, 256), m.nn.ReLU(), m.nn.Linear(256, 256), m.nn.ReLU(), m.nn.Linear(256, 10)
    )
    rule = m.optim.SGD(net.parameters(), lr=1e-3)
    x, target = m.randn(64, 784), m.arange(64) % 10
    loss_of = compile(lambda x, target: m.nn.functional.cross_entropy(net(x), target))

    def step() -> Any:
        rule.zero_grad()
        loss = loss_of(x, target)
        loss.backward()
        rule.step()
        return loss

    return step


def lstm(m: Any, compile: Callable[[Any], Any], size: int = 128, steps: int = 16) -> Work:
    """An LSTM written out: 16 steps of a batch of 32, 128 wide, and their derivatives."""
    cell = m.nn.ParameterList(
        [m.nn.Parameter(m.randn(4 * size, size) * 0.05) for _ in range(2)]
        + [m.nn.Parameter(m.zeros(4 * size))]
    )
    xs, zero = m.randn(steps, 32, size), m.zeros(32, size)

    def run(xs: Any, h: Any, c: Any) -> Any:
        outs = []
        for x in xs:
            gates = x @ cell[0].t() + h @ cell[1].t() + cell[2]
            i, f, g, o = gates.chunk(4, 1)
            c = m.sigmoid(f) * c + m.sigmoid(i) * m.tanh(g)
            h = m.sigmoid(o) * m.tanh(c)
            outs.append(h)
        return m.stack(outs).square().mean()

    loss_of = compile(run)

    def step() -> Any:
        for p in cell:
            p.grad = None
        loss = loss_of(xs, zero, zero)
        loss.backward()
        return loss

    return step


def transformer(m: Any, compile: Callable[[Any], Any], size: int = 128, heads: int = 4) -> Work:
    """A block as nanoGPT writes it, on 8 sequences of 64, with AdamW."""
    nn, F = m.nn, m.nn.functional

    class Block(nn.Module):  # type: ignore[misc, name-defined]  # of either package
        def __init__(self) -> None:
            super().__init__()
            self.before, self.between = nn.LayerNorm(size), nn.LayerNorm(size)
            self.qkv, self.out = nn.Linear(size, 3 * size), nn.Linear(size, size)
            self.wide, self.narrow = nn.Linear(size, 4 * size), nn.Linear(4 * size, size)

        def forward(self, x: Any) -> Any:
            B, T, C = x.size()
            q, k, v = (
                part.view(B, T, heads, C // heads).transpose(1, 2)
                for part in self.qkv(self.before(x)).split(C, dim=2)
            )
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            x = x + self.out(y.transpose(1, 2).contiguous().view(B, T, C))
            return x + self.narrow(F.gelu(self.wide(self.between(x))))

    block, x = Block(), m.randn(8, 64, size)
    rule = m.optim.AdamW(block.parameters(), lr=1e-3)
    run = compile(block)

    def step() -> Any:
        rule.zero_grad()
        loss = run(x).square().mean()
        loss.backward()
        rule.step()
        return loss

    return step


STEPS = {
    "MLP step 64x784-256-256-10, SGD": mlp,
    "LSTM 16x32x128, written out": lstm,
    "transformer block 8x64x128, AdamW": transformer,
}


def sides(build: Callable[..., Work], others: bool) -> dict[str, Work]:
    """What each side runs."""
    import torch as theirs

    import toytorch as ours

    ours.manual_seed(0)
    works = {
        "compiled": build(ours, ours.compile),
        "eager": build(ours, lambda f: f),
        "PyTorch": build(theirs, lambda f: f),
    }
    if others:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                works["torch.compile"] = build(theirs, theirs.compile)
                works["torch.compile"]()
            except Exception as error:  # whatever its compiler lacks
                del works["torch.compile"]
                print(f"no torch.compile: {type(error).__name__}", file=sys.stderr)
    return works


def main() -> int:
    p = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.steps",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    p.add_argument("-k", default="", metavar="TEXT", help="only steps whose name holds this")
    p.add_argument("--threads", type=int, default=1)
    p.add_argument("--samples", type=int, default=101)
    p.add_argument("--no-others", action="store_true", help="without torch.compile")
    options = p.parse_args()
    import torch as theirs

    theirs.set_num_threads(options.threads)
    names = ("compiled", "eager", "torch.compile")
    print(
        f"threads {options.threads}; ratios to PyTorch eager\n{'':36}{'PyTorch':>10}"
        + "".join(f"{n:>14}" for n in names)
        + f"{'compiled/eager':>16}"
    )
    for name, build in STEPS.items():
        if options.k in name:
            found = measure(sides(build, not options.no_others), options.samples)
            own = found["compiled"][0] / found["eager"][0]
            print(
                f"{name:36}{found['PyTorch'][0] * 1e6:>7.0f} µs"
                + "".join(f"{found[n][1]:>14.2f}" if n in found else f"{'-':>14}" for n in names)
                + f"{own:>16.2f}",
                flush=True,
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
