"""Misconceptions about a graph, its interpreter and its checker."""

from course.exercises.ch13.graph import own_graph

own_graph.changed(
    "values are compared by their fields",
    """
    Two values with the same name and type were equal, and so one and the same key of the interpreter's
    dictionary. A value is one place in the program: compare by identity, `@dataclass(eq=False)`.
    """,
    ("    @dataclass(eq=False)\n    class Value:", "    @dataclass(unsafe_hash=True)\n    class Value:"),
)

own_graph.changed(
    "keeps the caller's list",
    """
    The node kept the list it was handed. When the caller goes on working with that list, the node
    changes behind its back. `list(inputs)` is a list of the node's own.
    """,
    ("inputs, blocks = list(inputs), list(blocks)", "blocks = list(blocks)"),
)

own_graph.changed(
    "add gives the node",
    """
    `add` returns the list of the node's outputs, since these are what the next node needs as its inputs.
    """,
    ("        block.nodes.append(node)\n        return outputs",
     "        block.nodes.append(node)\n        return node"),
)

own_graph.changed(
    "always appends to the body",
    """
    The node went to the graph's body, whichever block it was meant for. A branch's nodes then run in any
    case, and before the branch is taken.
    """,
    ("        block.nodes.append(node)", "        self.body.nodes.append(node)"),
)

own_graph.changed(
    "attributes are left out",
    """
    The operation was called without the node's attributes. `sum` then sums over everything, and
    `constant` has no data. They are its keywords.
    """,
    ("results = [self.ops[node.op](*given, **node.attributes)]",
     "results = [self.ops[node.op](*given, **{\n"
     "                    k: v for k, v in node.attributes.items() if k == \"data\"})]"),
)

own_graph.changed(
    "too many inputs are dropped in silence",
    """
    `zip` stops at the shorter of two lists, so a call with a wrong count of arrays went on. Compare the
    counts first.
    """,
    ("        if len(arrays) != len(self.body.inputs):\n"
     "            raise TypeError(f\"{len(arrays)} arrays are not what it takes\")\n", ""),
)

own_graph.changed(
    "both branches are run",
    """
    The second block ran as well. That costs time, and it fails where a branch was there to avoid an error:
    `log(x) if x > 0`. Only the chosen block runs.
    """,
    ("                chosen = node.blocks[0 if given[0] else 1]\n"
     "                results = self._run(chosen, [], known)\n",
     "                both = [self._run(b, [], known) for b in node.blocks]\n"
     "                results = both[0 if given[0] else 1]\n"),
)

own_graph.changed(
    "blocks do not see what is around them",
    """
    The block got an empty dictionary. It uses values that were made outside of it, such as x, and has to find them
    in the same dictionary.
    """,
    ("results = self._run(chosen, [], known)", "results = self._run(chosen, [], {})"),
)

own_graph.changed(
    "each turn begins anew",
    """
    Every turn got what the loop was given at the start. What a turn gives is what the next one gets: that is
    what *carried* means.
    """,
    ("                turns, *results = given\n",
     "                turns, *first = given\n                results = first\n"),
    ("given = [turn, *results]", "given = [turn, *first]"),
)

own_graph.changed(
    "the turn is not passed on",
    """
    The block's first input is the turn, 0 in the first one. It got the count of turns.
    """,
    ("given = [turn, *results]", "given = [turns, *results]"),
)

own_graph.changed(
    "turns count from 1",
    """
    Turns count from 0, as `range` does, and as the variable of the loop does in the program that is
    compiled.
    """,
    ("given = [turn, *results]", "given = [turn + 1, *results]"),
)

own_graph.changed(
    "always a tuple",
    """
    A graph with one output gives this output. A tuple is for several.
    """,
    ("return results[0] if len(results) == 1 else tuple(results)", "return tuple(results)"),
)

own_graph.changed(
    "what a block makes is seen outside",
    """
    One set of made values served all blocks. A block may not run at all, so what it makes does not exist
    behind it. Each block continues on a *copy* of what is seen around it.
    """,
    ("        seen = set(outside)\n", "        seen = outside\n"),
)

own_graph.changed(
    "the same name twice is fine",
    """
    Values with the same name passed. The printed graph then means something else than the records: nobody
    can tell which of them a line uses. Keep one set of names for the whole graph.
    """,
    ("                if value.name in names:\n", "                if value in seen:\n"),
)

own_graph.changed(
    "names may repeat in different blocks",
    """
    Each block had a set of names of its own. A name belongs to one value in the *whole* graph, otherwise a
    block could hide a value of the block around it.
    """,
    ("self._check(inner, seen, names)", "self._check(inner, seen, set(names))"),
)

own_graph.changed(
    "outputs are not checked",
    """
    The values that a block gives have to be made, too, and in its own scope.
    """,
    ("        used(block.outputs)\n", ""),
)

own_graph.changed(
    "a node may use its own output",
    """
    The outputs were entered before the inputs were looked at. A node's inputs have to be there before
    it runs.
    """,
    ("            used(node.inputs)\n            for inner in node.blocks:",
     "            seen.update(node.outputs)\n"
     "            used(node.inputs)\n            for inner in node.blocks:"),
)

own_graph.changed(
    "blocks are not checked",
    """
    The checker looked at the outer block only. Whatever a branch or a loop holds has the same rules: call
    the check for each inner block.
    """,
    ("                self._check(inner, seen, names)\n", "                pass\n"),
)

own_graph.changed(
    "shapes have to be equal",
    """
    Operands of different shapes were refused. Shapes broadcast, and a product of matrices has rules of
    its own. The operation knows them: call it on `np.ones`, and look at the result.
    """,
    ("                ones = map(np.ones, shapes)\n",
     "                if len(set(shapes)) > 1:\n"
     "                    raise ValueError(\"shapes differ\")\n"
     "                ones = map(np.ones, shapes)\n"),
)

own_graph.changed(
    "an unknown shape is an error",
    """
    `None` says that nothing is known. Then nothing can be wrong, neither for an input nor for the
    output.
    """,
    ("if out.type.shape not in (None, shape):", "if out.type.shape != shape:"),
)

own_graph.changed(
    "the operation's own error gets out",
    """
    An operation that fails on these shapes raised its own error (ValueError). `check` promises one kind of
    error for a graph that is wrong: catch it, and raise TypeError.
    """,
    ("            except Exception as error:\n", "            except ZeroDivisionError as error:\n"),
)

own_graph.changed(
    "branches of different lengths",
    """
    Both blocks of an `if` have to give as many values as the node has outputs. Otherwise some of them do
    not exist when the other branch is taken.
    """,
    ("good = given == 1 and counts == [(0, gives)] * 2",
     "good = given == 1 and [n for n, _ in counts] == [0, 0]"),
)

own_graph.changed(
    "loops are not checked",
    """
    A loop's block has as many inputs as the node (the turn in the place of the count), and as many outputs
    as the node.
    """,
    ("good = counts == [(given, gives)] and given == gives + 1", "good = True"),
)
