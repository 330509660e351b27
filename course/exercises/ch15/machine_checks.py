"""The checks of `machine`."""

import numpy as np

from course.cases import case
from course.exercises.ch15.machine import machine
from course.properties import agrees


def _launched(Machine, kernel, blocks, threads, *arrays, times=1):
    """What a launch leaves: the arrays, the counts, the races; or the kind of error."""
    made = Machine()
    arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in arrays]
    for _ in range(times):
        made.launch(kernel, blocks, threads, *arrays)
    return {
        "arrays": [a.tolist() for a in arrays if isinstance(a, np.ndarray)],
        "reads, writes": (int(made.reads), int(made.writes)),
        "barriers": int(made.barriers),
        "races": [(name, tuple(int(i) for i in index)) for name, index in made.races],
    }


def _left(arrays, counts=(0, 0), barriers=0, races=()):
    return {"arrays": arrays, "reads, writes": counts, "barriers": barriers, "races": list(races)}


# -- kernels of the checks ------------------------------------------------------------------------


def add(at, x, y, out):
    i = at.block * at.threads + at.thread
    if i < out.shape[0]:
        out[i] = x[i] + y[i]


def scale(at, x, factor):
    x[at.thread, 1] = factor * x[at.thread, 0]


def reverse(at, x):
    kept = at.shared("kept", at.threads)
    kept[at.thread] = x[at.thread]
    yield
    x[at.thread] = kept[at.threads - 1 - at.thread]


def early(at, x):
    """Reads what others write, without a barrier."""
    kept = at.shared("kept", at.threads)
    kept[at.thread] = x[at.thread]
    x[at.thread] = kept[(at.thread + 1) % at.threads]


def turns(at, x):
    """Each thread in turn doubles the element, a barrier between any two."""
    for turn in range(at.threads):
        if at.thread == turn:
            x[at.block] = 2 * x[at.block] + at.thread
        yield


def half_wait(at, x):
    if at.thread < at.threads // 2:
        yield
    x[at.thread] = 1.0


def unequal(at, x):
    for _ in range(at.thread + 1):
        yield


def all_write(at, x):
    x[0] = 1.0


def all_read(at, x, out):
    out[at.block * at.threads + at.thread] = x[0]


def across_blocks(at, x):
    """Blocks hand something on through global memory, as if a barrier ordered them."""
    if at.block == 0:
        x[at.thread] = 5.0
    yield
    if at.block == 1:
        x[at.threads + at.thread] = x[at.thread]


def handed_on(at, x):
    """Thread 0 of block 0 writes what thread 1 of block 1 reads."""
    if (at.block, at.thread) == (0, 0):
        x[0] = 5.0
    if (at.block, at.thread) == (1, 1):
        x[1] = x[0]


def own_twice(at, x):
    x[at.thread] = 1.0
    x[at.thread] = x[at.thread] + 1.0


def read_then_write(at, x):
    """Reads the neighbour's element, then writes its own, with no barrier between."""
    value = x[(at.thread + 1) % at.threads]
    x[at.thread] = value + 1.0


def fresh(at, out):
    """Whether each block finds its shared memory empty, and the same for both names."""
    a, b = at.shared("a", 2, 2), at.shared("b", 1)
    if at.thread == 0:
        out[at.block, 0] = float(np.isnan(a[0, 0])) + float(np.isnan(b[0]))
        a[0, 0], b[0] = 1.0, 2.0
    yield
    if at.thread == 1:
        out[at.block, 1] = a[0, 0] + 10 * b[0] + 100 * at.shared("a", 2, 2)[0, 0]


def order(at, seen):
    n = int(seen[0])
    seen[0] = n + 1
    seen[1 + n] = 10 * at.block + at.thread


TEN = np.arange(10.0)


@machine.check("1 · threads")
def _(Machine):
    def called(blocks, threads):
        seen = []
        Machine().launch(lambda at, *rest: seen.append((at.block, at.thread, at.blocks, at.threads, rest)),
                         blocks, threads, 3, "text")
        return seen

    yield case("2 blocks of 3 threads: block, thread, blocks, threads and further arguments of each call",
               lambda: called(2, 3)).gives(
        [(b, t, 2, 3, (3, "text")) for b in range(2) for t in range(3)])


@machine.check("2 · memory")
def _(Machine):
    yield case("out = x + y, 10 elements, 3 blocks of 4 threads",
               lambda: _launched(Machine, add, 3, 4, TEN, TEN, np.zeros(10))).gives(
        _left([TEN.tolist(), TEN.tolist(), (2 * TEN).tolist()], (20, 10)))
    yield case("x[t, 1] = 3 · x[t, 0], 2 threads",
               lambda: _launched(Machine, scale, 1, 2, np.ones((2, 2)), 3.0)).gives(
        _left([[[1.0, 3.0], [1.0, 3.0]]], (2, 2)))
    yield case("two launches of out = x + y: counts over both",
               lambda: _launched(Machine, add, 1, 2, np.ones(2), np.ones(2), np.zeros(2), times=2)).gives(
        _left([[1.0, 1.0], [1.0, 1.0], [2.0, 2.0]], (8, 4)))

    def outside(index, write=False):
        def kernel(at, x):
            if write:
                x[index] = 1.0
            else:
                x[index]

        try:
            Machine().launch(kernel, 1, 1, np.zeros((2, 3)))
        except IndexError:
            return "IndexError"
        return "no error"

    for index, wanted in (((1, 2), "no error"), ((0, 3), "IndexError"), ((-1, 0), "IndexError"),
                          ((0, -3), "IndexError"), (1, "IndexError")):
        for write in (False, True):
            yield case(f"{'writing' if write else 'reading'} x[{index}], shape (2, 3)",
                       lambda i=index, w=write: outside(i, w)).gives(wanted)


