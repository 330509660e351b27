"""Copies beside kernels."""

import toytorch as torch
from course.cases import case
from course.exercises.ch12.common import SLOW
from course.properties import every
from course.records import Exercise

overlap = Exercise(
    "accelerators.pipeline",
    "Copies beside kernels",
    chapter=12,
    minutes=30,
    prompt="""
    The plain loop `[work(batch.to("cuda")) for batch in batches]` copies, then computes, then copies
    again. A device has separate engines for copies, so both can go on at once. Write
    `pipeline(batches, work)`: the results of `work(x)` for the batches in their order, where `x` is
    the batch on the device. The copies run on a stream of their own, and `work` is called on the
    stream that is current when `pipeline` is called.

    Use two **slots** in turn, batch `n` in slot `n % 2`. Each has a buffer in pinned memory
    (`torch.empty_like(batch).pin_memory()`), a buffer on the device
    (`torch.empty_like(batch, device="cuda")`) and two events, `copied` and `free`. For each batch,
    queue the following. Each wait prevents one race:

    | who | what | because otherwise |
    | --- | --- | --- |
    | host | waits until the slot's last copy is done: `copied.synchronize()` | the copy engine still reads it |
    | host | writes the batch into the pinned buffer, `copy_` | |
    | copy stream | waits for `free`: `wait_event` | a kernel still reads the buffer |
    | copy stream | copies to the device, `copy_(…, non_blocking=True)` | |
    | copy stream | records `copied` | |
    | current stream | waits for `copied` | the batch is not there yet |
    | current stream | `work` on the device buffer | |
    | current stream | records `free` | |

    * Make both slots when the first batch comes: only then is their shape known.
    * An event that was never recorded makes nobody wait. But a *new* device buffer may lie where
      kernels of the current stream still use an older tensor. So record `free` on the current stream
      when you make a slot, before anything else is queued there.
    * No batch is longer than the first, and all have its other dimensions. If one is shorter, use as
      many rows of the buffers: `buffer[: len(batch)]`.
    * `work` returns a new tensor. Leave the results on the device, and do not wait for them.

    It has to reach at least **1.6 times** the throughput of the plain loop where a copy from pinned
    memory takes as long as the kernels, and toytorch's race detector has to find nothing. Times are
    those of the simulator, so they are the same at every run.
    """,
    hints=(
        """
        Make both slots when the first batch comes, and keep them in a list. The rest of the
        loop is the table, line by line. Only the three lines of the copy stream stand inside
        `with torch.cuda.stream(copies):`. Nothing waits for the device as a whole.
        """,
        """
        Four batches, a copy and the kernels of one batch both take one unit of time:

        | time | copy engine | kernels | the host waits |
        | --- | --- | --- | --- |
        | 0 to 1 | batch 0 into slot 0 | | |
        | 1 to 2 | batch 1 into slot 1 | batch 0 | for `copied` of slot 0, to stage batch 2 |
        | 2 to 3 | batch 2 into slot 0, which is `free` now | batch 1 | for `copied` of slot 1 |
        | 3 to 4 | batch 3 into slot 1 | batch 2 | |
        | 4 to 5 | | batch 3 | |

        Five units instead of eight, and n + 1 instead of 2n in general. With one slot, the copy of
        batch 1 would have to wait for the kernels of batch 0, and nothing would overlap.
        """,
        """
        ```python
        def pipeline(batches, work):
            copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
            slots, results = [], []
            for n, batch in enumerate(batches):
                for _ in [] if slots else range(2):
                    pinned = torch.empty_like(batch).pin_memory()
                    device = torch.empty_like(batch, device="cuda")
                    copied, free = torch.cuda.Event(), torch.cuda.Event()
                    slots.append((pinned, device, copied, free))
                    ...
                pinned, device, copied, free = slots[n % 2]
                ...
                pinned[: len(batch)].copy_(batch)
                x = ...
                with torch.cuda.stream(copies):
                    ...
                    x.copy_(...)
                    ...
                ...
                results.append(work(x))
                ...
            return results
        ```
        """,
    ),
)


@overlap.reference(stub="your code here: about 20 lines")
def pipeline(batches, work):
    """The results of work, on the device; copies run beside kernels."""
    copies, main = torch.cuda.Stream(), torch.cuda.current_stream()
    slots, results = [], []
    for n, batch in enumerate(batches):
        for _ in [] if slots else range(2):
            pinned = torch.empty_like(batch).pin_memory()
            device = torch.empty_like(batch, device="cuda")
            copied, free = torch.cuda.Event(), torch.cuda.Event()
            slots.append((pinned, device, copied, free))
            free.record(main)
        pinned, device, copied, free = slots[n % 2]
        copied.synchronize()
        pinned[: len(batch)].copy_(batch)
        x = device[: len(batch)]
        with torch.cuda.stream(copies):
            copies.wait_event(free)
            x.copy_(pinned[: len(batch)], non_blocking=True)
            copied.record(copies)
        main.wait_event(copied)
        results.append(work(x))
        free.record(main)
    return results


