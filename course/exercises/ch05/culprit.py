"""Who made the first NaN?."""

import toytorch as torch
from course.cases import case
from course.exercises.ch05.common import _wanted
from course.records import Exercise

culprit = Exercise(
    "inplace.culprit",
    "Who made the first NaN?",
    chapter=5,
    minutes=20,
    optional=True,
    prompt="""
    A NaN, *not a number*, is what 0/0 gives, and whatever is computed from a NaN is NaN. In a
    backward pass one NaN soon fills every gradient. The question is which node made the **first**
    one.

    Write `first_nan(loss)`: it runs `loss.backward()` and returns the node that sent the first NaN,
    or `None` if there was none.

    * `node.register_hook(f)` calls `f(sent, received)` right after the node ran: the gradients of
      its inputs, and those that had arrived. An entry of `sent` is `None` where no gradient is
      required.
    * So: walk over the graph from `loss.grad_fn` (as in the first exercise), put a hook on every
      node, and run backward. Nodes run one after the other.
    * Look for NaN, `g.isnan()`, not for infinity.
    """,
    hints=(
        """
        Do not compute anything yourself: let the engine run, and have every node report. A hook on each node
        notes the node if it sends a NaN. Nodes run one after the other, so the first note is the answer.
        """,
        """
        `a = x * 3; b = a.sqrt(); loss = (b * 0).sum()` at x = 0. First the walk puts a hook on every node.
        Then `loss.backward()` runs them in this order:

        | node | sends | NaN? | noted |
        | --- | --- | --- | --- |
        | Sum | 1 | no | |
        | Mul (b * 0) | 0, and `None` for the number | no | |
        | Sqrt | 0 · ∞ = NaN | yes | **Sqrt** |
        | Mul (x * 3) | NaN | yes | Sqrt, Mul |
        | the leaf x | | | |

        The first note is the square root. The product behind it only received the NaN and passed it on.
        """,
        """
        ```python
        def first_nan(loss):
            found = []

            def watch(node):
                def look(sent, received):
                    if any(... for g in sent):
                        found.append(node)

                node.register_hook(look)

            stack, seen = [loss.grad_fn], {loss.grad_fn}
            while stack:
                node = stack.pop()
                watch(node)
                ...  # put its targets on the stack, each once
            loss.backward()
            return ...
        ```
        """,
    ),
)


@culprit.reference(stub="your code here: about 15 lines")
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


culprit.changed(
    "names the last one",
    """
    NaN spreads: every node behind the culprit receives one and sends one. The node that ran *last*
    is the one nearest to the leaves. It did not cause the NaN.
    """,
    ("return found[0] if found else None", "return found[-1] if found else None"),
)

culprit.changed(
    "names the node that received it",
    """
    The node that *received* the first NaN was named. The NaN was made by the node that *sent* it,
    and the first node that sends one is the answer.
    """,
    (
        "if any(g is not None and g.isnan().any() for g in sent):",
        "if any(g is not None and g.isnan().any() for g in received):",
    ),
)

culprit.changed(
    "takes an infinity for a NaN",
    """
    An infinite gradient was reported. It may be the cause, but it is no error in itself: the
    derivative of a square root at 0 *is* infinite. NaN arises where the infinity is multiplied by
    0. That is what `isnan` finds, and what anomaly detection of PyTorch looks for.
    """,
    (
        "if any(g is not None and g.isnan().any() for g in sent):",
        "if any(g is not None and not g.isfinite().all() for g in sent):",
    ),
)

culprit.changed(
    "forgets that an entry may be None",
    """
    In `x * 2` the number requires no gradient, and its entry of `sent` is `None`. Skip it.
    """,
    (
        "if any(g is not None and g.isnan().any() for g in sent):",
        "if any(g.isnan().any() for g in sent):",
    ),
)

