"""From groups to loops."""

from course.cases import case
from course.exercises.ch14.common import arrays_for, by_numpy, drawn_lines, written
from course.properties import agrees
from course.records import Exercise
from mytorch.groups import groups

own_fuse = Exercise(
    "fusion.fuse",
    "A code generator",
    chapter=14,
    minutes=45,
    prompt="""
    Now each group becomes one node, with a text that says what its loop does. Write `fuse(graph, run)`. It
    changes the graph and returns it. `run(*arrays, text=…, shape=…)` is a function that runs such a
    text; it becomes the graph's operation `"fused"`. Your `groups` finds the groups.

    **1 · The text.** It is a program of the framework's loop language. Names of inputs are `x0`, `x1`,
    …, in the order in which the group's nodes use them first; results are `t0`, `t1`, …, one for each node.

    ```text
    x0[d0,d1], x1[d1] -> t0[d0,d1], t2[d0,d1]
    t0 = x0 + x1
    t1 = t0 * 2.0
    t2 = tanh(t1)
    ```

    An array has a dimension `d0`, `d1`, … for each dimension of the group's shape, aligned on the
    **right** as broadcasting does; those of size 1 are left out, also of the results. An input of shape () made by a
    `constant` node is no input: its number stands in the text (`repr` of a float). Behind the
    arrow come the results that are used outside the group: by other nodes, or as outputs of the graph.

    | op | in the text |
    | --- | --- |
    | `add`, `sub`, `mul`, `div` | `a + b`, `a - b`, `a * b`, `a / b` |
    | `neg`; `pow` | `-a`; `(a) ** 3` with the number n |
    | `exp`, `log`, `tanh` | `exp(a)`, … |
    | `relu` | `where(a > 0.0, a, 0.0)` |
    | `gt`, `lt` | `where(a > b, 1.0, 0.0)`, `where(a < b, 1.0, 0.0)` |

    **2 · The node.** `fused` has the group's inputs, and one output of shape `(k, *shape)` for k results:
    they come stacked. Its attributes are `text` and this `shape`. For each result, a node `part[n=…]`
    takes it out, and its output is the **value of the old node**, so that nothing else changes. The graph gets a
    table of its own: `graph.ops = {**graph.ops, "fused": run, "part": …}`.

    **3 · The order.** What is not in a group keeps its order as far as possible: as long as nodes are
    left, take the first whose inputs have been made. A fused node and its parts stand in the list
    where the group's first node was. A group of which nothing is used just goes.
    """,
    hints=(
        """
        Make the list of nodes anew: where a group's first node was, the fused node and its parts come; other nodes of
        groups are dropped. Nodes before may now need what comes later, so sort the list at the end.
        For the text, one dictionary from values to names is enough.
        """,
        """
        A group of shape (5, 3) with `a = add(x, w)`, `b = mul(a, c)`, where w has the shape (3,), c is the
        constant 2.0, and only b is used outside:

        | value | name | in the head |
        | --- | --- | --- |
        | x (5, 3) | x0 | `x0[d0,d1]` |
        | w (3,), aligned (1, 3) | x1 | `x1[d1]` |
        | c | 2.0 | |
        | a | t0 | |
        | b | t1 | `t1[d0,d1]`, behind the arrow |

        The fused node has the inputs x and w and the shape (1, 5, 3). `part[n=0]` gives b.
        """,
        """
        ```python
        def fuse(graph, run):
            forms = {
                "add": "{} + {}",
                "sub": "{} - {}",
                "mul": "{} * {}",
                "div": "{} / {}",
                "neg": "-{}",
                "pow": "({}) ** {n}",
                "relu": "where({0} > 0.0, {0}, 0.0)",
                "gt": "where({} > {}, 1.0, 0.0)",
                "lt": "where({} < {}, 1.0, 0.0)",
            }
            body = graph.body
            makers = {v: node for node in body.nodes for v in node.outputs}

            def listed(names, values, rank):
                texts = []
                for value in values:
                    sizes = value.type.shape
                    dims = [...]
                    texts.append(...)
                return ", ".join(texts)

            def fused(group):
                users = ...
                outside = {v for node in users for v in node.inputs}
                outside.update(...)
                results = ...
                if not results:
                    return []
                names, inputs, lines = {}, [], []
                for node in group:
                    for value in node.inputs:
                        maker = makers.get(value)
                        if value in names:
                            continue
                        plain = value.type.shape == ()
                        if maker and maker.op == "constant" and plain:
                            names[value] = ...
                        else:
                            names[value] = f"x{len(inputs)}"
                            inputs.append(value)
                    given = ...
                    form = forms.get(node.op, node.op + "({})")
                    names[node.outputs[0]] = f"t{len(lines)}"
                    said = ...
                    lines.append(...)
                shape = group[0].outputs[0].type.shape
                rank = len(shape)
                arrow = ...
                head = arrow + listed(names, results, rank)
                text, whole = "\\n".join([head, *lines]), (len(results), *shape)
                block = graph.Block([], [], [])
                (pack,) = graph.add(...)
                for n, value in enumerate(results):
                    part = graph.Node("part", [pack], [value], {"n": n}, [])
                    block.nodes.append(part)
                return block.nodes

            waiting = list(body.nodes)
            for group in groups(graph):
                place = waiting.index(group[0])
                waiting[place:place] = ...
                waiting = ...
            made, body.nodes = set(body.inputs), []
            while waiting:
                node = ...
                waiting.remove(node)
                body.nodes.append(node)
                made.update(node.outputs)
            graph.ops = {**graph.ops, "fused": run, "part": ...}
            return graph
        ```
        """,
    ),
)


