"""The same seed gives PyTorch's parameters, shuffles, workers' seeds and losses.

`TOYTORCH_SEEDS=50` goes through 50 more seeds.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.nn.test_every_module import MODULES, inputs
from tests.oracle import torch, tt

MORE = range(100, 100 + int(os.environ.get("TOYTORCH_SEEDS", "0")))
ROTATED = {"orthogonal_"}  # made by QR, whose last bits are LAPACK's


def numbers(t: Any) -> Any:
    return t.detach().double().numpy()


@pytest.mark.parametrize("label", MODULES)
def test_modules_start_alike(label: str) -> None:
    """Parameters bit by bit, and what a call in training mode gives."""
    for seed in (7, *MORE):
        start_alike(label, seed)


def start_alike(label: str, seed: int) -> None:
    name = label.partition("/")[0]
    args, options, shapes = MODULES[label]
    inputs.name = name  # type: ignore[attr-defined]
    made: list[Any] = []
    for m in (torch, tt):
        m.manual_seed(seed)
        module = getattr(m.nn, name)(*args, **options)
        if shapes and name.startswith("Lazy"):
            module(*(x.float() if hasattr(x, "float") else x for x in inputs(m, shapes)))
        elif shapes == ():
            x = (m.arange(60.0) / 32 - 1).reshape(2, 3, 10 if name == "Dropout1d" else 2, -1)
            made.append(numbers(module(x.squeeze(-1))))
        made.append({k: numbers(v) for k, v in module.state_dict().items()})
        made.append(m.rand(1).item())
    half = len(made) // 2
    for want, got in zip(made[:half], made[half:]):
        if isinstance(want, dict):
            assert list(want) == list(got)
            for key in want:
                if "running" not in key:  # of the lazy ones' first call, to rounding
                    np.testing.assert_array_equal(got[key], want[key], key)
        elif isinstance(want, float):
            assert want == got
        else:
            np.testing.assert_allclose(got, want, rtol=1e-6)


INITS: dict[str, tuple[tuple[int, ...], tuple[Any, ...]]] = {
    "uniform_": ((20, 30), (-0.5, 0.7)),
    "normal_": ((20, 30), (0.1, 0.7)),
    "trunc_normal_": ((40, 50), ()),
    "trunc_normal_ far": ((40, 50), (0.0, 1.0, 2.0, 4.0)),
    "trunc_normal_ narrow": ((40, 50), (0.0, 0.02, -0.03, 0.05)),
    "xavier_uniform_": ((3, 4, 5, 5), ()),
    "xavier_normal_": ((20, 30), (2.0,)),
    "kaiming_uniform_": ((20, 30), ()),
    "kaiming_normal_": ((7, 4, 3), (0, "fan_out", "relu")),
    "orthogonal_": ((6, 4), ()),
    "orthogonal_ wide": ((4, 9), ()),
    "sparse_": ((20, 30), (0.3,)),
}


@pytest.mark.parametrize("label", INITS)
@pytest.mark.parametrize("own", [False, True])
def test_initialisers(label: str, own: bool) -> None:
    shape, args = INITS[label]
    name = label.partition(" ")[0]
    cases = [(type, seed) for seed in (3, *MORE) for type in ("float32", "float64", "bfloat16")]
    for type, seed in cases:
        if type == "bfloat16" and name in ROTATED:
            continue  # no QR
        made = []
        for m in (torch, tt):
            m.manual_seed(seed)
            options = {"generator": m.Generator().manual_seed(seed + 6)} if own else {}
            x = m.empty(shape, dtype=getattr(m, type))
            made.append(numbers(getattr(m.nn.init, name)(x, *args, **options)))
            made.append(m.rand(1).item())
        if name in ROTATED:
            np.testing.assert_allclose(made[2], made[0], rtol=1e-4, atol=1e-5)
        else:
            np.testing.assert_array_equal(made[2], made[0])
        assert made[1] == made[3]


class Drawing:
    """Examples that draw numbers in the process that fetches them."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, i: int) -> Any:
        draws = self.m.rand(1).item(), random.random(), float(np.random.rand())
        return i, self.m.utils.data.get_worker_info().seed, *draws

    def __init__(self, m: Any) -> None:
        self.m = m


