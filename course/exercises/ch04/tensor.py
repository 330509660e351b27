"""A tensor that records, and its engine: the largest file of the learner's own package."""

from functools import partial

import numpy as np

import toytorch as torch
from course.cases import case
from course.records import Exercise
from mytorch.broadcast import sum_to

tensor = Exercise(
    "autograd.tensor",
    "A tensor that records",
    chapter=4,
    minutes=60,
    limit=6.0,
    prompt="""
    Now without toytorch: a class `Tensor` on NumPy arrays that records what you do, and goes back
    over it. It becomes `tensor.py` in your package `mytorch`, and every later chapter adds a file
    that stands on it. The checks come in stages, so check after each.

    | attribute | what it holds |
    | --- | --- |
    | `data` | the elements, a NumPy array of floats |
    | `requires_grad` | whether its gradient is to be computed |
    | `parents` | the tensors it was computed from; `()` for a leaf |
    | `pull` | a function: given its gradient, it returns one gradient for each parent, in order |
    | `grad` | for a leaf, after `backward`: a NumPy array of the shape of `data` |

    1. **Numbers.** `+`, `*`, `**` with a number, `@`, `sum`, `exp`, `log`, `tanh`, `relu`,
       `reshape` and `transpose` compute with NumPy. `-` and `/` follow from them and are given. The
       derivative of `relu` at 0 is 0.
    2. **Recording.** `Tensor.made(data, parents, pull)` makes every result. If a parent wants a
       gradient, the result does too and keeps `parents` and `pull`. If none does, it keeps nothing.
    3. **Derivatives.** Each operation hands `made` a `pull`. For `a * b` it is
       `lambda g: (g * b, g * a)`. Inputs that were broadcast need no care here: see 4.
    4. **The walk.** `backward` puts all tensors in topological order without recursion, adds up
       what arrives at each, and calls its `pull` once. What it delivers is first summed to the
       parent's shape by `sum_to`. Only leaves keep a `grad`, and it adds up over calls. Write out
       of place, since the same array may wait elsewhere. A `grad` is an array of its own.

    A trace, with a = 2, b = 3 and y = (a · b) + a, where m is the product:

    | step | tensor | its gradient | `pull` delivers | waiting afterwards |
    | --- | --- | --- | --- | --- |
    | 1 | y | 1 | 1 to m, 1 to a | m: 1, a: 1 |
    | 2 | m | 1 | 1 · 3 to a, 1 · 2 to b | a: 1 + 3, b: 2 |
    | 3 | a (leaf) | 4 | `a.grad = 4` | b: 2 |
    | 4 | b (leaf) | 2 | `b.grad = 2` | |
    """,
    without=("torch.Tensor", "torch.tensor", "torch.as_tensor", "torch.from_numpy"),
    hints=(
        """
        Each operation knows three things: its result, whom it was computed from, and how to turn the gradient of
        the result into gradients of those. `made` keeps the three together, and knows nothing of derivatives.
        `backward` knows nothing of operations: it is the engine of the last exercise, with `parents` for
        `next_functions` and `pull` for calling a node.
        """,
        """
        `x` of shape (2,), 3 and 4, and `y = (x * x).sum()`. The product is m, and `y.backward()` is called.

        | step | what happens |
        | --- | --- |
        | forward | m: data [9, 16], parents (x, x); y: data 25, parents (m,) |
        | order | depth first, written down when done: x, m, y; turned around: y, m, x |
        | start | waiting at y: 1 |
        | y | `pull(1)` gives [1, 1], the 1 for each element that was summed; waiting at m: [1, 1] |
        | m | `pull([1, 1])` gives [3, 4] for the first x and [3, 4] for the second |
        | | the first waits at x; the second finds it there, and a *new* array [6, 8] takes its place |
        | x | a leaf, since it has no `pull`: `x.grad` is a copy of [6, 8] |

        If x were of shape (1, 2) and the other factor of shape (3, 2), `pull` would give (3, 2) for both. That is what
        `sum_to(part, parent.data.shape)` is for, in one place for all operations.
        """,
        """
        ```python
        class Tensor:
            __array_ufunc__ = None

            def __init__(self, data, requires_grad=False, parents=(), pull=None):
                self.data = np.asarray(data, dtype=float)
                self.grad = None
                self.requires_grad = requires_grad
                self.parents = parents
                self.pull = pull

            @staticmethod
            def of(value):
                return value if isinstance(value, Tensor) else Tensor(value)

            @staticmethod
            def made(data, parents, pull):
                if ...:  # one parent that wants a gradient is enough
                    return ...
                return Tensor(data)

            def __mul__(self, other):
                other = Tensor.of(other)
                a, b = self.data, other.data
                return Tensor.made(a * b, (self, other), lambda g: (g * b, g * a))

            def __matmul__(self, other):
                other = Tensor.of(other)
                a, b = self.data, other.data

                def pull(g):
                    return ...  # only the last two dimensions are exchanged

                return Tensor.made(a @ b, (self, other), pull)

            def sum(self, dim=None, keepdims=False):
                shape = self.data.shape

                def pull(g):
                    if ...:  # the dimension is gone: put it back as 1
                        g = ...
                    return (...,)  # the same gradient for all that were summed

                total = self.data.sum(dim, keepdims=keepdims)
                return Tensor.made(total, (self,), pull)

            def tanh(self):
                y = np.tanh(self.data)
                return Tensor.made(y, (self,), lambda g: ...)

            def backward(self, gradient=None):
                if not self.requires_grad:
                    raise RuntimeError("this tensor does not require grad")
                if gradient is None:
                    ...  # 1 for a single number, else an error
                order, seen = [], {id(self)}
                ...  # topological order, over `parents` that want a gradient
                waiting = {id(self): np.asarray(gradient, dtype=float)}
                for node in reversed(order):
                    g = waiting.pop(id(node))
                    if node.pull is None:  # a leaf
                        ...
                        continue
                    for parent, part in zip(node.parents, node.pull(g)):
                        ...
        ```

        The other operations are written like these: `__add__`, `__pow__`, `exp`, `log`, `relu`, `reshape` and
        `transpose`. What the stub has below *these follow* stays as it is.
        """,
    ),
)


