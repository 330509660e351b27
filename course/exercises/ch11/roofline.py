"""How long an operation will take, from what the machine was measured to do."""

from itertools import combinations
from math import inf
from statistics import median

from course.cases import case
from course.properties import agrees
from course.records import Exercise

roofline = Exercise(
    "measure.roofline",
    "A roofline from measurements",
    chapter=11,
    minutes=25,
    prompt="""
    An operation takes as long as the slower of two things: moving its bytes, and computing. Write a class
    `Roofline` that learns a machine from measurements and predicts times. All times are seconds.

    `Roofline(points, rates)`:

    * `points` are measurements `(bytes, seconds)` of operations that only move bytes. They lie near a
      straight line, seconds = `overhead` + bytes / `bandwidth`, but for some of them, during which
      another program ran. Set both attributes so that **a few outliers do not matter**. Each pair of
      points with different bytes gives a number of seconds per byte, the difference of their seconds
      divided by that of their bytes. The time of a byte is the median of these (the estimator of Theil
      and Sen), and `overhead` is the median of what is left of each point's
      seconds. A negative `overhead` becomes 0.
    * `rates` says how much work a second some operations can do at most, `{"matmul": 40e9}`.

    `predict(name, bytes, work=0)` returns `(seconds, limit)`: seconds = overhead + the larger of the time
    for the bytes and the time for the work. Operations without a rate are done with their work in no
    time. `limit` says what the time is spent on: `"call"` if the overhead is larger than both,
    else `"memory"` or `"arithmetic"`, and `"memory"` if these are equal.

    For example, bytes in thousands and seconds in millionths: the points (100, 12), (200, 22), (300, 92),
    (400, 42) give 0.1, 0.4, 0.1, 0.7, 0.1, −0.5 for their pairs. The median is 0.1, so the bandwidth is 10 GB
    a second. What is left is 2, 2, 62, 2, and `overhead` is 2 millionths.
    """,
    hints=(
        """
        `itertools.combinations(points, 2)` gives all pairs. Each gives seconds per byte; leave out
        pairs with the same bytes. The bandwidth is 1 divided by that.
        """,
        """
        Bandwidth 10 GB a second, overhead 2 µs, `rates={"matmul": 40e9}`:

        | call | bytes take | work takes | result |
        | --- | --- | --- | --- |
        | `predict("add", 120_000)` | 12 µs | 0 | 14 µs, `"memory"` |
        | `predict("add", 1000)` | 0.1 µs | 0 | 2.1 µs, `"call"` |
        | `predict("matmul", 120_000, 2e6)` | 12 µs | 50 µs | 52 µs, `"arithmetic"` |
        | `predict("exp", 120_000, 30_000)` | 12 µs | 0, no rate | 14 µs, `"memory"` |

        A rate of infinity makes the time of the work 0.
        """,
        """
        ```python
        class Roofline:
            def __init__(self, points, rates):
                slopes = [
                    ...
                    for (a, s), (b, t) in combinations(points, 2)
                    if ...
                ]
                per_byte = ...
                rest = ...
                self.bandwidth = ...
                self.overhead = ...
                self.rates = rates

            def predict(self, name, bytes, work=0):
                memory = ...
                arithmetic = ...
                slower = max(memory, arithmetic)
                if ...:
                    limit = "call"
                else:
                    limit = ...
                return self.overhead + slower, limit
        ```
        """,
    ),
)


@roofline.reference(stub={
    "__init__": "your code here: about 10 lines",
    "predict": "your code here: about 8 lines",
})
class Roofline:
    """Predicts times from measurements (bytes, seconds), and rates."""

    def __init__(self, points, rates):
        slopes = [
            (t - s) / (b - a)
            for (a, s), (b, t) in combinations(points, 2)
            if a != b
        ]
        per_byte = median(slopes)
        rest = median(s - per_byte * a for a, s in points)
        self.bandwidth = 1 / per_byte
        self.overhead = max(0.0, rest)
        self.rates = rates

    def predict(self, name, bytes, work=0):
        """Seconds, and what they are spent on."""
        memory = bytes / self.bandwidth
        arithmetic = work / self.rates.get(name, inf)
        slower = max(memory, arithmetic)
        if self.overhead > slower:
            limit = "call"
        else:
            limit = "memory" if memory >= arithmetic else "arithmetic"
        return self.overhead + slower, limit


