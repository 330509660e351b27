"""Simulated devices: real results, virtual time, streams, copies, late errors."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import toytorch as torch


@pytest.fixture
def sim() -> Iterator[Any]:
    with torch.cuda.simulate(devices=2, model="V100") as made:
        yield made


def train(device: str) -> tuple[list[float], float]:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    x, y = torch.randn(32, 8), torch.randn(32, 1)
    model, x, y = model.to(device), x.to(device), y.to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(5):
        loss = (model(x) - y).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    now = torch.cuda.current_stream().device if device != "cpu" else None
    return losses, 0.0 if now is None else 1.0


def test_results_are_those_of_the_cpu(sim: Any) -> None:
    assert train("cuda")[0] == train("cpu")[0]


def test_the_same_program_takes_the_same_time() -> None:
    times = []
    for _ in range(2):
        with torch.cuda.simulate(model="H100") as sim:
            train("cuda")
            times.append((sim.now, [(s.name, s.start, s.end) for s in sim.timeline.spans]))
    assert times[0] == times[1]


def test_simulations_nest_as_their_blocks_do(sim: Any) -> None:
    x = torch.ones(3, device="cuda")
    with torch.cuda.simulate(model="H100"):
        assert torch.cuda.get_device_name() == "H100 (simulated)"
    assert torch.cuda.get_device_name() == "V100 (simulated)"
    assert (x * 2).tolist() == [2.0, 2.0, 2.0]
    assert torch.ones(3).pin_memory().is_pinned()


@pytest.mark.parametrize("name", ["nonzero", "mask", "masked_select"])
def test_the_host_waits_for_a_shape(sim: Any, name: str) -> None:
    x = torch.ones(2000, 2000, device="cuda")
    find = {"nonzero": x.nonzero, "mask": lambda: x[x > 0]}.get(name)
    find = find or (lambda: x.masked_select(x > 0))
    find()  # its memory is cached from now on
    torch.cuda.synchronize()
    x @ x  # 1460 µs
    before = sim.now
    find()
    assert sim.now - before > 1000


def test_work_is_asynchronous(sim: Any) -> None:
    x = torch.ones(4000, 4000, device="cuda")
    torch.cuda.synchronize()
    before = sim.now
    y = x @ x
    assert sim.now - before < 150  # of which 100 are for new memory
    y[0, 0].item()
    assert sim.now - before > 5000  # 128 GFLOP at 11 TFLOP/s


def test_the_host_may_not_look(sim: Any) -> None:
    x = torch.ones(3, device="cuda")
    with pytest.raises(TypeError, match="can't convert cuda:0 device type tensor to numpy"):
        np.asarray(x)
    with pytest.raises(TypeError, match="host cannot read"):
        np.asarray(x._array)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda a, b: a + b,
        lambda a, b: a @ b,
        lambda a, b: torch.cat([a, b]),
        lambda a, b: a.add_(b),
        lambda a, b: torch.where(a > 0, a, b),
        lambda a, b: torch.nn.functional.linear(a, b),
    ],
)
def test_devices_do_not_mix(sim: Any, wrong: Any) -> None:
    here = torch.ones(2, 2, device="cuda")
    for there in (torch.ones(2, 2), torch.ones(2, 2, device="cuda:1")):
        with pytest.raises(RuntimeError, match="Expected all tensors to be on the same device"):
            wrong(here, there)
    assert (here * torch.tensor(2.0)).sum().item() == 8  # a number in a tensor may be anywhere


def test_an_index_out_of_range_is_reported_later(
    sim: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    table = torch.randn(3, 2, device="cuda")
    rows = table[torch.tensor([0, 7], device="cuda")]
    assert rows.shape == (2, 2)
    assert "Assertion" in capsys.readouterr().err
    for _ in range(2):  # it stays
        with pytest.raises(torch.AcceleratorError, match="device-side assert triggered"):
            torch.cuda.synchronize()


def test_or_at_once_where_launches_block(monkeypatch: pytest.MonkeyPatch) -> None:
    with torch.cuda.simulate():
        monkeypatch.setenv("CUDA_LAUNCH_BLOCKING", "1")
        table = torch.nn.Embedding(3, 2).cuda()
        with pytest.raises(torch.AcceleratorError):
            table(torch.tensor([7], device="cuda"))


def test_real_time_passes_where_the_host_waits() -> None:
    with torch.cuda.simulate(model="V100", realtime=True) as sim:
        began = time.perf_counter()
        x = torch.ones(8 << 20).cuda()  # 33 MB over the host's link, pageable: about 5 ms
        for _ in range(100):
            x.mul_(1.0)
        torch.cuda.synchronize()
        assert sim.now > 5_000
        assert (time.perf_counter() - began) * 1e6 > sim.now - 1_000


def test_wrong_arguments_are_reported_at_once(sim: Any) -> None:
    x = torch.ones(2, 3, device="cuda")
    with pytest.raises(IndexError, match="Dimension out of range"):
        x.sum(5)
    with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
        x @ x
    torch.cuda.synchronize()


def test_copies_overlap_with_kernels(sim: Any) -> None:
    def run(overlapped: bool) -> float:
        torch.cuda.synchronize()
        start = sim.now
        copies = torch.cuda.Stream() if overlapped else torch.cuda.current_stream()
        batches = [torch.ones(1000, 1000).pin_memory() for _ in range(6)]
        weight = torch.ones(1000, 1000, device="cuda")
        total = torch.zeros((), device="cuda")
        for batch in batches:
            with torch.cuda.stream(copies):
                x = batch.to("cuda", non_blocking=True)
                ready = copies.record_event()
            torch.cuda.current_stream().wait_event(ready)
            x.record_stream(torch.cuda.current_stream())
            for _ in range(2):
                total += (x @ weight).sum()
        torch.cuda.synchronize()
        return sim.now - start

    assert run(False) / run(True) > 1.4


def test_events_measure_kernels(sim: Any) -> None:
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    x = torch.ones(25_000_000, device="cuda")
    first.record()
    for _ in range(10):
        x = x * 2
    last.record()
    with pytest.raises(RuntimeError, match="device not ready"):
        first.elapsed_time(last)
    last.synchronize()
    # 200 MB at 85 % of 900 GB/s, 3 µs around each
    assert first.elapsed_time(last) == pytest.approx(10 * (200e6 / 765e9 + 3e-6) * 1e3, rel=0.02)


def test_backward_follows_the_streams_of_forward(sim: Any) -> None:
    side = torch.cuda.Stream()
    w = torch.ones(100, device="cuda", requires_grad=True)
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        loss = (w * w).sum()
    loss.backward()  # the engine makes streams wait for each other
    assert w.grad is not None and w.grad.sum().item() == 200


def test_graphs_replay_with_new_inputs(sim: Any) -> None:
    x = torch.zeros(4, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = (x * 2 + 1).sum()
    assert not torch.cuda.is_current_stream_capturing()
    for n in range(3):
        x.copy_(torch.full((4,), float(n)))
        graph.replay()
        assert y.item() == 4 * (2 * n + 1)
    before = sim.now
    graph.replay()
    assert sim.now - before < 15  # one launch for three kernels
    with pytest.raises(torch.AcceleratorError, match="legacy stream"):
        torch.cuda.CUDAGraph().capture_begin() or x * 2


def test_a_block_ends_what_was_simulated_inside(sim: Any) -> None:
    with torch.cuda.simulate(model="H100"):
        torch.cuda.simulate(model="T4")
        assert torch.cuda.get_device_name() == "T4 (simulated)"
    assert torch.cuda.get_device_name() == "V100 (simulated)"
    sim.end()
    assert not torch.cuda.is_simulated()


def test_graphed_modules_train(sim: Any) -> None:
    torch.manual_seed(0)
    plain = torch.nn.Linear(3, 2).cuda()
    graphed = torch.nn.Linear(3, 2).cuda()
    graphed.load_state_dict(plain.state_dict())
    sample = torch.randn(4, 3, device="cuda")
    graphed = torch.cuda.make_graphed_callables(graphed, (sample,))
    for _ in range(2):
        x = torch.randn(4, 3, device="cuda")
        for model in (plain, graphed):
            model.zero_grad()
            model(x).pow(2).sum().backward()
        assert torch.allclose(plain.weight.grad, graphed.weight.grad)


def test_what_is_asked_without_a_device() -> None:
    if torch.cuda.is_available():
        pytest.skip("there is a card here")
    assert torch.cuda.max_memory_allocated() == torch.cuda.device_count() == 0
    assert torch.cuda.memory_stats() == {}
    torch.cuda.empty_cache()
    torch.cuda.manual_seed_all(3)
    for asked in (
        torch.cuda.current_stream, torch.cuda.synchronize, torch.cuda.Stream, torch.cuda.Event,
        torch.cuda.mem_get_info, torch.cuda.current_device, torch.cuda.CUDAGraph,
        lambda: torch.ones(2).cuda(), lambda: torch.ones(2, device="cuda"),
        lambda: torch.nn.Linear(1, 1).to("cuda"), torch.cuda.get_device_properties,
    ):  # fmt: skip
        with pytest.raises((AssertionError, RuntimeError), match="simulate it"):
            asked()


def test_older_classes_of_tensors(sim: Any) -> None:
    x = torch.cuda.FloatTensor([1.0, 2.0])
    assert x.is_cuda and isinstance(x, torch.cuda.FloatTensor)
    assert not isinstance(x.cpu(), torch.cuda.FloatTensor)
    assert torch.cuda.LongTensor(2, 3).shape == (2, 3)


def test_more_memory_than_any_card_has(sim: Any) -> None:
    with pytest.raises(torch.OutOfMemoryError, match=r"Tried to allocate 3725.29 GiB"):
        torch.empty(10**12, device="cuda")


def test_loaders_pin_their_batches(sim: Any) -> None:
    data = [(torch.ones(2), {"label": torch.tensor(k)}) for k in range(4)]
    for workers in (0, 2):
        loader = torch.utils.data.DataLoader(
            data, batch_size=2, pin_memory=True, num_workers=workers
        )
        for x, more in loader:
            assert x.is_pinned() and more["label"].is_pinned()
            assert (x.cuda(non_blocking=True) + 1).sum().item() == 8


def test_other_libraries_are_refused(sim: Any) -> None:
    with pytest.raises(BufferError, match=r"use tensor.cpu\(\)"):
        torch.utils.dlpack.to_dlpack(torch.ones(2, device="cuda"))


def test_the_environment_asks_for_devices() -> None:
    program = "import toytorch as t; print(t.ones(2).cuda(1).device, t.cuda.get_device_name())"
    for asked, wanted in (("simulate:2:T4", "cuda:1 T4 (simulated)"), ("simulated", "")):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "TOYTORCH_CUDA": asked},
            capture_output=True,
            text=True,
        )
        assert done.stdout.strip() == wanted
        assert bool(wanted) or "TOYTORCH_CUDA='simulated' is not understood" in done.stderr


def test_ops_that_make_the_host_wait_can_be_found(sim: Any) -> None:
    x = torch.ones(3, device="cuda")
    torch.cuda.set_sync_debug_mode("warn")
    assert torch.cuda.get_sync_debug_mode() == 1
    for waits in (lambda: x.sum().item(), x.nonzero, x.cpu, lambda: torch.ones(2).cuda()):
        with pytest.warns(UserWarning, match="called a synchronizing CUDA operation"):
            waits()
    torch.cuda.set_sync_debug_mode(2)
    with pytest.raises(RuntimeError, match="called a synchronizing CUDA operation"):
        x.tolist()
    torch.cuda.synchronize()  # which the program asks for itself
    (x + 1, torch.ones(2).pin_memory().cuda(non_blocking=True))
    torch.cuda.set_sync_debug_mode("default")
    assert x.sum().item() == 3
    with pytest.raises(RuntimeError, match="invalid value of debug_mode"):
        torch.cuda.set_sync_debug_mode("often")


def test_memory_of_a_pool_of_its_own(sim: Any) -> None:
    pool = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(pool):
        x = torch.ones(1000, device="cuda")
    address = x.data_ptr()
    del x
    other = torch.ones(1000, device="cuda")
    assert other.data_ptr() != address
    (segment,) = pool.snapshot()
    assert segment["address"] == address
    assert torch.cuda.memory_snapshot(pool.id) == [segment]
    with torch.cuda.use_mem_pool(pool):
        assert torch.ones(1000, device="cuda").data_ptr() == address


def test_what_was_put_off_is_there_for_whoever_looks(sim: Any) -> None:
    """Launches and requests for memory wait in a log until a time, a figure or an address is asked."""
    x = torch.ones(1000, device="cuda")
    spans, points = sim.timeline.spans, sim.timeline.memory
    seen, noted = len(spans), len(points)
    y = x * 2
    assert len(spans) == seen + 2  # from the first look on, at once
    assert len(points) > noted
    with torch.cuda.simulate() as later:
        x = torch.ones(1000, device="cuda")
        for _ in range(5000):  # more than the log and a stream's queue hold
            y = x * 2
        assert torch.cuda.memory_allocated() == 2 * 4096
        del y
        assert torch.cuda.memory_allocated() == 4096
        before = later.now
        (x * 2, x * 2)
        assert later.now > before
        kernels = [s for s in later.timeline.spans if s.kind == "kernel"]
        assert len(kernels) == 5003
        assert all(a.end <= b.start for a, b in zip(kernels, kernels[1:]))
        assert {s.source[1] for s in kernels[1:5001] if s.source is not None} == {
            kernels[1].source[1]
        }


def test_a_mode_may_watch_a_backward_pass(sim: Any) -> None:
    """A derivative that is one kernel elsewhere runs as its records, of which the mode hears."""
    from toytorch.utils._python_dispatch import BaseTorchDispatchMode

    found = []
    for device in ("cpu", "cuda"):
        x, y = (torch.tensor([a, 2.0], device=device, requires_grad=True) for a in (1.0, 3.0))
        with BaseTorchDispatchMode():
            torch.xlogy(x, y).tanh().sum().backward()
        found.append([t.grad.cpu() for t in (x, y)])
    for on_cpu, on_device in zip(*found, strict=True):
        torch.testing.assert_close(on_cpu, on_device)
