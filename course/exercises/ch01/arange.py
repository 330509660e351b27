"""Counting without drifting."""

import math

from course.cases import call, case
from course.properties import agrees
from course.records import Exercise

arange = Exercise(
    "tensors.arange",
    "Counting without drifting",
    chapter=1,
    minutes=10,
    without=("torch.arange", "numpy.arange"),
    prompt="""
    `torch.arange(start, end, step)` holds *start*, *start + step*, … and stops **before** *end*.
    Write `count_up(start, end, step)`, which returns those values as a list of floats.

    The step may be negative, or a float. Take care with `0.1`: as a float it is not exactly one
    tenth. If you add it a hundred times, you add its error a hundred times.
    """,
    hints=(
        """
        First find *how many* values there are, then compute each one from its position. So no value depends
        on the one before it, and errors cannot add up.
        """,
        """
        `count_up(0, 1, 0.3)`: the distance is 1 - 0 = 1, which is 3.33 steps of 0.3. A step that
        was begun counts, so there are 4 values:

        | index | start + index · step |
        | --- | --- |
        | 0 | 0 |
        | 1 | 0.3 |
        | 2 | 0.6 |
        | 3 | 0.9 |

        `count_up(3, 0, -1)`: (0 - 3) / -1 = 3 values. `count_up(3, 0, 1)`: (0 - 3) / 1 = -3, and a
        negative count means no values.
        """,
        """
        ```python
        def count_up(start, end, step):
            quotient = (end - start) / step
            count = ...  # rounded up, and at least 0
            return [float(...) for index in range(count)]
        ```
        """,
    ),
)


@arange.reference(stub="your code here: about 3 lines. How many values are there?")
def count_up(start, end, step):
    """The values of torch.arange(start, end, step) as a list of floats."""
    count = max(0, math.ceil((end - start) / step))
    return [float(start + index * step) for index in range(count)]


@arange.mutant(
    "adds the step again and again",
    why="""
    Each addition rounds, and the next one builds on what was rounded: after many steps of 0.1 the
    values have visibly drifted. `start + index * step` rounds twice, however far along it is. (The
    values are then also independent of each other, so they can be computed in parallel.)
    """,
)
def count_up(start, end, step):
    values = []
    count = max(0, math.ceil((end - start) / step))
    value = float(start)
    for _ in range(count):
        values.append(value)
        value += step
    return values


arange.changed(
    "includes the end",
    """
    Ranges are half open, as Python's are: the end is the first value that is *not* there. That is
    why `arange(0, n, 1)` has n values, and why `arange(0, 5)` and `arange(5, 10)` fit together.
    """,
    ("ceil((end - start) / step)", "floor((end - start) / step) + 1"),
)

arange.changed(
    "rounds the count down",
    """
    From 0 to 1 in steps of 0.3 the values are 0, 0.3, 0.6 **and** 0.9: (1 − 0) / 0.3 is 3.33, and a
    started step counts. The number of values is the *ceiling* of the quotient.
    """,
    ("math.ceil", "int"),
)


@arange.mutant(
    "only counts up",
    why="""
    With a negative step the values fall, and the end lies below the start. A condition such as
    `value < end` is then false from the beginning. The quotient (end − start) / step has the
    right sign for both directions.
    """,
)
def count_up(start, end, step):
    values, index = [], 0
    while step > 0 and start + index * step < end:
        values.append(float(start + index * step))
        index += 1
    return values


arange.changed(
    "counts with the nearest integer",
    """
    The quotient was rounded to the nearest integer. A step that was begun counts, however short
    it is: round *up*.
    """,
    ("math.ceil", "round"),
)


@arange.mutant(
    "counts up where it should be empty",
    why="""
    From 3 to 0 in steps of +1 there is nothing: the values would move away from the end. The sign
    of (end - start) / step shows that, and `abs` removes the sign. A negative count means no
    values.
    """,
)
def count_up(start, end, step):
    count = math.ceil(abs((end - start) / step))
    return [float(start + index * step) for index in range(count)]


@arange.check("whole steps")
def _(f):
    yield call(f, 0, 5, 1).gives([0.0, 1.0, 2.0, 3.0, 4.0])
    yield call(f, 2, 9, 3).gives([2.0, 5.0, 8.0])


@arange.check("a step that does not fit exactly")
def _(f):
    yield call(f, 0, 1, 0.3).gives([0.0, 0.3, 0.6, 0.9])


@arange.check("downwards, and nowhere")
def _(f):
    yield call(f, 3, 0, -1).gives([3.0, 2.0, 1.0])
    yield call(f, 3, 3, 1).gives([])
    yield call(f, 3, 0, 1).gives([])


@arange.check("no drift after ten thousand steps", hidden=True)
def _(f):
    last = case("the last value of count_up(0, 1000, 0.1)", lambda: f(0, 1000, 0.1)[-1])
    yield last.gives(999.9000000000001, tolerance=1e-14)


_STEPS = (1, 2, -1, -3, 0.1, 0.2, 0.25, -0.3, 0.7, 0.007, 1.5e-7)


@arange.check("any start, end and step")
def _(f):
    whole = case("the types of what count_up(0, 3, 1) holds",
                 lambda: [type(value).__name__ for value in f(0, 3, 1)])
    yield whole.gives(["float"] * 3).means("The values are integers; floats are asked for.")

    def counting(draw):
        start, step = draw.choice((0, 1, -2, 0.5, 1.0, 0.3)), draw.choice(_STEPS)
        count = draw.randint(-2, 9)
        # often just where a value would lie, as far as floats can say that
        return start, round(start + (count + draw.choice((0, 0, 0.5, 0.9))) * step, 9), step

    yield agrees(f, arange.answer.value, counting, count=150, tolerance=1e-14)
