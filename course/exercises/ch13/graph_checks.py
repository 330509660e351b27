"""The checks of `own_graph`."""

import numpy as np

from course.cases import case
from course.exercises.ch13.graph import own_graph
from course.properties import agrees, drawn, every


def _line(Graph):
    """f(x) = x * 2 + x, without shapes."""
    graph = Graph("f")
    x = graph.value(name="x")
    graph.body.inputs = [x]
    (two,) = graph.add(graph.body, "constant", data=np.array(2.0))
    (y,) = graph.add(graph.body, "mul", [x, two])
    graph.body.outputs = graph.add(graph.body, "add", [y, x])
    return graph


def _records(Graph):
    graph = Graph("f")
    x, y = graph.value((2, 3), "x"), graph.value()
    out = graph.add(graph.body, "sum", [x], [(2,)], dim=1)
    (node,) = graph.body.nodes
    return graph, x, y, out, node


def _with_list(Graph):
    graph = Graph("f")
    return graph, [graph.value()]


@own_graph.check("1 · records")
def _(Graph):
    yield case("Graph('f').value((2, 3), 'x'): its name and shape", lambda: (
        lambda v: (v.name, v.type.shape))(Graph("f").value((2, 3), "x"))).gives(("x", (2, 3)))
    yield case("three values without a name", lambda: (
        lambda g: [g.value().name for _ in range(3)])(Graph("f"))).gives(["0", "1", "2"])
    yield case("a value with a name does not count", lambda: (
        lambda g: [g.value(name=n).name for n in ("", "x", "")])(Graph("f"))).gives(
        ["0", "x", "1"]).means("Only values without a name are counted.")
    yield case("the shape of a value of which nothing is known",
               lambda: Graph("f").value().type.shape).gives(None)
    yield case("name, inputs, nodes and outputs of a new graph", lambda: (
        lambda g: (g.name, g.body.inputs, g.body.nodes, g.body.outputs))(Graph("f"))).gives(
        ("f", [], [], []))
    yield case("two graphs: the count of nodes in the second, after a node for the first", lambda: (
        lambda g, h: (g.add(g.body, "constant", data=1.0), len(h.body.nodes))[1])(
            Graph("f"), Graph("g"))).gives(0)
    yield case("add(body, 'sum', [x], [(2,)], dim=1): op, attributes, blocks", lambda: (
        lambda n: (n.op, n.attributes, n.blocks))(_records(Graph)[4])).gives(("sum", {"dim": 1}, []))
    yield case("what add gives: a list of the node's outputs", lambda: (
        lambda r: (type(r[3]).__name__, r[3] == r[4].outputs, r[3][0].type.shape))(
            _records(Graph))).gives(("list", True, (2,)))
    yield case("the node's inputs are the values themselves", lambda: (
        lambda r: [v is r[1] for v in r[4].inputs])(_records(Graph))).gives([True])
    yield case("the count of a node's inputs, after the caller's list has grown", lambda: (
        lambda g, places: (g.add(g.body, "exp", places), places.append(g.value()),
                           len(g.body.nodes[0].inputs))[2])(*_with_list(Graph))).gives(1)
    yield case("two outputs", lambda: (lambda g: [v.type.shape for v in g.add(
        g.body, "if", [g.value()], [(2,), None])])(Graph("f"))).gives([(2,), None]).means(
        "A node has an output for each of the shapes.")
    yield case("are two values with the same name and shape equal?", lambda: (
        lambda g: g.value((2,), "x") == g.value((2,), "x"))(Graph("f"))).gives(False).means(
        "Values are compared by identity: `@dataclass(eq=False)`.")
    yield case("are Type((2,)) and Type((2,)) equal, are Type((2,)) and Type((3,))?", lambda: (
        Graph.Type((2,)) == Graph.Type((2,)), Graph.Type((2,)) == Graph.Type((3,)))).gives(
        (True, False))
    yield case("str(graph)", lambda: str(_line(Graph))).gives(
        "graph f(%x : Tensor):\n"
        "  %0 : Tensor = constant[data=2.0]()\n"
        "  %1 : Tensor = mul(%x, %0)\n"
        "  %2 : Tensor = add(%1, %x)\n"
        "  return (%2)")


