"""Draws the pictures of the README: python docs/make_pictures.py

The benchmark plot is drawn by `python -m tests.benchmarks --plot docs/pictures/benchmarks.svg`.
"""

from pathlib import Path

import toytorch as torch
from toytorch import nn, viz

HERE = Path(__file__).parent / "pictures"


def main() -> None:
    """Draws every picture anew; the bytes depend on the code only."""
    HERE.mkdir(exist_ok=True)
    x = torch.arange(12.0).reshape(3, 4)
    viz.storage(x=x, t=x.t(), row=x[1], corner=x[1:, 2:]).save(HERE / "storage.png")

    torch.manual_seed(0)
    layer = nn.Linear(3, 2)
    data, target = torch.randn(4, 3), torch.tensor([0, 1, 1, 0])
    loss = nn.functional.cross_entropy(layer(data).tanh(), target)
    viz.autograd_graph(loss, params=dict(layer.named_parameters())).save(HERE / "graph.png")

    w = torch.tensor(2.0, requires_grad=True)
    b = torch.tensor(1.0, requires_grad=True)
    y = w * 3 + b
    steps = viz.backward_steps(y * y + w, params={"w": w, "b": b})
    (HERE / "steps.png").write_bytes(steps.png(len(steps) // 2))


if __name__ == "__main__":
    main()
