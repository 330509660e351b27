"""The graph: values in static single assignment form, nodes that make them, blocks of nodes.

    graph(%x : Tensor, %y : Tensor):
      %2 : Tensor = aten::mul(%x, %y)
      %3 : Tensor = aten::tanh(%2)
      return (%3)

A value is made once, by one node or as an input of a block, and is seen in the block that makes it
and in the blocks inside that. `aten::mul` is an op of the framework, and `node.op` is its record:
whether it writes, what aliases what and what its derivatives are is looked up there and nowhere
else. `prim::` nodes are the language itself: constants, lists, branches, loops.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_field
from typing import TYPE_CHECKING, Any

from toytorch.core.op import Op, registry
from toytorch.facts.composed import Composed, facts_of
from toytorch.facts.hints import Fn
from toytorch.facts.schema import REQUIRED
from toytorch.jit import types
from toytorch.jit.asked import AskedNode, AskedValue, listed, named
from toytorch.jit.builtins import BUILTINS, Builtin
from toytorch.ops.define import CREATING, PUBLIC

IMPURE = (
    "prim::Print", "prim::RaiseException", "prim::SetAttr", "prim::CallMethod",
    "prim::CallFunction", "prim::CreateObject",
)  # fmt: skip
CALLS = ("prim::CallFunction", "prim::CallMethod")
CONTEXT = 2  # lines that an error shows above and below its own
UNPRINTABLE = re.compile(r"[^\w.]")  # in the name of a value


@dataclass(frozen=True)
class Source:
    """Where in a user's program something stands: what errors and printed graphs point at."""

    file: str
    line: int
    column: int = 0
    text: str = ""
    end: int = 0  # the column behind it; 0: the end of the line
    function: str = ""  # in which it stands
    caller: Source | None = None  # where that function was called, once it is inlined
    lines: Sequence[str] = field(default=(), compare=False, repr=False)  # of the whole program
    place: int = field(default=0, compare=False, repr=False)  # of this line among them

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def called_from(self, call: Source | None) -> Source:
        """The place, in a function whose call stood there."""
        before = self.caller
        return replace_field(self, caller=call if before is None else before.called_from(call))

    def pointing(self, function: bool = False) -> str:
        """The line with a mark under the place and three lines around, as in PyTorch's errors."""
        line = self.text.rstrip()
        indent = " " * (len(self.text) - len(self.lines[self.place])) if self.lines else ""
        before = self.lines[max(0, self.place - CONTEXT) : self.place]
        after = self.lines[self.place + 1 : self.place + 1 + CONTEXT]
        inside = f", in {self.function}" if function and self.function else ""
        marks = "~" * max(1, (self.end or len(line)) - self.column)
        return (
            f'  File "{self.file}", line {self.line}{inside}\n'
            f"{''.join(f'{indent}{t}' + chr(10) for t in before)}{line}\n"
            f"{' ' * self.column}{marks} <--- HERE"
            f"{''.join(f'{chr(10)}{indent}{t}' for t in after)}"
        )


class Value(AskedValue):
    """What a node makes, or a block is given."""

    __slots__ = ("name", "node", "type")

    def __init__(self, name: str, type: types.Type, node: Node | None = None) -> None:
        self.name, self.type, self.node = name, type, node  # node: None for inputs of blocks

    @property
    def is_constant(self) -> bool:
        """Whether it is the same in every run."""
        return self.node is not None and self.node.is_constant

    @property
    def constant(self) -> Any:
        """What a constant is; None for any other."""
        return self.node.constant if self.node is not None else None

    def __repr__(self) -> str:
        return f"%{self.name} : {self.type}"


