"""A simulated machine: a host with its clock, devices with streams and engines, in virtual time.

What is computed is computed at once, on the CPU; this file says when it would have been. The host
pays for each call and goes on; the work waits for its stream, for the engine it needs (the
multiprocessors, or one of the copy engines), and for the events its stream was told to wait for.
Times depend on the calls alone, so they are the same in every run.
"""

from __future__ import annotations

import itertools
import os
import sys
import threading
import time
import warnings
from bisect import bisect_right
from collections import deque
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends.simulator.devices import Event, SimulatedDevice, Stream
from toytorch.backends.simulator.races import HOST, Clock, Races
from toytorch.backends.simulator.records import POINT, LiveTimeline
from toytorch.backends.simulator.roofline import GAP, QUEUE, Host, copy_time, kernel_time
from toytorch.facts.cards import Card
from toytorch.facts.package import is_ours
from toytorch.facts.trace import AcceleratorError

LONGEST = 1024  # entries in the log


class Machine:
    """The host and its devices."""

    def __init__(
        self,
        cards: list[Card],
        memory: int | None,
        races: Races,
        host: Host | None = None,
        realtime: bool = False,
    ) -> None:
        self.actors = itertools.count(HOST + 1)
        self.host_time = 0.0  # `now`, once the log is settled
        # What was asked for and not dealt with yet, in order: see `settle`.
        self.log: deque[Any] = deque()
        self.settling = False
        self.longest = LONGEST  # entries that may wait in it
        self.clock: Clock = {HOST: 1}  # what the host knows to be done
        self.learned = 0  # goes up with every change of that
        self.races = races
        self.host = host or Host.of(cards[0])
        self.began = time.perf_counter() if realtime else None
        self.timeline = LiveTimeline(f"{len(cards)} x {cards[0].name}, simulated", self.looked)
        self.started = 0  # the number of spans so far
        self.devices = [
            SimulatedDevice(self, i, card, memory or card.memory) for i, card in enumerate(cards)
        ]
        self.local = _Chosen()
        self.lock = threading.RLock()
        self.capture: Any = None  # the graph that calls are recorded into
        self.blocking: bool | None = None  # as the environment has it at the first launch
        self.backward: set[Stream] = set()  # streams that a backward pass used, to be waited for
        self.in_backward: Callable[[], bool] = lambda: False  # whether this thread is in one
        self.sync_debug = 0  # what ops do that make the host wait: 1 to warn, 2 to refuse
        self.pool = 0  # where new memory comes from, outside of graphs
        self.watcher: Callable[..., None] | None = None  # the profiler, told of each piece of work

    # -- what a thread has chosen -------------------------------------------------------------

    @property
    def device(self) -> SimulatedDevice:
        """The one that new tensors go to."""
        return self.devices[self.local.device]

    def stream_of(self, device: SimulatedDevice) -> Stream:
        """The stream that work on a device goes to."""
        return self.local.streams.get(device.index) or device.default

    # -- the log ------------------------------------------------------------------------------

    def launched(
        self, stream: Stream, name: str, moved: int, work: int, kind: np.dtype, product: bool,
        elements: int, source: Any,
    ) -> None:  # fmt: skip
        """The host asks for a kernel: enters it into the log, or queues it where something looks at
        each piece of work, or it has to wait for an event."""
        device = stream.device
        if self.blocking is None:
            self.blocking = blocking()
        if (
            self.blocking
            or stream.waits
            or self.watcher is not None
            or device.error is not None
            or (self.backward and not self.in_backward())
        ):
            self.settle()
            length, limit, share, *_ = device.cost(moved, work, kind, product, elements)
            self.queue(
                stream, name, length, share=share, source=source, bytes=moved, flops=work,
                limit=limit,
            )  # fmt: skip
            return
        if stream.learned != self.learned:
            self.tell(stream)
        stream.clock[stream.actor] = stream.clock.get(stream.actor, 0) + 1
        self.log.append((stream, name, (moved, work, kind.char, product, elements), kind, source))
        if len(self.log) > self.longest:
            self.settle()

    def settle(self) -> None:
        """Deals with the entries of the log.

        A program asks for kernels and memory all the time, and seldom for the time that it is or
        for an address. So each request is an entry (a list for memory, the same when it is given
        back; a tuple for a kernel), and many of them are dealt with at once, in order, before anyone
        looks: with the same outcome, in a fraction of the time. What decides about races, vector
        clocks and accesses, is not put off.
        """
        if not self.log:
            return
        with self.lock:
            if self.settling:
                return  # what is being dealt with asks for the time
            self.settling = True
            try:
                self._deal_with(self.log)
            finally:
                self.settling = False

    def looked(self) -> None:
        """Somebody looks at the timeline, and may keep its lists: nothing is put off any more."""
        self.longest = 0
        self.settle()
        for device in self.devices:
            device.look_at_room()

    def _deal_with(self, log: deque[Any]) -> None:
        op, take, push = self.host.op, log.popleft, self.timeline.push
        point, packed, marked = self.timeline.point, POINT.pack, self.marked
        while log:
            row = take()
            if row.__class__ is list:
                block, size, source, stream, history = row
                device = stream.device
                allocator = device.allocator
                if block is None:
                    reserved = allocator.reserved
                    row[0] = block = allocator.allocate(size, stream.handle, source)
                    if device.ghosts:
                        device.take_over(block, stream)
                    if allocator.reserved != reserved:
                        self.spend(self.host.allocate, "cudaMalloc", source)
                else:
                    if history is not None:
                        device.keep_ghosts(block, stream, history)
                    allocator.release(block, marked)
                used = allocator.statistics.in_use
                point(packed(self.host_time, device.index, used, allocator.reserved))
                continue
            stream, name, key, kind, source = row
            device, ends = stream.device, stream.queue
            moved, work, _, product, elements = key
            known = device.costs.get(key)
            if known is None:
                known = device.cost(moved, work, kind, product, elements)
            length, limit, share, moved, work = known
            began = self.host_time
            now = began + op
            if len(ends) >= QUEUE:
                del ends[: bisect_right(ends, now)]  # what is over
                if len(ends) >= QUEUE:
                    self.schedule(
                        stream, name, length, "kernel", None, share, began, op, source,
                        (moved, work, limit),
                    )  # fmt: skip
                    continue
            self.host_time = now
            ready = stream.ends + GAP if stream.ends > now else now
            busy = device.busy
            if len(busy) == 1 and busy[0].end <= ready:  # as `place` has it
                last, start = busy[0], ready
                last.start, last.end, last.share = ready, ready + length, share
            else:
                start = device.place(ready, length, share)
            stream.ends = end = start + length
            ends.append(end)
            number = self.started
            self.started = number + 2
            push((number, name, began, now, start, stream.place, source, known))
            stream.newest = number + 1
        for device in self.devices:
            device.look_at_room()

    # -- time ---------------------------------------------------------------------------------

    @property
    def now(self) -> float:
        """The host's clock, in µs."""
        self.settle()
        return self.host_time

    @now.setter
    def now(self, time: float) -> None:
        self.host_time = time

    def span(self, kind: str, name: str, row: str, start: float, end: float, *more: Any) -> int:
        """Writes a span down; its number. `more` are further fields of a Span, in their order."""
        self.settle()
        number = self.started
        self.started = number + 1
        self.timeline.span(number, kind, name, row, start, end, *more)
        return number

    def arrow(self, before: int | None, after: int | None, kind: str) -> None:
        """Writes down that one span waited for another."""
        if before is not None and after is not None:
            self.timeline.arrow(before, after, kind)

    def spend(self, microseconds: float, name: str, source: Any = None) -> int:
        """The host works for a while."""
        start = self.now
        self.now += microseconds
        return self.span("host", name, "host", start, self.now, None, None, source)

    def check(self, device: SimulatedDevice) -> None:
        """Raises AcceleratorError if a kernel that is over has met an error."""
        if device.error is not None and device.failed <= self.now:
            raise AcceleratorError(device.error)

    def fail(self, device: SimulatedDevice, stream: Stream, what: str) -> None:
        """The last kernel of a stream met an error: the host will see it once that is over, at
        whatever it calls then, and from then on at every call."""
        sys.stderr.write(f"{what}\n")
        if device.error is None:
            device.error, device.failed = DEVICE_ASSERT, stream.tail

    def queue(
        self,
        stream: Stream,
        name: str,
        length: float,
        *,
        kind: str = "kernel",
        engine: str | None = None,
        share: float = 1.0,
        cost: float | None = None,
        source: tuple[str, int] | None = None,
        blocks: bool = True,
        bytes: int = 0,
        flops: int = 0,
        limit: str = "",
    ) -> None:
        """The host asks for work on a stream and goes on."""
        began, device = self.now, stream.device
        if device.error is not None:
            self.check(device)
        if self.backward and not self.in_backward():
            self.leave_backward()
        cost = self.host.op if cost is None else cost
        self.schedule(
            stream, name, length, kind, engine, share, began, cost, source, (bytes, flops, limit)
        )
        if stream.learned != self.learned:
            self.tell(stream)
        stream.clock[stream.actor] = stream.clock.get(stream.actor, 0) + 1
        if self.blocking is None:
            self.blocking = blocking()
        if blocks and self.blocking and self.capture is None:
            self.synchronise(stream, source=source)

    def schedule(
        self, stream: Stream, name: str, length: float, kind: str, engine: str | None, share: float,
        began: float, cost: float, source: Any, figures: tuple[int, int, str],
    ) -> None:  # fmt: skip
        """Finds the place of a piece of work in time, and writes it down."""
        device, ends = stream.device, stream.queue
        asked = None
        if self.capture is None:
            self.host_time += cost
            now, asked = self.host_time, self.started
            self.started = asked + 1
            self.timeline.span(asked, "host", name, "host", began, now, None, None, source)
            if len(ends) >= QUEUE:
                del ends[: bisect_right(ends, now)]  # what is over
                if len(ends) >= QUEUE:
                    self.wait_until(ends[len(ends) - QUEUE], "queue is full", source)
        ready = stream.ends + GAP if stream.ends > self.host_time else self.host_time
        if engine is None:
            start = device.place(ready, length, share)
            row = stream.name
        else:
            start = max(ready, device.engines[engine])
            device.engines[engine] = start + length
            row = f"cuda:{device.index} {ENGINES[engine]}"
        stream.ends = end = start + length
        ends.append(end)
        number = self.started
        self.started = number + 1
        self.timeline.span(
            number, kind, name, row, start, end, device.index, stream.handle, source, *figures
        )
        if self.watcher is not None:
            self.watcher(kind, name, start, end, device.index, stream.handle, figures[0])
        if asked is not None:
            self.timeline.arrow(asked, number, "launch")
        if stream.waits:
            for before in stream.waits:
                self.arrow(before, number, "event")
            stream.waits.clear()
        stream.newest = number

    def tell(self, stream: Stream) -> None:
        """A stream that gets work knows what the host knows."""
        clock = stream.clock
        for actor, tick in self.clock.items():
            if tick > clock.get(actor, 0):
                clock[actor] = tick
        stream.learned = self.learned

    def catch_up(self, began: float) -> None:
        """Sleeps until as much real time has passed as simulated time."""
        ahead = self.now * 1e-6 - (time.perf_counter() - began)
        if ahead > 0:
            time.sleep(ahead)

    def wait_until(self, until: float, why: str, source: Any = None) -> int | None:
        """The host stands still until a time."""
        start, self.now = self.now, max(self.now, until)
        if self.began is not None:
            self.catch_up(self.began)
        if self.now > start:
            return self.span("sync", why, "host", start, self.now, None, None, source)
        return None

    def learn(self, clock: Clock) -> None:
        """The host knows now what somebody knew."""
        for actor, tick in clock.items():
            if tick > self.clock.get(actor, 0):
                self.clock[actor] = tick
                self.learned += 1

    def synchronise(self, stream: Stream, why: str = "synchronize", source: Any = None) -> None:
        """The host waits for all that a stream was given."""
        if self.capture is not None:
            raise AcceleratorError(CAPTURING)
        self.leave_backward()
        waited = self.wait_until(stream.tail, why, source)
        if waited is not None:
            self.arrow(stream.last, waited, "sync")
        self.now += self.host.synchronise
        self.learn(stream.clock)
        self.check(stream.device)

    def wait_for(self, stream: Stream, why: str, source: Any = None) -> None:
        """The host waits for a stream because an op has to, not because the program says so."""
        if self.sync_debug == 2:
            raise RuntimeError("called a synchronizing CUDA operation")
        if self.sync_debug:
            warnings.warn("called a synchronizing CUDA operation", stacklevel=2)
        self.synchronise(stream, why, source)

    def synchronise_device(self, device: SimulatedDevice, source: Any = None) -> None:
        """The host waits for all streams of a device."""
        for stream in device.streams:
            if stream.tail > self.now:
                self.synchronise(stream, source=source)
            self.learn(stream.clock)
        self.leave_backward()
        self.check(device)

    # -- events -------------------------------------------------------------------------------

    def record(self, event: Event, stream: Stream) -> None:
        """Marks the end of what a stream has been given so far."""
        self.check(stream.device)
        self.now += 1.0
        event.time = max(stream.tail, self.now)
        event.clock = dict(stream.clock)
        for actor, tick in self.clock.items():
            event.clock[actor] = max(tick, event.clock.get(actor, 0))
        event.span, event.device = stream.last, stream.device

    def marked(self, stream: Stream) -> Event:
        """A new event at the end of what a stream has been given so far."""
        mark = Event()
        self.record(mark, stream)
        return mark

    def wait(self, stream: Stream, event: Event) -> None:
        """What a stream is given from now on waits for an event."""
        if event.time is None:
            return  # as CUDA has it: an event that was never recorded is done
        self.now += 1.0
        if event.time > max(stream.tail, self.now):
            start = max(stream.tail, self.now)
            place = stream.device.index, stream.handle
            self.span("wait", "wait for an event", stream.name, start, event.time, *place)
            stream.tail = event.time
        if event.span is not None:
            stream.waits.append(event.span)
        for actor, tick in event.clock.items():
            if tick > stream.clock.get(actor, 0):
                stream.clock[actor] = tick

    def reached(self, event: Event) -> bool:
        """Whether a mark is in the past; the host learns that it is."""
        if event.time is None:
            return True
        if event.time <= self.now:
            self.learn(event.clock)
            return True
        return False

    # -- backward passes ----------------------------------------------------------------------

    def leave_backward(self) -> None:
        """After a backward pass, streams in use wait for those it used, as PyTorch's engine does."""
        if not self.backward or self.in_backward():
            return
        used, self.backward = self.backward, set()
        for device in {s.device for s in used}:
            current = self.stream_of(device)
            for stream in used:
                if stream is not current:
                    self.wait(current, self.marked(stream))


