"""Fetch ahead, and keep the order."""

import itertools

from course.cases import case
from course.properties import agrees
from course.records import Exercise
from toytorch.viz.lessons.loader_steps import Clocked, run

ordered = Exercise(
    "data.in_order",
    "Fetch ahead, and keep the order",
    chapter=9,
    minutes=25,
    prompt="""
    Workers fetch batches while your loop computes, and they may finish in any order. Your loop
    needs the batches **in the order of the indices**. Write the generator `in_order(pool, indices,
    ahead)`:

    | tool | what it does |
    | --- | --- |
    | `len(pool)` | how many workers there are, numbered from 0 |
    | `pool.ask(worker, order, index)` | has a worker fetch the batch of `index`; returns at once |
    | `pool.hear()` | waits for any worker and gives `(worker, order, batch)` |
    | `indices` | an iterator over what to ask for, perhaps a long one |

    `order` is the batch's running number, 0, 1, 2, …

    1. Ask every worker in turn, `ahead` times around: each then has `ahead` jobs.
    2. Call `hear`. Keep a batch that comes too early in a dictionary.
    3. When the next batch in order is there, ask **its** worker for one more, then yield it. So
       at most `ahead` batches per worker are ever under way or waiting.
    4. Stop when everything that was asked for has been yielded.

    For example two workers, `ahead=1`, four indices a to d, and a takes long:

    | what happens | under way | waits | yielded |
    | --- | --- | --- | --- |
    | `ask(0, 0, a)`, `ask(1, 1, b)` | a, b | | |
    | `hear()` → `(1, 1, b)`: too early | a | b | |
    | `hear()` → `(0, 0, a)`: next. `ask(0, 2, c)` | c | b | a |
    | b is there, from worker 1. `ask(1, 3, d)` | c, d | | b |
    | `hear()` → `(0, 2, c)`: next | d | | c |
    | `hear()` → `(1, 3, d)`: next | | | d |

    `indices` may be endless: take the next one only when you ask for it.
    """,
    without=("toytorch.utils.data.pool.batches",),
    hints=(
        """
        You need four things: an iterator of pairs (order, index) for what to ask next, the number
        of jobs that were asked for, the number of batches that were yielded, and a dictionary for
        batches that arrived too early.

        Write a small inner function that asks one worker for one more job, if there is one. Use it
        in two places: at the beginning, and each time a batch is yielded.
        """,
        """
        Two workers, `ahead = 1`, four indices a, b, c, d; a takes 5 to fetch, the others 1:

        | what happens | under way | waiting in the dictionary | yielded |
        | --- | --- | --- | --- |
        | `ask(0, 0, a)`, `ask(1, 1, b)` | a, b | | |
        | `hear()` gives (1, 1, b): too early | a | 1: b | |
        | `hear()` gives (0, 0, a): it is next | | 1: b | |
        | worker 0 brought a: `ask(0, 2, c)` | c | 1: b | a |
        | number 1 is there already; worker 1: `ask(1, 3, d)` | c, d | | b |
        | `hear()` gives (0, 2, c): it is next; no index is left | d | | c |
        | `hear()` gives (1, 3, d) | | | d |

        Asked 4, yielded 4: the generator ends.
        """,
        """
        ```python
        def in_order(pool, indices, ahead):
            jobs, asked, given, arrived = enumerate(indices), 0, 0, {}

            def ask(worker):
                nonlocal asked
                job = next(jobs, None)
                if job is not None:
                    ...

            for _ in range(ahead):
                ...
            while given < asked:
                while given not in arrived:
                    worker, order, batch = pool.hear()
                    ...
                worker, batch = arrived.pop(given)
                ...
                yield batch
        ```
        """,
    ),
)


@ordered.reference(stub="your code here: about 18 lines")
def in_order(pool, indices, ahead):
    """Yield the batches of indices in order; workers fetch ahead."""
    jobs, asked, given, arrived = enumerate(indices), 0, 0, {}

    def ask(worker):
        nonlocal asked
        job = next(jobs, None)
        if job is not None:
            pool.ask(worker, *job)
            asked += 1

    for _ in range(ahead):
        for worker in range(len(pool)):
            ask(worker)
    while given < asked:
        while given not in arrived:
            worker, order, batch = pool.hear()
            arrived[order] = worker, batch
        worker, batch = arrived.pop(given)
        given += 1
        ask(worker)
        yield batch


