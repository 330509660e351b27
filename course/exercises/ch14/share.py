"""Constant folding and common subexpressions."""

import numpy as np

from course.cases import case
from course.exercises.ch14.common import arrays_for, drawn_lines, read, written
from course.properties import agrees
from course.records import Exercise

own_share = Exercise(
    "fusion.share",
    "Computed once, or not at all",
    chapter=14,
    minutes=30,
    prompt="""
    Two passes in one walk, in the order of the nodes. Write `share(graph)`. It changes the graph and
    returns it. There are no blocks.

    1. **Replace.** If an input of the node was found to be the same as an earlier value, the node uses the earlier
       one from now on.
    2. **Fold.** If the node has inputs and all of them are results of `constant` nodes, it is computed now, by
       `graph.ops`. It becomes a `constant` itself, with the same output.
    3. **Share.** If an earlier node has the same op, the same inputs in the same order, and the same
       attributes, this node goes, and its output is that node's output.

    At the end, the outputs of the graph are replaced like inputs. Attributes are arrays (`data`) or Python
    values: they are the same if their shapes and all elements are, and 0.0 is not -0.0, since 1/0.0 is not
    1/-0.0. `a + b` and `b + a` count as different. `share` removes no node for being unused: that is the
    business of `prune`.

    For example, `a = x · x`, `b = x · x`, `c = a + b`, `d = 2 · 3`, returning c and d:

    | node | replaced | what happens | known afterwards |
    | --- | --- | --- | --- |
    | `a = mul(x, x)` | | new | |
    | `b = mul(x, x)` | | same as a: goes | b is a |
    | `c = add(a, b)` | `add(a, a)` | new | b is a |
    | `d = mul(p, q)`, where p = 2, q = 3 | | becomes `constant[6]` | b is a |
    """,
    hints=(
        """
        Keep two dictionaries: from a value that has gone to the one that took its place, and from a
        *key* (op, inputs, attributes) to the node that came first. A key needs something hashable for
        arrays: the type and the text of `tolist()`, with the shape, tell 0.0 from -0.0. Values are hashable themselves.
        """,
        """
        `a = exp(x)`, `b = exp(x)`, `c = neg(a)`, `d = neg(b)`:

        | node | inputs after replacing | key | result |
        | --- | --- | --- | --- |
        | a | x | exp, x | first |
        | b | x | exp, x | the same as a: b → a |
        | c | a | neg, a | first |
        | d | a, since b → a | neg, a | the same as c: d → c |

        Because inputs are replaced *before* the key is made, one walk finds chains of equal nodes.
        """,
        """
        ```python
        def share(graph):
            instead, first, makers, kept = {}, {}, {}, []
            for node in graph.body.nodes:
                node.inputs = ...
                sources = [makers.get(value) for value in node.inputs]
                if node.inputs and all(s and s.op == "constant" for s in sources):
                    given = [source.attributes["data"] for source in sources]
                    data = ...
                    node.op, node.inputs = "constant", []
                    node.attributes = ...
                said = [
                    ...
                    for name, value in sorted(node.attributes.items())
                ]
                key = ...
                if key in first:
                    instead.update(...)
                    continue
                first[key] = node
                makers.update((value, node) for value in node.outputs)
                kept.append(node)
            graph.body.nodes = kept
            graph.body.outputs = ...
            return graph
        ```
        """,
    ),
)


@own_share.reference(stub="your code here: about 24 lines")
def share(graph):
    """The graph with equal nodes merged and constants computed."""
    instead, first, makers, kept = {}, {}, {}, []
    for node in graph.body.nodes:
        node.inputs = [instead.get(value, value) for value in node.inputs]
        sources = [makers.get(value) for value in node.inputs]
        if node.inputs and all(s and s.op == "constant" for s in sources):
            given = [source.attributes["data"] for source in sources]
            data = graph.ops[node.op](*given, **node.attributes)
            node.op, node.inputs = "constant", []
            node.attributes = {"data": np.asarray(data)}
        said = [
            (name, np.shape(value), str(np.asarray(value).tolist()))
            for name, value in sorted(node.attributes.items())
        ]
        key = node.op, *node.inputs, *said
        if key in first:
            instead.update(zip(node.outputs, first[key].outputs))
            continue
        first[key] = node
        makers.update((value, node) for value in node.outputs)
        kept.append(node)
    graph.body.nodes = kept
    graph.body.outputs = [instead.get(v, v) for v in graph.body.outputs]
    return graph


