"""What threads do to memory: every address is checked, every access counted and looked at for races.

An address is one 64-bit number: which memory in the upper bits, which byte of it in the lower ones. So
pointers are numbers like any others, and one that leaves its memory is noticed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from toytorch.cuda.emulator.atomics import updated
from toytorch.cuda.emulator.counts import Counts
from toytorch.cuda.emulator.errors import At, KernelError, Source
from toytorch.cuda.emulator.memory import Memory
from toytorch.cuda.emulator.races import RaceLog, Shadow, site_of
from toytorch.cuda.emulator.threads import Geometry, Threads
from toytorch.cuda.emulator.types import Scalar, Type, Vector
from toytorch.facts.hints import Array

BITS = 40  # of an address are for the byte
MIDDLE = 1 << (BITS - 1)  # where byte 0 is, so that addresses before it can be told
# Which earlier accesses each kind may race with.
RACING = {
    "reads": ("writes", "atomically updates"),
    "writes": ("writes", "reads", "atomically updates"),
    "atomically updates": ("writes", "reads"),
}


@dataclass(slots=True)
class Finding:
    """Something that is no error and should be looked at."""

    line: int
    message: str
    count: int = 1


class MemorySystem:
    """All memories of a launch, what may be done with them, and who is told of it."""

    def __init__(self, geometry: Geometry, source: Source, counts: Counts) -> None:
        self.geometry, self.source, self.counts = geometry, source, counts
        self.memories: list[Memory | None] = [None]  # number 0 is where nothing is: a null pointer
        self.races = RaceLog(geometry, source.file, {})
        self.findings: dict[object, Finding] = {}

    def add(self, memory: Memory) -> int:
        """Makes a memory addressable; the address of its first byte."""
        self.memories.append(memory)
        return (len(self.memories) - 1 << BITS) + MIDDLE

    def at(self, address: Array) -> Memory:
        """The memory that an address lies in."""
        memory = self.memories[int(address) >> BITS]
        assert memory is not None
        return memory

    def track(self, memory: Memory) -> None:
        """From now on, races on a memory are looked for."""
        if memory.shadow is None and memory.space in ("global", "shared"):
            memory.shadow = Shadow(
                len(memory.data), memory.known_size, self.geometry, memory.space == "shared"
            )

    def note(
        self, key: object, at: At, message: str, threads: Threads, who: int, count: int
    ) -> None:
        """Adds to what should be looked at; what has the same key is said once."""
        if key not in self.findings:
            where = f"at {self.source.file}:{at[0]}, {self.thread_name(threads, who)}"
            self.findings[key] = Finding(at[0], f"{message} {where}", 0)
        self.findings[key].count += count

    def thread_name(self, threads: Threads, who: int) -> str:
        """One of the threads, in words."""
        thread, block = self.geometry.name(int(threads.numbers[who]))
        return f"thread ({','.join(map(str, thread))}) in block ({','.join(map(str, block))})"

    # what threads do

    def load(self, address: Array, type: Type, threads: Threads, at: At) -> Any:
        """What is at the addresses."""
        found: Any = None
        for memory, group, offset, chosen in self.places(address, type, threads, at, "read"):
            self.account(memory, group, offset, type, at, read=True)
            if memory.shadow is not None:
                self.check(memory, group, offset, type, at, "reads")
            if memory.known is not None:
                self.check_known(memory, group, offset, type, at)
            parts = [
                memory.view(d)[memory.flat(offset + k, group, d.itemsize)] for k, d in _parts(type)
            ]
            value: Any = tuple(parts) if isinstance(type, Vector) else parts[0]
            found = value if chosen is None else _merged(found, value, chosen, threads)
        return found

    def store(self, address: Array, value: Array, type: Type, threads: Threads, at: At) -> None:
        """Writes; of several threads at one place, the last one's value stays."""
        for memory, group, offset, chosen in self.places(address, type, threads, at, "write"):
            self.account(memory, group, offset, type, at, written=True)
            values = value if isinstance(type, Vector) else (value,)
            if chosen is not None:
                values = tuple(v[chosen] if isinstance(v, np.ndarray) else v for v in values)
            self.refuse_constant(memory, at)
            if memory.known is not None:
                self.make_known(memory, group, offset, type)
            targets = []
            for (k, dtype), part in zip(_parts(type), values):
                targets.append(
                    (memory.view(dtype), memory.flat(offset + k, group, dtype.itemsize), part)
                )
            if memory.shadow is not None:
                self.check(memory, group, offset, type, at, "writes", targets)
            for view, flat, part in targets:
                scalar = not isinstance(flat, np.ndarray)
                last = part[-1] if scalar and isinstance(part, np.ndarray) else part
                view[flat] = last
                if memory.space in ("global", "shared") and isinstance(part, np.ndarray):
                    self.check_clash(memory, group, flat, view[flat], part, at)

    def update(
        self,
        address: Array,
        kind: str,
        values: list[Array],
        type: Scalar,
        threads: Threads,
        at: At,
        used: bool,
    ) -> Any:
        """An atomic operation of each thread, one after the other; what was there before."""
        found: Any = None
        for memory, group, offset, chosen in self.places(address, type, threads, at, "atomic"):
            self.account(memory, group, offset, type, at, read=True, written=True)
            self.counts.lines[at[0]].atomics += group.count
            self.refuse_constant(memory, at)
            if memory.shadow is not None:
                self.check(memory, group, offset, type, at, "atomically updates")
            if memory.known is not None:
                self.check_known(memory, group, offset, type, at)
                self.make_known(memory, group, offset, type)
            given = [
                v[chosen] if chosen is not None and isinstance(v, np.ndarray) else v for v in values
            ]
            flat = group.spread(memory.flat(offset, group, type.size))
            old = updated(
                kind, memory.view(type.dtype), flat, [group.spread(v) for v in given], used
            )
            if used:
                found = old if chosen is None else _merged(found, old, chosen, threads)
        return found

    # where that is

    def places(
        self, address: Array, type: Type, threads: Threads, at: At, verb: str
    ) -> Iterator[tuple[Memory, Threads, Any, Any]]:
        """For each memory: itself, who means it, at which bytes, and who that is among `threads`."""
        number = int(address[0] if isinstance(address, np.ndarray) else address) >> BITS
        offset = address - ((number << BITS) + MIDDLE)
        memory = self.memories[number] if 0 <= number < len(self.memories) else None
        if not isinstance(address, np.ndarray):
            inside = memory is not None and 0 <= offset <= memory.size - type.size
        else:
            low, high = int(offset.min()), int(offset.max())
            inside = memory is not None and low >= 0 and high <= memory.size - type.size
            if not inside and (low < -MIDDLE or high >= MIDDLE):  # several memories
                numbers = address >> BITS
                for each in np.unique(numbers):
                    who = numbers == each
                    for memory, group, there, _ in self.places(
                        address[who], type, threads.where(who), at, verb
                    ):
                        yield memory, group, there, who
                return
        if memory is None or not inside:
            self.refuse(memory, threads, offset, type, at, verb)
        assert memory is not None
        crooked = np.bitwise_or.reduce(offset) if isinstance(offset, np.ndarray) else offset
        if crooked & (type.alignment - 1):
            who = _first(offset % type.alignment != 0)
            self.fail(
                f"Invalid __{memory.space}__ {verb} of size {type.size} bytes at {{place}}, "
                f"{{thread}}: the address is misaligned, {type} needs a multiple of "
                f"{type.alignment} bytes in `{memory.name}`",
                threads,
                who,
                at,
            )
        if type.size < memory.item or type.alignment < memory.item:
            memory.refine(min(d.itemsize for _, d in _parts(type)))
        yield memory, threads, offset, None

    def refuse(
        self, memory: Memory | None, threads: Threads, offset: Array, type: Type, at: At, verb: str
    ) -> None:
        """Reports an address out of bounds."""
        if memory is None:
            self.fail(
                f"Invalid {verb} of size {type.size} bytes at {{place}}, {{thread}}: "
                "a null pointer, or none at all",
                threads,
                0,
                at,
            )
            return
        outside = (offset < 0) | (offset > memory.size - type.size)
        who, count = _first(outside), int(np.sum(outside)) if np.ndim(outside) else threads.count
        index = int(offset[who] if isinstance(offset, np.ndarray) else offset) // memory.item
        others = f" ({count - 1} more threads like it)" if count > 1 else ""
        if not memory.size and memory.space == "shared":
            others += ": the launch gives it no bytes, see shared_mem"
        self.fail(
            f"Invalid __{memory.space}__ {verb} of size {type.size} bytes at {{place}}, {{thread}}, "
            f"index {index} of {memory.size // memory.item} elements of `{memory.name}`{others}",
            threads,
            who,
            at,
        )

    def fail(self, message: str, threads: Threads, who: int, at: At) -> NoReturn:
        """Raises KernelError for one of the threads."""
        place, name = f"{self.source.file}:{at[0]}", self.thread_name(threads, who)
        raise KernelError(message.format(place=place, thread=name), at, self.source)

    def refuse_constant(self, memory: Memory, at: At) -> None:
        if not memory.writable:
            raise KernelError(
                f"Write to `{memory.name}` at {self.source.file}:{at[0]}: it is read-only",
                at,
                self.source,
            )
        if memory.space == "global" and memory.shadow is None:
            self.track(memory)

    # what is noted beside

    def account(
        self,
        memory: Memory,
        threads: Threads,
        offset: Array,
        type: Type,
        at: At,
        *,
        read: bool = False,
        written: bool = False,
    ) -> None:
        count = {"global": self.counts.globally, "shared": self.counts.shared}.get(memory.space)
        if count is not None:
            count(at[0], threads, offset, type.size, read=read, written=written)

    def check(
        self,
        memory: Memory,
        threads: Threads,
        offset: Array,
        type: Type,
        at: At,
        kind: str,
        targets: Sequence[tuple[Any, Any, Any]] = (),
    ) -> None:
        """Looks for races of an access with earlier ones, and notes it for later ones.

        targets  (memory, index, values) that a write is about to change: if it changes nothing, the
                 same statement in another thread is no race, as in `if (found) flag = 1`
        """
        shadow, site = memory.shadow, site_of(at)
        assert shadow is not None
        if not isinstance(offset, np.ndarray) and memory.space == "global" and threads.count > 2:
            ends = np.zeros(threads.count, bool)  # at one place, the first and last stand for all
            ends[[0, -1]] = True
            threads = threads.where(ends)
        for part in range(max(1, type.size // shadow.granule)):
            index = memory.flat(offset + part * shadow.granule, threads, shadow.granule)
            index = threads.spread(index)
            for other in RACING[kind]:
                found = shadow.earlier(other, index, threads)
                if found is None:
                    continue
                who, numbers, sites = found
                if other == "writes" and targets and all(_same(*target) for target in targets):
                    strange = sites != site
                    who, numbers, sites = who[strange], numbers[strange], sites[strange]
                if len(who):
                    element = int(index[who[0]]) % max(memory.stride // shadow.granule, 1)
                    before = other, int(sites[0]), int(numbers[0])
                    now = kind, site, int(threads.numbers[who[0]])
                    self.races.add(memory.space, memory.name, element, len(who), before, now)
            shadow.record(kind, index, threads, site)

    def check_clash(
        self, memory: Memory, threads: Threads, flat: Array, stays: Array, wrote: Array, at: At
    ) -> None:
        """Threads that write different values to one place in one instruction."""
        differ = stays != wrote
        if differ.any() and wrote.dtype.kind == "f":
            differ &= ~(np.isnan(wrote) & np.isnan(stays))
        if not differ.any():
            return
        who = _first(differ)
        winner = np.flatnonzero(flat == flat[who])[-1] if isinstance(flat, np.ndarray) else -1
        index = int(flat[who] if isinstance(flat, np.ndarray) else flat)
        index %= max(memory.stride // wrote.dtype.itemsize, 1)
        site = site_of(at)
        one, other = (("writes", site, int(threads.numbers[n])) for n in (who, winner))
        times = int(np.count_nonzero(differ))
        self.races.add(memory.space, memory.name, index, times, one, other)

    def check_known(
        self, memory: Memory, threads: Threads, offset: Array, type: Type, at: At
    ) -> None:
        """Notes reads of what nobody has written."""
        for part in range(max(1, type.size // memory.known_size)):
            index = memory.flat(offset + part * memory.known_size, threads, memory.known_size)
            known = memory.known[index]
            if not known.all():
                who = _first(~known)
                element = int(threads.spread(index)[who]) % (memory.stride // memory.known_size)
                said = f"Uninitialized __{memory.space}__ read of `{memory.name}[{element}]`"
                times = int(np.count_nonzero(~known))
                self.note((memory.name, *at), at, said, threads, who, times)
                return

    def make_known(self, memory: Memory, threads: Threads, offset: Array, type: Type) -> None:
        for part in range(max(1, type.size // memory.known_size)):
            memory.known[
                memory.flat(offset + part * memory.known_size, threads, memory.known_size)
            ] = True


def _parts(type: Type) -> list[tuple[int, Any]]:
    """(byte, dtype) of each number of a value in memory."""
    if isinstance(type, Vector):
        return [(k * type.element.size, type.element.dtype) for k in range(type.count)]
    return [(0, type.dtype if isinstance(type, Scalar) else np.dtype(np.int64))]  # an address


def _same(view: Array, flat: Array, values: Array) -> bool:
    """Whether a write changes nothing."""
    return bool(np.all(view[flat] == values))


def _first(condition: Array) -> int:
    return int(np.argmax(condition)) if np.ndim(condition) else 0


def _merged(found: Array, value: Array, chosen: Array, threads: Threads) -> Any:
    """Values of the chosen threads put beside those found before."""
    if isinstance(value, tuple):
        old = found if found is not None else (None,) * len(value)
        return tuple(_merged(f, v, chosen, threads) for f, v in zip(old, value))
    if found is None:
        found = np.zeros(threads.count, value.dtype)
    found[chosen] = value
    return found
