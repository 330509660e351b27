"""The checks of `tensor`."""

from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.exercises.ch04.tensor import tensor

_UNARY = {
    "exp": lambda x: x.exp(),
    "log": lambda x: (x * x + 1).log(),
    "tanh": lambda x: x.tanh(),
    "relu": lambda x: x.relu(),
    "square": lambda x: x**2,
    "cube": lambda x: x**3,
    "half": lambda x: x / 2,
    "inverse": lambda x: 1 / (x * x + 1),
    "sum": lambda x: x.sum(),
    "mean": lambda x: x.mean(),
    "sum of rows": lambda x: x.sum(-1),
    "sum of rows kept": lambda x: x.sum(-1, keepdims=True),
    "sum of columns": lambda x: x.sum(0),
    "flat": lambda x: x.reshape(-1),
    "transposed": lambda x: x.transpose(0, -1),
    "negative": lambda x: -x,
    "from 3": lambda x: 3 - x,
}
_ALONG = {"sum of rows", "sum of rows kept", "sum of columns", "transposed"}
_BINARY = {
    "+": lambda x, y: x + y,
    "-": lambda x, y: x - y,
    "*": lambda x, y: x * y,
    "/": lambda x, y: x / (y * y + 1),
    "@": lambda x, y: x @ y,
}


def _values(seed, *shape):
    return np.random.default_rng(seed).normal(size=shape).round(2)


def _arrays(result):
    return None if result is None else np.asarray(result).tolist()


def _pair(Tensor, array, wants=True):
    """The same leaf in the submission's class and in toytorch."""
    return (
        Tensor(array.copy(), requires_grad=wants),
        torch.tensor(array, requires_grad=wants),
    )


def _program(seed):
    """A random program: its leaves, its steps (a rule and what it takes), and its text."""
    draw = np.random.default_rng(seed)
    rows, inner, columns = (int(n) for n in draw.integers(1, 4, size=3))
    shapes = [(rows, inner), (inner, columns), (columns,), (rows, 1), ()]
    leaves = [(draw.normal(size=s).round(2), bool(draw.random() < 0.8)) for s in shapes]
    lines = [f"x{n} of {shape}" for n, shape in enumerate(shapes)]
    known, steps = [torch.tensor(array) for array, _ in leaves], []
    for _ in range(int(draw.integers(2, 8))):
        table = _UNARY if draw.random() < 0.5 else _BINARY
        name = str(draw.choice(list(table)))
        taken = [int(n) for n in draw.integers(len(known), size=1 if table is _UNARY else 2)]
        least = 2 if name == "@" else 1 if name in _ALONG else 0
        if min(known[n].ndim for n in taken) < least:
            continue
        try:
            result = table[name](*[known[n] for n in taken])
        except (RuntimeError, IndexError):
            continue  # shapes that do not fit
        if result.abs().max().item() > 20:
            continue
        known.append(result)
        steps.append((table[name], taken))
        text = " and ".join(f"x{n}" for n in taken)
        lines.append(f"x{len(known) - 1} = {name} of {text}")
    return leaves, steps, "; ".join(lines)


def _ran(leaf, leaves, steps):
    """The sum of all that a program computes, and the gradients of its leaves."""
    known = [leaf(array, wants) for array, wants in leaves]
    own = known[:]
    for rule, taken in steps:
        known.append(rule(*[known[n] for n in taken]))
    total = known[0].sum()
    for one in known[1:]:
        total = total + one.sum()
    if total.requires_grad:
        total.backward()
    return [float(total.data), *(_arrays(x.grad) for x in own)]


