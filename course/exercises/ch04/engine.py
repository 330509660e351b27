"""A whole engine."""

import toytorch as torch
from course.cases import case
from course.exercises.ch04.common import _grads, _leaves
from course.records import Exercise
from toytorch.autograd import Engine, engine

engine_run = Exercise(
    "autograd.engine",
    "A whole engine",
    chapter=4,
    minutes=25,
    limit=5.0,
    inject=lambda f: engine.default.using(run=f),
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

    Two kinds of `None` occur. A *target* is `None` where nobody wants a gradient. A *gradient* is
    `None` where an operation has no influence: there is nothing to add, and it counts as arrived.
    A node that received only such gradients is not called, and all its gradients are `None` too.

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
        g, targets = pending.pop(node, None), node.next_functions
        sent = [None] * len(targets) if g is None else node(g)
        for (target, _), part in zip(targets, sent):
            if target is None:
                continue
            if part is not None:
                old = pending.get(target)
                pending[target] = part if old is None else old + part
            missing[target] -= 1
            if missing[target] == 0:
                ready.append(target)


engine_run.changed(
    "overwrites instead of adding",
    """
    A gradient that arrives where another one waits took its place. Each way from a tensor to the
    loss sends a gradient of its own, and they add up.
    """,
    ("part if old is None else old + part", "part"),
)

engine_run.changed(
    "adds in place",
    """
    `pending[target] += part` writes into a tensor that waits elsewhere as well: the node of `x + y`
    sends the *same* tensor to x and to y. Add out of place, `old + part`. (Engines that care about
    speed do add in place, once they know that a sum is their own.)
    """,
    ("old + part", "old.add_(part)"),
)


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
            if target is None or part is None:
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
            if target is not None and part is not None:
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
        g, targets = pending.pop(node, None), node.next_functions
        sent = [None] * len(targets) if g is None else node(g)
        for (target, _), part in zip(targets, sent):
            if target is None:
                continue
            if part is not None:
                pending[target] = pending[target] + part if target in pending else part
            missing[target] -= 1
            if missing[target] == 0:
                send(target)

    count(root)
    send(root)


engine_run.changed(
    "starts from one",
    """
    The walk started from ones, whatever gradient was handed in. `loss.backward()` on a single
    number does mean 1, but `y.backward(g)` weighs the numbers of y with g, and the engine is given
    that g.
    """,
    ("{root: gradient}, [root]", "{root: gradient * 0 + 1}, [root]"),
)


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
