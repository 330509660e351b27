"""Chapter 04, Autograd: derivatives of ops, undone broadcasts, sums at forks, order, an engine."""

import inspect

import toytorch as torch
from course.cases import call, case
from course.records import Exercise
from toytorch.autograd import Engine, engine


def _derivative(op, name):
    """A door that plugs a derivative into an op's record, if its argument names mean something."""

    def door(f):
        known = ("g", "result", *op.schema.index)
        strange = [n for n in inspect.signature(f).parameters if n not in known]
        if strange:
            raise ValueError(f"{op.name} can save {', '.join(known)}, but has no {strange[0]}")
        return op.using(**{name: f})

    return door


# -- the derivative of tanh -----------------------------------------------------------------------

tanh = Exercise(
    "autograd.tanh",
    "The derivative of tanh",
    chapter=4,
    minutes=8,
    door=_derivative(torch.ops.tanh, "d_self"),
    prompt="""
    For $y = \\tanh x$ the derivative is $1 - y^2$: whoever kept the *result* needs no $x$. Write
    `d_tanh(g, result)`, which takes the gradient `g` of the result and gives the gradient of the
    input.

    * `g` and `result` are tensors of the same shape, and so is what you return.
    * Keep the two names: toytorch reads them to know **what to save** for the backward pass. Asked
      for `result`, it keeps the result and lets the input go.
    * Use tensor operations that make something new. What was saved is shared with the user.
    """,
)


@tanh.stub
def d_tanh(g, result):
    """The gradient of x, for result = x.tanh() with gradient g."""
    # your code here: one line
    raise NotImplementedError


@tanh.reference
def d_tanh(g, result):
    """The gradient of x, for result = x.tanh() with gradient g."""
    return g * (1 - result * result)


@tanh.mutant(
    "forgets the gradient that comes in",
    why="""
    `1 - y²` is how much y changes when x does. A node is asked how much the *loss* changes, and
    that is the chain rule: `g` times this slope. Without `g`, everything between here and the loss
    is lost.
    """,
)
def d_tanh(g, result):
    return 1 - result * result


@tanh.mutant(
    "takes the result for the input",
    why="""
    The tanh was taken once more. `result` *is* tanh x already: that is why it was saved, so that
    the slope costs a product and no second tanh.
    """,
)
def d_tanh(g, result):
    y = result.tanh()
    return g * (1 - y * y)


@tanh.mutant(
    "the square is missing",
    why="""
    `1 - y` is not the slope. For x far to the left y is -1, and the curve is flat there: the slope
    is 0, as 1 - (-1)² is, while 1 - (-1) is 2.
    """,
)
def d_tanh(g, result):
    return g * (1 - result)


@tanh.mutant(
    "writes into what was saved",
    why="""
    The square was computed *in place*. The saved tensor is no copy: it is the very result that the
    user holds, so their numbers change behind their back, and a second backward pass is wrong. Make
    new tensors in a derivative: `result * result`, not `result.mul_(result)`.
    """,
)
def d_tanh(g, result):
    return g * (1 - result.mul_(result))


@tanh.mutant(
    "cuts its own history",
    why="""
    The value is right, but it was computed on a detached tensor, so nobody can take its derivative:
    second derivatives come out as 0. A derivative is ordinary tensor code, and autograd records it
    as well when asked to (`create_graph=True`).
    """,
)
def d_tanh(g, result):
    y = result.detach()
    return g * (1 - y * y)


@tanh.mutant(
    "renames its arguments",
    why="""
    The formula is right, and toytorch cannot use it: the argument names say what to save. `g` is
    the gradient of the result, `result` the result itself, and an argument of the op goes by its
    own name. Any other name stands for nothing.
    """,
)
def d_tanh(g, y):
    return g * (1 - y * y)


# what PyTorch gives for x = [-1, 0, 0.5, 2] and g = [1, 2, 3, 4]
TANH_X = [-1.0, 0.0, 0.5, 2.0]
TANH_Y = [-0.7615941762924194, 0.0, 0.46211716532707214, 0.9640275835990906]
TANH_FIRST = [0.41997429728507996, 2.0, 2.3593430519104004, 0.28260326385498047]
TANH_SECOND = [0.6396999359130859, 0.0, -0.7268619537353516, -0.13621866703033447]


