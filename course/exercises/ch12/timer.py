"""Times by events."""

from itertools import pairwise

import toytorch as torch
from course.cases import case
from course.exercises.ch12.common import SLOWER
from course.properties import agrees
from course.records import Exercise

timer = Exercise(
    "accelerators.timer",
    "A timer of events",
    chapter=12,
    minutes=15,
    prompt="""
    Write `measure(f, repeats=5, warmup=2)`: how long the device needs for what `f()` queues on the
    **current stream**, in milliseconds. Return a list of `repeats` floats, one for each call.

    An event is a mark in a stream:

    | call | what it does |
    | --- | --- |
    | `torch.cuda.Event(enable_timing=True)` | makes an event that knows its time |
    | `event.record()` | puts it into the current stream, after all that was queued so far |
    | `event.synchronize()` | the host waits until the stream has come to it |
    | `one.elapsed_time(other)` | milliseconds between two events; both must have been reached |

    1. Call `f()` `warmup` times without measuring. The first calls are special: the allocator asks
       the driver for memory, and on a GPU kernels are loaded.
    2. Call it `repeats` times. Put marks into the stream so that each call has one before it and
       one after it.
    3. The host waits **once**, at the end. A host that waits after each call lets the device run
       out of work, which changes what is measured.

    Work that was queued before your first mark must not count.
    """,
    hints=(
        """
        `repeats` calls that follow each other need `repeats + 1` marks: the mark after one call is the
        mark before the next one. Only after the host has waited for the last of them can you ask for
        times.
        """,
        """
        `repeats=2, warmup=1`, and a kernel of 3 ms in `f`. What is queued on the stream:

        | queued | the device is there at |
        | --- | --- |
        | `f()`, not measured | 0 to 3 ms |
        | mark 0 | 3 ms |
        | `f()` | 3 to 6 ms |
        | mark 1 | 6 ms |
        | `f()` | 6 to 9 ms |
        | mark 2 | 9 ms |

        The host has queued all this long before 3 ms. It waits for mark 2, and then asks mark 0 for
        the time to mark 1, and mark 1 for the time to mark 2. `itertools.pairwise` gives these pairs.
        """,
        """
        ```python
        def measure(f, repeats=5, warmup=2):
            for _ in range(warmup):
                f()
            count = ...
            marks = [torch.cuda.Event(...) for _ in range(count)]
            marks[0].record()
            for mark in marks[1:]:
                ...
                ...
            ...
            return [... for one, other in pairwise(marks)]
        ```
        """,
    ),
)


@timer.reference(stub="your code here: about 9 lines")
def measure(f, repeats=5, warmup=2):
    """Milliseconds that the device needs for each of several calls."""
    for _ in range(warmup):
        f()
    count = repeats + 1
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(count)]
    marks[0].record()
    for mark in marks[1:]:
        f()
        mark.record()
    marks[-1].synchronize()
    return [one.elapsed_time(other) for one, other in pairwise(marks)]


timer.changed(
    "asks before the device is there",
    """
    The host did not wait. When it asks for the times, the device has not reached the marks yet, and
    `elapsed_time` raises "device not ready". Wait for the last mark first: all others are before it.
    """,
    ("    marks[-1].synchronize()\n", ""),
)

timer.changed(
    "waits after every call",
    """
    The host waited for each mark. Then the device is idle until the host has asked for the next
    kernel, and this time is measured as well: many short kernels look slower than they are in a
    loop that does not wait. Queue all calls, and wait once for the last mark.
    """,
    ("        mark.record()\n    marks[-1].synchronize()\n",
     "        mark.record()\n        mark.synchronize()\n"),
)

timer.changed(
    "measures the first calls as well",
    """
    The warm-up was left out. In the first call the allocator asks the driver for memory, which
    takes the host longer than most kernels, and on a GPU kernels are loaded. So the first time is
    far above the others.
    """,
    ("    for _ in range(warmup):\n        f()\n", ""),
)

timer.changed(
    "one mean for all calls",
    """
    The whole time was divided by the number of calls. A mean hides whether the times vary, and a
    measurement without its spread cannot be judged. Put a mark between any two calls.
    """,
    ("    return [one.elapsed_time(other) for one, other in pairwise(marks)]",
     "    return [marks[0].elapsed_time(marks[-1]) / repeats for _ in range(repeats)]"),
)

timer.changed(
    "marks in the default stream",
    """
    The marks were put into the default stream, while `f` queued its kernels on the current one. The
    streams do not wait for each other, so the marks were reached at once and the times are close
    to 0. `record()` without an argument takes the current stream.
    """,
    ("    marks[0].record()\n", "    marks[0].record(torch.cuda.default_stream())\n"),
    ("        mark.record()\n", "        mark.record(torch.cuda.default_stream())\n"),
)

timer.changed(
    "the mark stands before the call",
    """
    Each mark was recorded before the call that it should end, so the first time is the time between
    two marks with nothing between them, and the last call is not measured. An event marks the end
    of what was queued *before* it.
    """,
    ("        f()\n        mark.record()\n", "        mark.record()\n        f()\n"),
)

timer.changed(
    "seconds",
    """
    `elapsed_time` gives milliseconds, and milliseconds are asked for.
    """,
    ("[one.elapsed_time(other)", "[one.elapsed_time(other) / 1000"),
)

