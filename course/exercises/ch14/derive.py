"""Derivatives of a graph, as more of the graph."""

import numpy as np

from course.cases import case
from course.exercises.ch14.common import arrays_for, drawn_lines, read, written
from course.properties import agrees
from course.records import Exercise

own_derive = Exercise(
    "fusion.derive",
    "Derivatives as nodes",
    chapter=14,
    minutes=60,
    prompt="""
    The engine of chapter 04 walks back through closures each time. A graph can be derived **once**: the
    derivative is more nodes, and every pass improves them too. Write `derive(graph)`, which becomes
    `derive.py` in `mytorch`. The graph has one output of shape `()`, no blocks, and all shapes are
    known. `derive` appends nodes, changes the outputs to `[output, *gradients]`, with a
    gradient for each **input**, in order, and returns the graph.

    It goes through the nodes in reverse. For each value there is at most one gradient, also a value. Write
    these in order; the checks say how far you are.

    **1 · Help.** `add(op, *inputs, **attributes)` appends a node to the body, with the shape that
    `graph.ops` gives for `np.ones` of the inputs' shapes, and returns its value. `number(x)` makes a
    constant. Then the rules, with g for the result's gradient and y for the result:

    | node | gradient of its inputs, made by nodes |
    | --- | --- |
    | `add(a, b)` | g, g |
    | `mul(a, b)` | g · b, g · a |
    | `neg(a)` | −g |
    | `sub(a, b)` | g, −g |
    | `exp(a)` | g · y |
    | `log(a)` | g / a |
    | `tanh(a)` | g · (1 − y · y) |
    | `relu(a)` | g · (a > 0), by `gt` with the number 0 |
    | `pow[n](a)` | g · (n · a ** (n − 1)) |

    **2 · Adding up.** A value that is used twice gets the sum of what arrives. A node whose result
    has no gradient is skipped. Of `gt`, `lt` and constants, nothing is derived. An input that the
    output does not depend on has the gradient zero, a constant of its shape.

    **3 · Broadcasts.** What arrives at a value of a smaller shape is summed to this shape first: `sum`
    over the dimensions that were added or were 1, then `reshape`. If nothing was broadcast, no
    node is made.

    **4 · The other rules.** `div(a, b)`: g / b and −(g · y) / b. `matmul(a, b)` of matrices: g @ bᵀ
    and aᵀ @ g, with `transpose[first=-1, second=-2]`. `sum[dim, keepdims]`: g with the summed
    dimensions put back as 1 (`reshape`), times a constant of ones of the input's shape.
    `reshape`: g in the input's shape. `transpose`: the same transposition.

    For example, y = sum(x · x) with x of shape (2,):

    | node of the graph | what is appended | gradients afterwards |
    | --- | --- | --- |
    | (start) | `%3 = constant[1.0]` | %2: %3 |
    | `%2 = sum(%1)` | `%4 = reshape[(1,)](%3)`, `%5 = constant[ones (2,)]`, `%6 = mul(%4, %5)` | %1: %6 |
    | `%1 = mul(%0, %0)` | `%7 = mul(%6, %0)`, `%8 = mul(%6, %0)`, `%9 = add(%7, %8)` | %0: %9 |
    | (end) | | the outputs are %2, %9 |

    %7 and %8 are the same, and `share` will find that.
    """,
    hints=(
        """
        Two dictionaries are enough: `gradients`, from a value to the value of its gradient, and a table
        of rules, from an op to a function of (node, g) that returns the list of gradients for the
        node's inputs. The walk is the one of chapter 04, without a topological sort: the nodes
        of a graph are in order already.
        """,
        """
        Summing a gradient of shape (5, 3) to a value of shape (1, 3), and to one of shape (3,):

        | value's shape | aligned on the right | dims to sum | after `sum[keepdims=True]` | `reshape` |
        | --- | --- | --- | --- | --- |
        | (1, 3) | (1, 3) | (0,) | (1, 3) | (1, 3) |
        | (3,) | (1, 3) | (0,) | (1, 3) | (3,) |
        | () | (1, 1) | (0, 1) | (1, 1) | () |

        `sum[dim=1, keepdims=False]` of (5, 3) gives (5,). Its gradient is put back as (5, 1): that is
        the shape of `np.ones((5, 3)).sum(1, keepdims=True)`.
        """,
        """
        ```python
        def derive(graph):
            body, gradients = graph.body, {}

            def number(x):
                data = np.array(x, dtype=float)
                return ...

            def add(op, *inputs, **attributes):
                ones = [np.ones(value.type.shape) for value in inputs]
                shape = ...
                return graph.add(body, op, inputs, [shape], **attributes)[0]

            def turned(value):
                return add("transpose", value, first=-1, second=-2)

            def fitted(g, shape):
                if g.type.shape == shape:
                    return g
                extra = len(g.type.shape) - len(shape)
                aligned = (1,) * extra + shape
                dims = tuple(...)
                g = add("sum", g, dim=dims, keepdims=True)
                return ...

            def arrives(value, g):
                g = fitted(g, value.type.shape)
                old = gradients.get(value)
                gradients[value] = ...

            def rule(node, g):
                a, b = (*node.inputs, None, None)[:2]
                y, said = node.outputs[0], node.attributes
                match node.op:
                    case "add":
                        return [g, g]
                    case "sub":
                        return ...
                    case "mul":
                        return ...
                    case "div":
                        return ...
                    case "neg":
                        return ...
                    case "exp":
                        return ...
                    case "log":
                        return ...
                    case "tanh":
                        return ...
                    case "relu":
                        return ...
                    case "pow":
                        n = said["n"]
                        power = add("pow", a, n=n - 1)
                        return ...
                    case "matmul":
                        return ...
                    case "sum":
                        ones = np.ones(a.type.shape)
                        shape = ...
                        g = add("reshape", g, shape=shape)
                        return ...
                    case "reshape":
                        return ...
                    case "transpose":
                        return ...
                    case _:
                        return []

            (output,) = body.outputs
            gradients[output] = number(1.0)
            for node in body.nodes[::-1]:
                if node.outputs[0] in gradients:
                    parts = ...
                    for value, g in zip(node.inputs, parts):
                        arrives(value, g)
            body.outputs = ...
            return graph
        ```
        """,
    ),
)


