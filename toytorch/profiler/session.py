"""The profiler of a training loop, like `torch.profiler.profile`."""

from __future__ import annotations

import enum
import json
import os
import socket
import time
import warnings
from collections.abc import Callable, Iterable
from typing import Any

from toytorch import cuda
from toytorch.profiler import simple, trace
from toytorch.profiler.events import EventList
from toytorch.profiler.records import record_function
from toytorch.profiler.schedules import ProfilerAction, always
from toytorch.viz.draw.picture import Picture

NONE, WARMUP = ProfilerAction.NONE, ProfilerAction.WARMUP
RECORD, SAVE = ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE


class ProfilerActivity(enum.Enum):
    """What may be recorded. Work on a GPU shows as the time that launching it took."""

    CPU = 0
    CUDA = 2


def supported_activities() -> set[ProfilerActivity]:
    """What can be recorded on this machine."""
    gpu = {ProfilerActivity.CUDA} if cuda.is_available() else set()
    return {ProfilerActivity.CPU} | gpu


def kineto_available() -> bool:
    """Whether PyTorch's tracing library is there: the profiler here does without."""
    return False


class profile:
    """Records what ops do, and how long they take, all the time or in the steps of a plan.

    activities      what to record (ProfilerActivity); everything that can be
    schedule        a plan from `schedule(...)`; `step()` then tells where each step ends
    on_trace_ready  called with the profiler at the end of each cycle of the plan
    record_shapes, profile_memory, with_stack, with_flops, with_modules
                    what else to record, see `torch.autograd.profiler.profile`
    acc_events      keep the events of earlier cycles

    >>> x = torch.ones(100, 100, requires_grad=True)
    >>> with profile(record_shapes=True) as prof:
    ...     (x @ x).sum().backward()
    >>> mm = next(e for e in prof.key_averages(group_by_input_shape=True) if e.key == "aten::mm")
    >>> mm.count, mm.input_shapes
    (3, [[100, 100], [100, 100]])

    On simulated devices, kernels and copies are events with virtual times, and ops have the time of
    what they launched:

    >>> both = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    >>> with torch.cuda.simulate(model="H100"), profile(activities=both) as prof:
    ...     y = torch.ones(1000, 1000, device="cuda") * 2
    >>> for event in prof.key_averages():
    ...     print(f"{event.key:10} {event.device_type.name:4} {event.device_time_total:.1f} µs")
    aten::ones CPU  3.4 µs
    aten::mul  CPU  4.8 µs
    ones       CUDA 3.4 µs
    mul        CUDA 4.8 µs
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[Any], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
        experimental_config: Any = None,
        execution_trace_observer: Any = None,
        acc_events: bool = False,
        use_cuda: bool | None = None,
    ) -> None:
        self.activities = checked(activities, use_cuda)
        self.schedule = always if schedule is None else schedule
        self.on_trace_ready = on_trace_ready
        self.record_steps = schedule is not None
        self.step_num = 0
        self.current_action = self.schedule(0)
        self.acc_events = acc_events
        self._options = {
            "record_shapes": record_shapes,
            "profile_memory": profile_memory,
            "with_stack": with_stack,
            "with_flops": with_flops,
            "with_modules": with_modules,
        }
        self.profiler: simple.profile | None = None
        self._recording = False
        self._step_record: record_function | None = None
        self._metadata: dict[str, Any] = {}

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stop()

    # -- steps --------------------------------------------------------------------------------

    def start(self) -> None:
        """Begins with step 0 of the plan."""
        if self.current_action in (RECORD, SAVE):
            self._start()
        self._begin_step()

    def stop(self) -> None:
        """Ends; a cycle that has recorded something is handed to `on_trace_ready`."""
        self._end_step()
        if self._recording:
            self._stop()
            self._ready()

    def step(self) -> None:
        """Says that the next step of the training loop begins."""
        self._end_step()
        before = self.current_action
        self.step_num += 1
        now = self.current_action = self.schedule(self.step_num)
        if before is SAVE:
            self._stop()
            self._ready()
        elif (before, now) in ((RECORD, NONE), (RECORD, WARMUP), (WARMUP, NONE)):
            warnings.warn(f"Incorrect schedule: {before.name} followed by {now.name}", stacklevel=2)
            if before is RECORD:
                self._stop()
        if now in (RECORD, SAVE) and not self._recording:
            self._start()
        self._begin_step()

    def _start(self) -> None:
        if self.profiler is None or not self.acc_events:
            self.profiler = simple.profile(
                **self._options,
                use_device="cuda" if ProfilerActivity.CUDA in self.activities else None,
                acc_events=self.acc_events,
            )
        self.profiler._start()
        self._recording = True

    def _stop(self) -> None:
        if self._recording and self.profiler is not None:
            self._recording = False
            self.profiler._stop()

    def _ready(self) -> None:
        if self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def _begin_step(self) -> None:
        if self.record_steps:
            self._step_record = record_function(f"ProfilerStep#{self.step_num}")
            self._step_record.__enter__()

    def _end_step(self) -> None:
        if self._step_record is not None:
            self._step_record.__exit__(None, None, None)
            self._step_record = None

    # -- results ------------------------------------------------------------------------------

    def _need(self, purpose: str) -> simple.profile:
        if self.profiler is None:
            raise AssertionError(f"Profiler must be initialized before {purpose}")
        return self.profiler

    def events(self) -> EventList:
        """All events of the last cycle, in the order of their start."""
        return self._need("accessing events").function_events

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums of the events of one name (and shape of inputs, and n innermost callers)."""
        return self._need("getting key averages").key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def max_memory_allocated(self) -> int:
        """The most bytes that results recorded here took at one time; needs `profile_memory`."""
        recorder = self._need("asking for its memory").recorder
        if recorder is None or recorder.ledger is None:
            raise AssertionError("max_memory_allocated() requires profile_memory=True")
        return recorder.ledger.peak()

    def export_chrome_trace(self, path: str, use_python_export: bool = False) -> None:
        """Writes the events for chrome://tracing or ui.perfetto.dev; gzipped if it ends in .gz."""
        events = self._need("exporting chrome trace").function_events
        flags = {name: 1 for name, on in self._options.items() if on}
        trace.write(events, path, {**flags, **self._metadata})

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes lines from which flame graphs are drawn; AssertionError without `with_stack`."""
        self._need("exporting stacks").export_stacks(path, metric)

    def add_metadata(self, key: str, value: str) -> None:
        """Adds a note to the traces that are written."""
        self._metadata[key] = value

    def add_metadata_json(self, key: str, value: str) -> None:
        """Adds a note that is JSON."""
        self._metadata[key] = json.loads(value)

    def picture(self, **options: Any) -> Picture:
        """What ran when, and inside of what, as a picture (see `toytorch.viz.timeline`)."""
        return self.events().picture(**options)


def checked(
    activities: Iterable[ProfilerActivity] | None, use_cuda: bool | None
) -> set[ProfilerActivity]:
    """The activities; refuses what is none, what comes twice, and nothing at all."""
    if activities is None:
        return supported_activities()
    found: set[ProfilerActivity] = set()
    given = list(activities)
    if given and not any(isinstance(item, ProfilerActivity) for item in given):
        raise AssertionError("No valid profiler activities found")
    for item in given:
        if not isinstance(item, ProfilerActivity):
            raise TypeError(f"Expected ProfilerActivity or dict, got {type(item)}")
        if item in found:
            raise ValueError(f"Activity {item} specified more than once")
        found.add(item)
    if use_cuda:
        found.add(ProfilerActivity.CUDA)
    if not found:
        raise AssertionError("No valid profiler activities found")
    if ProfilerActivity.CUDA in found and not cuda.is_available():
        warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=3)
        found.discard(ProfilerActivity.CUDA)
    return found


def tensorboard_trace_handler(
    dir_name: str,
    worker_name: str | None = None,
    use_gzip: bool = False,
    use_python_export: bool = False,
) -> Callable[[profile], None]:
    """An `on_trace_ready` that writes each cycle's trace where TensorBoard looks for it.

    The file is dir_name/WORKER.NANOSECONDS.pt.trace.json (.gz); WORKER is host and process unless
    it is given.
    """

    def handle(prof: profile) -> None:
        try:
            os.makedirs(dir_name, exist_ok=True)
        except OSError as error:
            raise RuntimeError("Can't create directory: " + dir_name) from error
        worker = worker_name or f"{socket.gethostname()}_{os.getpid()}"
        name = f"{worker}.{time.time_ns()}.pt.trace.json" + (".gz" if use_gzip else "")
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return handle
