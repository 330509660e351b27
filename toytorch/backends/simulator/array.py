"""Arrays in a simulated device's memory.

A `DeviceArray` knows its shape and its address; its elements can be had through the device only.
Reading them from Python without a copy to the host raises TypeError, as it would be a read of
memory that the host cannot address. Whatever computes goes through `Launcher`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from toytorch.backends.held import HeldArray
from toytorch.backends.simulator.allocator import LARGE_SEGMENT, Block, Shortage
from toytorch.backends.simulator.machine import Machine, SimulatedDevice, Stream
from toytorch.backends.simulator.races import Access, Clock, History, Race, Who
from toytorch.facts.hints import Array
from toytorch.facts.parts import of_part
from toytorch.facts.trace import OutOfMemoryError

ndarray = np.ndarray
GIB, MIB, KIB = 1 << 30, 1 << 20, 1 << 10
MANY_GHOSTS = 64  # from which it is worth looking which of them are over


class Buffer(History):
    """Memory of a device: a block of its allocator, the NumPy memory that stands for it, and who
    used it."""

    __slots__ = ("__weakref__", "device", "request", "root", "stream")
    request: list[Any] | None  # as the machine's log has it: block, size, source, stream, history

    def __init__(
        self,
        device: SimulatedDevice,
        stream: Stream,
        root: Array,
        source: tuple[str, int] | None,
        written: bool = False,
    ) -> None:
        """`written` says that the kernel which makes it writes to all of it."""
        self.device, self.stream, self.root = device, stream, root
        self.size = size = root.nbytes
        self.owner = stream.actor
        self.read = self.write = self._accesses = self.request = None
        if size:
            request = [None, size, source, stream, None]
            machine = device.machine
            alone = len(device.streams) == 1 or (written and not device.foreign)
            usual = alone and machine.capture is None and not machine.pool
            room = device.room - size - LARGE_SEGMENT
            if usual and room >= 0:
                device.room = room
                machine.log.append(request)
            else:
                self._obtain(request, written)
            self.request = request

    def _obtain(self, request: list[Any], written: bool) -> None:
        """Gets its block now; OutOfMemoryError, with PyTorch's words, where none is left."""
        device, machine = self.device, self.device.machine
        _, size, source, stream, _ = request
        with machine.lock:
            machine.settle()
            pool = machine.pool if machine.capture is None else machine.capture.pool
            try:
                request[0] = block = device.take(size, stream, source, pool)
            except Shortage as short:
                raise OutOfMemoryError(out_of_memory(device, short.size)) from None
            if device.ghosts:
                self._inherit(block, written)
            if device.foreign:
                device.foreign = any(g.actor != g.owner for g in device.ghosts)

    @property
    def block(self) -> Block | None:
        """Its place in the allocator's memory; None where it has no bytes."""
        if self.request is None:
            return None
        self.device.machine.settle()
        return self.request[0]

    @property
    def start(self) -> int:
        """Where the memory that stands for it begins on the host."""
        return int(self.root.__array_interface__["data"][0])

    def _inherit(self, block: Block, written: bool) -> None:
        """Takes over what streams still do in this place, for whoever had it before; but where its
        stream writes to all of it at once, what that stream did before is in order for everybody
        who waits for the write."""
        ghosts, known = self.device.ghosts, self.device.machine.clock
        low, high = block.address, block.address + block.size
        if len(ghosts) > MANY_GHOSTS:
            ghosts[:] = [access for access in ghosts if not access.before(known)]
        for access in [g for g in ghosts if g.low < high and low < g.high]:
            own = access.actor == self.stream.actor
            over = access.before(known if own else self.stream.clock)
            if not over and not (own and written):
                start, end = max(access.low - low, 0), access.high - low
                self.keep(replace(access, low=start, high=end, view=None, owner=None))
            if over or (own and low <= access.low and access.high <= high):
                ghosts.remove(access)  # the second kind comes back with this memory

    @property
    def address(self) -> int:
        """Where it begins on the device; 0 where it has no bytes."""
        block = self.block
        return 0 if block is None else block.address

    def __del__(self) -> None:
        request = self.request
        if request is None:
            return
        device, stream = self.device, self.stream
        if self.owner != stream.actor or len(device.streams) > 1:
            device.foreign = device.foreign or not self.is_of(stream.actor)
            history = request[4] = History(self.size)
            history.keep_all(self)
        device.machine.log.append(request)  # which gives it back


def out_of_memory(device: SimulatedDevice, size: int) -> str:
    """PyTorch's words for a request that cannot be met."""
    memory = device.memory
    used = memory.statistics.in_use
    limited = ""
    if memory.limit < memory.capacity:
        limited = f"{in_words(memory.limit)} allowed; "
    return (
        f"CUDA out of memory. Tried to allocate {in_words(size)}. GPU {device.index} has a total "
        f"capacity of {in_words(memory.capacity)} of which "
        f"{in_words(memory.capacity - memory.reserved)} is free. {limited}Of the allocated memory "
        f"{in_words(used)} is allocated by PyTorch, and {in_words(memory.reserved - used)} is "
        "reserved by PyTorch but unallocated. If reserved but unallocated memory is large try "
        "setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See "
        "documentation for Memory Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html"
        "#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
    )


