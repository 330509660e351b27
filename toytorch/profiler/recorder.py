"""What the profiler writes down while the program runs: one Span for each thing that took time.

A Recorder stands in `facts.state.profiler`, where `dispatch`, the engine, optimizers and loaders ask
for it on their slow paths. It keeps the time, and leaves all arithmetic for later (`events.py`).
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from time import perf_counter_ns
from typing import Any, NamedTuple

from toytorch.backends import base
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.facts.hints import Fn
from toytorch.facts.node import Node
from toytorch.profiler.flops import flops_of
from toytorch.profiler.ledger import Ledger
from toytorch.profiler.places import call_sites

FUNCTION, BACKWARD, USER, MODULE = 0, 1, 7, 10  # PyTorch's numbers for the kinds of spans


class Span:
    """From when to when (nanoseconds) a thread was inside one thing, and what it was."""

    __slots__ = (
        "bytes", "end", "flops", "name", "parent", "scope", "seq", "shapes", "stack", "start",
        "thread",
    )  # fmt: skip

    def __init__(self, name: str, parent: Span | None, thread: int, scope: int) -> None:
        self.name, self.parent, self.thread, self.scope = name, parent, thread, scope
        self.shapes: list[Any] = []
        self.stack: list[str] = []
        self.bytes = self.flops = 0  # memory taken (freed: less) by itself, not by what it called
        self.seq = -1  # the number of the graph's node that it made, or ran
        self.start = self.end = 0


class Work(NamedTuple):
    """A kernel or a copy on a simulated device; microseconds of the device's clock since the start."""

    kind: str  # "kernel" or "copy"
    name: str
    start: float
    end: float
    device: int
    stream: int
    bytes: int
    span: Span | None  # what the host was inside of when it asked for it


class Recorder:
    """Takes the time of the calls of all threads, from `start()` to `stop()`.

    shapes, stack, flops, memory   what to write down beside the time, at a cost of its own
    device                         whether to write down what simulated devices do
    """

    def __init__(
        self,
        *,
        shapes: bool = False,
        stack: bool = False,
        flops: bool = False,
        memory: bool = False,
        device: bool = False,
    ) -> None:
        self.device, self.work = device, list[Work]()
        self._machine: Any = None  # the simulated one that is watched
        self.shapes, self.stack, self.flops = shapes, stack, flops
        self.ledger = Ledger(self.here) if memory else None
        self.spans: list[Span] = []
        self.began = self.ended = self.wall = self.thread = 0
        self._open = threading.local()  # .spans: those this thread is inside of

    def start(self) -> None:
        """Begins; RuntimeError if another profiler is at work, since there is one clock."""
        if state.profiler is not None:
            raise RuntimeError("Profiler is already enabled on this thread")
        self.began, self.wall = perf_counter_ns(), time.time_ns()
        self.thread = threading.get_ident()
        if self.device and base.simulation is not None:
            self._machine = machine = base.simulation.machine
            machine.watcher, self._device_began = self.launched, machine.now
        state.watch(1)
        state.profiler = self

    def stop(self) -> None:
        """Ends, also what is still running."""
        state.profiler = None
        state.watch(-1)
        if self._machine is not None:
            self._machine.watcher = None
        self.ended = perf_counter_ns()
        for span in self.spans:
            span.end = span.end or self.ended
        if self.ledger is not None:
            self.ledger.close()

    def launched(
        self, kind: str, name: str, start: float, end: float, device: int, stream: int, bytes: int
    ) -> None:
        """Takes down what a device was given to do."""
        began = self._device_began
        self.work.append(
            Work(kind, name, start - began, end - began, device, stream, bytes, self.here())
        )

    def here(self) -> Span | None:
        """What this thread is inside of."""
        spans = getattr(self._open, "spans", None)
        return spans[-1] if spans else None

    def enter(self, name: str, args: Sequence[Any] = (), scope: int = FUNCTION) -> Span:
        """Begins a span inside those that this thread is in."""
        try:
            spans = self._open.spans
        except AttributeError:
            spans = self._open.spans = []
        span = Span(name, spans[-1] if spans else None, threading.get_ident(), scope)
        if self.shapes:
            span.shapes = [shape_of(a) for a in args]
        if self.flops:
            span.flops = flops_of(name, args)
        if self.stack:
            span.stack = call_sites()
        spans.append(span)
        self.spans.append(span)
        span.start = perf_counter_ns()
        return span

    def leave(self, span: Span) -> None:
        """Ends a span, and with it those inside that were left open."""
        now = perf_counter_ns()
        spans = getattr(self._open, "spans", [])
        if span not in spans:  # it was begun in another thread
            span.end = span.end or now
            return
        while True:
            last = spans.pop()
            last.end = now
            if last is span:
                return

    def around(
        self, name: str, args: Sequence[Any], function: Fn, *arguments: object, **more: object
    ) -> Any:
        """function(*arguments), in a span of its own."""
        return self._inside(self.enter(name, args), args, function, *arguments, **more)

    def backward(self, node: Node, grad: Any, function: Fn, *arguments: object) -> Any:
        """The same for a node of the backward pass, in the two spans that PyTorch shows."""
        name = node.name()
        grads = tuple(grad) if node.many else (grad,)
        outer = self.enter(f"autograd::engine::evaluate_function: {name}", (), BACKWARD)
        inner = self.enter(name, grads, BACKWARD)
        outer.seq = inner.seq = -1 if node.seq >= 1 << 63 else node.seq  # leaves have no number
        try:
            return self._inside(inner, grads, function, *arguments)
        finally:
            self.leave(outer)

    def _inside(
        self, span: Span, args: Sequence[Any], function: Fn, *arguments: object, **more: object
    ) -> Any:
        try:
            result = function(*arguments, **more)
        finally:
            self.leave(span)
        if self.ledger is not None:
            self.ledger.count(span, args, result)
        if span.scope == FUNCTION and isinstance(result, Tensor):
            span.seq = getattr(result._grad_edge, "seq", -1) if result._requires_grad else -1
        return result


def shape_of(value: object) -> list[Any]:
    """The shape of a tensor, the shapes of those in a list, [] for anything else."""
    if isinstance(value, Tensor):
        return list(value._array.shape)
    if isinstance(value, (list, tuple)) and value and isinstance(value[0], Tensor):
        return [list(t._array.shape) for t in value if isinstance(t, Tensor)]
    return []