class _Chosen(threading.local):
    """What each thread has chosen: a device, and a stream of each."""

    device = 0

    def __init__(self) -> None:
        self.streams: dict[int, Stream] = {}


ENGINES = {"to device": "copies to it", "to host": "copies to the host", "peer": "copies to a peer"}
DEVICE_ASSERT = (
    "CUDA error: device-side assert triggered\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace "
    "below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)
CAPTURING = (
    "CUDA error: operation not permitted when stream is capturing\n"
    "CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace "
    "below might be incorrect.\n"
    "For debugging consider passing CUDA_LAUNCH_BLOCKING=1\n"
    "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions.\n"
)


def blocking() -> bool:
    """Whether the environment asks for the end of each kernel to be waited for."""
    return os.environ.get("CUDA_LAUNCH_BLOCKING", "0") not in ("", "0")


_ours: set[str] = set()  # files of this package, by their names in code objects
_others: set[str] = set()


def is_own(file: str, frame: Any) -> bool:
    """Whether a frame's file is of this package."""
    made = file.startswith("<toytorch")  # from a record
    own = made or is_ours(frame.f_globals.get("__name__"))
    if made or not file.startswith("<"):  # texts without a file are all "<string>"
        (_ours if own else _others).add(file)
    return own


def users_line(known: int = 1) -> tuple[str, int] | None:
    """The file and line outside of this package that is being run; the innermost `known` calls are
    of this package."""
    frame: Any = sys._getframe(known)
    while frame is not None:
        file = frame.f_code.co_filename
        if file not in _ours and (file in _others or not is_own(file, frame)):
            return file, frame.f_lineno
        frame = frame.f_back
    return None


__all__ = [
    "CAPTURING", "Event", "Machine", "SimulatedDevice", "Stream", "blocking", "copy_time",
    "kernel_time", "np", "users_line",
]  # fmt: skip
