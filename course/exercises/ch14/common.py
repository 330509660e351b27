"""What the checks of chapter 14 share: graphs written as lines."""

import re

import numpy as np

from mytorch.graph import Graph


def written(lines, shape=(2,), outputs=None, inputs=("x", "y")):
    """A graph from lines such as "a = mul x y"; numbers become constants, names are kept.

    ``"p = pow x n=3"`` gives attributes. Without ``outputs`` the last line's name is the output.
    """
    graph = Graph("f")
    graph.ops = dict(graph.ops)  # whoever writes to it shall not change the class
    known = {name: graph.value(shape, name) for name in inputs}
    graph.body.inputs = [known[name] for name in inputs]
    for line in lines:
        name, _, rest = line.partition(" = ")
        op, *words = rest.split()
        given = [word for word in words if "=" not in word]
        attributes = {k: eval(v) for k, _, v in (w.partition("=") for w in words if "=" in w)}
        if op == "constant":
            data = np.array(eval(given.pop()), float)
            attributes = {"data": data}
        values = [known[word] for word in given]
        arrays = [np.ones(value.type.shape) for value in values]
        shape_of = np.shape(graph.ops[op](*arrays, **attributes))
        (made,) = graph.add(graph.body, op, values, [shape_of], **attributes)
        made.name = name
        known[name] = made
        last = name
    graph.body.outputs = [known[name] for name in (outputs or [last])]
    return graph


def read(graph):
    """A graph as lines, checked."""
    graph.check()
    lines = []
    for node in graph.body.nodes:
        said = [f"{k}={np.asarray(v).tolist()}" for k, v in node.attributes.items()]
        lines.append(" ".join([node.outputs[0].name, "=", node.op, *(v.name for v in node.inputs), *said]))
    return [*lines, "-> " + " ".join(v.name for v in graph.body.outputs)]


def arrays_for(graph, seed=0):
    """Random arrays of the inputs' shapes, between 0.2 and 1.5."""
    draw = np.random.default_rng(seed)
    return [draw.uniform(0.2, 1.5, value.type.shape) for value in graph.body.inputs]


def drawn_lines(draw, ops=("add", "mul", "sub", "tanh", "neg", "exp")):
    """Random lines over x and y, some of them equal, some unused; and one or two outputs."""
    lines, names = [], ["x", "y"]
    for n in range(draw.randint(1, 8)):
        op = draw.choice((*ops, "constant"))
        name = "abcdefgh"[n]
        if op == "constant":
            lines.append(f"{name} = constant {draw.choice((0, 1, 2, 0.5))}")
        else:
            count = 2 if op in ("add", "mul", "sub", "div") else 1
            lines.append(" ".join([f"{name} = {op}", *(draw.choice(names) for _ in range(count))]))
        names.append(name)
    outputs = [draw.choice(names[2:]) for _ in range(draw.randint(1, 2))]
    return lines, outputs


def by_numpy(*arrays, text, shape):
    """Runs the text of a fused node with NumPy; the results stacked."""
    head, *lines = text.splitlines()
    given, _, results = head.partition(" -> ")
    arrays_of = re.findall(r"(\w+)\[([\w,]*)\]", given)
    known = {"exp": np.exp, "log": np.log, "tanh": np.tanh, "where": np.where}
    for (name, dims), array in zip(arrays_of, arrays, strict=True):
        sizes, squeezed = [1] * (len(shape) - 1), np.squeeze(array)
        places = [int(d[1:]) for d in dims.split(",") if d]
        for place, size in zip(places, squeezed.shape, strict=True):
            sizes[place] = size
        known[name] = squeezed.reshape(sizes)
    with np.errstate(all="ignore"):  # a checker calls it with ones
        exec("\n".join(lines), known)
    names = re.findall(r"(\w+)\[", results)
    return np.stack([np.broadcast_to(known[name], shape[1:]) for name in names])
