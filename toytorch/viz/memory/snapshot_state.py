"""The memory of a caching allocator at one moment: segments, blocks in use, and the gaps between."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from dataclasses import dataclass

SMALLEST = 512  # bytes; sizes of blocks are multiples of it
SMALL = 1 << 20  # a large segment's block is split only where more than this is left
ALLOCATED, AWAITING = "active_allocated", "active_awaiting_free"


@dataclass(frozen=True, slots=True)
class Segment:
    """Memory that the allocator has from the driver."""

    address: int
    size: int
    stream: int
    small: bool

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


@dataclass(frozen=True, slots=True)
class Block:
    """A part of a segment that is in use, or will be free when a stream has done with it."""

    address: int
    size: int
    requested: int
    state: str
    allocation: int = -1  # the number of the allocation it was made for

    @property
    def end(self) -> int:
        """The address behind it."""
        return self.address + self.size


class State:
    """Segments and blocks in use, by address; their addresses are kept in order too."""

    def __init__(self) -> None:
        self.segments: dict[int, Segment] = {}
        self.blocks: dict[int, Block] = {}
        self._starts: list[int] = []  # of segments
        self._order: list[int] = []  # of blocks

    def copy(self) -> State:
        """The state as it is now."""
        made = State()
        made.segments, made.blocks = dict(self.segments), dict(self.blocks)
        made._starts, made._order = list(self._starts), list(self._order)
        return made

    def put(self, one: Segment | Block) -> None:
        """Adds a segment or block, or takes it for the one at its address."""
        if isinstance(one, Segment):
            if one.address not in self.segments:
                insort(self._starts, one.address)
            self.segments[one.address] = one
        else:
            if one.address not in self.blocks:
                insort(self._order, one.address)
            self.blocks[one.address] = one

    def drop_block(self, address: int) -> None:
        """Takes a block away, if there is one."""
        if self.blocks.pop(address, None):
            del self._order[bisect_left(self._order, address)]

    def drop_segment(self, address: int) -> None:
        """Takes a segment away, if there is one."""
        if self.segments.pop(address, None):
            del self._starts[bisect_left(self._starts, address)]

    @property
    def active(self) -> int:
        """Bytes of blocks in use."""
        return sum(block.size for block in self.blocks.values())

    @property
    def reserved(self) -> int:
        """Bytes of segments."""
        return sum(segment.size for segment in self.segments.values())

    def taken(self, address: int, asked: int) -> int:
        """The bytes a new block takes: rounded up, or all of its gap if the rest is not worth it."""
        rounded = -(-max(asked, 1) // SMALLEST) * SMALLEST
        number = bisect_right(self._starts, address) - 1
        segment = self.segments[self._starts[number]] if number >= 0 else None
        if segment is None or address >= segment.end:
            return rounded
        behind = bisect_right(self._order, address)
        end = min([segment.end, *self._order[behind : behind + 1]])
        left = end - address - rounded
        worth = left >= SMALLEST if segment.small else left > SMALL
        return rounded if worth else rounded + max(left, 0)

    def inside(self, segment: Segment) -> list[Block]:
        """The blocks of a segment in order of address."""
        first = bisect_left(self._order, segment.address)
        end = bisect_left(self._order, segment.end)
        return [self.blocks[address] for address in self._order[first:end]]

    def free(self, segment: Segment) -> list[tuple[int, int]]:
        """The parts of a segment that are free, as address and size; neighbours are one."""
        gaps, at = [], segment.address
        for block in self.inside(segment):
            if block.address > at:
                gaps.append((at, block.address - at))
            at = max(at, block.end)
        if segment.end > at:
            gaps.append((at, segment.end - at))
        return gaps

    def fragmentation(self) -> tuple[int, int, float]:
        """Free bytes, the largest free block, and the share of free bytes outside of it."""
        gaps = [size for s in self.segments.values() for _, size in self.free(s)]
        free, largest = sum(gaps), max(gaps, default=0)
        return free, largest, 1 - largest / free if free else 0.0