def plain(batches: Any) -> Any:
    """The batches as lists."""
    return [[v.tolist() if hasattr(v, "tolist") else v for v in batch] for batch in batches]


ORDERS: dict[str, Callable[[Any, Any], Any]] = {
    "shuffled": lambda d, m: d.DataLoader(range(37), 5, shuffle=True),
    "with a generator": lambda d, m: d.DataLoader(
        range(37), 5, shuffle=True, generator=m.Generator().manual_seed(4)
    ),
    "random sampler": lambda d, m: d.RandomSampler(range(10)),
    "more than there are": lambda d, m: d.RandomSampler(range(10), num_samples=33),
    "with replacement": lambda d, m: d.RandomSampler(range(10), True, 70),
    "with replacement, its own": lambda d, m: d.RandomSampler(
        range(10), True, 64, m.Generator().manual_seed(4)
    ),
    "subset": lambda d, m: d.SubsetRandomSampler([5, 7, 9, 11]),
    "weighted": lambda d, m: d.WeightedRandomSampler([1.0, 2, 3, 4], 30),
    "weighted, each once": lambda d, m: d.WeightedRandomSampler([1.0, 2, 3, 4], 3, False),
    "split": lambda d, m: [list(s.indices) for s in d.random_split(range(20), [0.5, 0.3, 0.2])],
    "distributed": lambda d, m: d.DistributedSampler(range(11), 2, 1),
}


@pytest.mark.parametrize("label", ORDERS)
def test_orders(label: str) -> None:
    for seed in (5, *MORE):
        same_orders(label, seed)


def same_orders(label: str, seed: int) -> None:
    found = []
    for m in (torch, tt):
        m.manual_seed(seed)
        data = m.utils.data
        if label == "distributed":
            data = m.utils.data.distributed if m is torch else m.utils.data
        order = ORDERS[label](data, m)
        epochs = [[v.tolist() if hasattr(v, "tolist") else v for v in order] for _ in range(2)]
        found.append((epochs, m.rand(1).item()))
    assert found[0] == found[1]


@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_workers_draw_alike() -> None:
    """Seeds of workers, and what toytorch, `random` and NumPy draw in them."""
    for seed in (5, *MORE):
        found = []
        for m in (torch, tt):
            m.manual_seed(seed)
            loader = m.utils.data.DataLoader(Drawing(m), 2, shuffle=True, num_workers=2)
            found.append((plain(loader), m.rand(1).item()))
        assert found[0] == found[1]


def test_training_prints_the_same_losses() -> None:
    """Three epochs with default initialisation, a shuffled loader and dropout.

    The convolution has no bias: its gradient before a normalisation is nothing but rounding, of which
    Adam would make steps of full length.
    """
    for seed in (42, *MORE[:10]):
        printed = [losses(m, seed) for m in (torch, tt)]
        assert printed[0] == printed[1]


def losses(m: Any, seed: int) -> list[str]:
    """What a training script of three epochs prints."""
    nn = m.nn
    m.manual_seed(seed)
    x = m.randn(300, 1, 8, 8)
    y = (x.mean((1, 2, 3)) > 0).long()
    data = m.utils.data.TensorDataset(x, y)
    train, test = m.utils.data.random_split(data, [240, 60])
    loader = m.utils.data.DataLoader(train, batch_size=32, shuffle=True)
    model = nn.Sequential(
        nn.Conv2d(1, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout2d(0.2), nn.Flatten(),
        nn.Linear(144, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 2),
    )  # fmt: skip
    optimizer = m.optim.Adam(model.parameters(), lr=3e-3)
    lines = []
    for epoch in range(3):
        model.train()
        total = 0.0
        for a, b in loader:
            optimizer.zero_grad()
            loss = nn.functional.cross_entropy(model(a), b)
            loss.backward()
            optimizer.step()
            total += loss.item() * len(a)
        model.eval()
        with m.no_grad():
            held = m.stack([test[i][0] for i in range(60)])
            answers = m.stack([test[i][1] for i in range(60)])
            score = nn.functional.cross_entropy(model(held), answers).item()
        lines.append(f"{epoch} {total / 240:.4f} {score:.4f}")
    return lines