@own_derive.stub
def derive(graph):
    """The same graph, which also gives the gradients of its inputs."""
    body, gradients = graph.body, {}

    def number(x):
        """A constant."""
        # your code here: about 2 lines
        raise NotImplementedError

    def add(op, *inputs, **attributes):
        """The value of a new node."""
        # your code here: about 3 lines
        raise NotImplementedError

    # your code here: about 65 lines
    raise NotImplementedError


@own_derive.reference()
def derive(graph):
    """The same graph, which also gives the gradients of its inputs."""
    body, gradients = graph.body, {}

    def number(x):
        data = np.array(x, dtype=float)
        return graph.add(body, "constant", (), [data.shape], data=data)[0]

    def add(op, *inputs, **attributes):
        ones = [np.ones(value.type.shape) for value in inputs]
        shape = np.shape(graph.ops[op](*ones, **attributes))
        return graph.add(body, op, inputs, [shape], **attributes)[0]

    def turned(value):
        return add("transpose", value, first=-1, second=-2)

    def fitted(g, shape):
        if g.type.shape == shape:
            return g
        extra = len(g.type.shape) - len(shape)
        aligned = (1,) * extra + shape
        dims = tuple(n for n, size in enumerate(aligned) if size == 1)
        g = add("sum", g, dim=dims, keepdims=True)
        return add("reshape", g, shape=shape)

    def arrives(value, g):
        g = fitted(g, value.type.shape)
        old = gradients.get(value)
        gradients[value] = g if old is None else add("add", old, g)

    def rule(node, g):
        a, b = (*node.inputs, None, None)[:2]
        y, said = node.outputs[0], node.attributes
        match node.op:
            case "add":
                return [g, g]
            case "sub":
                return [g, add("neg", g)]
            case "mul":
                return [add("mul", g, b), add("mul", g, a)]
            case "div":
                turn = add("neg", add("div", add("mul", g, y), b))
                return [add("div", g, b), turn]
            case "neg":
                return [add("neg", g)]
            case "exp":
                return [add("mul", g, y)]
            case "log":
                return [add("div", g, a)]
            case "tanh":
                rest = add("sub", number(1.0), add("mul", y, y))
                return [add("mul", g, rest)]
            case "relu":
                return [add("mul", g, add("gt", a, number(0.0)))]
            case "pow":
                n = said["n"]
                power = add("pow", a, n=n - 1)
                return [add("mul", g, add("mul", number(n), power))]
            case "matmul":
                other = add("matmul", turned(a), g)
                return [add("matmul", g, turned(b)), other]
            case "sum":
                ones = np.ones(a.type.shape)
                shape = ones.sum(said.get("dim"), keepdims=True).shape
                g = add("reshape", g, shape=shape)
                return [add("mul", g, number(ones))]
            case "reshape":
                return [add("reshape", g, shape=a.type.shape)]
            case "transpose":
                return [add("transpose", g, **said)]
            case _:
                return []

    (output,) = body.outputs
    gradients[output] = number(1.0)
    for node in body.nodes[::-1]:
        if node.outputs[0] in gradients:
            parts = rule(node, gradients[node.outputs[0]])
            for value, g in zip(node.inputs, parts):
                arrives(value, g)
    body.outputs = [output] + [
        gradients.get(value) or number(np.zeros(value.type.shape))
        for value in body.inputs
    ]
    return graph


