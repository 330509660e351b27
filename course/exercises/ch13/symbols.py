"""Recording a function by calling it with symbols."""

from course.cases import case
from course.properties import agrees
from course.records import Exercise

symbols = Exercise(
    "tracing.symbols",
    "Symbols that write down",
    chapter=13,
    minutes=20,
    prompt="""
    A function does not know what it is called with. So call it with objects that compute nothing, and
    write down what is asked of them. Write `record(f, count)`. It calls `f` with `count` **symbols**
    and returns `(steps, place)`: the list of steps, and the place in this list at which the result of
    `f` is. A step is one of these tuples:

    | step | what it says |
    | --- | --- |
    | `("input", n)` | the n-th argument; these come first |
    | `("constant", value)` | something that is no symbol |
    | `("add", i, j)` | the sum of the results of steps i and j |
    | `("mul", i, j)` | their product |

    * Symbols know `+` and `*`, also with a number on either side: `2 * x` is `x.__rmul__(2)`. Operands
      keep their order, and a constant is written down just before the step that uses it.
    * Each use of a number is a step of its own. A result that is used twice is *one* step.
    * A symbol has no elements. So `if x:`, which calls `x.__bool__()`, is a `TypeError` that mentions
      the word *branch*.
    * The result may be a number: then it is a constant, too.

    For example, `record(lambda x, y: x * y + 2, 2)`:

    | place | step | asked for by |
    | --- | --- | --- |
    | 0 | `("input", 0)` | `record` itself |
    | 1 | `("input", 1)` | `record` itself |
    | 2 | `("mul", 0, 1)` | `x * y` |
    | 3 | `("constant", 2)` | the 2 of `+ 2` |
    | 4 | `("add", 2, 3)` | `+` |

    The result is at place 4.
    """,
    hints=(
        """
        A symbol needs to know one thing: the place of its own step. An operator appends a step and
        returns a new symbol with the place of that step. One function does it for all operators, and
        makes constants of numbers first.
        """,
        """
        `record(lambda x: 2 * x + x, 1)`, call by call:

        | call | appended | returns |
        | --- | --- | --- |
        | `record` | 0 `("input", 0)` | the symbol 0, which is x |
        | `x.__rmul__(2)`: 2 does not know symbols | 1 `("constant", 2)`, 2 `("mul", 1, 0)` | the symbol 2 |
        | `symbol 2.__add__(x)` | 3 `("add", 2, 0)` | the symbol 3 |
        | `f` returns | | `(steps, 3)` |

        In `__rmul__` the other operand comes first.
        """,
        """
        ```python
        def record(f, count):
            steps = [("input", n) for n in range(count)]

            class Symbol:
                def __init__(self, place):
                    self.place = place

                def __add__(self, other):
                    return note("add", self, other)

                def __radd__(self, other):
                    return note(...)

                def __mul__(self, other):
                    return note("mul", self, other)

                def __rmul__(self, other):
                    return note(...)

                def __bool__(self):
                    raise ...

            def place_of(operand):
                if isinstance(operand, Symbol):
                    return ...
                steps.append(...)
                return ...

            def note(op, *operands):
                places = ...
                steps.append((op, *places))
                return ...

            result = f(*map(Symbol, range(count)))
            return steps, ...
        ```
        """,
    ),
)


@symbols.reference(stub="your code here: about 28 lines, most of them a class Symbol")
def record(f, count):
    """The steps of f, and the place of its result."""
    steps = [("input", n) for n in range(count)]

    class Symbol:
        def __init__(self, place):
            self.place = place

        def __add__(self, other):
            return note("add", self, other)

        def __radd__(self, other):
            return note("add", other, self)

        def __mul__(self, other):
            return note("mul", self, other)

        def __rmul__(self, other):
            return note("mul", other, self)

        def __bool__(self):
            raise TypeError("a branch needs an element; a symbol has none")

    def place_of(operand):
        if isinstance(operand, Symbol):
            return operand.place
        steps.append(("constant", operand))
        return len(steps) - 1

    def note(op, *operands):
        places = [place_of(operand) for operand in operands]
        steps.append((op, *places))
        return Symbol(len(steps) - 1)

    result = f(*map(Symbol, range(count)))
    return steps, place_of(result)


symbols.changed(
    "a number on the left comes second",
    """
    In `2 * x` the number is the first operand. Python calls `x.__rmul__(2)`, so the arguments arrive
    exchanged, and have to be exchanged back. It does no harm to a sum, and much to a difference.
    """,
    ('return note("add", other, self)', 'return note("add", self, other)'),
    ('return note("mul", other, self)', 'return note("mul", self, other)'),
)

symbols.changed(
    "no number on the left",
    """
    `2 * x` first asks the number 2, which does not know symbols. Then Python asks x, by
    `x.__rmul__(2)`. Without it the line is a TypeError.
    """,
    ('        def __radd__(self, other):\n            return note("add", other, self)\n\n', ""),
    ('        def __rmul__(self, other):\n            return note("mul", other, self)\n\n', ""),
)