@tanh.check("the chain rule at four points")
def _(f):
    g, y = torch.tensor([1.0, 2.0, 3.0, 4.0]), torch.tensor(TANH_Y)
    yield call(f, g, y).gives(torch.tensor(TANH_FIRST), tolerance=1e-5)


@tanh.check("what was saved stays as it was")
def _(f):
    def after():
        y = torch.tensor(TANH_Y)
        f(torch.ones(4), y)
        return y

    yield case("result, after the call", after).gives(torch.tensor(TANH_Y))


@tanh.check("as a part of toytorch")
def _(f):
    def first():
        x = torch.tensor(TANH_X, requires_grad=True)
        with tanh.door(f):
            x.tanh().backward(torch.tensor([1.0, 2.0, 3.0, 4.0]))
        return x.grad

    plugged = case("x.tanh().backward(g), through toytorch.ops.tanh", first)
    yield plugged.gives(torch.tensor(TANH_FIRST), tolerance=1e-5)


@tanh.check("a second derivative", hidden=True)
def _(f):
    def second():
        x = torch.tensor(TANH_X, requires_grad=True)
        with tanh.door(f):
            (slope,) = torch.autograd.grad(x.tanh().sum(), x, create_graph=True)
            (bend,) = torch.autograd.grad(slope.sum(), x, allow_unused=True, materialize_grads=True)
        return bend

    twice = case("the derivative of the derivative of x.tanh()", second)
    yield twice.gives(torch.tensor(TANH_SECOND), tolerance=1e-4)


# -- the derivative of a matrix product -----------------------------------------------------------

product = Exercise(
    "autograd.product",
    "The derivative of a matrix product",
    chapter=4,
    minutes=10,
    door=_derivative(torch.ops.mm, "d_mat2"),
    prompt="""
    In a linear layer $Y = XW$, the learning happens in $W$. Each number in it touches a whole
    column of $Y$:

    $$Y_{ij} = \\sum_k X_{ik} W_{kj} \\qquad
      \\frac{\\partial L}{\\partial W_{kj}} = \\sum_i X_{ik}\\, g_{ij}.$$

    Write `d_mat2(g, self)` for `self.mm(mat2)`: here `self` is $X$ of shape `(n, k)`, `g` has the
    shape `(n, m)` of $Y$, and what comes out has the shape `(k, m)` of $W$. It is one matrix
    product. If you forget which: the shapes leave only one choice.
    """,
)


@product.stub
def d_mat2(g, self):
    """The gradient of W, for Y = X @ W: g is Y's, self is X."""
    # your code here: one line
    raise NotImplementedError


@product.reference
def d_mat2(g, self):
    """The gradient of W, for Y = X @ W: g is Y's, self is X."""
    return self.t() @ g  # (k, n) @ (n, m)


@product.mutant(
    "comes out transposed",
    why="""
    This is the gradient of Wᵀ. The sum over examples is right, with rows and columns exchanged. A
    gradient always has the shape of what it is the gradient of: (k, m), with k from `self` first.
    """,
)
def d_mat2(g, self):
    return g.t() @ self


@product.mutant(
    "forgets to transpose",
    why="""
    `self @ g` adds up over the columns of X. The sum must be over its *rows*, the n examples, since
    every example used the same W. Transposing `self` puts them on the inside of the product. (With
    square matrices no shape error warns you, only the numbers are wrong.)
    """,
)
def d_mat2(g, self):
    return self @ g


@product.mutant(
    "the mean over examples",
    why="""
    The sum was divided by the number of examples. The product itself takes no mean: if the loss
    does, its 1/n is in `g` already and would be there twice.
    """,
)
def d_mat2(g, self):
    return self.t() @ g / len(g)


@product.mutant(
    "leaves the input out",
    why="""
    What came out does not depend on X at all, as if the input took no part in the product. W's
    gradient is large where its *input* was large: a weight that was multiplied by 0 had no
    influence on the loss.
    """,
)
def d_mat2(g, self):
    return torch.ones_like(self).t() @ g


# what PyTorch gives
PRODUCT_X = [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]]
PRODUCT_GRAD = [[52.0, 61.0, 70.0, 79.0], [64.0, 76.0, 88.0, 100.0]]


