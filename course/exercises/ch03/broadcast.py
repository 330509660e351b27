"""The shape two shapes agree on."""

import itertools

from course.cases import call, case
from course.properties import drawn, every
from course.records import Exercise

broadcast = Exercise(
    "ops.broadcast",
    "The shape two shapes agree on",
    chapter=3,
    minutes=12,
    without=("torch.broadcast_shapes", "torch.broadcast_tensors", "numpy.broadcast_shapes"),
    prompt="""
    Write `broadcast_shape(a, b)` for two shapes given as tuples. The rule:

    1. Line the two up **from the right**. What one lacks on its left counts as 1.
    2. In each place the two sizes must be equal, or one of them must be 1. Then the result
       has the size that is not 1.
    3. Otherwise raise a `ValueError` that names both shapes and says *cannot broadcast*.

    Two special cases: `(0,)` with `(1,)` is `(0,)`, and `()` is the shape of a single number, which
    fits every shape.
    """,
    hints=(
        """
        Make both shapes equally long first, with ones on the left of the shorter one. After that,
        compare the two sizes in each place.
        """,
        """
        `broadcast_shape((3, 1), (4,))`: the second shape becomes `(1, 4)`.

        | a | b | equal, or a 1? | result |
        | --- | --- | --- | --- |
        | 3 | 1 | b is 1 | 3 |
        | 1 | 4 | a is 1 | 4 |

        The answer is `(3, 4)`. `(2, 3)` and `(3, 2)`: 2 and 3 are neither equal nor 1, an error. 0 and 1:
        one is 1, so the result is the other one, 0.
        """,
        """
        ```python
        def broadcast_shape(a, b):
            ndim = max(len(a), len(b))
            left = (1,) * (ndim - len(a)) + tuple(a)
            right = ...
            shape = []
            for m, n in zip(left, right):
                if ...:
                    raise ValueError(f"{a} and {b} cannot broadcast")
                shape.append(...)  # the one that is not 1
            return tuple(shape)
        ```
        """,
    ),
)


@broadcast.reference(stub="your code here: about 9 lines")
def broadcast_shape(a, b):
    """(3, 1), (4,) -> (3, 4)."""
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    shape = []
    for m, n in zip(left, right):
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(n if m == 1 else m)
    return tuple(shape)


broadcast.changed(
    "aligns from the left",
    """
    The ones were added on the right. Shapes line up from the *right*, so that a row of 4 goes with
    a table of 3 × 4: what a shape lacks are the outer dimensions. (With the left as the rule, a
    batch of images would not go with one image.)
    """,
    (
        "    left = (1,) * (ndim - len(a)) + tuple(a)\n"
        "    right = (1,) * (ndim - len(b)) + tuple(b)",
        "    left = tuple(a) + (1,) * (ndim - len(a))\n"
        "    right = tuple(b) + (1,) * (ndim - len(b))",
    ),
)

broadcast.changed(
    "stretches only the second",
    """
    A 1 was stretched in the second shape and not in the first. Both may have to stretch, even at
    once: a column (3, 1) and a row (1, 4) make a table of 3 × 4.
    """,
    ("    shape = []\n", ""),
    ("if m != n and 1 not in (m, n):", "if n not in (m, 1):"),
    (
        "        shape.append(n if m == 1 else m)\n"
        "    return tuple(shape)",
        "    return left",
    ),
)


@broadcast.mutant(
    "takes the larger, whatever it is",
    why="""
    The larger of the two sizes was taken, without a test whether they fit. 3 and 4 do not: there is
    no element to pair with the fourth one. Only a 1 stretches.
    """,
)
def broadcast_shape(a, b):
    pairs = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    return tuple(max(m, n) for m, n in pairs)[::-1]


@broadcast.mutant(
    "fills an empty dimension",
    why="""
    With sizes 0 and 1 the result came out as 1. A 1 stretches to *any* size, also to 0, and the
    result is then empty. The rule is "the size that is not 1", and not "the larger".
    """,
)
def broadcast_shape(a, b):
    pairs = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    shape = []
    for m, n in pairs:
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(max(m, n))
    return tuple(shape)[::-1]


@broadcast.mutant(
    "drops the outer dimensions",
    why="""
    `zip` ends with the shorter of the two, so the dimensions that only one operand has are gone.
    They belong to the result. Pad the shorter shape with ones first.
    """,
)
def broadcast_shape(a, b):
    shape = []
    for m, n in zip(reversed(a), reversed(b)):
        if m != n and 1 not in (m, n):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(n if m == 1 else m)
    return tuple(shape)[::-1]


