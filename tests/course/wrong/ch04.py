"""Wrong answers to the exercises of chapter 04."""

import numpy as np

import toytorch as torch
from tests.course.wrong import handed_in, like, wrong

# -- autograd.unbroadcast -------------------------------------------------------------------------


@wrong("autograd.unbroadcast", "takes the first copy")
def sum_to(g, shape):
    while g.ndim > len(shape):
        g = g[0]
    for dim, size in enumerate(shape):
        if size == 1:
            g = g[(slice(None),) * dim + (slice(1),)]
    return g


like(
    "autograd.unbroadcast",
    "one extra dimension at most",
    ("while", "if"),
)


@wrong("autograd.unbroadcast", "finds dimensions by their size")
def sum_to(g, shape):
    gone = [d for d, size in enumerate(g.shape) if size not in shape]
    for d in reversed(gone):
        g = g.sum(d)
    return g.reshape(shape)


@wrong("autograd.unbroadcast", "sums everything where shapes differ")
def sum_to(g, shape):
    return g if tuple(g.shape) == tuple(shape) else g.sum().reshape((1,) * len(shape))


@wrong("autograd.unbroadcast", "leaves the graph")
def sum_to(g, shape):
    if hasattr(g, "detach"):
        g = g.detach()
    while g.ndim > len(shape):
        g = g.sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and g.shape[dim] != 1:
            g = g.sum(dim, keepdims=True)
    return g


@wrong("autograd.unbroadcast", "works on toytorch's tensors only")
def sum_to(g, shape):
    while g.dim() > len(shape):
        g = g.sum(dim=0)
    for dim, size in enumerate(shape):
        if size == 1 and g.size(dim) != 1:
            g = g.sum(dim=dim, keepdim=True)
    return g


like(
    "autograd.unbroadcast",
    "a dimension of size 0 is left",
    ("g.shape[dim] != 1", "g.shape[dim] > 1"),
)


@wrong("autograd.unbroadcast", "is sum_to_size")
def sum_to(g, shape):
    return torch.tensor(g).sum_to_size(shape) if isinstance(g, np.ndarray) else g.sum_to_size(shape)


# -- autograd.order -------------------------------------------------------------------------------


@wrong("autograd.order", "marks nodes as seen when they are put on the stack")
def topological_order(root):
    done, seen, stack = [], {root}, [(root, False)]
    while stack:
        node, finished = stack.pop()
        if finished:
            done.append(node)
            continue
        stack.append((node, True))
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append((target, False))
    return done[::-1]


@wrong("autograd.order", "moves a node to the end when it is met again")
def topological_order(root):
    nodes = [root]
    for node in nodes:
        for target, _ in node.next_functions:
            if target is None:
                continue
            if target in nodes and nodes.index(target) > nodes.index(node):
                nodes.remove(target)
            if target not in nodes:
                nodes.append(target)
    return nodes


@wrong("autograd.order", "counts senders instead of edges")
def topological_order(root):
    missing, stack = {root: 0}, [root]
    while stack:
        for target in {target for target, _ in stack.pop().next_functions}:
            if target is None:
                continue
            if target not in missing:
                missing[target] = 0
                stack.append(target)
            missing[target] += 1
    order, ready = [], [root]
    while ready:
        node = ready.pop()
        order.append(node)
        for target, _ in node.next_functions:
            if target is not None:
                missing[target] -= 1
                if missing[target] == 0:
                    ready.append(target)
    return order


like(
    "autograd.order",
    "leaves the leaves out",
    ("return done[::-1]", "return [n for n in done[::-1] if n.next_functions]"),
)
like(
    "autograd.order",
    "an iterator instead of a list",
    ("return done[::-1]", "return reversed(done)"),
)


@wrong("autograd.order", "stops at the first input that wants nothing")
def topological_order(root):
    done, seen, stack = [], set(), [(root, False)]
    while stack:
        node, finished = stack.pop()
        if finished:
            done.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            for target, _ in node.next_functions:
                if target is None:
                    break
                stack.append((target, False))
    return done[::-1]


like(
    "autograd.order",
    "remembers the nodes of the call before",
    ("(root):", "(root, seen=set()):"),
    ("done, seen = [], {root}", "done = []\n    seen.add(root)"),
)
like(
    "autograd.order",
    "looks for nodes in a list",
    ("{root}", "[root]"),
    ("add", "append"),
)


@wrong("autograd.order", "is toytorch's own order")
def topological_order(root):
    from toytorch.autograd import engine

    return engine.by_sequence(engine.reachable([root]))


# -- autograd.engine ------------------------------------------------------------------------------

