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
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from toytorch.backends.simulator.allocator import FIRST_ADDRESS, Block, CachingAllocator
from toytorch.backends.simulator.races import HOST, Access, Clock, History, Races
from toytorch.backends.simulator.records import ARROW, LAUNCH, MEMORY, SPAN, LiveTimeline
from toytorch.backends.simulator.roofline import GAP, QUEUE, Host, copy_time, kernel_time
from toytorch.facts.cards import Card
from toytorch.facts.device import device as device_class
from toytorch.facts.package import is_ours
from toytorch.facts.trace import AcceleratorError

ELEMENTS_OF_THREAD = 4
COSTS = 4096  # kernels whose length is kept
SHARE = 0.999  # of a card: rounding must not keep two halves apart


class Stream:
    """A queue of work: each piece starts when the one before it is done.

    `tail` is when the last one ends; `clock` what is done for sure once it has.
    """

    def __init__(self, device: SimulatedDevice, handle: int, priority: int, actor: int) -> None:
        self.device, self.handle, self.priority, self.actor = device, handle, priority, actor
        self.name = f"cuda:{device.index} stream {handle}"  # as timelines and reports call it
        self.place = self.name, device.index, handle  # as records of kernels name it
        self.tail = 0.0
        self.clock: Clock = {}
        self.learned = -1  # how much the host had learned when it last told the stream
        self.queue: list[float] = []  # when each of its latest pieces ends
        self.last: int | None = None  # the number of its last span
        self.waits: list[int] = []  # spans that its next piece waits for


class Event:
    """A mark in a stream: who waits for it waits for all that was queued before it."""

    def __init__(self, timing: bool = False) -> None:
        self.timing = timing
        self.time: float | None = None  # not recorded yet
        self.clock: Clock = {}
        self.span: int | None = None
        self.device: SimulatedDevice | None = None


@dataclass(slots=True)
class Busy:
    """An interval in which part of a card works."""

    start: float
    end: float
    share: float