@product.check("three examples, two features, four outputs")
def _(f):
    x = torch.tensor(PRODUCT_X)
    yield call(f, torch.arange(12.0).reshape(3, 4), x).gives(torch.tensor(PRODUCT_GRAD))


@product.check("square matrices", hidden=True)
def _(f):
    x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    g = torch.tensor([[1.0, 0.0], [10.0, 0.0]])
    yield call(f, g, x).gives(torch.tensor([[31.0, 0.0], [42.0, 0.0]]))


@product.check("as a part of toytorch")
def _(f):
    def through():
        w = torch.zeros(2, 4, requires_grad=True)
        with product.door(f):
            (torch.tensor(PRODUCT_X) @ w).backward(torch.arange(12.0).reshape(3, 4))
        return w.grad

    plugged = case("(x @ w).backward(g), through toytorch.ops.mm", through)
    yield plugged.gives(torch.tensor(PRODUCT_GRAD))


# -- undoing a broadcast --------------------------------------------------------------------------

unbroadcast = Exercise(
    "autograd.unbroadcast",
    "Undo a broadcast",
    chapter=4,
    minutes=12,
    prompt="""
    In `x + bias`, a bias of shape `(4,)` is used once for each row of `x`. So each of its numbers
    has many ways to the loss, and **the gradients of all ways add up**. What broadcasting copied
    forward is summed backward.

    Write `sum_to(g, shape)`: `g` has the broadcast shape, `shape` is what the input had, and the
    result is `g` summed down to exactly `shape`.

    * Shapes line up from the right. What `shape` lacks on the left is summed away.
    * Where `shape` says 1 and `g` has more, sum that dimension and keep it as 1
      (`g.sum(dim, keepdim=True)`).
    """,
)


@unbroadcast.stub
def sum_to(g, shape):
    """Sum g down to a shape that broadcasts to g's own."""
    # your code here: about 6 lines
    raise NotImplementedError


@unbroadcast.reference
def sum_to(g, shape):
    """Sum g down to a shape that broadcasts to g's own."""
    while g.ndim > len(shape):
        g = g.sum(0)
    for dim, size in enumerate(shape):
        if size == 1 and g.shape[dim] != 1:
            g = g.sum(dim, keepdim=True)
    return g


@unbroadcast.mutant(
    "only drops the dimensions on the left",
    why="""
    Broadcasting does two things: it adds dimensions on the left, and it stretches dimensions of
    size 1. Only the first was undone. After that, every dimension where `shape` says 1 and `g` is
    wider still has to be summed.
    """,
)
def sum_to(g, shape):
    while g.ndim > len(shape):
        g = g.sum(0)
    return g


@unbroadcast.mutant(
    "only sums the ones",
    why="""
    Dimensions of size 1 were summed, and those that `shape` does not have at all were left. A bias
    of shape (4,) that met a (3, 4) got a dimension on its left: that has to go again.
    """,
)
def sum_to(g, shape):
    lead = g.ndim - len(shape)
    for dim, size in enumerate(shape):
        if size == 1:
            g = g.sum(lead + dim, keepdim=True)
    return g


@unbroadcast.mutant(
    "takes the mean",
    why="""
    Every copy's influence counts in full: if a number is used a thousand times and each use moves
    the loss by 1, then moving the number moves the loss by 1000. Gradients of copies are summed,
    never averaged.
    """,
)
def sum_to(g, shape):
    while g.ndim > len(shape):
        g = g.mean(0)
    for dim, size in enumerate(shape):
        if size == 1 and g.shape[dim] != 1:
            g = g.mean(dim, keepdim=True)
    return g


@unbroadcast.mutant(
    "lines shapes up from the left",
    why="""
    Shapes line up from the **right**: (4,) meets the *last* dimension of (2, 3, 4), and the extra
    ones stand on the left. Sum those away first; from then on the dimensions have equal numbers.
    """,
)
def sum_to(g, shape):
    while g.ndim > len(shape):
        g = g.sum(-1)
    for dim, size in enumerate(shape):
        if size == 1 and g.shape[dim] != 1:
            g = g.sum(dim, keepdim=True)
    return g


