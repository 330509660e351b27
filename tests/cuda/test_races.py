"""Wrong programs: each is reported with both of its lines, and silent once it is mended.

Each program is a function of the simulation's streams; where `fixed` is true it does what was
missing. The two lines that meet end in `# first` and `# second`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch

Program = Callable[..., Any]
PROGRAMS: dict[str, Program] = {}
N = 1000


def program(function: Program) -> Program:
    PROGRAMS[function.__name__] = function
    return function


def current() -> Any:
    return torch.cuda.current_stream()


@program
def read_too_early(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        x * 2  # second


@program
def result_of_a_stream_read_without_waiting(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    side.wait_stream(current())
    with torch.cuda.stream(side):
        y = x * 2  # first
    if fixed:
        current().wait_stream(side)
    y + 1  # second


@program
def written_while_it_is_read(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    side.wait_stream(current())
    x * 2  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        x.add_(1)  # second


@program
def written_by_two(side: Any, fixed: bool) -> None:
    x = torch.empty(N, device="cuda")
    side.wait_stream(current())
    x.fill_(1.0)  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        x.fill_(2.0)  # second


@program
def a_view_is_the_same_memory(side: Any, fixed: bool) -> None:
    x = torch.ones(N, 4, device="cuda")
    side.wait_stream(current())
    x[:, 1].mul_(3)  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        x.sum()  # second


@program
def halves_that_overlap(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    side.wait_stream(current())
    x[: N // 2 + 1].mul_(3)  # first
    with torch.cuda.stream(side):
        x[N // 2 + (1 if fixed else 0) :].mul_(5)  # second


@program
def an_event_recorded_too_early(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    ready = current().record_event()
    x.mul_(2)  # first
    if fixed:
        ready = current().record_event()
    with torch.cuda.stream(side):
        side.wait_event(ready)
        x + 1  # second


@program
def the_wrong_event(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    before = current().record_event()
    y = x * 2  # first
    after = current().record_event()
    with torch.cuda.stream(side):
        side.wait_event(after if fixed else before)
        y + 1  # second


@program
def an_event_that_was_never_recorded(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")  # first
    ready = torch.cuda.Event()
    if fixed:
        ready.record()
    with torch.cuda.stream(side):
        ready.wait()
        x + 1  # second


@program
def a_wait_that_comes_too_late(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")  # first
    ready = current().record_event()
    with torch.cuda.stream(side):
        if fixed:
            side.wait_event(ready)
        x + 1  # second
        side.wait_event(ready)


@program
def a_step_while_the_model_runs(side: Any, fixed: bool) -> None:
    layer = torch.nn.Linear(10, 10, bias=False, device="cuda")
    x = torch.ones(5, 10, device="cuda")
    layer.weight.grad = torch.ones(10, 10, device="cuda")
    step = torch.optim.SGD(layer.parameters(), lr=0.1)
    side.wait_stream(current())
    layer(x)  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        step.step()  # second


@program
def gradients_read_without_waiting(side: Any, fixed: bool) -> None:
    w = torch.ones(N, device="cuda", requires_grad=True)
    loss = (w * w).sum()
    side.wait_stream(current())
    loss.backward()  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        w.grad.norm()  # second


@program
def zeros_over_what_is_read(side: Any, fixed: bool) -> None:
    total = torch.zeros(N, device="cuda")
    x = torch.ones(N, device="cuda")
    side.wait_stream(current())
    total += x  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        total.zero_()  # second


@program
def a_copy_on_another_stream(side: Any, fixed: bool) -> None:
    x, y = torch.ones(N, device="cuda"), torch.zeros(N, device="cuda")
    side.wait_stream(current())
    with torch.cuda.stream(side):
        y.copy_(x)  # first
    if fixed:
        current().wait_stream(side)
    y.sum()  # second


@program
def a_result_given_as_out(side: Any, fixed: bool) -> None:
    a, made = torch.ones(30, 30, device="cuda"), torch.zeros(30, 30, device="cuda")
    side.wait_stream(current())
    with torch.cuda.stream(side):
        torch.mm(a, a, out=made)  # first
    if fixed:
        current().wait_stream(side)
    made.trace()  # second


@program
def the_third_stream_knows_nothing(side: Any, fixed: bool) -> None:
    third = torch.cuda.Stream()
    x = torch.ones(N, device="cuda")  # first
    side.wait_stream(current())
    with torch.cuda.stream(side):
        x + 1
    if fixed:
        third.wait_stream(side)
    with torch.cuda.stream(third):
        x + 2  # second


@program
def a_buffer_filled_again_too_early(side: Any, fixed: bool) -> None:
    buffer = torch.zeros(N, device="cuda")
    side.wait_stream(current())
    for k in range(2):
        if fixed and k:
            current().wait_stream(side)
        buffer.fill_(float(k))  # second
        side.wait_stream(current())
        with torch.cuda.stream(side):
            buffer.sum()  # first


@program
def a_sum_made_by_two_streams(side: Any, fixed: bool) -> None:
    total, part = torch.zeros(N, device="cuda"), torch.ones(N, device="cuda")
    side.wait_stream(current())
    with torch.cuda.stream(side):
        total += part  # first
    if fixed:
        current().wait_stream(side)
    total += part  # second


@program
def numpy_of_a_copy_under_way(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    host = x.to("cpu", non_blocking=True)  # first
    if fixed:
        torch.cuda.synchronize()
    host.numpy()  # second


@program
def printing_a_copy_under_way(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    host = x.to("cpu", non_blocking=True)  # first
    if fixed:
        current().synchronize()
    repr(host)  # second


@program
def an_element_of_a_copy_under_way(side: Any, fixed: bool) -> None:
    loss = torch.ones((), device="cuda")
    host = loss.to("cpu", non_blocking=True)  # first
    done = current().record_event()
    if fixed:
        done.synchronize()
    host.item()  # second


@program
def arithmetic_on_a_copy_under_way(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    host = x.to("cpu", non_blocking=True)  # first
    if fixed:
        torch.cuda.synchronize()
    host + 1  # second


@program
def a_pinned_buffer_changed_under_a_copy(side: Any, fixed: bool) -> None:
    host = torch.ones(N).pin_memory()
    host.to("cuda", non_blocking=True)  # first
    if fixed:
        torch.cuda.synchronize()
    host.mul_(2)  # second


@program
def a_pinned_buffer_for_the_next_batch(side: Any, fixed: bool) -> None:
    host = torch.empty(N).pin_memory()
    for batch in (torch.ones(N), torch.zeros(N)):
        host.copy_(batch)  # second
        host.to("cuda", non_blocking=True)  # first
        if fixed:
            current().record_event().synchronize()


@program
def a_copy_into_a_pinned_buffer(side: Any, fixed: bool) -> None:
    host, x = torch.empty(N).pin_memory(), torch.ones(N, device="cuda")
    host.copy_(x, non_blocking=True)  # first
    if fixed:
        current().synchronize()
    host.sum()  # second


@program
def a_part_of_a_pinned_buffer(side: Any, fixed: bool) -> None:
    host = torch.ones(N).pin_memory()
    host[: N // 2].to("cuda", non_blocking=True)  # first
    host[N // 2 - (0 if fixed else 1) :].zero_()  # second


@program
def a_batch_used_before_it_is_there(side: Any, fixed: bool) -> None:
    host = torch.ones(N).pin_memory()
    with torch.cuda.stream(side):
        x = host.to("cuda", non_blocking=True)  # first
    if fixed:
        current().wait_stream(side)
    x * 2  # second


@program
def freed_while_another_stream_reads(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda")
    side.wait_stream(current())
    with torch.cuda.stream(side):
        x * 2  # first
    if fixed:
        x.record_stream(side)
    del x
    torch.zeros(N, device="cuda")  # second


@program
def a_temporary_that_another_stream_reads(side: Any, fixed: bool) -> None:
    def batch() -> Any:
        made = torch.ones(N, device="cuda") * 3
        side.wait_stream(current())
        with torch.cuda.stream(side):
            made.sum()  # first
        if fixed:
            current().wait_stream(side)

    batch()
    torch.ones(N, device="cuda") * 5  # second


@program
def the_input_of_a_graph_changed_elsewhere(side: Any, fixed: bool) -> None:
    x, graph = torch.zeros(N, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x + 1
    side.wait_stream(current())
    with torch.cuda.stream(side):
        x.fill_(3.0)  # first
    if fixed:
        current().wait_stream(side)
    graph.replay()  # second


@program
def the_output_of_a_graph_read_elsewhere(side: Any, fixed: bool) -> None:
    x, graph = torch.zeros(N, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        y = x + 1
    side.wait_stream(current())
    graph.replay()  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        y.sum()  # second


@program
def one_graph_on_two_streams(side: Any, fixed: bool) -> None:
    x, graph = torch.zeros(N, device="cuda"), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        x + 1
    side.wait_stream(current())
    graph.replay()  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        graph.replay()  # second


@program
def a_peer_reads_what_is_written(side: Any, fixed: bool) -> None:
    x = torch.ones(N, device="cuda:0")
    side.wait_stream(current())
    x.to("cuda:1")  # first
    if fixed:
        side.wait_stream(current())
    with torch.cuda.stream(side):
        x.zero_()  # second


@program
def a_copy_from_a_peer_on_another_stream(side: Any, fixed: bool) -> None:
    there = torch.cuda.Stream(device="cuda:1")
    y = torch.ones(N, device="cuda:0").to("cuda:1")  # first
    if fixed:
        there.wait_stream(torch.cuda.current_stream("cuda:1"))
    with torch.cuda.stream(there):
        y + 1  # second


@program
def every_other_element_is_not_all_of_them(side: Any, fixed: bool) -> None:
    x = torch.ones(5, device="cuda")
    third = torch.cuda.Stream()
    side.wait_stream(current())
    third.wait_stream(current())
    x[1::2] * 2  # first
    with torch.cuda.stream(side):
        x[::2].fill_(3.0)  # from the first element to the last, and with no other's
    if fixed:
        third.wait_stream(current())
    with torch.cuda.stream(third):
        x[1::2].fill_(4.0)  # second


def lines_of(function: Program) -> tuple[int, int]:
    text, start = inspect.getsourcelines(function)
    found = [
        start + next(i for i, line in enumerate(text) if line.rstrip().endswith(f"# {mark}"))
        for mark in ("first", "second")
    ]
    return found[0], found[1]


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_wrong_program_is_reported_with_both_lines(name: str) -> None:
    function = PROGRAMS[name]
    with torch.cuda.simulate(devices=2, races="list") as sim:
        function(torch.cuda.Stream(), fixed=False)
        assert sim.races, "nothing was found"
        race = sim.races[0]
        assert (race.first.source, race.second.source) == tuple(
            (__file__, line) for line in lines_of(function)
        )
        for line in lines_of(function):
            assert f"test_races.py:{line}" in str(race)


@pytest.mark.parametrize("name", PROGRAMS)
def test_mended_it_is_silent(name: str) -> None:
    with torch.cuda.simulate(devices=2):  # which raises
        PROGRAMS[name](torch.cuda.Stream(), fixed=True)


def test_memory_given_out_again_is_not_free_for_other_streams() -> None:
    """A kernel of the first stream may still write to it, for the tensor that had it before."""
    for waits in (False, True):
        with torch.cuda.simulate(races="list") as sim:
            side = torch.cuda.Stream()
            x = torch.ones(1000, device="cuda")
            torch.cuda.synchronize()
            old = x * 2
            address = old.data_ptr()
            del old
            new = torch.empty(1000, device="cuda")
            assert new.data_ptr() == address
            if waits:
                side.wait_stream(torch.cuda.current_stream())
            with torch.cuda.stream(side):
                new.fill_(3)
            assert len(sim.races) == (not waits)
            assert all("which a tensor had before" in str(race) for race in sim.races)


def test_how_a_race_is_told() -> None:
    for how in ("warn", "error"):
        with torch.cuda.simulate(devices=2, races=how):
            side = torch.cuda.Stream()
            told: Any = (
                pytest.warns(torch.cuda.RaceWarning, match="race on")
                if how == "warn"
                else pytest.raises(torch.cuda.RaceError, match="race on")
            )
            with told:
                read_too_early(side, fixed=False)
    with torch.cuda.simulate(devices=2, races="ignore") as sim:
        read_too_early(torch.cuda.Stream(), fixed=False)
        assert not sim.races
    with pytest.raises(ValueError, match="races must be one of"):
        torch.cuda.simulate(races="maybe")
