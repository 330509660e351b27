"""A device of a simulated machine: its streams, its engines and its memory."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from toytorch.backends.simulator.allocator import FIRST_ADDRESS, Block, CachingAllocator
from toytorch.backends.simulator.races import Access, Clock, History
from toytorch.backends.simulator.records import POINT
from toytorch.backends.simulator.roofline import kernel_time
from toytorch.facts.cards import Card
from toytorch.facts.device import device as device_class

if TYPE_CHECKING:
    from toytorch.backends.simulator.machine import Machine

ELEMENTS_OF_THREAD = 4
COSTS = 4096  # kernels whose length is kept
# Of a kernel: its length in µs, what that is set by, its share of the card, bytes, operations.
Cost: TypeAlias = tuple[float, str, float, int, int]
SHARE = 0.999  # of a card: rounding must not keep two halves apart


class Stream:
    """A queue of work: each piece starts when the one before it is done.

    `clock` says what is done for sure once the last one is.
    """

    def __init__(self, device: SimulatedDevice, handle: int, priority: int, actor: int) -> None:
        self.device, self.handle, self.priority, self.actor = device, handle, priority, actor
        self.name = f"cuda:{device.index} stream {handle}"  # as timelines and reports call it
        self.place = self.name, device.index, handle  # as records of kernels name it
        self.ends = 0.0  # `tail`, once the machine's log is settled
        self.clock: Clock = {}
        self.learned = -1  # how much the host had learned when it last told the stream
        self.queue: list[float] = []  # when each of its latest pieces ends
        self.newest: int | None = None  # `last`, once the log is settled
        self.waits: list[int] = []  # spans that its next piece waits for

    @property
    def tail(self) -> float:
        """When all that it was given is done."""
        self.device.machine.settle()
        return self.ends

    @tail.setter
    def tail(self, time: float) -> None:
        self.ends = time

    @property
    def last(self) -> int | None:
        """The number of its last span."""
        self.device.machine.settle()
        return self.newest


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
        clock, first = partial(attrgetter("host_time"), machine), FIRST_ADDRESS + (index << 40)
        self.allocator = CachingAllocator(memory, clock, machine.reached, first)
        # Whether freed memory may still be used by another stream than gets it: see `keep_ghosts`.
        self.foreign = False
        # Bytes that there are for sure, so that a request can wait in the machine's log: each asks
        # the driver for no more than its size and one segment.
        self.room = 0
        self.look_at_room()
        self.streams = [Stream(self, 0, 0, next(machine.actors))]
        self.engines = {"to device": 0.0, "to host": 0.0, "peer": 0.0}  # when each is free
        self.busy: list[Busy] = []
        self.error: str | None = None  # once the host has seen it, every call reports it
        self.failed = 0.0  # when the kernel that met it ends
        self.peers: set[int] = set()
        self.ghosts: list[Access] = []  # of memory that was freed and may still be in use
        self.threads = card.multiprocessors * card.threads
        self.least = 1 / card.multiprocessors  # what the smallest kernel takes of the card
        self.costs: dict[Any, Cost] = {}  # what `cost` has answered

    def cost(self, moved: int, work: int, kind: np.dtype, product: bool, elements: int) -> Cost:
        """`kernel_time` of this card and the `share` that elements fill, for what programs ask at
        every step again."""
        key = moved, work, kind.char, product, elements
        found = self.costs.get(key)
        if found is None:
            if len(self.costs) >= COSTS:
                self.costs.clear()
            length, limit = kernel_time(self.card, moved, work, kind, product)
            found = self.costs[key] = length, limit, self.share(elements), moved, work
        return found

    def share(self, elements: int) -> float:
        """The share of the multiprocessors that a kernel over so many elements fills."""
        threads = -(-elements // ELEMENTS_OF_THREAD)
        filled = threads / self.threads
        return 1.0 if filled > 1 else max(self.least, filled)

    @property
    def memory(self) -> CachingAllocator:
        """Its allocator, once it has dealt with all requests so far."""
        self.machine.settle()
        return self.allocator

    def look_at_room(self) -> None:
        """Counts what there is, once no request waits; where none may wait, there is none."""
        allocator = self.allocator
        self.room = allocator.limit - allocator.reserved if self.machine.longest else 0

    def take(self, size: int, stream: Stream, source: Any, pool: int = 0) -> Block:
        """A block of its memory, which does not wait in the log; Shortage where none is left."""
        allocator, machine = self.allocator, self.machine
        calls, frees = allocator.statistics.driver_calls, allocator.statistics.driver_frees
        block = allocator.allocate(size, stream.handle, source, pool)
        self.look_at_room()
        if allocator.statistics.driver_frees > frees:
            self.drained()
        if allocator.statistics.driver_calls > calls and machine.capture is None:
            machine.spend(machine.host.allocate, "cudaMalloc", source)
        self.note_memory()
        return block

    def drained(self) -> None:
        """The driver took memory back, for which it waits until all work is done."""
        machine = self.machine
        machine.wait_until(self.tail, "cudaFree")
        for stream in self.streams:
            machine.learn(stream.clock)
        self.ghosts.clear()
        self.foreign = False

    def note_memory(self) -> None:
        """Writes down how much memory is in use."""
        allocator, machine = self.allocator, self.machine
        used, reserved = allocator.statistics.in_use, allocator.reserved
        machine.timeline.point(POINT.pack(machine.host_time, self.index, used, reserved))

    def take_over(self, block: Block, stream: Stream) -> None:
        """Forgets what a stream did in a place that it writes to all of now: whoever waits for the
        write waits for that, too."""
        low, high = block.address, block.address + block.size
        for access in [g for g in self.ghosts if low <= g.low and g.high <= high]:
            if access.actor == stream.actor:
                self.ghosts.remove(access)

    def keep_ghosts(self, block: Block, stream: Stream, history: History) -> None:
        """Remembers what may still be done to a block, for its next owner."""
        # The stream's next owner of the place is in order with this one; other streams are not.
        known = self.machine.clock
        if history.owner == stream.actor:  # as most are: all that can be open is the stream's own
            left = [a for a in history.latest() if not a.before(known)]
        else:
            left = [] if block.users else history.open_for(stream.clock)
            if len(self.streams) > 1:  # nor is what they do to the next owner's memory
                left += [a for a in history.of(stream.actor) if not a.before(known)]
        for access in left:
            access.low += block.address
            access.high += block.address
            access.view, access.owner = None, stream.actor
            self.ghosts.append(access)

    @property
    def default(self) -> Stream:
        """The stream of whoever chose none."""
        return self.streams[0]

    def new_stream(self, priority: int) -> Stream:
        """A further queue; it waits for none of the others."""
        self.machine.settle()
        if self.machine.in_backward():  # for which one stream was none to be waited for
            self.machine.backward.add(self.default)
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
