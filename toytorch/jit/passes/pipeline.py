"""The passes in their order, and the manager that checks after each."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from toytorch.jit.check import check
from toytorch.jit.fuser.group import fuse
from toytorch.jit.ir import Graph, Pass
from toytorch.jit.passes.algebra import simplify_algebra
from toytorch.jit.passes.batch_mm import batch_matrix_products
from toytorch.jit.passes.constant import propagate_constants
from toytorch.jit.passes.cse import eliminate_common_subexpressions
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.peephole import peephole, peephole_any_shape
from toytorch.jit.passes.unroll import unroll

GENERAL: list[Pass] = [  # of a graph as it was written, which any shape may come to
    propagate_constants,
    unroll,
    peephole_any_shape,
    propagate_constants,
    eliminate_common_subexpressions,
    eliminate_dead_code,
]
SPECIALISED: list[Pass] = [  # of the joint graph
    eliminate_dead_code,
    peephole,
    propagate_constants,
    simplify_algebra,
    eliminate_common_subexpressions,
    eliminate_dead_code,
]
FUSING: list[Pass] = [batch_matrix_products, fuse]  # of the forward graph and the backward graph


def stages(passes: Sequence[Pass] | None) -> tuple[Sequence[Pass], Sequence[Pass]]:
    """Passes for the joint graph, and those for the forward and backward graphs made of it.

    Of passes that a user chose (None: all), what makes kernels or moves products is of the second
    kind.
    """
    if passes is None:
        return SPECIALISED, FUSING
    return [p for p in passes if p not in FUSING], [p for p in passes if p in FUSING]


def run(
    graph: Graph, passes: Sequence[Pass], shown: Callable[[str, Graph, Graph], None] | None = None
) -> Graph:
    """The graph after all passes; `shown(name, before, after)` is told of each."""
    for apply in passes:
        name = getattr(apply, "__name__", repr(apply))
        after = check(apply(graph), name)
        if shown is not None:
            shown(name, graph, after)
        graph = after
    return graph