class SimulatedDevice:
    """One card: its streams, its engines and its memory."""

    def __init__(self, machine: Machine, index: int, card: Card, memory: int) -> None:
        self.machine, self.index, self.card = machine, index, card
        self.name = device_class("cuda", index)
        self.memory = CachingAllocator(
            memory,
            lambda: machine.now,
            machine.reached,
            FIRST_ADDRESS + (index << 40),
        )
        self.streams = [Stream(self, 0, 0, next(machine.actors))]
        self.engines = {"to device": 0.0, "to host": 0.0, "peer": 0.0}  # when each is free
        self.busy: list[Busy] = []
        self.error: str | None = None  # once the host has seen it, every call reports it
        self.failed = 0.0  # when the kernel that met it ends
        self.peers: set[int] = set()
        self.ghosts: list[Access] = []  # of memory that was freed and may still be in use
        self.freed: list[tuple[Block, Stream, History]] = []  # what waits to be given back
        self.lock = threading.RLock()
        self.at_work = 0
        self.working = Working(self)
        self.threads = card.multiprocessors * card.threads
        self.least = 1 / card.multiprocessors  # what the smallest kernel takes of the card
        self.costs: dict[Any, tuple[float, str, float]] = {}  # what `cost` has answered

    def cost(
        self, moved: int, work: int, kind: np.dtype, product: bool, elements: int
    ) -> tuple[float, str, float]:
        """`kernel_time` of this card and the `share` that elements fill, for what programs ask at
        every step again."""
        key = moved, work, kind.char, product, elements
        found = self.costs.get(key)
        if found is None:
            if len(self.costs) >= COSTS:
                self.costs.clear()
            length, limit = kernel_time(self.card, moved, work, kind, product)
            found = self.costs[key] = length, limit, self.share(elements)
        return found

    def share(self, elements: int) -> float:
        """The share of the multiprocessors that a kernel over so many elements fills."""
        threads = -(-elements // ELEMENTS_OF_THREAD)
        filled = threads / self.threads
        return 1.0 if filled > 1 else filled if filled > self.least else self.least

    def free(self, block: Block, stream: Stream, history: History | None) -> None:
        """Takes a block back from a tensor that is gone, which may happen at any time; `history` is
        None where its stream alone has used it."""
        self.freed.append((block, stream, history))
        if self.lock.acquire(False):  # else another thread is at work, and does it
            try:
                self.give_back()
            finally:
                self.lock.release()

    def give_back(self) -> None:
        """Hands freed blocks to the allocator, unless it is at work."""
        memory, machine = self.memory, self.machine
        while self.freed and not self.at_work:
            block, stream, history = self.freed.pop()
            self.at_work += 1
            try:
                if history is not None:
                    self._keep_ghosts(block, stream, history)
                memory.release(block, machine.marked)
                used = memory.statistics.in_use
                machine.timeline.push((MEMORY, machine.now, self.index, used, memory.reserved))
            finally:
                self.at_work -= 1

    def _keep_ghosts(self, block: Block, stream: Stream, history: History) -> None:
        """Remembers what may still be done to a block, for its next owner."""
        # The stream's next owner of the place is in order with this one; other streams are not.
        left = [] if block.users else history.open_for(stream.clock)
        if len(self.streams) > 1:  # nor is what they do to the next owner's memory
            known = self.machine.clock
            left += [a for a in history.of(stream.actor) if not a.before(known)]
        for access in left:
            access.low += block.address
            access.high += block.address
            access.view = None
            self.ghosts.append(access)

    @property
    def default(self) -> Stream:
        """The stream of whoever chose none."""
        return self.streams[0]

    def new_stream(self, priority: int) -> Stream:
        """A further queue; it waits for none of the others."""
        stream = Stream(self, len(self.streams) * 2 + 1, priority, next(self.machine.actors))
        stream.clock.update(self.machine.clock)
        self.streams.append(stream)
        return stream

    def place(self, ready: float, length: float, share: float) -> float:
        """When work that needs a share of the multiprocessors can start."""
        start = ready
        busy = self.busy
        if len(busy) == 1 and busy[0].end <= ready:  # one after the other, as in most programs
            last = busy[0]
            last.start, last.end, last.share = start, start + length, share
            return start
        self.busy = busy = [b for b in busy if b.end > ready]
        if not busy:
            busy.append(Busy(start, start + length, share))
            return start
        for end in [ready, *sorted(b.end for b in self.busy)]:
            taken = sum(b.share for b in self.busy if b.start <= end < b.end)
            if taken + share <= SHARE or not taken:
                start = end
                break
        self.busy.append(Busy(start, start + length, share))
        return start

    @property
    def tail(self) -> float:
        """When all that was queued is done."""
        return max(stream.tail for stream in self.streams)


class Working:
    """While the allocator of a device is at work, what a garbage collection frees has to wait."""

    __slots__ = ("device",)

    def __init__(self, device: SimulatedDevice) -> None:
        self.device = device

    def __enter__(self) -> None:
        device = self.device
        device.lock.acquire()
        device.at_work += 1

    def __exit__(self, *error: object) -> None:
        device = self.device
        try:
            device.at_work -= 1
            if device.freed:
                device.give_back()
        finally:
            device.lock.release()


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
        self.now = 0.0  # the host's clock, in µs
        self.clock: Clock = {HOST: 1}  # what the host knows to be done
        self.learned = 0  # goes up with every change of that
        self.races = races
        self.host = host or Host.of(cards[0])
        self.began = time.perf_counter() if realtime else None
        self.timeline = LiveTimeline(f"{len(cards)} x {cards[0].name}, simulated")
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
        self.sync_debug = "default"
        self.watcher: Callable[..., None] | None = None  # the profiler, told of each piece of work

    # -- what a thread has chosen -------------------------------------------------------------

    @property
    def device(self) -> SimulatedDevice:
        """The one that new tensors go to."""
        return self.devices[self.local.device]

    def stream_of(self, device: SimulatedDevice) -> Stream:
        """The stream that work on a device goes to."""
        return self.local.streams.get(device.index) or device.default

    # -- time ---------------------------------------------------------------------------------

    def span(self, kind: str, name: str, row: str, start: float, end: float, *more: Any) -> int:
        """Writes a span down; its number. `more` are further fields of a Span, in their order."""
        number = self.started
        self.started = number + 1
        self.timeline.push((SPAN, number, kind, name, row, start, end, *more))
        return number

    def arrow(self, before: int | None, after: int | None, kind: str) -> None:
        """Writes down that one span waited for another."""
        if before is not None and after is not None:
            self.timeline.push((ARROW, before, after, kind))

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
        device, began, asked = stream.device, self.now, None
        ends, push = stream.queue, self.timeline.push
        if device.error is not None:
            self.check(device)
        if self.backward and not self.in_backward():
            self.leave_backward()
        if self.capture is None:
            self.now += self.host.op if cost is None else cost
            now, asked = self.now, self.started
            self.started = asked + 1
            push((SPAN, asked, "host", name, "host", began, now, None, None, source))
            if len(ends) >= QUEUE:
                del ends[: bisect_right(ends, now)]  # what is over
                if len(ends) >= QUEUE:
                    self.wait_until(ends[len(ends) - QUEUE], "queue is full", source)
        ready = stream.tail + GAP if stream.tail > self.now else self.now
        if engine is None:
            start = device.place(ready, length, share)
            row = stream.name
        else:
            start = max(ready, device.engines[engine])
            device.engines[engine] = start + length
            row = f"cuda:{device.index} {ENGINES[engine]}"
        stream.tail = end = start + length
        ends.append(end)
        number = self.started
        self.started = number + 1
        push((
            SPAN, number, kind, name, row, start, end, device.index, stream.handle, source,
            bytes, flops, limit,
        ))  # fmt: skip
        if self.watcher is not None:
            self.watcher(kind, name, start, end, device.index, stream.handle, bytes)
        if asked is not None:
            push((ARROW, asked, number, "launch"))
        if stream.waits:
            for before in stream.waits:
                self.arrow(before, number, "event")
            stream.waits.clear()
        stream.last = number
        clock = stream.clock
        if stream.learned != self.learned:
            self.tell(stream)
        clock[stream.actor] = clock.get(stream.actor, 0) + 1
        if self.blocking is None:
            self.blocking = blocking()
        if blocks and self.blocking and self.capture is None:
            self.synchronise(stream, source=source)

    def kernel(
        self, stream: Stream, name: str, length: float, limit: str, share: float, source: Any,
        moved: int, work: int,
    ) -> None:  # fmt: skip
        """`queue` for what most work is: one kernel that nothing stands in the way of."""
        device, ends = stream.device, stream.queue
        if (
            self.blocking is not False
            or device.error is not None
            or self.watcher is not None
            or len(ends) >= QUEUE
            or stream.waits
            or (self.backward and not self.in_backward())
        ):
            return self.queue(
                stream, name, length, share=share, source=source, bytes=moved, flops=work,
                limit=limit,
            )  # fmt: skip
        began = self.now
        self.now = now = began + self.host.op
        ready = stream.tail + GAP if stream.tail > now else now
        busy = device.busy
        if len(busy) == 1 and busy[0].end <= ready:  # as `place` has it
            last, start = busy[0], ready
            last.start, last.end, last.share = ready, ready + length, share
        else:
            start = device.place(ready, length, share)
        stream.tail = end = start + length
        ends.append(end)
        number = self.started
        self.started = number + 2
        self.timeline.push((
            LAUNCH, number, name, began, now, start, end, stream.place, source, moved, work, limit,
        ))  # fmt: skip
        stream.last = number + 1
        if stream.learned != self.learned:
            self.tell(stream)
        stream.clock[stream.actor] = stream.clock.get(stream.actor, 0) + 1
        return None

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
            self.span(
                "wait",
                "wait for an event",
                stream.name,
                start,
                event.time,
                stream.device.index,
                stream.handle,
            )
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

    def memory_point(self, device: SimulatedDevice) -> None:
        """Writes down how much memory is in use."""
        memory = device.memory
        self.timeline.push(
            (MEMORY, self.now, device.index, memory.statistics.in_use, memory.reserved)
        )


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


_files: dict[str, bool] = {}  # whether a file, by its name in code objects, is of this package


def users_line(known: int = 1) -> tuple[str, int] | None:
    """The file and line outside of this package that is being run; the innermost `known` calls are
    of this package."""
    frame: Any = sys._getframe(known)
    while frame is not None:
        file = frame.f_code.co_filename
        ours = _files.get(file)
        if ours is None:
            made = file.startswith("<toytorch")  # from a record
            ours = made or is_ours(frame.f_globals.get("__name__"))
            if made or not file.startswith("<"):  # texts without a file are all "<string>"
                _files[file] = ours
        if not ours:
            return file, frame.f_lineno
        frame = frame.f_back
    return None


__all__ = [
    "Event",
    "Machine",
    "SimulatedDevice",
    "Stream",
    "blocking",
    "copy_time",
    "kernel_time",
    "np",
    "users_line",
]