@own_fuse.stub
def fuse(graph, run):
    """The graph with a fused node for each group."""
    forms = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "div": "{} / {}",
        "neg": "-{}",
        "pow": "({}) ** {n}",
        "relu": "where({0} > 0.0, {0}, 0.0)",
        "gt": "where({} > {}, 1.0, 0.0)",
        "lt": "where({} < {}, 1.0, 0.0)",
    }
    # your code here: about 55 lines
    raise NotImplementedError


@own_fuse.reference()
def fuse(graph, run):
    """The graph with a fused node for each group."""
    forms = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "div": "{} / {}",
        "neg": "-{}",
        "pow": "({}) ** {n}",
        "relu": "where({0} > 0.0, {0}, 0.0)",
        "gt": "where({} > {}, 1.0, 0.0)",
        "lt": "where({} < {}, 1.0, 0.0)",
    }
    body = graph.body
    makers = {v: node for node in body.nodes for v in node.outputs}

    def listed(names, values, rank):
        texts = []
        for value in values:
            sizes = value.type.shape
            dims = [
                f"d{rank - len(sizes) + n}"
                for n, size in enumerate(sizes)
                if size != 1
            ]
            texts.append(f"{names[value]}[{','.join(dims)}]")
        return ", ".join(texts)

    def fused(group):
        users = [node for node in body.nodes if node not in group]
        outside = {v for node in users for v in node.inputs}
        outside.update(body.outputs)
        results = [n.outputs[0] for n in group if n.outputs[0] in outside]
        if not results:
            return []
        names, inputs, lines = {}, [], []
        for node in group:
            for value in node.inputs:
                maker = makers.get(value)
                if value in names:
                    continue
                plain = value.type.shape == ()
                if maker and maker.op == "constant" and plain:
                    names[value] = repr(float(maker.attributes["data"]))
                else:
                    names[value] = f"x{len(inputs)}"
                    inputs.append(value)
            given = [names[value] for value in node.inputs]
            form = forms.get(node.op, node.op + "({})")
            names[node.outputs[0]] = f"t{len(lines)}"
            said = form.format(*given, **node.attributes)
            lines.append(f"{names[node.outputs[0]]} = {said}")
        shape = group[0].outputs[0].type.shape
        rank = len(shape)
        arrow = f"{listed(names, inputs, rank)} -> "
        head = arrow + listed(names, results, rank)
        text, whole = "\n".join([head, *lines]), (len(results), *shape)
        block = graph.Block([], [], [])
        (pack,) = graph.add(
            block, "fused", inputs, [whole], text=text, shape=whole
        )
        for n, value in enumerate(results):
            part = graph.Node("part", [pack], [value], {"n": n}, [])
            block.nodes.append(part)
        return block.nodes

    waiting = list(body.nodes)
    for group in groups(graph):
        place = waiting.index(group[0])
        waiting[place:place] = fused(group)
        waiting = [node for node in waiting if node not in group]
    made, body.nodes = set(body.inputs), []
    while waiting:
        node = next(n for n in waiting if made.issuperset(n.inputs))
        waiting.remove(node)
        body.nodes.append(node)
        made.update(node.outputs)
    graph.ops = {**graph.ops, "fused": run, "part": lambda x, n: x[n]}
    return graph