@tensor.check("1 · numbers")
def _(Tensor):
    a, b = _values(1, 2, 3), _values(2, 2, 3)
    square = _values(3, 3, 3)

    def data(run):
        def go():
            result = run()
            if not isinstance(result, Tensor):
                return f"a {type(result).__name__} and no Tensor"
            return _arrays(result.data)

        return go

    def T(array):
        return Tensor(array)

    yield case("Tensor(a) + Tensor(b)", data(lambda: T(a) + T(b))).gives(_arrays(a + b))
    yield case("Tensor(a) * Tensor(b)", data(lambda: T(a) * T(b))).gives(_arrays(a * b))
    yield case("Tensor(a) * 3 + 1", data(lambda: T(a) * 3 + 1)).gives(_arrays(a * 3 + 1))
    yield case("1 - 2 / Tensor(b)", data(lambda: 1 - 2 / T(b))).gives(_arrays(1 - 2 / b))
    yield case("Tensor(a) ** 3", data(lambda: T(a) ** 3)).gives(_arrays(a**3))
    yield case("Tensor(a) @ Tensor(c), c of shape (3, 3)", data(lambda: T(a) @ T(square))).gives(
        _arrays(a @ square)
    )
    for dim, keep in ((None, False), (0, False), (1, False), (-1, True)):
        summed = partial(lambda dim, keep: T(a).sum(dim, keepdims=keep), dim, keep)
        yield case(f"Tensor(a).sum({dim}, keepdims={keep})", data(summed)).gives(
            _arrays(a.sum(dim, keepdims=keep))
        )
    positive = np.abs(a) + 0.1
    yield case("exp", data(lambda: T(a).exp())).gives(_arrays(np.exp(a)))
    yield case("log", data(lambda: T(positive).log())).gives(_arrays(np.log(positive)))
    yield case("tanh", data(lambda: T(a).tanh())).gives(_arrays(np.tanh(a)))
    yield case("relu", data(lambda: T(a).relu())).gives(_arrays(np.maximum(a, 0)))
    yield case("reshape(3, 2)", data(lambda: T(a).reshape(3, 2))).gives(_arrays(a.reshape(3, 2)))
    yield case("transpose(0, 1)", data(lambda: T(a).transpose(0, 1))).gives(_arrays(a.T))


@tensor.check("2 · recording")
def _(Tensor):
    def leaves():
        return Tensor(2.0, requires_grad=True), Tensor(3.0)

    def product():
        a, b = leaves()
        y = a * b
        same = len(y.parents) == 2 and y.parents[0] is a and y.parents[1] is b
        return y.requires_grad, same, callable(y.pull)

    yield case("y = a * b, where a wants a gradient", product).holds(
        "y wants one too, its parents are a and b, and it has a pull",
        lambda got: got == (True, True, True),
    )

    def plain():
        y = (Tensor([1.0, 2.0]) * Tensor(3.0)).exp().sum()
        return y.requires_grad, len(y.parents), y.pull

    yield case("exp(a * 3).sum(), where nobody wants a gradient", plain).gives((False, 0, None))

    def pulled():
        a, b = leaves()
        return [float(part) for part in (a * b).pull(np.array(10.0))]

    yield case("(a * b).pull(10) with a = 2, b = 3", pulled).gives([30.0, 20.0])


@tensor.check("3 · derivatives")
def _(Tensor):
    def single(rule, *arrays):
        def run(kind):
            def go():
                leaves = [_pair(Tensor, array)[kind] for array in arrays]
                y = rule(*leaves)
                weight = _values(9, *y.data.shape) if y.data.shape else np.array(1.7)
                y.backward(weight if kind == 0 else torch.tensor(weight))
                return [_arrays(leaf.grad) for leaf in leaves]

            return go

        return run(0), run(1)()

    some = _values(4, 2, 3)
    for name, rule in _UNARY.items():
        mine, wanted = single(rule, some)
        yield case(f"{name} of a (2, 3)", mine).gives(wanted)
    pairs = {
        "+": ((2, 3), (2, 3)),
        "-": ((2, 3), (3,)),
        "*": ((2, 3), (2, 1)),
        "/": ((1, 3), (2, 1)),
        "@": ((2, 3), (3, 3)),
    }
    for name, shapes in pairs.items():
        arrays = [_values(5 + n, *shape) for n, shape in enumerate(shapes)]
        mine, wanted = single(_BINARY[name], *arrays)
        yield case(f"a {name} b for shapes {shapes[0]} and {shapes[1]}", mine).gives(wanted)
    batches = _values(7, 4, 2, 3), _values(8, 3, 2)
    mine, wanted = single(_BINARY["@"], *batches)
    yield case("a batch (4, 2, 3) @ one matrix (3, 2)", mine).gives(wanted)

    def slopes(rule, *numbers):
        def run():
            x = Tensor(numbers, requires_grad=True)
            with np.errstate(all="ignore"):
                y = rule(x)
                y.sum().backward()
            return y.data.tolist(), x.grad.tolist()

        return run

    yield case("relu at -1, 0 and 2, and its slope", slopes(lambda x: x.relu(), -1, 0, 2)).gives(
        ([0.0, 0.0, 2.0], [0.0, 0.0, 1.0])
    )
    yield case(
        "tanh at -1000, 0 and 1000, and its slope", slopes(lambda x: x.tanh(), -1000, 0, 1000)
    ).gives(([-1.0, 0.0, 1.0], [0.0, 1.0, 0.0]))
    yield case("x ** 0.5 at 4, and its slope", slopes(lambda x: x**0.5, 4)).gives(([2.0], [0.25]))


