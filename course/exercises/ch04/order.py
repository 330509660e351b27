"""The topological order."""

import toytorch as torch
from course.cases import case
from course.properties import drawn, every
from course.records import Exercise
from toytorch.autograd import engine

order = Exercise(
    "autograd.order",
    "The topological order",
    chapter=4,
    minutes=18,
    limit=8.0,  # 100,000 nodes take a slow machine a few seconds
    inject=lambda f: engine.default.using(order=f),
    prompt="""
    A node may run only when **everything it will ever receive has arrived**. So all nodes that send
    to it have to run before. A list with that property is called a topological order.

    Write `topological_order(root)`: a list of all nodes that can be reached from `root`, each once,
    and each *before* the nodes it sends gradient to. A node's targets are in `node.next_functions`,
    pairs `(target, number)`, where `target` is `None` if that input does not require a gradient.

    * One method: go depth first, write a node down **after** all its targets are done, and turn the
      list around at the end.
    * Graphs are deep. A chain of 100,000 operations must not be a `RecursionError`: keep a stack of
      your own.
    * Nodes can be put into sets and dictionaries.
    """,
    without=("toytorch.autograd.engine.by_sequence", "toytorch.autograd.engine.reachable"),
    hints=(
        """
        If a node is written down only after everything below it, then in the turned-around list it stands
        before everything below it. So the whole question is *when* to write a node down: not when you meet
        it, but when you leave it, with all its targets done. The stack has to remember for each node how far
        you got with its targets.
        """,
        """
        `a = x.exp(); b = a.sin(); root = a * b`. The stack holds the path from the root to where
        you are, and with each node an iterator over its targets. X is the node of the leaf x.

        | step | stack | written down |
        | --- | --- | --- |
        | start | root | |
        | first target of root: a, new | root, a | |
        | first target of a: X, new | root, a, X | |
        | X has no targets | root, a | X |
        | a has no further target | root | X, a |
        | next target of root: b, new | root, b | X, a |
        | target of b: a, seen already | root, b | X, a |
        | b has no further target | root | X, a, b |
        | root has no further target | | X, a, b, root |

        Turned around: root, b, a, X. Note that b comes before a, although a was met first. If both a and b
        had been marked as seen at the root, b would have found a *seen* and been written down before it.
        """,
        """
        ```python
        def topological_order(root):
            done, seen = [], {root}
            stack = [(root, iter(root.next_functions))]
            while stack:
                node, targets = stack[-1]
                for target, _ in targets:  # goes on where it stopped
                    if ...:
                        ...  # go down, and stop looking at this node's targets for now
                else:  # no target is left
                    ...
            return ...
        ```
        """,
    ),
)


@order.reference(stub="your code here: about 12 lines")
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
    Nodes came in the order of their distance from the root. In `c * a`, where c was computed from b
    and b from a, node a is one step from the root and b is two. But b sends gradient to a, so a
    would run too early, with a part of its gradient. What counts is the *longest* path, not the
    shortest.
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
    The walk is depth first, as it should be, but a node was written down when it was met for the
    *first* time. There may be a longer path to it, through nodes that have not been met yet and
    that also send to it. Write it down when all its targets are done, and turn the list around:
    then whoever points to it comes before it.
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


order.changed(
    "leaves first",
    """
    This is the order of the *forward* pass: targets before those who send to them. It is the list
    that going depth first gives, and it only has to be turned around: `done[::-1]`.
    """,
    ("return done[::-1]", "return done"),
)

order.changed(
    "visits a node once for every path to it",
    """
    Nothing remembered which nodes were met before. After `y = y + y` sixty times there are 60 nodes
    and 2⁶⁰ paths down, and the walk followed each path. A set of the nodes already seen makes it 60
    steps.
    """,
    (
        "    done, seen = [], {root}\n"
        "    stack = [(root, iter(root.next_functions))]",
        "    done, stack = [], [(root, iter(root.next_functions))]",
    ),
    (
        "            if target is not None and target not in seen:\n"
        "                seen.add(target)",
        "            if target is not None:",
    ),
    ("return done[::-1]", "return list(dict.fromkeys(done))[::-1]"),
)


@order.mutant(
    "marks nodes as seen when they are put on the stack",
    why="""
    All targets of a node were put on the stack and marked as seen at once. A target that waits there is
    not done yet, but whoever meets it in the meantime takes it for done and is written down before it. In
    `a * c`, where c was computed from a, that is c. Mark a node when you go down to it, one at a time.
    """,
)
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


@order.mutant(
    "counts senders instead of edges",
    why="""
    It is right to count how many gradients a node still waits for. But a node can send twice to one
    target: `z * z` has two edges to z. One was counted and two were subtracted, so z was ready
    before its other senders had run. Count edges.
    """,
)
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


order.changed(
    "remembers the nodes of the call before",
    """
    What has been seen outlived the call: a default value like `seen=set()` is made once, when the function
    is defined, and every call writes into the same set. Make a new set inside the function.
    """,
    ("def topological_order(root):", "def topological_order(root, seen=set()):"),
    ("done, seen = [], {root}", "done = [seen.add(root)][:0]"),
)

order.changed(
    "leaves the leaves out",
    """
    A node without targets was left out. It is the `AccumulateGrad` of a leaf, the only node that
    writes a `.grad`, so it belongs into the order as well.
    """,
    ("return done[::-1]", "return [node for node in done[::-1] if node.next_functions]"),
)


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


@order.check("a shorter and a longer path")
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

    def first():
        x = _a()
        a = torch.tensor(3.0) * x
        return _ordered(f, torch.tensor(1.0) + a.sin(), a=a, x=x)

    yield case("a = 3 * x; root = 1 + a.sin(), where 3 and 1 are tensors", first).gives(FINE)

    def twice(product_first):
        z = _a().exp()
        a, b = z.sin(), z * z
        return _ordered(f, b + a if product_first else a + b, z=z, a=a, b=b)

    text = "z = x.exp(); a = z.sin(); b = z * z; root = "
    yield case(text + "a + b", lambda: twice(False)).gives(FINE)
    yield case(text + "b + a", lambda: twice(True)).gives(FINE)


@order.check("the same graph again")
def _(f):
    def again():
        a = _a() * 2
        root = a.sin()
        f(root.grad_fn)
        return _ordered(f, root, a=a)

    yield case("a = x * 2; root = a.sin(), ordered for the second time", again).gives(FINE)


@order.check("random graphs")
def _(f):
    def cases():
        for make in drawn(lambda draw: (draw.graph(2, draw.randint(1, 8)),)):
            (program,) = make()

            def run(program=program):
                made = program.all(_a(0.5), _a(0.7))
                named = {name: one for name, one in zip(program.names(), made) if one.grad_fn}
                return _ordered(f, made[-1], **named)

            yield case(f"{program}; the last one is the root", run).gives(FINE)

    yield every("40 random graphs", cases)


@order.check("100,000 nodes deep")
def _(f):
    def deep():
        y = _a()
        for _ in range(100_000):
            y = -y
        return _ordered(f, y)

    yield (
        case("y = -y, 100,000 times", deep)
        .gives(FINE)
        .means(
            "It takes too long for many nodes. To look something up in a list goes through the whole "
            "list; a set or a dictionary finds it at once."
        )
    )


@order.check("2⁶⁰ paths through 60 nodes", hidden=True)
def _(f):
    def doubled():
        y = _a()
        for _ in range(60):
            y = y + y
        return _ordered(f, y)

    yield case("y = y + y, 60 times", doubled).gives(FINE)
