"""Batching of matrix products: several small ones become one large one.

    %1 = aten::mm(%a, %w)                 %1 : Tensor[] = prim::ListConstruct(%a, %b, %c)
    %2 = aten::mm(%b, %w)          →      %2 = aten::cat(%1, 0)
    %3 = aten::mm(%c, %w)                 %3 = aten::mm(%2, %w), and three slices of its rows

and a sum of products is one product: a @ b + c @ d = [a c] @ [b; d], which is what the derivative
of a recurrent network's weights is. Both copy operands, so they are done where those are small and
a product costs little more than its call, or where less is copied than is saved: reading %w once
for each product, or adding the products up.
"""

from __future__ import annotations

from collections.abc import Sequence

from toytorch.jit import types
from toytorch.jit.ir import Graph, Node, Value, replace, uses
from toytorch.jit.passes.algebra import contiguous
from toytorch.jit.passes.aliases import Aliases
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.ops.elementwise.arithmetic import add
from toytorch.ops.linalg.matmul import mm
from toytorch.ops.shaping import view

FEWEST = 3  # products of which one is made
SMALL = 1 << 14  # elements that may be copied whatever it saves


def batch_matrix_products(graph: Graph) -> Graph:
    """Sums of products become one product, then products with the same right factor do."""
    return batch_sides(batch_sums(graph))


def product_shape(node: Node) -> tuple[int, int, int] | None:
    """(m, k, n) of an mm of two plain matrices of one type; None for every other node."""
    if (
        node.record is not mm
        or node.writes
        or "no_grad" in node.attributes
        or len(node.inputs) != 2
    ):
        return None  # a third input is out=
    a, b, c = (v.type for v in (*node.inputs, node.output))
    if (
        not (
            isinstance(a, types.Tensor)
            and isinstance(b, types.Tensor)
            and isinstance(c, types.Tensor)
        )
        or a.shape is None
        or b.shape is None
    ):
        return None
    if a.dtype != b.dtype or not contiguous(node.output):
        return None
    return a.shape[0], a.shape[1], b.shape[1]


def pays(copied: int, saved: int) -> bool:
    """Whether copying so many elements is worth it where so many are not read again."""
    return copied <= max(SMALL, saved)


def size(v: Value) -> int:
    """How many elements a matrix has."""
    rows, columns = v.type.shape  # type: ignore[attr-defined]  # asked of operands of mm only
    return int(rows * columns)


# -- products with one right factor ----------------------------------------------------------------


def batch_sides(graph: Graph) -> Graph:
    """mm(a, w), mm(b, w), mm(c, w) → rows of mm(cat(a, b, c), w)."""
    made = graph.copy()
    aliases, used = Aliases(made), uses(made)
    order = list(made.nodes)
    place = {id(n): i for i, n in enumerate(order)}
    by_factor: dict[Value, list[Node]] = {}
    for node in made.nodes:
        if (
            product_shape(node) is not None
            and all(map(aliases.quiet, node.inputs))
            and (aliases.private(node.output))
        ):
            by_factor.setdefault(node.inputs[1], []).append(node)
    change: dict[Value, Value] = {}
    for factor, nodes in by_factor.items():
        copied, saved = sum(size(n.inputs[0]) for n in nodes), (len(nodes) - 1) * size(factor)
        if len(nodes) < FEWEST or not pays(copied, saved):
            continue
        if any(v in change for n in nodes for v in n.inputs):
            continue
        start = max(place.get(id(v.node), -1) for n in nodes for v in n.inputs)
        first_use = min(
            (place.get(id(user), -1) for n in nodes for user, _ in used.get(n.output, [])),
            default=-1,
        )
        if first_use > start:  # there is a place behind all operands and before all users
            put_after(made, order[start] if start >= 0 else None, one_product(made, nodes, change))
    replace(made, change)
    return eliminate_dead_code(made)


def one_product(graph: Graph, nodes: Sequence[Node], change: dict[Value, Value]) -> list[Node]:
    """The nodes that compute several products at once."""
    rows = [n.inputs[0].type.shape[0] for n in nodes]  # type: ignore[attr-defined]  # matrices
    _, k, n = product_shape(nodes[0]) or (0, 0, 0)
    first = nodes[0].output.type
    assert isinstance(first, types.Tensor)
    added, stacked = joined(graph, [node.inputs[0] for node in nodes], 0, (sum(rows), k), first)
    factors, product = [stacked, nodes[0].inputs[1]], matrix(first, sum(rows), n)
    whole = graph.make("aten::mm", factors, [product], source=nodes[0].source)
    added.append(whole)
    axis = graph.constant(0)
    added.append(axis)
    start = 0
    for node, count in zip(nodes, rows):
        ends = [graph.constant(start), graph.constant(count)]
        given = [whole.output, axis.output, *(e.output for e in ends)]
        part = graph.make("aten::narrow", given, [node.output.type], source=node.source)
        added += [*ends, part]
        change[node.output] = part.output
        start += count
    return added


# -- sums of products ------------------------------------------------------------------------------