like(
    "autograd.engine",
    "counts senders instead of edges",
    (
        "for target, _ in stack.pop().next_functions:",
        "for target in {target for target, _ in stack.pop().next_functions}:",
    ),
)
like(
    "autograd.engine",
    "does not count down where nothing is sent",
    (
        "            if target is None:\n                continue\n            if part",
        (
            "            if target is None or part is None:\n"
            "                continue\n"
            "            if part"
        ),
    ),
)
like(
    "autograd.engine",
    "stops at the first input that wants nothing",
    (
        "            if target is None:\n                continue\n            if part",
        "            if target is None:\n                break\n            if part",
    ),
)
like(
    "autograd.engine",
    "does not send zeros on",
    (
        "            if part is not None:",
        (
            "            if part is not None and not part.any():\n"
            "                continue\n"
            "            if part is not None:"
        ),
    ),
)
like("autograd.engine", "leaves the graph", ("else node(g)", "else node(g.detach())"))
like(
    "autograd.engine",
    "takes nothing for zero, and runs the node",
    ("pending.pop(node, None)", "pending.pop(node, 0.0)"),
)
like(
    "autograd.engine",
    "remembers the counts of the pass before",
    ("(root, gradient):", "(root, gradient, missing={}, pending={}):"),
    (
        "missing, stack = {root: 0}, [root]\n"
        "    while stack:  # how many gradients will each node receive?",
        "stack = [root]\n    while stack:",
    ),
    (
        "pending, ready = {root: gradient}, [root]\n"
        "    while ready:  # run whoever has received all of theirs",
        "pending[root] = gradient\n    ready = [root]\n    while ready:",
    ),
    (
        "old = pending.get(target)\n"
        "                pending[target] = part if old is None else old + part",
        "pending[target] = pending[target] + part if target in pending else part",
    ),
)


@wrong("autograd.engine", "takes the node with the fewest senders next")
def run_backward(root, gradient):
    missing, stack = {root: 0}, [root]
    while stack:
        for target, _ in stack.pop().next_functions:
            if target is None:
                continue
            if target not in missing:
                missing[target] = 0
                stack.append(target)
            missing[target] += 1
    pending = {root: gradient}
    while pending:
        node = min(pending, key=missing.get)
        for (target, _), part in zip(node.next_functions, node(pending.pop(node))):
            if target is not None and part is not None:
                pending[target] = pending[target] + part if target in pending else part


@wrong("autograd.engine", "is toytorch's own engine")
def run_backward(root, gradient):
    from toytorch.autograd import Engine

    Engine().backward([(root, gradient)], keep_graph=True, create_graph=False)


like(
    "autograd.engine",
    "the first gradient counts twice",
    ("{root: gradient}", "{root: gradient + gradient}"),
)
like(
    "autograd.engine",
    "runs a node when one gradient is still missing",
    ("missing[target] == 0", "missing[target] <= 1"),
)


# -- autograd.tensor ------------------------------------------------------------------------------

like(
    "autograd.tensor",
    "the slope of relu at 0 is 1",
    ("lambda g: (g * above,)", "lambda g: (g * (self.data >= 0),)"),
)
like(
    "autograd.tensor",
    "tanh by its formula",
    ("y = np.tanh(self.data)", "y = np.exp(self.data)\n        y = (y - 1 / y) / (y + 1 / y)"),
)
like(
    "autograd.tensor",
    "the root keeps its gradient as well",
    (
        "        waiting = {id(self)",
        (
            "        self.grad = self.grad if self.pull is None else np.asarray(gradient)\n"
            "        waiting = {id(self)"
        ),
    ),
)
like("autograd.tensor", "leaves share one gradient", ("np.array(g) if old", "g if old"))
like(
    "autograd.tensor",
    "a leaf's own backward does nothing",
    (
        "        order, seen = [], {id(self)}",
        "        if self.pull is None:\n            return\n        order, seen = [], {id(self)}",
    ),
)
like(
    "autograd.tensor",
    "marks tensors as seen when they are put on the stack",
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
)
like(
    "autograd.tensor",
    "the derivative of log by its result",
    ("lambda g: (g / a,)", "lambda g: (g / np.log(a),)"),
)
like(
    "autograd.tensor",
    "the gradient goes back in the shape it came",
    ("return (g.reshape(a.shape),)", "return (g,)"),
)
like(
    "autograd.tensor",
    "the gradient is summed for the second factor only",
    (
        "part = sum_to(part, parent.data.shape)",
        "part = part if parent is node.parents[0] else sum_to(part, parent.data.shape)",
    ),
)
like(
    "autograd.tensor",
    "a power has a whole number in it",
    ("return (g * n * a ** (n - 1),)", "return (g * int(n) * a ** (int(n) - 1),)"),
)
handed_in("autograd.tensor", "is torch.Tensor", lambda: torch.Tensor)


@wrong("autograd.tensor", "wraps a tensor of toytorch")
class Tensor:
    def __init__(self, data, requires_grad=False, parents=(), pull=None):
        self.inner = torch.tensor(np.asarray(data, dtype=float), requires_grad=requires_grad)
        self.parents, self.pull, self.requires_grad = parents, pull, requires_grad

    @property
    def data(self):
        return self.inner.detach().numpy()

    @property
    def grad(self):
        return None if self.inner.grad is None else self.inner.grad.numpy()

    @staticmethod
    def of(value):
        return value if isinstance(value, Tensor) else Tensor(value)

    @staticmethod
    def made(inner, parents):
        made = Tensor(0.0)
        made.inner, made.requires_grad = inner, inner.requires_grad
        if inner.requires_grad:
            made.parents = parents
            made.pull = lambda g: torch.autograd.grad(inner, [p.inner for p in parents], g)
        return made

    def __add__(self, other):
        other = Tensor.of(other)
        return Tensor.made(self.inner + other.inner, (self, other))

    __radd__ = __add__

    def __mul__(self, other):
        other = Tensor.of(other)
        return Tensor.made(self.inner * other.inner, (self, other))

    __rmul__ = __mul__

    def backward(self, gradient=None):
        self.inner.backward(gradient if gradient is None else torch.tensor(gradient))
