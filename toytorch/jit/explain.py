"""`jit.explain`: what became of a function, in words."""

from __future__ import annotations

from typing import Any

from toytorch.facts.pytree import tree_leaves
from toytorch.jit.compile import Compiled, OptimizedModule
from toytorch.jit.plan import Stepwise


def explain(f: Any, *inputs: Any) -> str:
    """How `f` runs for inputs like these: fused kernels, single ops, or node by node, and why.

    >>> f = torch.jit.trace(lambda x: x[x > 0], torch.ones(2))
    >>> print(torch.jit.explain(f, torch.ones(2)))
    forward runs node by node: aten::nonzero has a result whose shape depends on values

    Raises TypeError for a function that is not compiled.
    """
    function, tensors = graph_of(f, inputs)
    if function is None:
        return f"{f.__name__} runs as it is: {f.reason}"
    plan = function.executor.plan_for(tensors)
    if isinstance(plan, Stepwise):
        return f"{function.name} runs node by node: {plan.reason}"
    lines = [f"{function.name} runs as one generated function"]
    graphs = {"forward": plan.optimised}
    if plan.joint.tangents:
        graphs["backward"] = plan.backward_graph
    for name, graph in graphs.items():
        nodes = graph.nodes
        groups = [n for n in nodes if n.kind == "prim::FusionGroup"]
        for g in groups:
            inner = [
                n.kind[6:] for n in g.attributes["Subgraph"].nodes if n.kind.startswith("aten::")
            ]
            lines.append(f"  {name}: {len(inner)} ops in one kernel: {', '.join(inner)}")
        single = [n.kind[6:] for n in nodes if n.kind.startswith("aten::")]
        if single:
            lines.append(f"  {name}: {', '.join(single)} as NumPy calls")
    if plan.joint.tangents:
        lines.append(f"  saved for the backward pass: {len(plan.partition.saved)} tensors")
    return "\n".join(lines)


def graph_of(f: object, inputs: tuple[Any, ...]) -> tuple[Any, list[Any]]:
    """The function with a graph behind what was traced, scripted or compiled, and its inputs."""
    if isinstance(f, OptimizedModule):
        f = f.forward
    if isinstance(f, Compiled):
        recorded = f.recorded(inputs, {})
        if recorded is None:
            return (None, [])
        return (recorded.function, recorded.inputs(tree_leaves((inputs, {}))))
    function = f._methods["forward"] if hasattr(f, "_methods") else f
    if not hasattr(function, "flat"):
        raise TypeError(
            "explain() expects what torch.jit.trace, torch.jit.script or torch.compile made, got "
            f"{type(f).__name__}; compile it first: explain(torch.compile(f), ...)"
        )
    return function, function.flat(inputs)
