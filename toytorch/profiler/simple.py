"""The profiler of one piece of program, like `torch.autograd.profiler.profile`."""

from __future__ import annotations

import itertools
import warnings
from typing import Any

from toytorch import cuda
from toytorch.facts.hints import Args
from toytorch.nn.modules import hooks
from toytorch.nn.modules.module import Module
from toytorch.profiler.events import EventList, FunctionEventAvg, events_of
from toytorch.profiler.recorder import MODULE, Recorder, Span


class profile:
    """Takes the time of every op, and of every node of the backward pass, inside a `with`.

    enabled           whether to do anything
    record_shapes     the shapes of inputs
    with_flops        floating-point operations, where there is a formula; and the shapes
    profile_memory    bytes taken and freed by results
    with_stack        the lines that called
    with_modules      the calls of modules, as events of their own
    use_cpu           must stay True: there is nothing else to record

    While it runs, every op takes the general path, some microseconds longer than without: compare
    large ops by their times, small ones by their counts. Raises RuntimeError if it is entered
    twice or another profiler is at work.

    >>> with profile() as prof:
    ...     y = torch.ones(3) * 2
    >>> [event.name for event in prof.function_events]
    ['aten::ones', 'aten::mul']
    """

    def __init__(
        self,
        enabled: bool = True,
        *,
        use_cuda: bool = False,
        use_device: Any = None,
        record_shapes: bool = False,
        with_flops: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_modules: bool = False,
        use_kineto: bool = False,
        use_cpu: bool = True,
        experimental_config: Any = None,
        acc_events: bool = False,
    ) -> None:
        if not use_cpu:
            raise AssertionError("Device-only events supported only with Kineto (use_kineto=True)")
        self.use_device = "cuda" if use_cuda or use_device == "cuda" else None
        if self.use_device and not cuda.is_available():
            warnings.warn("CUDA is not available, disabling CUDA profiling", stacklevel=2)
            self.use_device = None
        self.enabled, self.entered, self.acc_events = enabled, False, acc_events
        self.record_shapes, self.with_flops = record_shapes, with_flops
        self.profile_memory, self.with_stack = profile_memory, with_stack
        self.with_modules = with_modules
        self.recorder: Recorder | None = None
        self._events: EventList | None = None
        self._modules: Modules | None = None

    def __enter__(self) -> profile | None:
        if not self.enabled:
            return None
        if self.entered:
            raise RuntimeError("Profiler context manager is not reentrant")
        self._start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self.enabled:
            self._stop()

    def _start(self) -> None:
        self.recorder = Recorder(
            shapes=self.record_shapes or self.with_flops,
            stack=self.with_stack,
            flops=self.with_flops,
            memory=self.profile_memory,
            device=self.use_device is not None,
        )
        self.recorder.start()
        self.entered = True
        if self.with_modules:
            self._modules = Modules(self.recorder)

    def _stop(self) -> None:
        recorder = self.recorder
        if recorder is None:
            raise RuntimeError("Profiler must be started before it is stopped")
        if self._modules is not None:
            self._modules.remove()
            self._modules = None
        recorder.stop()
        before = self._events if self.acc_events and self._events is not None else ()
        self._events = EventList(
            [*before, *events_of(recorder, len(before) + 1)],
            recorder=recorder,
            profile_memory=self.profile_memory,
            with_flops=self.with_flops,
        )

    @property
    def function_events(self) -> EventList:
        """All events; RuntimeError while the profiler still runs."""
        if self._events is None:
            raise RuntimeError("Profiler didn't finish running")
        return self._events

    def __repr__(self) -> str:
        if self._events is None:
            return "<unfinished torch.autograd.profile>"
        return repr(self._events)

    def __str__(self) -> str:
        return repr(self) if self._events is None else str(self._events)

    def table(self, *args: Any, **options: Any) -> str:
        """All events as a table; see `EventList.table`."""
        return self.function_events.table(*args, **options)

    def key_averages(
        self,
        group_by_input_shape: bool = False,
        group_by_stack_n: int = 0,
        group_by_overload_name: bool = False,
    ) -> EventList:
        """The sums by name; see `EventList.key_averages`."""
        return self.function_events.key_averages(
            group_by_input_shape, group_by_stack_n, group_by_overload_name
        )

    def total_average(self) -> FunctionEventAvg:
        """One sum of all events."""
        return self.function_events.total_average()

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all events in microseconds."""
        return self.function_events.self_cpu_time_total

    def export_chrome_trace(self, path: str) -> None:
        """Writes a trace for chrome://tracing."""
        self.function_events.export_chrome_trace(path)

    def export_stacks(self, path: str, metric: str = "self_cpu_time_total") -> None:
        """Writes lines from which flame graphs are drawn; AssertionError without `with_stack`."""
        if not self.with_stack:
            raise AssertionError("export_stacks() requires with_stack=True")
        self.function_events.export_stacks(path, metric)


class Modules:
    """Records the calls of modules: "nn.Module: Linear_0" for the first Linear that is called."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._open: list[tuple[Any, Span]] = []
        self._names: dict[int, str] = {}
        self._kept: list[Any] = []  # so that no id is given to another module
        self._counts: dict[str, Any] = {}
        self._handles = [
            hooks.register_module_forward_pre_hook(self._enter),
            hooks.register_module_forward_hook(self._leave, always_call=True),
        ]

    def _enter(self, module: Module, args: Args) -> None:
        if id(module) not in self._names:
            kind = type(module).__name__
            number = next(self._counts.setdefault(kind, itertools.count()))
            self._names[id(module)] = f"nn.Module: {kind}_{number}"
            self._kept.append(module)
        self._open.append((module, self._recorder.enter(self._names[id(module)], args, MODULE)))

    def _leave(self, module: Module, args: Args, output: object) -> None:
        for i in reversed(range(len(self._open))):
            if self._open[i][0] is module:
                self._recorder.leave(self._open.pop(i)[1])
                return

    def remove(self) -> None:
        """Takes the hooks away."""
        for handle in self._handles:
            handle.remove()
