"""Wrong answers of chapter 13."""

import ast

import numpy as np

from mytorch import trace as traced
from mytorch.graph import Graph
from mytorch.tensor import Tensor
from tests.course.wrong import like, wrong

# -- tracing.symbols

like(
    "tracing.symbols",
    "a constant is written down once",
    (
        '        steps.append(("constant", operand))\n        return len(steps) - 1\n',
        '        if ("constant", operand) not in steps:\n'
        '            steps.append(("constant", operand))\n'
        '        return steps.index(("constant", operand))\n',
    ),
)
like(
    "tracing.symbols",
    "a branch is another error",
    ('raise TypeError("a branch needs', 'raise ValueError("a branch needs'),
)
like(
    "tracing.symbols",
    "sums of numbers on the left are forgotten",
    ('        def __radd__(self, other):\n            return note("add", other, self)\n\n', ""),
)
like(
    "tracing.symbols",
    "inputs are written down when they are used",
    (
        '    steps = [("input", n) for n in range(count)]\n',
        '    steps = [("input", n) for n in range(count)][:1]\n',
    ),
)
like(
    "tracing.symbols",
    "a false symbol",
    (
        'raise TypeError("a branch needs an element; a symbol has none")',
        "return False",
    ),
)
like(
    "tracing.symbols",
    "constants as texts",
    ('("constant", operand)', '("constant", str(operand))'),
)


@wrong("tracing.symbols", "the same operation twice is one step")
def record(f, count):
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
            raise TypeError("branch")

    def append(step):
        if step in steps:
            return steps.index(step)
        steps.append(step)
        return len(steps) - 1

    def place_of(x):
        return x.place if isinstance(x, Symbol) else append(("constant", x))

    def note(op, *operands):
        return Symbol(append((op, *map(place_of, operands))))

    return (lambda place: (steps, place))(place_of(f(*map(Symbol, range(count)))))


# -- tracing.graph

like(
    "tracing.graph",
    "a value with a name counts too",
    (
        "        if not name:\n            name = str(self.count)\n            self.count += 1\n",
        "        name = name or str(self.count)\n        self.count += 1\n",
    ),
)
like(
    "tracing.graph",
    "shapes become lists",
    (
        "return self.Value(name, self.Type(shape))",
        "return self.Value(name, self.Type(shape and list(shape)))",
    ),
)
like(
    "tracing.graph",
    "one output, whatever is asked for",
    ("outputs = [self.value(shape) for shape in shapes]", "outputs = [self.value(shapes[0])]"),
)
like(
    "tracing.graph",
    "the second block of an if is for true",
    ("node.blocks[0 if given[0] else 1]", "node.blocks[1 if given[0] else 0]"),
)
like(
    "tracing.graph",
    "a loop has one turn too many",
    ("for turn in range(int(turns)):", "for turn in range(int(turns) + 1):"),
)
like(
    "tracing.graph",
    "a loop of zero turns gives nothing",
    (
        "                turns, *results = given\n",
        "                turns, *results = given\n"
        "                if not turns:\n"
        "                    results = []\n",
    ),
)
like(
    "tracing.graph",
    "what was run before is remembered",
    (
        "results = self._run(self.body, map(np.asarray, arrays), {})",
        "self.known = getattr(self, 'known', {})\n"
        "        results = self._run(self.body, map(np.asarray, arrays), self.known)\n"
        "        if len(self.known) > 12:\n            results = results[::-1] * 2",
    ),
)
like(
    "tracing.graph",
    "an unknown operation passes",
    (
        "good = node.op in self.ops and gives == 1 and not counts",
        "good = gives == 1 and not counts",
    ),
)
like(
    "tracing.graph",
    "a wrong shape is not looked at",
    ("            if out.type.shape not in (None, shape):\n", "            if False:\n"),
)
like(
    "tracing.graph",
    "check says False",
    (
        "        self._check(self.body, set(), set())\n",
        "        try:\n            self._check(self.body, set(), set())\n"
        "        except TypeError:\n            return False\n        return True\n",
    ),
)
like(
    "tracing.graph",
    "inputs may have any name",
    ("        made(block.inputs)\n", "        seen.update(block.inputs)\n"),
)

# -- tracing.trace

like(
    "tracing.trace",
    "sums over everything",
    ('return record("sum", self, dim=dim, keepdims=keepdims)', 'return record("sum", self)'),
)
like(
    "tracing.trace",
    "numbers only on the right",
    ('        def __rmul__(self, other):\n            return record("mul", other, self)\n\n', ""),
)
like(
    "tracing.trace",
    "the exponent is an input",
    ('return record("pow", self, n=n)', 'return record("pow", self, n)'),
)
like(
    "tracing.trace",
    "reshapes to the example's shape",
    ('return record("reshape", self, shape=shape)', 'return record("reshape", self, shape=(-1,))'),
)
like(
    "tracing.trace",
    "no name",
    ('graph = Graph(getattr(f, "__name__", type(f).__name__))', 'graph = Graph("graph")'),
)
like(
    "tracing.trace",
    "a list of results is one",
    ("isinstance(results, (tuple, list))", "isinstance(results, tuple)"),
)
like(
    "tracing.trace",
    "the result is no longer traced",
    ("        return Traced(data, value)\n", "        return Tensor(data)\n"),
)
like(
    "tracing.trace",
    "exp is log",
    ('return record("log", self)', 'return record("exp", self)'),
)
like(
    "tracing.trace",
    "inputs without shapes",
    ("[graph.value(array.shape) for array in arrays]", "[graph.value() for array in arrays]"),
)


