"""A whole engine."""

import warnings

import toytorch as torch
from course.cases import case
from course.exercises.ch04.common import _grads, _leaves
from course.properties import drawn, every
from course.records import Exercise
from toytorch.autograd import Engine, Function, engine

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
    gradients each node will receive. Then it runs each node that has received all of its gradients,
    and whenever it delivers a gradient it counts down. You may do it this way, or with your
    topological order.

    Two kinds of `None` occur. A *target* is `None` where no gradient is required. A *gradient* is
    `None` where an operation has no influence: there is nothing to add, and it counts as arrived.
    A node that received only such gradients is not called, and all its gradients are `None` too.

    Every node here has one result, so you need not look at the numbers beside the targets. Gradients
    may themselves be part of a graph, so only add them: no `detach`, no conversion.
    """,
    without=("torch.autograd.Engine", "torch.autograd.backward", "torch.autograd.grad"),
    hints=(
        """
        Two passes. The first goes over the graph without computing anything, and counts for each
        node how many gradients will arrive there: one for each *edge* that leads to it. The second
        starts at the root. A node that has received all of its gradients is called, and what it
        returns is delivered: added to what waits at each target, and counted down.
        """,
        """
        `z = x.exp(); y = z.sin() + z * z` at x = 0.5. Edges: y → sin, y → mul, sin → z, mul → z, mul → z (twice),
        z → X, the leaf's node. So the counts are sin 1, mul 1, **z 3**, X 1.

        | called | with | delivers | counts afterwards | ready |
        | --- | --- | --- | --- | --- |
        | y | 1 | 1 to sin, 1 to mul | sin 0, mul 0 | sin, mul |
        | mul | 1 | 1.65 to z, 1.65 to z | z 1 | sin |
        | sin | 1 | cos(1.65) = −0.08 to z | z 0 | z |
        | z | 1.65 + 1.65 − 0.08 = 3.22 | 3.22 · 1.65 = 5.31 to X | X 0 | X |
        | X | 5.31 | nothing: x.grad = 5.31 | | |

        Had z counted its *senders*, sin and mul, it would have been ready after mul alone. And if one of the three
        gradients is `None`, the count goes down all the same. Otherwise z waits for ever.
        """,
        """
        ```python
        def run_backward(root, gradient):
            missing, stack = {root: 0}, [root]
            while stack:  # how many gradients will each node receive?
                for target, _ in stack.pop().next_functions:
                    if target is None:
                        continue
                    ...
            pending, ready = {root: gradient}, [root]
            while ready:  # run whoever has received all of theirs
                node = ready.pop()
                g, targets = pending.pop(node, None), node.next_functions
                sent = ...  # for a g that is None: a None for each target
                for (target, _), part in zip(targets, sent):
                    if target is None:
                        continue
                    if part is not None:
                        ...
                    ...
                    if ...:
                        ready.append(target)
        ```
        """,
    ),
)


@engine_run.reference(stub="your code here: about 20 lines")
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
    A gradient that arrives where another one waits took its place. Each path from a tensor to the
    loss contributes a gradient of its own, and they add up.
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
    "walks every path on its own",
    why="""
    Each gradient was sent on by itself as soon as it arrived. The sums come out right, because the
    chain rule is linear, but the work doubles wherever two paths meet: after `y = y + y` sixty
    times there are 2⁶⁰ paths through 60 nodes. Let gradients **wait and add up**, and call every
    node once.
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
    number does mean 1, but `y.backward(g)` weights the elements of y by g, and the engine is given
    that g.
    """,
    ("{root: gradient}, [root]", "{root: gradient * 0 + 1}, [root]"),
)


@engine_run.mutant(
    "follows an edge that leads nowhere",
    why="""
    In `x * 2` the number 2 wants no gradient, and its target in `next_functions` is `None`. There
    is no node to call and nothing to count: skip it.
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


engine_run.changed(
    "counts senders instead of edges",
    """
    A node can send twice to one target: the node of `z * z` has two edges to z. It was counted once and taken
    off twice, so z ran before its other senders, and the rest of its gradient was lost. Count edges.
    """,
    (
        "for target, _ in stack.pop().next_functions:",
        "for target in {target for target, _ in stack.pop().next_functions}:",
    ),
)

engine_run.changed(
    "does not count down where nothing is sent",
    """
    An operation without influence sends `None`. There is nothing to add, but its target has waited for it:
    if the count does not go down, the target never runs, and its other gradients are lost.
    """,
    (
        "            if target is None:\n                continue\n            if part",
        "            if target is None or part is None:\n                continue\n            if part",
    ),
)

engine_run.changed(
    "stops at the first input that wants nothing",
    """
    In `3 * x` the first target is `None`, and the second is not. `break` leaves the loop, so what comes after
    a constant got nothing. Skip the one target, with `continue`.
    """,
    (
        "            if target is None:\n                continue\n            if part",
        "            if target is None:\n                break\n            if part",
    ),
)

engine_run.changed(
    "does not send zeros on",
    """
    A gradient of zeros was dropped and not counted. Zeros are a gradient like any other, and the
    target may be waiting for them. Only `None` is no gradient.
    """,
    (
        "            if part is not None:\n",
        "            if part is not None and not part.any():\n"
        "                continue\n"
        "            if part is not None:\n",
    ),
)

engine_run.changed(
    "leaves the graph",
    """
    First derivatives are right. With `create_graph=True` the walk is recorded, so that a gradient has a
    gradient itself. Something cut it off: only call nodes and add.
    """,
    ("else node(g)", "else node(g.detach())"),
)

