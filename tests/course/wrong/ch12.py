"""Wrong answers of chapter 12."""

from itertools import pairwise
from types import SimpleNamespace

import toytorch as torch
from tests.course.wrong import handed_in, like, wrong

# -- accelerators.clock

like(
    "accelerators.clock",
    "one kernel too many fits into the queue",
    ("if len(kernels) >= room:", "if len(kernels) > room:"),
    ("kernels[-room][1]", "kernels[-room - 1][1]"),
)
like(
    "accelerators.clock",
    "a full queue costs the wake-up too",
    ("host = max(host, kernels[-room][1])", "host = max(host, kernels[-room][1] + wake)"),
)
like("accelerators.clock", "no time to wake up", ("start + length + wake", "start + length"))
like(
    "accelerators.clock",
    "the last kernel before waits for the whole queue",
    ("kernels[-room][1]", "kernels[-1][1]"),
)
like(
    "accelerators.clock",
    "gives starts and lengths",
    ("kernels.append((start, start + length))", "kernels.append((start, length))"),
)
like(
    "accelerators.clock",
    "a gap at the first kernel as well",
    ("start = host\n", "start = host + gap\n"),
)
like("accelerators.clock", "gaps are forgotten", ("kernels[-1][1] + gap", "kernels[-1][1]"))


@wrong("accelerators.clock", "one clock for both")
def run_queue(calls, launch=5.0, gap=1.0, wake=8.0, room=1024):
    now, kernels = 0.0, []
    for length, waits in calls:
        now += launch
        kernels.append((now, now + length))
        now += length
        if waits:
            now += wake
    return kernels, now


@wrong("accelerators.clock", "the device forgets what it did before a call that waits")
def run_queue(calls, launch=5.0, gap=1.0, wake=8.0, room=1024):
    host, free, kernels = 0.0, 0.0, []
    for length, waits in calls:
        host += launch
        start = free + gap if free > host else host
        free = start + length
        kernels.append((start, free))
        if waits:
            host, free = free + wake, 0.0
    return kernels, host


# -- accelerators.timer

like(
    "accelerators.timer",
    "one mark too few",
    ("count = repeats + 1", "count = repeats"),
)
like(
    "accelerators.timer",
    "events without times",
    ("torch.cuda.Event(enable_timing=True)", "torch.cuda.Event()"),
)
like(
    "accelerators.timer",
    "waits for the first mark only",
    ("marks[-1].synchronize()", "marks[0].synchronize()"),
)
like(
    "accelerators.timer",
    "warms up once, whatever is asked",
    ("    for _ in range(warmup):\n        f()\n", "    f()\n"),
)
like(
    "accelerators.timer",
    "the first mark stands before the warm-up",
    (
        "    for _ in range(warmup):\n        f()\n    count = repeats + 1\n",
        "    count = repeats + 1\n",
    ),
    (
        "    marks[0].record()\n",
        "    marks[0].record()\n    for _ in range(warmup):\n        f()\n",
    ),
)
like(
    "accelerators.timer",
    "gives a tuple",
    (
        "[one.elapsed_time(other) for one, other in pairwise(marks)]",
        "tuple(one.elapsed_time(other) for one, other in pairwise(marks))",
    ),
)


@wrong("accelerators.timer", "waits before and after each call")
def measure(f, repeats=5, warmup=2):
    for _ in range(warmup):
        f()
    times = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        f()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end))
    return times


@wrong("accelerators.timer", "waits once for the device, and after each call too")
def measure(f, repeats=5, warmup=2):
    for _ in range(warmup):
        f()
    torch.cuda.synchronize()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(repeats + 1)]
    marks[0].record()
    for mark in marks[1:]:
        f()
        torch.cuda.synchronize()
        mark.record()
    torch.cuda.synchronize()
    return [one.elapsed_time(other) for one, other in pairwise(marks)]


# -- accelerators.races

like(
    "accelerators.races",
    "one race for each access",
    (
        "                    found.append((m, n))\n",
        "                    found.append((m, n))\n                    break\n",
    ),
)
like(
    "accelerators.races", "the later access first", ("found.append((m, n))", "found.append((n, m))")
)
like(
    "accelerators.races",
    "only writes are a race",
    ('"write" in (kind, what)', 'kind == what == "write"'),
)
like(
    "accelerators.races",
    "memory does not matter",
    ("if memory == thing and writes and not known:", "if writes and not known:"),
)
like(
    "accelerators.races",
    "an unknown event is an error",
    ("events.get(thing, {})", "events[thing]"),
)
like(
    "accelerators.races",
    "knows all of a stream that it once waited for",
    ("known = clock.get(who, -1) >= m or who == actor", "known = who in clock or who == actor"),
)
like(
    "accelerators.races",
    "waiting is forgotten after one access",
    ("            clock[actor] = n\n", "            clocks[actor] = {actor: n}\n"),
)


@wrong("accelerators.races", "an event orders whole streams")
def races(log):
    ordered, found, accesses = set(), [], []
    recorded = {}
    for n, (what, actor, thing) in enumerate(log):
        if what == "record":
            recorded[thing] = actor
        elif what == "wait":
            if thing in recorded:
                ordered.add((recorded[thing], actor))
        else:
            for m, kind, who, memory in accesses:
                known = who == actor or (who, actor) in ordered or who == "host"
                if memory == thing and "write" in (kind, what) and not known:
                    found.append((m, n))
            accesses.append((n, what, actor, thing))
    return found


# -- accelerators.pipeline