@tensor.stub
class Tensor:
    """Numbers that remember how they were made."""

    __array_ufunc__ = None  # array * tensor is a matter of our operators

    def __init__(self, data, requires_grad=False, parents=(), pull=None):
        self.data = np.asarray(data, dtype=float)
        self.grad = None
        self.requires_grad = requires_grad
        self.parents = parents
        self.pull = pull

    def __repr__(self):
        return f"Tensor({self.data}, requires_grad={self.requires_grad})"

    @staticmethod
    def of(value):
        """A tensor as it is, and anything else as a tensor."""
        return value if isinstance(value, Tensor) else Tensor(value)

    @staticmethod
    def made(data, parents, pull):
        """A result; recorded if one of its parents wants a gradient."""
        # stage 2, your code here: about 3 lines (until then: Tensor(data))
        raise NotImplementedError

    # -- operations, each about 3 lines -----------------------------------

    def __add__(self, other):
        raise NotImplementedError  # your code here

    def __mul__(self, other):
        raise NotImplementedError  # your code here

    def __pow__(self, n):
        """Every element to the power of n, a number."""
        raise NotImplementedError  # your code here

    def __matmul__(self, other):
        """The product of matrices, or of batches of them."""
        raise NotImplementedError  # your code here

    def sum(self, dim=None, keepdims=False):
        """The sum of all elements, or along one dimension."""
        raise NotImplementedError  # your code here: about 8 lines

    def exp(self):
        raise NotImplementedError  # your code here

    def log(self):
        raise NotImplementedError  # your code here

    def tanh(self):
        raise NotImplementedError  # your code here

    def relu(self):
        raise NotImplementedError  # your code here

    def reshape(self, *shape):
        raise NotImplementedError  # your code here

    def transpose(self, first, second):
        """Two dimensions exchanged."""
        raise NotImplementedError  # your code here

    # -- the walk ---------------------------------------------------------

    def backward(self, gradient=None):
        """Send a gradient (1 for a single number) down to every leaf."""
        # stage 4, your code here: about 30 lines
        raise NotImplementedError

    # -- these follow -----------------------------------------------------

    def mean(self, dim=None, keepdims=False):
        total = self.sum(dim, keepdims)
        return total * (total.data.size / self.data.size)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -Tensor.of(other)

    def __truediv__(self, other):
        return self * Tensor.of(other) ** -1

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return -self + other

    def __rtruediv__(self, other):
        return self**-1 * other


