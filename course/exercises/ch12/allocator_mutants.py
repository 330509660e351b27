"""Misconceptions about a caching allocator."""

from course.exercises.ch12.allocator import own_allocator

own_allocator.changed(
    "does not round",
    """
    Blocks had the size that was asked for. With every size possible, hardly any free block fits the
    next request, and addresses are not aligned as kernels need them. Sizes are multiples of 512.
    """,
    ("return max(512, -(-size // 512) * 512)", "return size"),
)

own_allocator.changed(
    "rounds down",
    """
    `size // 512 * 512` is the multiple of 512 *below*. The block is then smaller than what was asked
    for, and the tensor writes into its neighbour. `-(-size // 512)` divides and rounds up.
    """,
    ("max(512, -(-size // 512) * 512)", "max(512, size // 512 * 512)"),
)

own_allocator.changed(
    "rounds up to a power of two",
    """
    A power of two wastes up to half of the memory: 513 MiB would take 1 GiB. The next multiple of 512
    wastes less than 512 bytes.
    """,
    ("max(512, -(-size // 512) * 512)", "max(512, 1 << (size - 1).bit_length())"),
)

own_allocator.changed(
    "a segment for each request",
    """
    The driver was asked for exactly the block's size. Then nothing is left to divide, and each small
    tensor costs a call of the driver. A segment of 2 MiB serves thousands of small requests.
    """,
    ("        if size <= 1 << 20:\n            return 2 << 20\n"
     "        if size < 10 << 20:\n            return 20 << 20\n"
     "        return -(-size // (2 << 20)) * (2 << 20)",
     "        return size"),
)

own_allocator.changed(
    "one pool for all sizes",
    """
    Small requests were served from segments of the large pool. A few small tensors that live long
    then keep many large segments from ever being free as a whole. The pools are separate.
    """,
    ("if segment.pool == pool", "if segment.pool[0] == pool[0]"),
)

own_allocator.changed(
    "one pool for all streams",
    """
    A block was given to another stream. Its last kernel may still be running on the old stream, and
    the streams do not wait for each other: that is a race, although the memory was free for Python.
    Each stream has its own segments.
    """,
    ("if segment.pool == pool", "if segment.pool[1] == pool[1]"),
)

own_allocator.changed(
    "never splits",
    """
    The whole block was given out, however small the request. After the first request of 512 bytes,
    2 MiB are in use. What is left has to become a free block.
    """,
    ("if left >= 512 if small else left > 1 << 20:", "if False:"),
)

own_allocator.changed(
    "splits large blocks to the last byte",
    """
    In the large pool a rest of up to 1 MiB was cut off. No large request can ever use so small a
    block, and it keeps its neighbours apart. Such a rest stays with the block.
    """,
    ("if left >= 512 if small else left > 1 << 20:", "if left >= 512:"),
)

own_allocator.changed(
    "first fit",
    """
    The first free block that is large enough was taken. That cuts large blocks into parts while
    smaller ones that fit lie unused, and a later large request then needs the driver. Take the
    smallest that fits.
    """,
    ("min(fitting, key=lambda found: found[:2])", "min(fitting, key=lambda found: found[1])"),
)

own_allocator.changed(
    "worst fit",
    """
    The largest free block was taken. Large blocks are the ones that are hard to get. The smallest
    one that fits leaves them whole.
    """,
    ("min(fitting, key=lambda found: found[:2])",
     "min(fitting, key=lambda found: (-found[0], found[1]))"),
)

own_allocator.changed(
    "the last of equally large blocks",
    """
    Of equally large blocks the one at the *lowest* address is taken. The free memory then stays
    together at the high addresses.
    """,
    ("min(fitting, key=lambda found: found[:2])",
     "min(fitting, key=lambda found: (found[0], -found[1]))"),
)

own_allocator.changed(
    "never merges",
    """
    Freed blocks stayed apart. After many small requests a segment consists of small free blocks side
    by side, and no larger request fits, although all of it is free.
    """,
    ("                    self._join(segment.blocks, place)\n"
     "                    self._join(segment.blocks, place - 1)\n", ""),
)

own_allocator.changed(
    "joins only with the block behind",
    """
    A freed block was joined with the free block behind it, and not with the one before. Which of two
    neighbours is freed first must not matter.
    """,
    ("                    self._join(segment.blocks, place - 1)\n", ""),
)