def in_words(size: int) -> str:
    """A number of bytes as PyTorch's messages have it.

    >>> in_words(512), in_words(20 << 20), in_words(3 << 29)
    ('512 bytes', '20.00 MiB', '1.50 GiB')
    """
    if size <= 1024:
        return f"{size} bytes"
    if size <= MIB:
        return f"{size / KIB:.2f} KiB"
    if size <= GIB:
        return f"{size / MIB:.2f} MiB"
    return f"{size / GIB:.2f} GiB"


class DeviceArray(HeldArray):
    """An array on a simulated device, with the part of NumPy's interface that describes it."""

    __slots__ = ("buffer",)
    # But for one element, for which the host waits (see `launching`).
    refusal = TypeError(
        "the host cannot read a device's memory: copy it first, as Tensor.cpu() does. (A "
        "simulated device refuses what a card would.)"
    )

    def __init__(self, held: Array, buffer: Buffer) -> None:
        self.held, self.buffer = held, buffer

    @property
    def base(self) -> Any:
        """None where it is all of its memory, as NumPy has it."""
        return None if self.held.nbytes == self.buffer.root.nbytes else self.buffer

    device = of_part("buffer.device", "Where it is.")

    @property
    def address(self) -> int:
        """The address of its first element on the device."""
        here = self.held.__array_interface__["data"][0]
        return int(self.buffer.address + here - self.buffer.start)

    @property
    def __cuda_array_interface__(self) -> Any:
        raise RuntimeError(
            "a simulated device has no memory that another library could read; use tensor.cpu()"
        )

    def __dlpack__(self, **how: object) -> Any:
        raise BufferError(
            "a simulated device has no memory that another library could read; use tensor.cpu()"
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        return 2, self.device.index  # CUDA's number

    def __repr__(self) -> str:
        kind = np.dtype(self.dtype).name
        return f"<array {self.shape} of {kind} on simulated cuda:{self.device.index}>"

    def seen(self, held: Array) -> DeviceArray:
        return DeviceArray(held, self.buffer)


def arrays_in(value: Any) -> Any:
    """The device arrays in an argument, which may be a list of them."""
    if value.__class__ is DeviceArray:
        yield value
    elif isinstance(value, (list, tuple)):
        for part in value:
            yield from arrays_in(part)
    elif isinstance(value, dict):
        for part in value.values():
            yield from arrays_in(part)


def root_of(array: Array) -> Any:
    """The NumPy array that owns the memory."""
    below = array.base
    while below is not None:
        if below.__class__.__name__ == "DummyArray":  # as_strided's keeper of the real base
            below = below.base
        if not isinstance(below, ndarray):
            break
        array, below = below, below.base
    return array


def note_launch(
    machine: Machine,
    stream: Stream,
    reads: list[DeviceArray],
    written: list[DeviceArray],
    what: str,
    source: tuple[str, int] | None,
) -> None:
    """Takes what a piece of work reads and writes into the histories of the memory, and reports
    races."""
    actor, clock = stream.actor, stream.clock
    who = (actor, clock[actor], what, stream.name, source)
    for array in reads:
        buffer, held = array.buffer, array.held
        if buffer.owner == actor and (held is buffer.root or is_all(held, buffer.size)):
            buffer.read = who, held
        else:
            meet(machine, buffer, held, who, False, clock)
    for array in written:
        buffer, held = array.buffer, array.held
        if buffer.owner == actor and (held is buffer.root or is_all(held, buffer.size)):
            buffer.write, buffer.read = (who, held), None
        else:
            meet(machine, buffer, held, who, True, clock)


def is_all(held: Array, size: int) -> bool:
    """Whether an array covers a memory of that size, each byte once."""
    return held.nbytes == size and held.flags.forc


def meet(
    machine: Machine, buffer: Buffer, held: Array, who: Who, writes: bool, clock: Clock
) -> None:
    """Takes one access of memory that others use too, or that is used in parts, into its history."""
    size = held.nbytes
    if not size:
        return
    if size == buffer.size:
        low, high = 0, size
    else:
        start = buffer.start
        low, high = bounds(held)
        low, high = low - start, high - start
    actor, tick, what, where, source = who
    entry = (actor, tick, writes, low, high, what, where, source, held)
    raced = buffer.add(entry, clock)
    if raced is not None:
        access = Access(*entry)
        words = words_for(buffer, raced)
        machine.races.report(Race(words, raced, access, advice(raced)))


def bounds(held: Array) -> tuple[int, int]:
    """The addresses of an array's first byte and of the one behind its last."""
    low = high = held.__array_interface__["data"][0]
    for n, step in zip(held.shape, held.strides):
        if step < 0:
            low += (n - 1) * step
        else:
            high += (n - 1) * step
    return low, high + held.itemsize


def words_for(buffer: Buffer, raced: Access) -> str:
    """What memory it is, in words."""
    where = f"{in_words(buffer.root.nbytes)} at {buffer.address:#x} of cuda:{buffer.device.index}"
    if raced.view is None:
        where += ", which a tensor had before that was freed"
    return where


def advice(first: Access) -> str:
    """What would put a use of memory and one that raced with it in order."""
    if first.view is None:
        return "Call tensor.record_stream(stream) before a tensor used by another stream is freed."
    return (
        "Let the second stream wait: second.wait_stream(first), or an event that the first records "
        "and the second waits for."
    )
