"""Who will get a gradient?."""

import toytorch as torch
from course.cases import case
from course.exercises.ch05.common import _wanted
from course.properties import drawn, every
from course.records import Exercise

leaves = Exercise(
    "inplace.leaves",
    "Who will get a gradient?",
    chapter=5,
    minutes=10,
    limit=6.0,
    prompt="""
    Write `leaves_of(result)`: a list of the tensors whose `.grad` is filled by `result.backward()`.
    Each of them once, in any order.

    * A leaf that wants a gradient stands at the end of the graph behind a node that has an
      attribute `variable`: the leaf itself. Other nodes have no such attribute.
    * `node.next_functions` holds pairs `(target, number)`; `target` is `None` where no gradient is
      required.
    * A graph may be 100,000 nodes deep, and `result` may be a leaf itself.
    """,
    hints=(
        """
        It is a walk over a graph: a list of nodes still to visit and a set of nodes that were seen. Begin
        with `result.grad_fn`. A node with an attribute `variable` is the end of a path, and its leaf is one
        of the answers.
        """,
        """
        `x * w + x`, where x and w want gradients. A node's targets stand behind the arrow.

        | visit | has `variable`? | targets | new on the list |
        | --- | --- | --- | --- |
        | Add | no | Mul, leaf x | Mul, leaf x |
        | leaf x | yes: **x** | none | |
        | Mul | no | leaf x, leaf w | leaf w (leaf x was seen) |
        | leaf w | yes: **w** | none | |

        Before the walk: a result without `grad_fn` is a leaf itself, or wants no gradient at all.
        """,
        """
        ```python
        def leaves_of(result):
            if result.grad_fn is None:
                return ...
            found, stack = [], [result.grad_fn]
            seen = {result.grad_fn}
            while stack:
                node = stack.pop()
                if hasattr(node, "variable"):
                    ...
                for target, _ in node.next_functions:
                    if ...:
                        seen.add(target)
                        ...
            return found
        ```
        """,
    ),
)


@leaves.reference(stub="your code here: about 12 lines")
def leaves_of(result):
    """The tensors that result.backward() gives a gradient."""
    if result.grad_fn is None:  # it is a leaf itself
        return [result] if result.requires_grad else []
    found, stack = [], [result.grad_fn]
    seen = {result.grad_fn}
    while stack:
        node = stack.pop()
        if hasattr(node, "variable"):
            found.append(node.variable)
        for target, _ in node.next_functions:
            if target is not None and target not in seen:
                seen.add(target)
                stack.append(target)
    return found


@leaves.mutant(
    "looks one step back",
    why="""
    Only the inputs of the *last* operation were looked at. Gradients go to the ends of the graph:
    go on from every node to its targets until there are none left.
    """,
)
def leaves_of(result):
    if result.grad_fn is None:
        return [result] if result.requires_grad else []
    targets = {target for target, _ in result.grad_fn.next_functions}
    return [target.variable for target in targets if hasattr(target, "variable")]


leaves.changed(
    "lists a leaf once for every use",
    """
    A leaf that is used twice has two arrows that lead to it, and it was written down at each of
    them. It is one tensor with one `.grad`. An optimizer that gets it twice would update it twice.
    """,
    (
        "        node = stack.pop()\n"
        '        if hasattr(node, "variable"):\n'
        "            found.append(node.variable)\n"
        "        for target, _ in node.next_functions:\n"
        "            if target is not None and target not in seen:",
        "        for target, _ in stack.pop().next_functions:\n"
        '            if hasattr(target, "variable"):\n'
        "                found.append(target.variable)\n"
        "            elif target is not None and target not in seen:",
    ),
)

leaves.changed(
    "forgets that the result may be a leaf",
    """
    A leaf has no `grad_fn`, since no operation made it. `backward` may be called on it all the
    same, and then it gets a gradient itself; so ask for `result.grad_fn is None` first.
    """,
    (
        "    if result.grad_fn is None:  # it is a leaf itself\n"
        "        return [result] if result.requires_grad else []\n",
        "",
    ),
)

leaves.changed(
    "counts every leaf, wanted or not",
    """
    Every tensor that no operation made is a *leaf*, constants and data as well. A gradient goes
    only to those with `requires_grad=True`. `is_leaf` alone says nothing about gradients.
    """,
    (
        "    if result.grad_fn is None:  # it is a leaf itself\n"
        "        return [result] if result.requires_grad else []",
        "    if result.is_leaf:\n"
        "        return [result]",
    ),
)