like(
    "accelerators.pipeline",
    "the host waits for the copy that it has just queued, and for the kernels",
    (
        "))\n        free.record(main)\n",
        "))\n        free.record(main)\n        free.synchronize()\n",
    ),
)
like(
    "accelerators.pipeline",
    "copied is recorded in the wrong stream",
    ("copied.record(copies)", "copied.record(main)"),
)
like(
    "accelerators.pipeline",
    "free is recorded in the copy stream",
    ("))\n        free.record(main)\n", "))\n        free.record(copies)\n"),
)
like(
    "accelerators.pipeline",
    "the results are views of the buffers",
    ("results.append(work(x))", "results.append(x)"),
)
like(
    "accelerators.pipeline",
    "brings the results to the host",
    ("results.append(work(x))", "results.append(work(x).cpu())"),
)
like(
    "accelerators.pipeline",
    "works in the copy stream",
    (
        "            copied.record(copies)\n        main.wait_event(copied)\n        results.append(work(x))\n",
        "            copied.record(copies)\n            results.append(work(x))\n        main.wait_event(copied)\n",
    ),
)


@wrong("accelerators.pipeline", "the plain loop")
def pipeline(batches, work):
    return [work(batch.to("cuda")) for batch in batches]


@wrong("accelerators.pipeline", "the plain loop from pinned memory")
def pipeline(batches, work):
    return [work(batch.pin_memory().to("cuda", non_blocking=True)) for batch in batches]


@wrong("accelerators.pipeline", "copies everything first")
def pipeline(batches, work):
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    with torch.cuda.stream(copies):
        moved = [batch.pin_memory().to("cuda", non_blocking=True) for batch in batches]
    main.wait_stream(copies)
    return [work(x) for x in moved]


@wrong("accelerators.pipeline", "new memory for each batch, given back too early")
def pipeline(batches, work):
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    results = []
    for batch in batches:
        with torch.cuda.stream(copies):
            x = batch.pin_memory().to("cuda", non_blocking=True)
        main.wait_stream(copies)
        results.append(work(x))
        del x
    return results


# -- accelerators.allocator


def _framework():
    from toytorch.backends.simulator.allocator import CachingAllocator

    return CachingAllocator


handed_in("accelerators.allocator", "toytorch's own", _framework)
like(
    "accelerators.allocator",
    "one MiB is large",
    ("small = size <= 1 << 20", "small = size < 1 << 20"),
)
like(
    "accelerators.allocator",
    "10 MiB get a segment of 20",
    ("if size < 10 << 20:", "if size <= 10 << 20:"),
)
like(
    "accelerators.allocator",
    "large segments are not rounded",
    ("return -(-size // (2 << 20)) * (2 << 20)", "return size"),
)
like(
    "accelerators.allocator",
    "small rests stay with the block",
    ("left >= 512 if small", "left > 512 if small"),
)
like(
    "accelerators.allocator",
    "the pool is that of the size asked for, not rounded",
    (
        "        size = self.rounded(size)\n        small = size <= 1 << 20\n",
        "        small = size < 1 << 20\n        size = self.rounded(size)\n",
    ),
)
like(
    "accelerators.allocator",
    "an exact fit is overlooked",
    ("block.size >= size", "block.size > size"),
)
like(
    "accelerators.allocator",
    "gives out the end of the block",
    (
        "            end = block.address + size\n",
        "            end = block.address\n            block.address += left\n",
    ),
    ("segment.blocks.insert(place + 1, rest)", "segment.blocks.insert(place, rest)"),
)
like(
    "accelerators.allocator",
    "free of an address inside of a block",
    ("block.address == address", "block.address <= address < block.address + block.size"),
)
like(
    "accelerators.allocator",
    "empties the cache only of what is needed last",
    (
        "        for segment in list(self.segments):\n",
        "        for segment in self.segments[-1:]:\n",
    ),
)
like(
    "accelerators.allocator",
    "forgets segments without telling the driver",
    ("                self.driver.free(segment.address)\n", ""),
)
like(
    "accelerators.allocator",
    "skips every other segment",
    ("in list(self.segments)", "in self.segments"),
)
like(
    "accelerators.allocator",
    "joins a second time only if the first one did not",
    (
        "                    self._join(segment.blocks, place)\n"
        "                    self._join(segment.blocks, place - 1)\n",
        "                    before = len(segment.blocks)\n"
        "                    self._join(segment.blocks, place)\n"
        "                    if len(segment.blocks) == before:\n"
        "                        self._join(segment.blocks, place - 1)\n",
    ),
)
like(
    "accelerators.allocator",
    "never asks twice",
    (
        "            self.empty_cache()\n            address = self.driver.malloc(total)\n",
        "            self.empty_cache()\n            raise\n",
    ),
)


@wrong("accelerators.allocator", "no cache at all")
class Allocator:
    def __init__(self, driver):
        self.driver, self.used = driver, {}

    @staticmethod
    def rounded(size):
        return max(512, -(-size // 512) * 512)

    @staticmethod
    def segment_size(size):
        if size <= 1 << 20:
            return 2 << 20
        if size < 10 << 20:
            return 20 << 20
        return -(-size // (2 << 20)) * (2 << 20)

    @property
    def allocated(self):
        return sum(self.used.values())

    reserved = allocated

    def blocks(self):
        return sorted((address, size, True) for address, size in self.used.items())

    def allocate(self, size, stream=0):
        address = self.driver.malloc(self.rounded(size))
        self.used[address] = self.rounded(size)
        return address

    def free(self, address):
        if address not in self.used:
            raise ValueError(address)
        del self.used[address]
        self.driver.free(address)

    def empty_cache(self):
        SimpleNamespace()
