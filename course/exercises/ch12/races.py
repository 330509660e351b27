"""Which accesses nothing puts in order."""

from course.cases import call
from course.properties import agrees, untouched
from course.records import Exercise

ordered = Exercise(
    "accelerators.races",
    "A race detector",
    chapter=12,
    minutes=25,
    prompt="""
    Streams do not wait for each other. Two accesses of the same memory are a **race** if at least
    one of them writes and nothing makes one wait for the other, whatever the times were in this
    run. Write `races(log)`. The log lists what a program asked for, in the order in which the host
    asked. Each entry is `(what, actor, thing)`, and an actor is `"host"` or a stream's name:

    | entry | what it says |
    | --- | --- |
    | `("read", actor, memory)` | the actor reads that memory |
    | `("write", actor, memory)` | the actor writes to it |
    | `("record", actor, event)` | the event marks all that the actor was given so far |
    | `("wait", actor, event)` | what the actor is given from now on waits for the event |

    Three rules say what is certainly done before what:

    * What one actor does, it does in the order of the log.
    * An actor that waits for an event knows all that was done when it was **last recorded**, and
      all that the recording actor knew then, also from others. Waiting for an event that was never
      recorded does nothing.
    * The host asks for everything. So a stream knows, at each of its entries, all that the *host*
      knows by then. The host knows nothing of a stream until it waits for one of its events.

    Return the races as a list of pairs `(i, j)` of positions in the log, `i < j`, sorted.

    For example, a copy that another stream reads without waiting, and then with:

    | | entry | |
    | --- | --- | --- |
    | 0 | `("write", "copies", "x")` | |
    | 1 | `("read", "main", "x")` | a race with 0 |
    | 2 | `("record", "copies", "copied")` | |
    | 3 | `("wait", "main", "copied")` | |
    | 4 | `("read", "main", "x")` | ordered after 0 |

    The result is `[(0, 1)]`.
    """,
    hints=(
        """
        Give each actor a dictionary, its *vector clock*: for every actor, the position of the latest
        access of that actor that is certainly done. As one actor's accesses are done in order, one
        position says it for all earlier ones. An event keeps a copy of a clock. Waiting takes, for each
        actor, the larger of both positions.
        """,
        """
        The clocks of the example. A stream's own accesses are in its clock as well:

        | entry | clock of copies | clock of main | the event |
        | --- | --- | --- | --- |
        | 0 write x, copies | {copies: 0} | | |
        | 1 read x, main | {copies: 0} | {main: 1} | |
        | 2 record, copies | {copies: 0} | {main: 1} | {copies: 0} |
        | 3 wait, main | {copies: 0} | {main: 1, copies: 0} | {copies: 0} |
        | 4 read x, main | {copies: 0} | {main: 4, copies: 0} | {copies: 0} |

        At entry 1, main knows nothing of copies: access 0 is not certainly done, which is a race. At entry
        4 it knows that copies has come to position 0.
        """,
        """
        ```python
        def races(log):
            clocks, events, accesses, found = {"host": {}}, {}, [], []

            def learn(clock, other):
                for actor, position in other.items():
                    clock[actor] = ...

            for n, (what, actor, thing) in enumerate(log):
                clock = clocks.setdefault(actor, {})
                learn(clock, ...)
                if what == "record":
                    events[thing] = ...
                elif what == "wait":
                    learn(clock, ...)
                else:
                    for m, kind, who, memory in accesses:
                        known = ...
                        writes = ...
                        if ...:
                            found.append((m, n))
                    clock[actor] = n
                    accesses.append((n, what, actor, thing))
            return sorted(found)
        ```
        """,
    ),
)


@ordered.reference(stub="your code here: about 22 lines")
def races(log):
    """Positions of accesses that nothing puts in order, one a write."""
    clocks, events, accesses, found = {"host": {}}, {}, [], []

    def learn(clock, other):
        for actor, position in other.items():
            clock[actor] = max(clock.get(actor, -1), position)

    for n, (what, actor, thing) in enumerate(log):
        clock = clocks.setdefault(actor, {})
        learn(clock, clocks["host"])
        if what == "record":
            events[thing] = dict(clock)
        elif what == "wait":
            learn(clock, events.get(thing, {}))
        else:
            for m, kind, who, memory in accesses:
                known = clock.get(who, -1) >= m or who == actor
                writes = "write" in (kind, what)
                if memory == thing and writes and not known:
                    found.append((m, n))
            clock[actor] = n
            accesses.append((n, what, actor, thing))
    return sorted(found)