own_derive.changed(
    'the last gradient counts',
    """
    A value that is used twice got the gradient of one use only. What arrives from all uses is added
    up.
    """,
    ('gradients[value] = g if old is None else add("add", old, g)', 'gradients[value] = g'),
)


own_derive.changed(
    'from the front',
    """
    The nodes were visited from the front. A node's gradient is complete once all nodes behind it
    have been visited: begin at the end.
    """,
    ('for node in body.nodes[::-1]:', 'for node in body.nodes[:]:'),
)


own_derive.changed(
    'broadcasts are not undone',
    """
    A gradient kept the larger shape. The input was used for many elements of the result, so its
    gradient is the sum over all of them.
    """,
    ('        g = fitted(g, value.type.shape)\n', ''),
)


own_derive.changed(
    'undoes only added dimensions',
    """
    A dimension of size 1 that was broadcast was not summed. It is used for each element along the
    dimension, just like one that was added.
    """,
    ('dims = tuple(n for n, size in enumerate(aligned) if size == 1)',
     'dims = tuple(range(extra))'),
)


own_derive.changed(
    'the derivative of exp is 1',
    """
    The result's gradient was passed on. The derivative of exp is exp itself, and its result is
    there: g · y.
    """,
    ('return [add("mul", g, y)]', 'return [g]'),
)


own_derive.changed(
    'tanh by its input',
    """
    The derivative was computed from the input. 1 − y · y needs the *result* y.
    """,
    ('add("mul", y, y)', 'add("mul", a, a)'),
)


own_derive.changed(
    'a power loses its factor',
    """
    The derivative of a ** n is n · a ** (n − 1). The factor n was left out.
    """,
    ('add("mul", number(n), power)', 'power'),
)


own_derive.changed(
    "a quotient's second sign",
    """
    The derivative of a / b with respect to b is −a / b². The sign was left out.
    """,
    ('turn = add("neg", add("div", add("mul", g, y), b))',
     'turn = add("div", add("mul", g, y), b)'),
)


own_derive.changed(
    'sub passes the same on to both',
    """
    The second operand of a difference is subtracted, so its gradient is −g.
    """,
    ('return [g, add("neg", g)]', 'return [g, g]'),
)


own_derive.changed(
    'a product of matrices in the wrong order',
    """
    The gradient of a is g @ bᵀ, that of b is aᵀ @ g. Products of matrices do not commute.
    """,
    ('add("matmul", turned(a), g)', 'add("matmul", turned(g), a)'),
)


own_derive.changed(
    'a sum passes its gradient on',
    """
    The gradient of a sum has the shape of the result. Each element that was summed gets it:
    multiply ones of the input's shape by it.
    """,
    ('return [add("mul", g, number(ones))]', 'return [g]'),
)