overlap.changed(
    "the kernels do not wait for the copy",
    """
    Two streams do not wait for each other. The kernels may read the buffer before the batch is in
    it, and then they compute with the batch before. The current stream has to wait for `copied`.
    """,
    ("        main.wait_event(copied)\n", ""),
)

overlap.changed(
    "the copy does not wait for the kernels",
    """
    The buffer is filled again two batches later. If the kernels are slower than the copies, they
    still read it then. The copy stream has to wait for `free`.
    """,
    ("            copies.wait_event(free)\n", ""),
)

overlap.changed(
    "the host does not wait for the copy",
    """
    `copy_(…, non_blocking=True)` returns before the copy is done. The host then wrote the next batch
    into pinned memory that the copy engine was still reading. Before it writes, the host has to wait
    for `copied` of this slot.
    """,
    ("        copied.synchronize()\n", ""),
)

overlap.changed(
    "one slot",
    """
    With one slot, a copy has to wait until the kernels are done with the buffer, and the kernels
    wait for the copy. There are two streams, and still only one of them works at a time.
    """,
    ("slots[n % 2]", "slots[0]"),
)

overlap.changed(
    "copies from ordinary memory",
    """
    The copy engine cannot read ordinary memory, because the operating system may move its pages. The
    driver first copies them into a pinned buffer of its own, and the host waits meanwhile, with
    `non_blocking=True` or without. Copy from the pinned buffer.
    """,
    ("x.copy_(pinned[: len(batch)], non_blocking=True)", "x.copy_(batch, non_blocking=True)"),
)

overlap.changed(
    "waits for the device in every round",
    """
    The host waited for all streams after each batch. That is free of races, and nothing overlaps any
    more: while the host waits, no next copy is queued. Let streams wait for events, and the host only
    for the copy whose pinned buffer it needs.
    """,
    ("))\n        free.record(main)\n", "))\n        torch.cuda.synchronize()\n"),
)

overlap.changed(
    "all in one stream",
    """
    The copies were queued on the current stream. One stream does one thing after the other, so copies
    and kernels alternate. Queue them inside `with torch.cuda.stream(copies):`.
    """,
    ("with torch.cuda.stream(copies):", "with torch.cuda.stream(main):"),
    ("copied.record(copies)", "copied.record(main)"),
)

overlap.changed(
    "a new buffer is not free yet",
    """
    The first copy into a buffer waited for nobody, because `free` had not been recorded. A new buffer
    is new to *you*: the allocator gives out memory that a kernel of the current stream may still be
    using. Record `free` when you make the slot.
    """,
    ("            free.record(main)\n", ""),
)

overlap.changed(
    "free before the kernels are queued",
    """
    An event marks what was queued before it. `free` was recorded before `work`, so it says that the
    kernels of the batch *before* are done. Record it after `work`.
    """,
    ("        results.append(work(x))\n        free.record(main)\n",
     "        free.record(main)\n        results.append(work(x))\n"),
)

overlap.changed(
    "the whole buffer for a short batch",
    """
    The last batch is often shorter than the others. The rest of the buffer still holds rows of an
    earlier batch, and `work` computed with them too. Hand it `device[: len(batch)]`.
    """,
    ("work(x)", "work(device)"),
)


overlap.changed(
    "copied is recorded in the wrong stream",
    """
    `copied` was recorded on the current stream. It then marks the end of the last *kernels*, and says
    nothing about the copy. Record it on the copy stream, after the copy.
    """,
    ("copied.record(copies)", "copied.record(main)"),
)

overlap.changed(
    "brings the results to the host",
    """
    `.cpu()` waits until the result is there, so the next copy is not queued before the kernels are
    done. The results are to stay on the device; fetch them when the loop is over.
    """,
    ("results.append(work(x))", "results.append(work(x).cpu())"),
)

overlap.changed(
    "works in the copy stream",
    """
    `work` was called inside `with torch.cuda.stream(copies):`. Its kernels then stand in the queue
    between two copies, and nothing overlaps. Only the copy belongs there.
    """,
    ("            copied.record(copies)\n        main.wait_event(copied)\n"
     "        results.append(work(x))\n",
     "            copied.record(copies)\n            results.append(work(x))\n"
     "        main.wait_event(copied)\n"),
)


@overlap.mutant("new memory for each batch, given back too early", why="""
    The allocator knows the stream for which memory was asked: the copy stream. When `x` is gone, it
    gives the memory to the next copy, while the kernels of the other stream still read it. Either
    `x.record_stream(main)` tells it, or the buffers live as long as the loop.
    """)
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


@overlap.mutant("the plain loop", why="""
    This is the loop that is to be overtaken. Each copy comes from ordinary memory, the host waits for
    it, and copies and kernels alternate in one stream.
    """)
def pipeline(batches, work):
    return [work(batch.to("cuda")) for batch in batches]


class _Job:
    """Batches, and work on them: products in double precision."""

    def __init__(self, rows, products=1, seed=0):
        generator = torch.Generator().manual_seed(seed)
        self.batches = [torch.rand(n, 8, dtype=torch.float64, generator=generator) for n in rows]
        self.matrix = torch.full((8, 8), 1 / 8, dtype=torch.float64, device="cuda")
        self.products = products

    def work(self, x):
        """As many products as asked for."""
        for _ in range(self.products):
            x = x @ self.matrix
        return x

    def plain(self):
        """The loop without any overlap."""
        return [self.work(batch.to("cuda")) for batch in self.batches]