@broadcast.mutant(
    "a multiple fits, too",
    why="""
    A size of 2 was repeated to fill a size of 4. PyTorch does not repeat elements like that,
    because it is nearly always a mistake. Only a 1 stretches.
    """,
)
def broadcast_shape(a, b):
    pairs = itertools.zip_longest(reversed(a), reversed(b), fillvalue=1)
    shape = []
    for m, n in pairs:
        if 0 in (m, n) and 1 in (m, n):
            shape.append(0)
            continue
        if m != n and (0 in (m, n) or max(m, n) % min(m, n)):
            raise ValueError(f"{a} and {b} cannot broadcast")
        shape.append(max(m, n))
    return tuple(shape)[::-1]


def _pair(m, n):
    return n if m == 1 else m


@broadcast.mutant(
    "an error that does not say which shapes",
    why="""
    The error is right, but its message does not name the two shapes. They are the first thing one
    needs to find the mistake in a program of a thousand lines.
    """,
)
def broadcast_shape(a, b):
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    for m, n in zip(left, right):
        if m != n and 1 not in (m, n):
            raise ValueError("cannot broadcast")
    return tuple(_pair(m, n) for m, n in zip(left, right))


broadcast.changed(
    "a 0 stretches as a 1 does",
    """
    A size of 0 was allowed with any size. Only a 1 stretches: 0 with 3 is an error, because nothing
    pairs with the three elements.
    """,
    ("    shape = []\n", ""),
    ("if m != n and 1 not in (m, n):", "if m != n and not {0, 1} & {m, n}:"),
    (
        "        shape.append(n if m == 1 else m)\n"
        "    return tuple(shape)",
        "    return tuple(0 if 0 in (m, n) else max(m, n) for m, n in zip(left, right))",
    ),
)


@broadcast.mutant(
    "checks the last dimension only",
    why="""
    Two shapes have to fit in *every* place. Only the last dimension was checked, and the outer ones
    may still differ.
    """,
)
def broadcast_shape(a, b):
    if a and b and a[-1] != b[-1] and 1 not in (a[-1], b[-1]):
        raise ValueError(f"{a} and {b} cannot broadcast")
    ndim = max(len(a), len(b))
    left = (1,) * (ndim - len(a)) + tuple(a)
    right = (1,) * (ndim - len(b)) + tuple(b)
    return tuple(_pair(m, n) for m, n in zip(left, right))


# what torch.broadcast_shapes gives in PyTorch 2; None: it refuses
SHAPES = {
    "equal shapes, and a number": [((2, 3), (2, 3), (2, 3)), ((2, 3), (), (2, 3)), ((), (), ())],
    "a 1 stretches, on both sides": [
        ((3, 4), (3, 1), (3, 4)),
        ((3, 1), (3, 4), (3, 4)),
        ((3, 1), (1, 4), (3, 4)),
    ],
    "from the right": [
        ((3, 4), (4,), (3, 4)),
        ((4,), (2, 3, 4), (2, 3, 4)),
        ((3, 1), (4,), (3, 4)),
        ((3, 3), (3, 1, 3), (3, 3, 3)),
    ],
    "what does not fit": [((3,), (4,), None), ((2, 3), (3, 2), None), ((3, 4), (3,), None)],
    "no multiples": [((4,), (2,), None), ((6, 2), (3, 2), None)],
    "nothing at all": [((0,), (1,), (0,)), ((2, 1), (0,), (2, 0)), ((0,), (2,), None)],
}


def _shapes_check(title, rows):
    @broadcast.check(title, hidden=title in ("no multiples", "nothing at all"))
    def _(f):
        for a, b, wanted in rows:
            if wanted is None:
                yield call(f, a, b).raises(ValueError, "cannot broadcast")
            else:
                yield call(f, a, b).gives(wanted)


for _title, _rows in SHAPES.items():
    _shapes_check(_title, _rows)


def _any_pair(draw):
    shape = draw.shape(0, 4, (0, 1, 2, 3))
    one, two = ([1 if draw.random() < 0.3 else size for size in shape] for _ in range(2))
    if shape and draw.random() < 0.3:
        two[draw.randrange(len(two))] = draw.randint(0, 4)
    cut = draw.randint(0, len(shape))
    return draw.choice(((tuple(one), tuple(two[cut:])), (tuple(one[cut:]), tuple(two))))


def _message(f, a, b):
    try:
        return f(a, b)
    except ValueError as error:
        return str(error)


def _names_both(a, b):
    def right(said):
        try:
            broadcast.answer.value(a, b)
        except ValueError:
            return str(a) in said and str(b) in said
        return True

    return right


@broadcast.check("any two shapes")
def _(f):
    def cases():
        for make in drawn(_any_pair, 200):
            a, b = make()
            yield call(f, a, b).as_by(lambda a=a, b=b: broadcast.answer.value(a, b))
            told = case(f"the message for {a} and {b}", lambda a=a, b=b: _message(f, a, b))
            yield told.holds(f"names {a} and {b}", _names_both(a, b)).means(
                "The message does not name both shapes."
            )

    yield every("200 random pairs of shapes", cases)