engine_run.changed(
    "remembers the counts of the pass before",
    """
    Counts and gradients outlived the pass: a default value like `missing={}` is made once, when the
    function is defined. In a second pass over the same graph all nodes were known already, so their
    edges were not counted again. Make new dictionaries inside the function.
    """,
    (
        "def run_backward(root, gradient):\n"
        '    """Send the gradient of root to every leaf under it."""\n'
        "    missing, stack = {root: 0}, [root]",
        "def run_backward(root, gradient, missing={}, pending={}):\n"
        "    stack = [root]",
    ),
    (
        "    pending, ready = {root: gradient}, [root]",
        "    pending[root] = gradient\n"
        "    ready = [root]",
    ),
    (
        "                old = pending.get(target)\n"
        "                pending[target] = part if old is None else old + part",
        "                pending[target] = pending[target] + part if target in pending else part",
    ),
)


class Still(Function):
    """x, said to have no influence on it."""

    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return None


class First(Function):
    """x · y, said to depend on x alone."""

    @staticmethod
    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x * y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y, None


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

    def first():
        (x,) = _leaves(3.0)
        return _grads(torch.tensor(10.0) * (torch.tensor(1.0) + x), (x,), run=f)

    yield case("10 * (1 + x), where 10 and 1 are tensors", first).gives([10.0])


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


@engine_run.check("a shorter and a longer path")
def _(f):
    def arms(short_first):
        (x,) = _leaves(2.0)
        a = x * 3
        b = a * 5 * 7
        return _grads(a * 2 + b if short_first else b + a * 2, (x,), run=f)

    text = "a = x * 3; root = "
    yield case(text + "a * 5 * 7 + a * 2", lambda: arms(False)).gives([111.0])
    yield case(text + "a * 2 + a * 5 * 7", lambda: arms(True)).gives([111.0])


@engine_run.check("two edges from one node")
def _(f):
    def edges(product_first):
        (x,) = _leaves(0.5)
        z = x.exp()
        root = z * z + z.sin() if product_first else z.sin() + z * z
        return _grads(root, (x,), run=f)

    text = "z = x.exp(); root = "
    yield case(text + "z.sin() + z * z", lambda: edges(False)).gives([5.30825], tolerance=1e-4)
    yield case(text + "z * z + z.sin()", lambda: edges(True)).gives([5.30825], tolerance=1e-4)


@engine_run.check("gradients that are None or zero")
def _(f):
    def without(rule):
        (x,) = _leaves(2.0)
        return _grads(rule(x * 3), (x,), run=f)

    def told(text, rule):
        return case(f"z = x * 3; root = {text}", lambda: without(rule))

    yield told("still(z) + z, where still sends None", lambda z: Still.apply(z) + z).gives([3.0])
    yield told("z + still(z)", lambda z: z + Still.apply(z)).gives([3.0])
    yield told("still(z.exp()) + z", lambda z: Still.apply(z.exp()) + z).gives([3.0])
    yield told("still(z) alone", Still.apply).gives([None])
    yield told(
        "first(z, z), which sends g * z and None", lambda z: First.apply(z, z)
    ).gives([18.0])
    yield told("z * 0 + z", lambda z: z * 0 + z).gives([3.0])
    yield told("z * 0", lambda z: z * 0).gives([0.0])


@engine_run.check("again, and derivatives of derivatives")
def _(f):
    def again():
        (x,) = _leaves(2.0)
        y = x * 3 + x
        for _ in range(2):
            y.backward(retain_graph=True, engine=Engine(run=f))
        return float(x.grad)

    yield case("y = x * 3 + x; y.backward() twice", again).gives(8.0)

    def second():
        (x,) = _leaves(2.0)
        with warnings.catch_warnings():  # of a cycle of references, which the next line breaks
            warnings.simplefilter("ignore", UserWarning)
            (x * x * x).backward(create_graph=True, engine=Engine(run=f))
        slope, x.grad = x.grad, None
        slope.backward(engine=Engine(run=f))
        return float(slope.detach()), float(x.grad)

    yield case("the first and second derivative of x * x * x at 2", second).gives((12.0, 12.0))


@engine_run.check("each node runs once")
def _(f):
    def calls():
        seen = []

        class Watched(Function):
            @staticmethod
            def forward(ctx, x):
                return x * 1

            @staticmethod
            def backward(ctx, g):
                seen.append(float(g))
                return g

        (x,) = _leaves(0.5)
        z = Watched.apply(x)
        y = z * 2
        (y * y * y + z).backward(engine=Engine(run=f))
        return len(seen), float(x.grad)

    text = "z = watched(x); y = z * 2; root = y * y * y + z: calls of z's node, and x.grad"
    yield case(text, calls).gives((1, 7.0), tolerance=1e-4)


@engine_run.check("random graphs")
def _(f):
    def cases():
        for make in drawn(lambda draw: (draw.graph(2, draw.randint(1, 8)),)):
            (program,) = make()

            def run(program=program, **parts):
                leaves = _leaves(0.5, 0.7)
                return _grads(program.run(*leaves), leaves, **parts)

            mine = case(f"{program}; the last one is the root", lambda run=run: run(run=f))
            yield mine.gives(run(), tolerance=1e-4)

    yield every("40 random graphs", cases)


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


@engine_run.check("20,000 nodes deep")
def _(f):
    def deep():
        (x,) = _leaves(1.0)
        y = x
        for _ in range(20_000):
            y = -y
        return _grads(y, (x,), run=f)

    yield case("y = -y, 20,000 times", deep).gives([1.0])


@engine_run.check("2⁶⁰ paths through 60 nodes", hidden=True)
def _(f):
    def doubled():
        (x,) = _leaves(1.0)
        y = x
        for _ in range(60):
            y = y + y
        return _grads(y, (x,), run=f)

    yield case("y = y + y, 60 times", doubled).gives([2.0**60])