own_fuse.changed(
    "only the last result",
    """
    Only the group's last node became a result. Other nodes, or the graph's outputs, may use a value from
    the middle of the group, as a backward pass does. Each value that is used outside is a result.
    """,
    ("results = [n.outputs[0] for n in group if n.outputs[0] in outside]",
     "results = [n.outputs[0] for n in group if n.outputs[0] in outside][-1:]"),
)

own_fuse.changed(
    "every node is a result",
    """
    All values of the group were written to memory. That is what fusion is to avoid: what is only used inside the
    group stays inside the loop.
    """,
    ("results = [n.outputs[0] for n in group if n.outputs[0] in outside]",
     "results = [n.outputs[0] for n in group]"),
)

own_fuse.changed(
    "the graph's outputs are not outside",
    """
    It was asked which *nodes* use a value. The graph's outputs use values as well.
    """,
    ("        outside.update(body.outputs)\n", ""),
)

own_fuse.changed(
    "dimensions aligned on the left",
    """
    An array of shape (3,) got the dimension d0. Broadcasting aligns shapes on the right: beside (5, 3)
    it varies over the last dimension, d1.
    """,
    ('f"d{rank - len(sizes) + n}"', 'f"d{n}"'),
)

own_fuse.changed(
    "dimensions of size 1 are listed",
    """
    An array of shape (5, 1) was listed with both dimensions. It is the same for each element along
    the second one, so it does not vary over it: leave the dimension out, and it is broadcast.
    """,
    ("                if size != 1\n", ""),
)

own_fuse.changed(
    "constants are inputs",
    """
    A number became an array that is handed over and read again for each element. As text it is part of the
    compiled loop.
    """,
    ('if maker and maker.op == "constant" and plain:', "if False:"),
)

own_fuse.changed(
    "arrays as numbers",
    """
    Every constant was written as a number, also those with many elements. Only a constant of shape () is
    one number.
    """,
    ('if maker and maker.op == "constant" and plain:',
     'if maker and maker.op == "constant":'),
    ('repr(float(maker.attributes["data"]))', 'repr(float(maker.attributes["data"].flat[0]))'),
)

own_fuse.changed(
    "an input for each use",
    """
    A value that is used twice was handed over twice. It is one array: give it one name.
    """,
    ("                if value in names:\n                    continue\n",
     "                if value in names and names[value][0] != \"x\":\n                    continue\n"),
)

own_fuse.changed(
    "the order of the list is kept",
    """
    The fused node stands where the group's first node stood, and it may need what was made later. Sort: as
    long as nodes are left, take the first whose inputs have been made.
    """,
    ("node = next(n for n in waiting if made.issuperset(n.inputs))", "node = waiting[0]"),
)

