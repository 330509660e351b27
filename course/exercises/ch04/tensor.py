"""A tensor that records, and its engine: the largest file of the learner's own package."""

import numpy as np

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


@tensor.reference(stub={
    "made": "stage 2, your code here: about 3 lines (until then: Tensor(data))",
    **dict.fromkeys(
        ("__add__", "__mul__", "__pow__", "__matmul__", "exp", "log", "tanh", "relu", "reshape", "transpose"),
        "raise NotImplementedError  # your code here",
    ),
    "sum": "raise NotImplementedError  # your code here: about 8 lines",
    "backward": "stage 4, your code here: about 30 lines",
})
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
