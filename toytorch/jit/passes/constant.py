"""Constant propagation: what does not depend on the inputs is computed once, now.

%1 : int = prim::Constant[value=2]()
%2 : int = prim::Constant[value=3]()       %3 : int = prim::Constant[value=6]()
%3 : int = aten::mul.int(%1, %2)      →    %4 : Tensor = aten::add(%x, %3)
%4 : Tensor = aten::add(%x, %3)
"""

from __future__ import annotations

from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.jit import interpreter, types
from toytorch.jit.builtins import Builtin
from toytorch.jit.ir import Block, Graph, Node, Value, replace, uses
from toytorch.jit.passes.aliases import Aliases, inner_blocks
from toytorch.jit.passes.dce import eliminate_dead_code

FOLDABLE = frozenset(
    (
        "prim::TupleConstruct", "prim::TupleUnpack", "prim::TupleIndex", "prim::TupleSlice",
        "prim::ListConstruct", "prim::ListUnpack", "prim::unchecked_cast",
        "prim::unchecked_unwrap_optional", "prim::isinstance", "prim::slice",
    )
)  # fmt: skip
LARGEST = 1 << 20  # elements of a tensor that is worth keeping as a constant


def propagate_constants(graph: Graph) -> Graph:
    """Computes pure nodes whose inputs are constants, and decides branches that are known.

    A result in new memory stays a node where somebody could write to it: the next run needs its
    own. What raises an error stays too, since it may stand where it is never reached.
    """
    made = graph.copy()
    before = -1
    while before != len(list(made.walk())):  # a decided branch may decide another
        before = len(list(made.walk()))
        Folding(made).all_blocks()
        made = eliminate_dead_code(made)
    return made


class Folding:
    """One walk over a graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.aliases = Aliases(graph)
        self.uses = uses(graph)
        self.change: dict[Value, Value] = {}

    def all_blocks(self) -> None:
        """Folds every block, those in front first."""
        for block in inner_blocks(self.graph):
            kept: list[Node] = []
            for node in block.nodes:
                kept += self.folded(node)
            block.nodes = kept
            replace(self.graph, self.change)
            self.change.clear()

    def folded(self, node: Node) -> list[Node]:
        """What stands in the place of a node."""
        if node.kind == "prim::If" and (known := self.constant(node.inputs[0])) is not None:
            return self.decided(node, node.blocks[0 if known[0] else 1])
        if node.kind == "prim::Loop" and self.never_runs(node):
            self.change.update(zip(node.outputs, node.inputs[2:]))
            return []
        values = self.computed(node)
        if values is None:
            return [node]
        made = []
        for v, value in zip(node.outputs, values):
            constant = self.graph.constant(value, node.source)
            if len(types.members(v.type)) > 1 or v.type == types.ANY:
                constant.output.type = types.of(value)
            elif not isinstance(v.type, types.Tensor):
                constant.output.type = v.type
            self.change[v] = constant.output
            made.append(constant)
        return made

    def decided(self, node: Node, block: Block) -> list[Node]:
        """The nodes of the branch that is taken."""
        self.change.update(zip(node.outputs, block.outputs))
        kept: list[Node] = []
        for inner in block.nodes:
            kept += self.folded(inner)
        return kept

    def never_runs(self, node: Node) -> bool:
        """Whether a loop makes no iteration."""
        iterations, goes_on = (self.constant(v) for v in node.inputs[:2])
        return (iterations is not None and iterations[0] <= 0) or (
            goes_on is not None and not goes_on[0]
        )

    def constant(self, v: Value) -> tuple[Any] | None:
        """What a value always is, in a tuple of one; None if that is not known."""
        while v in self.change:
            v = self.change[v]
        return (v.constant,) if v.is_constant else None

    def computed(self, node: Node) -> list[Any] | None:
        """The results of a node that always gives the same; None for every other."""
        if node.kind not in FOLDABLE and not (node.kind.startswith("aten::") and node.pure):
            return None
        known = [self.constant(v) for v in node.inputs]
        if not node.outputs or None in known or not all(map(self.harmless, node.outputs)):
            return None
        args = [k[0] for k in known if k is not None]
        if any(isinstance(a, Tensor) and a.requires_grad for a in args):
            return None
        try:
            with no_grad():
                found = interpreter.Reader().run_node(node, dict(zip(node.inputs, args)))
        except Exception:
            return None  # the error belongs to the run, if the run ever comes here
        values = list(found)
        return values if len(values) == len(node.outputs) and all(map(small, values)) else None

    def harmless(self, v: Value) -> bool:
        """Whether nobody can tell one constant from a new result in every run."""
        if isinstance(v.type, types.List):
            return all(
                user is not None and place >= 0 and only_reads_lists(user)
                for user, place in self.uses.get(v, [])
            )
        return self.aliases.private(v) or (
            v not in self.aliases.returned
            and v.node is not None
            and v.node.is_view
            and self.aliases.quiet(v)
        )


def only_reads_lists(node: Node) -> bool:
    """Whether a node leaves lists alone: operations on tensors do, `append` and calls do not."""
    return node.kind in ("prim::ListUnpack", "prim::TupleUnpack") or (
        node.kind.startswith("aten::") and not isinstance(node.op, Builtin)
    )


def small(value: object) -> bool:
    """Whether a result may be kept: tensors by themselves, but not in lists and tuples."""
    if isinstance(value, (list, tuple)):
        return all(small(v) and not isinstance(v, Tensor) for v in value)
    return not isinstance(value, Tensor) or value.numel() <= LARGEST
