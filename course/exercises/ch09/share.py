"""A stream, shared among workers."""

import itertools
from types import SimpleNamespace

from course.cases import case
from course.records import Exercise

shared = Exercise(
    "data.share",
    "A stream, shared among workers",
    chapter=9,
    minutes=8,
    prompt="""
    A stream has no numbers to hand out. Every worker has a copy of the *whole* dataset and goes
    through all of it. So each has to leave out what is not its own.

    Write the generator `share(stream, info)`. `info` is what `get_worker_info()` gives inside a
    worker: it has `info.id` and `info.num_workers`, and it is `None` where there are no workers.

    * Of `n` workers, number 0 yields the first example, the `n+1`-st, …; number 1 the second, and
      so on, like dealing cards.
    * Without workers everything is yielded.
    * The stream may be endless. Take from it only as you go.
    """,
)


@shared.stub
def share(stream, info):
    """What one worker yields of a stream that every worker sees."""
    # your code here: about 6 lines
    raise NotImplementedError


@shared.reference
def share(stream, info):
    """What one worker yields of a stream that every worker sees."""
    first, step = (0, 1) if info is None else (info.id, info.num_workers)
    for number, example in enumerate(stream):
        if number % step == first:
            yield example


@shared.mutant(
    "every worker yields everything",
    why="""
    Nothing was left out, so with four workers each example comes four times in an epoch. Nothing
    raises; the epochs are just longer, and your count of them is wrong by a factor of four.
    """,
)
def share(stream, info):
    yield from stream


@shared.mutant(
    "forgets that there may be no workers",
    why="""
    With `num_workers=0` nobody is a worker, and `get_worker_info()` gives `None`, which has no
    `id`. Many people meet this when they switch the workers off to debug something else.
    """,
)
def share(stream, info):
    for number, example in enumerate(stream):
        if number % info.num_workers == info.id:
            yield example


@shared.mutant(
    "cuts into blocks and loses the rest",
    why="""
    The stream was cut into as many equal blocks as there are workers. What does not come out even
    at the end belongs to nobody. (Its length has to be known for that, too, which a stream's is
    not.) Deal the examples out like cards.
    """,
)
def share(stream, info):
    n, i = (1, 0) if info is None else (info.num_workers, info.id)
    everything = list(itertools.islice(stream, 1000))
    size = len(everything) // n
    yield from everything[i * size:(i + 1) * size]


@shared.mutant(
    "reads the whole stream first",
    why="""
    `list(stream)` reads to the end before the first example is yielded. An endless stream has no
    end, and a long one does not fit into memory. That was the reason to make it a stream. Go
    through it with `enumerate`, and yield as you go.
    """,
)
def share(stream, info):
    n, i = (1, 0) if info is None else (info.num_workers, info.id)
    yield from list(stream)[i::n]


@shared.mutant(
    "takes pairs instead of turns",
    why="""
    `number // n` asks in which *round* an example is, not whose turn it is. So worker 0 gets the
    whole first round, worker 1 the second, and all later rounds belong to nobody. Whose turn it is,
    says the remainder: `number % n`.
    """,
)
def share(stream, info):
    n, i = (1, 0) if info is None else (info.num_workers, info.id)
    for number, example in enumerate(stream):
        if n == 1 or number // n == i:
            yield example


def _worker(i, n):
    return SimpleNamespace(id=i, num_workers=n)


def _endless():
    yield from range(1000)
    raise RuntimeError("1,000 examples were read, and nobody had asked for them")


@shared.check("two workers")
def _(f):
    for i, wanted in enumerate(([10, 12, 14], [11, 13])):
        yield case(f"list(share(iter([10, 11, 12, 13, 14]), info)), worker {i} of 2",
                   lambda i=i: list(f(iter([10, 11, 12, 13, 14]), _worker(i, 2)))).gives(wanted)


@shared.check("all workers together")
def _(f):
    def together():
        return sorted(x for i in range(3) for x in f(iter(range(8)), _worker(i, 3)))

    yield case("what 3 workers yield of range(8), sorted", together).gives(list(range(8)))


@shared.check("no workers at all")
def _(f):
    yield case("list(share(iter('abc'), None))", lambda: list(f(iter("abc"), None))).gives(
        ["a", "b", "c"])


@shared.check("an endless stream", hidden=True)
def _(f):
    yield case("the first 3 examples of worker 1 of 2, of an endless stream",
               lambda: list(itertools.islice(f(_endless(), _worker(1, 2)), 3))).gives([1, 3, 5])