own_derive.changed(
    'a summed dimension is not put back',
    """
    `sum[dim=1]` without `keepdims` loses a dimension. Unless it is put back as 1, the gradient is
    broadcast along the wrong one.
    """,
    ('                g = add("reshape", g, shape=shape)\n', ''),
)


own_derive.changed(
    'relu lets everything pass',
    """
    The gradient passed also where the input was negative. There relu is constant, and its
    derivative is 0.
    """,
    ('return [add("mul", g, add("gt", a, number(0.0)))]', 'return [g]'),
)


own_derive.changed(
    'unused inputs are left out',
    """
    The outputs are a gradient for *each* input. One that the output does not depend on has the
    gradient zero.
    """,
    ('        gradients.get(value) or number(np.zeros(value.type.shape))\n        for value in body.inputs\n',
     '        gradients[value] for value in body.inputs if value in gradients\n'),
)


own_derive.changed(
    'the output is lost',
    """
    A training step wants the loss as well. The outputs are the old one, and then the gradients.
    """,
    ('body.outputs = [output] + [', 'body.outputs = ['),
)


def _gradients(f, lines, shape=(2,), seed=0):
    """Output and gradients of sum(last line)."""
    graph = f(written([*lines, f"s = sum {lines[-1].split()[0]}"], shape))
    graph.check()
    return [np.asarray(part) for part in graph.run(*arrays_for(graph, seed))]


def _by_engine(lines, shape=(2,), seed=0):
    """The same by the engine of chapter 04."""
    from mytorch.tensor import Tensor

    graph = written(lines, shape)
    known = {name: Tensor(array, requires_grad=True) for name, array in zip("xy", arrays_for(graph, seed))}
    leaves = list(known.values())
    for node, line in zip(graph.body.nodes, lines):
        name, _, rest = line.partition(" = ")
        given = [known[v] for v in rest.split()[1:] if v in known]
        known[name] = _OPERATIONS[node.op](*given, **node.attributes)
    total = known[name].sum()
    if total.requires_grad:
        total.backward()
    return [total.data, *(np.zeros(shape) if x.grad is None else x.grad for x in leaves)]


_OPERATIONS = {
    "constant": lambda data: _tensor(data),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": lambda a, b: a / b,
    "neg": lambda a: -a,
    "exp": lambda a: a.exp(),
    "log": lambda a: a.log(),
    "tanh": lambda a: a.tanh(),
    "relu": lambda a: a.relu(),
    "pow": lambda a, n: a**n,
    "matmul": lambda a, b: a @ b,
    "sum": lambda a, **said: a.sum(**said),
    "reshape": lambda a, shape: a.reshape(*shape),
    "transpose": lambda a, first, second: a.transpose(first, second),
}


def _tensor(data):
    from mytorch.tensor import Tensor

    return Tensor(data)


def _same(f, text, lines, shape=(2,)):
    return case(f"{text}: sum, and the gradients of x and y {shape}",
                lambda: _gradients(f, lines, shape)).as_by(lambda: _by_engine(lines, shape))


@own_derive.check("1 · rules")
def _(f):
    yield case("x · x, summed, x (2,): the graph", lambda: read(f(written(
        ["a = mul x x", "s = sum a"], inputs=("x",))))).gives(_SQUARE)
    for text, lines in {
        "x + y": ["a = add x y"], "x - y": ["a = sub x y"], "x · y": ["a = mul x y"],
        "-x": ["a = neg x"], "exp(x)": ["a = exp x"], "log(x)": ["a = log x"],
        "tanh(x)": ["a = tanh x"], "relu(x - y)": ["a = sub x y", "b = relu a"],
        "x ** 3": ["a = pow x n=3"], "x ** -1": ["a = pow x n=-1"],
    }.items():
        yield _same(f, text, lines)


_SQUARE = ["a = mul x x", "s = sum a", "2 = constant data=1.0", "3 = reshape 2 shape=[1]",
           "4 = constant data=[1.0, 1.0]", "5 = mul 3 4", "6 = mul 5 x", "7 = mul 5 x", "8 = add 6 7",
           "-> s 8"]


