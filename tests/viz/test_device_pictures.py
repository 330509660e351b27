"""Pictures of what the simulated device records: the same numbers as it tells itself."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import toytorch as torch
from tests.viz.helpers import parsed
from toytorch import nn, viz
from toytorch.viz.memory.snapshot_read import read


@pytest.fixture
def trained() -> Iterator[Any]:
    """A network trained for two steps on a simulated card, its batches copied on a stream."""
    with torch.cuda.simulate(devices=2) as simulation:
        net = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()
        optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
        side, main = torch.cuda.Stream(), torch.cuda.current_stream()
        for _ in range(2):
            batch = torch.randn(32, 64).pin_memory()
            with torch.cuda.stream(side):
                there = batch.to("cuda", non_blocking=True)
            main.wait_stream(side)
            there.record_stream(main)
            optimizer.zero_grad()
            loss = net(there).square().mean()
            loss.backward()
            optimizer.step()
            loss.item()
        yield simulation


def test_a_timeline_of_the_simulator(trained: Any) -> None:
    record = trained.timeline
    picture = viz.timeline(record)
    rows = [row.name for row in picture.chart.rows]
    assert rows[0] == "host" and "cuda:0 stream 0" in rows
    bars = [bar for row in picture.chart.rows for lane in row.lanes for bar in lane]
    assert len(bars) == len(record.spans)
    assert picture.chart.last == pytest.approx(record.end)
    assert {link.kind for link in picture.chart.links} == {"launch", "event", "sync"}
    assert all(link.start <= link.end for link in picture.chart.links)
    kernels = [bar for bar in bars if bar.kind == "kernel"]
    assert all((bar.facts and bar.facts[-1].startswith("test_device_pictures.py line"))
               or "<toytorch" in bar.facts[-1] for bar in kernels)  # fmt: skip
    parsed(picture.svg)


def test_a_memory_map_of_the_simulator(trained: Any) -> None:
    snapshot = torch.cuda.memory._snapshot()
    history = read(snapshot)
    assert history.first.blocks == {} and history.first.segments == {}
    last = history.states([len(history.events) - 1])[0]
    assert last.active == torch.cuda.memory_allocated()
    assert last.reserved == torch.cuda.memory_reserved()
    assert max(history.totals()) == torch.cuda.max_memory_allocated()
    steps = viz.memory_map(snapshot)
    assert len(steps) == len(history.events) + 1
    parsed(steps.svg(0))