class Node(AskedNode):
    """One operation."""

    if TYPE_CHECKING:
        kind: str
        inputs: list[Value]
        outputs: list[Value]
        blocks: list[Block]
    else:  # what PyTorch's programs may call
        __slots__ = ("_blocks", "_inputs", "_kind", "_outputs", "attributes", "op", "source")
        kind = named("_kind")
        inputs = listed("_inputs")
        outputs = listed("_outputs")
        blocks = listed("_blocks")

    def __init__(
        self,
        kind: str,
        inputs: list[Value],
        attributes: dict[str, Any] | None = None,
        source: Source | None = None,
        function: Op | Fn | None = None,
    ) -> None:
        self.kind, self.inputs, self.source = kind, list(inputs), source
        self.attributes = attributes or {}
        self.outputs, self.blocks = [], []
        # The record, or the function behind a name that is composed of records.
        self.op: Any = function or op_of(kind)

    @property
    def output(self) -> Value:
        """The one result."""
        (value,) = self.outputs
        return value

    @property
    def computes(self) -> bool:
        """Whether `no_grad` or `autocast` around it makes a difference: it computes, or calls."""
        return self.kind.startswith("aten::") or self.kind in CALLS

    @property
    def is_constant(self) -> bool:
        """Whether it is a prim::Constant."""
        return self.kind == "prim::Constant"

    @property
    def constant(self) -> Any:
        """What a prim::Constant gives; None for any other."""
        return self.attributes["value"] if self.is_constant else None

    @property
    def record(self) -> Op | None:
        """The op record, None where the node is composed or part of the language."""
        return self.op if isinstance(self.op, Op) else None

    @property
    def facts(self) -> Composed:
        """What is known of a function that is no record."""
        return facts_of(self.op)

    @property
    def reads(self) -> str:
        """What it tells of its tensors beside its result (see `facts.composed`)."""
        return self.op.reads if isinstance(self.op, Builtin) else self.facts.reads

    def argument(self, name: str) -> Value | None:
        """What is given for a parameter of the op, by its name; None where nothing is."""
        named = self.attributes.get("_names", ())
        first = len(self.inputs) - len(named)
        if name in named:
            return self.inputs[first + named.index(name)]
        place = parameters(self.op).get(name, first)
        return self.inputs[place] if place < first else None

    namedInput = argument  # PyTorch's name

    @property
    def writes(self) -> bool:
        """Whether the first input is written to: aten::mul_."""
        if not self.kind.startswith("aten::"):
            return False
        name = self.kind[6:].partition(".")[0]
        return name == "__setitem__" or (name.endswith("_") and not name.endswith("__"))

    @property
    def is_view(self) -> bool:
        """Whether the results share the first input's memory."""
        record = self.record
        return self.facts.shares if record is None else record.kind == "view"

    @property
    def is_random(self) -> bool:
        """Whether two runs give different results."""
        return self.record is not None and self.record.random

    @property
    def pure(self) -> bool:
        """Whether running it twice, or not at all, changes nothing but its results."""
        if self.writes or self.is_random or self.kind in IMPURE or "_out" in self.attributes:
            return False
        if (
            self.kind.startswith("aten::")
            and self.record is None
            and not (getattr(self.op, "pure", False))
        ):
            return False  # a composed function may draw random numbers, write, or make new memory
        return all(n.pure for b in self.blocks for n in b.nodes)

    @property
    def removable(self) -> bool:
        """Whether it may be left out where its results are not used: it is pure, or makes a new
        tensor of no random numbers."""
        return self.pure or (
            self.kind.startswith("aten::")
            and self.record is None
            and self.facts.creates
            and "out" not in self.attributes.get("_names", ())
        )

    def kindOf(self) -> str:
        """The name of the operation, `aten::mul`."""
        return self.kind

    def __repr__(self) -> str:
        from toytorch.jit.text import node_text  # a circle otherwise

        return node_text(self)


class Block:
    """Nodes in the order in which they run, with inputs and outputs of their own."""

    if TYPE_CHECKING:
        inputs: list[Value]
        nodes: list[Node]
        outputs: list[Value]
    else:
        __slots__ = ("_inputs", "_nodes", "_outputs")
        inputs, nodes, outputs = listed("_inputs"), listed("_nodes"), listed("_outputs")

    def __init__(self) -> None:
        self.inputs, self.nodes, self.outputs = [], [], []

    def walk(self) -> Iterator[Node]:
        """All nodes, those in blocks of a node after the node itself."""
        waiting = list(reversed(self.nodes))
        while waiting:
            node = waiting.pop()
            yield node
            waiting.extend(n for b in reversed(node.blocks) for n in reversed(b.nodes))


class Graph(Block):
    """A function as a block; it gives values their names."""

    __slots__ = ("_names", "_next", "name")

    def __init__(self, name: str = "forward") -> None:
        super().__init__()
        self.name = name
        self._names: set[str] = set()
        self._next = 0

    def new_name(self, wanted: str = "") -> str:
        """A name that no value has: the wanted one, with a number behind it if it is taken.

        What is no letter, digit, underscore or dot becomes an underscore, as in the name of a child
        module called "my layer".
        """
        wanted = UNPRINTABLE.sub("_", wanted)
        if not wanted:
            while str(self._next) in self._names:
                self._next += 1
            wanted = str(self._next)
        name, i = wanted, 0
        while name in self._names:
            i += 1
            name = f"{wanted}.{i}"
        self._names.add(name)
        return name

    def value(self, type: types.Type, name: str = "") -> Value:
        """A value without a node."""
        return Value(self.new_name(name), type)

    def add_input(self, type: types.Type, name: str = "") -> Value:
        """One more input."""
        self.inputs.append(self.value(type, name))
        return self.inputs[-1]

    def make(
        self,
        kind: str,
        inputs: list[Value],
        outputs: list[types.Type | tuple[types.Type, str]],
        attributes: dict[str, Any] | None = None,
        source: Source | None = None,
        function: Op | Fn | None = None,
    ) -> Node:
        """A node that stands in no block yet, with outputs of the given types (and names)."""
        node = Node(kind, inputs, attributes, source, function)
        for out in outputs:
            kind_of, name = out if isinstance(out, tuple) else (out, "")
            made = self.value(kind_of, name)
            made.node = node
            node.outputs.append(made)
        return node

    def constant(self, value: Any, source: Source | None = None) -> Node:
        """A prim::Constant, in no block yet."""
        return self.make("prim::Constant", [], [types.of(value)], {"value": value}, source)

    def copy(self) -> Graph:
        """A graph of its own; constants are shared."""
        made = Graph(self.name)
        made._names, made._next = set(self._names), self._next
        copy_block(self, made, {})
        return made

    def nodes_of(self, kind: str) -> list[Node]:
        """All nodes of a kind, blocks inside included."""
        return [n for n in self.walk() if n.kind == kind]

    def findNode(self, kind: str, recurse: bool = True) -> Node | None:
        """The first node of a kind."""
        return next(iter(self.findAllNodes(kind, recurse)), None)

    def lint(self) -> None:
        """Checks that the graph is whole, as after every pass."""
        from toytorch.jit.check import check  # a circle otherwise

        check(self, "lint")

    def findAllNodes(self, kind: str, recurse: bool = True) -> list[Node]:
        """PyTorch's name for `nodes_of`."""
        return [n for n in (self.walk() if recurse else self.nodes) if n.kind == kind]

    def __str__(self) -> str:
        from toytorch.jit.text import graph_text  # a circle otherwise

        return graph_text(self)

    __repr__ = __str__