own_allocator.changed(
    "joins only with the block before",
    """
    A freed block was joined with the free block before it, and not with the one behind.
    """,
    ("                    self._join(segment.blocks, place)\n"
     "                    self._join(segment.blocks, place - 1)\n",
     "                    self._join(segment.blocks, place - 1)\n"),
)

own_allocator.changed(
    "merges with a neighbour in use",
    """
    The freed block was joined with its neighbour whether that was free or not. The neighbour's memory
    is then given out a second time, and two tensors overwrite each other.
    """,
    ("        if not (one.used or other.used):", "        if not one.used:"),
)

own_allocator.changed(
    "gives everything back to the driver",
    """
    `free` handed the segment back as soon as it was free as a whole. The next request then asks the
    driver again, which costs more than most kernels, and giving back waits for the device. Keep it:
    that is the cache.
    """,
    ("                    self._join(segment.blocks, place - 1)\n",
     "                    self._join(segment.blocks, place - 1)\n"
     "                    self.empty_cache()\n"),
)

own_allocator.changed(
    "gives up at the first shortage",
    """
    The driver had no memory left, and the allocator itself held free segments. Give these back and
    ask once more before the error reaches the caller.
    """,
    ("            self.empty_cache()\n            address = self.driver.malloc(total)\n",
     "            raise\n"),
)

own_allocator.changed(
    "gives back segments that are in use",
    """
    A segment was given back although blocks in it were in use. The driver hands this memory to the
    next one who asks. Only a segment that is one single free block may go.
    """,
    ("if len(segment.blocks) == 1 and not segment.blocks[0].used:",
     "if not segment.blocks[0].used:"),
)

own_allocator.changed(
    "an unknown address is ignored",
    """
    `free` of an address at which no block in use begins did nothing. A program that frees twice has a
    mistake that will destroy another tensor one day: raise ValueError.
    """,
    ("        raise ValueError(f\"no block in use begins at {address}\")", "        return"),
)

own_allocator.changed(
    "counts what was asked for as reserved",
    """
    `reserved` is what the allocator has from the driver, in use or not. It is never less than
    `allocated`, and the difference is the cache.
    """,
    ("return sum(segment.size for segment in self.segments)", "return self.allocated"),
)

own_allocator.changed(
    "1 MiB is large",
    """
    Requests *up to* 1 MiB are small, 1 MiB itself included. Such a limit is compared in several places
    (pool, segment, rest); they have to agree.
    """,
    ("small = size <= 1 << 20", "small = size < 1 << 20"),
)

own_allocator.changed(
    "10 MiB get a segment of 20",
    """
    From 10 MiB on a segment has the size of the request, 10 MiB itself included.
    """,
    ("if size < 10 << 20:", "if size <= 10 << 20:"),
)

own_allocator.changed(
    "large segments are not rounded",
    """
    From 10 MiB on, segments are multiples of 2 MiB. Segments of a few sizes can be used again for other
    requests, and the driver hands out memory in pages of 2 MiB.
    """,
    ("return -(-size // (2 << 20)) * (2 << 20)", "return size"),
)

own_allocator.changed(
    "an exact fit is overlooked",
    """
    A free block of exactly the size that is needed was not taken. It is the best of all: nothing is
    left over. `>=`, not `>`.
    """,
    ("block.size >= size", "block.size > size"),
)

own_allocator.changed(
    "skips every other segment",
    """
    Segments were removed from the list while a loop went over it. The loop then skips the one behind
    each that is removed. Go over a copy of the list.
    """,
    ("in list(self.segments)", "in self.segments"),
)

own_allocator.changed(
    "forgets segments without telling the driver",
    """
    Free segments left the list, and the driver was not told. It still counts them as in use, so nobody
    can have this memory any more.
    """,
    ("                self.driver.free(segment.address)\n", ""),
)

own_allocator.changed(
    "the last rest of 512 bytes stays",
    """
    In the small pool a rest is cut off if it has *at least* 512 bytes. A rest of exactly 512 bytes serves
    another small request.
    """,
    ("left >= 512 if small", "left > 512 if small"),
)

own_allocator.changed(
    "gives out the end of the block",
    """
    The request got the end of the free block, and the rest stayed in front. The request lies at the
    block's own address, and the rest behind it: then large free memory stays at the high addresses.
    """,
    ("            end = block.address + size\n",
     "            end = block.address\n            block.address += left\n"),
    ("segment.blocks.insert(place + 1, rest)", "segment.blocks.insert(place, rest)"),
)