roofline.changed(
    "mean of all pairs",
    """
    The mean of the seconds per byte was taken. One measurement during which another program ran has a part in many
    pairs, and moves the mean far away. The median does not care how wrong a few of them are.
    """,
    ("per_byte = median(slopes)", "per_byte = sum(slopes) / len(slopes)"),
)

roofline.changed(
    "least squares",
    """
    The line of least squares squares each error, so the worst measurement has the most influence on it.
    Use the median over all pairs of points.
    """,
    ("        per_byte = median(slopes)\n",
     "        x, y = (sum(both) / len(points) for both in zip(*points))\n"
     "        per_byte = sum((a - x) * (s - y) for a, s in points)\n"
     "        per_byte /= sum((a - x) ** 2 for a, _ in points)\n"),
)

roofline.changed(
    "no overhead",
    """
    The bandwidth was taken as bytes divided by seconds, as if a call cost nothing by itself. Then small
    operations make the memory look slow. The difference of two points leaves
    out what both have in common.
    """,
    ("        per_byte = median(slopes)\n        rest = median(s - per_byte * a for a, s in points)",
     "        per_byte = median(s / a for a, s in points)\n        rest = 0.0"),
)

roofline.changed(
    "moving and computing one after the other",
    """
    The two times were added. A processor fetches the next bytes while it computes with the last ones, so
    the slower of the two sets the time.
    """,
    ("slower = max(memory, arithmetic)", "slower = memory + arithmetic"),
)

roofline.changed(
    "the faster of the two",
    """
    The smaller of the two times was taken. Whichever is done first has to wait for the other.
    """,
    ("slower = max(memory, arithmetic)", "slower = min(memory, arithmetic)"),
)

roofline.changed(
    "the overhead hides behind the rest",
    """
    The overhead was compared with the other times instead of added to them. Python's part of a call is
    over before the first byte moves.
    """,
    ("return self.overhead + slower, limit", "return max(self.overhead, slower), limit"),
)

roofline.changed(
    "every operation needs a rate",
    """
    An operation without a rate raised KeyError. Most operations are limited by memory, and nobody has
    measured how fast they could compute: for these the work takes no time.
    """,
    ("self.rates.get(name, inf)", "self.rates[name]"),
)

roofline.changed(
    "seconds for a byte",
    """
    `bandwidth` is bytes in a second. What the pairs give is the inverse of it, seconds for a byte.
    """,
    ("self.bandwidth = 1 / per_byte", "self.bandwidth = per_byte"),
    ("memory = bytes / self.bandwidth", "memory = bytes * self.bandwidth"),
)

roofline.changed(
    "an overhead below zero",
    """
    A call cannot take less than no time. Points that scatter can leave a negative rest: make it 0.
    """,
    ("max(0.0, rest)", "rest"),
)

roofline.changed(
    "calls are never the limit",
    """
    A small operation spends its time in the call. Neither a faster memory nor a faster processor helps
    there, so the limit has a name of its own.
    """,
    ("        if self.overhead > slower:\n            limit = \"call\"\n        else:\n"
     "            limit = \"memory\" if memory >= arithmetic else \"arithmetic\"\n",
     "        limit = \"memory\" if memory >= arithmetic else \"arithmetic\"\n"),
)

roofline.changed(
    "the least rest",
    """
    The overhead was the smallest rest of all. A single point below the line makes it too small. Take
    the median, as for the seconds per byte.
    """,
    ("rest = median(s - per_byte * a for a, s in points)",
     "rest = min(s - per_byte * a for a, s in points)"),
)

EXACT = [(100e3, 12e-6), (200e3, 22e-6), (300e3, 32e-6), (400e3, 42e-6)]
BUSY = [(100e3, 12e-6), (200e3, 22e-6), (300e3, 92e-6), (400e3, 42e-6)]
# Ten calls of numpy.add with float32 on a machine with two cores, and three of them disturbed.
RECORDED = [(12e6, 0.68e-3), (12e6, 0.66e-3), (24e6, 1.24e-3), (24e6, 4.9e-3), (48e6, 2.31e-3),
            (48e6, 2.38e-3), (72e6, 3.55e-3), (72e6, 9.1e-3), (96e6, 4.62e-3), (96e6, 6.8e-3)]
