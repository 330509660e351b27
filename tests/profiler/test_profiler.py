"""The profiler: what it records, how it sums, and that it shows it as PyTorch does."""

from __future__ import annotations

import functools
import gc
import gzip
import json
import re
import threading
import time
import warnings

import pytest

import toytorch as torch
from tests.oracle import torch as oracle
from toytorch import nn
from toytorch.facts import state
from toytorch.profiler import (
    ProfilerActivity,
    profile,
    record_function,
    schedule,
    tensorboard_trace_handler,
)

SIZE = 20


def work(lib, x):
    """A forward and a backward pass whose ops are named alike in both libraries."""
    with lib.profiler.record_function("forward"):
        y = (lib.mm(x, x) * x).exp().sum()
    y.backward()


@functools.cache
def recorded(lib, **options):
    x = lib.ones(SIZE, SIZE, requires_grad=True)
    with lib.profiler.profile(**options) as prof:
        work(lib, x)
    return prof


def names(prof):
    return [e.name for e in prof.events()]


# -- against PyTorch ------------------------------------------------------------------------------


def test_same_events_as_pytorch():
    """User parts, backward nodes and ops: as often as there, inside of what they are there."""

    def calls(prof):
        found = {}
        for e in prof.events():
            parent = None if e.cpu_parent is None else e.cpu_parent.name
            found[e.name, parent] = found.get((e.name, parent), 0) + 1
        return found

    ours, theirs = calls(recorded(torch)), calls(recorded(oracle))
    for key in [
        ("forward", None),
        ("aten::mm", "forward"),
        ("aten::mul", "forward"),
        ("aten::exp", "forward"),
        ("aten::sum", "forward"),
        ("aten::mul", "MulBackward0"),
        ("aten::mm", "MmBackward0"),
        *[
            (f"autograd::engine::evaluate_function: {n}", None)
            for n in (
                "MulBackward0",
                "ExpBackward0",
                "SumBackward0",
                "MmBackward0",
                "torch::autograd::AccumulateGrad",
            )
        ],
        ("MulBackward0", "autograd::engine::evaluate_function: MulBackward0"),
    ]:
        assert ours[key] == theirs[key], key


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"profile_memory": True},
        {"record_shapes": True},
        {"with_flops": True},
        {"profile_memory": True, "record_shapes": True, "with_flops": True},
    ],
)
@pytest.mark.parametrize(
    "table",
    [
        {},
        {"sort_by": "self_cpu_time_total", "row_limit": 2},
        {"header": "A HEADER"},
        {"top_level_events_only": True},
        {"time_unit": "ms"},
        {"max_name_column_width": 15},
    ],
)
def test_table_is_laid_out_as_pytorchs(options, table):
    """Same lines around the rows, same columns; cells of the same form."""

    def frame(prof):
        lines = prof.key_averages(group_by_input_shape=True).table(**table).splitlines()
        rules = [i for i, line in enumerate(lines) if line.startswith("---")]
        shown = [
            re.sub(r"[\d.]+(us|ms|s)$", r"N\1", line)
            for line in (lines[: rules[0]] + lines[rules[0] + 1 : rules[1]] + lines[rules[2] + 1 :])
        ]
        return [
            re.sub(" +", " ", re.sub("=+", "=", line))
            .replace("Nms", "Nus")
            .replace("KFLOPs", "FLOPs")
            .strip()
            for line in shown
        ], [len(r) for r in (lines[rules[0]].split()[2:8],)]

    ours, theirs = frame(recorded(torch, **options)), frame(recorded(oracle, **options))
    assert ours == theirs


@pytest.mark.parametrize("us", [0, 0.5, 12.3456, 999.9999, 1234.5, 2.5e6])
def test_times_are_written_as_pytorchs(us):
    from toytorch.profiler.units import time_text

    assert time_text(us) == oracle.autograd.profiler_util._format_time(us)


@pytest.mark.parametrize("count", [0, 5, 1023, 1024, 5000, -4096, 5 << 20, 3 << 30])
def test_sizes_are_written_as_pytorchs(count):
    from toytorch.profiler.units import size_text

    assert size_text(count) == oracle.autograd.profiler_util._format_memory(count)


def test_shapes_flops_and_memory_are_pytorchs():
    ours, theirs = (
        recorded(lib, record_shapes=True, with_flops=True, profile_memory=True)
        for lib in (torch, oracle)
    )

    def facts(prof):
        return {
            (e.name, str(e.input_shapes[:2]), e.flops, e.cpu_memory_usage)
            for e in prof.events()
            if e.name in ("aten::mm", "aten::mul")
        }

    assert facts(ours) == facts(theirs)
    assert ("aten::mm", "[[20, 20], [20, 20]]", 16000, 1600) in facts(ours)