own_share.changed(
    "attributes do not count",
    """
    Nodes with the same op and inputs were merged although their attributes differ: `sum[dim=0]` and
    `sum[dim=1]`, or two constants. What an operation is called with belongs to the key.
    """,
    ("key = node.op, *node.inputs, *said", "key = node.op, *node.inputs"),
)

own_share.changed(
    "the order of inputs does not count",
    """
    `a - b` and `b - a` were merged. Some operations may exchange their inputs, and this pass does not know
    which. The key has the inputs in their order.
    """,
    ("key = node.op, *node.inputs, *said", "key = node.op, frozenset(node.inputs), *said"),
)

own_share.changed(
    "the outputs are forgotten",
    """
    An output of the graph was a value whose node is gone. Nobody makes it any more: replace outputs as
    well as inputs.
    """,
    ("[instead.get(v, v) for v in graph.body.outputs]", "list(graph.body.outputs)"),
)

own_share.changed(
    "inputs are replaced too late",
    """
    The key was made with the old inputs. Then `neg(a)` and `neg(b)` look different, although b has just been
    found to be a. Replace first, and one walk finds whole chains.
    """,
    ("        node.inputs = [instead.get(value, value) for value in node.inputs]\n", ""),
    ("    graph.body.nodes = kept\n",
     "    for node in kept:\n"
     "        node.inputs = [instead.get(value, value) for value in node.inputs]\n"
     "    graph.body.nodes = kept\n"),
)

own_share.changed(
    "nothing is folded",
    """
    A node whose inputs are all constants was left in the graph. Its result is the same in each run, so
    compute it now.
    """,
    ("if node.inputs and all(s and s.op", "if False and all(s and s.op"),
)

own_share.changed(
    "folds without the attributes",
    """
    The constant was computed without the node's attributes, so `pow[n=3]` fails and `sum[dim=0]` sums
    over everything. They are keywords of the operation.
    """,
    ("graph.ops[node.op](*given, **node.attributes)",
     "graph.ops[node.op](*given, **({\"n\": 2} if node.op == \"pow\" else {}))"),
)

own_share.changed(
    "zero and minus zero are one",
    """
    0.0 and -0.0 are equal to Python, and 1/0.0 is not 1/-0.0. A pass must not change a result, also where
    nobody looks. The texts of both differ.
    """,
    ("str(np.asarray(value).tolist())", "str((np.asarray(value) + 0.0).tolist())"),
)

own_share.changed(
    "constants by their elements alone",
    """
    Constants with the same elements and different shapes were merged. [2.0] and 2.0 broadcast in different
    manners: the shape belongs to the key.
    """,
    ("(name, np.shape(value), str(np.asarray(value).tolist()))",
     "(name, str(np.ravel(value).tolist()))"),
)

own_share.changed(
    "one constant is enough to fold",
    """
    The node was computed as soon as *one* input is a constant. The others are not known before the graph
    runs.
    """,
    ("        if node.inputs and all(s and s.op == \"constant\" for s in sources):\n"
     "            given = [source.attributes[\"data\"] for source in sources]\n",
     "        if any(s and s.op == \"constant\" for s in sources):\n"
     "            given = [s.attributes[\"data\"] if s else np.ones(2) for s in sources]\n"),
)


def _shared(f, lines, outputs=None):
    return read(f(written(lines, outputs=outputs)))


@own_share.check("shared")
def _(f):
    yield case("a = mul x x; b = mul x x; c = add a b", lambda: _shared(
        f, ["a = mul x x", "b = mul x x", "c = add a b"])).gives(["a = mul x x", "c = add a a", "-> c"])
    yield case("a chain: a = exp x; b = exp x; c = neg a; d = neg b; e = add c d", lambda: _shared(
        f, ["a = exp x", "b = exp x", "c = neg a", "d = neg b", "e = add c d"])).gives(
        ["a = exp x", "c = neg a", "e = add c c", "-> e"]).means(
        "Inputs are replaced before nodes are compared.")
    yield case("a = sub x y; b = sub y x; c = mul a b", lambda: _shared(
        f, ["a = sub x y", "b = sub y x", "c = mul a b"])).gives(
        ["a = sub x y", "b = sub y x", "c = mul a b", "-> c"])
    yield case("a = pow x n=2; b = pow x n=3; c = pow x n=2; -> a b c", lambda: _shared(
        f, ["a = pow x n=2", "b = pow x n=3", "c = pow x n=2"], ["a", "b", "c"])).gives(
        ["a = pow x n=2", "b = pow x n=3", "-> a b a"])
    yield case("x·x five times, added up", lambda: len(_shared(f, [
        "a = mul x x", "b = mul x x", "c = add a b", "d = mul x x", "e = add c d", "g = mul x x",
        "h = add e g", "i = mul x x", "j = add h i"]))).gives(6)