@own_graph.check("2 · run")
def _(Graph):
    yield case("f(x) = x * 2 + x at 5", lambda: float(_line(Graph).run(5.0))).gives(15.0)
    yield case("at [1, 2], then at [[3]]", lambda: (
        lambda g: [g.run(np.array([1.0, 2.0])), g.run(np.array([[3.0]]))])(_line(Graph))).gives(
        [np.array([3.0, 6.0]), np.array([[9.0]])])
    yield case("sum[dim=1] of [[1, 2], [3, 4]]", lambda: _one(
        Graph, "sum", [(2, 2)], dim=1).run([[1.0, 2.0], [3.0, 4.0]])).gives(np.array([3.0, 7.0]))
    yield case("sub(x, y) at 5 and 3", lambda: float(_one(Graph, "sub", [(), ()]).run(5.0, 3.0))).gives(
        2.0)
    yield case("two outputs: x * 2 and x", lambda: _two_outputs(Graph).run(3.0)).gives(
        (np.array(6.0), np.array(3.0)))
    yield case("no inputs for a graph with one", lambda: _line(Graph).run()).raises(TypeError)
    yield case("two inputs for a graph with one", lambda: _line(Graph).run(1.0, 2.0)).raises(TypeError)


def _two_outputs(Graph):
    graph = _line(Graph)
    graph.body.outputs = [graph.body.nodes[1].outputs[0], graph.body.inputs[0]]
    return graph


def _one(Graph, op, shapes, result=None, **attributes):
    """One operation on inputs of these shapes."""
    graph = Graph("f")
    graph.body.inputs = [graph.value(shape, f"x{n}") for n, shape in enumerate(shapes)]
    graph.body.outputs = graph.add(graph.body, op, graph.body.inputs, [result], **attributes)
    return graph


def _choice(Graph):
    """exp(x) * 2 if x > 0 else x * 2, where 2 and x come from outside."""
    graph = Graph("f")
    x = graph.value(name="x")
    graph.body.inputs = [x]
    (two,) = graph.add(graph.body, "constant", data=np.array(2.0))
    (zero,) = graph.add(graph.body, "constant", data=np.array(0.0))
    (positive,) = graph.add(graph.body, "gt", [x, zero])
    yes, no = graph.Block([], [], []), graph.Block([], [], [])
    (y,) = graph.add(yes, "exp", [x])
    yes.outputs = graph.add(yes, "mul", [y, two])
    no.outputs = graph.add(no, "mul", [x, two])
    graph.body.outputs = graph.add(graph.body, "if", [positive], [None], [yes, no])
    return graph


def _guarded(Graph):
    """The second block fails for every x that is no array of seven."""
    graph = _choice(Graph)
    yes, no = graph.body.nodes[-1].blocks
    yes.outputs = graph.add(yes, "add", [graph.body.inputs[0]] * 2)
    no.outputs = graph.add(no, "reshape", graph.body.inputs, shape=(7,))
    return graph


def _powers(Graph):
    """For `turns` turns: total += turn, x *= 2; gives x, total."""
    graph = Graph("powers")
    turns, x, total = (graph.value(name=name) for name in ("turns", "x", "total"))
    graph.body.inputs = [turns, x, total]
    (two,) = graph.add(graph.body, "constant", data=np.array(2.0))
    inner = graph.Block([graph.value() for _ in range(3)], [], [])
    turn, now, sofar = inner.inputs
    (doubled,) = graph.add(inner, "mul", [now, two])
    (more,) = graph.add(inner, "add", [sofar, turn])
    inner.outputs = [doubled, more]
    graph.body.outputs = graph.add(
        graph.body, "loop", [turns, x, total], [None, None], [inner])
    return graph


def _nested(Graph):
    """In each of n turns: x + 1 while x < 3, then x * 2."""
    graph = Graph("nested")
    n, x = graph.value(name="n"), graph.value(name="x")
    graph.body.inputs = [n, x]
    (three,) = graph.add(graph.body, "constant", data=np.array(3.0))
    inner = graph.Block([graph.value(), graph.value()], [], [])
    now = inner.inputs[1]
    (small,) = graph.add(inner, "lt", [now, three])
    yes, no = graph.Block([], [], []), graph.Block([], [], [])
    (one,) = graph.add(yes, "constant", data=np.array(1.0))
    yes.outputs = graph.add(yes, "add", [now, one])
    no.outputs = graph.add(no, "add", [now, now])
    inner.outputs = graph.add(inner, "if", [small], [None], [yes, no])
    graph.body.outputs = graph.add(graph.body, "loop", [n, x], [None], [inner])
    return graph