@tensor.reference
class Tensor:
    """Numbers that remember how they were made."""

    __array_ufunc__ = None  # array * tensor is a matter of our operators

    def __init__(self, data, requires_grad=False, parents=(), pull=None):
        self.data = np.asarray(data, dtype=float)
        self.grad = None
        self.requires_grad = requires_grad
        self.parents = parents
        self.pull = pull

    def __repr__(self):
        return f"Tensor({self.data}, requires_grad={self.requires_grad})"

    @staticmethod
    def of(value):
        """A tensor as it is, and anything else as a tensor."""
        return value if isinstance(value, Tensor) else Tensor(value)

    @staticmethod
    def made(data, parents, pull):
        """A result; recorded if one of its parents wants a gradient."""
        if any(parent.requires_grad for parent in parents):
            return Tensor(data, True, tuple(parents), pull)
        return Tensor(data)

    # -- operations, each about 3 lines -----------------------------------

    def __add__(self, other):
        other = Tensor.of(other)
        result = self.data + other.data
        return Tensor.made(result, (self, other), lambda g: (g, g))

    def __mul__(self, other):
        other = Tensor.of(other)
        a, b = self.data, other.data
        return Tensor.made(a * b, (self, other), lambda g: (g * b, g * a))

    def __pow__(self, n):
        """Every element to the power of n, a number."""
        a = self.data

        def pull(g):
            return (g * n * a ** (n - 1),)

        return Tensor.made(a**n, (self,), pull)

    def __matmul__(self, other):
        """The product of matrices, or of batches of them."""
        other = Tensor.of(other)
        a, b = self.data, other.data

        def pull(g):
            return g @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ g

        return Tensor.made(a @ b, (self, other), pull)

    def sum(self, dim=None, keepdims=False):
        """The sum of all elements, or along one dimension."""
        shape = self.data.shape

        def pull(g):
            if dim is not None and not keepdims:
                g = np.expand_dims(g, dim)
            return (np.broadcast_to(g, shape),)

        total = self.data.sum(dim, keepdims=keepdims)
        return Tensor.made(total, (self,), pull)

    def exp(self):
        y = np.exp(self.data)
        return Tensor.made(y, (self,), lambda g: (g * y,))

    def log(self):
        a = self.data
        return Tensor.made(np.log(a), (self,), lambda g: (g / a,))

    def tanh(self):
        y = np.tanh(self.data)
        return Tensor.made(y, (self,), lambda g: (g * (1 - y * y),))

    def relu(self):
        above = self.data > 0
        result = np.where(above, self.data, 0.0)
        return Tensor.made(result, (self,), lambda g: (g * above,))

    def reshape(self, *shape):
        a = self.data

        def pull(g):
            return (g.reshape(a.shape),)

        return Tensor.made(a.reshape(*shape), (self,), pull)

    def transpose(self, first, second):
        """Two dimensions exchanged."""
        result = self.data.swapaxes(first, second)
        return Tensor.made(
            result, (self,), lambda g: (g.swapaxes(first, second),)
        )

    # -- the walk ---------------------------------------------------------

    def backward(self, gradient=None):
        """Send a gradient (1 for a single number) down to every leaf."""
        if not self.requires_grad:
            raise RuntimeError("this tensor does not require grad")
        if gradient is None:
            if self.data.size != 1:
                raise RuntimeError("only one number has a gradient of 1")
            gradient = np.ones_like(self.data)
        order, seen = [], {id(self)}
        stack = [(self, iter(self.parents))]
        while stack:  # depth first; whoever is done is written down
            node, parents = stack[-1]
            for parent in parents:
                if parent.requires_grad and id(parent) not in seen:
                    seen.add(id(parent))
                    stack.append((parent, iter(parent.parents)))
                    break
            else:
                order.append(node)
                stack.pop()
        waiting = {id(self): np.asarray(gradient, dtype=float)}
        for node in reversed(order):
            g = waiting.pop(id(node))
            if node.pull is None:  # a leaf
                old = node.grad
                node.grad = np.array(g) if old is None else old + g
                continue
            for parent, part in zip(node.parents, node.pull(g)):
                if not parent.requires_grad:
                    continue
                part = sum_to(part, parent.data.shape)
                if id(parent) in waiting:
                    part = waiting[id(parent)] + part
                waiting[id(parent)] = part

    # -- these follow -----------------------------------------------------

    def mean(self, dim=None, keepdims=False):
        total = self.sum(dim, keepdims)
        return total * (total.data.size / self.data.size)

    def __neg__(self):
        return self * -1

    def __sub__(self, other):
        return self + -Tensor.of(other)

    def __truediv__(self, other):
        return self * Tensor.of(other) ** -1

    def __radd__(self, other):
        return self + other

    def __rmul__(self, other):
        return self * other

    def __rsub__(self, other):
        return -self + other

    def __rtruediv__(self, other):
        return self**-1 * other