@pytest.mark.parametrize(
    "args",
    [
        {"wait": 1, "warmup": 1, "active": 2},
        {"wait": 0, "warmup": 1, "active": 1, "repeat": 2},
        {"wait": 2, "warmup": 1, "active": 3, "skip_first": 4},
        {"wait": 5, "warmup": 1, "active": 1, "skip_first": 2, "skip_first_wait": 1, "repeat": 3},
    ],
)
def test_schedules_are_pytorchs(args):
    ours, theirs = schedule(**args), oracle.profiler.schedule(**args)
    assert [ours(i).name for i in range(40)] == [theirs(i).name for i in range(40)]


@pytest.mark.parametrize(
    ("plan", "steps", "want"),
    [
        ({"wait": 1, "warmup": 1, "active": 2, "repeat": 2, "skip_first": 1}, 12, [(5, 2), (9, 2)]),
        ({"wait": 1, "warmup": 1, "active": 2}, 3, [(3, 1)]),
        ({"wait": 0, "warmup": 1, "active": 1}, 5, [(2, 1), (4, 1), (5, 0)]),
    ],
)
def test_cycles(plan, steps, want):
    """What PyTorch 2.13 printed; it is not asked here, as a profiler that is started and stopped
    often in one process may crash it."""
    seen = []

    def ready(prof):
        counts = {e.key: e.count for e in prof.key_averages()}
        seen.append((prof.step_num, counts.get("aten::relu", 0)))

    with profile(schedule=schedule(**plan), on_trace_ready=ready) as prof:
        for _ in range(steps):
            torch.ones(3).relu()
            prof.step()
    assert seen == want
    assert state.profiler is None


def test_a_step_is_an_event():
    with profile(schedule=schedule(wait=0, warmup=1, active=2)) as prof:
        for _ in range(3):
            torch.ones(3)
            prof.step()
    rows = {e.key: e.count for e in prof.key_averages()}
    assert rows == {"ProfilerStep*": 2, "aten::ones": 2}
    assert [e.trace_name for e in prof.events() if e.cpu_parent is None] == [
        "ProfilerStep#1",
        "ProfilerStep#2",
    ]


@pytest.mark.parametrize(
    "bad",
    [
        lambda lib: lib.profiler.schedule(wait=-1, warmup=0, active=1),
        lambda lib: lib.profiler.schedule(wait=1, warmup=1, active=1)(-1),
        lambda lib: lib.profiler.profile(activities=[]).start(),
        lambda lib: lib.profiler.profile(activities=["CPU"]),
        lambda lib: lib.profiler.profile(activities=[lib.profiler.ProfilerActivity.CPU] * 2),
        lambda lib: lib.profiler.profile().key_averages(),
        lambda lib: lib.profiler.profile().export_chrome_trace("nowhere.json"),
        lambda lib: recorded(lib).export_stacks("nowhere.txt"),
        lambda lib: recorded(lib).key_averages().table(sort_by="nonsense"),
    ],
)
def test_refusals_are_pytorchs(bad):
    def refusal(lib):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                bad(lib)
            except Exception as error:
                return type(error), str(error)
        return None

    assert refusal(torch) == refusal(oracle) is not None


# -- times and memory -----------------------------------------------------------------------------


def test_self_time_is_the_total_without_the_children():
    with profile() as prof, record_function("outer"):
        time.sleep(0.02)
        with record_function("inner"):
            time.sleep(0.03)
    outer, inner = prof.events()
    assert inner.cpu_parent is outer and outer.cpu_children == [inner]
    assert inner.cpu_time_total >= 30_000 and outer.self_cpu_time_total >= 20_000
    assert outer.cpu_time_total == pytest.approx(outer.self_cpu_time_total + inner.cpu_time_total)
    assert prof.events().self_cpu_time_total == pytest.approx(outer.cpu_time_total)


def test_memory_nets_to_what_is_left():
    x = torch.ones(1000)
    with profile(profile_memory=True) as prof:
        y = x + 1
        z = (y * 2).view(10, 100)[0]  # a view keeps all of its memory
        del y
    total = sum(e.self_cpu_memory_usage for e in prof.events())
    assert total == 4000 and prof.max_memory_allocated() == 8000
    assert z.shape == (100,)
    by = {e.key: e.self_cpu_memory_usage for e in prof.key_averages()}
    assert by["aten::add"] == 4000 and by["aten::view"] == 0 and by["[memory]"] == -4000


