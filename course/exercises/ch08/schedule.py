"""Warm-up, then a cosine."""

import math

from course.cases import call, case
from course.properties import agrees
from course.records import Exercise

schedule = Exercise(
    "optim.schedule",
    "Warm-up, then a cosine",
    chapter=8,
    minutes=8,
    prompt="""
    Most large networks are trained like this: for the first steps the learning rate **grows** along
    a line, then it **falls** along half a wave of a cosine. Write `rate_at(step, warmup, total,
    floor=0.0)`, which returns the rate as a share of the full one.

    * `step` counts from 0. In step 0 of a warm-up of 4 the share is **1/4** (a share of 0 would
      waste a step), in step 3 it is 1.
    * From `step = warmup` on, the share falls from 1 to `floor`: with $x$ going from 0 to 1 at
      `step = total`, it is $f + \\frac{1}{2}(1 - f)(1 + \\cos \\pi x)$, where $f$ is `floor`.
    * After `total` it stays at `floor`.
    * `warmup` may be 0, and is always less than `total`.
    """,
    hints=(
        """
        Two parts, one after the other. Ask first whether the step is still in the warm-up. If not,
        express how far the rest has got as a number $x$ from 0 to 1, no further, and put it into
        the cosine.
        """,
        """
        `warmup = 4`, `total = 20`, `floor = 0.1`:

        | step | part | x | share |
        | --- | --- | --- | --- |
        | 0 | warm-up: (0 + 1) / 4 | | 0.25 |
        | 3 | warm-up: (3 + 1) / 4 | | 1.00 |
        | 4 | cosine | 0 / 16 = 0 | 0.1 + 0.9 · (1 + cos 0)/2 = 1.00 |
        | 12 | cosine | 8 / 16 = 0.5 | 0.1 + 0.9 · (1 + 0)/2 = 0.55 |
        | 20 | cosine | 16 / 16 = 1 | 0.1 + 0.9 · (1 − 1)/2 = 0.10 |
        | 30 | cosine | 26 / 16, held at 1 | 0.10 |
        """,
        """
        ```python
        def rate_at(step, warmup, total, floor=0.0):
            if ...:
                return ...
            x = ...  # 0 at the end of the warm-up, 1 at total and after it
            return floor + ...
        ```
        """,
    ),
)


@schedule.reference(stub="your code here: about 4 lines. math is imported")
def rate_at(step, warmup, total, floor=0.0):
    """The learning rate of a step, as a share of the full one."""
    if step < warmup:
        return (step + 1) / warmup
    x = min((step - warmup) / (total - warmup), 1.0)
    return floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2


schedule.changed(
    "begins with nothing",
    """
    In step 0 the share was 0. So the first batch goes forward and backward, and no weight changes.
    With `step + 1` the first share is 1/warmup.
    """,
    ("(step + 1)", "step"),
)

schedule.changed(
    "the cosine does not wait for the warm-up",
    """
    The cosine was counted from step 0, so that when the warm-up ends the wave has begun to fall
    already, and the rate jumps. Count from the end of the warm-up: `step - warmup` of
    `total - warmup`.
    """,
    ("(step - warmup) / (total - warmup)", "step / total"),
)

schedule.changed(
    "a whole wave",
    """
    A cosine over 2π goes down *and up again*: the rate was lowest half way and full at the end.
    Half a wave is π.
    """,
    ("1 + math.cos(math.pi * x)", "1 + math.cos(2 * math.pi * x)"),
)

schedule.changed(
    "rises again after the end",
    """
    Beyond `total` the wave went on, and up. A training that goes on longer than planned would
    suddenly have a large rate again. Hold x at 1.
    """,
    ("min((step - warmup) / (total - warmup), 1.0)", "(step - warmup) / (total - warmup)"),
)


