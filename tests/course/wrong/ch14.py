"""Wrong answers of chapter 14."""

from tests.course.wrong import like, wrong

# -- fusion.prune

like("fusion.prune", "gives the list of nodes", ("    return graph", "    return graph.body.nodes"))
like(
    "fusion.prune",
    "only nodes that use an input stay",
    (
        "if any(value in needed for value in node.outputs):",
        "if any(value in needed for value in node.outputs) and set(node.inputs) & set(graph.body.inputs):",
    ),
)
like("fusion.prune", "does nothing", ("    graph.body.nodes = kept[::-1]\n", ""))
like(
    "fusion.prune",
    "only the last node counts",
    ("set(graph.body.outputs)", "set(graph.body.nodes[-1].outputs if graph.body.nodes else [])"),
)
like(
    "fusion.prune",
    "inputs of dead nodes are needed",
    (
        "            needed.update(node.inputs)\n            kept.append(node)\n",
        "            kept.append(node)\n        needed.update(node.inputs)\n",
    ),
)


@wrong("fusion.prune", "by names")
def prune(graph):
    used = {v.name for node in graph.body.nodes for v in node.inputs}
    used |= {v.name for v in graph.body.outputs}
    for node in list(graph.body.nodes):
        if node.outputs[0].name not in used:
            graph.body.nodes.remove(node)
    return graph


# -- fusion.share

like(
    "fusion.share",
    "only neighbours are compared",
    ("        first[key] = node\n", "        first = {key: node}\n"),
)
like(
    "fusion.share",
    "constants are not shared",
    ("        if key in first:\n", '        if key in first and node.op != "constant":\n'),
)
like(
    "fusion.share",
    "folds and gives the node a new name",
    (
        '            node.op, node.inputs = "constant", []\n',
        '            node.op, node.inputs = "constant", []\n            node.outputs[0].name += "!"\n',
    ),
)
like("fusion.share", "gives the nodes", ("    return graph", "    return kept"))
like(
    "fusion.share",
    "folds once only",
    (
        "        makers.update((value, node) for value in node.outputs)\n",
        "        if not node.inputs and node.op == 'constant' and sources == [] and len(said) == 1:\n"
        "            makers.update((value, node) for value in node.outputs)\n",
    ),
)
like(
    "fusion.share",
    "drops what nobody uses",
    (
        "    graph.body.nodes = kept\n",
        "    used = {v for n in kept for v in n.inputs} | {instead.get(v, v) for v in graph.body.outputs}\n"
        "    graph.body.nodes = [n for n in kept if n.outputs[0] in used]\n",
    ),
)
like(
    "fusion.share",
    "keys by the printed array",
    ("str(np.asarray(value).tolist())", "str(np.asarray(value))"),
)

# -- fusion.derive

like("fusion.derive", "log times instead of divided", ('add("div", g, a)', 'add("mul", g, a)'))
like("fusion.derive", "the power is not lowered", ('add("pow", a, n=n - 1)', 'add("pow", a, n=n)'))
like(
    "fusion.derive",
    "starts with zero",
    ("gradients[output] = number(1.0)", "gradients[output] = number(0.0)"),
)
like(
    "fusion.derive",
    "the product rule exchanged",
    ('return [add("mul", g, b), add("mul", g, a)]', 'return [add("mul", g, a), add("mul", g, b)]'),
)
like(
    "fusion.derive",
    "a neg is forgotten",
    ('            case "neg":\n                return [add("neg", g)]\n', ""),
)
like(
    "fusion.derive",
    "relu by its result's sign turned around",
    ('add("gt", a, number(0.0))', 'add("lt", a, number(0.0))'),
)
like(
    "fusion.derive",
    "gradients before the output",
    (
        "    body.outputs = [output] + [",
        "    body.outputs = [",
    ),
    (
        "        for value in body.inputs\n    ]\n",
        "        for value in body.inputs\n    ] + [output]\n",
    ),
)
like(
    "fusion.derive",
    "the constant 1 has the shape (1,)",
    ("number(1.0)\n    for", "number([1.0])\n    for"),
)

# -- fusion.groups

like("fusion.groups", "exp is left out", ('"exp", "log"', '"log"'))
like(
    "fusion.groups",
    "the second input first",
    ("for maker in before([node]):", "for maker in before([node])[::-1]:"),
)
like(
    "fusion.groups",
    "shapes of the inputs",
    (
        "group[0].outputs[0].type == node.outputs[0].type",
        "group[0].outputs[0].type == node.inputs[0].type",
    ),
)
like(
    "fusion.groups",
    "one group for each shape",
    (
        "if same and not comes_back(node, group):",
        "if same and not comes_back(node, group) and group is group_of.get(next(iter(group_of))):",
    ),
)
like(
    "fusion.groups",
    "reshapes are taken in",
    ('"exp", "log"', '"reshape", "exp", "log"'),
)
like(
    "fusion.groups",
    "names instead of nodes",
    (
        "[group for group in distinct.values() if len(group) > 1]",
        "[[n.outputs[0].name for n in group] for group in distinct.values() if len(group) > 1]",
    ),
)
like("fusion.groups", "groups of three at least", ("if len(group) > 1]", "if len(group) > 2]"))

# -- fusion.fuse

like("fusion.fuse", "names are counted from 1", ('f"t{len(lines)}"', 'f"t{len(lines) + 1}"'))
like(
    "fusion.fuse",
    "results in reverse",
    (
        "for n in group if n.outputs[0] in outside]",
        "for n in group[::-1] if n.outputs[0] in outside]",
    ),
)
like("fusion.fuse", "part gives always the first", ("lambda x, n: x[n]", "lambda x, n: x[0]"))
like(
    "fusion.fuse",
    "numbers without their digits",
    ('repr(float(maker.attributes["data"]))', 'repr(int(maker.attributes["data"]))'),
)
like("fusion.fuse", "the shape without the count", ("(len(results), *shape)", "(*shape,)"))
like(
    "fusion.fuse",
    "only the first group",
    ("    for group in groups(graph):\n", "    for group in groups(graph)[:1]:\n"),
)
like(
    "fusion.fuse",
    "the old nodes stay",
    ("        waiting = [node for node in waiting if node not in group]\n", ""),
)