@unbroadcast.mutant(
    "the summed dimension vanishes",
    why="""
    The numbers are right, and a dimension of size 1 is missing: a sum removes its dimension unless
    told `keepdim=True`. A gradient has exactly the shape of its tensor, ones included.
    """,
)
def sum_to(g, shape):
    lead = g.ndim - len(shape)
    dims = [d for d in range(g.ndim) if d < lead or shape[d - lead] == 1 != g.shape[d]]
    return g.sum(dims) if dims else g


# what PyTorch gives for the gradient of p in p + zeros(2, 3, 4), for g = arange(24)
UNBROADCAST = {
    (2, 3, 4): None,
    (4,): [60.0, 66.0, 72.0, 78.0],
    (3, 4): [[12.0, 14.0, 16.0, 18.0], [20.0, 22.0, 24.0, 26.0], [28.0, 30.0, 32.0, 34.0]],
    (1, 4): [[60.0, 66.0, 72.0, 78.0]],
    (3, 1): [[60.0], [92.0], [124.0]],
    (2, 1, 1): [[[66.0]], [[210.0]]],
    (): 276.0,
}


def _sums(f, *shapes):
    g = torch.arange(24.0).reshape(2, 3, 4)
    for shape in shapes:
        wanted = g if UNBROADCAST[shape] is None else torch.tensor(UNBROADCAST[shape])
        run = case(f"sum_to(g, {shape}) for g = arange(24.).reshape(2, 3, 4)",
                   lambda shape=shape: f(g, shape))
        yield run.gives(wanted)


@unbroadcast.check("nothing was broadcast")
def _(f):
    yield from _sums(f, (2, 3, 4))


@unbroadcast.check("dimensions on the left")
def _(f):
    yield from _sums(f, (4,), (3, 4), ())


@unbroadcast.check("dimensions of size 1")
def _(f):
    yield from _sums(f, (2, 1, 1))


@unbroadcast.check("both at once", hidden=True)
def _(f):
    yield from _sums(f, (1, 4), (3, 1))


# -- two gradients meet ---------------------------------------------------------------------------

accumulate = Exercise(
    "autograd.accumulate",
    "When two gradients meet",
    chapter=4,
    minutes=6,
    door=lambda f: engine.default.using(accumulate=f),
    prompt="""
    In `x * 3 + x.sin()` the tensor `x` has two ways to the result, so during the backward pass two
    gradients arrive at it. The engine hands both to `accumulate(waiting, arrived)` and lets what
    comes back wait in their place.

    It is one line, and two famous bugs fit into it. A hint for the second: in `x + y`, the node of
    the sum sends *the same tensor* to `x` and to `y`.
    """,
)


@accumulate.stub
def accumulate_two(waiting, arrived):
    """What waits at a place where a second gradient arrives."""
    # your code here: one line
    raise NotImplementedError


@accumulate.reference
def accumulate_two(waiting, arrived):
    """What waits at a place where a second gradient arrives."""
    return waiting + arrived


@accumulate.mutant(
    "overwrites instead of adding",
    why="""
    The gradient that came last took the place of the one that waited, so only one of the ways to
    the loss counts. When x moves, the loss moves along *all* of its ways: their gradients add up.
    """,
)
def accumulate_two(waiting, arrived):
    return arrived


@accumulate.mutant(
    "the first one stays",
    why="""
    What arrived second was dropped. Every way from x to the loss counts, in whatever order their
    gradients happen to arrive.
    """,
)
def accumulate_two(waiting, arrived):
    return waiting


@accumulate.mutant(
    "adds in place",
    why="""
    `waiting += arrived` writes into a tensor that may be waiting somewhere else too: the node of
    `x + y` sends one and the same tensor to both. x gets the right sum, and y, which never took
    part in the second operation, gets it as well. Add out of place: `waiting + arrived`.
    """,
)
def accumulate_two(waiting, arrived):
    waiting += arrived
    return waiting


@accumulate.mutant(
    "takes the mean of the two",
    why="""
    Gradients are not opinions to be averaged. If x moves the loss by 3 on one way and by 2 on the
    other, moving x moves the loss by 5.
    """,
)
def accumulate_two(waiting, arrived):
    return (waiting + arrived) / 2


def _leaves(*values):
    return [torch.tensor(value, requires_grad=True) for value in values]


def _grads(loss, leaves, **parts):
    loss.backward(engine=Engine(**parts))
    return [None if leaf.grad is None else leaf.grad.tolist() for leaf in leaves]