@schedule.mutant(
    "the floor on top",
    why="""
    The floor was added to the whole wave, so the rate begins at 1 + floor. It should go *from* 1
    *to* the floor. Multiply the wave by 1 - floor before you add the floor.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    if step < warmup:
        return (step + 1) / warmup
    x = min((step - warmup) / (total - warmup), 1.0)
    return floor + (1 + math.cos(math.pi * x)) / 2


@schedule.mutant(
    "cannot do without a warm-up",
    why="""
    With `warmup=0` this divides by 0. No warm-up means that the first step is at the full rate
    already: ask `step < warmup` before you divide.
    """,
)
def rate_at(step, warmup, total, floor=0.0):
    x = min(max(step - warmup, 0) / (total - warmup), 1.0)
    wave = floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2
    return min((step + 1) / warmup, 1.0) * wave


# LinearLR(1/4, total_iters=3), then CosineAnnealingLR(16, eta_min=0.1), at milestone 4
RATES = [0.25, 0.5, 0.75, 1.0, 1.0, 0.991353, 0.965746, 0.924161, 0.868198, 0.800007, 0.722208,
         0.637791, 0.55, 0.462209, 0.377792, 0.299993, 0.231802, 0.175839, 0.134254, 0.108647, 0.1]


@schedule.check("the warm-up")
def _(f):
    yield case("[rate_at(n, 4, 20) for n in range(4)]",
               lambda: [float(f(n, 4, 20)) for n in range(4)]).gives([0.25, 0.5, 0.75, 1.0])


@schedule.check("the whole schedule, as in PyTorch")
def _(f):
    yield case("[rate_at(n, 4, 20, floor=0.1) for n in range(21)]",
               lambda: [float(f(n, 4, 20, floor=0.1)) for n in range(21)]).gives(
        RATES, tolerance=1e-5)


@schedule.check("half way, and at the end")
def _(f):
    yield case("rate_at(n, 10, 110) for n = 10, 60, 110",
               lambda: [float(f(n, 10, 110)) for n in (10, 60, 110)]).gives([1.0, 0.5, 0.0])


@schedule.check("longer than planned")
def _(f):
    yield call(f, 150, 10, 110, 0.2).gives(0.2)


@schedule.check("without a warm-up", hidden=True)
def _(f):
    yield case("rate_at(n, 0, 100) for n = 0, 50",
               lambda: [float(f(n, 0, 100)) for n in (0, 50)]).gives([1.0, 0.5])


schedule.changed(
    "the warm-up starts at the floor",
    """
    The warm-up rose from the floor. The floor is where the cosine *ends*; the warm-up has its own
    rule, 1/warmup, 2/warmup, ….
    """,
    ("return (step + 1) / warmup", "return floor + (1 - floor) * (step + 1) / warmup"),
)

schedule.changed(
    "a line instead of a cosine",
    """
    The rate fell along a line. At the ends, and half way, a line and the cosine agree; in between
    the cosine stays high for longer and then falls faster.
    """,
    ("(1 + math.cos(math.pi * x)) / 2", "(1 - x)"),
)

schedule.changed(
    "the floor cuts the wave off",
    """
    The wave went down to 0 and was cut off at the floor: `max(floor, …)`. It should reach the floor
    only at the end. Multiply the wave by 1 - floor and add the floor.
    """,
    (
        "return floor + (1 - floor) * (1 + math.cos(math.pi * x)) / 2",
        "return max(floor, (1 + math.cos(math.pi * x)) / 2)",
    ),
)

schedule.changed(
    "begins anew after the end",
    """
    After `total` the wave began again at the full rate (a *warm restart*). Asked for is that it
    stays at the floor.
    """,
    ("min((step - warmup) / (total - warmup), 1.0)", "(step - warmup) / (total - warmup) % 1.0"),
)


def _any(draw):
    warmup = draw.choice([0, 0, 1, draw.randint(2, 30)])
    total = warmup + draw.randint(1, 60)
    step = draw.choice([0, warmup, total, draw.randint(0, total + 20)])
    return step, warmup, total, draw.choice([0.0, 0.1, 0.5])


@schedule.check("any warm-up, any length")
def _(f):
    yield agrees(f, schedule.answer.value, _any, count=150)
