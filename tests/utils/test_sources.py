"""Datasets and samplers beside PyTorch's."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

BOTH = pytest.mark.parametrize("m", [tt, torch])


def same(function: Any) -> Any:
    """What a function of (utils.data, module) gives here, which must be what PyTorch gives."""

    def result(m: Any) -> Any:
        try:
            return function(m.utils.data, m)
        except Exception as error:
            return type(error), str(error)

    got, want = result(tt), result(torch)
    assert got == want
    return got


def test_stack_chain_concat() -> None:
    def stream(d: Any, n: int) -> Any:
        class Count(d.IterableDataset):  # type: ignore[misc]
            def __iter__(self) -> Any:
                return iter(range(n))

            def __len__(self) -> int:
                return n

        return Count()

    assert same(lambda d, m: d.StackDataset([1, 2], "ab")[1]) == (2, "b")
    assert same(lambda d, m: d.StackDataset(x=[1, 2], y="ab")[0]) == {"x": 1, "y": "a"}
    assert same(lambda d, m: len(d.StackDataset([1, 2]))) == 2
    for bad in (
        lambda d, m: d.StackDataset([1], [1, 2]),
        lambda d, m: d.StackDataset(),
        lambda d, m: d.StackDataset([1], x=[1]),
        lambda d, m: list(d.ChainDataset([[1]])),
        lambda d, m: d.ConcatDataset([]),
    ):
        assert isinstance(same(bad)[0], type)
    assert same(lambda d, m: list(d.ChainDataset([stream(d, 2), stream(d, 3)]))) == [0, 1, 0, 1, 2]
    assert same(lambda d, m: list(stream(d, 1) + stream(d, 2))) == [0, 0, 1]
    assert same(lambda d, m: len(stream(d, 1) + stream(d, 2))) == 3
    assert same(lambda d, m: [d.ConcatDataset([[1], [2, 3]])[i] for i in (0, 2, -1)]) == [1, 3, 3]


@pytest.mark.parametrize("drop", [False, True])
@pytest.mark.parametrize("n", [1, 5, 6, 7])
def test_distributed(n: int, drop: bool) -> None:
    for rank in range(3):
        same(
            lambda d, m, r=rank: (
                list(s := d.DistributedSampler(range(n), 3, r, shuffle=False, drop_last=drop)),
                len(s),
            )
        )
    shares = [
        list(tt.utils.data.DistributedSampler(range(n), 3, r, drop_last=drop)) for r in range(3)
    ]
    seen = [i for share in shares for i in share]
    assert len(seen) == len(shares[0]) * 3
    assert set(seen) <= set(range(n)) and (drop or set(seen) == set(range(n)))
    sampler = tt.utils.data.DistributedSampler(range(50), 2, 0)
    before = list(sampler)
    assert before == list(sampler)
    sampler.set_epoch(1)
    assert before != list(sampler)
    assert isinstance(same(lambda d, m: d.DistributedSampler(range(3), 2, 2))[0], type)


# -- a batch of a TensorDataset is one take ---------------------------------------------------------


def _taken(m: Any, wrap: bool) -> Any:
    """What an epoch gives, and what comes of indices that a sampler should not give."""
    data = m.utils.data
    x = m.arange(60, dtype=m.float32).reshape(20, 3)
    rows = data.TensorDataset(x, m.arange(20) % 7, m.arange(20) > 9)
    rows = data.Subset(rows, [5, 3, -1, 19, 0, 7, 7]) if wrap else rows
    found: list[Any] = []
    for index in ([0, 2, 1], [-1, 0], [3], [6, 6, 6, 2], [40], [-41], [True, False], []):
        loader = data.DataLoader(rows, batch_sampler=[index])
        try:
            for batch in loader:
                found.append(
                    [(type(b).__name__, b.stride(), b.tolist(), str(b.dtype)) for b in batch]
                )
                found.append(type(batch).__name__)
        except Exception as error:
            found.append((type(error).__name__, str(error)))
    return found


@pytest.mark.parametrize("wrap", [False, True])
def test_taken(wrap: bool) -> None:
    assert _taken(tt, wrap) == _taken(torch, wrap)


def test_taken_with_gradients_and_writes() -> None:
    for m in (torch, tt):
        x = m.ones(6, 2, requires_grad=True)
        data = m.utils.data
        ((batch,),) = data.DataLoader(data.TensorDataset(x), batch_size=6)
        batch.sum().backward()
        assert x.grad.tolist() == [[1, 1]] * 6
        with m.no_grad():
            ((batch,),) = data.DataLoader(data.TensorDataset(x), batch_size=6)
            batch.zero_()
        assert not batch.requires_grad
        assert x.sum().item() == 12