ordered.changed(
    "an event that goes on",
    """
    The event kept the clock itself and not a copy. Whatever the stream was given after `record` then
    counts as marked too. An event marks what was queued *before* it: `dict(clock)` keeps that.
    """,
    ("events[thing] = dict(clock)", "events[thing] = clock"),
)

ordered.changed(
    "knows only whom it waited for",
    """
    The waiting actor learned about the recording stream alone. If that stream had itself waited for
    a third one, then the third one's work is done as well: order is transitive. Take over the whole
    clock of the event.
    """,
    ("            events[thing] = dict(clock)\n",
     "            events[thing] = {actor: clock[actor]} if actor in clock else {}\n"),
)

ordered.changed(
    "two reads are a race",
    """
    Two reads of the same memory were reported. They disturb nothing, in whatever order they come. At
    least one of the two has to write.
    """,
    (" and writes and", " and"),
)

ordered.changed(
    "only what is written first counts",
    """
    A read before a write was left out. If the write does not wait for the read, it may come first,
    and then the read gets the new values. A buffer that is filled again while a kernel still reads
    it is the most common race in pipelines.
    """,
    ('"write" in (kind, what)', 'kind == "write"'),
)

ordered.changed(
    "streams do not know what the host knows",
    """
    The host waited for an event and then asked for a kernel. The kernel cannot start before the host
    asks, so it comes after everything that the host has waited for.
    """,
    ('        learn(clock, clocks["host"])\n', ""),
)

ordered.changed(
    "all streams begin where the host asks",
    """
    Each access was taken as known to the host. The host only *asks* for the work of a stream, and it
    is done later. What a stream has done, the host knows once it waits.
    """,
    ("            clock[actor] = n\n", '            clock[actor] = clocks["host"][actor] = n\n'),
)

ordered.changed(
    "compares with the last access only",
    """
    Each access was compared with the latest one of that memory. Two streams may both still read a
    buffer when a third one writes to it: that is a race with each of them. Keep all accesses.
    """,
    ("for m, kind, who, memory in accesses:",
     "for m, kind, who, memory in [a for a in accesses if a[3] == thing][-1:]:"),
)

ordered.changed(
    "waiting forgets",
    """
    The clock was replaced by the event's. The event is older in some places: what the actor had
    learned elsewhere is then lost, and races are reported that are none. Take the larger position
    for each actor.
    """,
    ("clock[actor] = max(clock.get(actor, -1), position)", "clock[actor] = position"),
)

ordered.changed(
    "the first record counts",
    """
    An event can be recorded again, as a pipeline does in each round. Who waits, waits for its latest
    mark.
    """,
    ("events[thing] = dict(clock)", "events.setdefault(thing, dict(clock))"),
)

ordered.changed(
    "an event orders both sides",
    """
    The recording stream learned from the waiting one as well. A wait orders one direction only: the
    recording stream knows nothing of who waits, and goes on.
    """,
    ("            learn(clock, events.get(thing, {}))\n",
     "            learn(clock, events.get(thing, {}))\n"
     "            for other in [a for w, a, t in log[:n] if (w, t) == (\"record\", thing)][-1:]:\n"
     "                learn(clocks[other], clock)\n"),
)


ordered.changed(
    "only writes are a race",
    """
    Only pairs of two writes were reported. A read beside a write is a race as well: what the reader
    gets depends on which of the two comes first.
    """,
    ('"write" in (kind, what)', 'kind == what == "write"'),
)

ordered.changed(
    "memory does not matter",
    """
    Accesses of *different* memory were reported. Two streams may do whatever they like to different
    tensors.
    """,
    ("if memory == thing and writes and not known:", "if writes and not known:"),
)

