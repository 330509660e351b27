"""What the simulated device costs: CPU time of training steps on it, over the same steps on the CPU.

    python -m tests.benchmarks.simulator [--samples N]

The two take turns; what is printed are medians of the process's own time on one thread. A sample is
a group of steps, as the simulated machine deals with many launches at once, in every so manieth step.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import toytorch as torch
from toytorch import nn

Step = Callable[[], object]
GROUP = 32  # steps of a sample


def regression(device: str) -> Step:
    """A step of SGD of a network of 16 units, the smallest that people train."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1)).to(device)
    x, y = torch.randn(32, 8).to(device), torch.randn(32, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.mse_loss(model(x), y).backward()
        optimizer.step()

    return step


def mlp(device: str, batch: int, width: int) -> Step:
    """A step of Adam of a network of three linear layers."""
    model = nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, width), nn.ReLU(), nn.Linear(width, 10)
    )
    x, y = torch.randn(batch, 64), torch.randint(0, 10, (batch,))
    return classify(model.to(device), torch.optim.Adam, x.to(device), y.to(device))


def convolutions(device: str) -> Step:
    """A step of SGD of a network for 64 digits of 8 x 8 pixels."""
    model = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(128, 10),
    )  # fmt: skip
    x, y = torch.randn(64, 1, 8, 8), torch.randint(0, 10, (64,))
    return classify(model.to(device), torch.optim.SGD, x.to(device), y.to(device))


def transformer(device: str) -> Step:
    """A step of AdamW of one transformer layer on 16 sequences of 32 vectors."""
    model = nn.TransformerEncoderLayer(64, 4, 128, 0.0, batch_first=True).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    x = torch.randn(16, 32, 64).to(device)

    def step() -> None:
        optimizer.zero_grad()
        model(x).pow(2).mean().backward()
        optimizer.step()

    return step


def classify(model: nn.Module, rule: type, x: torch.Tensor, y: torch.Tensor) -> Step:
    """A step of a classifier."""
    optimizer = rule(model.parameters(), lr=1e-3)

    def step() -> None:
        optimizer.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        optimizer.step()

    return step


CASES: dict[str, Callable[[str], Step]] = {
    "MLP 8-16-1, SGD": regression,
    "MLP 64 x 64": lambda device: mlp(device, 64, 64),
    "MLP 128 x 256": lambda device: mlp(device, 128, 256),
    "convolutions, digits": convolutions,
    "transformer layer": transformer,
}


def measured(build: Callable[[str], Step], samples: int) -> tuple[float, float]:
    """Seconds of a step on the CPU and on the simulated device."""
    steps = [build("cpu"), build("cuda")]
    taken: list[list[float]] = [[], []]
    for turn in range(samples + 1):
        for step, times in zip(steps, taken, strict=True):
            start = time.process_time()
            for _ in range(GROUP):
                step()
            if turn:  # the first turn compiles
                times.append((time.process_time() - start) / GROUP)
    cpu, simulated = (statistics.median(times) for times in taken)
    return cpu, simulated


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--samples", type=int, default=10, metavar="N")
    samples = parser.parse_args(arguments).samples
    torch.set_num_threads(1)
    with torch.cuda.simulate():
        for name, build in CASES.items():
            torch.manual_seed(0)
            cpu, simulated = measured(build, samples)
            print(
                f"{name:22} CPU {cpu * 1e3:6.2f} ms  simulated {simulated * 1e3:6.2f} ms"
                f"  {simulated / cpu:.2f}"
            )


if __name__ == "__main__":
    main()
