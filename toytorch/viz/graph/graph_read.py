"""Reading nodes and tensors into what is drawn of them, through their public interface."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.hints import DType
from toytorch.facts.node import Node
from toytorch.viz.draw.boxes import Row
from toytorch.viz.graph.graph_walk import Vertex, ranks, summarise, walk

_ROWS = 6  # saved values shown for one node


@dataclass(slots=True)
class Drawn:
    """The graph as it will be drawn: boxes, edges from upper to lower, and what was left out."""

    vertices: list[Vertex]
    edges: list[tuple[int, int]]
    total: int
    note: str = ""


def named(params: Any) -> dict[int, str]:
    """Return names by identity from a mapping or (name, tensor) pairs.

    A leaf is found by the tensor itself; a result of an op by its `grad_fn`, which the walk holds.
    """
    if params is None:
        return {}
    try:
        pairs = list(params.items() if isinstance(params, Mapping) else params)
        names = {}
        for name, tensor in pairs:
            names[id(tensor)] = str(name)
            if getattr(tensor, "grad_fn", None) is not None:
                names[id(tensor.grad_fn)] = str(name)
        return names
    except (TypeError, ValueError):
        raise TypeError(
            "params must be a dictionary of names and tensors, such as"
            " dict(model.named_parameters()) or {'x': x}"
        ) from None


def read(tensors: tuple[Any, ...], params: object, *, saved: bool, limit: int) -> Drawn:
    """Return the graph behind the tensors, cut down to about `limit` boxes."""
    walked = walk(tensors)
    names = named(params)
    total = len(walked.nodes)
    group, hidden = summarise(walked, limit)
    vertices: list[Vertex] = []
    place: dict[int, int] = {}  # group → vertex
    edges: list[tuple[int, int]] = []
    for index, tensor in enumerate(tensors):
        edges.append((len(vertices), walked.roots[index]))
        vertices.append(_result(tensor, index, len(tensors), names))
    results = len(vertices)
    for node_number, node in enumerate(walked.nodes):
        its = group[node_number]
        if its in place:
            continue
        place[its] = len(vertices)
        # a result's name stands on the result, not once more on the node that made it
        known = {} if node_number in walked.roots else names
        box = hidden[its] if its in hidden else describe(node, names, known, saved=saved)
        vertices.append(box)
    edges = [(upper, place[group[lower]]) for upper, lower in edges]
    rank = ranks(walked, group, hidden)
    seen: set[tuple[int, int]] = set()
    for node_number, following in enumerate(walked.next):
        upper = group[node_number]
        for lower in (group[n] for n in following):
            if upper == lower or rank[lower] <= rank[upper]:
                continue
            # edges into or out of a hidden part are drawn once, real ones as often as they are
            if upper in hidden or lower in hidden:
                if (upper, lower) in seen:
                    continue
                seen.add((upper, lower))
            edges.append((place[upper], place[lower]))
    note = ""
    if hidden:
        shown = len(vertices) - len(hidden) - results
        note = f"{shown:,} of {total:,} nodes shown; the rest is summed up. limit= shows more."
    return Drawn(vertices, edges, total, note)


# one vertex ----------------------------------------------------------------------------------


def describe(
    node: Node | Tensor, names: Mapping[int, str], results: Mapping[int, str], *, saved: bool
) -> Vertex:
    """Return the vertex of one node: a leaf for AccumulateGrad, otherwise a function.

    `names` are those of tensors, `results` those of nodes by what they made.
    """
    leaf = getattr(node, "variable", None)
    if leaf is not None and not node.next_functions:
        title = names.get(id(leaf), "leaf")
        return Vertex("leaf", title, [f"{shape_text(leaf.shape)}  {dtype_text(leaf.dtype)}"])
    vertex = Vertex("node", node.name())
    result = "  ".join(shape_text(shape) for shape in result_shapes(node))
    name = results.get(id(node))
    if result or name:
        vertex.lines.append(f"{name + ' ' if name else ''}→ {result}".rstrip(" →"))
    if saved:
        vertex.rows = _saved_rows(node, names)
    return vertex


def _result(tensor: Tensor, index: int, count: int, names: Mapping[int, str]) -> Vertex:
    default = "result" if count == 1 else f"result {index}"
    title = names.get(id(tensor), default)
    return Vertex("result", title, [f"{shape_text(tensor.shape)}  {dtype_text(tensor.dtype)}"])


def _saved_rows(node: Node | Tensor, names: Mapping[int, str]) -> list[Row]:
    try:
        items = saved_items(node)
    except RuntimeError as error:  # freed after backward, or written to since
        changed = "inplace" in str(error).replace("-", "")
        return [Row("saved", "changed in place" if changed else "freed by backward")]
    seen = getattr(node, "versions", ())
    rows = []
    for at, (name, value) in enumerate(items):
        if isinstance(value, (list, tuple)) and any(hasattr(part, "shape") for part in value):
            rows += [_saved_row(f"{name}[{i}]", part, names) for i, part in enumerate(value)]
        else:
            rows.append(_saved_row(name, value, names, seen[at] if len(seen) > at else None))
    rows.sort(key=lambda row: not row.swatch)  # tensors first: they are what takes memory
    if len(rows) > _ROWS:
        rows = [*rows[: _ROWS - 1], Row(f"{len(rows) - _ROWS + 1} more", "")]
    return rows


def _saved_row(name: str, value: Any, names: Mapping[int, str], seen: int | None = None) -> Row:
    """Return the row of a saved value; `seen` is the version it had when it was saved."""
    if not hasattr(value, "shape") or not hasattr(value, "dtype"):
        return Row(name, repr(value) if isinstance(value, str) else str(value))
    known = names.get(id(value))
    label = f"{name} = {known}" if known and known != name else name
    now = value._version
    text = f"{shape_text(value.shape)} v{now if seen is None else seen}"
    if seen is not None and seen != now:  # backward will refuse this one
        return Row(label, f"{text}, now v{now}", swatch=True, alarm=True)
    return Row(label, text, swatch=True)


def saved_items(node: Node | Tensor) -> list[tuple[str, Any]]:
    """Return (name, value) of all a node saved; RuntimeError once it was freed."""
    if hasattr(node, "saved_items"):
        return list(node.saved_items())
    attributes = [a for a in dir(node) if a.startswith("_saved_")]
    return [(a.removeprefix("_saved_"), getattr(node, a)) for a in attributes]


def result_shapes(node: Node | Tensor) -> list[Any]:
    """Return the shapes of what the node's forward call gave."""
    if hasattr(node, "result_shapes"):
        return list(node.result_shapes)
    return [about.shape for about in getattr(node, "_input_metadata", ())]


def shape_text(shape: Iterable[int]) -> str:
    """Return a shape as Python writes the tuple.

    Example:
        >>> shape_text([3]), shape_text([])
        ('(3,)', '()')
    """
    return str(tuple(int(size) for size in shape))


def dtype_text(dtype: DType | None) -> str:
    """Return a dtype's name without its package."""
    return str(dtype).rsplit(".", 1)[-1]