def test_memory_of_a_child_counts_for_the_parent():
    with profile(profile_memory=True) as prof, record_function("all"):
        kept = torch.ones(1000).exp()
    first = prof.events()[0]
    assert first.cpu_memory_usage == 4000 == kept.numel() * 4
    assert first.self_cpu_memory_usage == -4000  # the ones, which nobody kept


# -- what is recorded -----------------------------------------------------------------------------


def test_writes_views_and_creation():
    with profile() as prof:
        x = torch.zeros(4)
        x.add_(1)
        x.view(2, 2).t()
        torch.randn(3)
    assert names(prof) == ["aten::zeros", "aten::add_", "aten::view", "aten::t", "aten::randn"]


def test_loaders_and_optimizers():
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    data = torch.utils.data.TensorDataset(torch.ones(4, 4))
    with profile(with_modules=True) as prof:
        for (x,) in torch.utils.data.DataLoader(data, batch_size=2):
            model(x).sum().backward()
            optimizer.step()
            optimizer.zero_grad()
    counts = {e.key: e.count for e in prof.key_averages()}
    assert counts["enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__"] == 2
    assert counts["Optimizer.step#SGD.step"] == counts["Optimizer.zero_grad#SGD.zero_grad"] == 2
    assert counts["nn.Module: Linear_0"] == 2
    linear = next(e for e in prof.events() if e.name == "aten::linear")
    assert linear.cpu_parent.name == "nn.Module: Linear_0"


def test_threads_are_kept_apart():
    def run():
        with record_function("other"):
            torch.ones(3).exp()

    with profile() as prof, record_function("mine"):
        thread = threading.Thread(target=run)
        thread.start()
        thread.join()
    events = {e.name: e for e in prof.events()}
    assert events["mine"].thread == 1 and events["other"].thread == 2
    assert events["other"].cpu_parent is None and not events["mine"].cpu_children
    assert events["aten::exp"].cpu_parent is events["other"]


def test_call_sites():
    def inner():
        return torch.ones(3).exp()

    with profile(with_stack=True) as prof:
        inner()
    stack = next(e for e in prof.events() if e.name == "aten::exp").stack
    assert re.fullmatch(r".*test_profiler\.py\(\d+\): inner", stack[0])
    assert re.fullmatch(r".*test_profiler\.py\(\d+\): test_call_sites", stack[1])
    rows = prof.key_averages(group_by_stack_n=1)
    assert "Source Location" in rows.table() and rows[0].stack == stack[:1]


def test_record_function_as_a_decorator_and_without_a_profiler():
    @record_function("square")
    def square(x):
        return x * x

    assert square(torch.tensor(3.0)).item() == 9
    with profile() as prof:
        square(torch.tensor(3.0))
    assert [e.name for e in prof.events() if e.is_user_annotation] == ["square"]


def test_an_error_ends_its_events():
    with profile() as prof:
        with pytest.raises(RuntimeError):
            torch.mm(torch.ones(2, 3), torch.ones(2, 3))
        torch.ones(1).exp()
    exp = prof.events()[-1]
    assert exp.name == "aten::exp" and exp.cpu_parent is None
    assert all(e.time_range.end >= e.time_range.start for e in prof.events())


def test_nothing_is_left_when_it_is_off():
    with profile():
        pass
    assert state.profiler is None and state.fast_path is not state.SLOW
    with pytest.raises(ZeroDivisionError), profile():
        1 / 0  # noqa: B018
    assert state.profiler is None and state.fast_path is not state.SLOW


def test_only_one_at_a_time():
    with profile(), pytest.raises(RuntimeError, match="Profiler is already enabled"):
        profile().start()
    prof = torch.autograd.profiler.profile()
    with prof, pytest.raises(RuntimeError, match="not reentrant"):
        prof.__enter__()
    assert state.profiler is None


def test_results_are_those_without():
    x = torch.randn(5, 5, requires_grad=True)
    (x @ x).softmax(1).norm().backward()
    plain, x.grad = x.grad, None
    with profile(record_shapes=True, profile_memory=True, with_stack=True, with_flops=True):
        (x @ x).softmax(1).norm().backward()
    assert torch.allclose(plain, x.grad)


