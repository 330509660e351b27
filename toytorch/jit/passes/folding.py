"""What a frozen graph allows: dropout out, batch norms into the layers before them.

y = conv(x, w, b)
z = (y - mean) / sqrt(var + eps) * gamma + beta   →   z = conv(x, w * s, (b - mean) * s + beta)
                                                   with s = gamma / sqrt(var + eps)
"""

from __future__ import annotations

from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.jit.ir import Graph, Node, Value, replace, uses
from toytorch.jit.passes.aliases import inner_blocks
from toytorch.jit.passes.dce import eliminate_dead_code

DROPOUTS = frozenset(
    f"aten::{name}"
    for name in (
        "dropout",
        "dropout1d",
        "dropout2d",
        "dropout3d",
        "alpha_dropout",
        "feature_dropout",
        "feature_alpha_dropout",
    )
)
CONVOLUTIONS = ("aten::convolution", "aten::conv1d", "aten::conv2d", "aten::conv3d")


def remove_dropout(graph: Graph) -> Graph:
    """Takes out dropout layers that are not training."""
    made = graph.copy()
    for block in inner_blocks(made):
        gone = [
            n
            for n in block.nodes
            if n.kind in DROPOUTS and len(n.inputs) > 2 and known(n.inputs[2]) == (False,)
        ]
        replace(made, {n.output: n.inputs[0] for n in gone})
        block.nodes = [n for n in block.nodes if n not in gone]
    return eliminate_dead_code(made)


def fold_batch_norm(graph: Graph) -> Graph:
    """Folds batch norms with constant statistics into the convolution or linear layer before them,
    where nobody else uses that layer's result. Results change by rounding only."""
    made = graph.copy()
    for block in inner_blocks(made):
        for node in list(block.nodes):
            parts = statistics(node)
            layer = node.inputs[0].node if parts is not None else None
            if parts is None or layer is None or layer not in block.nodes:
                continue
            places = weight_places(layer)
            if places is None or not feeds_only(made, layer, node):
                continue
            weight, bias = (
                known(layer.inputs[i]) if i < len(layer.inputs) else (None,) for i in places
            )
            if weight is None or bias is None:
                continue
            with no_grad():
                folded = fold(weight[0], bias[0], *parts)
            at = block.nodes.index(layer)
            for i, tensor in zip(places, folded):
                constant = made.constant(tensor, layer.source)
                block.nodes.insert(at, constant)
                layer.inputs[i : i + 1] = [constant.output]
            replace(made, {node.outputs[0]: layer.output})
            block.nodes.remove(node)
    return eliminate_dead_code(made)


def known(v: Value) -> tuple[Any] | None:
    """The value of a constant, in a tuple of one; None for any other."""
    is_constant = v.node is not None and v.node.kind == "prim::Constant"
    return (v.node.attributes["value"],) if is_constant and v.node is not None else None


def statistics(node: Node) -> tuple[Any, Any, Any, Any, float] | None:
    """(mean, variance, gamma, beta, epsilon) of a batch norm that does not train."""
    orders = {"aten::batch_norm": (1, 2, 3, 4), "aten::native_batch_norm": (3, 4, 1, 2)}
    if node.kind not in orders or len(node.inputs) < 8 or known(node.inputs[5]) != (False,):
        return None
    found = [known(node.inputs[i]) for i in (*orders[node.kind], 7)]
    if None in found:
        return None
    mean, variance, gamma, beta, epsilon = (f[0] for f in found if f is not None)
    if not isinstance(mean, Tensor) or not isinstance(variance, Tensor):
        return None
    return mean, variance, gamma, beta, epsilon


def weight_places(layer: Node) -> tuple[int, int] | None:
    """Where a layer takes its weight and its bias."""
    if layer.kind == "aten::linear":  # the record takes the bias first
        return (2, 0) if layer.record is not None else (1, 2)
    if layer.kind in CONVOLUTIONS:
        transposed = layer.kind == "aten::convolution" and known(layer.inputs[6]) != (False,)
        return None if transposed else (1, 2)
    return None


def feeds_only(graph: Graph, layer: Node, node: Node) -> bool:
    """Whether a layer's result is used by one node, apart from checks of its shape, and the second
    and third results of that one by nobody."""
    used = uses(graph)
    users = [user for user, _ in used.get(layer.output, [])]
    return all(u is node or (u is not None and u.kind == "aten::check_dims") for u in users) and (
        not any(used.get(v) for v in node.outputs[1:])
    )


def fold(
    weight: Any, bias: Any, mean: Any, variance: Any, gamma: Any, beta: Any, epsilon: float
) -> tuple[Any, Any]:
    """Weight and bias of the layer that does both."""
    scale = (variance + epsilon).rsqrt()
    if gamma is not None:
        scale = scale * gamma
    shift = -mean * scale if bias is None else (bias - mean) * scale
    if beta is not None:
        shift = shift + beta
    return weight * scale.reshape(-1, *[1] * (weight.ndim - 1)), shift
