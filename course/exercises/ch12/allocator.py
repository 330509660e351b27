"""A caching allocator."""

from types import SimpleNamespace

from course.records import Exercise

own_allocator = Exercise(
    "accelerators.allocator",
    "A caching allocator",
    chapter=12,
    minutes=50,
    prompt="""
    Asking the driver for memory takes longer than most kernels, and giving it back waits for the
    whole device. So a framework keeps what is freed and gives it out again. Write `Allocator`. It
    gets a driver with `driver.malloc(size)`, which returns an address or raises `MemoryError`, and
    `driver.free(address)`. The rules are PyTorch's. Sizes are bytes, 1 MiB is `1 << 20`.

    Memory comes from the driver in large **segments**. Each is divided into **blocks**, in use or
    free, that lie side by side. Write the methods in this order; the checks say how far you are.

    **1 · Sizes.** `rounded(size)`: the next multiple of 512, at least 512. `segment_size(size)`, what
    the driver is asked for when a block of `size` (rounded already) is needed: up to 1 MiB a segment
    of 2 MiB; else below 10 MiB one of 20 MiB; else `size`, up to a multiple of 2 MiB.

    **2 · Allocate.** `allocate(size, stream=0)` rounds, finds a free block, marks it as in use and
    returns its address. If there is none, it asks the driver for a segment. Requests up to 1 MiB
    (rounded) are the *small* pool, larger ones the *large* pool. A request takes blocks only from
    segments of its own pool **and stream**. `allocated` and `reserved` are properties: the bytes of
    all blocks in use, and of all segments. `blocks()` lists all blocks as `(address, size, used)`,
    by address.

    **3 · Split.** If the block is larger than needed, the rest becomes a free block behind it: in the
    small pool if the rest has at least 512 bytes, in the large pool only if it has *more* than 1 MiB.
    Otherwise the whole block is given out.

    **4 · Best fit.** Of all free blocks that are large enough, take the smallest, and of equally
    large ones the one at the lowest address.

    **5 · Free and merge.** `free(address)` makes the block free, and joins it with a free block
    before it and one behind it, in the same segment. An address at which no block in use begins is a
    `ValueError`.

    **6 · Shortage.** `empty_cache()` gives each segment that is one free block back to the driver. If
    the driver has no memory left, `allocate` does this once, and asks again; the second
    `MemoryError` is the caller's.

    For example, what is in the first segment, in units of 512 bytes (f: free):

    | call | blocks |
    | --- | --- |
    | `a = allocate(1000)` | a 2, f 4094 |
    | `b = allocate(512)` | a 2, b 1, f 4093 |
    | `c = allocate(600)` | a 2, b 1, c 2, f 4091 |
    | `free(a)` | f 2, b 1, c 2, f 4091 |
    | `d = allocate(100)` | d 1, f 1, b 1, c 2, f 4091 |
    | `free(b)` | d 1, f 2, c 2, f 4091 |
    | `free(c)` | d 1, f 4095 |
    """,
    without=("toytorch.backends.simulator.allocator.CachingAllocator",),
    hints=(
        """
        Keep a list of segments. A segment has an address, a size, the pool it belongs to (a pair of
        stream and kind), and the list of its blocks in the order of their addresses. Then a block's
        neighbours are those beside it in the list: splitting inserts behind it, and merging deletes
        the one behind.
        """,
        """
        The list of one segment's blocks, as (address, size, used) in units of 512 bytes:

        | call | the list |
        | --- | --- |
        | a new segment | (0, 4096, free) |
        | `allocate`, 2 units, from place 0; the rest goes to place 1 | (0, 2, used), (2, 4094, free) |
        | `allocate`, 1 unit, from place 1; the rest goes to place 2 | (0, 2, used), (2, 1, used), (3, 4093, free) |
        | `free(2)`: place 1 takes the size of place 2, which is deleted | (0, 2, used), (2, 4094, free) |
        | `free(0)`: place 0, joined with place 1 | (0, 4096, free) |

        Joining the block at place n with the one behind it is one small function. For a block that
        becomes free, call it with its own place, and then with the place before: after the first call
        the place before has not moved.
        """,
        """
        ```python
        class Allocator:
            def __init__(self, driver):
                self.driver, self.segments = driver, []

            @staticmethod
            def rounded(size):
                return ...

            @staticmethod
            def segment_size(size):
                if size <= 1 << 20:
                    return 2 << 20
                ...

            @property
            def allocated(self):
                return sum(size for _, size, used in self.blocks() if used)

            @property
            def reserved(self):
                return ...

            def blocks(self):
                found = [b for s in self.segments for b in s.blocks]
                return sorted((b.address, b.size, b.used) for b in found)

            def allocate(self, size, stream=0):
                size = self.rounded(size)
                small = size <= 1 << 20
                pool = stream, small
                segment, place = self._best(size, pool) or self._grow(size, pool)
                block = segment.blocks[place]
                left = block.size - size
                if ...:
                    end = ...
                    rest = SimpleNamespace(address=end, size=left, used=False)
                    segment.blocks.insert(place + 1, rest)
                    block.size = ...
                block.used = True
                return block.address

            def _best(self, size, pool):
                fitting = [
                    (block.size, block.address, place, segment)
                    for segment in self.segments
                    if ...
                    for place, block in enumerate(segment.blocks)
                    if ...
                ]
                if not fitting:
                    return None
                *_, place, segment = ...
                return segment, place

            def _grow(self, size, pool):
                total = self.segment_size(size)
                try:
                    address = self.driver.malloc(total)
                except MemoryError:
                    ...
                whole = SimpleNamespace(address=address, size=total, used=False)
                segment = SimpleNamespace(
                    address=address, size=total, pool=pool, blocks=[whole]
                )
                self.segments.append(segment)
                return segment, 0

            def free(self, address):
                for segment in self.segments:
                    for place, block in enumerate(segment.blocks):
                        if block.used and block.address == address:
                            block.used = False
                            ...
                            return
                raise ValueError(f"no block in use begins at {address}")

            @staticmethod
            def _join(blocks, place):
                if place < 0 or ...:
                    return
                one, other = blocks[place : place + 2]
                if ...:
                    ...

            def empty_cache(self):
                for segment in list(self.segments):
                    if ...:
                        self.driver.free(segment.address)
                        self.segments.remove(segment)
        ```
        """,
    ),
)


