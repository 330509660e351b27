"""Which nodes can be one loop."""

from course.cases import case
from course.exercises.ch14.common import written
from course.properties import agrees, drawn, every
from course.records import Exercise

own_groups = Exercise(
    "fusion.groups",
    "Which nodes can be one loop?",
    chapter=14,
    minutes=35,
    prompt="""
    `exp(x) * y` as two operations writes a result to memory and reads it again. As one loop over the
    elements it does neither. A **group** is a set of nodes that become one loop: each has one of the
    operations `add`, `sub`, `mul`, `div`, `neg`, `pow`, `exp`, `log`, `tanh`, `relu`, `gt` and `lt`,
    and all results have the same shape. Write `groups(graph)`. It returns a list of groups, each a
    list of nodes in the graph's order. There are no blocks.

    Go through the nodes in order. A node with one of these operations joins the group of the node that
    made its first input, if it may; else that of the second input; else it begins a group. It **may** join a group if

    * the group's results have the node's shape, and
    * no path leads from the group out of it and back to the node. A loop has to have all its inputs
      before it begins, so nothing in between could run. On such a path, another group counts as a
      whole: who needs one of its results waits for all that the group needs.

    At the end, groups of one node are left out. The others come in the order of their first nodes.

    For example, softmax without the maximum, x of shape (5, 3):

    | node | shape | group |
    | --- | --- | --- |
    | `a = neg(x)` | (5, 3) | begins group 1 |
    | `b = exp(a)` | (5, 3) | joins group 1 |
    | `s = sum[dim=1, keepdims=True](b)` | (5, 1) | none |
    | `c = div(b, s)` | (5, 3) | not group 1: the path b → s → c leads out and back. Begins group 2 |
    | `d = mul(c, c)` | (5, 3) | joins group 2 |

    The result is [[a, b], [c, d]].
    """,
    hints=(
        """
        Keep for each node its group, a list that grows. Whether a node may join is a question about
        paths, so walk back: begin at the makers of those inputs that are not made in the group. If the
        walk comes to the group, there is a path out and back.
        """,
        """
        Two groups that would wait for each other. All shapes are equal, except those of the sums:

        | node | made by | may it join? |
        | --- | --- | --- |
        | `a = exp(x)` | | begins group 1 |
        | `p = sum(y)` | | none |
        | `b = mul(p, y)` | p | begins group 2 |
        | `q = sum(b)` | group 2 | none |
        | `c = add(a, q)` | group 1, q | walk back from q: group 2, p. c joins group 1 |
        | `d = add(b, a)` | group 2, group 1 | to group 2: walk back from a. No |
        | | | to group 1: walk back from b: group 2, p. d joins group 1 |

        On the walk back from a, its group 1 counts as a whole: c needs q, q needs b, and b is in group 2.
        """,
        """
        ```python
        def groups(graph):
            fusible = {"add", "sub", "mul", "div", "neg", "pow"}
            fusible |= {"exp", "log", "tanh", "relu", "gt", "lt"}
            makers = {v: node for node in graph.body.nodes for v in node.outputs}
            group_of = {}

            def before(nodes):
                values = [value for node in nodes for value in node.inputs]
                return [makers[value] for value in values if value in makers]

            def comes_back(node, group):
                direct = before([node])
                waiting = ...
                seen = set()
                while waiting:
                    one = waiting.pop()
                    if ...:
                        return True
                    if one not in seen:
                        together = group_of.get(one, [one])
                        seen.update(...)
                        waiting += ...
                return False

            for node in graph.body.nodes:
                if node.op not in fusible:
                    continue
                for maker in before([node]):
                    group = group_of.get(maker)
                    if group is None:
                        continue
                    same = ...
                    if same and not comes_back(node, group):
                        break
                else:
                    group = []
                ...
            distinct = {id(group): group for group in group_of.values()}
            return ...
        ```
        """,
    ),
)


