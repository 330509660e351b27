"""Streams, events, memory and properties of a card, asked of CuPy in its own words."""

from __future__ import annotations

from typing import Any

import pytest

import toytorch as torch

pytestmark = pytest.mark.usefixtures("device")


def test_properties() -> None:
    assert torch.cuda.is_available() and torch.cuda.device_count() >= 1
    assert torch.cuda.get_device_capability() >= (7, 5)
    found = torch.cuda.get_device_properties(0)
    assert found.multi_processor_count > 0 and found.total_memory > 1 << 30
    assert torch.cuda.get_device_name() == found.name
    free, total = torch.cuda.mem_get_info()
    assert 0 < free <= total


def test_streams_and_events() -> None:
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    stream = torch.cuda.Stream()
    start.record()
    with torch.cuda.stream(stream):
        assert torch.cuda.current_stream() == stream
        x = torch.ones(1000, device="cuda") * 2
        x.record_stream(stream)
        end.record()
    torch.cuda.current_stream().wait_stream(stream)
    stream.wait_event(end)
    end.synchronize()
    torch.cuda.synchronize()
    assert stream.query() and end.query() and start.elapsed_time(end) >= 0
    assert float(x.sum()) == 2000


def test_memory() -> None:
    x = torch.ones(1 << 20, device="cuda")
    assert 0 <= torch.cuda.memory_allocated() <= torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    del x
    torch.cuda.empty_cache()


def test_pinned_memory() -> None:
    x = torch.arange(6.0).reshape(2, 3)
    pinned = x.pin_memory()
    assert pinned.is_pinned() and not x.is_pinned() and pinned.pin_memory() is pinned
    moved = pinned.to("cuda", non_blocking=True)
    torch.cuda.synchronize()
    assert moved.device.type == "cuda" and (moved.cpu() == x).all() and (pinned == x).all()


def test_the_words_of_a_device_that_is_not_there(device: Any) -> None:
    count = torch.cuda.device_count()
    with pytest.raises(RuntimeError, match="invalid device ordinal"):
        torch.zeros(1, device=f"cuda:{count}")


def test_devices_do_not_mix() -> None:
    with pytest.raises(RuntimeError, match="on the same device"):
        torch.ones(3, device="cuda") + torch.ones(3)
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        torch.ones(3, device="cuda").numpy()