@own_share.check("constants")
def _(f):
    yield case("p = 2; q = 3; r = mul p q; a = mul x r", lambda: _shared(
        f, ["p = constant 2", "q = constant 3", "r = mul p q", "a = mul x r"])).gives(
        ["p = constant data=2.0", "q = constant data=3.0", "r = constant data=6.0", "a = mul x r", "-> a"])
    yield case("p = 2; q = 2; a = mul x p; b = mul x q; c = add a b", lambda: _shared(
        f, ["p = constant 2", "q = constant 2", "a = mul x p", "b = mul x q", "c = add a b"])).gives(
        ["p = constant data=2.0", "a = mul x p", "c = add a a", "-> c"])
    yield case("p = 3; r = pow p n=3; a = add x r", lambda: _shared(
        f, ["p = constant 3", "r = pow p n=3", "a = add x r"])).gives(
        ["p = constant data=3.0", "r = constant data=27.0", "a = add x r", "-> a"])
    yield case("p = 6; q = 2; r = 3; s = mul q r; a = add x p; b = add x s: a chain of folding", lambda: _shared(
        f, ["p = constant 6", "q = constant 2", "r = constant 3", "s = mul q r", "a = add x p",
            "b = add x s", "c = sub a b"])).gives(
        ["p = constant data=6.0", "q = constant data=2.0", "r = constant data=3.0", "a = add x p",
         "c = sub a a", "-> c"]).means("What was folded is a constant like any other.")
    yield case("p = [1, 2]; r = sum p; a = mul x r", lambda: _shared(
        f, ["p = constant [1,2]", "r = sum p", "a = mul x r"])).gives(
        ["p = constant data=[1.0, 2.0]", "r = constant data=3.0", "a = mul x r", "-> a"])


@own_share.check("shapes, zeros and the graph itself", hidden=True)
def _(f):
    yield case("p = 2; q = [2]; -> p q", lambda: _shared(
        f, ["p = constant 2", "q = constant [2]"], ["p", "q"])).gives(
        ["p = constant data=2.0", "q = constant data=[2.0]", "-> p q"])
    yield case("p = 0.0; q = -0.0; -> p q", lambda: _shared(
        f, ["p = constant 0.0", "q = constant -0.0"], ["p", "q"])).gives(
        ["p = constant data=0.0", "q = constant data=-0.0", "-> p q"])
    yield case("long constants that differ in the middle", lambda: len(_shared(
        f, ["p = constant [0]*2000", "q = constant [0]*999+[1]+[0]*1000"], ["p", "q"]))).gives(3)
    yield case("an unused node", lambda: _shared(f, ["a = exp x", "b = neg x"])).gives(
        ["a = exp x", "b = neg x", "-> b"]).means("`share` removes no node for being unused.")

    def same():
        graph = written(["a = exp x", "b = neg x"])
        return f(graph) is graph

    yield case("share returns the graph that it was given", same).gives(True)
    yield case("an output that is an input", lambda: _shared(f, ["a = exp x"], ["x", "a"])).gives(
        ["a = exp x", "-> x a"])
    yield case("shared twice", lambda: read(f(f(written(["a = exp x", "b = exp x", "c = mul a b"]))))).gives(
        ["a = exp x", "c = mul a a", "-> c"])


@own_share.check("any graph")
def _(f):
    def by(answer):
        def run(lines, outputs):
            graph = answer(written(lines, outputs=outputs))
            return read(graph), graph.run(*arrays_for(graph))

        return run

    yield agrees(by(f), by(own_share.answer.value), lambda draw: drawn_lines(
        draw, ("add", "mul", "sub", "tanh", "neg")), count=60, tell=lambda lines, outputs: (
        f"{'; '.join(lines)}; -> {' '.join(outputs)}: the nodes, and what they compute"))