ordered.changed(
    "who has waited once knows everything",
    """
    It was asked whether the actor knows anything of the other one. It knows what was done when the
    event was recorded. What the other did later, it does not know: compare positions.
    """,
    ("known = clock.get(who, -1) >= m or who == actor", "known = who in clock or who == actor"),
)


@ordered.check("two streams")
def _(f):
    write, read = ("write", "copies", "x"), ("read", "main", "x")
    yield call(f, [write, read]).gives([(0, 1)])
    yield call(f, [("read", "main", "x"), ("write", "copies", "x")]).gives([(0, 1)])
    yield call(f, [("read", "main", "x"), ("read", "copies", "x")]).gives([])
    yield call(f, [write, ("read", "main", "y")]).gives([])
    yield call(f, [write, ("read", "copies", "x"), ("write", "copies", "x")]).gives([])
    yield call(f, []).gives([])


COPIED = [("write", "copies", "x"), ("record", "copies", "e"), ("wait", "main", "e"),
          ("read", "main", "x")]


@ordered.check("events")
def _(f):
    yield call(f, COPIED).gives([])
    yield call(f, [("write", "copies", "x"), ("read", "main", "x"), ("record", "copies", "copied"),
                   ("wait", "main", "copied"), ("read", "main", "x")]).gives([(0, 1)])
    yield call(f, [("record", "copies", "e"), *COPIED[:1], *COPIED[2:]]).gives([(1, 3)])
    yield call(f, [("wait", "main", "e"), COPIED[0], COPIED[1], COPIED[3]]).gives([(1, 3)])
    yield call(f, [*COPIED, ("write", "copies", "x")]).gives([(3, 4)])
    yield call(f, [*COPIED[:2], *COPIED]).gives([])


@ordered.check("a chain of three streams")
def _(f):
    chain = [("write", "a", "x"), ("record", "a", 1), ("wait", "b", 1), ("record", "b", 2),
             ("wait", "c", 2)]
    yield call(f, [*chain, ("write", "c", "x")]).gives([])
    yield call(f, [*chain, ("write", "c", "x"), ("write", "b", "x")]).gives([(5, 6)])
    yield call(f, [("read", "a", "x"), ("read", "b", "x"), ("write", "c", "x")]).gives(
        [(0, 2), (1, 2)])


@ordered.check("the host", hidden=True)
def _(f):
    fill = ("write", "host", "pinned")
    copy = ("read", "copies", "pinned")
    yield call(f, [fill, copy]).gives([])
    yield call(f, [fill, copy, fill]).gives([(1, 2)])
    yield call(f, [fill, copy, ("record", "copies", 1), ("wait", "host", 1), fill]).gives([])
    yield call(f, [("write", "a", "x"), ("record", "a", 1), ("wait", "host", 1),
                   ("read", "b", "x")]).gives([])


def _by_hand(log):
    """The same by a search in a graph: an arrow from each entry to those that come after it."""
    after = {n: set() for n in range(len(log))}
    for n, (_, actor, _) in enumerate(log):
        for who in {actor, "host"}:  # the entry before of the same actor, and of the host
            before = [m for m in range(n) if log[m][1] == who]
            if before:
                after[before[-1]].add(n)
        if log[n][0] == "wait":
            marks = [m for m in range(n) if (log[m][0], log[m][2]) == ("record", log[n][2])]
            if marks:
                after[marks[-1]].add(n)
    reached = {}
    for n in reversed(range(len(log))):
        reached[n] = after[n].union(*(reached[m] for m in after[n]))
    return [(i, j) for i in range(len(log)) for j in range(i + 1, len(log))
            if {log[i][0], log[j][0]} <= {"read", "write"} and log[i][2] == log[j][2]
            and "write" in (log[i][0], log[j][0]) and j not in reached[i]]


def _drawn(draw):
    log = []
    for _ in range(draw.randint(1, 14)):
        what = draw.choice(("read", "write", "write", "record", "wait"))
        names = ("x", "y") if what in ("read", "write") else ("e", "f")
        log.append((what, draw.choice(("host", "a", "b", "c")), draw.choice(names)))
    return (log,)


@ordered.check("any program")
def _(f):
    yield agrees(f, _by_hand, _drawn, count=150)
    yield untouched(f, _drawn)