@own_graph.check("3 · branches and loops")
def _(Graph):
    yield case("exp(x) * 2 if x > 0 else x * 2, at 0 and at -3", lambda: [
        float(_choice(Graph).run(x)) for x in (0.0, -3.0)]).gives([0.0, -6.0]).means(
        "The first block is for a true condition, the second for a false one.")
    yield case("the same at 1", lambda: float(_choice(Graph).run(1.0))).gives(5.43656365691809)
    yield case("x > 0 chooses the first block; the second holds reshape[shape=(7,)](x)",
               lambda: float(_guarded(Graph).run(1.0))).gives(2.0)
    yield case("4 turns: x = x * 2, total = total + turn; from x = 3, total = 10",
               lambda: [float(v) for v in _powers(Graph).run(4, 3.0, 10.0)]).gives([48.0, 16.0]).means(
        "The turns are 0, 1, 2 and 3, and each gets what the one before gave.")
    yield case("0 turns", lambda: [float(v) for v in _powers(Graph).run(0, 3.0, 10.0)]).gives(
        [3.0, 10.0])
    yield case("4.0 turns: a count from a float", lambda: [
        float(v) for v in _powers(Graph).run(4.0, 3.0, 10.0)]).gives([48.0, 16.0])
    yield case("an if in a loop: x + 1 if x < 3 else x + x, 5 turns from 1",
               lambda: float(_nested(Graph).run(5, 1.0))).gives(24.0)
    yield case("the same graph, run again", lambda: (
        lambda g: [float(g.run(n, 1.0)) for n in (5, 1, 5)])(_nested(Graph))).gives([24.0, 2.0, 24.0])


def _told(graph):
    """"fine", or that check raised a TypeError and which values it names."""
    try:
        graph.check()
    except TypeError as error:
        words = str(error).replace(",", " ").split()
        return "TypeError: " + " ".join(word.strip(".:;()") for word in words if word[:1] == "%")
    return "fine"


def _broken(Graph, what):
    graph = _line(Graph)
    body = graph.body
    if what == "the first two nodes are exchanged":
        body.nodes[0], body.nodes[1] = body.nodes[1], body.nodes[0]
    elif what == "an output that nobody makes":
        body.outputs = [graph.value(name="ghost")]
    elif what == "a node stands in the body twice":
        body.nodes.append(body.nodes[1])
    elif what == "a node makes what is an input":
        body.nodes[1].outputs = [body.inputs[0]]
    elif what == "another value of the same name":
        body.nodes[1].outputs[0].name = "x"
    elif what == "an input twice":
        body.inputs = [body.inputs[0]] * 2
    elif what == "a node uses its own output":
        body.nodes[2].inputs[0] = body.nodes[2].outputs[0]
    return graph


def _with_blocks(Graph, what):
    graph = _choice(Graph)
    choose = graph.body.nodes[-1]
    yes, no = choose.blocks
    if what == "a value of a block is used behind the if":
        graph.body.outputs = [yes.nodes[0].outputs[0]]
    elif what == "a value of the first block is used in the second":
        no.outputs = [yes.nodes[0].outputs[0]]
    elif what == "both blocks make a value of the same name":
        no.nodes[0].outputs[0].name = yes.nodes[0].outputs[0].name
    elif what == "the if's output has a name from a block":
        choose.outputs[0].name = yes.nodes[0].outputs[0].name
    elif what == "a block gives what is made behind the if":
        yes.outputs = [choose.outputs[0]]
    return graph


