"""The checks of `own_script`."""

import textwrap

import numpy as np

from course.cases import case
from course.exercises.ch13.script import own_script
from course.properties import agrees


def _text(source):
    return textwrap.dedent(source).strip("\n")


def _graph(script, source):
    """The compiled graph, checked."""
    graph = script(_text(source))
    graph.check()
    return graph


def _ran(script, source, *points):
    """What the graph gives at each point (a tuple of arguments), as floats."""
    graph = _graph(script, source)
    return [float(graph.run(*point)) for point in points]


def _function(source):
    """Python's own idea of the function."""
    known = {}
    exec(_text(source), known)
    return next(v for k, v in known.items() if not k.startswith("__"))


@own_script.check("1 · expressions")
def _(f):
    yield case('str(script("def f(x, y): return x * y"))',
               lambda: str(f("def f(x, y): return x * y"))).gives(
        "graph f(%x : Tensor, %y : Tensor):\n  %0 : Tensor = mul(%x, %y)\n  return (%0)")
    yield case("return x + y * 2", lambda: str(_graph(f, "def g(x, y): return x + y * 2"))).gives(
        "graph g(%x : Tensor, %y : Tensor):\n"
        "  %0 : Tensor = constant[data=2.0]()\n"
        "  %1 : Tensor = mul(%y, %0)\n"
        "  %2 : Tensor = add(%x, %1)\n"
        "  return (%2)")
    for text in ("x - y", "y - x", "x / y", "(x - y) * (x + y)", "-x * 2", "x ** 3 - y ** 2",
                 "x - (y - 1.5)", "2 / x", "x"):
        yield case(f"{text} at (5, 2) and (-1, 4)", lambda t=text: _ran(
            f, f"def f(x, y): return {t}", (5.0, 2.0), (-1.0, 4.0))).gives(
            [float(eval(text, {"x": x, "y": y})) for x, y in ((5.0, 2.0), (-1.0, 4.0))])
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    for text, wanted in (
        ("x @ x", x @ x), ("x.exp()", np.exp(x)), ("x.log()", np.log(x)), ("x.tanh()", np.tanh(x)),
        ("(x - 2).relu()", np.maximum(x - 2, 0)), ("x.sum()", x.sum()), ("x > 2", x > 2),
        ("2 < x.sum()", np.bool_(True)), ("(x * x).sum() / x.sum()", (x * x).sum() / x.sum()),
    ):
        yield case(f"{text}, x = [[1, 2], [3, 4]]", lambda t=text: _graph(
            f, f"def f(x): return {t}").run(x)).gives(wanted)
    yield case("the data of the constant in x * 2", lambda: [
        (type(n.attributes["data"]).__name__, n.attributes["data"].dtype.name)
        for n in f("def f(x): return x * 2").body.nodes if n.op == "constant"]).gives(
        [("ndarray", "float64")])


@own_script.check("2 · assignments")
def _(f):
    yield case("y = x * x; x = y + x; return x * y", lambda: str(_graph(f, """
        def f(x):
            y = x * x
            x = y + x
            return x * y
        """))).gives(
        "graph f(%x : Tensor):\n"
        "  %0 : Tensor = mul(%x, %x)\n"
        "  %1 : Tensor = add(%0, %x)\n"
        "  %2 : Tensor = mul(%1, %0)\n"
        "  return (%2)")
    yield case("y = x; return y: how many nodes", lambda: len(_graph(f, """
        def f(x):
            y = x
            return y
        """).body.nodes)).gives(0)
    yield case("indented source, as of a function inside another", lambda: _graph(
        f, "        def f(x):\n            return x\n").name).gives("f")
    yield case("compiled twice, the same text", lambda: (
        lambda s: str(f(s)) == str(f(s)))("def f(x): return x * 2 + x")).gives(True)


def _error(f, source):
    """The kind of error, and whether the message has the text."""
    try:
        f(_text(source))
    except (SyntaxError, NameError) as error:
        return f"{type(error).__name__}: {error.msg if isinstance(error, SyntaxError) else error}"
    return "no error"


@own_script.check("3 · what is not in the language")
def _(f):
    for line in ("x += 1", "while x > 1: x = x - 1", "print(x)", "x.grad = 2", "a, b = x, x",
                 "return x", "import math"):
        yield case(f"{line}, in line 2", lambda s=line: f(f"def f(x):\n    {s}\n    return x")).raises(
            SyntaxError, "line 2")
    for text in ("x[0]", "x % 2", "sin(x)", "x.item()", "x.sum(0)", "x.sum(dim=0)", "1 < x < 2",
                 "x >= 2", "'a'", "x and x", "x if x else x", "lambda y: y"):
        yield case(f"return {text}, in line 3", lambda s=text: f(
            f"def f(x):\n    y = x\n    return {s}")).raises(SyntaxError, "line 3")
    yield case("return x * z", lambda: f("def f(x):\n    return x * z")).raises(
        NameError, "z").means("Nothing has given z a value.")
    yield case("y = y + x", lambda: f("def f(x):\n    y = y + x\n    return y")).raises(NameError, "y")
    yield case("a docstring", lambda: len(f('def f(x):\n    """Half."""\n    return x').body.nodes)).gives(0)


