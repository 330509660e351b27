"""Dead code."""

from course.cases import case
from course.exercises.ch14.common import arrays_for, drawn_lines, read, written
from course.properties import agrees
from course.records import Exercise

own_prune = Exercise(
    "fusion.prune",
    "What nobody needs",
    chapter=14,
    minutes=15,
    prompt="""
    Your tracer writes down everything, also what `f` computes and does not return, and `derive` makes
    gradients that nobody asks for. Write `prune(graph)`: it removes the nodes of the body of which no
    output is needed, and returns the graph. A value is needed if it is an output of the graph, or an
    input of a node that stays. Operations of your graph have no effects, so nobody can notice. What stays
    keeps its order, and the graph keeps all its **inputs**. There are no blocks.

    For example, with the output d:

    | node | needed when it is looked at | stays |
    | --- | --- | --- |
    | `a = exp(x)` | d, b, x | no |
    | `b = mul(x, x)` | d, b | yes: now x is needed |
    | `c = tanh(b)` | d, b | no |
    | `d = neg(b)` | d | yes: now b is needed |

    Read the table from below.
    """,
    hints=(
        """
        Whether a node is needed depends on the nodes *behind* it. Whoever goes through the list from its
        end knows this for each node when it comes to it, so one pass is enough.
        """,
        """
        With outputs {c} and the nodes `a = exp(x)`, `b = exp(a)`, `c = neg(x)`:

        | looked at | needed before | decision | needed after |
        | --- | --- | --- | --- |
        | c | c | stays | c, x |
        | b | c, x | goes | c, x |
        | a | c, x | goes, since b went | c, x |

        From the front, a would still be used by b.
        """,
        """
        ```python
        def prune(graph):
            needed, kept = ..., []
            for node in ...:
                if any(value in needed for value in node.outputs):
                    needed.update(...)
                    kept.append(node)
            graph.body.nodes = ...
            return graph
        ```
        """,
    ),
)


@own_prune.reference(stub="your code here: about 7 lines")
def prune(graph):
    """The graph without nodes that nobody needs."""
    needed, kept = set(graph.body.outputs), []
    for node in reversed(graph.body.nodes):
        if any(value in needed for value in node.outputs):
            needed.update(node.inputs)
            kept.append(node)
    graph.body.nodes = kept[::-1]
    return graph


own_prune.changed(
    "from the front",
    """
    Nodes were removed whose results nobody uses *yet*, or one layer only. Whether a node is needed depends on the
    nodes behind it, so begin at the end.
    """,
    ("    for node in reversed(graph.body.nodes):\n"
     "        if any(value in needed for value in node.outputs):\n"
     "            needed.update(node.inputs)\n"
     "            kept.append(node)\n"
     "    graph.body.nodes = kept[::-1]\n",
     "    for node in graph.body.nodes:\n"
     "        needed.update(node.inputs)\n"
     "    for node in graph.body.nodes:\n"
     "        if any(value in needed for value in node.outputs):\n"
     "            kept.append(node)\n"
     "    graph.body.nodes = kept\n"),
)

own_prune.changed(
    "the order is turned around",
    """
    The nodes that stay were collected from the end, and not turned around again. Then a node uses what
    comes after it.
    """,
    ("graph.body.nodes = kept[::-1]", "graph.body.nodes = kept"),
)

own_prune.changed(
    "the outputs are not needed by anybody",
    """
    Only values that another node uses were kept. What the graph returns is used as well: begin with
    its outputs.
    """,
    ("needed, kept = set(graph.body.outputs), []",
     "needed, kept = {v for n in graph.body.nodes for v in n.inputs}, []"),
)

own_prune.changed(
    "only the first output counts",
    """
    A graph may have several outputs, such as a loss and its gradients. All of them are needed.
    """,
    ("set(graph.body.outputs)", "set(graph.body.outputs[:1])"),
)

own_prune.changed(
    "unused inputs go as well",
    """
    An input that nobody uses was removed. Then the graph is called with another count of arrays. How it
    is called belongs to whoever calls it.
    """,
    ("    graph.body.nodes = kept[::-1]\n",
     "    graph.body.nodes = kept[::-1]\n"
     "    graph.body.inputs = [v for v in graph.body.inputs if v in needed]\n"),
)


def _pruned(f, lines, outputs=None):
    return read(f(written(lines, outputs=outputs)))


@own_prune.check("what stays")
def _(f):
    lines = ["a = exp x", "b = mul x x", "c = tanh b", "d = neg b"]
    yield case("a = exp x; b = mul x x; c = tanh b; d = neg b; -> d", lambda: _pruned(f, lines)).gives(
        ["b = mul x x", "d = neg b", "-> d"])
    yield case("the same, -> a c", lambda: _pruned(f, lines, ["a", "c"])).gives(
        ["a = exp x", "b = mul x x", "c = tanh b", "-> a c"]).means("Every output is needed.")
    yield case("a chain that ends nowhere: a = exp x; b = exp a; c = exp b; d = neg x; -> d",
               lambda: _pruned(f, ["a = exp x", "b = exp a", "c = exp b", "d = neg x"])).gives(
        ["d = neg x", "-> d"]).means("What only dead nodes use is dead, too.")
    yield case("everything is needed", lambda: _pruned(f, ["a = mul x y", "b = neg a"])).gives(
        ["a = mul x y", "b = neg a", "-> b"])


@own_prune.check("the graph itself", hidden=True)
def _(f):
    def same():
        graph = written(["a = exp x", "b = neg x"])
        return f(graph) is graph

    yield case("prune returns the graph that it was given", same).gives(True).means(
        "The pass changes the graph and returns it.")
    yield case("the inputs of x, y -> neg x", lambda: [
        v.name for v in f(written(["b = neg x"])).body.inputs]).gives(["x", "y"])
    yield case("-> x, an input: nodes", lambda: _pruned(f, ["a = exp x"], ["x"])).gives(["-> x"])
    yield case("-> b b", lambda: _pruned(f, ["a = exp x", "b = neg x"], ["b", "b"])).gives(
        ["b = neg x", "-> b b"])
    yield case("pruned twice", lambda: read(f(f(written(["a = exp x", "b = neg x"]))))).gives(
        ["b = neg x", "-> b"])


@own_prune.check("any graph")
def _(f):
    def by(answer):
        def run(lines, outputs):
            graph = answer(written(lines, outputs=outputs))
            return read(graph), graph.run(*arrays_for(graph))

        return run

    yield agrees(by(f), by(own_prune.answer.value), drawn_lines, count=40, tell=lambda lines, outputs: (
        f"{'; '.join(lines)}; -> {' '.join(outputs)}: what stays, and what it computes"))