leaves.changed(
    "recursion",
    """
    The list is right, and Python's call stack holds about a thousand calls. Graphs are deeper: keep
    the nodes that you still have to visit on a list of your own.
    """,
    ("    found, stack = [], [result.grad_fn]\n    seen = {result.grad_fn}\n", "    found, seen = [], set()\n\n"),
    (
        "    while stack:\n"
        "        node = stack.pop()\n"
        '        if hasattr(node, "variable"):\n',
        "    def visit(node):\n"
        "        if node is None or node in seen:\n"
        "            return\n"
        "        seen.add(node)\n"
        '        if hasattr(node, "variable"):\n',
    ),
    (
        "            if target is not None and target not in seen:\n"
        "                seen.add(target)\n"
        "                stack.append(target)\n",
        "            visit(target)\n"
        "\n"
        "    visit(result.grad_fn)\n",
    ),
)

leaves.changed(
    "compares values to see a leaf twice",
    """
    Two different leaves may hold the same values, as all biases do at the start. Compare
    *which* tensor it is (`is`, `id`), or better the nodes: each leaf has one.
    """,
    (
        '        if hasattr(node, "variable"):',
        '        if hasattr(node, "variable") and not any(\n'
        "            node.variable.tolist() == other.tolist() for other in found\n"
        "        ):",
    ),
)

leaves.changed(
    "two inputs at most",
    """
    An operation may have any number of inputs: `cat` and `stack` have as many as you give them.
    Go through all of `next_functions`.
    """,
    ("for target, _ in node.next_functions:", "for target, _ in node.next_functions[:2]:"),
)

leaves.changed(
    "runs backward to see",
    """
    The answer is right, but the function also fills `.grad` and frees what the graph had saved. Its
    caller did not ask for either. The graph holds all you need.
    """,
    (
        "    return found",
        "    result.backward(torch.ones_like(result))\n"
        "    return [leaf for leaf in found if leaf.grad is not None]",
    ),
)


def _named(f, result, **named):
    """The names of the leaves that were found, sorted; what is no list is given back."""
    found = f(result)
    if not isinstance(found, list):
        return found
    names = {id(tensor): name for name, tensor in named.items()}
    return sorted(names.get(id(tensor), "another tensor") for tensor in found)


@leaves.check("two leaves and a constant")
def _(f):
    def two():
        x, w, c = _wanted(2.0), _wanted(3.0), torch.tensor(4.0)
        return _named(f, (x * w + c) * c, x=x, w=w, c=c)

    yield case("(x * w + c) * c, where c wants no gradient", two).gives(["w", "x"])


@leaves.check("a leaf used twice", hidden=True)
def _(f):
    def twice():
        x = _wanted(2.0)
        return _named(f, x * x + x.exp(), x=x)

    yield case("x * x + x.exp()", twice).gives(["x"])


@leaves.check("tensors without an operation")
def _(f):
    x, c = _wanted(2.0), torch.tensor(2.0)
    yield case("x itself, which wants a gradient", lambda: _named(f, x, x=x)).gives(["x"])
    yield case("c itself, which wants none", lambda: _named(f, c, c=c)).gives([])
    yield case("x.detach()", lambda: _named(f, x.detach(), x=x)).gives([])


@leaves.check("what was cut off")
def _(f):
    def cut():
        x, w = _wanted(2.0), _wanted(3.0)
        return _named(f, x.exp().detach() * w, x=x, w=w)

    yield case("x.exp().detach() * w", cut).gives(["w"])


@leaves.check("20,000 nodes deep")
def _(f):
    def deep():
        x = y = _wanted(1.0)
        for _ in range(20_000):
            y = -y
        return _named(f, y, x=x)

    yield case("y = -y, 20,000 times", deep).gives(["x"])


@leaves.check("any graph")
def _(f):
    def cases():
        for make in drawn(lambda draw: (draw.graph(3, draw.randint(1, 6)), draw.randint(1, 7)), 40):
            program, which = make()
            made = [torch.tensor([0.5, 1.0], requires_grad=bool(which & 1 << n)) for n in range(3)]
            named = dict(zip("xyz", made, strict=True))
            wanted = [name for name, tensor in named.items() if tensor.requires_grad]
            yield case(f"{program}, where {' and '.join(wanted)} want a gradient",
                       lambda p=program, n=named: _named(f, p.run(*n.values()), **n)).gives(wanted)

    yield every("40 random programs on three leaves with the same values", cases)

    def three():
        x, y, z = _wanted([1.0]), _wanted([2.0]), _wanted([3.0])
        return _named(f, torch.cat([x, y, z]), x=x, y=y, z=z)

    yield case("torch.cat([x, y, z])", three).gives(["x", "y", "z"])

    def quiet():
        x, w = _wanted(2.0), _wanted(3.0)
        f(x * w)
        return x.grad

    yield case("x.grad after leaves_of(x * w)", quiet).gives(None).means(
        "Your function fills `.grad` itself. It should only look at the graph."
    )


@leaves.check("a graph with many paths", hidden=True)
def _(f):
    def doubled():
        x = y = _wanted(1.0)
        for _ in range(60):
            y = y + y
        return _named(f, y, x=x)

    yield case("y = y + y, 60 times", doubled).gives(["x"]).means(
        "Each path is walked by itself, and there are 2⁶⁰ of them. Note which nodes you have seen."
    )