@own_derive.check("2 · adding up")
def _(f):
    yield _same(f, "a = exp(x), a · a + a", ["a = exp x", "b = mul a a", "c = add b a"])
    yield _same(f, "a diamond: tanh(a) · exp(a), a = x · y", [
        "a = mul x y", "b = tanh a", "c = exp a", "d = mul b c"])
    yield _same(f, "y is not used: exp(x)", ["a = exp x"])
    yield _same(f, "a node that is not used: b = exp(y); x · x", ["b = exp y", "a = mul x x"])
    yield case("how many outputs", lambda: len(f(written(["a = exp x", "s = sum a"])).body.outputs)).gives(3)
    yield _same(f, "2 · x", ["p = constant 2", "a = mul p x"])


@own_derive.check("3 · broadcasts")
def _(f):
    yield _same(f, "x + sum(y)", ["a = sum y", "b = add x a"])
    yield _same(f, "x · y.sum(0)", ["a = sum y dim=0", "b = mul x a"], (4, 3))
    yield _same(f, "x · y.sum(1, keepdims)", ["a = sum y dim=1 keepdims=True", "b = mul x a"], (4, 3))
    yield _same(f, "y.sum(0, keepdims) · x.sum(1, keepdims)", [
        "a = sum y dim=0 keepdims=True", "b = sum x dim=1 keepdims=True", "c = mul a b"], (4, 3))
    yield case("x + y: how many nodes are sums or reshapes", lambda: sum(
        n.op in ("sum", "reshape") for n in f(written(["a = add x y", "s = sum a"])).body.nodes)).gives(2)


@own_derive.check("4 · the other rules")
def _(f):
    yield _same(f, "x / y", ["a = div x y"])
    yield _same(f, "x @ yᵀ", ["t = transpose y first=0 second=1", "a = matmul x t", "b = tanh a"], (3, 2))
    yield _same(f, "x @ y, squared", ["a = matmul x y", "b = mul a a"], (3, 3))
    yield _same(f, "x.sum(1) ** 2", ["a = sum x dim=1", "b = pow a n=2"], (3, 3))
    yield _same(f, "x.reshape(6) · y.reshape(6)", [
        "a = reshape x shape=(6,)", "b = reshape y shape=(6,)", "c = mul a b", "d = exp c"], (3, 2))
    yield _same(f, "softmax", ["a = exp x", "b = sum a dim=1 keepdims=True", "c = div a b",
                               "d = mul c y"], (4, 3))


@own_derive.check("derived twice", hidden=True)
def _(f):
    def second():
        graph = f(written(["a = pow x n=3", "s = sum a"], (), inputs=("x",)))
        graph.body.outputs = graph.body.outputs[1:]  # the derivative, of shape ()
        f(graph)
        graph.check()
        return [float(part) for part in graph.run(2.0)]

    yield case("x ** 3 at 2, derived, and the derivative derived", second).gives([12.0, 12.0])

    def same():
        graph = written(["a = exp x", "s = sum a"])
        return f(graph) is graph

    yield case("derive returns the graph that it was given", same).gives(True)
    yield case("the output is an input: x, of shape ()", lambda: [float(v) for v in f(written(
        [], (), outputs=["x"])).run(3.0, 4.0)]).gives([3.0, 1.0, 0.0])
    yield case("x of shape (1, 3) + y.sum() of shape ()", lambda: [
        part.tolist() for part in _gradients(f, ["a = sum y", "b = mul x a"], (1, 3))]).as_by(
        lambda: [part.tolist() for part in _by_engine(["a = sum y", "b = mul x a"], (1, 3))])


@own_derive.check("any graph")
def _(f):
    def lines_of(draw):
        lines, _ = drawn_lines(draw, ("add", "mul", "sub", "tanh", "neg", "relu", "sum"))
        return (lines,)

    yield agrees(lambda lines: _gradients(f, lines, (3,)), lambda lines: _by_engine(lines, (3,)),
                 lines_of, count=60, tell=lambda lines: (
        f"x, y (3,); {'; '.join(lines)}; the sum of the last, and its gradients"))