symbols.changed(
    "every symbol is true",
    """
    Without `__bool__` Python takes every object as true. Then `if x:` silently records one branch, and
    whoever reads the steps cannot know that there was another one.
    """,
    ('        def __bool__(self):\n'
     '            raise TypeError("a branch needs an element; a symbol has none")\n\n', ""),
)

symbols.changed(
    "the result is always the last step",
    """
    The last step that was written down need not be the result: `f` may compute something and not
    return it, or return one of its arguments. The returned symbol knows its place.
    """,
    ("    return steps, place_of(result)", "    place_of(result)\n    return steps, len(steps) - 1"),
)

symbols.changed(
    "a result that is no symbol is forgotten",
    """
    A function may return a number. It is a constant like any other: append a step, and return its
    place.
    """,
    ("    return steps, place_of(result)", "    return steps, getattr(result, \"place\", None)"),
)

symbols.changed(
    "constants come after the step that uses them",
    """
    A step was appended before the constants that it uses. Who runs the steps in order then needs a
    result that is not there yet. First the operands, then the step.
    """,
    ("        places = [place_of(operand) for operand in operands]\n"
     "        steps.append((op, *places))\n"
     "        return Symbol(len(steps) - 1)",
     "        mine = len(steps)\n"
     "        steps.append(None)\n"
     "        steps[mine] = (op, *[place_of(operand) for operand in operands])\n"
     "        return Symbol(mine)"),
)


@symbols.check("sums and products")
def _(f):
    yield case("record(lambda x, y: x * y, 2)", lambda: f(lambda x, y: x * y, 2)).gives(
        ([("input", 0), ("input", 1), ("mul", 0, 1)], 2))
    yield case("record(lambda x, y: y + x, 2)", lambda: f(lambda x, y: y + x, 2)).gives(
        ([("input", 0), ("input", 1), ("add", 1, 0)], 2))

    def twice(x):
        y = x * x
        return y + y

    yield case("y = x * x, then y + y", lambda: f(twice, 1)).gives(
        ([("input", 0), ("mul", 0, 0), ("add", 1, 1)], 2)).means(
        "A result that is used twice is one step.")


@symbols.check("numbers")
def _(f):
    yield case("x * y + 2", lambda: f(lambda x, y: x * y + 2, 2)).gives(
        ([("input", 0), ("input", 1), ("mul", 0, 1), ("constant", 2), ("add", 2, 3)], 4))
    yield case("2 * x", lambda: f(lambda x: 2 * x, 1)).gives(
        ([("input", 0), ("constant", 2), ("mul", 1, 0)], 2))
    yield case("1.5 + x", lambda: f(lambda x: 1.5 + x, 1)).gives(
        ([("input", 0), ("constant", 1.5), ("add", 1, 0)], 2))
    yield case("1.5 + x + 1.5", lambda: f(lambda x: 1.5 + x + 1.5, 1)).gives(
        ([("input", 0), ("constant", 1.5), ("add", 1, 0), ("constant", 1.5), ("add", 2, 3)], 4)).means(
        "Each use of a number is a step of its own, also of the same number.")


def _branching(x):
    return x + 1 if x else x * 2


@symbols.check("what a symbol cannot do")
def _(f):
    yield case("x + 1 if x else x * 2", lambda: f(_branching, 1)).raises(TypeError, "branch")
    yield case("while x: x = x + 1", lambda: f(_endless, 1)).raises(TypeError, "branch")


def _endless(x):
    while x:
        x = x + 1
        if isinstance(x, int):
            break
        raise RuntimeError("the loop began")
    return x


def _unused(x, y):
    x * y
    return x


@symbols.check("any result", hidden=True)
def _(f):
    yield case("f returns its argument", lambda: f(_unused, 2)).gives(
        ([("input", 0), ("input", 1), ("mul", 0, 1)], 0))
    yield case("f returns 7", lambda: f(lambda x: 7, 1)).gives(
        ([("input", 0), ("constant", 7)], 1))
    yield case("no arguments", lambda: f(lambda: 3, 0)).gives(([("constant", 3)], 0))

    def again():
        first = f(lambda x: x + 1, 1)
        f(lambda x: x * x, 1)
        return first == f(lambda x: x + 1, 1)

    yield case("recorded twice, something else between: the same steps", again).gives(True)


def _random(draw):
    """A random program as text, so that panels show it."""
    names, lines = ["x", "y"], []
    for n in range(draw.randint(1, 6)):
        parts = [draw.choice(names) for _ in range(2)]
        side = draw.randrange(5)
        if side < 2:
            parts[side] = str(draw.choice((2, 0.5, 3)))
        lines.append(f"{'abcdef'[n]} = {parts[0]} {draw.choice('+*')} {parts[1]}")
        names.append("abcdef"[n])
    return ("; ".join(lines), draw.choice(names))


def _program(text, result):
    def program(x, y):
        known = {"x": x, "y": y}
        exec(text, {}, known)
        return known[result]

    return program


@symbols.check("any program")
def _(f):
    wanted = symbols.answer.value
    yield agrees(
        lambda text, result: f(_program(text, result), 2),
        lambda text, result: wanted(_program(text, result), 2),
        _random, count=80,
        tell=lambda text, result: f"record of f(x, y): {text}; return {result}")