timer.changed(
    "from the first mark on",
    """
    Each time was taken from the *first* mark, so the times grow from call to call. The time of one
    call lies between the mark before it and the mark after it.
    """,
    ("[one.elapsed_time(other)", "[marks[0].elapsed_time(other)"),
)


timer.changed(
    "events without times",
    """
    An event keeps its time only if it was made with `enable_timing=True`. Others are cheaper, and are
    for waiting.
    """,
    ("torch.cuda.Event(enable_timing=True)", "torch.cuda.Event()"),
)

timer.changed(
    "one mark too few",
    """
    `repeats` calls lie between `repeats + 1` marks, as five fields need six posts of a fence. One time
    is missing.
    """,
    ("count = repeats + 1", "count = repeats"),
)

timer.changed(
    "the first mark stands before the warm-up",
    """
    The first mark was recorded before the warm-up calls, so the first time contains them. Record it
    when they have been queued.
    """,
    ("    for _ in range(warmup):\n        f()\n    count = repeats + 1\n",
     "    count = repeats + 1\n"),
    ("    marks[0].record()\n",
     "    marks[0].record()\n    for _ in range(warmup):\n        f()\n"),
)


class _Bench:
    """A simulated device, and things to measure on it."""

    def __init__(self):
        self.matrix = torch.ones(48, 48, dtype=torch.float64, device="cuda")
        self.result = torch.empty(48, 48, dtype=torch.float64, device="cuda")
        self.stream = torch.cuda.Stream()
        self.stream.wait_stream(torch.cuda.current_stream())
        self.calls = 0

    def products(self, sizes):
        """Several kernels: products of square matrices of these sizes."""
        self.calls += 1
        for n in sizes:
            torch.mm(self.matrix[:n, :n], self.matrix[:n, :n], out=self.result[:n, :n])

    def grow(self):
        """Like a first iteration: memory that the cache has only afterwards."""
        self.calls += 1
        return torch.empty(2_000_000, device="cuda").fill_(1.0)

    def uneven(self):
        """A call that takes longer each time."""
        self.products([24 + 4 * self.calls])


def _timed(measure, what, stream=False, busy=False, **options):
    """The times that a timer gives, with three digits."""
    with torch.cuda.simulate(model=SLOWER, races="list"):
        bench = _Bench()
        f = getattr(bench, what) if isinstance(what, str) else lambda: bench.products(what)
        with torch.cuda.stream(bench.stream if stream else None):
            if busy:
                bench.products([48] * 20)
            return [round(float(ms), 3) for ms in measure(f, **options)]


LARGE, SMALL = [48], [8] * 40


@timer.check("kernels that keep the device busy")
def _(f):
    yield case("5 calls of a product of 48 x 48 matrices", lambda: _timed(f, LARGE)).as_by(
        lambda: _timed(timer.answer.value, LARGE), 0.002)
    yield case("3 calls that take longer each time, repeats=3, warmup=1",
               lambda: _timed(f, "uneven", repeats=3, warmup=1)).as_by(
        lambda: _timed(timer.answer.value, "uneven", repeats=3, warmup=1), 0.002)


@timer.check("many small kernels")
def _(f):
    yield case("5 calls of 40 products of 8 x 8 matrices", lambda: _timed(f, SMALL)).as_by(
        lambda: _timed(timer.answer.value, SMALL), 0.004)


@timer.check("what does not count")
def _(f):
    yield case("a function that asks the driver for memory in its first call",
               lambda: _timed(f, "grow")).as_by(
        lambda: _timed(timer.answer.value, "grow"), 0.002)
    yield case("a product, after 20 others that are still queued, warmup=0",
               lambda: _timed(f, LARGE, busy=True, warmup=0)).as_by(
        lambda: _timed(timer.answer.value, LARGE, busy=True, warmup=0), 0.002)


@timer.check("in a stream of its own")
def _(f):
    yield case("a product of 48 x 48 matrices, in `with torch.cuda.stream(…)`",
               lambda: _timed(f, LARGE, stream=True)).as_by(
        lambda: _timed(timer.answer.value, LARGE, stream=True), 0.002)


@timer.check("how often it calls and waits", hidden=True)
def _(f):
    def counts(repeats, warmup):
        with torch.cuda.simulate(model=SLOWER) as sim:
            bench = _Bench()
            times = f(lambda: bench.products(LARGE), repeats=repeats, warmup=warmup)
            waits = sum(span.kind == "sync" for span in sim.timeline.spans)
            return type(times).__name__, len(times), bench.calls, waits

    for repeats, warmup in ((5, 2), (1, 0), (3, 4)):
        yield case(f"repeats={repeats}, warmup={warmup}: the type and length of the result, "
                   "calls of f, and how often the host waits",
                   lambda r=repeats, w=warmup: counts(r, w)).gives(
            ("list", repeats, repeats + warmup, 1))


@timer.check("any kernels")
def _(f):
    def drawn(draw):
        sizes = [draw.choice((8, 16, 32, 48)) for _ in range(draw.randint(1, 10))]
        return sizes, draw.randint(1, 4), draw.randint(0, 2)

    def run(measure):
        return lambda sizes, repeats, warmup: _timed(
            measure, sizes, repeats=repeats, warmup=warmup)

    def tell(sizes, repeats, warmup):
        return f"products of the sizes {sizes}, repeats={repeats}, warmup={warmup}"

    yield agrees(run(f), run(timer.answer.value), drawn, count=12, tolerance=0.005, tell=tell)
