"""What the tests of passes share: graphs from text or functions, and one pass held to eager."""

from __future__ import annotations

import warnings
from typing import Any

import toytorch as torch
from tests.jit.programs import Program, fresh, outcome, program, same, trace
from toytorch.jit import interpreter
from toytorch.jit.check import check
from toytorch.jit.passes.algebra import simplify_algebra
from toytorch.jit.passes.batch_mm import batch_matrix_products
from toytorch.jit.passes.constant import propagate_constants
from toytorch.jit.passes.cse import eliminate_common_subexpressions
from toytorch.jit.passes.dce import eliminate_dead_code
from toytorch.jit.passes.inline import inline
from toytorch.jit.passes.peephole import peephole
from toytorch.jit.passes.unroll import unroll
from toytorch.jit.specialise import Untraceable, specialise

PASSES = [
    inline,
    eliminate_dead_code,
    propagate_constants,
    eliminate_common_subexpressions,
    simplify_algebra,
    peephole,
    unroll,
    batch_matrix_products,
]


def everything(graph: Any) -> Any:
    """All passes, one after the other."""
    for apply in PASSES:
        graph = check(apply(graph), apply.__name__)
    return graph


def differences(seed: int) -> str:
    """Where a pass changes what a random program gives; nothing where none does."""
    p = program(seed)
    if p is None:
        return ""
    try:
        wanted = outcome(p.function, p.leaves)
        graph = trace(p).graph
        if same(wanted, outcome(lambda *args: interpreter.run(graph, args), p.leaves)):
            return ""  # what a trace cannot follow: nothing a pass could be held to
    except (RuntimeError, UnboundLocalError):  # eager itself refuses it
        return ""
    for apply in [*PASSES, everything]:
        before = str(graph)
        made = check(apply(graph), apply.__name__)
        if str(graph) != before:
            return f"{apply.__name__} changed its input"
        found = outcome(lambda *args, g=made: interpreter.run(g, args), p.leaves)
        if text := same(wanted, found):
            return f"program {seed}, after {apply.__name__}: {text}\n{p.text}\n{graph}\n{made}"
    return joint_differences(p, graph, seed)


def joint_differences(p: Program, graph: Any, seed: int) -> str:
    """The same for the graph of the forward and the backward pass."""

    def given() -> list[Any]:
        return [x * 1 if x.requires_grad else x for x in fresh(p.leaves)]

    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            whole = specialise(graph, given(), True).graph
    except (Untraceable, NotImplementedError):
        return ""
    wanted = run_joint(whole, given())
    for apply in [*PASSES, everything]:
        made = check(apply(whole), apply.__name__)
        if text := same(wanted, run_joint(made, given())):
            return (
                f"program {seed}, joint graph after {apply.__name__}: {text}\n{p.text}\n"
                f"{whole}\n{made}"
            )
    return ""


def run_joint(graph: Any, inputs: list[Any]) -> list[Any]:
    """The outputs, and the inputs as they are afterwards, for gradients of ones."""
    seeds = [torch.ones(v.type.shape, dtype=v.type.dtype) for v in graph.inputs[len(inputs) :]]
    torch.manual_seed(0)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = interpreter.run(graph, [x.detach() for x in inputs] + seeds)
    results = results if isinstance(results, tuple) else (results,)
    return [r.detach() for r in (*results, *inputs) if isinstance(r, torch.Tensor)]
