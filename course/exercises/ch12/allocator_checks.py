"""The checks of `own_allocator`."""

import functools
import gc

import toytorch as torch
from course.cases import case
from course.device_memory import MIB, Driver
from course.exercises.ch12.allocator import own_allocator
from course.properties import agrees, drawn, every
from toytorch.backends.simulator.allocator import CachingAllocator, Shortage

# A program is a list: n > 0 allocates n bytes, (n, stream) for another stream than 0; -k frees the
# k-th of these requests; None empties the cache.


def _play(Allocator, program, capacity=80 << 30):
    """The allocator after a program, its driver, and the address (or error) of each request."""
    driver = Driver(capacity)
    mine, given = Allocator(driver), []
    for step in program:
        if step is None:
            mine.empty_cache()
        elif isinstance(step, int) and step < 0:
            mine.free(given[-step - 1])
        else:
            size, stream = step if isinstance(step, tuple) else (step, 0)
            try:
                given.append(mine.allocate(size, stream))
            except MemoryError:
                given.append("out of memory")
    return mine, driver, given


def _units(Allocator, program):
    """The blocks in units of 512 bytes, and whether each is in use."""
    return [(a // 512, size // 512, bool(used))
            for a, size, used in _play(Allocator, program)[0].blocks()]


def _shown(program):
    return f"allocate (n), free the k-th (-k): {program}"


@own_allocator.check("1 · sizes")
def _(Allocator):
    mine = Allocator(Driver())
    for size, wanted in ((1, 512), (511, 512), (512, 512), (513, 1024), (3 * MIB + 1, 3 * MIB + 512)):
        yield case(f"rounded({size})", lambda s=size: mine.rounded(s)).gives(wanted)
    for size, wanted in ((512, 2 * MIB), (MIB, 2 * MIB), (MIB + 512, 20 * MIB),
                         (10 * MIB - 512, 20 * MIB), (10 * MIB, 10 * MIB),
                         (10 * MIB + 512, 12 * MIB), (13 * MIB, 14 * MIB)):
        yield case(f"segment_size({size})", lambda s=size: mine.segment_size(s)).gives(wanted)


@own_allocator.check("2 · allocate")
def _(Allocator):
    def figures(*program):
        mine, driver, given = _play(Allocator, program)
        return given, mine.allocated, mine.reserved, driver.mallocs

    said = "addresses, allocated, reserved, calls of malloc after"
    yield case("allocated, reserved and blocks() of a new allocator",
               lambda: (Allocator(Driver()).allocated, Allocator(Driver()).reserved,
                        Allocator(Driver()).blocks())).gives((0, 0, []))
    yield case(f"{said} a request of 20 MiB",
               lambda: figures(20 * MIB)).gives(([0], 20 * MIB, 20 * MIB, 1))
    yield case(f"{said} two requests of 1 MiB", lambda: figures(MIB, MIB)).gives(
        ([0, MIB], 2 * MIB, 2 * MIB, 1))
    yield case(f"{said} three requests of 1 MiB", lambda: figures(MIB, MIB, MIB)).gives(
        ([0, MIB, 2 * MIB], 3 * MIB, 4 * MIB, 2))
    yield case(f"{said} 4 MiB and 100 bytes, which are of two pools",
               lambda: figures(4 * MIB, 100)).gives(
        ([0, 20 * MIB], 4 * MIB + 512, 22 * MIB, 2))


@own_allocator.check("3 · split")
def _(Allocator):
    for program, wanted in (
        ([1000], [(0, 2, True), (2, 4094, False)]),
        ([1000, 512, 600], [(0, 2, True), (2, 1, True), (3, 2, True), (5, 4091, False)]),
        ([MIB, MIB - 512], [(0, 2048, True), (2048, 2047, True), (4095, 1, False)]),
        ([19 * MIB], [(0, 40960, True)]),
        ([9 * MIB, 10 * MIB], [(0, 18432, True), (18432, 22528, True)]),
        ([9 * MIB, 10 * MIB - 512],
         [(0, 18432, True), (18432, 20479, True), (38911, 2049, False)]),
        ([9 * MIB, 9 * MIB], [(0, 18432, True), (18432, 18432, True), (36864, 4096, False)]),
    ):
        yield case(f"blocks in units of 512 bytes: {_shown(program)}",
                   lambda p=program: _units(Allocator, p)).gives(wanted)


@own_allocator.check("4 · best fit")
def _(Allocator):
    # free blocks of 8, 2 and 4 units, with one unit in use between any two
    holes = [8 * 512, 512, 2 * 512, 512, 4 * 512, 512, -1, -3, -5]
    for size, wanted in ((600, 9), (2000, 12), (3000, 0), (5000, 17), (512, 9)):
        yield case(f"free blocks of 8, 2, 4 and many units at 0, 9, 12 and 17: where {size} bytes go",
                   lambda s=size: _play(Allocator, [*holes, s])[2][-1] // 512).gives(wanted)
    equal = [1024, 512, 1024, 512, 1024, 512, -5, -1, -3]
    yield case("three free blocks of 2 units at 0, 3 and 6: where 1024 bytes go",
               lambda: _play(Allocator, [*equal, 1024])[2][-1] // 512).gives(0)


@own_allocator.check("5 · free and merge")
def _(Allocator):
    start = [1024, 512, 1024]
    for frees, wanted in (
        ([-1], [(0, 2, False), (2, 1, True), (3, 2, True), (5, 4091, False)]),
        ([-3], [(0, 2, True), (2, 1, True), (3, 4093, False)]),
        ([-1, -2], [(0, 3, False), (3, 2, True), (5, 4091, False)]),
        ([-2, -1], [(0, 3, False), (3, 2, True), (5, 4091, False)]),
        ([-1, -3, -2], [(0, 4096, False)]),
        ([-2, -3, -1], [(0, 4096, False)]),
    ):
        yield case(f"blocks in units of 512 bytes: {_shown([*start, *frees])}",
                   lambda p=frees: _units(Allocator, [*start, *p])).gives(wanted)

    def reused():
        mine, driver, _ = _play(Allocator, [20 * MIB, -1, 20 * MIB, -2, 19 * MIB, 512])
        return driver.mallocs, driver.frees, mine.allocated

    yield case("calls of malloc and of free, and bytes allocated: 20 MiB, freed, again, freed, "
               "19 MiB, 512 bytes", reused).gives((2, 0, 20 * MIB + 512))

    def twice():
        _play(Allocator, [512, 512, -1, -1])

    yield case("the same block freed twice", twice).raises(ValueError)
    yield case("free(256), where no block begins", lambda: _play(Allocator, [512])[0].free(256)).raises(
        ValueError)


@own_allocator.check("6 · streams and shortage")
def _(Allocator):
    def addresses(*program, capacity=80 << 30):
        return [a if isinstance(a, str) else a // 512
                for a in _play(Allocator, program, capacity)[2]]

    yield case("512 bytes for stream 0, freed, then 512 bytes for stream 7 and for stream 0",
               lambda: addresses(512, -1, (512, 7), 512)).gives([0, 4096, 0])
    yield case("40 MiB of capacity: 20 MiB and 20 MiB, the first freed, then 12 MiB and 20 MiB",
               lambda: addresses(20 * MIB, 20 * MIB, -1, 12 * MIB, 20 * MIB, capacity=40 * MIB)).gives(
        [0, 40960, 0, "out of memory"])
    yield case("40 MiB of capacity: 20 MiB freed, 12 MiB freed, then 40 MiB",
               lambda: addresses(20 * MIB, 12 * MIB, -1, -2, 40 * MIB, capacity=40 * MIB)[-1:]).holds(
        "an address, not an error", lambda got: got != ["out of memory"])

    def emptied(*program):
        mine, driver, _ = _play(Allocator, program)
        return mine.reserved // MIB, driver.reserved // MIB, driver.frees

    yield case("MiB reserved by the allocator and by the driver, and frees: empty_cache() with 20 MiB "
               "free, and 2 MiB of which one block is in use",
               lambda: emptied(20 * MIB, 512, 512, -1, -2, None)).gives((2, 2, 1))


def _network():
    return torch.nn.Sequential(
        torch.nn.Conv2d(1, 8, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(288, 10))


@functools.cache
def _recorded():
    """The requests of two training steps on a simulated device: (size, stream) or the address that
    is freed. They are the same for every answer, so they are recorded once."""
    gc.collect()
    with torch.cuda.simulate():
        torch.manual_seed(0)
        model = _network().to("cuda")
        optimizer = torch.optim.Adam(model.parameters())
        images, labels = torch.rand(64, 1, 8, 8), torch.arange(64) % 10
        for _ in range(2):
            x, y = images.to("cuda"), labels.to("cuda")
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(model(x), y).backward()
            optimizer.step()
        return torch.cuda.memory._snapshot()["device_traces"][0]


def _replay(Allocator, events):
    """Where each request of a record goes, and how much is reserved in the end."""
    driver = Driver()
    mine, places, where = Allocator(driver), {}, []
    for event in events:
        if event["action"] == "alloc":
            places[event["addr"]] = mine.allocate(event["size"], event["stream"])
            where.append(places[event["addr"]])
        elif event["action"] == "free_completed":
            mine.free(places.pop(event["addr"]))
    return where, mine.allocated, mine.reserved, driver.mallocs


def _as_recorded(events):
    """The same from the record itself."""
    first = min(event["addr"] for event in events if event["action"] == "segment_alloc")
    where = [event["addr"] - first for event in events if event["action"] == "alloc"]
    held = {}
    for event in events:
        if event["action"] == "alloc":
            held[event["addr"]] = -(-event["size"] // 512) * 512
        elif event["action"] == "free_completed":
            del held[event["addr"]]
    segments = [event["size"] for event in events if event["action"] == "segment_alloc"]
    return where, sum(held.values()), sum(segments), len(segments)


@own_allocator.check("7 · a recorded training")
def _(Allocator):
    events = _recorded()
    yield case("two training steps, recorded on toytorch's simulator: the address of each request, "
               "allocated, reserved, calls of malloc", lambda: _replay(Allocator, events)).as_by(
        lambda: _as_recorded(events))


def _program(draw):
    """Requests and frees, on a device where memory runs out now and then."""
    program, open_ = [], []
    sizes = (1, 512, 700, 5000, 300_000, MIB, MIB + 1, 3 * MIB, 9 * MIB, 10 * MIB, 15 * MIB)
    count = 0
    for _ in range(draw.randint(1, 25)):
        choice = draw.random()
        if choice < 0.4 and open_:
            program.append(-open_.pop(draw.randrange(len(open_))))
        elif choice < 0.45:
            program.append(None)
        else:
            size = draw.choice(sizes)
            program.append((size, 3) if draw.random() < 0.2 else size)
            count += 1
            open_.append(count)
    return (program,)


def _of_toytorch(program, capacity):
    """What toytorch's simulated allocator does."""
    memory, given = CachingAllocator(capacity, first_address=0), []
    for step in program:
        if step is None:
            memory.give_back()
        elif isinstance(step, int) and step < 0:
            if given[-step - 1] is not None:
                memory.release(given[-step - 1])
        else:
            try:
                given.append(memory.allocate(*(step if isinstance(step, tuple) else (step, 0))))
            except Shortage:
                given.append(None)
    blocks = sorted((b.address, b.size, b.used) for s in memory.segments for b in s.blocks())
    return blocks, memory.statistics["allocated_bytes"].current, memory.reserved


def _of_answer(Allocator, program, capacity):
    mine, _, _ = _play(_Lenient.of(Allocator), program, capacity)
    return mine.blocks(), mine.allocated, mine.reserved


class _Lenient:
    """An allocator for programs that go on after a shortage: they free what they never got."""

    @staticmethod
    def of(Allocator):
        def make(driver):
            mine = Allocator(driver)
            free = mine.free
            mine.free = lambda address: None if isinstance(address, str) else free(address)
            return mine

        return make


def _broken(Allocator, program):
    """Which of the statements that hold for every allocator do not, after each step."""
    found = []
    for length in range(1, len(program) + 1):
        mine, driver, _ = _play(_Lenient.of(Allocator), program[:length])
        blocks = mine.blocks()
        used = [(a, size) for a, size, taken in blocks if taken]
        pairs = zip(blocks, blocks[1:])
        statements = {
            "sizes are multiples of 512": all(size % 512 == 0 for _, size, _ in blocks),
            "blocks do not overlap": all(a + size <= b for (a, size, _), (b, _, _) in pairs),
            "allocated is the sum of the blocks in use": mine.allocated == sum(s for _, s in used),
            "reserved is what the driver gave": mine.reserved == driver.reserved,
            "reserved is the sum of all blocks": mine.reserved == sum(s for _, s, _ in blocks),
        }
        found += [f"{name} (after {length} steps)" for name, holds in statements.items() if not holds]
        if found:
            break
    return found


@own_allocator.check("any requests", hidden=True)
def _(Allocator):
    def hold():
        for make in drawn(_program, 25, 7):
            (program,) = make()
            yield case(f"statements that do not hold: {_shown(program)}",
                       lambda p=program: _broken(Allocator, p)).gives([])

    yield every("25 random programs: what holds for every allocator", hold)
    for capacity in (80 << 30, 44 * MIB):
        yield agrees(
            lambda program, c=capacity: _of_answer(Allocator, program, c),
            lambda program, c=capacity: _of_toytorch(program, c),
            _program, count=60,
            tell=lambda program, c=capacity: (
                f"blocks(), allocated and reserved, {c // MIB} MiB of capacity: {_shown(program)}"))