ABSOLUTE = """
    def f(x):
        if x > 0:
            y = x
        else:
            y = -x
        return y
    """

HALVED = """
    def f(x, y):
        if x > y:
            x = x - y
            y = y * 2
        return x * 10 + y
    """


@own_script.check("4 · if")
def _(f):
    yield case("y = x if x > 0, else y = -x; at 3, -3, 0", lambda: _ran(
        f, ABSOLUTE, (3.0,), (-3.0,), (0.0,))).gives([3.0, 3.0, 0.0]).means(
        "The first block holds what stands below `if`, the second what stands below `else`.")
    yield case("its text", lambda: str(_graph(f, ABSOLUTE))).gives(
        "graph f(%x : Tensor):\n"
        "  %0 : Tensor = constant[data=0.0]()\n"
        "  %1 : Tensor = gt(%x, %0)\n"
        "  %3 : Tensor = if(%1)\n"
        "    block0():\n"
        "      -> (%x)\n"
        "    block1():\n"
        "      %2 : Tensor = neg(%x)\n"
        "      -> (%2)\n"
        "  return (%3)")
    yield case("no else: x = x - y and y = y * 2 if x > y; at (5, 2), (1, 2)", lambda: _ran(
        f, HALVED, (5.0, 2.0), (1.0, 2.0))).gives([34.0, 12.0])
    yield case("how many outputs has that if?", lambda: [
        len(n.outputs) for n in _graph(f, HALVED).body.nodes if n.op == "if"]).gives([2])
    yield case("only the else assigns", lambda: _ran(f, """
        def f(x):
            y = x
            if x > 0:
                z = x
            else:
                y = x * 2
            return y
        """, (3.0,), (-3.0,))).gives([3.0, -6.0])
    yield case("an elif", lambda: _ran(f, """
        def f(x):
            if x > 1:
                x = x * 2
            elif x < 0:
                x = x * 3
            else:
                x = x + 100
            return x
        """, (2.0,), (-1.0,), (0.5,))).gives([4.0, -3.0, 100.5])
    yield case("a name that only one branch knows, used afterwards", lambda: _error(f, """
        def f(x):
            if x > 0:
                z = x
            return z
        """).split(":")[0]).gives("NameError")
    yield case("a name of the first branch, used in the second", lambda: _error(f, """
        def f(x):
            if x > 0:
                z = x
            else:
                x = z
            return x
        """).split(":")[0]).gives("NameError")
    yield case("a return in a branch", lambda: _error(f, """
        def f(x):
            if x > 0:
                return x
            return -x
        """).split(" cannot")[0]).gives("SyntaxError: line 3:")


POWER = """
    def f(x, n):
        y = x * 0 + 1
        for i in range(n):
            y = y * x
        return y
    """

TURNS = """
    def f(x, n):
        y = x * x
        for i in range(n):
            z = x + y
            x = z * 2.0 + i
        return x
    """


@own_script.check("5 · for")
def _(f):
    yield case("y = y * x, n times; x = 2, n = 0, 1, 5", lambda: _ran(
        f, POWER, (2.0, 0), (2.0, 1), (2.0, 5))).gives([1.0, 2.0, 32.0]).means(
        "y is carried: a turn gets what the one before gave. The turn itself is another input.")
    yield case("z = x + y; x = z * 2 + i, n times", lambda: str(_graph(f, TURNS))).gives(
        "graph f(%x : Tensor, %n : Tensor):\n"
        "  %0 : Tensor = mul(%x, %x)\n"
        "  %7 : Tensor = loop(%n, %x)\n"
        "    block0(%1 : Tensor, %2 : Tensor):\n"
        "      %3 : Tensor = add(%2, %0)\n"
        "      %4 : Tensor = constant[data=2.0]()\n"
        "      %5 : Tensor = mul(%3, %4)\n"
        "      %6 : Tensor = add(%5, %1)\n"
        "      -> (%6)\n"
        "  return (%7)")
    yield case("two names that exchange: a = b, b = a + b, n times", lambda: _ran(f, """
        def f(n):
            a = n * 0
            b = a + 1
            for i in range(n):
                c = a
                a = b
                b = c + b
            return a
        """, (1,), (2,), (10,))).gives([1.0, 1.0, 55.0])
    yield case("a name that the loop makes, used afterwards", lambda: _error(f, """
        def f(x, n):
            for i in range(n):
                z = x
            return z
        """).split(":")[0]).gives("NameError")
    yield case("the loop's variable, used afterwards", lambda: _error(f, """
        def f(x, n):
            for i in range(n):
                x = x + i
            return x + i
        """).split(":")[0]).gives("NameError")
    yield case("two loops with the same variable", lambda: _ran(f, """
        def f(x, n):
            for i in range(n):
                x = x + i
            for i in range(3):
                x = x * 2
            return x
        """, (1.0, 3))).gives([32.0])
    yield case("for x in range(n), and x has a value", lambda: _error(f, """
        def f(x, n):
            for x in range(n):
                n = n + x
            return n
        """).split(" cannot")[0]).gives("SyntaxError: line 2:").means(
        "The loop's variable must be a new name.")
    for line in ("for i in range(1, n):", "for i in x:", "for i, j in range(n):", "for i in zip(n):"):
        yield case(line, lambda s=line: f(
            f"def f(x, n):\n    {s}\n        x = x + 1\n    return x")).raises(SyntaxError, "line 2")


