"""A tracer for one's own Tensor."""

import numpy as np

from course.cases import case
from course.properties import agrees, drawn, every
from course.records import Exercise
from mytorch.graph import Graph
from mytorch.tensor import Tensor

own_trace = Exercise(
    "tracing.trace",
    "A tracer for your Tensor",
    chapter=13,
    minutes=40,
    prompt="""
    Your symbols of exercise 1 had no elements. A tracer as in `torch.jit.trace` calls the function with
    real tensors that *also* write down what happens. Write `trace(f, *examples)`: it calls `f` with a
    traced tensor for each example (an array or a `Tensor`), and returns a `Graph` that does the same.
    It becomes `trace.py` in `mytorch`. Import `Graph` from `mytorch.graph` and `Tensor` from
    `mytorch.tensor`, as the cell above does.

    A **traced tensor** is a `Tensor` with one more attribute, `value`: its value in the graph. Its class
    `Traced` is a subclass that does each operation of your `Tensor` in another manner: compute the array with
    `graph.ops`, append a node with the result's shape to `graph.body`, and return a `Traced` of both.
    What chapter 04 gave you (`mean`, `-`, `/`) is made of these operations and needs nothing.

    | method | node |
    | --- | --- |
    | `a + b`, `a * b`, `a @ b` | `add`, `mul`, `matmul` |
    | `a ** n` | `pow` with the attribute `n` |
    | `exp()`, `log()`, `tanh()`, `relu()` | of the same name |
    | `sum(dim=None, keepdims=False)` | `sum` with both attributes |
    | `reshape(*shape)`, `transpose(first, second)` | the same, with `shape`; with `first` and `second` |

    * An operand that is not traced (a number, an array, another `Tensor`) becomes a `constant` node
      with the attribute `data`, a **copy** of its array.
    * Such an operand may stand on the left. For `Tensor + Traced` Python asks the subclass first, but
      only if the subclass has an `__radd__` of its own. So write `__radd__`, `__rmul__` and
      `__rmatmul__`, and mind the order.
    * The graph has the name of `f`, and its inputs have the examples' shapes. `f` may return a tensor, a tuple or list
      of tensors, or something that was never traced (a constant).

    For example, `trace(lambda x: (2 * x).sum(), np.ones(3))`:

    | what Python does | in the graph |
    | --- | --- |
    | `trace` makes x, a `Traced` of the array | an input of shape (3,) |
    | `2 * x` asks the number 2, then `x.__rmul__(2)` | `%1 : Tensor() = constant[data=2.0]()` |
    | | `%2 : Tensor(3,) = mul(%1, %0)` |
    | `.sum()` of that result | `%3 : Tensor() = sum[dim=None, keepdims=False](%2)` |
    | `f` returns | `return (%3)` |
    """,
    hints=(
        """
        All operations do the same three things, so one function `record(op, *operands, **attributes)`
        does them: find each operand's value, compute the array, append the node. Each method of
        `Traced` is then one line that calls `record`. It needs no derivatives: chapter 14 makes them from the
        graph.
        """,
        """
        `record("mul", 2, x)`, where x is a `Traced` with the array [1, 1, 1] and the value %0:

        | step | result |
        | --- | --- |
        | the value of 2: not traced | append `constant` with data 2.0; its output is %1 |
        | the value of x: traced | `x.value`, which is %0 |
        | the arrays | 2.0 and [1, 1, 1] |
        | `graph.ops["mul"](2.0, [1, 1, 1])` | [2, 2, 2] |
        | `graph.add(graph.body, "mul", [%1, %0], [(3,)])` | the list [%2] |
        | return | a `Traced` with [2, 2, 2] and %2 |
        """,
        """
        ```python
        def trace(f, *examples):
            graph = Graph(getattr(f, "__name__", type(f).__name__))
            body = graph.body

            def value_of(operand):
                if isinstance(operand, Traced):
                    return ...
                data = Tensor.of(operand).data.copy()
                shapes = ...
                (value,) = ...
                return value

            def record(op, *operands, **attributes):
                values = ...
                arrays = [Tensor.of(operand).data for operand in operands]
                data = ...
                shapes = ...
                (value,) = ...
                return ...

            class Traced(Tensor):
                def __init__(self, data, value):
                    super().__init__(data)
                    self.value = value

                def __add__(self, other):
                    return record("add", self, other)

                def __radd__(self, other):
                    return ...

                def __mul__(self, other):
                    return record("mul", self, other)

                def __rmul__(self, other):
                    return ...

                def __matmul__(self, other):
                    return record("matmul", self, other)

                def __rmatmul__(self, other):
                    return ...

                def __pow__(self, n):
                    return record("pow", self, n=n)

                def exp(self):
                    return record("exp", self)

                def log(self):
                    return record("log", self)

                def tanh(self):
                    return record("tanh", self)

                def relu(self):
                    return record("relu", self)

                def sum(self, dim=None, keepdims=False):
                    return record(...)

                def reshape(self, *shape):
                    return record(...)

                def transpose(self, first, second):
                    return record(...)

            arrays = [Tensor.of(example).data for example in examples]
            body.inputs = ...
            results = f(*map(Traced, arrays, body.inputs))
            if not isinstance(results, (tuple, list)):
                results = [results]
            body.outputs = ...
            return graph
        ```
        """,
    ),
)


