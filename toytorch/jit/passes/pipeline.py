"""The passes in their order, and the manager that checks after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toytorch.jit.check import check
from toytorch.jit.fuser.group import fuse
from toytorch.jit.ir import Graph, Pass
from toytorch.jit.passes.dce import eliminate_dead_code

SPECIALISED: list[Pass] = [eliminate_dead_code]  # of the joint graph
FUSING: list[Pass] = [fuse]  # of its forward and backward halves


def run(graph: Graph, passes: Sequence[Pass],
        shown: Callable[[str, Graph, Graph], None] | None = None) -> Graph:
    """The graph after all passes; `shown(name, before, after)` is told of each."""
    for apply in passes:
        name = getattr(apply, "__name__", repr(apply))
        after = check(apply(graph), name)
        if shown is not None:
            shown(name, graph, after)
        graph = after
    return graph


def optimise(graph: Graph) -> Graph:
    """A specialised graph as it is run."""
    return run(graph, SPECIALISED)