COLLATZ = """
    def f(x, n):
        steps = x * 0
        for i in range(n):
            half = x / 2
            if x > 10:
                x = half
                steps = steps + 1
            else:
                for j in range(2):
                    x = x + j + 1
        return x * 1000 + steps
    """


@own_script.check("if and for inside each other", hidden=True)
def _(f):
    wanted = _function(COLLATZ)
    points = [(1.0, 0), (1.0, 1), (40.0, 5), (7.0, 9)]
    yield case("an if in a for, with a for in its else", lambda: _ran(f, COLLATZ, *points)).as_by(
        lambda: [float(wanted(x, n)) for x, n in points])
    yield case("a for with else", lambda: _error(f, """
        def f(x):
            for i in range(3):
                x = x + 1
            else:
                x = x + 2
            return x
        """).split(" cannot")[0]).gives("SyntaxError: line 2:").means(
        "The `else` of a loop is not in the language.")
    yield case("a name that has a value in one branch only after an inner if", lambda: _error(f, """
        def f(x):
            if x > 0:
                if x > 1:
                    z = x
                else:
                    z = -x
            return z
        """).split(":")[0]).gives("NameError")
    yield case("the same, in both branches", lambda: _ran(f, """
        def f(x):
            if x > 0:
                if x > 1:
                    z = x
                else:
                    z = -x
            else:
                z = x * 0
            return z
        """, (3.0,), (0.5,), (-2.0,))).gives([3.0, -0.5, 0.0])
    yield case("a name that is changed in a loop's inner branch only", lambda: _ran(f, """
        def f(x, n):
            for i in range(n):
                if i > 2:
                    x = x * 10
            return x
        """, (1.0, 3), (1.0, 5))).gives([1.0, 100.0])
    yield case("loops are nodes: as many for 2 turns as for 2,000", lambda: len(
        _graph(f, POWER).body.nodes)).gives(5)
    yield case("for i in range(100): the names of the nodes", lambda: [n.op for n in _graph(f, """
        def f(x):
            for i in range(100):
                x = x + i
            return x
        """).body.nodes]).gives(["constant", "loop"])
    yield case("what the function calls is never run", lambda: (
        f("def f(x):\n    y = x.log()\n    return y"), "compiled")[1]).gives("compiled")


def _block(draw, names, depth, indent, turns):
    """Random lines; `names` grows by what has a value behind them."""
    lines = []
    for _ in range(draw.randint(1, 3)):
        kind = draw.random()
        a, b = (draw.choice(names) for _ in range(2))
        pad = "    " * indent
        if depth and kind < 0.25:
            lines.append(f"{pad}if {a} {draw.choice('<>')} {b}:")
            lines += _block(draw, list(names), depth - 1, indent + 1, turns)
            if draw.random() < 0.6:
                lines.append(f"{pad}else:")
                lines += _block(draw, list(names), depth - 1, indent + 1, turns)
        elif depth and kind < 0.45:
            turn = f"i{len(turns)}"
            turns.append(turn)
            lines.append(f"{pad}for {turn} in range({draw.choice(('n', '2', '3'))}):")
            lines += _block(draw, [*names, turn], depth - 1, indent + 1, turns)
        else:
            name = draw.choice(("x", "y", "z", "w"))
            op = draw.choice("+-*")
            scale = draw.choice((" * 0.5", "", ""))
            lines.append(f"{pad}{name} = ({a} {op} {b}){scale}")
            if name not in names:
                names.append(name)
    return lines


def _drawn(draw):
    names = ["x", "y"]
    lines = _block(draw, names, 2, 1, [])
    result = draw.choice(names)
    return "\n".join(["def f(x, y, n):", *lines, f"    return {result}"]), draw.randint(0, 3)


@own_script.check("any program")
def _(f):
    def by_graph(text, n):
        with np.errstate(all="ignore"):
            return [f"{float(_graph(f, text).run(x, y, n)):.6g}" for x, y in ((0.5, 1.25), (2.0, -1.0))]

    def by_python(text, n):
        run = _function(text)
        with np.errstate(all="ignore"):
            return [f"{float(run(np.float64(x), np.float64(y), n)):.6g}"
                    for x, y in ((0.5, 1.25), (2.0, -1.0))]

    yield agrees(by_graph, by_python, _drawn, count=80, tell=lambda text, n: (
        f"n = {n}, at (0.5, 1.25) and (2, -1), compared with Python:\n{text}\n"))