own_fuse.changed(
    "all graphs get the operation",
    """
    The table of operations of the *class* was changed, so every graph, also one that was made before, has this
    `run`. Give the graph a table of its own.
    """,
    ('graph.ops = {**graph.ops, "fused": run, "part": lambda x, n: x[n]}',
     'graph.ops.update({"fused": run, "part": lambda x, n: x[n]})'),
)


def _texts(f, lines, shape=(2,), outputs=None):
    """The nodes of the fused graph; of a fused node the text."""
    graph = f(written(lines, shape, outputs), by_numpy)
    graph.check()
    found = []
    for node in graph.body.nodes:
        if node.op == "fused":
            found += [node.attributes["text"], tuple(node.attributes["shape"])]
        else:
            found.append(f"{node.op} -> {node.outputs[0].name}")
    return found


@own_fuse.check("the text")
def _(f):
    yield case("a = exp x; b = mul a y; c = tanh b", lambda: _texts(
        f, ["a = exp x", "b = mul a y", "c = tanh b"])).gives(
        ["x0[d0], x1[d0] -> t2[d0]\nt0 = exp(x0)\nt1 = t0 * x1\nt2 = tanh(t1)", (1, 2), "part -> c"])
    yield case("a = mul x x; b = add a x", lambda: _texts(f, ["a = mul x x", "b = add a x"])).gives(
        ["x0[d0] -> t1[d0]\nt0 = x0 * x0\nt1 = t0 + x0", (1, 2), "part -> b"]).means(
        "x is one input, however often it is used.")
    yield case("p = 2; a = mul x p; b = neg a", lambda: _texts(
        f, ["p = constant 2", "a = mul x p", "b = neg a"])).gives(
        ["constant -> p", "x0[d0] -> t1[d0]\nt0 = x0 * 2.0\nt1 = -t0", (1, 2), "part -> b"]).means(
        "A constant of shape () is a number in the text.")
    yield case("every operation", lambda: _texts(
        f, ["a = sub x y", "b = div a y", "c = neg b", "d = pow c n=3", "e = log d", "g = relu e",
            "h = gt g y", "i = lt h x", "j = exp i"])[0]).gives(
        "x0[d0], x1[d0] -> t8[d0]\nt0 = x0 - x1\nt1 = t0 / x1\nt2 = -t1\nt3 = (t2) ** 3\nt4 = log(t3)\n"
        "t5 = where(t4 > 0.0, t4, 0.0)\nt6 = where(t5 > x1, 1.0, 0.0)\nt7 = where(t6 < x0, 1.0, 0.0)\n"
        "t8 = exp(t7)")


@own_fuse.check("shapes")
def _(f):
    yield case("x (5, 3); s = sum x dim=0; a = add x s; b = exp a", lambda: _texts(
        f, ["s = sum x dim=0", "a = add x s", "b = exp a"], (5, 3))).gives(
        ["sum -> s", "x0[d0,d1], x1[d1] -> t1[d0,d1]\nt0 = x0 + x1\nt1 = exp(t0)", (1, 5, 3),
         "part -> b"]).means("s has the shape (3,), and shapes are aligned on the right.")
    yield case("x (5, 3); s = sum x dim=1 keepdims=True; a = div x s; b = exp a", lambda: _texts(
        f, ["s = sum x dim=1 keepdims=True", "a = div x s", "b = exp a"], (5, 3))).gives(
        ["sum -> s", "x0[d0,d1], x1[d0] -> t1[d0,d1]\nt0 = x0 / x1\nt1 = exp(t0)", (1, 5, 3),
         "part -> b"]).means("s has the shape (5, 1): it does not vary over d1.")
    yield case("x (5, 1): a = exp x; b = neg a", lambda: _texts(f, ["a = exp x", "b = neg a"], (5, 1))).gives(
        ["x0[d0] -> t1[d0]\nt0 = exp(x0)\nt1 = -t0", (1, 5, 1), "part -> b"])
    yield case("x (): s = sum y; a = exp s; b = neg a", lambda: _texts(
        f, ["s = sum y", "a = exp s", "b = neg a"])).gives(
        ["sum -> s", "x0[] -> t1[]\nt0 = exp(x0)\nt1 = -t0", (1,), "part -> b"])
    yield case("p = [1, 2]; a = mul x p; b = neg a", lambda: _texts(
        f, ["p = constant [1,2]", "a = mul x p", "b = neg a"])).gives(
        ["constant -> p", "x0[d0], x1[d0] -> t1[d0]\nt0 = x0 * x1\nt1 = -t0", (1, 2), "part -> b"])