@own_trace.stub
def trace(f, *examples):
    """The graph of what f does with tensors like the examples."""
    graph = Graph(getattr(f, "__name__", type(f).__name__))

    def record(op, *operands, **attributes):
        """Compute, and write down; the result is traced."""
        # your code here: about 5 lines
        raise NotImplementedError

    class Traced(Tensor):
        """A tensor that has a value in the graph."""

        def __init__(self, data, value):
            super().__init__(data)
            self.value = value

        def exp(self):
            return record("exp", self)

        # your code here: the other operations, about 30 lines

    # your code here: about 6 lines
    raise NotImplementedError


@own_trace.reference()
def trace(f, *examples):
    """The graph of what f does with tensors like the examples."""
    graph = Graph(getattr(f, "__name__", type(f).__name__))
    body = graph.body

    def value_of(operand):
        if isinstance(operand, Traced):
            return operand.value
        data = Tensor.of(operand).data.copy()
        shapes = [data.shape]
        (value,) = graph.add(body, "constant", (), shapes, data=data)
        return value

    def record(op, *operands, **attributes):
        values = [value_of(operand) for operand in operands]
        arrays = [Tensor.of(operand).data for operand in operands]
        data = graph.ops[op](*arrays, **attributes)
        shapes = [np.shape(data)]
        (value,) = graph.add(body, op, values, shapes, **attributes)
        return Traced(data, value)

    class Traced(Tensor):
        """A tensor that has a value in the graph."""

        def __init__(self, data, value):
            super().__init__(data)
            self.value = value

        def __add__(self, other):
            return record("add", self, other)

        def __radd__(self, other):
            return record("add", other, self)

        def __mul__(self, other):
            return record("mul", self, other)

        def __rmul__(self, other):
            return record("mul", other, self)

        def __matmul__(self, other):
            return record("matmul", self, other)

        def __rmatmul__(self, other):
            return record("matmul", other, self)

        def __pow__(self, n):
            return record("pow", self, n=n)

        def exp(self):
            return record("exp", self)

        def log(self):
            return record("log", self)

        def tanh(self):
            return record("tanh", self)

        def relu(self):
            return record("relu", self)

        def sum(self, dim=None, keepdims=False):
            return record("sum", self, dim=dim, keepdims=keepdims)

        def reshape(self, *shape):
            return record("reshape", self, shape=shape)

        def transpose(self, first, second):
            return record("transpose", self, first=first, second=second)

    arrays = [Tensor.of(example).data for example in examples]
    body.inputs = [graph.value(array.shape) for array in arrays]
    results = f(*map(Traced, arrays, body.inputs))
    if not isinstance(results, (tuple, list)):
        results = [results]
    body.outputs = [value_of(result) for result in results]
    return graph


