"""Device times: what simulated devices did, in events, tables and traces, as PyTorch shows a card's."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import toytorch as tt
from toytorch.profiler import ProfilerActivity, profile, record_function

util = pytest.importorskip("torch.autograd.profiler_util")
BOTH = [ProfilerActivity.CPU, ProfilerActivity.CUDA]


def profiled(**options: Any) -> tuple[Any, Any]:
    """The profile of work on two streams, and the timeline's spans of what devices did in it."""
    with tt.cuda.simulate(devices=1, model="H100") as sim:
        layer = tt.nn.Linear(64, 32).cuda()
        x = tt.randn(128, 64).cuda()
        side = tt.cuda.Stream()
        tt.cuda.synchronize()
        before = len(sim.timeline.spans)
        with profile(**{"activities": BOTH, **options}) as prof:
            with record_function("a pass"):
                layer(x).relu().sum().backward()
            with tt.cuda.stream(side):
                tt.ones(1000, device="cuda").mul_(2)
            tt.ones(10).cuda()
        spans = sim.timeline.spans[before:]
        x * 2  # after the end: nobody looks
        return prof, [s for s in spans if s.kind in ("kernel", "copy")]


def on_devices(prof: Any) -> list[Any]:
    return [e for e in prof.events() if e.device_type.name == "CUDA"]


def test_every_kernel_and_copy_is_an_event_with_its_virtual_time() -> None:
    prof, spans = profiled()
    found = on_devices(prof)
    assert len(spans) > 5
    assert [(e.name, e.device_resource_id) for e in found] == [(s.name, s.stream) for s in spans]
    for event, span in zip(found, spans):
        assert event.time_range.elapsed_us() == pytest.approx(span.duration)
        assert event.device_time_total == event.self_device_time_total
        assert event.cpu_time_total == event.self_cpu_time_total == 0


def test_ops_have_the_times_of_what_they_launched() -> None:
    prof, _ = profiled()
    sums = {e.key: e for e in prof.key_averages() if e.device_type.name == "CPU"}
    assert sums["aten::linear"].self_device_time_total > 0
    assert sums["a pass"].self_device_time_total == 0
    inside = [n for n in sums if n in ("aten::linear", "aten::relu") or "evaluate_function" in n]
    inside += ["aten::sum"]  # of the forward pass, and of the bias's gradient
    most = sum(sums[name].device_time_total for name in inside)
    assert 0 < sums["a pass"].device_time_total <= most
    launched = sum(e.self_device_time_total for e in sums.values())
    assert launched == pytest.approx(sum(e.device_time_total for e in on_devices(prof)))


def as_torch(events: Any) -> Any:
    """The same events as PyTorch's own class has them."""
    made: dict[int, Any] = {}
    for e in events:
        cuda = e.device_type.name == "CUDA"
        made[id(e)] = new = util.FunctionEvent(
            id=e.id, name=e.name, thread=e.thread, start_us=e.time_range.start,
            end_us=e.time_range.end, use_device="cuda", input_shapes="", stack=[], scope=e.scope,
            device_type=util.DeviceType.CUDA if cuda else util.DeviceType.CPU, trace_name=e.name,
            overload_name="", is_user_annotation=e.is_user_annotation, flops=0,
        )  # fmt: skip
        for kernel in e.kernels:
            new.append_kernel(*kernel)
    for e in events:
        if e.cpu_parent is not None:
            made[id(e)].set_cpu_parent(made[id(e.cpu_parent)])
            made[id(e.cpu_parent)].append_cpu_child(made[id(e)])
    found = util.EventList(list(made.values()), use_device="cuda")
    found._tree_built = True
    return found


@pytest.mark.parametrize("by", ["cuda_time_total", "self_device_time_total", "cpu_time_total"])
def test_the_table_is_pytorchs(by: str) -> None:
    prof, _ = profiled()
    ours = prof.key_averages()
    theirs = as_torch(prof.events()).key_averages()
    assert ours.table(sort_by=by, row_limit=-1) == theirs.table(sort_by=by, row_limit=-1)


def test_sums_are_pytorchs() -> None:
    prof, _ = profiled()
    theirs = {(e.key, str(e.device_type)): e for e in as_torch(prof.events()).key_averages()}
    for e in prof.key_averages():
        other = theirs[e.key, str(e.device_type)]
        for name in ("device_time_total", "self_device_time_total", "device_time", "count"):
            assert getattr(e, name) == pytest.approx(getattr(other, name)), (e.key, name)


def test_older_names_warn() -> None:
    prof, _ = profiled()
    event = on_devices(prof)[0]
    for name in ("cuda_time_total", "self_cuda_time_total", "cuda_time"):
        with pytest.warns(FutureWarning, match=f"`{name}` is deprecated"):
            assert getattr(event, name) == event.device_time_total


def test_the_trace_has_a_row_for_each_stream(tmp_path: Path) -> None:
    prof, spans = profiled()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    entries = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    rows = {e["args"]["name"] for e in entries if e["name"] == "thread_name" and e["pid"] == 0}
    assert rows == {f"stream {s.stream}" for s in spans}
    bars = [e for e in entries if e.get("cat") in ("kernel", "gpu_memcpy")]
    assert len(bars) == len(on_devices(prof))
    assert {e["cat"] for e in bars} == {"kernel", "gpu_memcpy"}
    ops = {e["args"]["External id"]: e["name"] for e in entries if e.get("cat") == "cpu_op"}
    (linear,) = [e for e in bars if e["name"] == "linear"]
    assert ops[linear["args"]["External id"]] == "aten::linear"
    arrows = [e for e in entries if e.get("cat") == "ac2g"]
    assert {e["id"] for e in arrows if e["ph"] == "s"} == {
        e["id"] for e in arrows if e["ph"] == "f"
    }


def test_without_the_activity_there_are_no_device_times() -> None:
    prof, _ = profiled(activities=[ProfilerActivity.CPU])
    assert not on_devices(prof)
    assert "CUDA" not in prof.key_averages().table()


def test_profiling_changes_no_virtual_time() -> None:
    def run(watched: bool) -> float:
        with tt.cuda.simulate() as sim:
            x = tt.ones(100, device="cuda")
            if watched:
                with profile(activities=BOTH):
                    (x * 2).sum()
            else:
                (x * 2).sum()
            return sim.now

    assert run(True) == run(False)
