"""What a trace of a function misses."""

import numpy as np

from course.cases import case
from course.properties import agrees
from course.records import Exercise
from mytorch.tensor import Tensor
from mytorch.trace import trace

missing = Exercise(
    "tracing.missed",
    "What did the trace miss?",
    chapter=13,
    minutes=20,
    prompt="""
    A trace is what one call did. Whether the function does the same in the next call, the trace cannot
    know. But somebody who traces **several** times can compare. Write `missed(f, one, other)`, where
    `one` and `other` are tuples of arrays to call `f` with. It traces `f` with your `trace` and returns
    one of four words, the first that is true:

    | word | when |
    | --- | --- |
    | `"state"` | two traces with `one` differ: `f` depends on something beside its arguments |
    | `"branch"` | traces with `one` and `other` have different operations |
    | `"frozen"` | the operations are the same, but not all attributes |
    | `"nothing"` | both traces are the same |

    `"frozen"` means that a Python value which depends on the arguments was written down as a constant.

    Two traces have the same **operations** if they have equally many nodes, with the same `op` and
    the same inputs (by name), one after the other, and the same outputs. **Attributes** are arrays (`data`) or Python
    values (`dim`, `shape`, `n`): they are the same if shape and all elements are.

    For example, `f(x) = x * float(x.data.sum())`, with [1, 2] and [1, 3]:

    | trace | nodes | attributes |
    | --- | --- | --- |
    | of [1, 2] | constant, mul | data 3.0 |
    | of [1, 2] once more | constant, mul | data 3.0: no state |
    | of [1, 3] | constant, mul: no branch | data 4.0: `"frozen"` |

    A trace of this function with [1, 2] multiplies by 3 for ever.
    """,
    hints=(
        """
        Make from each graph two lists that `==` can compare: one of the operations with the names
        of their inputs, one of the attributes. Then the four words are three comparisons. Arrays do not
        compare to one truth value, so turn them into something that does.
        """,
        """
        `f(x)` is `x * 2` if the sum is positive, else `-x`, with [1, 1] and [-1, -1]:

        | trace | operations | attributes |
        | --- | --- | --- |
        | [1, 1] | constant (), mul (0, 1) | data 2.0; none |
        | [1, 1] again | the same | the same: not `"state"` |
        | [-1, -1] | constant (), mul (0, 1) | data −1.0: `"frozen"` |

        In your `Tensor`, `-x` is `x * -1`. So both branches have the same operations, and the trace
        differs only in a constant. With `x + x` for the second branch it is `"branch"`.

        `np.asarray(value).tolist()` gives lists and numbers for arrays, tuples and `None` alike. Its
        text makes NaN equal to NaN.
        """,
        """
        ```python
        def missed(f, one, other):
            def read(arrays):
                graph = trace(f, *arrays)
                operations, attributes = [], []
                for node in graph.body.nodes:
                    names = ...
                    operations.append(...)
                    for key, value in node.attributes.items():
                        attributes.append(...)
                operations.append([value.name for value in graph.body.outputs])
                return operations, attributes

            first, again, elsewhere = ...
            if first != again:
                return ...
            if ...:
                return "branch"
            return ...
        ```
        """,
    ),
)


@missing.reference(stub="your code here: about 16 lines")
def missed(f, one, other):
    """"state", "branch", "frozen" or "nothing"."""

    def read(arrays):
        graph = trace(f, *arrays)
        operations, attributes = [], []
        for node in graph.body.nodes:
            names = [value.name for value in node.inputs]
            operations.append((node.op, names))
            for key, value in node.attributes.items():
                attributes.append((key, str(np.asarray(value).tolist())))
        operations.append([value.name for value in graph.body.outputs])
        return operations, attributes

    first, again, elsewhere = read(one), read(one), read(other)
    if first != again:
        return "state"
    if first[0] != elsewhere[0]:
        return "branch"
    return "nothing" if first[1] == elsewhere[1] else "frozen"


missing.changed(
    "compares only the operations' names",
    """
    The lists of operations agree, and the inputs may still be others: `x - y` and `y - x` have the
    same operations. Compare which values each of them gets.
    """,
    ("operations.append((node.op, names))", "operations.append(node.op)"),
)

