"""What a frozen graph allows: dropout out, batch norms into the layers before them.

y = conv(x, w, b)
z = (y - mean) / sqrt(var + eps) * gamma + beta   →   z = conv(x, w * s, (b - mean) * s + beta)
                                                   with s = gamma / sqrt(var + eps)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from toytorch.autograd.modes import no_grad
from toytorch.core.tensor import Tensor
from toytorch.facts.schema import REQUIRED
from toytorch.jit.ir import Block, Graph, Node, Value, defaults, parameters, replace, uses
from toytorch.jit.passes.aliases import Aliases, inner_blocks, makes_memory
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.ops.elementwise.arithmetic import add, div, mul, sub

Change = Callable[[Any, Any], tuple[Any, Any]]  # of a weight and a bias
STATISTICS = ("running_mean", "running_var", "weight", "bias", "eps")  # of a batch norm


def remove_dropout(graph: Graph) -> Graph:
    """Takes out dropout layers that are not training."""
    made = graph.copy()
    for block in inner_blocks(made):
        gone = [n for n in block.nodes if n.facts.idle and given(n, n.facts.idle) == (False,)]
        replace(made, {n.output: n.inputs[0] for n in gone})
        block.nodes = [n for n in block.nodes if n not in gone]
    return eliminate_dead_code(made)


def fold_into_layers(graph: Graph, change_of: Callable[[Node, Node], Change | None]) -> Graph:
    """Leaves out nodes behind convolutions and linear layers whose results nobody else uses, by
    changing the constant weight and bias: `change_of(node, layer)` says how, or None."""
    made = graph.copy()
    for block in inner_blocks(made):
        for node in list(block.nodes):
            layer = node.inputs[0].node if node.inputs else None
            if layer is None or layer not in block.nodes:
                continue
            change, places = change_of(node, layer), weight_places(layer)
            if change is None or places is None or not feeds_only(made, layer, node):
                continue
            weight, bias = (given(layer, name) for name in ("weight", "bias"))
            if weight is None or bias is None:
                continue
            with no_grad():
                folded = change(weight[0], bias[0])
            put(made, block, layer, places, folded)
            replace(made, {node.outputs[0]: layer.output})
            block.nodes.remove(node)
    return eliminate_dead_code(made)


def fold_batch_norm(graph: Graph) -> Graph:
    """Folds batch norms with constant statistics into the convolution or linear layer before them,
    where nobody else uses that layer's result. Results change by rounding only."""

    def change_of(node: Node, layer: Node) -> Change | None:
        parts = statistics(node)
        return None if parts is None else lambda weight, bias: fold(weight, bias, *parts)

    return fold_into_layers(graph, change_of)


def remove_detach(graph: Graph) -> Graph:
    """Takes out `detach`, which says nothing where no gradient is wanted; not of what is written to
    or given back, where it says that memory is shared."""
    made = graph.copy()
    memory, used = Aliases(made), uses(made)

    def idle(node: Node) -> bool:
        users = [user for user, _ in used.get(node.outputs[0], [])]
        return memory.quiet(node.outputs[0]) and all(
            u is not None and makes_memory(u) for u in users
        )

    for block in inner_blocks(made):
        gone = [n for n in block.nodes if n.kind == "aten::detach" and idle(n)]
        replace(made, {n.output: n.inputs[0] for n in gone})
        block.nodes = [n for n in block.nodes if n not in gone]
    return made


def fold_arithmetic(graph: Graph) -> Graph:
    """Folds a constant that is added to, or multiplied with, the result of a convolution into its
    weight and bias: a number, or one for each channel."""

    def change_of(node: Node, layer: Node) -> Change | None:
        amounts = scale_and_shift(node, layer)
        if amounts is None:
            return None
        scale, shift = amounts

        def change(weight: Any, bias: Any) -> tuple[Any, Any]:
            zero = weight.new_zeros(weight.shape[0])
            rows = zero + scale
            moved = zero if bias is None else bias
            return weight * rows.reshape(-1, *[1] * (weight.ndim - 1)), moved * rows + shift

        return change

    return fold_into_layers(graph, change_of)