@accumulate.check("two gradients")
def _(f):
    yield call(f, torch.tensor([3.0, 1.0]), torch.tensor([2.0, -1.0])).gives(
        torch.tensor([5.0, 0.0])
    )


@accumulate.check("neither of the two is written to", hidden=True)
def _(f):
    def after():
        waiting, arrived = torch.tensor([3.0]), torch.tensor([2.0])
        f(waiting, arrived)
        return waiting.tolist(), arrived.tolist()

    yield case("waiting and arrived, after the call", after).gives(([3.0], [2.0]))


@accumulate.check("in a backward pass")
def _(f):
    def shared():
        x, y = _leaves(1.0, 1.0)
        return _grads(x * 3 + (x + y), (x, y), accumulate=f)

    yield case("the gradients of x and y in x * 3 + (x + y)", shared).gives([4.0, 1.0])

    def chained():
        (x,) = _leaves(2.0)
        return _grads(x * x * x + x, (x,), accumulate=f)

    yield case("the gradient of x * x * x + x at 2", chained).gives([13.0])


# -- the order ------------------------------------------------------------------------------------

order = Exercise(
    "autograd.order",
    "The topological order",
    chapter=4,
    minutes=18,
    limit=4.0,
    door=lambda f: engine.default.using(order=f),
    prompt="""
    A node may run only when **everything it will ever receive has arrived**. So all nodes that send
    to it have to run before. A list with that property is called a topological order.

    Write `topological_order(root)`: a list of all nodes that can be reached from `root`, each once,
    and each *before* the nodes it sends gradient to. A node's targets are in
    `node.next_functions`, pairs `(target, number)`, where `target` is `None` if nobody there wants
    a gradient.

    * One way: go depth first, write a node down **after** all its targets are done, and turn the
      list around at the end.
    * Graphs are deep. A chain of 100,000 operations must not be a `RecursionError`: keep a stack of
      your own.
    * Nodes can be put into sets and dictionaries.
    """,
)


@order.stub
def topological_order(root):
    """All nodes under root, senders before receivers."""
    # your code here: about 12 lines
    raise NotImplementedError


@order.reference
def topological_order(root):
    """All nodes under root, senders before receivers."""
    done, seen = [], {root}
    stack = [(root, iter(root.next_functions))]
    while stack:
        node, targets = stack[-1]
        for target, _ in targets:  # goes on from before
            if target is not None and target not in seen:
                seen.add(target)
                stack.append((target, iter(target.next_functions)))
                break
        else:  # all its targets are done
            done.append(node)
            stack.pop()
    return done[::-1]


@order.mutant(
    "recursion",
    why="""
    The order is right, and Python's call stack holds about a thousand calls. A recurrent network
    over a long text, or a loop that adds up a loss, makes graphs far deeper than that. Keep the
    nodes that are not done yet on a list of your own.
    """,
)
def topological_order(root):
    done, seen = [], set()

    def visit(node):
        if node is None or node in seen:
            return
        seen.add(node)
        for target, _ in node.next_functions:
            visit(target)
        done.append(node)

    visit(root)
    return done[::-1]


@order.mutant(
    "breadth first, by distance from the root",
    why="""
    Nodes came in the order of their distance from the root. In `c * a`, where c was computed from a
    by way of b, node a is one step from the root and b two, and yet b sends gradient to a: a would
    run too early, with a part of its gradient. What counts is the *longest* way, not the shortest.
    """,
)
def topological_order(root):
    nodes, seen = [root], {root}
    for node in nodes:  # the list grows while we go along it
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                nodes.append(target)
    return nodes


@order.mutant(
    "writes nodes down when it meets them",
    why="""
    Depth first is a good way to walk, but a node was written down at the *first* meeting. There may
    be a longer way to it, over nodes that have not been met yet and that also send to it. Write it
    down when all its targets are done, and turn the list around: then whoever points to it comes
    before it.
    """,
)
def topological_order(root):
    nodes, seen, stack = [], set(), [root]
    while stack:
        node = stack.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        nodes.append(node)
        stack.extend(target for target, _ in node.next_functions)
    return nodes


