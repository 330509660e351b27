"""A graph of five small records, its text, interpreter and checker."""

from dataclasses import dataclass

import numpy as np

from course.records import Exercise

own_graph = Exercise(
    "tracing.graph",
    "A graph, its interpreter and its checker",
    chapter=13,
    minutes=55,
    prompt="""
    A program as data: something that can be printed, checked, run and rewritten. It becomes `graph.py`
    in your package `mytorch`, and everything of this chapter and the next stands on it. Write the class
    `Graph`. Its text and its table of operations, `ops`, are given. The checks come in stages.

    **1 · Records.** A graph consists of five records. Four of them are small dataclasses inside `Graph`:

    | record | fields |
    | --- | --- |
    | `Graph.Type` | `shape`: a tuple, or `None` if it is not known |
    | `Graph.Value` | `name`, `type`: something that is made **once** |
    | `Graph.Node` | `op`, `inputs`, `outputs` (lists of values), `attributes` (a dict), `blocks` (a list) |
    | `Graph.Block` | `inputs`, `nodes`, `outputs`: lists |
    | `Graph` itself | `name`, and `body`, a block |

    `Type` is compared by its shape. The other three are compared by **identity**: two values are never
    the same, even with the same name, which is what `@dataclass(eq=False)` says. All but `Node` are
    given.

    `value(shape=None, name="")` makes a value; without a name it is called by a number, "0", "1", ….
    `add(block, op, inputs=(), shapes=(None,), blocks=(), **attributes)` appends a node to a block, with
    a new output for each shape, and returns the **list** of outputs.

    **2 · Run.** `run(*arrays)` gives the graph's output, or a tuple if there are several. A node calls
    `ops[node.op]` with the arrays of its inputs and with its attributes as keywords. A wrong count of
    arrays is a `TypeError`.

    **3 · Branches and loops.** Two operations have blocks. Blocks see the values of the blocks around
    them.

    | op | inputs | blocks | outputs |
    | --- | --- | --- | --- |
    | `"if"` | a condition | two, without inputs | what the block gives that ran |
    | `"loop"` | how often, then what is carried | one | what the last turn gives |

    Of an `if`, the first block runs if the condition is true, else the second. A loop's block has as
    inputs the turn (0, 1, …) and what is carried, and as outputs what the next turn gets. A loop
    of 0 turns gives what was carried in.

    **4 · Check: names.** `check()` raises a `TypeError` that mentions `%name` if a value is used
    where it has not been made, or made twice (also: two values of the same name, anywhere). What a
    block inside makes is not seen outside.

    **5 · Check: shapes.** A node of `ops` has one output. If the shapes of all inputs are known, call
    the operation on `np.ones` of these shapes. If that fails, or if the output has another shape than
    its type says, it is a `TypeError`. So is an unknown op, and an `if` or a `loop` with a wrong count
    of blocks, inputs or outputs. Nothing is asked of a shape `None`.

    For example, `run(3.0)` on the graph on the left:

    | line | known afterwards |
    | --- | --- |
    | `graph f(%x : Tensor):` | x: 3 |
    | `%0 : Tensor = constant[data=2.0]()` | x: 3, 0: 2 |
    | `%1 : Tensor = mul(%x, %0)` | x: 3, 0: 2, 1: 6 |
    | `%2 : Tensor = loop(%0, %x)` | begins with turn 0 and carried 3 |
    | `block0(%3 : Tensor, %4 : Tensor):` | 3: 0, 4: 3, later 3: 1, 4: 9 |
    | `%5 : Tensor = add(%4, %1)` | 5: 9, later 15 |
    | `-> (%5)` | the next turn's carried 9; after two turns 2: 15 |
    | `return (%2)` | 15 |
    """,
    hints=(
        """
        The interpreter is one dictionary from values to arrays, and one function that runs a block: it
        enters the block's inputs, then each node's results, and gives the arrays of the block's
        outputs. Branches and loops call the same function again. The checker walks in the same order
        and keeps, instead of arrays, the set of values that have been made.
        """,
        """
        Checking a graph with an `if`, block by block. `names` is one set for the whole graph; `seen` is
        a copy for each block:

        | what | seen in the outer block | seen in block 0 | names |
        | --- | --- | --- | --- |
        | the input x | x | | x |
        | `%0 = gt(%x, %x)` | x, 0 | | x, 0 |
        | into block 0 | x, 0 | x, 0 | x, 0 |
        | `%1 = exp(%x)` in it | x, 0 | x, 0, 1 | x, 0, 1 |
        | out of it, and into block 1 | x, 0 | (its own copy) | x, 0, 1 |
        | the output 2 of `if` | x, 0, 2 | | x, 0, 1, 2 |
        | `return (%1)` | 1 is not there: TypeError | | |

        The shape of `matmul` for (2, 3) and (3, 4) is that of
        `ops["matmul"](np.ones((2, 3)), np.ones((3, 4)))`.
        """,
        """
        ```python
        class Graph:
            @dataclass(frozen=True)
            class Type:
                shape: tuple | None = None

            @dataclass(eq=False)
            class Value:
                name: str
                type: object

            @dataclass(eq=False)
            class Node:
                ...

            @dataclass(eq=False)
            class Block:
                ...

            def __init__(self, name):
                self.name, self.body = name, self.Block([], [], [])
                self.count = 0

            def value(self, shape=None, name=""):
                if not name:
                    name = ...
                    self.count += 1
                return self.Value(name, self.Type(shape))

            def add(
                self, block, op, inputs=(), shapes=(None,), blocks=(), **attributes
            ):
                outputs = ...
                inputs, blocks = ...
                node = ...
                block.nodes.append(node)
                return outputs

            def run(self, *arrays):
                if len(arrays) != len(self.body.inputs):
                    raise TypeError(...)
                results = self._run(self.body, map(np.asarray, arrays), {})
                return results[0] if len(results) == 1 else tuple(results)

            def _run(self, block, arrays, known):
                known.update(zip(block.inputs, arrays))
                for node in block.nodes:
                    given = ...
                    if node.op == "if":
                        chosen = ...
                        results = self._run(chosen, [], known)
                    elif node.op == "loop":
                        turns, *results = given
                        for turn in range(int(turns)):
                            given = ...
                            results = ...
                    else:
                        results = ...
                    known.update(zip(node.outputs, results))
                return ...

            def check(self):
                self._check(self.body, set(), set())

            def _check(self, block, outside, names):
                seen = set(outside)

                def made(values):
                    for value in values:
                        if value.name in names:
                            raise TypeError(f"%{value.name} is made twice")
                        ...

                def used(values):
                    for value in values:
                        if ...:
                            raise TypeError(f"%{value.name} is not made yet")

                made(block.inputs)
                for node in block.nodes:
                    used(node.inputs)
                    for inner in node.blocks:
                        ...
                    self._check_node(node)
                    made(node.outputs)
                used(block.outputs)

            def _check_node(self, node):
                given, gives = len(node.inputs), len(node.outputs)
                counts = [(len(b.inputs), len(b.outputs)) for b in node.blocks]
                if node.op == "if":
                    good = given == 1 and ...
                elif node.op == "loop":
                    good = ...
                else:
                    good = node.op in self.ops and gives == 1 and not counts
                if not good:
                    raise TypeError(f"this is no proper {node.op}")
                shapes = [value.type.shape for value in node.inputs]
                if node.op in self.ops and None not in shapes:
                    out = node.outputs[0]
                    try:
                        ones = ...
                        result = ...
                        shape = np.shape(result)
                    except Exception as error:
                        raise TypeError(f"{node.op}: {error}") from None
                    if ...:
                        raise TypeError(f"%{out.name} has the shape {shape}")

            ops = ...  # given, like all that is below it
        ```
        """,
    ),
)


