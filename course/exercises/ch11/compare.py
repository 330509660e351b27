"""How many times as long: a comparison with its spread."""

import time
from statistics import median

from course.cases import case
from course.exercises.ch11.common import Machine
from course.properties import agrees
from course.records import Exercise

comparison = Exercise(
    "measure.compare",
    "How many times as long?",
    chapter=11,
    minutes=15,
    prompt="""
    Write `compare(first, second, repeats=9, clock=time.perf_counter)`: how many times as long does
    `second()` take as `first()`? Return three floats: the **median**, the smallest and the largest of
    `repeats` ratios.

    1. Call each function once without measuring it, `first` before `second`. First calls are special:
       memory comes from the operating system, code is loaded or compiled.
    2. In each of `repeats` rounds, measure both functions, one right after the other. Other programs
       come and go, and the processor changes its pace. Two measurements side by side meet nearly the
       same machine.
    3. Let `first` begin in rounds 0, 2, 4, … and `second` in rounds 1, 3, 5, …. If the machine gets
       slower and slower, neither of them is always the later one.
    4. Each round gives one ratio, the time of `second` divided by the time of `first`.

    `clock()` gives seconds. Look at it right before and right after each call that you measure, and at
    no other time. `median` is imported.
    """,
    hints=(
        """
        Keep the two functions in a tuple and work with their positions 0 and 1. A round measures both
        positions in one order or the other, and stores each time at its position. The ratio is then the
        same expression in every round.
        """,
        """
        `repeats=2`, and a clock that gives 0, 2, 2, 8, 8, 15, 15, 18:

        | round | begins | clock before and after | time of |
        | --- | --- | --- | --- |
        | 0 | `first` | 0 and 2 | `first`: 2 |
        | 0 | then `second` | 2 and 8 | `second`: 6 |
        | 1 | `second` | 8 and 15 | `second`: 7 |
        | 1 | then `first` | 15 and 18 | `first`: 3 |

        The ratios are 3 and 2.33. The result is their median 2.67, the smallest 2.33, the largest 3.
        """,
        """
        ```python
        def compare(first, second, repeats=9, clock=time.perf_counter):
            functions = first, second
            for f in functions:
                ...
            ratios = []
            for n in range(repeats):
                times = [0.0, 0.0]
                for place in ...:
                    began = clock()
                    ...
                    times[place] = ...
                ratios.append(...)
            return ...
        ```
        """,
    ),
)


@comparison.reference(stub="your code here: about 12 lines")
def compare(first, second, repeats=9, clock=time.perf_counter):
    """Median, least and largest ratio of the times, second by first."""
    functions = first, second
    for f in functions:
        f()
    ratios = []
    for n in range(repeats):
        times = [0.0, 0.0]
        for place in (0, 1) if n % 2 == 0 else (1, 0):
            began = clock()
            functions[place]()
            times[place] = clock() - began
        ratios.append(times[1] / times[0])
    return median(ratios), min(ratios), max(ratios)


@comparison.mutant("first all of one, then all of the other", why="""
    All rounds of `first` were measured before those of `second`. Whatever happens to the machine
    meanwhile then looks like a difference between the functions. Measure both in each round, and take
    the ratio of the two times that lie side by side.
    """)
def compare(first, second, repeats=9, clock=time.perf_counter):
    times = []
    for f in (first, second):
        f()
        times.append([])
        for _ in range(repeats):
            began = clock()
            f()
            times[-1].append(clock() - began)
    ratios = [b / a for a, b in zip(*times)]
    return median(ratios), min(ratios), max(ratios)


comparison.changed(
    "mean instead of median",
    """
    The mean of the ratios was taken. One round in which another program ran moves the mean as far as
    that round is long. The median stays where most of the rounds are.
    """,
    ("return median(ratios)", "return sum(ratios) / len(ratios)"),
)

comparison.changed(
    "measures the first calls as well",
    """
    The calls before the first round were left out. A first call asks the operating system for memory
    and loads code, so one round compares these costs, and the largest or the smallest ratio is far off.
    """,
    ("    for f in functions:\n        f()\n", ""),
)

comparison.changed(
    "the same one always begins",
    """
    `first` was measured first in every round. On a machine that gets slower, `second` then is the later
    one each time, and seems to take longer than it does. Let them take turns.
    """,
    ("(0, 1) if n % 2 == 0 else (1, 0)", "(0, 1)"),
)