own_trace.changed(
    "a tensor on the left swallows the trace",
    """
    `weight @ x` and `weight * x`, with an ordinary tensor on the left, were computed by the ordinary
    method, and the result is a constant. Python asks the subclass first, but only for a reflected method
    (`__rmul__`) that the subclass defines itself.
    """,
    ('        def __radd__(self, other):\n            return record("add", other, self)\n\n', ""),
    ('        def __rmul__(self, other):\n            return record("mul", other, self)\n\n', ""),
    ('        def __rmatmul__(self, other):\n            return record("matmul", other, self)\n\n', ""),
)

own_trace.changed(
    "no product with a matrix on the left",
    """
    `array @ x` and `weight @ x` need `__rmatmul__`. Your `Tensor` has none, so it is easily forgotten:
    the traced class has to define it.
    """,
    ('        def __rmatmul__(self, other):\n            return record("matmul", other, self)\n\n', ""),
)

own_trace.changed(
    "a product of matrices in the wrong order",
    """
    `__rmatmul__(self, other)` is called for `other @ self`. Products of matrices do not commute: the
    other operand comes first.
    """,
    ('record("matmul", other, self)', 'record("matmul", self, other)'),
)

own_trace.changed(
    "constants follow later changes",
    """
    The constant kept the array itself. When somebody writes to that array later, as an optimizer does, the
    graph computes something else than what was traced. Keep a copy.
    """,
    ("Tensor.of(operand).data.copy()", "Tensor.of(operand).data"),
)

own_trace.changed(
    "attributes are not written down",
    """
    The array was computed with `dim`, and the node does not have it. The graph then sums over
    everything. Whatever the operation was called with belongs to the node.
    """,
    ("graph.add(body, op, values, shapes, **attributes)", "graph.add(body, op, values, shapes)"),
)

own_trace.changed(
    "always the first operand's shape",
    """
    The node's output got the shape of the first operand. A sum, a product of matrices and a broadcast
    have another one. The result is there: ask it.
    """,
    ("shapes = [np.shape(data)]", "shapes = [np.shape(arrays[0])]"),
)

own_trace.changed(
    "every tensor is an input",
    """
    Whatever was not traced became one more input of the graph. The graph is called with as many arrays
    as the function has parameters. What else the function uses is a constant.
    """,
    ('        shapes = [data.shape]\n'
     '        (value,) = graph.add(body, "constant", (), shapes, data=data)\n',
     "        value = graph.value(data.shape)\n        body.inputs.append(value)\n"),
)

own_trace.changed(
    "only the first result",
    """
    A function may return several tensors. Each of them is an output of the graph, in the same order.
    """,
    ("body.outputs = [value_of(result) for result in results]",
     "body.outputs = [value_of(result) for result in results[:1]]"),
)

own_trace.changed(
    "the last node is the result",
    """
    The graph returned what was computed last. A function may compute something that it does not
    return, and it may return its own input. The returned tensor has its value.
    """,
    ("body.outputs = [value_of(result) for result in results]",
     "body.outputs = [value_of(result) for result in results]\n"
     "    if len(results) == 1 and body.nodes:\n"
     "        body.outputs = body.nodes[-1].outputs"),
)

own_trace.changed(
    "keepdims is forgotten",
    """
    `sum` has two attributes. Without `keepdims` the dimension is gone in the graph, and the next
    operation broadcasts in another direction, or fails.
    """,
    ('record("sum", self, dim=dim, keepdims=keepdims)', 'record("sum", self, dim=dim)'),
)


def _affine(x):
    return x * 2.0 + 1.0


def _ran(f, program, *arrays, on=None):
    """What the traced graph gives, after it was checked."""
    graph = f(program, *arrays)
    graph.check()
    return graph.run(*(arrays if on is None else on))


def _same(program):
    return lambda *arrays: program(*map(Tensor, arrays)).data