@own_groups.reference(stub="your code here: about 32 lines")
def groups(graph):
    """The nodes that become one loop each."""
    fusible = {"add", "sub", "mul", "div", "neg", "pow"}
    fusible |= {"exp", "log", "tanh", "relu", "gt", "lt"}
    makers = {v: node for node in graph.body.nodes for v in node.outputs}
    group_of = {}

    def before(nodes):
        values = [value for node in nodes for value in node.inputs]
        return [makers[value] for value in values if value in makers]

    def comes_back(node, group):
        direct = before([node])
        waiting = [one for one in direct if group_of.get(one) is not group]
        seen = set()
        while waiting:
            one = waiting.pop()
            if group_of.get(one) is group:
                return True
            if one not in seen:
                together = group_of.get(one, [one])
                seen.update(together)
                waiting += before(together)
        return False

    for node in graph.body.nodes:
        if node.op not in fusible:
            continue
        for maker in before([node]):
            group = group_of.get(maker)
            if group is None:
                continue
            same = group[0].outputs[0].type == node.outputs[0].type
            if same and not comes_back(node, group):
                break
        else:
            group = []
        group.append(node)
        group_of[node] = group
    distinct = {id(group): group for group in group_of.values()}
    return [group for group in distinct.values() if len(group) > 1]


own_groups.changed(
    "sums are taken in",
    """
    A `sum` was taken into the group. One loop over the elements of the result cannot do it: each element
    of the sum needs many of the input. (The framework's fuser can, with a loop in a loop.)
    """,
    ('"exp", "log",', '"sum", "exp", "log",'),
)

own_groups.changed(
    "shapes do not count",
    """
    Nodes of different shapes came into one group. A loop runs over the elements of one shape. An input may
    be broadcast, a result may not.
    """,
    ("            if same and not comes_back(node, group):", "            if not comes_back(node, group):"),
)

own_groups.changed(
    "paths that lead out and back",
    """
    The node joined without a look at the paths. In a softmax the division needs the sum, and the sum needs the
    group's exponentials: the loop could never begin.
    """,
    ("            if same and not comes_back(node, group):", "            if same:"),
)

own_groups.changed(
    "looks one step back only",
    """
    Only the makers of the inputs were asked whether they need the group. The path may be longer: walk
    back until nothing is left.
    """,
    ("                waiting += before(together)\n",
     "                if any(group_of.get(m) is group for m in before(together)):\n"
     "                    return True\n"),
)

own_groups.changed(
    "another group is walked through node by node",
    """
    Walking back, only the one node of another group was followed. Its whole group becomes one loop, which
    needs all inputs of all its nodes. Two groups can then wait for each other.
    """,
    ("together = group_of.get(one, [one])", "together = [one]"),
)

own_groups.changed(
    "only the first input",
    """
    The node looked at the maker of its first input only. If it may not join there, the second input may
    offer a group.
    """,
    ("        for maker in before([node]):", "        for maker in before([node])[:1]:"),
)

own_groups.changed(
    "groups of one node are listed",
    """
    A group of a single node saves nothing: it reads and writes what the operation did. Leave them out.
    """,
    ("if len(group) > 1]", "]"),
)

own_groups.changed(
    "every node begins a group or joins the last one",
    """
    Nodes that follow each other in the list were put together, whether one needs the other or not. The list's
    order is only one of many.
    """,
    ("        for maker in before([node]):\n            group = group_of.get(maker)\n",
     "        for group in list(group_of.values())[-1:]:\n"),
)


def _named(groups_):
    return [[node.outputs[0].name for node in group] for group in groups_]


SOFTMAX = ["a = neg x", "b = exp a", "s = sum b dim=1 keepdims=True", "c = div b s", "d = mul c c"]
WAITING = ["a = exp x", "p = sum y", "b = mul p y", "q = sum b", "c = add a q", "d = add b a"]


@own_groups.check("chains and shapes")
def _(f):
    yield case("a = exp x; b = mul a y; c = tanh b", lambda: _named(f(written(
        ["a = exp x", "b = mul a y", "c = tanh b"])))).gives([["a", "b", "c"]])
    yield case("a = exp x; b = neg y; c = tanh a; d = neg b: two chains", lambda: _named(f(written(
        ["a = exp x", "b = neg y", "c = tanh a", "d = neg b"])))).gives([["a", "c"], ["b", "d"]]).means(
        "A node joins the group that made one of its inputs.")
    yield case("a = exp x; s = sum a; b = neg s; c = exp b", lambda: _named(f(written(
        ["a = exp x", "s = sum a", "b = neg s", "c = exp b"])))).gives([["b", "c"]])
    yield case("s = sum x; a = neg s; b = add a y; c = exp b", lambda: _named(f(written(
        ["s = sum x", "a = neg s", "b = add a y", "c = exp b"])))).gives([["b", "c"]]).means(
        "a has the shape (), b has the shape (2,).")
    yield case("a = exp x; b = neg y; c = tanh b; d = mul a c", lambda: _named(f(written(
        ["a = exp x", "b = neg y", "c = tanh b", "d = mul a c"])))).gives([["a", "d"], ["b", "c"]]).means(
        "d joins the group of its first input.")


