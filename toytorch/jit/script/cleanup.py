"""The graph as it comes out: no flag that nobody asks, every constant once and at the top.

The compiler writes down all it might need; here everything that no result and no effect depends on
is left out, so that a function and its own `.code` give the same graph.
"""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.jit.ir import Block, Graph, Node, Value, replace

POOLED = ("prim::Constant", "prim::Uninitialized")


class Needed:
    """Which values and nodes a graph's results and effects depend on."""

    def __init__(self, graph: Graph) -> None:
        self.values: set[Value] = set()
        self.nodes: set[Node] = set()
        self.carried: set[tuple[Node, int]] = set()
        self.parent: dict[int, Node] = {}  # by id of a block: the node it stands in
        self.block: dict[Node, Block] = {}
        self.places: dict[Value, tuple[Node, int]] = {}  # inputs of loops' blocks
        self.waiting: list[Value] = list(graph.outputs)
        self.enter(graph)
        for node in self.block:
            if not node.blocks and not node.removable:
                self.keep(node)
        while self.waiting:
            self.need(self.waiting.pop())

    def enter(self, block: Block) -> None:
        """Notes where everything stands."""
        for node in block.nodes:
            self.block[node] = block
            for inner in node.blocks:
                self.parent[id(inner)] = node
                for i, v in enumerate(inner.inputs):
                    self.places[v] = node, i
                self.enter(inner)

    def need(self, value: Value) -> None:
        """Marks a value, and what it comes from."""
        if value in self.values:
            return
        self.values.add(value)
        node = value.node
        if node is not None:
            self.keep(node)
            place = node.outputs.index(value)
            if node.kind == "prim::If":
                self.waiting += [b.outputs[place] for b in node.blocks]
            elif node.kind == "prim::Loop":
                self.carry(node, place)
        elif value in self.places:
            loop, place = self.places[value]
            self.keep(loop)
            if place:
                self.carry(loop, place - 1)

    def carry(self, loop: Node, place: int) -> None:
        """Marks what a loop carries at a place."""
        if (loop, place) not in self.carried:
            self.carried.add((loop, place))
            self.waiting += [loop.inputs[place + 2], loop.blocks[0].outputs[place + 1]]

    def keep(self, node: Node) -> None:
        """Marks a node, what it is given, and the node around it."""
        if node in self.nodes:
            return
        self.nodes.add(node)
        if node.kind == "prim::Loop":
            self.waiting += [*node.inputs[:2], node.blocks[0].outputs[0]]
        else:
            self.waiting += node.inputs
        around = self.parent.get(id(self.block[node]))
        if around is not None:
            self.keep(around)


def clean(graph: Graph) -> Graph:
    """The graph without what is not needed, with constants at the top and values numbered."""
    needed = Needed(graph)
    sweep(graph, needed)
    pool(graph)
    number(graph)
    return graph


def sweep(block: Block, needed: Needed) -> None:
    """Drops nodes, results of branches and what loops carry in vain."""
    block.nodes = [n for n in block.nodes if n in needed.nodes]
    for node in block.nodes:
        if node.kind == "prim::If":
            kept = [i for i, v in enumerate(node.outputs) if v in needed.values]
            for inner in node.blocks:
                inner.outputs = [inner.outputs[i] for i in kept]
            node.outputs = [node.outputs[i] for i in kept]
        elif node.kind == "prim::Loop":
            body = node.blocks[0]
            kept = [i for i in range(len(node.outputs)) if (node, i) in needed.carried]
            node.inputs = [*node.inputs[:2], *(node.inputs[i + 2] for i in kept)]
            body.inputs = [body.inputs[0], *(body.inputs[i + 1] for i in kept)]
            body.outputs = [body.outputs[0], *(body.outputs[i + 1] for i in kept)]
            node.outputs = [node.outputs[i] for i in kept]
        for inner in node.blocks:
            sweep(inner, needed)


def pool(graph: Graph) -> None:
    """Moves constants to the top, each once, in the order in which they are first used."""
    order: dict[Value, None] = {}
    _uses(graph, order)
    first: dict[Any, Value] = {}
    change: dict[Value, Value] = {}
    top = []
    for value in order:
        node = value.node
        if node is None or node.kind not in POOLED:
            continue
        constant = node.attributes.get("value")
        key: Any = (node.kind, str(value.type), constant.__class__, repr(constant))
        if isinstance(constant, Tensor):
            key = id(constant)
        if key in first:
            change[value] = first[key]
        else:
            first[key] = value
            top.append(node)
    _drop(graph)
    graph.nodes = [*top, *graph.nodes]
    replace(graph, change)


def _uses(block: Block, order: dict[Value, None]) -> None:
    for node in block.nodes:
        order.update(dict.fromkeys(node.inputs))
        for inner in node.blocks:
            _uses(inner, order)
    order.update(dict.fromkeys(block.outputs))


def _drop(block: Block) -> None:
    block.nodes = [n for n in block.nodes if n.kind not in POOLED]
    for node in block.nodes:
        for inner in node.blocks:
            _drop(inner)


def number(graph: Graph) -> None:
    """Gives values that have no name of their own numbers in the order of the text."""
    values = list(graph.inputs)

    def visit(block: Block) -> None:
        for node in block.nodes:
            for inner in node.blocks:
                values.extend(inner.inputs)
                visit(inner)
            values.extend(node.outputs)

    visit(graph)
    graph._names = {v.name for v in values if not v.name.isdigit()}
    graph._next = len(graph.inputs)
    for v in values:
        if v.name.isdigit():
            v.name = graph.new_name()