@tensor.check("4 · the walk")
def _(Tensor):
    def leaf(value=0.5):
        return Tensor(value, requires_grad=True)

    def grads(run):
        def go():
            x = leaf()
            run(x)
            return None if x.grad is None else float(x.grad)

        return go

    def twice(x):
        a = x.exp()
        (a * a.tanh().exp()).backward()

    real = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    twice(real)
    yield case("a = x.exp(); (a * a.tanh().exp()).backward()", grads(twice)).gives(
        real.grad.item()
    )

    def again(x):
        (x * 2).backward()
        (x * 3).backward()

    yield case("(x * 2).backward(); (x * 3).backward()", grads(again)).gives(5.0)

    def pulls():
        x, calls, made = leaf(), [], []
        y = x
        for _ in range(12):
            y = y + y
            made.append(y)
        for node in made:
            node.pull = lambda g, pull=node.pull: calls.append(1) or pull(g)
        y.backward()
        return len(calls), float(x.grad)

    yield case("y = y + y, 12 times: calls of pull, and x.grad", pulls).gives((12, 4096.0))

    def shared():
        a, b = leaf([1.0, 2.0]), leaf([3.0, 4.0])
        s = a + b
        (s + a).sum().backward()
        return a.grad.tolist(), b.grad.tolist()

    yield case("((a + b) + a).sum().backward()", shared).gives(([2.0, 2.0], [1.0, 1.0]))

    def deep(x):
        y = x
        for _ in range(5_000):
            y = -y
        y.backward()

    yield case("y = -y, 5,000 times", grads(deep)).gives(1.0)

    def middle():
        x = leaf()
        a = x * 2
        (a * a).backward()
        return a.grad

    yield case("the grad of a tensor in the middle", middle).gives(None)

    def ends():
        x = leaf()
        y = x * 2
        y.backward()
        return y.grad

    yield case("y = x * 2; y.backward(): y.grad", ends).gives(None)

    def own():
        a, b, given = leaf([1.0, 2.0]), leaf([3.0, 4.0]), np.array([1.0, 1.0])
        (a + b).backward(given)
        a.grad *= 10
        return a.grad.tolist(), b.grad.tolist(), given.tolist()

    yield case("(a + b).backward(g); a.grad *= 10: a.grad, b.grad and g", own).gives(
        ([10.0, 10.0], [1.0, 1.0], [1.0, 1.0])
    )
    yield case("x.backward() on a leaf", grads(lambda x: x.backward())).gives(1.0)
    yield case("backward where nobody wants a gradient", lambda: Tensor(1.0).backward()).raises(
        RuntimeError
    )
    yield case(
        "backward of two numbers without a gradient", lambda: (leaf([1.0, 2.0]) * 2).backward()
    ).raises(RuntimeError)

    def untouched():
        x, given = leaf([1.0, 2.0]), np.array([1.0, 1.0])
        y = x * x
        y.backward(given)
        y.backward(given)
        return x.data.tolist(), given.tolist(), x.grad.tolist()

    yield case("backward(g) twice, with the same g", untouched).gives(
        ([1.0, 2.0], [1.0, 1.0], [4.0, 8.0])
    )


@tensor.check("5 · random programs")
def _(Tensor):
    def mine(array, wants):
        return Tensor(array.copy(), requires_grad=wants)

    def real(array, wants):
        return torch.tensor(array, requires_grad=wants)

    for seed in range(40):
        leaves, steps, text = _program(seed)
        run = case(text, partial(_ran, mine, leaves, steps))
        yield run.gives(_ran(real, leaves, steps), tolerance=1e-5)


@tensor.check("6 · XOR is learned", hidden=True)
def _(Tensor):
    def learn():
        draw = np.random.default_rng(0)
        w1 = Tensor(draw.normal(size=(2, 8)), requires_grad=True)
        b1 = Tensor(np.zeros(8), requires_grad=True)
        w2 = Tensor(draw.normal(size=(8, 1)), requires_grad=True)
        b2 = Tensor(np.zeros(1), requires_grad=True)
        x = np.array([[0, 0], [0, 1], [1, 0], [1, 1]], dtype=float)
        y = np.array([[0], [1], [1], [0]], dtype=float)
        for _ in range(500):
            out = (Tensor(x) @ w1 + b1).tanh() @ w2 + b2
            loss = ((out - y) ** 2).mean()
            for p in (w1, b1, w2, b2):
                p.grad = None
            loss.backward()
            for p in (w1, b1, w2, b2):
                p.data = p.data - 0.2 * p.grad
        return (out.data > 0.5).astype(int).ravel().tolist()

    yield case("a network of 8 hidden units, 500 steps", learn).gives([0, 1, 1, 0])
