"""What was recorded, as events with totals, and their sums by name.

    total = end - start        self = total - Σ totals of what it called

Attributes and `repr` are those of `torch.autograd.profiler_util`; times are in microseconds.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable
from typing import Any, NamedTuple

from toytorch.facts import warned
from toytorch.profiler import table, trace
from toytorch.profiler.recorder import BACKWARD, FUNCTION, USER, Recorder, Span
from toytorch.profiler.units import time_text
from toytorch.serialization.atomic import replacing
from toytorch.viz.device.timeline import timeline
from toytorch.viz.draw.picture import Picture

METRICS = [
    "self_cpu_time_total",
    "self_cuda_time_total",
    "self_xpu_time_total",
    "self_privateuse1_time_total",
]


class DeviceType(enum.Enum):
    """Where an event took place."""

    CPU = 0
    CUDA = 1


class Interval:
    """Start and end of an event in microseconds after the profiler's start."""

    def __init__(self, start: float, end: float) -> None:
        self.start, self.end = start, end

    def elapsed_us(self) -> float:
        """How long it is."""
        return self.end - self.start


def as_text(name: str) -> Any:
    """A time of an event as text."""
    return property(lambda self: time_text(getattr(self, name)), doc=f"`{name}` as text.")


class Times:
    """The times of an event, and the same as text ("1.234ms")."""

    count: int
    cpu_time_total: float
    self_cpu_time_total: float
    device_time_total = self_device_time_total = 0.0
    device_memory_usage = self_device_memory_usage = 0
    device_type, overload_name = DeviceType.CPU, ""
    use_device: str | None = None
    node_id, is_async, is_remote, is_legacy = -1, False, False, False

    @property
    def cpu_time(self) -> float:
        """The mean of the calls."""
        return self.cpu_time_total / self.count if self.count else 0.0

    @property
    def device_time(self) -> float:
        """The mean time on a device."""
        return self.device_time_total / self.count if self.count else 0.0

    cpu_time_str, device_time_str = as_text("cpu_time"), as_text("device_time")
    cpu_time_total_str = as_text("cpu_time_total")
    self_cpu_time_total_str = as_text("self_cpu_time_total")
    device_time_total_str = as_text("device_time_total")
    self_device_time_total_str = as_text("self_device_time_total")


def older_name(name: str, now: str) -> Any:
    """A name of PyTorch's from when all devices were CUDA's, which warns as there."""

    def get(self: Times) -> Any:
        warned.at_call(
            f"`{name}` is deprecated{'. Use' if 'total' in name else ', please use'} `{now}` instead.",
            FutureWarning,
        )
        return getattr(self, now)

    return property(get)


class Kernel(NamedTuple):
    """What an op did on a device, and how long that took."""

    name: str
    device: int
    duration: float


class FunctionEvent(Times):
    """One call: its times, memory, and what it called; like PyTorch's `FunctionEvent`."""

    count = 1
    # Of work on a device: where, its stream, what it is, and the op that asked for it.
    device_index, device_resource_id, bytes, kind = 0, 0, 0, "kernel"
    linked: FunctionEvent | None = None
    cuda_time_total = older_name("cuda_time_total", "device_time_total")
    self_cuda_time_total = older_name("self_cuda_time_total", "self_device_time_total")
    cuda_time = older_name("cuda_time", "device_time")

    def __init__(self, id: int, span: Span, thread: int, start_us: float, end_us: float) -> None:
        self.id, self.thread, self.trace_name = id, thread, span.name
        step = span.name.startswith("ProfilerStep#")
        self.name = self.key = "ProfilerStep*" if step else span.name  # all steps are one row
        self.time_range = Interval(start_us, end_us)
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.kernels: list[Kernel] = []
        self.input_shapes, self.stack = span.shapes, span.stack
        self.flops, self.scope, self.sequence_nr = span.flops, span.scope, span.seq
        self.fwd_thread = thread if span.scope == BACKWARD else 0
        self.is_user_annotation = span.scope == USER
        self.self_cpu_memory_usage = self.cpu_memory_usage = span.bytes
        self.cpu_time_total = self.self_cpu_time_total = end_us - start_us

    def __repr__(self) -> str:
        return (
            f"<FunctionEvent id={self.id} name={self.name} overload_name= "
            f"device_type={self.device_type} node_id={self.node_id} cpu_time={self.cpu_time_str} "
            f"start_us={self.time_range.start} end_us={self.time_range.end} "
            f"cpu_children={[child.id for child in self.cpu_children]} "
            f"{self.use_device}_time={self.device_time_str} name={self.name} thread={self.thread} "
            f"input_shapes={self.input_shapes} cpu_memory_usage={self.cpu_memory_usage} "
            f"{self.use_device}_memory_usage=0 is_async=False is_remote=False "
            f"seq_nr={self.sequence_nr} is_legacy=False>"
        )