culprit.changed(
    "goes by the walk, not by time",
    """
    You remembered which nodes sent a NaN and then took the first of them *in the order of your
    walk*. Your walk goes down one branch of the graph first, but the engine runs the newest node
    first. So the first node of your list may have run later than another one. Note the nodes in the
    order in which their hooks are called.
    """,
    ("    found = []\n", "    bad, order = set(), []\n"),
    ("                found.append(node)\n", "                bad.add(node)\n"),
    ("        watch(node)\n", "        watch(node)\n        order.append(node)\n"),
    (
        "    return found[0] if found else None",
        "    return next((node for node in order if node in bad), None)",
    ),
)

culprit.changed(
    "fails where there is no NaN",
    """
    With no NaN at all the list stays empty, and its first entry is an error. Return `None` then.
    """,
    ("return found[0] if found else None", "return found[0]"),
)

culprit.changed(
    "adds up before it looks",
    """
    A sum is NaN as well where ∞ and -∞ meet, although no entry is NaN. Test each entry:
    `g.isnan().any()`.
    """,
    ("g.isnan().any()", "g.sum().isnan()"),
)

culprit.changed(
    "looks at the first gradient that is sent",
    """
    A node sends a gradient to *each* of its inputs, and the NaN may go to the second one. Look
    at all entries of `sent`.
    """,
    ("for g in sent)", "for g in sent[:1])"),
)

culprit.changed(
    "recursion",
    """
    The walk calls itself for every node, and Python's call stack holds about a thousand calls.
    Keep the nodes that you still have to visit on a list of your own.
    """,
    ("    stack, seen = [loss.grad_fn], {loss.grad_fn}\n", "    seen = set()\n"),
    (
        "    while stack:\n"
        "        node = stack.pop()\n"
        "        watch(node)\n"
        "        for target, _ in node.next_functions:\n"
        "            if target is not None and target not in seen:\n"
        "                seen.add(target)\n"
        "                stack.append(target)\n",
        "    def visit(node):\n"
        "        if node is None or node in seen:\n"
        "            return\n"
        "        seen.add(node)\n"
        "        watch(node)\n"
        "        for target, _ in node.next_functions:\n"
        "            visit(target)\n"
        "\n"
        "    visit(loss.grad_fn)\n",
    ),
)

culprit.changed(
    "runs backward twice",
    """
    `.grad` was filled twice, so that every gradient is doubled. One pass is enough: hooks are
    called while it runs.
    """,
    (
        "    loss.backward()\n",
        "    loss.backward(retain_graph=True)\n    loss.backward()\n",
    ),
)


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


@culprit.check("infinities of both signs", hidden=True)
def _(f):
    def opposite():
        x = _wanted([0.0, 0.0])
        b = (x * 3).sqrt()
        return _whose(f, (b * torch.tensor([1.0, -1.0])).sum(), b=b)

    yield case("b = (x * 3).sqrt(); loss = (b * [1, -1]).sum(), x = 0", opposite).gives(None)


@culprit.check("the second of two inputs")
def _(f):
    def second():
        x, y = _wanted([float("inf"), 1.0]), _wanted([1.0, 1.0])
        a = y * 2
        b = x * a
        return _whose(f, (b * 0).sum(), a=a, b=b)

    yield case("a = y * 2; b = x * a; loss = (b * 0).sum(), x = inf", second).gives(
        "the node of b"
    )


@culprit.check("one backward pass, of any depth")
def _(f):
    def gradients():
        x = _wanted([1.0, 4.0])
        f((x * x).sum())
        return x.grad

    yield case("x.grad after first_nan((x * x).sum())", gradients).gives(torch.tensor([2.0, 8.0]))

    def deep():
        x = _wanted([0.0, 4.0])
        b = y = (x * 3).sqrt()
        for _ in range(5_000):
            y = -y
        return _whose(f, (y * 0).sum(), b=b)

    yield case("b = (x * 3).sqrt(); y = -b, 5,000 times; loss = (y * 0).sum()", deep).gives(
        "the node of b"
    )
