"""Which results of a graph share memory with its inputs or with one another, and how that is shown.

A generated function returns arrays. Of some of them a program must see that they are one memory: a
write to a view is a write to what it is a view of, and counts as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from toytorch.core import dispatch
from toytorch.core import inplace as writing
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.core.views import view_of
from toytorch.jit.ir import Graph, Value
from toytorch.jit.specialise import Untraceable

SHARED = (
    "This result of a compiled function shares memory with another of its results, or with "
    "an argument, and is being modified inplace. Its history does not know of that memory: "
    "clone() it first."
)
Step = tuple[Op, tuple[Any, ...], int | None]  # a view, its other arguments, which of its results


class Memory:
    """Of each value of a graph, whose memory it is.

    root   of views, of what is written to and of what may come back as it was: the value they come of
    same   of what a write gives: the tensor that was written to
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.roots: dict[Value, Value] = {}
        self.written: dict[Value, Value] = {}
        self.targets: list[Value] = []  # of each write, as they were called before the first
        for node in graph.nodes:
            if node.writes:
                target = self.same(node.inputs[0])
                self.targets.append(target)
                self.written.update(dict.fromkeys(node.outputs, target))
            if node.inputs and (
                node.is_view or node.writes or node.kind == "prim::ListUnpack" or may_pass(node)
            ):
                self.roots.update(dict.fromkeys(node.outputs, self.root(node.inputs[0])))

    def root(self, value: Value) -> Value:
        return self.roots.get(value, value)

    def same(self, value: Value) -> Value:
        return self.written.get(value, value)

    def refuse_writes(self, needs: set[Value]) -> None:
        """Refuses writes to inputs that need the tensors' own rules; `needs` are those that require a
        gradient."""
        for node in self.graph.nodes:
            if not node.writes:
                continue
            target, root = node.inputs[0], self.root(node.inputs[0])
            if root in needs:
                raise Untraceable("an input that requires a gradient is written to")
            if root not in self.graph.inputs:
                continue
            if root is not self.same(target):
                raise Untraceable("a view of an input is written to")
            if getattr(node.output.type, "requires_grad", False):
                raise Untraceable("what is written to an input requires a gradient")


@dataclass
class Shared:
    """A result that is in another's memory: of an input, or of an earlier result."""

    result: int
    of_input: bool
    place: int  # of that input or result
    whole: bool  # whether it is that tensor itself, and no view of it
    cut: bool = False  # whether it is no view, as `detach` leaves it
    steps: list[Step] = field(
        default_factory=list
    )  # the views that lead to it, where they are known

    def show(self, inputs: Sequence[Any], made: list[Tensor]) -> None:
        """Puts a tensor that shares the memory, and its count of writes, in the place of the result."""
        source, result = (inputs if self.of_input else made)[self.place], made[self.result]
        wants, array = source._requires_grad or result._requires_grad, result._array
        if self.steps and (wants or not array.size):
            made[self.result] = walked(
                source, self.steps
            )  # with a view's history, for later writes
        elif self.whole:
            made[self.result] = source
        elif (
            array.__class__ is np.ndarray
            and (array.size or not self.cut)
            and not np.may_share_memory(array, source._array)
        ):
            return  # nothing is there to share, or a copy was made after all
        elif not wants:
            made[self.result] = view_of(source, array, not self.cut)
        else:
            result._storage = source._memory()
            writing.protect(result, SHARED)


def sharing(memory: Memory, results: Sequence[Value]) -> list[Shared]:
    """The results that share memory with an input or with an earlier result."""
    made: list[Shared] = []
    inputs = memory.graph.inputs
    first: dict[Value, int] = {}  # the result that stands for a memory that is no input's
    known: dict[Value, int] = {}  # the first result that is this value
    for k, v in enumerate(results):
        root, value = memory.root(v), memory.same(v)
        if value in known:
            made.append(Shared(k, False, known[value], whole=True))
            continue
        known[value] = k
        if root in inputs:
            place, shown = inputs.index(root), True
        elif root in first:
            place = first[root]
            shown = memory.same(results[place]) is root  # or both show what nobody sees
        else:
            first[root] = k
            continue
        whole = root in inputs and value is root
        found = Shared(k, root in inputs, place, whole, is_cut(root, value) or not shown)
        if root in inputs or results[place] is root:
            found.steps = views_from(root, value) or []
        made.append(found)
    return made


def views_from(root: Value, value: Value) -> list[Step] | None:
    """The views that lead from one value to another; None where there are other ops between."""
    steps: list[Step] = []
    while value is not root:
        node, index = value.node, None
        if node is not None and node.kind == "prim::ListUnpack":
            index = node.outputs.index(value)
            node = node.inputs[0].node
        elif node is not None and len(node.outputs) > 1:
            index = node.outputs.index(value)
        if node is None or node.record is None or node.record.kind != "view":
            return None
        try:
            args = tuple(constant_of(v) for v in node.inputs[1:])
        except KeyError:
            return None
        steps.append((node.record, args, index))
        value = node.inputs[0]
    return steps[::-1]


def is_cut(root: Value, value: Value) -> bool:
    """Whether `detach` stands between two values."""
    while value is not root and value.node is not None:
        if value.node.kind == "aten::detach":
            return True
        value = value.node.inputs[0]
    return False


def constant_of(value: Value) -> Any:
    """What a value is in every run; KeyError where that is not known."""
    node = value.node
    if node is not None and node.kind in ("prim::ListConstruct", "prim::TupleConstruct"):
        return tuple(constant_of(v) for v in node.inputs)
    if not value.is_constant:
        raise KeyError(value.name)
    return value.constant


def walked(source: Tensor, steps: Sequence[Step]) -> Tensor:
    """The view of a tensor that some steps lead to."""
    for op, args, index in steps:
        made = dispatch.call(op, (source, *args))
        source = made if index is None else made[index]
    return source


def may_pass(node: Any) -> bool:
    """Whether an op that is no view may give its input back: contiguous, reshape, to."""
    return (
        node.record is not None
        and not node.record.many
        and node.record.kind == "general"
        and not node.record.fresh
        and (getattr(node.output.type, "shape", 0) == getattr(node.inputs[0].type, "shape", 1))
    )