def op_of(kind: str) -> Any:
    """The record behind the name of a node: "aten::mul" and "aten::mul_" → mul."""
    space, _, name = kind.partition("::")
    if space != "aten":
        return None
    if name in BUILTINS:
        return BUILTINS[name]
    found = registry.get(name) or registry.get(without_underscore(name))
    return found if found is not None else PUBLIC.get(name) or CREATING.get(name)


def parameters(op: Any) -> dict[str, int]:
    """The parameters of what stands behind a node, and their places."""
    if isinstance(op, Op):
        return op.schema.index
    if isinstance(op, Builtin):
        return {name: i for i, (name, _) in enumerate(op.params)}
    try:
        return {name: i for i, name in enumerate(inspect.signature(op).parameters)}
    except (TypeError, ValueError):  # a function written in C
        return {}


def defaults(op: object) -> dict[str, Any]:
    """The defaults of the parameters that have one."""
    if isinstance(op, Op):
        return {a.name: a.default for a in op.schema.args if a.default is not REQUIRED}
    if not callable(op) or isinstance(op, Builtin):
        return {}
    signature = inspect.signature(op)
    return {n: p.default for n, p in signature.parameters.items() if p.default is not p.empty}


def without_underscore(name: str) -> str:
    """The op behind an in-place form: "mul_" → "mul", "index_fill_.x" → "index_fill.x"."""
    base, dot, overload = name.partition(".")
    return base.removesuffix("_") + dot + overload


def copy_block(source: Block, target: Block, known: dict[Value, Value]) -> None:
    """Copies inputs, nodes and outputs; `known` maps values of the one to values of the other."""
    for v in source.inputs:
        known[v] = Value(v.name, v.type)
        target.inputs.append(known[v])
    for node in source.nodes:
        target.nodes.append(copy_node(node, known))
    target.outputs = [known.get(v, v) for v in source.outputs]


def copy_node(node: Node, known: dict[Value, Value]) -> Node:
    """A copy of one node, with its blocks."""
    inputs = [known.get(v, v) for v in node.inputs]
    made = Node(node.kind, inputs, dict(node.attributes), node.source, node.op)
    for v in node.outputs:
        known[v] = Value(v.name, v.type, made)
        made.outputs.append(known[v])
    for block in node.blocks:
        inner = Block()
        copy_block(block, inner, known)
        made.blocks.append(inner)
    return made


def uses(block: Block) -> dict[Value, list[tuple[Node | None, int]]]:
    """Where each value is used: (node, position); None for the outputs of the block itself."""
    found: dict[Value, list[tuple[Node | None, int]]] = {}
    for i, v in enumerate(block.outputs):
        found.setdefault(v, []).append((None, i))
    for node in block.walk():
        for i, v in enumerate(node.inputs):
            found.setdefault(v, []).append((node, i))
        for inner in node.blocks:
            for i, v in enumerate(inner.outputs):
                found.setdefault(v, []).append((node, -1 - i))
    return found


def replace(block: Block, change: dict[Value, Value]) -> None:
    """Puts other values in the place of values, everywhere in the block."""

    def now(v: Value) -> Value:
        while v in change:
            v = change[v]
        return v

    def visit(b: Block) -> None:
        for node in b.nodes:
            node.inputs = [now(v) for v in node.inputs]
            for inner in node.blocks:
                visit(inner)
        b.outputs = [now(v) for v in b.outputs]

    if change:
        visit(block)


def each_block(block: Block) -> Iterator[Block]:
    """The block and all blocks inside it."""
    yield block
    for node in block.walk():
        yield from node.blocks


Pass = Callable[[Graph], Graph]