@order.mutant(
    "leaves first",
    why="""
    This is the order of the *forward* pass: targets before those who send to them. It is the list
    that going depth first gives, and it only has to be turned around: `done[::-1]`.
    """,
)
def topological_order(root):
    done, seen = [], {root}
    stack = [(root, iter(root.next_functions))]
    while stack:
        node, targets = stack[-1]
        for target, _ in targets:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append((target, iter(target.next_functions)))
                break
        else:
            done.append(node)
            stack.pop()
    return done


@order.mutant(
    "visits a node once for every way to it",
    why="""
    Nothing remembered which nodes were met before. After `y = y + y` sixty times there are 60 nodes
    and 2⁶⁰ ways to walk down, and the walk took them all. A set of the nodes already seen makes it
    60 steps.
    """,
)
def topological_order(root):
    done, stack = [], [(root, iter(root.next_functions))]
    while stack:
        node, targets = stack[-1]
        for target, _ in targets:
            if target is not None:
                stack.append((target, iter(target.next_functions)))
                break
        else:
            done.append(node)
            stack.pop()
    return list(dict.fromkeys(done))[::-1]


FINE = "all nodes, each once and before those it sends gradient to"


def _ordered(f, root, /, **named):
    """A sentence about an order: what is wrong with it, or that it is fine."""
    given = f(root.grad_fn)
    if not isinstance(given, list):
        return f"a {type(given).__name__} and no list"
    names = {tensor.grad_fn: f"the node of {name}" for name, tensor in named.items()}

    def name_of(node):
        return names.get(node) or (node.name() if hasattr(node, "name") else repr(node))

    place = {}
    for position, node in enumerate(given):
        if node in place:
            return f"{name_of(node)} is there twice"
        place[node] = position
    everyone = [root.grad_fn]
    seen = set(everyone)
    for node in everyone:
        if node not in place:
            return f"{name_of(node)} is missing"
        for target, _ in node.next_functions:
            if target is None:
                continue
            if target in place and place[target] < place[node]:
                return f"{name_of(target)} comes before {name_of(node)}, which sends to it"
            if target not in seen:
                seen.add(target)
                everyone.append(target)
    if len(given) > len(everyone):
        return f"{len(given)} entries for {len(everyone)} nodes"
    return FINE


def _a(value=0.5):
    return torch.tensor(value, requires_grad=True)


@order.check("a chain")
def _(f):
    def chain():
        a = _a() * 2
        b = a.sin()
        return _ordered(f, b.exp(), a=a, b=b)

    yield case("a = x * 2; b = a.sin(); root = b.exp()", chain).gives(FINE)


@order.check("a shorter and a longer way")
def _(f):
    def arms(short_first):
        a = _a().exp()
        b = a.sin()
        c = b.cos()
        root = a * c if short_first else c * a
        return _ordered(f, root, a=a, b=b, c=c, root=root)

    text = "a = x.exp(); b = a.sin(); c = b.cos(); root = "
    yield case(text + "c * a", lambda: arms(False)).gives(FINE)
    yield case(text + "a * c", lambda: arms(True)).gives(FINE)


@order.check("inputs that want nothing, and one used twice")
def _(f):
    def squared():
        x = _a()
        a = x * torch.tensor(3.0)
        return _ordered(f, a * a + 1, a=a)

    yield case("a = x * 3; root = a * a + 1", squared).gives(FINE)


@order.check("100,000 nodes deep")
def _(f):
    def deep():
        y = _a()
        for _ in range(100_000):
            y = -y
        return _ordered(f, y)

    yield case("y = -y, 100,000 times", deep).gives(FINE)


@order.check("2⁶⁰ ways through 60 nodes", hidden=True)
def _(f):
    def doubled():
        y = _a()
        for _ in range(60):
            y = y + y
        return _ordered(f, y)

    yield case("y = y + y, 60 times", doubled).gives(FINE)


# -- a whole engine -------------------------------------------------------------------------------

engine_run = Exercise(
    "autograd.engine",
    "A whole engine",
    chapter=4,
    minutes=25,
    limit=5.0,
    door=lambda f: engine.default.using(run=f),
    prompt="""
    Everything at once: write `run_backward(root, gradient)`, which sends `gradient` from the node
    `root` down to every leaf. It returns nothing; the leaves get their `.grad`.

    You need two things only. `node.next_functions` names the targets, as before. And a node can be
    **called**: `node(gradient)` gives the gradients of its inputs, one for each entry of
    `next_functions`, in order. Calling an `AccumulateGrad` adds to the leaf's `.grad` and returns
    nothing: `()`.

    PyTorch's own engine needs no sorted list. It walks the graph once and **counts** how many
    gradients each node will receive. Then it runs whoever has received all of theirs, and whenever
    it delivers a gradient it counts down. You may do it this way, or with your topological order.

    Every node here has one result, so you need not look at the numbers beside the targets.
    """,
)