missing.changed(
    "constants do not count",
    """
    Only the operations were compared. A Python number that was computed from the arguments is a constant in the
    trace, and wrong for the next arguments: that is what a trace misses most often.
    """,
    ('    return "nothing" if first[1] == elsewhere[1] else "frozen"', '    return "nothing"'),
)

missing.changed(
    "state is taken for a frozen value",
    """
    Traces with `one` and `other` differ, and two traces with `one` differ as well. Then it is not
    the arguments that make the difference: it is a counter, a clock or a random number. Trace twice
    with the same arrays, and ask this first.
    """,
    ("    if first != again:\n        return \"state\"\n", ""),
)

missing.changed(
    "compares the results",
    """
    Results were compared. Two calls with different arguments have different results anyway, and a wrong trace may
    give the right result by chance. What matters is whether the *programs* are the same.
    """,
    ("    if first[0] != elsewhere[0]:\n        return \"branch\"\n",
     "    if trace(f, *one).run(*other) is None:\n        return \"branch\"\n"),
    ("first[1] == elsewhere[1]",
     "np.allclose(trace(f, *one).run(*other), f(*map(Tensor, other)).data)"),
)

missing.changed(
    "which result is returned does not count",
    """
    Both calls did the same operations and returned different results of them: a branch in the
    `return`. The graph's outputs belong to the program.
    """,
    ("        operations.append([value.name for value in graph.body.outputs])\n", ""),
)

missing.changed(
    "shapes of constants do not count",
    """
    Constants were compared by their sum. Different arrays can have the same sum. Compare all elements,
    in their shape.
    """,
    ("str(np.asarray(value).tolist())", "str(np.sum(value) if key == \"data\" else value)"),
)


_WHY = {
    "nothing": "Here the traces are the same.",
    "branch": "Here the operations of the two traces differ.",
    "frozen": "Here the operations are the same, and an attribute differs.",
}


def _seen(f, name, *pairs):
    """A case for each pair of arrays."""
    for one, other, wanted in pairs:
        one, other = np.asarray(one, float), np.asarray(other, float)
        yield case(f"{name}, with {one.tolist()} and {other.tolist()}", lambda o=one, p=other: f(
            _PROGRAMS[name], (o,), (p,))).gives(wanted).means(_WHY[wanted])


def _branch(x):
    return x * 2.0 if x.data.sum() > 0 else x + x


def _hidden_branch(x):
    y, z = x * 2.0, x * 3.0
    return y if x.data[0] > 0 else z



def _who_is_subtracted(x):
    y = x.tanh()
    return y @ x if x.data[0] > 0 else x @ y


def _loop(x):
    while x.data.sum() < 10:
        x = x * 2.0
    return x


_PROGRAMS = {
    "x * 2 + 1": lambda x: x * 2 + 1,
    "x * 2 if x.data.sum() > 0 else x + x": _branch,
    "x * float(x.data.sum())": lambda x: x * float(x.data.sum()),
    "x.mean()": lambda x: x.mean(),
    "while x.data.sum() < 10: x = x * 2": _loop,
    "x + Tensor(x.data)": lambda x: x + Tensor(x.data),
    "x.reshape(len(x.data), 1)": lambda x: x.reshape(len(x.data), 1),
    "y, z = 2 x, 3 x; y if x.data[0] > 0 else z": _hidden_branch,
    "y = x.tanh(); y @ x if x.data[0] > 0 else x @ y": _who_is_subtracted,
    "x * Tensor(x.data - x.data.mean())": lambda x: x * Tensor(x.data - x.data.mean()),
    "x.sum(x.data.ndim - 1)": lambda x: x.sum(x.data.ndim - 1),
    "x.reshape(1, -1) if x.data[0] > 0 else x.reshape(-1, 1)": lambda x: x.reshape(1, -1)
    if x.data[0] > 0 else x.reshape(-1, 1),
}


@missing.check("branches and constants")
def _(f):
    yield from _seen(f, "x * 2 + 1", ([1, 2], [3, 4], "nothing"))
    yield from _seen(f, "x * 2 if x.data.sum() > 0 else x + x", ([1, 2], [-3, -4], "branch"),
                     ([1, 2], [3, 4], "nothing"))
    yield from _seen(f, "x * float(x.data.sum())", ([1, 2], [1, 3], "frozen"),
                     ([1, 2], [2, 1], "nothing"))
    yield from _seen(f, "x + Tensor(x.data)", ([1, 2], [2, 1], "frozen"), ([1, 2], [1, 2], "nothing"))


