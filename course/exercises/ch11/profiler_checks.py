"""The checks of `own_profiler`."""

import contextlib
import json

from course.cases import case
from course.exercises.ch11.common import Machine
from course.exercises.ch11.profiler import own_profiler
from course.properties import drawn, every
from mytorch.tensor import Tensor

# A program is a list: a number is work, a pair a block (name, program), "!" an error. A block
# named "try" catches the error of its program and is no span.
EXAMPLE = [("a", [1, ("b", [3]), 1, ("a", [1, ("b", [2]), 1]), 1])]


class Oops(Exception):
    """An error of a program."""


def _play(profiler, machine, program):
    for step in program:
        if isinstance(step, tuple) and step[0] == "try":
            with contextlib.suppress(Oops):
                _play(profiler, machine, step[1])
        elif isinstance(step, tuple):
            with profiler.span(step[0]):
                _play(profiler, machine, step[1])
        elif step == "!":
            raise Oops
        else:
            machine.work(float(step))


def _played(Profiler, program):
    """A profiler after a program, on a machine that starts at 100."""
    machine = Machine()
    machine.now = 100.0
    profiler = Profiler(machine.clock)
    error = None
    try:
        _play(profiler, machine, program)
    except Oops:
        error = "Oops"
    return profiler, machine, error


def _spans(Profiler, program):
    """All spans: name, start, end, and the position of the parent."""
    profiler, machine, error = _played(Profiler, program)
    spans = list(profiler.spans)
    numbers = {id(span): n for n, span in enumerate(spans)}
    found = [(s.name, s.start - 100, s.end - 100, None if s.parent is None else numbers[id(s.parent)])
             for s in spans]
    return found, machine.looks, error


def _shown(program):
    """A program as nested brackets."""
    said = [f"{s[0]}[{_shown(s[1])}]" if isinstance(s, tuple) else str(s) for s in program]
    return " ".join(said)


# What holds is said by a walk over the program itself: no profiler has a part in it.


def _told(program):
    """Spans as (name, start, end, parent, own), looks at the clock, and the error."""
    spans, now = [], 0.0

    def walk(steps, parent):
        nonlocal now
        for step in steps:
            if isinstance(step, tuple) and step[0] == "try":
                with contextlib.suppress(Oops):
                    walk(step[1], parent)
            elif isinstance(step, tuple):
                number = len(spans)
                spans.append([step[0], now, None, parent])
                try:
                    walk(step[1], number)
                finally:
                    spans[number][2] = now
            elif step == "!":
                raise Oops
            else:
                now += step

    try:
        walk(program, None)
        error = None
    except Oops:
        error = "Oops"
    return [tuple(span) for span in spans], 2 * len(spans), error


def _told_own(program):
    spans = _told(program)[0]
    own = [end - start for _, start, end, _ in spans]
    for _, start, end, parent in spans:
        if parent is not None:
            own[parent] -= end - start
    return own


def _told_rows(program):
    spans, own = _told(program)[0], _told_own(program)
    sums = {}
    for (name, start, end, parent), mine in zip(spans, own):
        row = sums.setdefault(name, [0, 0.0, 0.0])
        names = set()
        while parent is not None:
            names.add(spans[parent][0])
            parent = spans[parent][3]
        row[0] += 1
        row[1] += 0.0 if name in names else end - start
        row[2] += mine
    return sorted(((n, *row) for n, row in sums.items()), key=lambda row: (-row[3], row[0]))


def _told_trace(program):
    spans = _told(program)[0]
    first = spans[0][1] if spans else 0.0
    return {"traceEvents": [
        {"name": n, "ph": "X", "ts": 1e6 * (start - first), "dur": 1e6 * (end - start), "pid": 0,
         "tid": 0} for n, start, end, _ in spans]}


ERROR = [("try", [("a", [1, ("b", [2, "!"]), 5])]), ("c", [1])]


@own_profiler.check("1 · spans")
def _(Profiler):
    for program in ([("a", [2])], [1, ("a", [2]), ("b", [3])], EXAMPLE):
        yield case(f"{_shown(program)}: name, start, end, parent of each span; looks at the clock; error",
                   lambda p=program: _spans(Profiler, p)).gives(_told(program))
    for program in (ERROR, [("a", [1, "!"])]):
        yield case(f"{_shown(program)}, where ! is an error: the spans, looks at the clock, what reached "
                   "the outside", lambda p=program: _spans(Profiler, p)).gives(_told(program))


@own_profiler.check("1 · while a span is open", hidden=True)
def _(Profiler):
    def look():
        machine = Machine()
        profiler = Profiler(machine.clock)
        with profiler.span("a"):
            machine.work(1.0)
            with profiler.span("b"):
                pass
            first, second = profiler.spans
            return first.end, second.end, second.parent is first, second.start

    yield case("inside of a, after b has ended: the end of a, that of b, whether a is b's parent, "
               "b's start", look).gives((None, 1.0, True, 1.0))


