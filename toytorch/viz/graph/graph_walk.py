"""Walking a backward graph, and deciding what of a large one is drawn.

Walks are loops over lists, never recursion: a chain of 100,000 nodes is read like one of ten.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.node import Node
from toytorch.viz.draw.boxes import Row

_RUN = 8  # a stretch of at least so many nodes in single file may be drawn as one
_ENDS = 2  # how many nodes at either end of such a stretch are still shown


@dataclass(slots=True)
class Vertex:
    """One box of the picture. `kind` is result, node, leaf or hidden (standing for several)."""

    kind: str
    title: str
    lines: list[str] = field(default_factory=list)
    rows: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Walked:
    """Every node reachable from the results, with edges as (node number, node number)."""

    nodes: list[Any]
    next: list[list[int]]
    roots: list[int]  # per result: the number of its node


def walk(tensors: Iterable[Any]) -> Walked:
    """Return all nodes reachable from the tensors, in breadth-first order."""
    found: dict[int, int] = {}
    walked = Walked([], [], [])

    def number(node: Node | Tensor) -> int:
        # the list keeps the node alive, so its id stays its own
        if id(node) not in found:
            found[id(node)] = len(walked.nodes)
            walked.nodes.append(node)
            walked.next.append([])
        return found[id(node)]

    for tensor in tensors:
        walked.roots.append(number(root_of(tensor)))
    done = 0
    while done < len(walked.nodes):
        for node, _ in walked.nodes[done].next_functions:
            if node is not None:
                walked.next[done].append(number(node))
        done += 1
    return walked


def root_of(tensor: Any) -> Any:
    """Return the node a backward pass from `tensor` starts at.

    Raises TypeError for what is no tensor, RuntimeError for a tensor without a graph.
    """
    if not hasattr(tensor, "grad_fn") or not hasattr(tensor, "requires_grad"):
        raise TypeError(f"expected a tensor to draw the graph of, got {type(tensor).__name__}")
    if tensor.grad_fn is not None:
        return tensor.grad_fn
    if tensor.requires_grad:  # a leaf is its own graph; a view of it leads to its AccumulateGrad
        return tensor.view_as(tensor).grad_fn.next_functions[0][0]
    raise RuntimeError(
        "this tensor has no backward graph: nothing it was computed from requires a gradient,"
        " or it was computed under no_grad. Set requires_grad=True on an input and compute it anew"
    )


def summarise(walked: Walked, limit: int) -> tuple[list[int], dict[int, Vertex]]:
    """Return each node's group, and a vertex for each group that stands for several nodes.

    A graph within the limit keeps every node. Otherwise stretches in single file are folded; if
    that is not enough, only what lies nearest to the results is kept.
    """
    count = len(walked.nodes)
    group = list(range(count))
    hidden: dict[int, Vertex] = {}
    if count <= limit:
        return group, hidden
    for run in _runs(walked):
        inner = run[_ENDS:-_ENDS]
        for node in inner:
            group[node] = inner[0]
        hidden[inner[0]] = _hidden([walked.nodes[n] for n in inner], "nodes in single file")
    order = list(dict.fromkeys(group))  # groups in breadth-first order
    if len(order) > limit:
        depth = _depths(walked, group)
        near = [g for g in order if depth[g] < max(8, limit * 3 // 8)][:limit]
        far = set(order).difference(near)
        cut = [n for n in range(count) if group[n] in far]
        hidden = {g: vertex for g, vertex in hidden.items() if g not in far}
        for node in cut:
            group[node] = cut[0]
        hidden[cut[0]] = _hidden([walked.nodes[n] for n in cut], "more nodes")
    return group, hidden


def _depths(walked: Walked, group: list[int]) -> dict[int, int]:
    """Return how many steps each group is from the nearest result (breadth-first)."""
    depth: dict[int, int] = {}
    queue = [(group[root], root, 0) for root in walked.roots]
    seen = set(walked.roots)
    for its, node, steps in queue:  # grows as it is read
        depth.setdefault(its, steps)
        for following in walked.next[node]:
            if following not in seen:
                seen.add(following)
                queue.append((group[following], following, steps + (group[following] != its)))
    return depth


def ranks(walked: Walked, group: list[int], hidden: dict[int, Vertex]) -> dict[int, float]:
    """Return a number per group that grows along every edge that will be drawn.

    Edges between kept nodes grow by construction; one that leads from the far part, which stands
    for many nodes, back to a kept one would close a circle and has to be left out.
    """
    waiting = [0] * len(walked.nodes)
    for following in walked.next:
        for node in following:
            waiting[node] += 1
    ready = [n for n, count in enumerate(waiting) if not count]
    rank: dict[int, float] = {}
    done = 0
    while done < len(ready):
        node = ready[done]
        rank.setdefault(group[node], float(done))
        done += 1
        for following_node in walked.next[node]:
            waiting[following_node] -= 1
            if not waiting[following_node]:
                ready.append(following_node)
    for its, vertex in hidden.items():
        if vertex.title.endswith("more nodes"):
            rank[its] = float("inf")
    return rank


def _runs(walked: Walked) -> list[list[int]]:
    """Return the stretches of nodes that have one edge in and one edge out, upper end first."""
    incoming = [0] * len(walked.nodes)
    for following in walked.next:
        for node in following:
            incoming[node] += 1
    for root in walked.roots:
        incoming[root] += 1
    single = [incoming[n] == 1 and len(walked.next[n]) == 1 for n in range(len(walked.nodes))]
    inside = [False] * len(walked.nodes)
    for node, following in enumerate(walked.next):
        if single[node] and single[following[0]]:
            inside[following[0]] = True
    runs = []
    for node in range(len(walked.nodes)):
        if not single[node] or inside[node]:
            continue
        run = [node]
        while single[walked.next[run[-1]][0]]:
            run.append(walked.next[run[-1]][0])
        if len(run) >= _RUN:
            runs.append(run)
    return runs


def _hidden(nodes: list[Any], what: str) -> Vertex:
    kinds = Counter(node.name() for node in nodes).most_common()
    lines = [f"{count:,} × {kind}" for kind, count in kinds[:3]]
    if len(kinds) > 3:
        lines.append(f"and {len(kinds) - 3} other kinds")
    return Vertex("hidden", f"{len(nodes):,} {what}", lines)
