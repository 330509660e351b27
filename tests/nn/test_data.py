"""TensorDataset and DataLoader: batches, order, collation, what is refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, both, error_difference, torch, tt


def loaded(m: Any, n: int = 10, **options: Any) -> list[Any]:
    data = m.utils.data
    dataset = data.TensorDataset(m.arange(n), m.arange(float(n)) * 10)
    return list(data.DataLoader(dataset, **options))


class Squares:
    """A map-style dataset without a base class."""

    def __len__(self) -> int:
        return 5

    def __getitem__(self, i: int) -> Any:
        if not 0 <= i < 5:
            raise IndexError(i)
        return {
            "x": i,
            "y": float(i * i),
            "name": f"n{i}",
            "pair": (i, [i, i + 1]),
            "array": np.full(2, i),
        }


CASES: dict[str, Any] = {
    "default batch": lambda m: loaded(m),
    "batches of three": lambda m: loaded(m, batch_size=3),
    "last one dropped": lambda m: loaded(m, batch_size=3, drop_last=True),
    "no batches": lambda m: loaded(m, batch_size=None),
    "length": lambda m: [len(m.utils.data.DataLoader(range(10), batch_size=3, drop_last=d)) for d
        in (True, False)],
    "numbers": lambda m: list(m.utils.data.DataLoader(range(5), batch_size=2)),
    "floats": lambda m: list(m.utils.data.DataLoader([1.5, 2.5], batch_size=2)),
    "nested": lambda m: list(m.utils.data.DataLoader(Squares(), batch_size=2)),
    "own collate": lambda m: list(m.utils.data.DataLoader(range(5), batch_size=2, collate_fn=sum)),
    "dataset": lambda m: m.utils.data.TensorDataset(m.arange(3), m.arange(3.0))[1],
    "dataset slice": lambda m: m.utils.data.TensorDataset(m.arange(3), m.arange(3.0))[:2],
    "dataset length": lambda m: len(m.utils.data.TensorDataset(m.zeros(7, 2))),
    "twice": lambda m: [[b.tolist() for b in loader] for loader
        in [m.utils.data.DataLoader(range(4), 2)] * 2],
}  # fmt: skip


@pytest.mark.parametrize("label", CASES)
def test_loading(label: str) -> None:
    assert attempt(CASES[label], torch)[1] is None
    both(CASES[label])


MISUSE: dict[str, Any] = {
    "sizes": lambda m: m.utils.data.TensorDataset(m.ones(2), m.ones(3)),
    "batch of none": lambda m: m.utils.data.DataLoader(range(3), batch_size=0),
    "negative batch": lambda m: m.utils.data.DataLoader(range(3), batch_size=-1),
    "different shapes": lambda m: list(
        m.utils.data.DataLoader([m.ones(2), m.ones(3)], batch_size=2)
    ),
    "objects": lambda m: list(m.utils.data.DataLoader([object(), object()], batch_size=2)),
    "shuffle and sampler": lambda m: m.utils.data.DataLoader(
        range(3), shuffle=True, sampler=[0, 1]
    ),
    "negative workers": lambda m: m.utils.data.DataLoader(range(3), num_workers=-1),
}


@pytest.mark.parametrize("label", MISUSE)
def test_misuse(label: str) -> None:
    want, got = attempt(MISUSE[label], torch)[1], attempt(MISUSE[label], tt)[1]
    assert want is not None
    bad = error_difference(want, got)
    assert not bad, bad


def test_shuffling() -> None:
    """Every element once, in an order that the seed decides and that changes by epoch."""
    data = tt.utils.data
    tt.manual_seed(1)
    loader = data.DataLoader(range(50), batch_size=7, shuffle=True)
    one = [i for b in loader for i in b.tolist()]
    two = [i for b in loader for i in b.tolist()]
    assert sorted(one) == sorted(two) == list(range(50))
    assert one != two
    assert one != list(range(50))
    tt.manual_seed(1)
    assert [
        i for b in data.DataLoader(range(50), batch_size=7, shuffle=True) for i in b.tolist()
    ] == one


def test_generator_decides_the_order() -> None:
    orders = []
    for _ in range(2):
        generator = tt.Generator().manual_seed(4)
        loader = tt.utils.data.DataLoader(
            range(20), batch_size=20, shuffle=True, generator=generator
        )
        orders.append(next(iter(loader)).tolist())
    assert orders[0] == orders[1]


def test_batches_train() -> None:
    tt.manual_seed(0)
    x = tt.randn(64, 3)
    y = x @ tt.tensor([[1.0], [-2.0], [0.5]])
    loader = tt.utils.data.DataLoader(
        tt.utils.data.TensorDataset(x, y), batch_size=16, shuffle=True
    )
    model = tt.nn.Linear(3, 1)
    optimizer = tt.optim.Adam(model.parameters(), lr=0.05)
    for _ in range(60):
        for a, b in loader:
            optimizer.zero_grad()
            loss = tt.nn.functional.mse_loss(model(a), b)
            loss.backward()
            optimizer.step()
    assert loss.item() < 1e-2