@own_trace.check("one operation")
def _(f):
    x, y = np.array([1.0, -2.0, 3.0]), np.array([4.0, 0.5, -1.0])
    yield case("str(trace(product, …)), product(x, y) = x * y",
               lambda: str(f(_product, x, y))).gives(
        "graph _product(%0 : Tensor(3,), %1 : Tensor(3,)):\n"
        "  %2 : Tensor(3,) = mul(%0, %1)\n"
        "  return (%2)")
    yield case("the nodes of x ** 3", lambda: [(n.op, len(n.inputs), n.attributes) for n in f(
        lambda x: x**3, x).body.nodes]).gives([("pow", 1, {"n": 3})]).means(
        "The exponent is an attribute, no input.")
    for name, program in _OPERATIONS.items():
        yield case(f"the graph of {name}, checked and run", lambda p=program: _ran(f, p, x**2)).as_by(
            lambda p=program: _same(p)(x**2))


def _product(x, y):
    return x * y


_OPERATIONS = {
    "x.exp()": lambda x: x.exp(),
    "x.log()": lambda x: x.log(),
    "x.tanh()": lambda x: x.tanh(),
    "x.relu()": lambda x: x.relu(),
    "x ** 3": lambda x: x**3,
    "x @ x": lambda x: x @ x,
    "x + x": lambda x: x + x,
    "x.sum()": lambda x: x.sum(),
}


@own_trace.check("attributes and shapes")
def _(f):
    x = np.arange(6.0).reshape(2, 3)
    programs = {
        "x.sum(0)": lambda x: x.sum(0),
        "x.sum(1, keepdims=True) + x": lambda x: x.sum(1, keepdims=True) + x,
        "x.reshape(3, 2)": lambda x: x.reshape(3, 2),
        "x.reshape(-1)": lambda x: x.reshape(-1),
        "x.transpose(0, 1)": lambda x: x.transpose(0, 1),
        "x @ x.transpose(0, 1)": lambda x: x @ x.transpose(0, 1),
        "x.mean(0)": lambda x: x.mean(0),
    }
    for name, program in programs.items():
        yield case(f"the graph of {name}, x of shape (2, 3)", lambda p=program: _ran(f, p, x)).as_by(
            lambda p=program: _same(p)(x))
    yield case("the nodes of x.sum(1)", lambda: [(n.op, n.attributes) for n in f(
        lambda x: x.sum(1), x).body.nodes]).gives([("sum", {"dim": 1, "keepdims": False})])


@own_trace.check("constants on both sides")
def _(f):
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    weight = Tensor([[1.0, 0.0], [2.0, -1.0]], requires_grad=True)
    array = np.array([[0.0, 1.0], [1.0, 1.0]])
    programs = {
        "2 * x + 1": lambda x: 2 * x + 1,
        "1 - x / 2": lambda x: 1 - x / 2,
        "3 / (x + 1)": lambda x: 3 / (x + 1),
        "weight * x, a Tensor on the left": lambda x: weight * x,
        "weight + x": lambda x: weight + x,
        "weight - x": lambda x: weight - x,
        "x @ weight": lambda x: x @ weight,
        "weight @ x": lambda x: weight @ x,
        "array * x": lambda x: array * x,
    }
    for name, program in programs.items():
        yield case(f"{name}, traced with x and run on 10 · x",
                   lambda p=program: _ran(f, p, x, on=(10 * x,))).as_by(
            lambda p=program: _same(p)(10 * x)).means(
            "Whatever x takes part in has to be in the graph, on either side.")
    yield case("array @ x, traced with x and run on 10 · x",
               lambda: _ran(f, lambda x: array @ x, x, on=(10 * x,))).gives(array @ (10 * x))
    yield case("str(trace(lambda x: (2 * x).sum(), np.ones(3)))",
               lambda: str(f(lambda x: (2 * x).sum(), np.ones(3)))).gives(
        "graph <lambda>(%0 : Tensor(3,)):\n"
        "  %1 : Tensor() = constant[data=2.0]()\n"
        "  %2 : Tensor(3,) = mul(%1, %0)\n"
        "  %3 : Tensor() = sum[dim=None, keepdims=False](%2)\n"
        "  return (%3)")

    def changed_later():
        scale = np.array([1.0, 2.0])
        graph = f(lambda x: x * scale, x)
        scale[:] = 100.0
        return graph.run(x)

    yield case("x * scale, and scale is written to after tracing", changed_later).gives(
        x * np.array([1.0, 2.0]))