ordered.changed(
    "hands over what comes first",
    """
    Batches were yielded as they arrived. The order then depends on which worker happens to be
    quick, so a run with the same seed is not the same run. What comes too early has to wait: keep
    it under its index, and yield number 0, then 1, and so on. (PyTorch offers this order as
    `in_order=False`.)
    """,
    (
        "jobs, asked, given, arrived = enumerate(indices), 0, 0, {}",
        "jobs, asked, given = enumerate(indices), 0, 0",
    ),
    (
        "        while given not in arrived:\n"
        "            worker, order, batch = pool.hear()\n"
        "            arrived[order] = worker, batch\n"
        "        worker, batch = arrived.pop(given)",
        "        worker, _, batch = pool.hear()",
    ),
)


@ordered.mutant(
    "asks for everything at once",
    why="""
    All jobs were handed out at the beginning. The batches come in the right order, but workers do
    not stop when your loop falls behind: in the end the whole data set lies in memory. Ask for one
    more only when one has been used, so that never more than `ahead` per worker exist.
    """,
)
def in_order(pool, indices, ahead):
    asked, arrived = 0, {}
    for order, index in enumerate(indices):
        pool.ask(order % len(pool), order, index)
        asked += 1
    for given in range(asked):
        while given not in arrived:
            _, order, batch = pool.hear()
            arrived[order] = batch
        yield arrived.pop(given)


ordered.changed(
    "asks again as soon as a batch arrives",
    """
    A worker got its next job when its batch *arrived*, not when the batch was used. As long as the
    oldest batch is late, the other workers go on, and everything they fetch waits in memory. Ask
    for more when a batch is handed over.
    """,
    (
        "            arrived[order] = worker, batch\n"
        "        worker, batch = arrived.pop(given)",
        "            arrived[order] = batch\n"
        "            ask(worker)\n"
        "        batch = arrived.pop(given)",
    ),
    (
        "\n"
        "        ask(worker)",
        "",
    ),
)


@ordered.mutant(
    "asks for one, waits for it, asks for the next",
    why="""
    Only one batch was fetched at a time. While your loop computes, no worker fetches, and while one
    worker fetches, the others wait. The batches are right, but no time is saved. Hand out `ahead`
    jobs per worker **before** you listen for the first time.
    """,
)
def in_order(pool, indices, ahead):
    for order, index in enumerate(indices):
        pool.ask(order % len(pool), order, index)
        yield pool.hear()[2]


@ordered.mutant(
    "loses what was under way at the end",
    why="""
    The generator ended with the indices. At that moment several batches have been asked for and not
    yet been handed over, and they are lost, at the end of every epoch. Go on until everything that
    was *asked* for has been *yielded*.
    """,
)
def in_order(pool, indices, ahead):
    jobs, arrived = enumerate(indices), {}
    for _ in range(ahead):
        for worker in range(len(pool)):
            job = next(jobs, None)
            if job is not None:
                pool.ask(worker, *job)
    for given, job in enumerate(jobs):
        while given not in arrived:
            worker, order, batch = pool.hear()
            arrived[order] = worker, batch
        worker, batch = arrived.pop(given)
        pool.ask(worker, *job)
        yield batch


@ordered.mutant(
    "waits for the whole round",
    why="""
    A round of jobs was handed out, all of it awaited and used, and only then the next round handed
    out. So at the end of each round the workers wait, and at its beginning your loop waits. Ask for
    one more each time one is handed over. Then all workers stay busy.
    """,
)
def in_order(pool, indices, ahead):
    jobs, more = enumerate(indices), True
    while more:
        arrived, asked = {}, 0
        for _ in range(ahead):
            for worker in range(len(pool)):
                job = next(jobs, None)
                if job is not None:
                    pool.ask(worker, *job)
                    asked += 1
        while len(arrived) < asked:
            _, order, batch = pool.hear()
            arrived[order] = batch
        for order in sorted(arrived):
            yield arrived[order]
        more = asked > 0


def _fetched(f, times, workers, ahead):
    words = f"batches that take {times} to fetch, {workers} workers, ahead={ahead}"
    return case(words, lambda: list(f(Clocked(times, workers), iter(range(len(times))),
                                      ahead)))


@ordered.check("in order")
def _(f):
    yield _fetched(f, [1, 1, 1, 1], 2, 2).gives([0, 1, 2, 3])
    yield _fetched(f, [5, 1, 1, 3, 1, 1], 2, 2).gives([0, 1, 2, 3, 4, 5])