class FunctionEventAvg(Times):
    """The sum of all events with one key; like PyTorch's `FunctionEventAvg`."""

    cuda_time = older_name("cuda_time", "device_time")

    def __init__(self) -> None:
        self.key: str | None = None
        self.count = 0
        self.cpu_time_total = self.self_cpu_time_total = 0.0
        self.device_time_total = self.self_device_time_total = 0.0
        self.cpu_memory_usage = self.self_cpu_memory_usage = self.flops = 0
        self.input_shapes: Any = None
        self.stack: list[str] = []
        self.scope: int | None = None
        self.cpu_parent: FunctionEvent | None = None
        self.cpu_children: list[FunctionEvent] = []
        self.is_user_annotation = False

    def add(self, other: FunctionEvent | FunctionEventAvg) -> FunctionEventAvg:
        """Takes an event, or another sum, in."""
        if self.key is None:  # the first one says who it is
            for name in (
                "key", "scope", "cpu_parent", "cpu_children", "input_shapes", "stack",
                "is_user_annotation", "device_type", "use_device",
            ):  # fmt: skip
                setattr(self, name, getattr(other, name))
        if other.key != self.key:
            raise AssertionError(f"Expected keys to match, but got {other.key} vs {self.key}")
        for name in (
            "count", "cpu_time_total", "self_cpu_time_total", "device_time_total",
            "self_device_time_total", "cpu_memory_usage", "self_cpu_memory_usage", "flops",
        ):  # fmt: skip
            setattr(self, name, getattr(self, name) + getattr(other, name))
        return self

    __iadd__ = add

    def __repr__(self) -> str:
        return (
            f"<FunctionEventAvg key={self.key} self_cpu_time={self.self_cpu_time_total_str} "
            f"cpu_time={self.cpu_time_str}  self_cuda_time={self.self_device_time_total_str} "
            f"cuda_time={self.device_time_str} input_shapes={self.input_shapes} "
            f"cpu_memory_usage={self.cpu_memory_usage} cuda_memory_usage=0>"
        )


class EventList(list[Any]):
    """Events, or sums of events, that can be shown as a table, a trace and a picture."""

    def __init__(
        self,
        events: Iterable[Any] = (),
        *,
        profile_memory: bool = False,
        with_flops: bool = False,
        recorder: Recorder | None = None,
    ) -> None:
        super().__init__(events)
        self.profile_memory, self.with_flops = profile_memory, with_flops
        self.recorder = recorder

    def __str__(self) -> str:
        return self.table()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events, none counted twice."""
        return float(sum(event.self_cpu_time_total for event in self))

    def table(
        self,
        sort_by: str | None = None,
        row_limit: int = 100,
        max_src_column_width: int | None = 75,
        max_name_column_width: int | None = 55,
        max_shapes_column_width: int | None = 80,
        header: str | None = None,
        top_level_events_only: bool = False,
        time_unit: str | None = None,
    ) -> str:
        """The events as a table.

        sort_by                 an attribute, the largest first: "cpu_time_total",
                                "self_cpu_time_total", "count", "cpu_memory_usage",
                                "device_time_total" (or "cuda_time_total"), …
        row_limit               how many rows; -1 for all
        max_*_column_width      None for no limit
        top_level_events_only   without what other events called
        time_unit               "s", "ms" or "us" for all times
        """
        events = list(self)
        if sort_by is not None:
            by = sort_by.replace("cuda", "device")
            events.sort(key=lambda event: getattr(event, by), reverse=True)
        return table.text(
            events, memory=self.profile_memory, flops=self.with_flops, row_limit=row_limit,
            widths=(max_name_column_width, max_shapes_column_width, max_src_column_width),
            header=header, top_level=top_level_events_only, unit=time_unit,
        )  # fmt: skip

    def key_averages(
        self,
        group_by_input_shapes: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of events of one name (one shape of inputs, the same n innermost callers)."""
        sums: dict[Any, FunctionEventAvg] = {}
        for event in self:
            key = (
                event.key,
                event.is_user_annotation,
                event.device_type,
                str(event.input_shapes) if group_by_input_shapes else None,
                tuple(event.stack[:group_by_stack_n]),
            )
            sums.setdefault(key, FunctionEventAvg()).add(event)
        for one in sums.values():
            one.stack = one.stack[:group_by_stack_n]
            if not group_by_input_shapes:
                one.input_shapes = ""
        return EventList(
            sums.values(), profile_memory=self.profile_memory, with_flops=self.with_flops
        )

    def total_average(self) -> FunctionEventAvg:
        """One sum of all events, whose key is "Total"."""
        total = FunctionEventAvg()
        for event in self:
            total.key = event.key  # which `add` compares
            total.add(event)
        total.key, total.input_shapes, total.stack = "Total", [], []
        return total

    def export_chrome_trace(self, path: str) -> None:
        """Writes the events for chrome://tracing or ui.perfetto.dev; gzipped if it ends in .gz."""
        trace.write(self, path)

    def supported_export_stacks_metrics(self) -> list[str]:
        """What `export_stacks` may sum."""
        return list(METRICS)

    def export_stacks(self, path: str, metric: str) -> None:
        """Writes "outer;inner microseconds" lines, from which flame graphs are drawn."""
        if metric not in METRICS:
            raise ValueError(f"metric should be one of: {METRICS}")
        clean = str.maketrans(" ;\t\n", "____")
        lines = []
        for event in self:
            value = int(getattr(event, metric, 0))  # a device that was not there took no time
            if event.stack and value > 0:
                lines.append(
                    ";".join(s.translate(clean) for s in reversed(event.stack)) + f" {value}\n"
                )
        with replacing(path) as file:
            file.write("".join(lines).encode())

    def picture(self, **options: Any) -> Picture:
        """What ran when, and inside of what, as a picture (see `toytorch.viz.timeline`)."""
        on_cpu = [event for event in self if event.device_type is DeviceType.CPU]
        return timeline(EventList(on_cpu, recorder=self.recorder), **options)