@wrong("tracing.trace", "symbols without elements")
def trace(f, *examples):
    graph = Graph(f.__name__)

    class Traced(Tensor):
        def __init__(self, value):
            super().__init__(np.zeros(()))
            self.value = value

        def __mul__(self, other):
            (value,) = graph.add(graph.body, "mul", [self.value, other.value])
            return Traced(value)

    graph.body.inputs = [graph.value(np.shape(x)) for x in examples]
    graph.body.outputs = [f(*map(Traced, graph.body.inputs)).value]
    return graph


# -- tracing.missed

like(
    "tracing.missed",
    "branch and frozen exchanged",
    ('        return "branch"\n', '        return "frozen"\n'),
    ('else "frozen"', 'else "branch"'),
)
like(
    "tracing.missed",
    "other is never looked at",
    ("read(one), read(one), read(other)", "read(one), read(one), read(one)"),
)
like(
    "tracing.missed",
    "state is asked with both examples",
    ("read(one), read(one), read(other)", "read(one), read(other), read(other)"),
)
like(
    "tracing.missed",
    "only data counts as an attribute",
    (
        "            for key, value in node.attributes.items():\n",
        "            for key, value in node.attributes.items():\n"
        '                if key != "data":\n'
        "                    continue\n",
    ),
)
like(
    "tracing.missed",
    "attributes by their shape",
    ("str(np.asarray(value).tolist())", "str(np.shape(value))"),
)
like(
    "tracing.missed",
    "rounds what it compares",
    (
        "str(np.asarray(value).tolist())",
        "str(np.round(value).tolist()) if key == 'data' else str(value)",
    ),
)
like(
    "tracing.missed",
    "a branch counts before state",
    (
        '    if first != again:\n        return "state"\n    if first[0] != elsewhere[0]:\n        return "branch"\n',
        '    if first[0] != elsewhere[0]:\n        return "branch"\n    if first != again:\n        return "state"\n',
    ),
)


@wrong("tracing.missed", "compares the printed graphs")
def missed(f, one, other):
    first, again, elsewhere = (str(traced.trace(f, *arrays)) for arrays in (one, one, other))
    if first != again:
        return "state"
    return "nothing" if first == elsewhere else "branch"


# -- tracing.script

like(
    "tracing.script",
    "comparisons are all greater",
    ('ast.Lt: "lt"', 'ast.Lt: "gt"'),
)
like(
    "tracing.script",
    "constants are Python numbers",
    ("data=np.array(float(number))", "data=float(number)"),
)
like(
    "tracing.script",
    "the exponent is forgotten",
    ('return add("pow", base, n=n)', 'return add("pow", base, n=2)'),
)
like(
    "tracing.script",
    "branches without a copy of the names, the second gets those of the first",
    (
        "            after.append(dict(known))\n",
        "            after.append(dict(after[-1] if after else known))\n",
    ),
)
like(
    "tracing.script",
    "the branches are exchanged",
    ("for body in (line.body, line.orelse):", "for body in (line.orelse, line.body):"),
)
like(
    "tracing.script",
    "the else is left out",
    ("for body in (line.body, line.orelse):", "for body in (line.body, []):"),
)
like(
    "tracing.script",
    "the loop's variable is the first carried name",
    (
        "names.update(zip([line.target.id, *carried], inner.inputs))",
        "names.update(zip([*carried, line.target.id], inner.inputs))",
    ),
)
like(
    "tracing.script",
    "the loop gives what it was given",
    (
        "        inner.outputs = [names[name] for name in carried]\n",
        "        inner.outputs = [known[name] for name in carried]\n",
    ),
)
like(
    "tracing.script",
    "a name without a value is an input",
    (
        '                    where = f"line {node.lineno}"\n'
        '                    raise NameError(f"{where}: {name} has no value")\n',
        "                    graph.body.inputs.append(graph.value(name=name))\n"
        "                    known[name] = graph.body.inputs[-1]\n",
    ),
)
like(
    "tracing.script",
    "the loop's variable may be a name that has a value",
    ("        if line.target.id in known:\n            raise refused(line)\n", ""),
)
like(
    "tracing.script",
    "a for's else is ignored",
    ("                    orelse=[],\n", ""),
)


@wrong("tracing.script", "runs the text and traces it")
def script(source):
    import textwrap

    known = {}
    exec(textwrap.dedent(source), known)
    name = ast.parse(textwrap.dedent(source)).body[0].name
    count = known[name].__code__.co_argcount
    return traced.trace(known[name], *[np.ones(())] * count)
