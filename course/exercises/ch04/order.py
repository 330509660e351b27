"""The topological order."""

import toytorch as torch
from course.cases import case
from course.records import Exercise
from toytorch.autograd import engine

order = Exercise(
    "autograd.order",
    "The topological order",
    chapter=4,
    minutes=18,
    limit=4.0,
    inject=lambda f: engine.default.using(order=f),
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