@machine.check("3 · barriers")
def _(Machine):
    yield case("two blocks; thread 0, 1, 2 write the block's element in turn, a barrier between any two",
               lambda: _launched(Machine, turns, 2, 3, np.ones(2))).gives(
        _left([[12.0, 12.0]], (6, 6), 6))

    def ended(kernel):
        try:
            Machine().launch(kernel, 1, 4, np.zeros(4))
        except RuntimeError:
            return "RuntimeError"
        return "no error"

    yield case("a barrier inside of `if at.thread < 2`, 4 threads", lambda: ended(half_wait)).gives(
        "RuntimeError")
    yield case("thread t waits t + 1 times", lambda: ended(unequal)).gives("RuntimeError")


@machine.check("4 · shared memory")
def _(Machine):
    yield case("x reversed through shared memory, 4 threads",
               lambda: _launched(Machine, reverse, 1, 4, np.arange(4.0))).gives(
        _left([[3.0, 2.0, 1.0, 0.0]], (4, 4), 1))
    yield case("2 blocks of 2 threads: how many shared memories hold nan at first, and what thread 1 finds "
               "after thread 0 has written a = 1 and b = 2: a + 10 b + 100 a",
               lambda: _launched(Machine, fresh, 2, 2, np.zeros((2, 2)))).gives(
        _left([[[2.0, 121.0], [2.0, 121.0]]], (0, 4), 2))


    def below():
        def kernel(at):
            at.shared("s", 3)[-1] = 1.0

        try:
            Machine().launch(kernel, 1, 1)
        except IndexError:
            return "IndexError"
        return "no error"

    yield case("writing s[-1] of a shared memory with 3 elements", below).gives("IndexError")


@machine.check("5 · races")
def _(Machine):
    two = [("argument 0", (0,)), ("argument 0", (1,))]
    yield case("4 threads write x[0]", lambda: _launched(Machine, all_write, 1, 4, np.zeros(1))).gives(
        _left([[1.0]], (0, 4), 0, [("argument 0", (0,))]))
    yield case("4 threads read x[0], in 2 blocks",
               lambda: _launched(Machine, all_read, 2, 2, np.ones(1), np.zeros(4))).gives(
        _left([[1.0], [1.0] * 4], (4, 4)))
    yield case("each of 2 threads writes, reads and writes its own element",
               lambda: _launched(Machine, own_twice, 1, 2, np.zeros(2))).gives(
        _left([[2.0, 2.0]], (2, 4)))
    yield case("each of 2 threads reads the other's element and then writes its own, no barrier",
               lambda: _launched(Machine, read_then_write, 1, 2, np.zeros(2))).gives(
        _left([[1.0, 2.0]], (2, 2), 0, two))
    yield case("the races of the reversal, 2 threads, with a barrier and without one",
               lambda: (_launched(Machine, reverse, 1, 2, np.zeros(2))["races"],
                        _launched(Machine, early, 1, 2, np.zeros(2))["races"])).gives(
        ([], [("kept", (0,)), ("kept", (1,))]))


@machine.check("5 · races of blocks and launches")
def _(Machine):
    two = [("argument 0", (0,)), ("argument 0", (1,))]
    yield case("block 0 writes x[0] and x[1], and block 1 reads them after a barrier",
               lambda: _launched(Machine, across_blocks, 2, 2, np.zeros(4))["races"]).gives(two)
    yield case("thread 0 of block 0 writes x[0], thread 1 of block 1 reads it",
               lambda: _launched(Machine, handed_on, 2, 2, np.zeros(2))["races"]).gives(two[:1])
    yield case("block 0 and block 1 write x[0], one thread each",
               lambda: _launched(Machine, all_write, 2, 1, np.zeros(1))["races"]).gives(two[:1])
    yield case("two launches, one after the other, of one thread that writes x[0]",
               lambda: _launched(Machine, all_write, 1, 1, np.zeros(1), times=2)["races"]).gives([])


@machine.check("the order of threads", hidden=True)
def _(Machine):
    yield case("2 blocks of 3 threads each note their number, 10 · block + thread",
               lambda: _launched(Machine, order, 2, 3, np.zeros(7))["arrays"]).gives(
        [[6.0, 0.0, 1.0, 2.0, 10.0, 11.0, 12.0]])


def _made(steps):
    """A kernel from a list: ("read" or "write", memory, a factor, an offset) or "wait"."""

    def kernel(at, x):
        memories = {"x": x, "s": at.shared("s", x.shape[0])}
        for step in steps:
            if step == "wait":
                yield
                continue
            kind, name, factor, offset, only = step
            if only is not None and at.thread != only:
                continue
            index = (factor * at.thread + offset) % x.shape[0]
            if kind == "read":
                memories[name][index]
            else:
                memories[name][index] = float(at.thread)
        yield

    return kernel


def _drawn(draw):
    steps = []
    for _ in range(draw.randint(1, 7)):
        if draw.random() < 0.35:
            steps.append("wait")
        else:
            steps.append((draw.choice(("read", "write")), draw.choice("xs"), draw.choice((0, 1, 2)),
                          draw.randint(0, 3), draw.choice((None, None, 0, 1))))
    return steps, draw.choice((1, 1, 2)), draw.randint(1, 4)


@machine.check("any kernel", hidden=True)
def _(Machine):
    def run(kind):
        return lambda steps, blocks, threads: _launched(kind, _made(steps), blocks, threads, np.zeros(4))

    def tell(steps, blocks, threads):
        return (f"{blocks} blocks of {threads} threads, x and s with 4 elements; steps (kind, memory, factor "
                f"of the thread, offset, only for this thread): {steps}, and a last barrier")

    yield agrees(run(Machine), run(machine.answer.value), _drawn, count=80, tell=tell)