def test_grad_is_kept_for_leaves_inside_a_graph():
    x = torch.ones(3, requires_grad=True)
    with profile() as prof:
        (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
        g.sum().backward()
    assert torch.equal(x.grad, torch.full((3,), 6.0))
    assert "autograd::engine::evaluate_function: torch::autograd::AccumulateGrad" in names(prof)


# -- the older names ------------------------------------------------------------------------------


def test_autograd_profiler():
    from toytorch.autograd.profiler import EventList, emit_nvtx, record_function

    with torch.autograd.profiler.profile(enabled=False) as nothing:
        torch.ones(1)
    assert nothing is None
    prof = torch.autograd.profiler.profile(use_cpu=True)
    assert repr(prof) == "<unfinished torch.autograd.profile>"
    with pytest.raises(RuntimeError, match="didn't finish"):
        prof.key_averages()
    with prof, record_function("part"):
        torch.ones(2).exp()
    assert isinstance(prof.function_events, EventList)
    assert str(prof) == prof.table() and "aten::exp" in str(prof)
    total = prof.total_average()
    assert total.key == "Total" and total.count == 3
    assert total.self_cpu_time_total == pytest.approx(prof.self_cpu_time_total)
    with emit_nvtx(enabled=False):
        pass
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        torch.autograd.profiler.nonsense  # noqa: B018


# -- files ----------------------------------------------------------------------------------------


def test_chrome_trace(tmp_path):
    prof = recorded(torch, record_shapes=True, profile_memory=True, with_flops=True)
    prof.add_metadata_json("note", '{"a": 1}')
    path = tmp_path / "trace.json"
    prof.export_chrome_trace(str(path))
    trace = json.loads(path.read_text())
    assert trace["note"] == {"a": 1} and trace["record_shapes"] == 1
    bars = {e["name"]: e for e in trace["traceEvents"] if e["ph"] == "X"}
    assert {"forward", "aten::mm", "MulBackward0"} <= set(bars)
    assert bars["forward"]["cat"] == "user_annotation"
    assert bars["aten::mm"]["args"]["Input Dims"] == [[20, 20], [20, 20]]
    for e in trace["traceEvents"]:
        assert {"ph", "name", "pid", "tid", "ts"} <= set(e)
    outer, inner = bars["forward"], bars["aten::exp"]
    assert outer["ts"] <= inner["ts"]
    assert inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"] + 0.01
    starts = {e["id"] for e in trace["traceEvents"] if e["ph"] == "s"}
    assert starts == {e["id"] for e in trace["traceEvents"] if e["ph"] == "f"} and len(starts) == 4
    dots = [e["args"] for e in trace["traceEvents"] if e["ph"] == "i"]
    assert dots[-1]["Total Allocated"] == sum(d["Bytes"] for d in dots)
    assert list(tmp_path.iterdir()) == [path]  # nothing half-written is left


def test_trace_handler_and_stacks(tmp_path):
    handler = tensorboard_trace_handler(str(tmp_path / "runs"), "me", use_gzip=True)
    with profile(on_trace_ready=handler, with_stack=True) as prof:
        torch.randn(300, 300).mm(torch.randn(300, 300))
    (file,) = (tmp_path / "runs").iterdir()
    assert re.fullmatch(r"me\.\d+\.pt\.trace\.json\.gz", file.name)
    names = {e["name"] for e in json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]}
    assert "aten::mm" in names
    prof.export_stacks(str(tmp_path / "stacks"))
    lines = (tmp_path / "stacks").read_text().splitlines()
    assert lines and all(re.fullmatch(r"\S+ \d+", line) for line in lines)
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "nonsense")


def test_picture(tmp_path):
    prof = recorded(torch, profile_memory=True)
    shown = sum(name != "[memory]" for name in names(prof))
    picture = prof.picture(title="<one> step")
    assert "&lt;one&gt; step" in picture.svg and "MulBackward0" in picture.svg
    assert "memory of results" in picture.svg
    assert repr(picture) == f"timeline: {shown} events in 1 thread"
    assert torch.viz.timeline(prof.events(), title="<one> step").svg == picture.svg
    picture.save(tmp_path / "timeline.svg")
    with pytest.raises(ValueError, match="nothing to draw"):
        torch.viz.timeline(prof, start_us=1e12)


def test_activities():
    assert ProfilerActivity.CPU in torch.profiler.supported_activities()
    if not torch.cuda.is_available():
        with pytest.warns(UserWarning, match="CUDA is not available"):
            profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA])


def test_memory_is_not_kept_by_the_profiler():
    import weakref

    with profile(profile_memory=True, record_shapes=True) as prof:
        x = torch.ones(10).exp()
        watch = weakref.ref(x)
        del x
        gc.collect()
        assert watch() is None
    assert sum(e.self_cpu_memory_usage for e in prof.events()) == 0