@own_graph.check("4 · check: names")
def _(Graph):
    yield case("check of f(x) = x * 2 + x", lambda: _told(_line(Graph))).gives("fine")
    yield case("what check returns", lambda: _line(Graph).check()).gives(None).means(
        "A graph that is wrong is an error; check() returns nothing.")
    for what, name in (
        ("the first two nodes are exchanged", "%0"), ("an output that nobody makes", "%ghost"),
        ("a node stands in the body twice", "%1"), ("a node makes what is an input", "%x"),
        ("another value of the same name", "%x"), ("an input twice", "%x"),
        ("a node uses its own output", "%2"),
    ):
        yield case(f"{what}: check", lambda w=what: _told(_broken(Graph, w))).gives(
            f"TypeError: {name}").means(f"The value {name} is what is wrong here.")
    for name, make in (("an if", _choice), ("a loop", _powers), ("an if in a loop", _nested)):
        yield case(f"check of {name}", lambda m=make: _told(m(Graph))).gives("fine")
    for what, name in (
        ("a value of a block is used behind the if", "%3"),
        ("a value of the first block is used in the second", "%3"),
        ("both blocks make a value of the same name", "%3"),
        ("the if's output has a name from a block", "%3"),
        ("a block gives what is made behind the if", "%6"),
    ):
        yield case(f"{what}: check", lambda w=what: _told(_with_blocks(Graph, w))).gives(
            f"TypeError: {name}")
    yield case("checked twice", lambda: (lambda g: (_told(g), _told(g)))(_nested(Graph))).gives(
        ("fine", "fine"))


def _misshapen(Graph, what):
    graph = _powers(Graph) if "loop" in what else _choice(Graph)
    last = graph.body.nodes[-1]
    if what == "an if with one block":
        last.blocks.pop()
    elif what == "an if with two conditions":
        last.inputs = last.inputs * 2
    elif what == "an if whose second block gives nothing":
        last.blocks[1].outputs = []
    elif what == "an if whose block has an input":
        last.blocks[0].inputs = [graph.value()]
    elif what == "a loop that carries one value more in than out":
        last.inputs = [*last.inputs, graph.body.inputs[0]]
    elif what == "a loop whose block does not give everything back":
        last.blocks[0].outputs.pop()
    elif what == "a loop whose block has no turn":
        last.inputs, last.outputs = last.inputs[:3], last.outputs[:1]
        graph.body.outputs = last.outputs
    elif what == "a loop with two blocks":
        last.blocks.append(graph.Block([], [], []))
    return graph


@own_graph.check("5 · check: shapes")
def _(Graph):
    for text, op, shapes, result, attributes, wanted in (
        ("mul of (2, 3) and (3,), said to be (2, 3)", "mul", [(2, 3), (3,)], (2, 3), {}, True),
        ("said to be (3,)", "mul", [(2, 3), (3,)], (3,), {}, False),
        ("said to be of any shape", "mul", [(2, 3), (3,)], None, {}, True),
        ("mul of (2, 3) and (2,)", "mul", [(2, 3), (2,)], None, {}, False),
        ("matmul of (2, 3) and (3, 4), said to be (2, 4)", "matmul", [(2, 3), (3, 4)], (2, 4), {}, True),
        ("matmul of (2, 3) and (4, 3)", "matmul", [(2, 3), (4, 3)], None, {}, False),
        ("matmul of (2, 3) and any", "matmul", [(2, 3), None], (7,), {}, True),
        ("sum[dim=1] of (2, 3), said to be (2,)", "sum", [(2, 3)], (2,), {"dim": 1}, True),
        ("sum[dim=1] of (2, 3), said to be (3,)", "sum", [(2, 3)], (3,), {"dim": 1}, False),
        ("sum[dim=2] of (2, 3)", "sum", [(2, 3)], None, {"dim": 2}, False),
        ("sum[axis=1] of (2, 3)", "sum", [(2, 3)], None, {"axis": 1}, False),
        ("exp of two inputs", "exp", [(2,), (2,), (2,), (2,)], None, {}, False),
        ("softmax", "softmax", [(2,)], (2,), {}, False),
        ("softmax of any shape", "softmax", [None], None, {}, False),
    ):
        yield case(f"{text}: check", lambda a=(op, shapes, result), k=attributes: _told(
            _one(Graph, *a, **k)).split(":")[0]).gives("fine" if wanted else "TypeError").means(
            "These shapes fit." if wanted else "This operation is unknown, or cannot give this shape.")
    yield case("which value has the wrong shape?", lambda: _told(
        _one(Graph, "exp", [(2,)], (3,)))).gives("TypeError: %0")
    for what in ("an if with one block", "an if with two conditions",
                 "an if whose second block gives nothing", "an if whose block has an input",
                 "a loop that carries one value more in than out",
                 "a loop whose block does not give everything back",
                 "a loop whose block has no turn", "a loop with two blocks"):
        yield case(f"{what}: check", lambda w=what: _told(_misshapen(Graph, w)).split(":")[0]).gives(
            "TypeError")
    yield case("an exp with two outputs: check", lambda: (lambda g: (
        g.add(g.body, "exp", g.body.inputs, [None, None]), _told(g).split(":")[0])[1])(
            _line(Graph))).gives("TypeError")