RATES = {"matmul": 40e9, "exp": 1e9}


def _learnt(Roofline, points):
    """The two figures, in µs and in GB a second."""
    found = Roofline(points, RATES)
    return {"overhead, µs": round(1e6 * found.overhead, 6),
            "bandwidth, GB/s": round(found.bandwidth / 1e9, 6)}


@roofline.check("points on a line")
def _(Roofline):
    yield case(f"the points {EXACT}", lambda: _learnt(Roofline, EXACT)).gives(
        {"overhead, µs": 2.0, "bandwidth, GB/s": 10.0})
    yield case("two points with the same bytes, and a third",
               lambda: _learnt(Roofline, [(1e5, 12e-6), (1e5, 12e-6), (2e5, 22e-6)])).gives(
        {"overhead, µs": 2.0, "bandwidth, GB/s": 10.0})


@roofline.check("predictions")
def _(Roofline):
    for name, moved, work in (("add", 120e3, 0), ("matmul", 120e3, 2e6), ("exp", 80e3, 20e3),
                              ("exp", 800e3, 20e3), ("add", 1000, 0), ("sub", 120e3, 30e3),
                              ("matmul", 400, 1e3), ("matmul", 1e6, 4e6)):
        yield case(f"predict({name!r}, {moved:g}, {work:g}), bandwidth 10 GB/s, overhead 2 µs, "
                   f"rates {RATES}; the seconds in µs",
                   lambda n=name, b=moved, w=work: _in_micros(Roofline(EXACT, RATES).predict(n, b, w))
                   ).as_by(lambda n=name, b=moved, w=work: _in_micros(
                       roofline.answer.value(EXACT, RATES).predict(n, b, w)))
    yield case("predict('add', 120e3), without work; the seconds in µs",
               lambda: _in_micros(Roofline(EXACT, {}).predict("add", 120e3))).gives((14.0, "memory"))


def _in_micros(answer):
    seconds, limit = answer
    return round(1e6 * seconds, 6), limit


@roofline.check("a busy machine")
def _(Roofline):
    yield case(f"one outlier: {BUSY}", lambda: _learnt(Roofline, BUSY)).gives(
        {"overhead, µs": 2.0, "bandwidth, GB/s": 10.0})
    yield case(f"ten recorded calls, three of them disturbed: {RECORDED}",
               lambda: _learnt(Roofline, RECORDED)).as_by(
        lambda: _learnt(roofline.answer.value, RECORDED))


@roofline.check("points below a line through the origin", hidden=True)
def _(Roofline):
    points = [(100e3, 9e-6), (200e3, 19e-6), (300e3, 29e-6), (400e3, 38e-6)]
    yield case(f"the points {points}", lambda: _learnt(Roofline, points)).as_by(
        lambda: _learnt(roofline.answer.value, points))


@roofline.check("any machine")
def _(Roofline):
    def drawn(draw):
        per_byte, overhead = draw.choice((0.05, 0.1, 0.4)), draw.choice((0.0, 1.0, 5.0, 40.0))
        points = []
        for _ in range(draw.randint(2, 9)):
            kilobytes = 100 * (len(points) + 1)
            noise = draw.choice((0, 0, 0, 0.4, -0.4, 30))
            points.append((1e3 * kilobytes, (overhead + per_byte * kilobytes + noise) * 1e-6))
        draw.shuffle(points)
        asked = draw.choice(("add", "matmul", "exp")), draw.choice((100, 5e4, 1e6)), draw.choice((0, 3e5))
        return points, asked

    def run(make):
        def both(points, asked):
            made = make(points, RATES)
            if made.bandwidth < 0:
                return "a bandwidth below 0"
            return _learnt(lambda *_: made, points), _in_micros(made.predict(*asked))

        return both

    def tell(points, asked):
        return f"the points {points}, then predict{asked}; seconds in µs"

    yield agrees(run(Roofline), run(roofline.answer.value), drawn, tell=tell)