@own_profiler.check("2 · own time")
def _(Profiler):
    for program in (EXAMPLE, [("a", [1, ("b", [1, ("c", [5])])])], [("a", [("b", [])]), ("a", [2])], ERROR):
        yield case(f"{_shown(program)}: own_times()",
                   lambda p=program: [float(t) for t in _played(Profiler, p)[0].own_times()]
                   ).gives(_told_own(program))

    def open_one():
        machine = Machine()
        profiler = Profiler(machine.clock)
        with profiler.span("a"), profiler.span("b"):
            machine.work(1.0)
            with profiler.span("c"):
                machine.work(2.0)
            return [float(t) for t in profiler.own_times()]

    yield case("own_times() while a and b are open, after c of 2 s", open_one).gives([2.0])


def _rows(Profiler, program):
    return [tuple(row) for row in _played(Profiler, program)[0].rows()]


@own_profiler.check("3 · table")
def _(Profiler):
    for program in (EXAMPLE, [("a", [1]), ("b", [5]), ("a", [1]), ("c", [5])],
                    [("a", [1, ("b", [1, ("a", [1, ("a", [4])])])])]):
        yield case(f"{_shown(program)}: rows()", lambda p=program: _rows(Profiler, p)).gives(
            _told_rows(program))
    yield case("no spans: rows()", lambda: _rows(Profiler, [])).gives([])


class Cell:
    """What some functions below return."""

    def __init__(self, pull=None):
        self.pull = pull


class _Workshop:
    """A machine, a profiler on it, and functions that take their time."""

    def __init__(self, Profiler):
        self.machine = Machine()
        self.profiler = Profiler(self.machine.clock)

    def add(self, a, b=2, *, c=3):
        """Adds."""
        self.machine.work(1.0)
        return a + b + c

    def fail(self):
        self.machine.work(1.0)
        raise Oops

    def make(self):
        """Returns something with a pull that takes 5 ticks."""
        self.machine.work(1.0)

        def pull(g):
            self.machine.work(5.0)
            return g + 1

        return Cell(pull)

    def rows(self):
        return [tuple(row) for row in self.profiler.rows()]


def _shop(run):
    """Run something with a workshop; an error is a text."""
    def with_one(Profiler):
        shop = _Workshop(Profiler)
        try:
            got = run(shop)
        except Oops:
            got = "Oops"
        return got, shop.rows()

    return with_one


@own_profiler.check("4 · functions")
def _(Profiler):
    def called(shop):
        add = shop.profiler.traced(shop.add, "sum")
        return add(1), add(1, 5), add(1, b=0, c=0), add.__name__, add.__doc__

    def failed(shop):
        shop.profiler.traced(shop.fail, "f")()

    def named(shop):
        return shop.profiler.traced(shop.add)(1, c=0)

    yield case("traced(add, 'sum') called as add(1), add(1, 5), add(1, b=0, c=0), its name and "
               "docstring; rows()", lambda: _shop(called)(Profiler)).gives(
        ((6, 9, 1, "add", "Adds."), [("sum", 3, 3.0, 3.0)]))
    yield case("traced(add) without a name", lambda: _shop(named)(Profiler)).gives(
        (3, [("_Workshop.add", 1, 1.0, 1.0)]))
    yield case("a function that raises Oops", lambda: _shop(failed)(Profiler)).gives(
        ("Oops", [("f", 1, 1.0, 1.0)]))


@own_profiler.check("5 · methods")
def _(Profiler):
    def attach(shop, broken=False):
        machine = shop.machine

        class Box:
            def __init__(self, size):
                self.size = size

            def __add__(self, other):
                machine.work(2.0)
                return Box(self.size + other.size)

            def double(self):
                machine.work(1.0)
                return self + self

        Box.__add__.__qualname__, Box.double.__qualname__ = "Box.__add__", "Box.double"
        before = dict(vars(Box))
        try:
            with shop.profiler.attached(Box, "__add__", "double"):
                size = Box(3).double().size
                if broken:
                    raise Oops
        except Oops:
            size = "Oops"
        Box(1).double()
        after = dict(vars(Box))
        return size, [n for n in ("__add__", "double") if after[n] is not before[n]]

    wanted = [("Box.__add__", 1, 2.0, 2.0), ("Box.double", 1, 3.0, 1.0)]
    for broken in (False, True):
        yield case("a box is doubled, which adds, with both methods attached"
                   + ("; then an error leaves the block" if broken else "")
                   + ", and doubled again after the block: its size, methods that are not put back; "
                   "rows()", lambda b=broken: _shop(lambda shop: attach(shop, b))(Profiler)).gives(
            (("Oops" if broken else 6, []), wanted))