@engine_run.stub
def run_backward(root, gradient):
    """Send the gradient of root to every leaf under it."""
    # your code here: about 20 lines
    raise NotImplementedError


@engine_run.reference
def run_backward(root, gradient):
    """Send the gradient of root to every leaf under it."""
    missing, stack = {root: 0}, [root]
    while stack:  # how many gradients will each node receive?
        for target, _ in stack.pop().next_functions:
            if target is None:
                continue
            if target not in missing:
                missing[target] = 0
                stack.append(target)
            missing[target] += 1
    pending, ready = {root: gradient}, [root]
    while ready:  # run whoever has received all of theirs
        node = ready.pop()
        sent = node(pending.pop(node))
        for (target, _), part in zip(node.next_functions, sent):
            if target is None:
                continue
            old = pending.get(target)
            pending[target] = part if old is None else old + part
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)


@engine_run.mutant(
    "overwrites instead of adding",
    why="""
    A gradient that arrives where another one waits took its place. Each way from a tensor to the
    loss sends a gradient of its own, and they add up.
    """,
)
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
    pending, ready = {root: gradient}, [root]
    while ready:
        node = ready.pop()
        for (target, _), part in zip(node.next_functions, node(pending.pop(node))):
            if target is None:
                continue
            pending[target] = part
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)


@engine_run.mutant(
    "adds in place",
    why="""
    `pending[target] += part` writes into a tensor that waits elsewhere as well: the node of `x + y`
    sends the *same* tensor to x and to y. Add out of place, `old + part`. (Engines that care about
    speed do add in place, once they know that a sum is their own.)
    """,
)
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
    pending, ready = {root: gradient}, [root]
    while ready:
        node = ready.pop()
        for (target, _), part in zip(node.next_functions, node(pending.pop(node))):
            if target is None:
                continue
            if target in pending:
                pending[target] += part
            else:
                pending[target] = part
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)


@engine_run.mutant(
    "runs a node as soon as anything arrives",
    why="""
    A node ran when its *first* gradient arrived; what arrived later was not sent on. Wait until a
    node has received everything: count first how many gradients it will get, or go in topological
    order.
    """,
)
def run_backward(root, gradient):
    pending, queue, met = {root: gradient}, [root], {root}
    for node in queue:
        for (target, _), part in zip(node.next_functions, node(pending[node])):
            if target is None:
                continue
            pending[target] = pending[target] + part if target in pending else part
            if target not in met:
                met.add(target)
                queue.append(target)


@engine_run.mutant(
    "walks every way on its own",
    why="""
    Each gradient was sent on by itself as soon as it arrived. The sums come out right, because the
    chain rule is linear, and the work doubles wherever two ways meet: after `y = y + y` sixty times
    there are 2⁶⁰ ways through 60 nodes. Let gradients **wait and add up**, and call every node
    once.
    """,
)
def run_backward(root, gradient):
    stack = [(root, gradient)]
    while stack:
        node, received = stack.pop()
        for (target, _), part in zip(node.next_functions, node(received)):
            if target is not None:
                stack.append((target, part))


@engine_run.mutant(
    "recursion",
    why="""
    The gradients are right, until the graph is deeper than Python's call stack, which is about a
    thousand calls. Keep the nodes that wait for their turn on a list of your own.
    """,
)
def run_backward(root, gradient):
    missing, pending = {root: 1}, {root: gradient}

    def count(node):
        for target, _ in node.next_functions:
            if target is not None:
                missing[target] = missing.get(target, 0) + 1
                if missing[target] == 1:
                    count(target)

    def send(node):
        for (target, _), part in zip(node.next_functions, node(pending.pop(node))):
            if target is not None:
                pending[target] = pending[target] + part if target in pending else part
                missing[target] -= 1
                if missing[target] == 0:
                    send(target)

    count(root)
    send(root)