@ordered.check("all of them")
def _(f):
    yield _fetched(f, [2, 1, 2, 1, 2, 1, 2], 3, 1).gives(list(range(7)))
    yield _fetched(f, [1, 1], 4, 2).gives([0, 1])
    yield _fetched(f, [], 2, 2).gives([])


@ordered.check("no more than ahead for each worker")
def _(f):
    def most():
        pool = Clocked([9] + [1] * 19, 2)
        found = f(pool, iter(range(20)), 2)
        return max(len(pool.jobs) - given for given, _ in enumerate(found, 1))

    text = "batches asked for and not yet used, at most: 20 batches, the first is slow, 2 workers"
    yield case(text + ", ahead=2", most).holds("4 or fewer", lambda got: got <= 4)


@ordered.check("workers work while your loop does", hidden=True)
def _(f):
    def end():
        return run([2] * 12, 2, 2, 1.0, True, f).now

    text = "time for 12 batches that take 2 to fetch and 1 to use, 2 workers, ahead=2"
    yield case(text, end).holds("14 or less", lambda got: got <= 14)


ordered.changed(
    "asks after it has yielded",
    """
    `yield` hands the batch over and stops there until the loop comes back for the next one. All
    that time the worker had no new job. Ask for one more first, then yield.
    """,
    ("        ask(worker)\n        yield batch", "        yield batch\n        ask(worker)"),
)

ordered.changed(
    "reads all indices first",
    """
    `list(indices)` goes through all of them before the first batch is asked for. A sampler may be
    endless, and a long one costs memory. Take one with `next` when you ask.
    """,
    ("enumerate(indices), 0", "enumerate(list(indices)), 0"),
)

ordered.changed(
    "one ahead, whatever is said",
    """
    Every worker got one job at the beginning, whatever `ahead` is. A worker that is done early then
    waits until your loop has used its batch.
    """,
    ("for _ in range(ahead):", "for _ in range(1):"),
)

ordered.changed(
    "one worker gets all its jobs first",
    """
    Worker 0 got the first `ahead` jobs, worker 1 the next ones. The second batch then has to wait
    for the first although another worker is free. Go round all workers, `ahead` times.
    """,
    (
        "    for _ in range(ahead):\n        for worker in range(len(pool)):",
        "    for worker in range(len(pool)):\n        for _ in range(ahead):",
    ),
)

ordered.changed(
    "asks the worker that was heard last",
    """
    The next job went to the worker that answered last, not to the one whose batch was handed over.
    One worker may then get more and more jobs, and another none. Keep the worker beside its batch.
    """,
    ("        worker, batch = arrived.pop(given)", "        _, batch = arrived.pop(given)"),
)

ordered.changed(
    "always asks the first worker",
    """
    All later jobs went to worker 0, so that the others work no more after the first round. Ask the
    worker whose batch was handed over.
    """,
    ("        ask(worker)\n        yield", "        ask(0)\n        yield"),
)


class _Noted(Clocked):
    """A pool that notes in order what was asked for, and what was yielded."""

    def ask(self, worker, order, index):
        self.notes.append(f"ask({worker}, {order}, {index})")
        super().ask(worker, order, index)


def _notes(f):
    def run(times, workers, ahead):
        pool = _Noted(times, workers)
        pool.notes = notes = []
        for batch in f(pool, iter(range(len(times))), ahead):
            notes.append(f"yield {batch}")
            pool.now += 1.0  # the loop uses it
        return notes

    return run


@ordered.check("who is asked, and when")
def _(f):
    def tell(times, workers, ahead):
        return f"batches that take {times} to fetch, {workers} workers, ahead={ahead}: what happens"

    yield agrees(
        _notes(f), _notes(ordered.answer.value),
        lambda draw: ([draw.randint(1, 5) for _ in range(draw.randint(0, 8))], draw.randint(1, 3),
                      draw.randint(1, 3)),
        count=80, tell=tell)

    def endless():
        return list(itertools.islice(f(Clocked([1] * 100, 2), _counted(), 2), 4))

    yield case("the first 4 batches, where the indices have no end", endless).gives([0, 1, 2, 3])


def _counted():
    yield from range(100)
    raise RuntimeError("100 indices were read, and 4 batches were asked for")
