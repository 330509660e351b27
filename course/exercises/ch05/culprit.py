"""Who made the first NaN?."""

import toytorch as torch
from course.cases import case
from course.exercises.ch05.common import _wanted
from course.records import Exercise

culprit = Exercise(
    "inplace.culprit",
    "Who made the first NaN?",
    chapter=5,
    minutes=18,
    prompt="""
    A NaN, *not a number*, is what 0/0 gives, and whatever is computed from a NaN is NaN. In a
    backward pass one NaN soon fills every gradient. The question is which node made the **first**
    one.

    Write `first_nan(loss)`: it runs `loss.backward()` and returns the node that sent the first NaN,
    or `None` if there was none.

    * `node.register_hook(f)` calls `f(sent, received)` right after the node ran: the gradients of
      its inputs, and those that had arrived. An entry of `sent` is `None` where nobody wants it.
    * So: walk over the graph from `loss.grad_fn` (as in the first exercise), put a hook on every
      node, and run backward. Nodes run one after the other.
    * NaN is meant, `g.isnan()`, not infinity.
    """,
)


@culprit.stub
def first_nan(loss):
    """The node that sends the first NaN in loss.backward(), or None."""
    # your code here: about 15 lines
    raise NotImplementedError


@culprit.reference
def first_nan(loss):
    """The node that sends the first NaN in loss.backward(), or None."""
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "names the last one",
    why="""
    NaN spreads: every node behind the culprit receives one and sends one. The node that ran *last*
    is the one nearest to the leaves, and has nothing to do with it.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[-1] if found else None


@culprit.mutant(
    "blames the one who received it",
    why="""
    The node that *received* the first NaN was named, and that is the culprit's victim. A node made
    the NaN itself if it sends one; the first to send one is the one you look for.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in received):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "takes an infinity for a NaN",
    why="""
    An infinite gradient was reported. It may well be the cause, as the slope of a square root at 0
    is infinite, but it is an honest answer. NaN is made where it meets a 0: ∞ · 0. That is what
    `isnan` finds, and what anomaly detection of PyTorch looks for.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and not g.isfinite().all() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "forgets that an entry may be None",
    why="""
    In `x * 2` the number wants no gradient, and its entry of `sent` is `None`. There is nothing to
    ask: skip it.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0] if found else None


@culprit.mutant(
    "goes by the walk, not by time",
    why="""
    You remembered which nodes sent a NaN and then took the first of them *in the order of your
    walk*. Your walk goes down one arm of the graph first, the engine goes by age: the node that
    stood first on your list may have run long after the culprit. Keep the nodes in the order in
    which their hooks are called.
    """,
)
def first_nan(loss):
    bad = set()

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                bad.add(node)

        node.register_hook(look)

    order, stack, seen = [], [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        order.append(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return next((node for node in order if node in bad), None)


@culprit.mutant(
    "says nothing where there is nothing",
    why="""
    With no NaN at all the list stays empty, and its first entry is an error. Answer `None` then: it
    is the best news you can have.
    """,
)
def first_nan(loss):
    found = []

    def watch(node):
        def look(sent, received):
            if any(g is not None and g.isnan().any() for g in sent):
                found.append(node)

        node.register_hook(look)

    stack, seen = [loss.grad_fn], {loss.grad_fn}
    while stack:
        node = stack.pop()
        watch(node)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    loss.backward()
    return found[0]


def _whose(f, loss, **named):
    node = f(loss)
    if node is None:
        return None
    names = {tensor.grad_fn: f"the node of {name}" for name, tensor in named.items()}
    return names.get(node) or (node.name() if hasattr(node, "name") else node)


@culprit.check("a root of zero, times zero")
def _(f):
    def root():
        x, y = _wanted([0.0, 4.0]), _wanted([1.0, 1.0])
        a = x * y
        b = a + y
        c = (b - y).sqrt()
        d = c * y
        return _whose(f, (d * torch.zeros(2)).sum(), a=a, b=b, c=c, d=d)

    text = "a = x * y; b = a + y; c = (b - y).sqrt(); d = c * y; loss = (d * 0).sum(), x = 0"
    yield case(text, root).gives("the node of c")


@culprit.check("no NaN at all")
def _(f):
    def fine():
        x, y = _wanted([1.0, 4.0]), _wanted([1.0, 2.0])
        return _whose(f, (x * y).sqrt().sum())

    yield case("(x * y).sqrt().sum() at x = [1, 4]", fine).gives(None)


@culprit.check("a number among the inputs")
def _(f):
    def number():
        x = _wanted([0.0, 4.0])
        a = x * 3
        b = a.sqrt()
        return _whose(f, (b * 0).sum(), a=a, b=b)

    yield case("a = x * 3; b = a.sqrt(); loss = (b * 0).sum(), x = 0", number).gives(
        "the node of b"
    )


@culprit.check("an infinity before the NaN", hidden=True)
def _(f):
    def infinite():
        x, y = _wanted([0.0, 4.0]), _wanted([0.0, 1.0])
        a = x * y
        b = a.sqrt()
        return _whose(f, b.sum(), a=a, b=b)

    yield case("a = x * y; b = a.sqrt(); loss = b.sum(), x = y = 0", infinite).gives(
        "the node of a"
    )


@culprit.check("two arms")
def _(f):
    def arms():
        x, y = _wanted([0.0, 4.0]), _wanted([1.0, 1.0])
        a = (x * y).sqrt() * torch.zeros(2)
        b = (x * y).sqrt()
        c = b * torch.zeros(2)
        return _whose(f, (c + a).sum(), b=b, c=c)

    text = "a = (x * y).sqrt() * 0; b = (x * y).sqrt(); c = b * 0; loss = (c + a).sum()"
    yield case(text, arms).gives("the node of b")
