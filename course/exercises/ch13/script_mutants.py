"""Misconceptions about a compiler from source to a graph."""

from course.exercises.ch13.script import own_script

own_script.changed(
    "operands in the wrong order",
    """
    The right operand was compiled first, and handed over first. `x - y` became `y - x`.
    """,
    ("return add(binary[type(op)], one, two)", "return add(binary[type(op)], two, one)"),
)

own_script.changed(
    "a minus sign is dropped",
    """
    `-x` was compiled like `x`. In the tree it is a node of its own, `ast.UnaryOp`, and in the graph a
    node `neg`.
    """,
    ('return add("neg", part)', "return expression(part, block, known)"),
)

own_script.changed(
    "an assignment copies",
    """
    Each assignment made a node. A name is no place in memory: `y = x` only says that y means the same value
    from here on.
    """,
    ("                    known[name] = expression(value, block, known)\n",
     "                    found = expression(value, block, known)\n"
     "                    known[name] = found\n"
     "                    if isinstance(value, ast.Name):\n"
     "                        zero = graph.add(block, \"constant\", data=np.array(0.0))\n"
     "                        known[name] = graph.add(block, \"add\", [found, *zero])[0]\n"),
)

own_script.changed(
    "what is not known is left out",
    """
    A statement that is not in the language was skipped. The graph then computes something else, and
    nobody says so. Whatever is not compiled has to be an error.
    """,
    ("                case _:\n                    raise refused(line)",
     "                case _:\n                    pass"),
)

own_script.changed(
    "a method's arguments are ignored",
    """
    `x.sum(0)` was compiled as `x.sum()`. Arguments that the compiler does not understand must be refused.
    """,
    ("func=ast.Attribute(value=part, attr=name),\n                args=[],\n                keywords=[],\n",
     "func=ast.Attribute(value=part, attr=name)\n"),
)

own_script.changed(
    "both branches share their names",
    """
    Both branches were compiled with the same dictionary. The second one then sees what the first assigned,
    and values of its block, although only one of them will run. Each branch gets a copy.
    """,
    ("            after.append(dict(known))\n", "            after.append(known)\n"),
)

own_script.changed(
    "branches go into the outer block",
    """
    The nodes of both branches were appended to the block around the `if`. Then both always run.
    """,
    ("            statements(body, blocks[-1], after[-1])\n", "            statements(body, block, after[-1])\n"),
)

own_script.changed(
    "only names that both branches assign",
    """
    Only names that *both* branches changed became outputs. If one branch assigns y and y had a value before, the
    other branch leaves that value: y is an output, too.
    """,
    ("            and any(names[name] is not known.get(name) for names in after)",
     "            and all(names[name] is not known.get(name) for names in after)"),
)

own_script.changed(
    "the second branch does not count",
    """
    It was asked what the *first* branch changed. What only the `else` assigns was lost.
    """,
    ("            and any(names[name] is not known.get(name) for names in after)",
     "            and after[0][name] is not known.get(name)"),
)

own_script.changed(
    "a name of one branch is used behind it",
    """
    A name that only one branch knows went on to mean a value of that branch's block. If the other branch is
    taken, that value was never made. Such a name has no value behind the `if`.
    """,
    ("        known.update(zip(changed, outputs))\n\n    def loop",
     "        for names in after:\n"
     "            known.update({n: v for n, v in names.items() if n not in known})\n"
     "        known.update(zip(changed, outputs))\n\n    def loop"),
)

own_script.changed(
    "every name is an output",
    """
    All names became outputs of the `if`, also those that no branch changed. The graph gives the same results, and
    no later pass can see that x is still the same x. Only what changed is an output.
    """,
    ("            and any(names[name] is not known.get(name) for names in after)\n", ""),
)

own_script.changed(
    "nothing is carried",
    """
    The loop's body was compiled with the values from before the loop. Then each turn starts with these,
    and only the last one has an effect. What the body assigns and reads has to be an input of its block.
    """,
    ("        names.update(zip([line.target.id, *carried], inner.inputs))",
     "        names.update(zip([line.target.id], inner.inputs))"),
)

own_script.changed(
    "behind the loop names mean what they meant before",
    """
    The node's outputs were made and not entered into `known`. What follows the loop then reads the values from
    before it.
    """,
    ("        known.update(zip(carried, outputs))\n        known.pop", "        known.pop"),
)

own_script.changed(
    "the loop's variable lives on",
    """
    The loop's variable had a value behind the loop: the block's input, which is not seen there. And after
    zero turns there is none.
    """,
    ("        known.pop(line.target.id, None)\n", "        known[line.target.id] = inner.inputs[0]\n"),
)

own_script.changed(
    "names of the loop live on",
    """
    A name that the body makes new had a value behind the loop. If the loop has zero turns, nobody made
    it.
    """,
    ("        known.update(zip(carried, outputs))\n        known.pop",
     "        known.update({n: v for n, v in names.items() if n not in known})\n"
     "        known.update(zip(carried, outputs))\n        known.pop"),
)

own_script.changed(
    "the loop is unrolled",
    """
    A loop over `range(3)` was written out three times. That works for a count that is written down, and gives as many
    nodes as turns. `range(n)` is only known when the graph runs, so a loop is a node with a block.
    """,
    ("        if line.target.id in known:\n            raise refused(line)\n        turns",
     "        if line.target.id in known:\n            raise refused(line)\n"
     "        if isinstance(line.iter.args[0], ast.Constant):\n"
     "            for n in range(line.iter.args[0].value):\n"
     "                known[line.target.id] = expression(ast.Constant(n), block, known)\n"
     "                statements(line.body, block, known)\n"
     "            known.pop(line.target.id, None)\n"
     "            return\n"
     "        turns"),
)

own_script.changed(
    "all names are carried",
    """
    Every name was carried, also those that the body only reads. The block sees them anyway. What does not change
    should not look as if it did.
    """,
    ("carried = [name for name in known if name in assigned]", "carried = list(known)"),
)

own_script.changed(
    "only names that are assigned at the body's first level",
    """
    Assignments inside an `if` of the body were overlooked. A name that changes in a branch of the loop
    changes in the loop: look at the whole tree, `ast.walk`.
    """,
    ("            for part in ast.walk(line)\n"
     "            if isinstance(part, ast.Name)\n"
     "            and isinstance(part.ctx, ast.Store)",
     "            for inside in line.body\n"
     "            for part in getattr(inside, \"targets\", [])"),
)

own_script.changed(
    "a return anywhere",
    """
    A `return` in a branch was taken as the block's output. Whoever comes behind it still runs. Only a
    `return` at the end of the function is in the language.
    """,
    ("                case ast.Return(value=ast.expr() as value) if (\n"
     "                    line is function.body[-1]\n"
     "                ):\n",
     "                case ast.Return(value=ast.expr() as value):\n"),
)
