"""What goes wrong with a tensor that records: the mutants of `tensor`."""

from course.exercises.ch04.tensor import tensor

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