@own_trace.check("results", hidden=True)
def _(f):
    x = np.array([1.0, 2.0])

    def unused(x):
        x.exp()
        return x + 0.0

    def late(x):
        y = x * 3.0
        x.exp()
        return y

    def itself(x):
        x.exp()
        return x

    yield case("two results", lambda: _ran(f, lambda x: (x * 2, x.sum()), x)).gives(
        (2 * x, np.float64(3.0)))
    yield case("a list of results", lambda: len(f(lambda x: [x, x, x + 1], x).body.outputs)).gives(3)
    yield case("a result that is not the last that was computed", lambda: _ran(f, late, x)).gives(3 * x)
    yield case("the argument itself", lambda: _ran(f, itself, x)).gives(x)
    yield case("something computed and not used", lambda: _ran(f, unused, x)).gives(x)
    yield case("a result that was never traced", lambda: _ran(
        f, lambda x: Tensor([5.0, 6.0]), x, on=(0 * x,))).gives(np.array([5.0, 6.0]))
    yield case("how many inputs, nodes and outputs: a function with two constants", lambda: [
        len(part) for g in [f(_affine, x)] for part in (g.body.inputs, g.body.nodes, g.body.outputs)
    ]).gives([1, 4, 1])
    yield case("traced twice, the same text", lambda: str(f(_affine, x)) == str(f(_affine, x))).gives(
        True)
    yield case("an example that is a Tensor", lambda: str(f(_affine, Tensor(x))) == str(
        f(_affine, x))).gives(True)
    yield case("the example itself, after tracing", lambda: (f(_affine, x), x)[1].copy()).gives(
        np.array([1.0, 2.0]))


def _drawn(draw):
    """A random program of one's own Tensor, and the shapes of its two arguments."""
    shape = draw.choice(((3,), (2, 3), (3, 3)))
    other = draw.choice((shape, shape[-1:], ()))
    names, lines = ["x", "y"], []
    for n in range(draw.randint(1, 6)):
        a, b = (draw.choice(names) for _ in range(2))
        template = draw.choice(
            ("{a} + {b}", "{a} * {b}", "{a} - {b}", "{a}.tanh()", "2 * {a}", "{a} + w", "w * {a}",
             "1 - {a}", "{a}.relu()", "{a} ** 2", "{a} / 3", "{a}.sum(keepdims=True)", "w - {a}"))
        lines.append(f"{'abcdef'[n]} = " + template.format(a=a, b=b))
        names.append("abcdef"[n])
    return "; ".join(lines), draw.choice(names), shape, other


def _as_program(text, result, size):
    def program(x, y):
        known = {"x": x, "y": y, "w": Tensor(np.linspace(-1, 1, size))}
        exec(text, {}, known)
        return known[result]

    return program


@own_trace.check("any program")
def _(f):
    def arrays(shape, other, seed):
        draw = np.random.default_rng(seed)
        return draw.uniform(-1, 1, shape), draw.uniform(-1, 1, other)

    def of_answer(text, result, shape, other):
        program = _as_program(text, result, shape[-1])
        return _ran(f, program, *arrays(shape, other, 0), on=arrays(shape, other, 1))

    def plainly(text, result, shape, other):
        program = _as_program(text, result, shape[-1])
        return _same(program)(*arrays(shape, other, 1))

    yield agrees(of_answer, plainly, _drawn, count=60, tell=lambda text, result, shape, other: (
        f"f(x, y): {text}; return {result}; x {shape}, y {other}, w a Tensor ({shape[-1]},): "
        "the graph, checked and run on other arrays"))

    def hold():
        for make in drawn(_drawn, 15, 3):
            text, result, shape, other = make()
            yield case(f"f(x, y): {text}; return {result}: how many inputs", lambda p=(
                text, result, shape, other): len(f(_as_program(*p[:2], p[2][-1]), *arrays(
                    *p[2:], 0)).body.inputs)).gives(2)

    yield every("15 programs: the count of inputs", hold)