def _wrong_inside(Graph):
    graph = _nested(Graph)
    yes = graph.body.nodes[-1].blocks[0].nodes[-1].blocks[0]
    yes.nodes[-1].op = "plus"
    return graph


@own_graph.check("graphs inside graphs", hidden=True)
def _(Graph):
    yield case("an unknown op two blocks deep: check", lambda: _told(
        _wrong_inside(Graph)).split(":")[0]).gives("TypeError")
    yield case("shapes of a node in a block: check", lambda: (lambda g: (
        setattr(g.body.inputs[0], "type", g.Type((2,))),
        setattr(g.body.nodes[-1].blocks[0].nodes[0].outputs[0], "type", g.Type((3,))),
        _told(g))[-1])(_choice(Graph))).gives("TypeError: %3")
    yield case("a chain of 3,000 nodes: run and check", lambda: _chain(Graph, 3000)).gives(3001.0)


def _chain(Graph, count):
    graph = Graph("chain")
    x = one = graph.value((), "x")
    graph.body.inputs = [one]
    for _ in range(count):
        (x,) = graph.add(graph.body, "add", [x, one], [()])
    graph.body.outputs = [x]
    graph.check()
    return float(graph.run(1.0))


def _lines(draw):
    """A random straight program: (op, places of inputs)."""
    lines = []
    for n in range(draw.randint(1, 7)):
        op = draw.choice(("add", "sub", "mul", "tanh", "neg", "relu", "exp"))
        count = 2 if op in ("add", "sub", "mul") else 1
        lines.append((op, *(draw.randrange(2 + n) for _ in range(count))))
    return lines, draw.randrange(2 + len(lines))


def _built(Graph, lines, result, shape=(2,)):
    graph = Graph("f")
    values = graph.body.inputs = [graph.value(shape, "x"), graph.value(shape, "y")]
    values = list(values)
    for op, *places in lines:
        values += graph.add(graph.body, op, [values[n] for n in places], [shape])
    graph.body.outputs = [values[result]]
    return graph


_X, _Y = np.array([0.5, -1.0]), np.array([-0.25, 0.75])


@own_graph.check("any graph")
def _(Graph):
    def ran(Graph):
        def run(lines, result):
            graph = _built(Graph, lines, result)
            graph.check()
            return graph.run(_X, _Y), str(graph)

        return run

    yield agrees(ran(Graph), ran(own_graph.answer.value), _lines, count=40,
                 tell=lambda lines, result: f"x, y, then {lines}; the result is number {result}: "
                                            "checked, run, printed")

    def hold():
        for n, make in enumerate(drawn(_lines, 25, 5)):
            lines, result = make()

            def spoilt(lines=lines, result=result, n=n):
                graph = _built(Graph, lines, result)
                node = graph.body.nodes[n % len(lines)]
                node.inputs[0] = graph.body.nodes[-1].outputs[0]  # made later, or by itself
                return _told(graph)

            yield case(f"x, y, then {lines}; node {n % len(lines)} uses the last result: check",
                       spoilt).as_by(lambda n=n, lines=lines, result=result: _spoilt(n, lines, result))

    yield every("25 graphs in which a node uses what comes later", hold)


def _spoilt(n, lines, result):
    graph = _built(own_graph.answer.value, lines, result)
    graph.body.nodes[n % len(lines)].inputs[0] = graph.body.nodes[-1].outputs[0]
    return _told(graph)