@own_graph.reference(
    {
        "value": "your code here: about 4 lines",
        "add": "your code here: about 4 lines",
        "run": "your code here: about 22 lines, and methods of your own",
        "check": "your code here: about 40 lines, and methods of your own",
        "Node": "",
        "_run": "",
        "_check": "",
        "_check_node": "",
    },
    (
        "    def __init__(self, name):\n"
        "        self.name, self.body = name, self.Block([], [], [])\n"
        "        self.count = 0",
        "    # your code here: Node, about 7 lines\n"
        "\n"
        "    def __init__(self, name):\n"
        "        self.name = name\n"
        "        # your code here: about 2 lines",
    ),
)
class Graph:
    """A program as data: types, values, nodes, blocks, and this."""

    @dataclass(frozen=True)
    class Type:  # what is known of a value: its shape, None for any
        shape: tuple | None = None

    @dataclass(eq=False)
    class Value:  # what a node makes, or a block is given
        name: str
        type: object

    @dataclass(eq=False)
    class Node:  # one operation
        op: str
        inputs: list
        outputs: list
        attributes: dict
        blocks: list

    @dataclass(eq=False)
    class Block:  # nodes in the order in which they run
        inputs: list
        nodes: list
        outputs: list

    def __init__(self, name):
        self.name, self.body = name, self.Block([], [], [])
        self.count = 0

    def value(self, shape=None, name=""):
        """A new value; without a name it is called by a number."""
        if not name:
            name = str(self.count)
            self.count += 1
        return self.Value(name, self.Type(shape))

    def add(
        self, block, op, inputs=(), shapes=(None,), blocks=(), **attributes
    ):
        """Append a node to a block; the list of its outputs."""
        outputs = [self.value(shape) for shape in shapes]
        inputs, blocks = list(inputs), list(blocks)
        node = self.Node(op, inputs, outputs, attributes, blocks)
        block.nodes.append(node)
        return outputs

    def run(self, *arrays):
        """The output for these inputs; a tuple if there are several."""
        if len(arrays) != len(self.body.inputs):
            raise TypeError(f"{len(arrays)} arrays are not what it takes")
        results = self._run(self.body, map(np.asarray, arrays), {})
        return results[0] if len(results) == 1 else tuple(results)

    def _run(self, block, arrays, known):
        known.update(zip(block.inputs, arrays))
        for node in block.nodes:
            given = [known[value] for value in node.inputs]
            if node.op == "if":
                chosen = node.blocks[0 if given[0] else 1]
                results = self._run(chosen, [], known)
            elif node.op == "loop":
                turns, *results = given
                for turn in range(int(turns)):
                    given = [turn, *results]
                    results = self._run(node.blocks[0], given, known)
            else:
                results = [self.ops[node.op](*given, **node.attributes)]
            known.update(zip(node.outputs, results))
        return [known[value] for value in block.outputs]

    def check(self):
        """Raise TypeError unless the graph is one that can run."""
        self._check(self.body, set(), set())

    def _check(self, block, outside, names):
        seen = set(outside)

        def made(values):
            for value in values:
                if value.name in names:
                    raise TypeError(f"%{value.name} is made twice")
                names.add(value.name)
                seen.add(value)

        def used(values):
            for value in values:
                if value not in seen:
                    raise TypeError(f"%{value.name} is not made yet")

        made(block.inputs)
        for node in block.nodes:
            used(node.inputs)
            for inner in node.blocks:
                self._check(inner, seen, names)
            self._check_node(node)
            made(node.outputs)
        used(block.outputs)

    def _check_node(self, node):
        given, gives = len(node.inputs), len(node.outputs)
        counts = [(len(b.inputs), len(b.outputs)) for b in node.blocks]
        if node.op == "if":
            good = given == 1 and counts == [(0, gives)] * 2
        elif node.op == "loop":
            good = counts == [(given, gives)] and given == gives + 1
        else:
            good = node.op in self.ops and gives == 1 and not counts
        if not good:
            raise TypeError(f"this is no proper {node.op}")
        shapes = [value.type.shape for value in node.inputs]
        if node.op in self.ops and None not in shapes:
            out = node.outputs[0]
            try:
                ones = map(np.ones, shapes)
                result = self.ops[node.op](*ones, **node.attributes)
                shape = np.shape(result)
            except Exception as error:
                raise TypeError(f"{node.op}: {error}") from None
            if out.type.shape not in (None, shape):
                raise TypeError(f"%{out.name} has the shape {shape}")

    # -- these are given --------------------------------------------------

    ops = {
        "constant": lambda data: data,
        "add": np.add,
        "sub": np.subtract,
        "mul": np.multiply,
        "div": np.divide,
        "neg": np.negative,
        "pow": lambda x, n: x**n,
        "matmul": np.matmul,
        "exp": np.exp,
        "log": np.log,
        "tanh": np.tanh,
        "relu": lambda x: np.where(x > 0, x, 0.0),
        "sum": lambda x, dim=None, keepdims=False: (
            np.sum(x, dim, keepdims=keepdims)),
        "reshape": lambda x, shape: np.reshape(x, shape),
        "transpose": lambda x, first, second: x.swapaxes(first, second),
        "gt": np.greater,
        "lt": np.less,
    }

    def __str__(self):
        head = f"graph {self.name}({self._typed(self.body.inputs)}):"
        last = f"  return ({self._names(self.body.outputs)})"
        return "\n".join([head, *self._lines(self.body, "  "), last])

    def _lines(self, block, indent):
        for node in block.nodes:
            said = [f"{k}={v}" for k, v in node.attributes.items()]
            inside = f"[{', '.join(said)}]" if said else ""
            call = f"{node.op}{inside}({self._names(node.inputs)})"
            call = " ".join(call.split())  # large constants have lines
            made = self._typed(node.outputs)
            yield indent + (f"{made} = {call}" if made else call)
            for n, inner in enumerate(node.blocks):
                yield f"{indent}  block{n}({self._typed(inner.inputs)}):"
                yield from self._lines(inner, indent + "    ")
                yield f"{indent}    -> ({self._names(inner.outputs)})"

    def _names(self, values):
        return ", ".join(f"%{value.name}" for value in values)

    def _typed(self, values):
        shapes = [value.type.shape for value in values]
        kinds = ["Tensor" + ("" if s is None else str(s)) for s in shapes]
        return ", ".join(f"%{v.name} : {k}" for v, k in zip(values, kinds))