def events_of(recorder: Recorder, first_id: int = 1) -> list[FunctionEvent]:
    """The events of what was recorded, in order of their start."""
    threads = {recorder.thread: 1}  # the one that started the profiler comes first
    events: dict[int, FunctionEvent] = {}
    for span in recorder.spans:
        start, end = ((t - recorder.began) / 1e3 for t in (span.start, span.end))
        thread = threads.setdefault(span.thread, len(threads) + 1)
        event = FunctionEvent(first_id + len(events), span, thread, start, end)
        events[id(span)] = event
        parent = None if span.parent is None else events.get(id(span.parent))
        if parent is not None:
            event.cpu_parent = parent
            parent.cpu_children.append(event)
            parent.self_cpu_time_total -= event.cpu_time_total
    made = sorted(events.values(), key=lambda event: event.time_range.start)
    work = on_devices(recorder, events, first_id + len(made))
    for event in reversed(made):  # what is called starts later, so it is complete by now
        if event.cpu_parent is not None:
            event.cpu_parent.cpu_memory_usage += event.cpu_memory_usage
            event.cpu_parent.device_time_total += event.device_time_total
    return made + work + outside_of_all(recorder, first_id + len(made) + len(work), threads)


def on_devices(
    recorder: Recorder, events: dict[int, FunctionEvent], first_id: int
) -> list[FunctionEvent]:
    """What devices did, as events of their own; the ops that asked for it get its time."""
    if recorder.device:
        for event in events.values():
            event.use_device = "cuda"
    found: list[FunctionEvent] = []
    for work in recorder.work:
        span = Span(work.name, None, 0, FUNCTION)
        event = FunctionEvent(first_id + len(found), span, work.stream, work.start, work.end)
        event.device_type, event.use_device = DeviceType.CUDA, "cuda"
        event.device_index, event.device_resource_id = work.device, work.stream
        event.bytes, event.kind = work.bytes, work.kind
        event.cpu_time_total = event.self_cpu_time_total = 0.0
        event.device_time_total = event.self_device_time_total = work.end - work.start
        found.append(event)
        op = None if work.span is None else events.get(id(work.span))
        if op is not None:
            op.kernels.append(Kernel(work.name, work.device, event.device_time_total))
            op.self_device_time_total += event.device_time_total
            op.device_time_total += event.device_time_total
            event.linked = op
    return found


def outside_of_all(
    recorder: Recorder, first_id: int, threads: dict[int, int]
) -> list[FunctionEvent]:
    """Memory that was freed while no event ran, as PyTorch's events "[memory]"."""
    found: list[FunctionEvent] = []
    for change in recorder.ledger.changes if recorder.ledger is not None else ():
        if change.span is None:
            span = Span("[memory]", None, change.thread, 0)
            span.bytes = change.bytes
            at = (change.time - recorder.began) / 1e3
            found.append(
                FunctionEvent(
                    first_id + len(found),
                    span,
                    threads.setdefault(change.thread, len(threads) + 1),
                    at,
                    at,
                )
            )
    return found