@missing.check("shapes")
def _(f):
    yield from _seen(f, "x.mean()", ([1, 2], [3, 4], "nothing"), ([1, 2], [1, 2, 3], "frozen"))
    yield from _seen(f, "x.reshape(len(x.data), 1)", ([1, 2], [1, 2, 3], "frozen"))
    yield from _seen(f, "x * 2 + 1", ([1, 2], [1, 2, 3], "nothing"))
    yield from _seen(f, "while x.data.sum() < 10: x = x * 2", ([1, 2], [1, 1], "branch"),
                     ([1, 2], [2, 2], "nothing"))


def _counting():
    calls = []

    def program(x):
        calls.append(1)
        return x * len(calls)

    return program


def _growing():
    calls = []

    def program(x):
        calls.append(1)
        for _ in calls:
            x = x.tanh()
        return x

    return program


def _random(seed):
    generator = np.random.default_rng(seed)
    return lambda x: x + Tensor(generator.normal(size=x.data.shape))


@missing.check("state")
def _(f):
    x = np.array([1.0, 2.0])
    yield case("a counter: x * calls so far", lambda: f(_counting(), (x,), (x,))).gives(
        "state").means("Two traces with the same arrays differ.")
    yield case("a counter: tanh as often as it was called", lambda: f(_growing(), (x,), (x + 1,))).gives(
        "state").means("Two traces with the same arrays differ. That is asked first.")
    yield case("x + random numbers", lambda: f(_random(0), (x,), (x + 1,))).gives("state")


@missing.check("inputs and outputs of the operations", hidden=True)
def _(f):
    yield from _seen(f, "y, z = 2 x, 3 x; y if x.data[0] > 0 else z", ([1, 2], [-1, 2], "branch"))
    yield from _seen(f, "y = x.tanh(); y @ x if x.data[0] > 0 else x @ y", ([1, 2], [-1, 2], "branch"))
    yield from _seen(f, "x * Tensor(x.data - x.data.mean())", ([1, 3], [2, 8], "frozen"),
                     ([1, 3], [3, 1], "frozen"))
    yield from _seen(f, "x.sum(x.data.ndim - 1)", ([1, 3], [[1, 3]], "frozen"))
    yield from _seen(f, "x.reshape(1, -1) if x.data[0] > 0 else x.reshape(-1, 1)",
                     ([1, 3], [-1, 3], "frozen"))
    nan = np.array([np.nan, 1.0])
    yield case("x + Tensor(x.data), with [nan, 1] twice",
               lambda: f(_PROGRAMS["x + Tensor(x.data)"], (nan,), (nan,))).gives("nothing")
    two = (np.array([1.0, 2.0]), np.array([3.0]))
    yield case("two arguments: x * y + x", lambda: f(lambda x, y: x * y + x, two, two)).gives("nothing")


def _drawn(draw):
    """A random program with branches and frozen values, and two arguments."""
    lines = []
    for _ in range(draw.randint(1, 4)):
        lines.append(draw.choice((
            "x = x * 2", "x = x + x", "x = x.relu() if x.data.sum() > {} else x.tanh()",
            "x = x * float(x.data[0])", "y = x; x = x * y", "x = x + len(x.data)",
            "x = x if x.data[0] > {} else x + 1",
        )).format(draw.choice((0, 1, 2))))
    one = [draw.number() for _ in range(2)]
    other = draw.choice((one, [draw.number() for _ in range(2)], [*one, draw.number()]))
    return "\n".join(lines), one, list(other)


def _as_program(text):
    def program(x):
        known = {"x": x, "len": len, "float": float}
        exec(text, known)
        return known["x"]

    return program


@missing.check("any program")
def _(f):
    def by(answer):
        return lambda text, one, other: answer(
            _as_program(text), (np.array(one),), (np.array(other),))

    yield agrees(by(f), by(missing.answer.value), _drawn, count=80, tell=lambda text, one, other: (
        f"{text.replace(chr(10), '; ')}; with {one} and {other}"))