def _sums(results):
    """A few digits of each result: its shape and the sum of its elements."""
    return [(*result.shape, round(result.sum().item(), 3)) for result in results]


def _results(f, rows, products=1):
    with torch.cuda.simulate(model=SLOW, races="ignore"):
        job = _Job(rows, products)
        results = f(iter(job.batches), job.work)
        return [str(r.device.type) for r in results], _sums(results)


def _races(f, rows, products=1, stream=False, fresh=False):
    """What the detector finds, in words."""
    with torch.cuda.simulate(model=SLOW, races="list") as sim:
        job = _Job(rows, products)
        torch.cuda.synchronize()
        ones = [torch.ones(n, 8, dtype=torch.float64, device="cuda") for n in rows[: 0 if fresh else 2]]
        older = [job.work(x) for x in ones]
        own = torch.cuda.Stream()
        own.wait_stream(torch.cuda.current_stream())
        del ones, older  # their memory is free again, and kernels still use it
        with torch.cuda.stream(own if stream else None):
            f(iter(job.batches), job.work)
        return sorted({_told(race) for race in sim.races})


def _told(race):
    place = "pinned memory" if "pinned" in race.memory else "device memory"
    place += " of a tensor that was freed" if "freed" in race.memory else ""
    one, other = (f"{a.what} {'writes' if a.writes else 'reads'}" for a in (race.first, race.second))
    return f"{place}: {one}, {other}"


def _speed(f, rows, products=1):
    """How many times faster than the plain loop, in simulated time."""
    times = []
    with torch.cuda.simulate(model=SLOW, races="ignore") as sim:
        job = _Job(rows, products)
        for run in (job.plain, lambda: f(iter(job.batches), job.work)):
            run()  # the allocator has its memory from here on
            torch.cuda.synchronize()
            began = sim.now
            run()
            torch.cuda.synchronize()
            times.append(sim.now - began)
    return round(times[0] / times[1], 2)


EVEN = [16384] * 10


@overlap.check("the results")
def _(f):
    yield case("3 batches of 4 rows: where the results are, their shapes and sums",
               lambda: _results(f, [4, 4, 4])).as_by(
        lambda: _results(overlap.answer.value, [4, 4, 4]), 1e-4)
    yield case("batches of 4, 4, 4 and 1 rows", lambda: _results(f, [4, 4, 4, 1])).as_by(
        lambda: _results(overlap.answer.value, [4, 4, 4, 1]), 1e-4)
    yield case("one batch", lambda: _results(f, [4])).as_by(
        lambda: _results(overlap.answer.value, [4]), 1e-4)
    yield case("no batch", lambda: _results(f, [])).gives(([], []))


@overlap.check("no race")
def _(f):
    silent = "Results are right in the simulator nevertheless. On a GPU they would sometimes be wrong."
    yield case("6 batches, kernels as long as copies: what the race detector finds",
               lambda: _races(f, [4096] * 6, fresh=True)).gives([]).means(silent)
    yield case("the same, where kernels still use memory of tensors that are gone",
               lambda: _races(f, [4096] * 6)).gives([]).means(silent)
    yield case("6 batches, kernels five times as long: what the race detector finds",
               lambda: _races(f, [4096] * 6, 5)).gives([]).means(silent)
    yield case("called in a stream of its own: what the race detector finds",
               lambda: _races(f, [4096] * 6, 2, stream=True)).gives([]).means(silent)


@overlap.check("at least 1.6 times the throughput")
def _(f):
    yield case("10 batches of 1 MB, kernels as long as copies from pinned memory: times faster "
               "than the plain loop", lambda: _speed(f, EVEN)).holds(
        "at least 1.6", lambda got: got >= 1.6)

    def streams():
        with torch.cuda.simulate(model=SLOW, races="ignore") as sim:
            job = _Job([512] * 4)
            began = sim.now
            f(iter(job.batches), job.work)
            spans = [span for span in sim.timeline.spans if span.start >= began]
            copies = {span.stream for span in spans if span.kind == "copy"}
            return len(copies), len(copies & {s.stream for s in spans if s.kind == "kernel"})

    yield case("streams with copies, and how many of these have kernels too", streams).gives((1, 0))


@overlap.check("any batches", hidden=True)
def _(f):
    def cases():
        for rows, products in (([3], 1), ([5, 5], 1), ([5, 2], 2), ([8] * 5, 3),
                               ([2400, 2400, 2400, 160, 2400, 56], 2), ([4800] * 7, 1)):
            said = f"batches of {rows} rows, {products} products each"
            yield case(f"{said}: what the race detector finds",
                       lambda r=rows, p=products: _races(f, r, p)).gives([])
            yield case(f"{said}: the results", lambda r=rows, p=products: _results(f, r, p)).as_by(
                lambda r=rows, p=products: _results(overlap.answer.value, r, p), 1e-4)

    yield every("several batches and lengths of kernels", cases)
