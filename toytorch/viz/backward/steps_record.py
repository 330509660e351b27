"""Recording a backward pass: what ran, what it received, what it sent, what leaves held.

The record is plain numbers and strings. It is made through the engine's observer, on a graph that
is kept, and the leaves' gradients are put back afterwards.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from toytorch.autograd.engine import Engine, default
from toytorch.core.tensor import Tensor
from toytorch.facts.node import Node
from toytorch.viz.draw.text import number
from toytorch.viz.graph.graph_read import shape_text
from toytorch.viz.graph.graph_walk import Walked, walk

_FEW = 4  # gradients of up to so many elements are written out


@dataclass(slots=True)
class Edge:
    """An entry of `next_functions`: input number `port` of node `upper` comes from `lower`."""

    upper: int
    lower: int
    port: int


@dataclass(slots=True)
class Step:
    """One node's turn. `sent` maps edge numbers to gradients; a leaf sends none and has `old`
    and `new`, its `.grad` before and after."""

    node: int
    received: list[str]
    sent: dict[int, str] = field(default_factory=dict)
    old: str = ""
    new: str = ""


@dataclass(slots=True)
class Record:
    """A backward pass: its graph, the gradient it began with, and its steps in order."""

    walked: Walked
    edges: list[Edge]
    seed: str
    steps: list[Step]


def record(loss: Any, gradient: Any = None, *, engine: Any = None, limit: int = 64) -> Record:
    """Run backward from `loss` under an observer and return what happened.

    `engine` is the one to watch, by default the one in use: the pass keeps to its order and its way
    to accumulate. The graph is retained and every leaf's `.grad` is as before afterwards, also if
    the pass fails. Raises ValueError, before anything runs, for a graph of more than `limit` nodes
    or an engine with a `run` of its own, which no observer is told of.
    """
    parts = default if engine is None else engine
    if parts.run is not None:
        raise ValueError(
            "this engine runs the whole pass by its own function `run`, so there are no steps to"
            " watch: pass backward_steps() an engine with order= or accumulate= instead"
        )
    walked = walk([loss])
    if len(walked.nodes) > limit:
        raise ValueError(
            f"this graph has {len(walked.nodes):,} nodes, and a page with a step for each of them"
            f" would not be readable: step through a smaller computation, or pass limit="
            f"{len(walked.nodes)} to see it anyway"
        )
    at = {id(node): place for place, node in enumerate(walked.nodes)}
    edges = [
        Edge(upper, at[id(lower)], port)
        for upper, node in enumerate(walked.nodes)
        for port, (lower, _) in enumerate(node.next_functions)
        if lower is not None
    ]
    going = {(edge.upper, edge.port): e for e, edge in enumerate(edges)}
    held = {place: _held(node) for place, node in enumerate(walked.nodes)}
    steps: list[Step] = []

    def observe(node: Node | Tensor, grads_in: tuple[Any, ...], grads_out: tuple[Any, ...]) -> None:
        place = at[id(node)]
        step = Step(place, [brief(g) for g in grads_in if g is not None])
        for port, grad in enumerate(grads_out):
            if grad is not None and (place, port) in going:
                step.sent[going[place, port]] = brief(grad)
        if is_leaf(node):
            step.old, step.new = held[place], _held(node)
        steps.append(step)

    with undisturbed(walked.nodes):
        watched = Engine(order=parts.order, accumulate=parts.accumulate, observer=observe)
        loss.backward(gradient, retain_graph=True, engine=watched)
    seed = brief(gradient) if gradient is not None else number(1.0)
    return Record(walked, edges, seed, steps)


def is_leaf(node: Any) -> bool:
    """Return whether the node is an AccumulateGrad."""
    return getattr(node, "variable", None) is not None and not node.next_functions


def _held(node: Any) -> str:
    if not is_leaf(node):
        return ""
    return "none" if node.variable.grad is None else brief(node.variable.grad)


@contextmanager
def undisturbed(nodes: list[Any]) -> Iterator[None]:
    """Put every leaf's `.grad` back afterwards: the same object, never written to meanwhile."""
    leaves = [node.variable for node in nodes if is_leaf(node)]
    before = [leaf.grad for leaf in leaves]
    # tensors under retain_grad() are known only to their node, which fills them in by these hooks
    hooks = [found for node in nodes if (found := getattr(node, "hooks", None))]
    retained = [(found, found.pop("retain", None)) for found in hooks]
    try:
        for leaf, grad in zip(leaves, before, strict=True):
            if grad is not None:
                leaf.grad = grad.detach().clone()  # backward adds in place
        yield
    finally:
        for leaf, grad in zip(leaves, before, strict=True):
            leaf.grad = grad
        for found, keepers in retained:
            if keepers is not None:
                found["retain"] = keepers


def brief(tensor: Tensor) -> str:
    """Return a gradient in a few characters: its values if they are few, else shape and norm.

    Example:
        >>> brief(torch.tensor([1.0, 2.0])), brief(torch.ones(4, 25))
        ('[1., 2.]', '(4, 25) norm 10.')
    """
    flat = tensor.detach().reshape(-1)
    if int(tensor.numel()) <= _FEW:
        return _written(tensor.detach().tolist())
    norm = sum(abs(value) ** 2 for value in flat.tolist()) ** 0.5
    return f"{shape_text(tensor.shape)} norm {number(float(norm))}"


def _written(values: object) -> str:
    if isinstance(values, list):
        return f"[{', '.join(_written(value) for value in values)}]"
    return number(values)