def put(
    graph: Graph, block: Block, layer: Node, places: tuple[int, int], folded: tuple[Any, Any]
) -> None:
    """Gives a layer another weight and bias, as constants before it."""
    at = block.nodes.index(layer)
    for i, tensor in zip(places, folded):
        constant = graph.constant(tensor, layer.source)
        block.nodes.insert(at, constant)
        layer.inputs[i : i + 1] = [constant.output]


def scale_and_shift(node: Node, layer: Node) -> tuple[Any, Any] | None:
    """(factor, summand) for each channel, where a node does such arithmetic with a constant."""
    record = node.record
    if record not in (add, sub, mul, div):
        return None
    weight, other = given(layer, "weight"), known(node.inputs[1])
    if weight is None or other is None or not isinstance(weight[0], Tensor):
        return None
    by = per_channel(other[0], weight[0])
    if by is None:
        return None
    if record is mul:
        return by, 0
    if record is div:
        return (1 / by, 0) if given(node, "rounding_mode") in (None, (None,)) else None
    alpha = given(node, "alpha")
    return None if alpha is None else (1, by * (alpha[0] if record is add else -alpha[0]))


def per_channel(value: object, weight: Tensor) -> Any:
    """The number, or a tensor of one for each channel of the result; None for anything else."""
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return value
    if not isinstance(value, Tensor) or value.dtype.rank > weight.dtype.rank:
        return None
    channels, images = weight.shape[0], weight.ndim
    if value.numel() == 1 and value.ndim <= images:
        return value.reshape(())
    shape = (1,) * (images - value.ndim) + tuple(value.shape)
    if value.ndim > images or shape != (1, channels, *[1] * (images - 2)):
        return None
    return value.reshape(-1)


def known(v: Value) -> tuple[Any] | None:
    """The value of a constant, in a tuple of one; None for any other."""
    return (v.constant,) if v.is_constant else None


def given(node: Node, name: str) -> tuple[Any] | None:
    """The value of a parameter that is a constant or has its default, in a tuple of one."""
    value = node.argument(name)
    if value is not None:
        return known(value)
    default = defaults(node.op).get(name, REQUIRED)
    return None if default is REQUIRED else (default,)


def statistics(node: Node) -> tuple[Any, Any, Any, Any, float] | None:
    """(mean, variance, gamma, beta, epsilon) of a batch norm that does not train."""
    names = parameters(node.op) if node.kind.startswith("aten::") else {}
    if not names.keys() >= {*STATISTICS, "training"} or given(node, "training") != (False,):
        return None
    found = [given(node, name) for name in STATISTICS]
    if None in found:
        return None
    mean, variance, gamma, beta, epsilon = (f[0] for f in found if f is not None)
    if not isinstance(mean, Tensor) or not isinstance(variance, Tensor):
        return None
    return mean, variance, gamma, beta, epsilon


def weight_places(layer: Node) -> tuple[int, int] | None:
    """Where a layer takes its weight and its bias."""
    facts: Any = layer.record or layer.facts
    places = parameters(layer.op)
    if not facts.layer or ("transposed" in places and given(layer, "transposed") != (False,)):
        return None
    weight, bias = places["weight"], places["bias"]
    count = len(layer.inputs)
    by_place = count - len(layer.attributes.get("_names", ()))
    return (weight, bias) if weight < by_place and (bias < by_place or bias == count) else None


def feeds_only(graph: Graph, layer: Node, node: Node) -> bool:
    """Whether a layer's result is used by one node, apart from checks of its shape, and the second
    and third results of that one by nobody."""
    used = uses(graph)
    users = [user for user, _ in used.get(layer.output, [])]
    return all(u is node or (u is not None and u.reads == "shape") for u in users) and (
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