comparison.changed(
    "the ratio upside down",
    """
    The time of `first` was divided by that of `second`. "How many times as long does `second` take"
    is the time of `second` divided by that of `first`.
    """,
    ("times[1] / times[0]", "times[0] / times[1]"),
)

comparison.changed(
    "the ratio of the best times",
    """
    The smallest time of each function was taken, and one ratio of these. The two may come from
    different rounds, and the ratio has no spread: nobody can say whether 1.1 means anything.
    """,
    ("    ratios = []\n", "    ratios, best = [], [float('inf')] * 2\n"),
    ("        ratios.append(times[1] / times[0])\n",
     "        best = [min(pair) for pair in zip(best, times)]\n"
     "        ratios.append(best[1] / best[0])\n"),
    ("return median(ratios), min(ratios), max(ratios)",
     "return ratios[-1], ratios[-1], ratios[-1]"),
)

comparison.changed(
    "the second one is measured with the first",
    """
    The clock was started once a round, so the second call of a round is measured together with the
    first one. Start anew before each call.
    """,
    ("        for place in (0, 1) if n % 2 == 0 else (1, 0):\n            began = clock()\n",
     "        began = clock()\n        for place in (0, 1) if n % 2 == 0 else (1, 0):\n"),
)

comparison.changed(
    "the spread around the median",
    """
    The second and third result were distances from the median. The smallest and the largest ratio
    themselves are asked for: they can be compared with another measurement's.
    """,
    ("    return median(ratios), min(ratios), max(ratios)",
     "    middle = median(ratios)\n    return middle, middle - min(ratios), max(ratios) - middle"),
)


def _compared(f, machine, ticks=(2.0, 6.0), repeats=9):
    """What an answer says of two functions on a machine."""
    tasks = [machine.task(name, t) for name, t in zip(("first", "second"), ticks)]
    return tuple(f(*tasks, repeats=repeats, clock=machine.clock))


@comparison.check("a quiet machine")
def _(f):
    yield case("2 and 6 ticks", lambda: _compared(f, Machine())).gives((3.0, 3.0, 3.0))
    yield case("5 and 4 ticks, 3 rounds", lambda: _compared(f, Machine(), (5.0, 4.0), 3)).gives(
        (0.8, 0.8, 0.8))


def _order(f, repeats):
    machine = Machine()
    _compared(f, machine, repeats=repeats)
    return machine.calls, machine.looks


@comparison.check("the order of the calls")
def _(f):
    yield case("2 rounds: what is called, and how often the clock is looked at",
               lambda: _order(f, 2)).gives(
        (["first", "second", "first", "second", "second", "first"], 8))
    yield case("first calls that take 50 times as long",
               lambda: _compared(f, Machine(first=50.0), repeats=4)).gives((3.0, 3.0, 3.0))


def _burst(now):
    """Another program runs from tick 40 to tick 50."""
    return 10.0 if 40 <= now < 50 else 1.0


@comparison.check("a busy machine")
def _(f):
    reference = comparison.answer.value
    yield case("another program takes the processor for a while",
               lambda: _compared(f, Machine(_burst))).as_by(
        lambda: _compared(reference, Machine(_burst)))
    yield case("a machine that gets slower and slower",
               lambda: _compared(f, Machine(lambda now: 1 + now / 40))).as_by(
        lambda: _compared(reference, Machine(lambda now: 1 + now / 40)))


@comparison.check("a function and itself", hidden=True)
def _(f):
    def same(g):
        machine = Machine(lambda now: 1 + now / 40)
        task = machine.task("first", 2.0)
        return tuple(g(task, task, repeats=3, clock=machine.clock))

    yield case("compare(f, f) on a machine that gets slower", lambda: same(f)).as_by(
        lambda: same(comparison.answer.value))


@comparison.check("any machine")
def _(f):
    def drawn(draw):
        pace = [draw.choice((1.0, 1.0, 1.2, 3.0, 8.0)) for _ in range(7)]
        return pace, draw.choice((1.0, 3.0)), draw.choice((1.0, 2.0, 5.0)), draw.randint(1, 8)

    def run(g):
        return lambda pace, a, b, repeats: _compared(
            g, Machine(lambda now: pace[int(now / 3) % len(pace)]), (a, b), repeats)

    def tell(pace, a, b, repeats):
        return (f"{a} and {b} ticks, {repeats} rounds; every 3 ticks the work takes "
                f"{pace} times as long")

    yield agrees(run(f), run(comparison.answer.value), drawn, tell=tell)