@own_profiler.check("6 · backward")
def _(Profiler):
    def backward(shop):
        make = shop.profiler.traced(shop.make, "make")
        return make().pull(1)

    def nested(shop):
        inner = shop.profiler.traced(shop.make, "inner")
        outer = shop.profiler.traced(lambda: inner(), "outer")
        return outer().pull(1)

    def same(shop):
        made = shop.make()
        keep = shop.profiler.traced(lambda: made, "keep")
        for _ in range(3):
            keep()
        return made.pull(1)

    def none(shop):
        return shop.profiler.traced(lambda: Cell(), "leaf")().pull

    yield case("make() returns an object with a pull of 5 s, and pull(1) is called",
               lambda: _shop(backward)(Profiler)).gives(
        (2, [("make backward", 1, 5.0, 5.0), ("make", 1, 1.0, 1.0)]))
    yield case("outer returns what inner returns; then its pull(1)",
               lambda: _shop(nested)(Profiler)).gives(
        (2, [("inner backward", 1, 5.0, 5.0), ("inner", 1, 1.0, 1.0), ("outer", 1, 1.0, 0.0)]))
    yield case("a function that returns the same object three times; then its pull(1)",
               lambda: _shop(same)(Profiler)).gives(
        (2, [("keep backward", 1, 5.0, 5.0), ("keep", 3, 0.0, 0.0)]))
    yield case("an object whose pull is None", lambda: _shop(none)(Profiler)).gives(
        (None, [("leaf", 1, 0.0, 0.0)]))


def _own_package(Profiler):
    """Calls of each method of `mytorch`'s Tensor in a small program, and the gradient."""
    ticks = iter(range(10**6))
    profiler = Profiler(lambda: float(next(ticks)))
    names = ("__add__", "__mul__", "__matmul__", "sum", "tanh")
    before = {name: vars(Tensor)[name] for name in names}
    try:
        with profiler.attached(Tensor, *names):
            x = Tensor([[1.0, 2.0]], requires_grad=True)
            w = Tensor([[0.5], [-0.25]], requires_grad=True)
            y = (x @ w).tanh() * 3.0 + x.sum()
            y.sum().backward()
    finally:  # whatever an answer does, the next one finds the methods as they were
        for name, method in before.items():
            setattr(Tensor, name, method)
    return {row[0]: row[1] for row in profiler.rows()}, x.grad.tolist()


@own_profiler.check("6 · your own package")
def _(Profiler):
    yield case("((x @ w).tanh() * 3 + x.sum()).sum().backward() with mytorch: calls by name, and x.grad",
               lambda: _own_package(Profiler)).gives((
        {f"Tensor.{n}{b}": c for n, c in (("__add__", 1), ("__mul__", 1), ("__matmul__", 1), ("sum", 2),
                                          ("tanh", 1)) for b in ("", " backward")}, [[2.5, 0.25]]))


@own_profiler.check("7 · trace")
def _(Profiler):
    for program in ([1, ("a", [2])], EXAMPLE, [("a", [0.25]), 3, ("b", [])]):
        yield case(f"{_shown(program)}: chrome()",
                   lambda p=program: _played(Profiler, p)[0].chrome()).gives(_told_trace(program))
    yield case("whether json can write and read the trace",
               lambda: _same_as_json(_played(Profiler, EXAMPLE)[0].chrome())).gives(True)
    yield case("no spans: chrome()", lambda: _played(Profiler, [])[0].chrome()).gives(
        {"traceEvents": []})

    def open_one():
        machine = Machine()
        profiler = Profiler(machine.clock)
        machine.work(4.0)
        with profiler.span("a"):
            machine.work(1.0)
            with profiler.span("b"):
                machine.work(2.0)
            return profiler.chrome()

    yield case("chrome() while a, which began 1 s before b, is open", open_one).gives({"traceEvents": [
        {"name": "b", "ph": "X", "ts": 1e6, "dur": 2e6, "pid": 0, "tid": 0}]})


def _same_as_json(trace):
    return json.loads(json.dumps(trace)) == trace


def _program(draw, depth=0):
    """Blocks inside of blocks, some work, now and then an error that is caught or not."""
    steps = []
    for _ in range(draw.randint(0 if depth else 1, 3)):
        what = draw.random()
        if what < 0.5 and depth < 4:
            name = draw.choice(("a", "b", "c", "try"))
            steps.append((name, _program(draw, depth + 1)))
        elif what < 0.57:
            steps.append("!")
        else:
            steps.append(draw.randint(1, 4))
    return steps


@own_profiler.check("any program", hidden=True)
def _(Profiler):
    def hold():
        for make in drawn(lambda draw: (_program(draw),), 60, 3):
            (program,) = make()
            said = _shown(program)
            yield case(f"{said}: the spans, looks at the clock, error",
                       lambda p=program: _spans(Profiler, p)).gives(_told(program))
            yield case(f"{said}: own_times()",
                       lambda p=program: [float(t) for t in _played(Profiler, p)[0].own_times()]
                       ).gives(_told_own(program))
            yield case(f"{said}: rows()", lambda p=program: _rows(Profiler, p)).gives(
                _told_rows(program))
            yield case(f"{said}: chrome()", lambda p=program: _played(Profiler, p)[0].chrome()
                       ).gives(_told_trace(program))

    yield every("60 random programs", hold)