@own_allocator.reference(
    {
        "rounded": "your code here: about 1 line",
        "segment_size": "your code here: about 5 lines",
        "allocated": "your code here: about 1 line",
        "reserved": "your code here: about 1 line",
        "blocks": "your code here: about 2 lines",
        "allocate": "your code here: about 12 lines, and methods of your own",
        "free": "your code here: about 8 lines",
        "empty_cache": "your code here: about 4 lines",
        "_best": "",
        "_grow": "",
        "_join": "",
    },
    (
        "self.driver, self.segments = driver, []",
        "self.driver = driver\n        # your code here: about 2 lines",
    ),
)
class Allocator:
    """Gives out blocks of device memory, and keeps what is freed."""

    def __init__(self, driver):
        self.driver, self.segments = driver, []

    @staticmethod
    def rounded(size):
        """The size of a block for a request."""
        return max(512, -(-size // 512) * 512)

    @staticmethod
    def segment_size(size):
        """How much the driver is asked for, given a rounded size."""
        if size <= 1 << 20:
            return 2 << 20
        if size < 10 << 20:
            return 20 << 20
        return -(-size // (2 << 20)) * (2 << 20)

    @property
    def allocated(self):
        """The bytes of all blocks in use."""
        return sum(size for _, size, used in self.blocks() if used)

    @property
    def reserved(self):
        """The bytes of all segments."""
        return sum(segment.size for segment in self.segments)

    def blocks(self):
        """All blocks: (address, size, used), by address."""
        found = [b for s in self.segments for b in s.blocks]
        return sorted((b.address, b.size, b.used) for b in found)

    def allocate(self, size, stream=0):
        """The address of a block for `size` bytes, used on a stream."""
        size = self.rounded(size)
        small = size <= 1 << 20
        pool = stream, small
        segment, place = self._best(size, pool) or self._grow(size, pool)
        block = segment.blocks[place]
        left = block.size - size
        if left >= 512 if small else left > 1 << 20:
            end = block.address + size
            rest = SimpleNamespace(address=end, size=left, used=False)
            segment.blocks.insert(place + 1, rest)
            block.size = size
        block.used = True
        return block.address

    def _best(self, size, pool):
        fitting = [
            (block.size, block.address, place, segment)
            for segment in self.segments
            if segment.pool == pool
            for place, block in enumerate(segment.blocks)
            if not block.used and block.size >= size
        ]
        if not fitting:
            return None
        *_, place, segment = min(fitting, key=lambda found: found[:2])
        return segment, place

    def _grow(self, size, pool):
        total = self.segment_size(size)
        try:
            address = self.driver.malloc(total)
        except MemoryError:
            self.empty_cache()
            address = self.driver.malloc(total)
        whole = SimpleNamespace(address=address, size=total, used=False)
        segment = SimpleNamespace(
            address=address, size=total, pool=pool, blocks=[whole]
        )
        self.segments.append(segment)
        return segment, 0

    def free(self, address):
        """Makes a block free, and joins it with free neighbours."""
        for segment in self.segments:
            for place, block in enumerate(segment.blocks):
                if block.used and block.address == address:
                    block.used = False
                    self._join(segment.blocks, place)
                    self._join(segment.blocks, place - 1)
                    return
        raise ValueError(f"no block in use begins at {address}")

    @staticmethod
    def _join(blocks, place):
        if place < 0 or place + 1 == len(blocks):
            return
        one, other = blocks[place : place + 2]
        if not (one.used or other.used):
            one.size += other.size
            del blocks[place + 1]

    def empty_cache(self):
        """Gives segments that are free as a whole back to the driver."""
        for segment in list(self.segments):
            if len(segment.blocks) == 1 and not segment.blocks[0].used:
                self.driver.free(segment.address)
                self.segments.remove(segment)