@own_fuse.check("results and order")
def _(f):
    yield case("a = exp x; b = neg a; s = sum a; -> b s", lambda: _texts(
        f, ["a = exp x", "b = neg a", "s = sum a"], outputs=["b", "s"])).gives(
        ["x0[d0] -> t0[d0], t1[d0]\nt0 = exp(x0)\nt1 = -t0", (2, 2), "part -> a", "part -> b",
         "sum -> s"]).means("a is used outside, by the sum.")
    yield case("a = exp x; b = neg a; -> a b", lambda: _texts(
        f, ["a = exp x", "b = neg a"], outputs=["a", "b"])).gives(
        ["x0[d0] -> t0[d0], t1[d0]\nt0 = exp(x0)\nt1 = -t0", (2, 2), "part -> a", "part -> b"])
    yield case("a = exp x; s = sum y; b = mul a s", lambda: _texts(
        f, ["a = exp x", "s = sum y", "b = mul a s"])).gives(
        ["sum -> s", "x0[d0], x1[] -> t1[d0]\nt0 = exp(x0)\nt1 = t0 * x1", (1, 2), "part -> b"]).means(
        "The fused node needs s, which was made behind the group's first node.")
    yield case("nothing to fuse: s = sum x; a = exp s", lambda: _texts(f, ["s = sum x", "a = exp s"])).gives(
        ["sum -> s", "exp -> a"])


@own_fuse.check("the graph itself", hidden=True)
def _(f):
    def same():
        graph = written(["a = exp x", "b = neg a"])
        return f(graph, by_numpy) is graph

    def old_table():
        graph = written(["a = exp x", "b = neg a"])
        before = graph.ops
        f(graph, by_numpy)
        return "fused" in before

    yield case("fuse returns the graph that it was given", same).gives(True)
    yield case("the table that the graph had before: has it the operation fused?", old_table).gives(
        False).means("The table belongs to all graphs. Give this graph a new one.")
    yield case("a dead group: a = exp x; b = neg a; c = sum y; -> c", lambda: _texts(
        f, ["a = exp x", "b = neg a", "c = sum y"])).gives(["sum -> c"])
    yield case("a negative number to a power: p = -2; a = pow p n=2; b = mul a p; c = add x b", lambda: (
        lambda g: g.run(*arrays_for(g)) - arrays_for(g)[0])(f(written(
            ["p = constant -2", "a = pow p n=2", "b = mul a p", "c = add x b"]), by_numpy))).gives(
        _EIGHT)


_EIGHT = written(["a = constant [-8,-8]"]).body.nodes[0].attributes["data"]


@own_fuse.check("any graph")
def _(f):
    def fused(lines, outputs):
        graph = f(written(lines, (3, 2), outputs), by_numpy)
        graph.check()
        return graph.run(*arrays_for(graph)), sum(n.op == "fused" for n in graph.body.nodes)

    def plain(lines, outputs):
        graph = written(lines, (3, 2), outputs)
        count = sum(n.op == "fused" for n in own_fuse.answer.value(
            written(lines, (3, 2), outputs), by_numpy).body.nodes)
        return graph.run(*arrays_for(graph)), count

    yield agrees(fused, plain, lambda draw: drawn_lines(
        draw, ("add", "mul", "sub", "tanh", "neg", "sum")), count=60, tell=lambda lines, outputs: (
        f"x, y (3, 2); {'; '.join(lines)}; -> {' '.join(outputs)}: the results, and how many are fused"))
