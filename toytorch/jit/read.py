"""Graphs from text: the inverse of `toytorch.jit.text`.

    >>> graph = read('''graph(%x : Tensor):
    ...   %1 : int = prim::Constant[value=1]()
    ...   %2 : Tensor = aten::add(%x, %x, %1)
    ...   return (%2)
    ... ''')
    >>> [node.kind for node in graph.nodes]
    ['prim::Constant', 'aten::add']

No part of the text is ever run: values are literals, and an operation is looked up by its name. A
constant tensor's elements are not in the text; they are given beside it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from toytorch.jit import types
from toytorch.jit.ir import Block, Graph, Node, Source, Value
from toytorch.jit.read_parts import DEPTH, GraphSyntaxError, Line, literal

HEAD = re.compile(r"(?:with (?P<group>[\w:.]+) = )?graph\(")
SCOPE = ", scope: "
OPENS = re.compile(r"\s*block\d+\(")


def read(text: str, name: str = "forward", tensors: Sequence[Any] | None = None) -> Graph:
    """The graph that was printed as `text`.

    `tensors` are the constant tensors in the order of their nodes, groups after the nodes that
    stand before them. Raises GraphSyntaxError, which names the line, for text that is no graph.
    """
    return Text(text, list(tensors or ())).graph(name)


class Text:
    """The lines of a printed graph, and how far they are read."""

    def __init__(self, text: str, tensors: list[Any]) -> None:
        self.lines = [line for line in text.split("\n") if line]
        self.at = 0
        self.tensors: Iterator[Any] = iter(tensors)
        self.groups: list[tuple[str, Node]] = []  # that wait for their graphs, under printed names

    def graph(self, name: str) -> Graph:
        """The first graph, with the groups that follow it put into their nodes."""
        made = self.whole(name, 0)
        if self.at < len(self.lines):
            raise self.wrong("expected the end of the text")
        return made

    def whole(self, name: str, depth: int) -> Graph:
        """A graph and the graphs of its groups, which follow it in their order."""
        if depth > DEPTH:
            raise self.wrong("graphs stand too deep in each other")
        self.groups = []
        made = self.one_graph(name)
        for printed, node in self.groups:
            head = HEAD.match(self.lines[self.at]) if self.at < len(self.lines) else None
            if head is None or head["group"] != printed:
                raise self.wrong(f"expected 'with {printed} = graph(…)'")
            node.attributes["Subgraph"] = self.whole("fused", depth + 1)
        return made

    def wrong(self, what: str) -> GraphSyntaxError:
        """An error at the line that is read."""
        at = min(self.at, len(self.lines) - 1)
        shown = self.lines[at][:200] if self.lines else ""
        return GraphSyntaxError(f"line {at + 1} of a graph: {what}: {shown!r}")

    def take(self) -> Line:
        """The next line."""
        if self.at >= len(self.lines):
            raise self.wrong("the text ends inside a graph")
        self.at += 1
        return Line(self.lines[self.at - 1], self.at)

    # -- graphs and blocks ---------------------------------------------------------------------

    def one_graph(self, name: str) -> Graph:
        """One graph, from its head to its `return`."""
        graph = Graph(name)
        known: dict[str, Value] = {}
        head = HEAD.match(self.lines[self.at]) if self.at < len(self.lines) else None
        if head is None:
            raise self.wrong("a graph begins with 'graph('")
        line = self.take()
        line.at = head.end()
        while True:  # inputs stand below each other
            graph.inputs += line.values()
            if line.skip("):"):
                break
            if not line.skip(",") or line.rest():
                raise line.wrong("expected ',' or '):' behind an input")
            line = self.take()
            line.spaces()
        for v in graph.inputs:
            define(known, v, line)
        self.nodes(graph, known, "return (")
        graph._names = set(known)
        return graph

    def nodes(self, block: Block, outer: dict[str, Value], closing: str) -> None:
        """The nodes of a block up to the line with its outputs."""
        own = list(block.inputs)
        while True:
            line = self.take()
            line.spaces()
            if line.skip(closing):
                block.outputs = line.uses(outer)
                line.need(")")
                break
            node = self.node(line, outer)
            while self.at < len(self.lines) and OPENS.match(self.lines[self.at]):
                node.blocks.append(self.block(outer))
            for v in node.outputs:
                v.node = node
                define(outer, v, line)
                own.append(v)
            block.nodes.append(node)
        if not isinstance(block, Graph):
            for v in own:  # out of scope from here on; the name stays taken
                outer[v.name] = HIDDEN

    def block(self, outer: dict[str, Value]) -> Block:
        """A block of the node above."""
        line = self.take()
        line.at = OPENS.match(line.text).end()  # type: ignore[union-attr]  # it did match
        made = Block()
        made.inputs = line.values()
        line.need("):")
        for v in made.inputs:
            define(outer, v, line)
        self.nodes(made, outer, "-> (")
        return made

    # -- nodes ---------------------------------------------------------------------------------

    def node(self, line: Line, known: dict[str, Value]) -> Node:
        """One node."""
        outputs = line.values()
        line.need("= ")
        kind = line.word()
        attributes: dict[str, Any] = {}
        if line.skip("["):
            attributes = self.attributes(line, outputs)
        line.need("(")
        inputs = line.uses(known)
        line.need(")")
        scope, source = self.tail(line)
        if scope:
            attributes["_scope"] = scope
        plain, _, number = kind.rpartition("_")
        grouped = number.isdigit() and plain in GROUPED
        node = Node(plain if grouped else kind, inputs, attributes, source)
        if grouped:
            self.groups.append((kind, node))
        node.outputs = outputs
        return node

    def tail(self, line: Line) -> tuple[str, Source | None]:
        """What stands behind a node: `, scope: …`, then ` # file:line:column`, or neither."""
        rest = line.rest()
        scoped = rest.startswith(SCOPE)
        before, mark, place = rest.partition(" # ")
        file, *numbers = place.rsplit(":", 2)
        source = None
        if mark and len(numbers) == 2 and all(n.isascii() and n.isdigit() for n in numbers):
            source, rest = Source(file, int(numbers[0]), int(numbers[1])), before
        if rest and not scoped:
            raise line.wrong("expected the end of the line, ', scope: …' or ' # file:line:column'")
        return rest[len(SCOPE) :], source

    def attributes(self, line: Line, outputs: list[Value]) -> dict[str, Any]:
        """What stands in brackets: name=value, name=value."""
        found: dict[str, Any] = {}
        while True:
            name = line.word()
            if name == "Subgraph" or name.startswith("_"):
                raise line.wrong(f"an attribute {name!r} is never printed")
            line.need("=")
            text = line.value_text()
            if text.startswith(("<", "array(")) or (
                text.startswith("{") and ":" not in text and text != "{}"
            ):
                found[name] = self.tensor(line, outputs)
            else:
                found[name] = self.value(text, line)
            if line.skip("]"):
                return found
            line.need(", ")

    def value(self, text: str, line: Line) -> Any:
        """A literal, or the next of what was given where tensors stand inside of it."""
        try:
            return literal(text, line)
        except GraphSyntaxError:
            given = next(self.tensors, None)
            if not isinstance(given, (list, tuple, dict)):
                raise
            return given

    def tensor(self, line: Line, outputs: list[Value]) -> Any:
        """The next of the tensors that were given, if its type is the printed one."""
        tensor = next(self.tensors, None)
        if tensor is None:
            raise line.wrong("a constant tensor's elements are not in the text: give `tensors`")
        wanted = outputs[0].type if outputs else None
        if (
            isinstance(wanted, types.Tensor)
            and wanted.shape is not None
            and (wanted.dtype, wanted.shape) != (tensor.dtype, tuple(tensor.shape))
        ):
            raise line.wrong(f"the constant tensor given is {types.of_tensor(tensor)}")
        return tensor


GROUPED = (
    "prim::FusionGroup",
    "prim::DifferentiableGraph",
    "prim::CallFunction",
    "prim::CallMethod",
)
HIDDEN = Value("hidden", types.NEVER)


def define(known: dict[str, Value], v: Value, line: Line) -> None:
    """Notes a value under its name, which must be new."""
    if v.name in known:
        raise line.wrong(f"%{v.name} is made twice")
    known[v.name] = v
