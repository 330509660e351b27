"""Peephole: nodes that a look at their operand's type, or at what made it, answers.

%1 : int = aten::size.int(%x, %0)     →    %1 : int = prim::Constant[value=3]()
%l : Tensor[] = prim::ListConstruct(%a, %b)
%c : Tensor, %d : Tensor = prim::ListUnpack(%l)      →    %a and %b in the place of %c and %d
"""

from __future__ import annotations

from typing import Any

from toytorch.facts.hints import Fn
from toytorch.jit import types
from toytorch.jit.builtins import Builtin
from toytorch.jit.ir import Graph, Node, Value, replace, uses
from toytorch.jit.passes.aliases import inner_blocks
from toytorch.jit.passes.dce import eliminate_dead_code


def peephole(graph: Graph, shapes: bool = True) -> Graph:
    """Answers what types tell: sizes, `is None`, unwrapping what is there, packing and unpacking.

    Without `shapes`, only what holds for every shape: a graph that was traced for one shape, and
    is run with others, keeps asking for sizes.
    """
    made = graph.copy()
    used = uses(made)
    change: dict[Value, Value] = {}
    for block in inner_blocks(made):
        nodes: list[Node] = []
        for node in block.nodes:
            node.inputs = [change.get(v, v) for v in node.inputs]
            answer = known(node, shapes)
            if answer is not None:
                constant = made.constant(answer[0], node.source)
                change[node.output] = constant.output
                nodes.append(constant)
                continue
            others = passed(node, used)
            if others is None:
                nodes.append(node)
            else:
                change.update(zip(node.outputs, others))
        block.nodes = nodes
        replace(made, change)
    return eliminate_dead_code(made)


def peephole_any_shape(graph: Graph) -> Graph:
    """`peephole` for graphs that other shapes than the traced ones may come to."""
    return peephole(graph, shapes=False)


def known(node: Node, shapes: bool) -> tuple[Any] | None:
    """The answer of a node that asks for a fact, in a tuple of one."""
    if node.kind in ("aten::__is__", "aten::__isnot__"):
        kinds = [v.type for v in node.inputs]
        if types.NONE not in kinds:
            return None
        other = kinds[1 - kinds.index(types.NONE)]
        if len(types.members(other)) > 1 or other in (types.ANY, types.NEVER):
            return None
        return ((other == types.NONE) is (node.kind == "aten::__is__"),)
    if shapes and isinstance(node.op, Builtin) and node.op.told is not None:
        return fact(node, node.op.told)
    return None


def fact(node: Node, told: Fn) -> tuple[Any] | None:
    """What a tensor's type says of it."""
    t, *rest = node.inputs
    others = [v.constant for v in rest]
    if not isinstance(t.type, types.Tensor) or t.type.shape is None or None in others:
        return None
    try:
        return (told(t.type, *others),)
    except LookupError:
        return None


def passed(node: Node, used: dict[Value, Any]) -> list[Value] | None:
    """The values that a node only hands on."""
    if node.kind == "prim::unchecked_unwrap_optional":
        v = node.inputs[0]
        if isinstance(v.type, types.Optional) or v.type in (types.NONE, types.ANY, types.NEVER):
            return None
        return [v]
    if node.kind == "prim::unchecked_cast" and node.inputs[0].type == node.output.type:
        return [node.inputs[0]]
    maker = node.inputs[0].node if node.inputs else None
    if maker is None:
        return None
    if node.kind == "prim::TupleUnpack" and maker.kind == "prim::TupleConstruct":
        return list(maker.inputs)
    if node.kind == "prim::TupleIndex" and maker.kind == "prim::TupleConstruct":
        return [maker.inputs[node.attributes["index"]]]
    if (
        node.kind == "prim::ListUnpack"
        and maker.kind == "prim::ListConstruct"
        and (len(maker.inputs) == len(node.outputs) and unchanged(node.inputs[0], used))
    ):
        return list(maker.inputs)
    return None


def unchanged(v: Value, used: dict[Value, Any]) -> bool:
    """Whether nobody adds to a list or changes it."""
    return all(
        user is not None
        and place >= 0
        and (
            user.record is not None
            or user.kind in ("prim::ListUnpack", "aten::len.t", "aten::__getitem__.t")
        )
        for user, place in used.get(v, [])
    )