tensor.changed(
    "keeps the graph only if both want a gradient",
    """
    A result was recorded only when *all* of its parents want a gradient. In `w * x` the data x
    wants none, and w does. One parent that wants a gradient is enough: `any`, not `all`.
    """,
    ("if any(", "if all("),
)

tensor.changed(
    "records everything",
    """
    Results were recorded although none of their parents wants a gradient. The values are right, but
    every array that was ever computed stays in memory, and `backward` walks over the data as well.
    """,
    ("if any(parent.requires_grad for parent in parents):", "if True:"),
)

tensor.changed(
    "multiplies by its own factor",
    """
    The derivative of a · b by a is b: each factor's gradient is g times the *other* factor.
    """,
    ("(g * b, g * a)", "(g * a, g * b)"),
)

tensor.changed(
    "the factors of a matrix product are not transposed",
    """
    For y = a @ b the gradients are g @ bᵀ and aᵀ @ g. Without transposing, shapes do not fit, or,
    for square matrices, fit and give wrong numbers. For batches only the last two dimensions are
    exchanged: `swapaxes(-1, -2)`.
    """,
    ("return g @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ g", "return g @ b, a @ g"),
)

tensor.changed(
    "transposes the whole array",
    """
    `.T` reverses *all* dimensions. Of a batch of matrices, shape (n, i, j), only the last two may
    be exchanged: `swapaxes(-1, -2)`.
    """,
    ("return g @ b.swapaxes(-1, -2), a.swapaxes(-1, -2) @ g", "return g @ b.T, a.T @ g"),
)

tensor.changed(
    "the derivative of tanh without the gradient that came",
    """
    `pull` returned the derivative 1 − y² alone. By the chain rule it is multiplied by g, the
    gradient of the result. With g = 1 the mistake does not show, but in the middle of a graph g has
    any value.
    """,
    ("(g * (1 - y * y),)", "(1 - y * y,)"),
)

tensor.changed(
    "a sum along a dimension sends back the wrong shape",
    """
    After `sum(dim)` the gradient lacks that dimension. Put it back with `np.expand_dims(g, dim)`
    before `np.broadcast_to`, else it is repeated along another dimension, or does not fit.
    """,
    ("if dim is not None and not keepdims:", "if False:"),
)

tensor.changed(
    "overwrites instead of adding",
    """
    A gradient that arrives where another one waits took its place. A tensor that is used twice gets
    two gradients, and they add up.
    """,
    ("part = waiting[id(parent)] + part", "pass"),
)

tensor.changed(
    "a second backward replaces the gradient",
    """
    `grad` of a leaf adds up over calls of `backward`, so that a batch can be handled in parts:
    `old + g`, unless there is none yet.
    """,
    ("np.array(g) if old is None else old + g", "np.array(g)"),
)

tensor.changed(
    "adds in place",
    """
    `waiting[...] += part` writes into an array that waits elsewhere as well: `a + b` delivers the
    *same* array to a and to b, and a view by `np.broadcast_to` cannot be written to at all. Add out
    of place: `waiting[...] = waiting[...] + part`.
    """,
    ("part = waiting[id(parent)] + part", "waiting[id(parent)] += part\n                    continue"),
)

tensor.changed(
    "goes down recursively",
    """
    The walk called itself for every parent. Python's call stack holds about a thousand calls, and
    a loop that adds up a loss makes deeper graphs. Keep the tensors that are not done on a list.
    """,
    (
        """        stack = [(self, iter(self.parents))]
        while stack:  # depth first; whoever is done is written down
            node, parents = stack[-1]
            for parent in parents:
                if parent.requires_grad and id(parent) not in seen:
                    seen.add(id(parent))
                    stack.append((parent, iter(parent.parents)))
                    break
            else:
                order.append(node)
                stack.pop()
""",
        """
        def visit(node):
            seen.add(id(node))
            for parent in node.parents:
                if parent.requires_grad and id(parent) not in seen:
                    visit(parent)
            order.append(node)

        visit(self)
""",
    ),
)