@own_groups.check("paths")
def _(f):
    yield case(f"{'; '.join(SOFTMAX)}; x (5, 3)", lambda: _named(f(written(SOFTMAX, (5, 3))))).gives(
        [["a", "b"], ["c", "d"]])
    yield case("a = neg x; b = exp a; s = sum b; t = reshape s shape=(1,); c = div b t", lambda: _named(f(
        written(["a = neg x", "b = exp a", "s = sum b", "t = reshape s shape=(1,)", "c = div b t"])))).gives(
        [["a", "b"]]).means("The path b, s, t, c leads out of the group and back.")
    yield case("a = exp x; s = sum a; b = neg y; c = tanh b; d = mul a s; e = mul d c", lambda: _named(f(
        written(["a = exp x", "s = sum a", "b = neg y", "c = tanh b", "d = mul a s", "e = mul d c"])))).gives(
        [["b", "c"], ["d", "e"]])
    yield case("a = exp x; s = sum a; b = neg y; c = tanh b; q = mul s c; e = mul a q", lambda: _named(f(
        written(["a = exp x", "s = sum a", "b = neg y", "c = tanh b", "q = mul s c", "e = mul a q"])))).gives(
        [["b", "c", "q", "e"]]).means("e may not join a. It may join the group of its second input.")


@own_groups.check("groups that would wait for each other", hidden=True)
def _(f):
    yield case(f"{'; '.join(WAITING)}", lambda: _named(f(written(WAITING)))).gives([["a", "c", "d"]])
    yield case("a = exp x; b = reshape a shape=(2,); c = neg b", lambda: _named(f(written(
        ["a = exp x", "b = reshape a shape=(2,)", "c = neg b"])))).gives([]).means(
        "A reshape is none of these operations.")
    yield case("no nodes", lambda: _named(f(written([], outputs=["x"])))).gives([])
    yield case("a = exp x: one node", lambda: _named(f(written(["a = exp x"])))).gives([])
    yield case("every operation that can be fused", lambda: _named(f(written(
        ["a = add x y", "b = sub a y", "c = mul b y", "d = div c y", "e = neg d", "f = pow e n=2",
         "g = exp f", "h = log g", "i = tanh h", "j = relu i", "k = gt j y", "l = lt k y"])))).gives(
        [list("abcdefghijkl")])


def _lines(draw):
    lines, names = [], ["x", "y"]
    for n in range(draw.randint(3, 12)):
        name, op = f"v{n}", draw.choice(("add", "mul", "sub", "exp", "tanh", "neg", "sum", "add"))
        count = 2 if op in ("add", "mul", "sub") else 1
        lines.append(" ".join([f"{name} = {op}", *(draw.choice(names[-6:]) for _ in range(count))]))
        names.append(name)
    return (lines,)


@own_groups.check("any graph")
def _(f):
    yield agrees(lambda lines: _named(f(written(lines))),
                 lambda lines: _named(own_groups.answer.value(written(lines))),
                 _lines, count=80, tell=lambda lines: "; ".join(lines))

    def hold():
        for make in drawn(_lines, 30, 9):
            (lines,) = make()
            yield case(f"{'; '.join(lines)}: can every group wait for its inputs?",
                       lambda lines=lines: _waits(f, lines)).gives(True)

    yield every("30 graphs: no group waits for itself", hold)


def _waits(f, lines):
    """Whether the graph can run with each group at once."""
    graph = written(lines)
    found = f(graph)
    group_of = {node: group for group in found for node in group}
    made, left = set(graph.body.inputs), list(graph.body.nodes)
    while left:
        for node in left:
            group = group_of.get(node, [node])
            inside = {v for one in group for v in one.outputs}
            if all(v in made or v in inside for one in group for v in one.inputs):
                made |= inside
                left = [one for one in left if all(one is not other for other in group)]
                break
        else:
            return False
    return True
