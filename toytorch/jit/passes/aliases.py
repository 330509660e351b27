"""Who shares memory with whom: what a pass must know before two results become one.

Values that may share memory belong to one family. Elementwise ops, reductions and products make
memory of their own (`fresh` in their records); of everything else the results are counted to the
family of the operands.
Whatever comes from outside (inputs, attributes, constants) is one family, because a caller may hand
in the same tensor twice.
"""

from __future__ import annotations

from toytorch.jit import types
from toytorch.jit.ir import CALLS, Block, Graph, Node, Value, each_block


class Aliases:
    """The families of a graph's values, and what may not be touched."""

    def __init__(self, graph: Graph) -> None:
        self.parent: dict[Value, Value] = {}
        self.outside = Value("outside", types.TENSOR)
        self.returned = set(graph.outputs)
        self.dirty: list[Value] = []  # one value of each family that is written to
        self.targets: list[Value] = []  # what operations write to, for certain
        for v in graph.inputs:
            self.join(v, self.outside)
        self.block(graph)
        self.written = {self.root(v) for v in self.dirty}
        self.escaping = {self.root(v) for v in graph.outputs} | {self.root(self.outside)}
        self.sets_attributes = any(
            n.kind == "prim::SetAttr" or n.kind in CALLS for n in graph.walk()
        )

    @property
    def writes_outside(self) -> bool:
        """Whether one of its operations writes to memory that it is given."""
        outside = self.root(self.outside)
        return any(self.root(v) is outside for v in self.targets)

    def root(self, v: Value) -> Value:
        """The value that stands for a family."""
        while (above := self.parent.get(v, v)) is not v:
            self.parent[v] = self.parent.get(above, above)
            v = above
        return v

    def join(self, a: Value, b: Value) -> None:
        """The two may share memory."""
        self.parent[self.root(a)] = self.root(b)

    def block(self, block: Block) -> None:
        """Joins what the nodes of a block, and of the blocks in it, let share memory."""
        for node in block.nodes:
            for inner in node.blocks:
                self.block(inner)
                for a, b in zip(inner.outputs[-len(node.outputs) :], node.outputs):
                    self.join(a, b)
                if node.kind == "prim::Loop":
                    for a, b, c in zip(node.inputs[2:], inner.inputs[1:], node.outputs):
                        self.join(a, b)
                        self.join(b, c)
            self.node(node)

    def node(self, node: Node) -> None:
        """One node: its results' families, and what it writes to."""
        tensors = [v for v in (*node.inputs, *node.outputs) if holds_memory(v.type)]
        if node.kind in ("prim::Constant", "prim::GetAttr", *CALLS):
            tensors = [*node.outputs, *tensors, self.outside]
        if not makes_memory(node):
            for v in tensors[1:]:
                self.join(tensors[0], v)
        if node.writes:
            self.dirty += node.inputs[:1]
            self.targets += node.inputs[:1]
        elif not node.pure and not node.removable:  # it may write to any of them
            self.dirty += [v for v in node.inputs if holds_memory(v.type)]

    def quiet(self, v: Value) -> bool:
        """Whether nobody writes to the memory of a value."""
        return not holds_memory(v.type) or self.root(v) not in self.written

    def private(self, v: Value) -> bool:
        """Whether nobody writes to a value's memory, and nobody outside ever sees it."""
        return not holds_memory(v.type) or (self.quiet(v) and self.root(v) not in self.escaping)


def makes_memory(node: Node) -> bool:
    """Whether the results of a node share memory with nothing that was there before."""
    if node.blocks:
        return True  # `block` has joined what its blocks hand through
    record = node.record
    if record is not None:
        return record.fresh and not node.writes
    return node.facts.creates and not node.facts.shares


def holds_memory(kind: types.Type) -> bool:
    """Whether a value of the type is, or may hold, something that can be written to.

    >>> holds_memory(types.TENSOR), holds_memory(types.List(types.INT)), holds_memory(types.INT)
    (True, True, False)
    """
    if isinstance(kind, (types.Tuple, types.Union)):
        return any(map(holds_memory, kind.elements))
    if isinstance(kind, types.Optional):
        return holds_memory(kind.element)
    return not isinstance(kind, types.Simple) or kind in (types.ANY, types.NEVER)


def inner_blocks(graph: Graph) -> list[Block]:
    """The graph and all blocks inside it, as a list, so that they may be changed meanwhile."""
    return list(each_block(graph))