def batch_sums(graph: Graph) -> Graph:
    """mm(a, b) + mm(c, d) + mm(e, f) → mm(cat([a, c, e], 1), cat([b, d, f], 0))."""
    made = graph.copy()
    aliases, used = Aliases(made), uses(made)
    inner: set[int] = set()  # additions that belong to a larger sum
    for node in reversed(list(made.nodes)):
        if id(node) in inner or not is_sum(node):
            continue
        terms, parts, transposed = terms_of(node, used)
        inner.update(map(id, parts))
        if len(terms) < FEWEST or not all(aliases.quiet(v) for t in terms for v in t.inputs):
            continue
        copied, saved = sum(size(v) for t in terms for v in t.inputs), size(node.output)
        if not pays(copied, (len(terms) - 1) * saved):
            continue
        if len(
            {
                v.type.dtype  # type: ignore[attr-defined]  # all are tensors
                for t in terms
                for v in t.inputs
            }
        ) > 1 or node.output.type != sum_type(node, transposed):
            continue
        put_after(made, node, one_sum(made, node, terms, transposed))
    return eliminate_dead_code(made)


def sum_type(node: Node, transposed: bool) -> types.Type:
    """The type of a sum's result in new memory, row by row or, where transposed, column by column."""
    found = node.output.type
    assert isinstance(found, types.Tensor) and found.shape is not None
    rows, columns = found.shape
    strides = (1, rows) if transposed else (columns, 1)
    return types.Tensor(found.dtype, found.shape, strides, found.requires_grad, found.device)


def one_sum(graph: Graph, node: Node, terms: Sequence[Node], transposed: bool) -> list[Node]:
    """The nodes that compute a sum of products at once; they take over the sum's result."""
    shapes = [product_shape(t) or (0, 0, 0) for t in terms]
    (m, _, n), k = shapes[0], sum(s[1] for s in shapes)
    out = node.output
    assert isinstance(out.type, types.Tensor)
    lefts, left = joined(graph, [t.inputs[0] for t in terms], 1, (m, k), out.type)
    rights, right = joined(graph, [t.inputs[1] for t in terms], 0, (k, n), out.type)
    whole = graph.make("aten::mm", [left, right], [matrix(out.type, m, n)], source=node.source)
    added = [*lefts, *rights, whole]
    if transposed:
        added.append(graph.make("aten::t", [whole.output], [out.type], source=node.source))
    node.outputs = [graph.value(out.type)]  # the addition is dead from here on
    node.outputs[0].node = node
    added[-1].outputs, out.node = [out], added[-1]
    return added


def is_sum(node: Node) -> bool:
    """Whether a node adds two matrices of its own shape and type."""
    return (
        node.record is add
        and not node.writes
        and "no_grad" not in node.attributes
        and (len(node.inputs) < 3 or node.inputs[2].constant == 1)
        and all(
            isinstance(v.type, types.Tensor)
            and v.type.shape is not None
            and len(v.type.shape) == 2
            and v.type.shape == node.output.type.shape  # type: ignore[attr-defined]  # tensors
            for v in node.inputs[:2]
        )
    )


def terms_of(
    node: Node, used: dict[Value, list[tuple[Node | None, int]]]
) -> tuple[list[Node], list[Node], bool]:
    """The products that a tree of additions adds, the additions, and whether it is their transposes
    that are added; no products where something else is added, or a part is used elsewhere."""
    terms: list[Node] = []
    transpositions: set[bool] = set()
    parts = [node]
    waiting = list(node.inputs[:2][::-1])
    while waiting:
        v = waiting.pop()
        if v.node is None or len(used.get(v, [])) != 1:
            return [], parts, False
        if is_sum(v.node):
            parts.append(v.node)
            waiting += v.node.inputs[:2][::-1]
            continue
        transposed = v.node.record is view.t
        maker = v.node.inputs[0].node if transposed else v.node
        if maker is None or product_shape(maker) is None or len(used[maker.output]) != 1:
            return [], parts, False
        terms.append(maker)
        transpositions.add(transposed)
    return (
        (terms, parts, transpositions == {True}) if len(transpositions) == 1 else ([], parts, False)
    )


# -- building --------------------------------------------------------------------------------------


def matrix(like: types.Tensor, rows: int, columns: int) -> types.Tensor:
    """The type of a matrix whose elements lie row by row."""
    return types.Tensor(like.dtype, (rows, columns), (columns, 1), like.requires_grad, like.device)


def joined(
    graph: Graph, values: Sequence[Value], dim: int, shape: tuple[int, int], like: types.Tensor
) -> tuple[list[Node], Value]:
    """The nodes that join matrices along a dimension, and the result; transposed ones are joined
    as they lie in memory."""
    if all(
        v.node is not None and v.node.record is view.t and contiguous(v.node.inputs[0])
        for v in values
    ):
        lying = [v.node.inputs[0] for v in values if v.node is not None]
        nodes, whole = joined(graph, lying, 1 - dim, (shape[1], shape[0]), like)
        transposed = types.Tensor(like.dtype, shape, (1, shape[0]), like.requires_grad, like.device)
        node = graph.make("aten::t", [whole], [transposed])
        return [*nodes, node], node.output
    listed = graph.make("prim::ListConstruct", list(values), [types.List(types.TENSOR)])
    axis = graph.constant(dim)
    node = graph.make("aten::cat", [listed.output, axis.output], [matrix(like, *shape)])
    return [listed, axis, node], node.output


def put_after(graph: Graph, node: Node | None, added: Sequence[Node]) -> None:
    """Puts nodes behind another, or first."""
    i = next((i for i, n in enumerate(graph.nodes) if n is node), -1)
    graph.nodes[i + 1 : i + 1] = added