tensor.changed(
    "pushes every gradient on at once",
    """
    Each gradient was sent on as soon as it arrived, so a tensor that is used twice ran twice, and
    after sixty doublings 2⁶⁰ times. Wait until everything has arrived: go in topological order, and
    call each `pull` once with the sum.
    """,
    ("order, seen = [], {id(self)}", "order, seen = [], set()"),
    (
        "            node, parents = stack[-1]\n            for parent in parents:",
        "            node, g = stack.pop()\n            for parent in ():",
    ),
    ("stack = [(self, iter(self.parents))]", "stack = [(self, np.asarray(gradient))]"),
    ("                order.append(node)\n                stack.pop()\n", """                if node.pull is None:
                    node.grad = np.array(g) if node.grad is None else node.grad + g
                    continue
                for parent, part in zip(node.parents, node.pull(g)):
                    if parent.requires_grad:
                        part = sum_to(part, parent.data.shape)
                        stack.append((parent, part))
"""),
    ("        waiting = {id(self): np.asarray(gradient, dtype=float)}", "        waiting = {}"),
)

tensor.changed(
    "the derivative of relu at 0 is 1",
    """
    To the left of 0 the derivative is 0 and to the right it is 1. At 0 there is none; PyTorch and
    this class take 0. So the gradient passes only where the element is *greater* than 0.
    """,
    ("above = self.data > 0", "above = self.data >= 0"),
)

tensor.changed(
    "tanh by its formula",
    """
    exp(1000) is more than a float can hold, and infinity divided by infinity is NaN. `np.tanh` has no such
    step in between: it gives 1 and −1 far out, and the gradient there is 0.
    """,
    (
        "y = np.tanh(self.data)",
        "up, down = np.exp(self.data), np.exp(-self.data)\n        y = (up - down) / (up + down)",
    ),
)

tensor.changed(
    "the root keeps its gradient as well",
    """
    Only leaves keep a `grad`. The tensor on which `backward` is called is the beginning of the walk, and no
    leaf. Let what waits at it wait in a dictionary of the call, as for all others.
    """,
    (
        "        waiting = {id(self)",
        "        if self.pull is not None:\n"
        "            self.grad = np.asarray(gradient)\n"
        "        waiting = {id(self)",
    ),
)

tensor.changed(
    "leaves share one gradient",
    """
    `a + b` delivers the *same* array to a and b, and the user's own `gradient` may be it, too. If it becomes
    `a.grad` as it is, `a.grad *= 0.1` changes `b.grad` as well. The gradient of a sum cannot even be written to.
    Keep a copy: `np.array(g)`.
    """,
    ("np.array(g) if old is None", "g if old is None"),
)

tensor.changed(
    "a leaf's own backward does nothing",
    """
    The walk began below the tensor on which `backward` was called. A leaf has nothing below it, but
    its gradient with respect to itself is 1. Treat the first tensor like all others.
    """,
    (
        "        order, seen = [], {id(self)}",
        "        if self.pull is None:\n            return\n        order, seen = [], {id(self)}",
    ),
)

tensor.changed(
    "marks tensors as seen when they are put on the stack",
    """
    All parents were put on the stack and marked as seen at once. A parent that waits there is not done yet, but
    whoever meets it in the meantime takes it for done. So it ran before another one that sends to it. Mark a
    tensor when you go down to it, one at a time.
    """,
    (
        """        stack = [(self, iter(self.parents))]
        while stack:  # depth first; whoever is done is written down
            node, parents = stack[-1]
            for parent in parents:
                if parent.requires_grad and id(parent) not in seen:
                    seen.add(id(parent))
                    stack.append((parent, iter(parent.parents)))
                    break
            else:
                order.append(node)
                stack.pop()
""",
        """        stack = [(self, False)]
        while stack:
            node, finished = stack.pop()
            if finished:
                order.append(node)
                continue
            stack.append((node, True))
            for parent in node.parents:
                if parent.requires_grad and id(parent) not in seen:
                    seen.add(id(parent))
                    stack.append((parent, False))
""",
    ),
    ("g = waiting.pop(id(node))", "g = waiting.pop(id(node), 0.0)"),
)


# -- checks ---------------------------------------------------------------------------------------

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