@engine_run.mutant(
    "starts from one",
    why="""
    The walk started from ones, whatever gradient was handed in. `loss.backward()` on a single
    number does mean 1, but `y.backward(g)` weighs the numbers of y with g, and the engine is given
    that g.
    """,
)
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
    pending, ready = {root: torch.ones_like(gradient)}, [root]
    while ready:
        node = ready.pop()
        for (target, _), part in zip(node.next_functions, node(pending.pop(node))):
            if target is None:
                continue
            pending[target] = pending[target] + part if target in pending else part
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)


@engine_run.mutant(
    "follows an edge that leads nowhere",
    why="""
    In `x * 2` the number 2 wants no gradient, and its target in `next_functions` is `None`. There
    is nobody to call and nothing to count: skip it.
    """,
)
def run_backward(root, gradient):
    missing, stack = {root: 0}, [root]
    while stack:
        for target, _ in stack.pop().next_functions:
            if target not in missing:
                missing[target] = 0
                stack.append(target)
            missing[target] += 1
    pending, ready = {root: gradient}, [root]
    while ready:
        node = ready.pop()
        for (target, _), part in zip(node.next_functions, node(pending.pop(node))):
            pending[target] = pending[target] + part if target in pending else part
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)


@engine_run.check("a chain")
def _(f):
    def chain():
        x, y = _leaves(3.0, 5.0)
        return _grads((x * y).exp().log(), (x, y), run=f)

    yield case("(x * y).exp().log() at x = 3, y = 5", chain).gives([5.0, 3.0], tolerance=1e-4)


@engine_run.check("a constant in between")
def _(f):
    def constant():
        (x,) = _leaves(3.0)
        return _grads((x * 2 + 1) * torch.tensor(10.0), (x,), run=f)

    yield case("(x * 2 + 1) * 10", constant).gives([20.0])


@engine_run.check("a gradient of one's own to start from")
def _(f):
    def weighed():
        (x,) = _leaves([1.0, 2.0, 3.0])
        (x * x).backward(torch.tensor([1.0, 10.0, 100.0]), engine=Engine(run=f))
        return x.grad.tolist()

    yield case("(x * x).backward(tensor([1., 10., 100.]))", weighed).gives([2.0, 40.0, 600.0])


@engine_run.check("a leaf used twice")
def _(f):
    def used_twice():
        (x,) = _leaves(2.0)
        return _grads(x * 3 + x.exp().log() * 4, (x,), run=f)

    text = "x * 3 + x.exp().log() * 4"
    yield case(text, used_twice).gives([7.0], tolerance=1e-5)


@engine_run.check("a shorter and a longer way")
def _(f):
    def arms(short_first):
        (x,) = _leaves(2.0)
        a = x * 3
        b = a * 5 * 7
        return _grads(a * 2 + b if short_first else b + a * 2, (x,), run=f)

    text = "a = x * 3; root = "
    yield case(text + "a * 5 * 7 + a * 2", lambda: arms(False)).gives([111.0])
    yield case(text + "a * 2 + a * 5 * 7", lambda: arms(True)).gives([111.0])


@engine_run.check("one tensor sent to two places", hidden=True)
def _(f):
    def shared(sum_first):
        x, y = _leaves(1.0, 1.0)
        extra = x * 3 * 1 + y * 5 * 1
        both = x + y
        return _grads(both + extra if sum_first else extra + both, (x, y), run=f)

    text = "the gradients of x and y in "
    yield case(text + "(x + y) + (x * 3 + y * 5)", lambda: shared(True)).gives([4.0, 6.0])
    yield case(text + "(x * 3 + y * 5) + (x + y)", lambda: shared(False)).gives([4.0, 6.0])


@engine_run.check("100,000 nodes deep")
def _(f):
    def deep():
        (x,) = _leaves(1.0)
        y = x
        for _ in range(100_000):
            y = -y
        return _grads(y, (x,), run=f)

    yield case("y = -y, 100,000 times", deep).gives([1.0])


@engine_run.check("2⁶⁰ ways through 60 nodes", hidden=True)
def _(f):
    def doubled():
        (x,) = _leaves(1.0)
        y = x
        for _ in range(60):
            y = y + y
        return _grads(y, (x,), run=f)

    yield case("y = y + y, 60 times", doubled).gives([2.0**60])
