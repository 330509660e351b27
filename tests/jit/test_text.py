"""Graphs as text and back: what is printed is read to a graph that prints the same and runs."""

from __future__ import annotations

import io
from typing import Any

import pytest

import toytorch as torch
from tests.jit.programs import interpreted, outcome, program, same, trace
from tests.jit.script.corpus import CASES, carried
from tests.jit.script.run import outcome as scripted_outcome
from tests.jit.script.run import same as scripted_same
from toytorch.jit.check import GraphError, check
from toytorch.jit.read import read
from toytorch.jit.read_parts import GraphSyntaxError


def through_file(compiled: Any) -> Any:
    """A compiled function, saved and loaded; it must print the same."""
    file = io.BytesIO()
    torch.jit.save(compiled, file)
    made = torch.jit.load(file)
    assert str(made.graph) == str(compiled.graph)
    return made


@pytest.mark.parametrize("seed", range(400, 500))
def test_traced(seed: int) -> None:
    p = program(seed)
    if p is None:
        return  # PyTorch refuses this program
    try:
        wanted = outcome(p.function, p.leaves)
        traced = trace(p)
        if same(wanted, outcome(interpreted(traced), p.leaves)):
            return  # what a trace cannot follow
    except (RuntimeError, UnboundLocalError):
        return  # eager itself refuses it
    made = through_file(traced)
    assert not same(wanted, outcome(interpreted(made), p.leaves))


def test_optimised_with_groups_and_gradients() -> None:
    def f(x: Any, w: Any) -> Any:
        return ((x @ w).tanh() * 2 + x.sum(1, keepdim=True)).exp().mean()

    x, w = torch.ones(3, 3, requires_grad=True), torch.ones(3, 3)
    graph = torch.jit.trace(f, (x, w)).graph_for(x, w)
    assert "prim::FusionGroup" in str(graph)
    made = check(read(str(graph), graph.name), "read")
    assert str(made) == str(graph)


@pytest.mark.parametrize("name", sorted(CASES))
def test_scripted(name: str) -> None:
    case = CASES[name]
    scripted = torch.jit.script(case.function)
    if name in ("scripted_class", "list_of_objects"):  # their classes are Python's
        with pytest.raises(RuntimeError, match="Could not export Python function call 'Counter'"):
            through_file(scripted)
        return
    made = through_file(scripted)
    for call in case.calls:
        wanted, found = (scripted_outcome(f, carried(call, torch), torch) for f in (scripted, made))
        assert scripted_same(wanted, found)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "begins with"),
        ("graph(%x : Tensor):\n  return (%y)\n", "y"),
        ("graph(%x : Tensor):\n  %1 : Tensor = aten::exp(%x\n  return (%1)\n", "line 2"),
        (
            "graph(%x : Tensor):\n  %1 : int = prim::Constant[value=open('a')]()\n  return (%1)\n",
            "line 2",
        ),
        ("graph(%x : Tensor):\n  %1 : Tensr = aten::exp(%x)\n  return (%1)\n", "Tensr"),
        ("graph(%x : Tensor):\n  %x : Tensor = aten::exp(%x)\n  return (%x)\n", "x"),
        ("graph(%x : Tensor):\n  %1 : Tensor = aten::exp(%x)\n", "ends inside"),
    ],
)
def test_wrong_text(text: str, message: str) -> None:
    with pytest.raises(GraphSyntaxError, match=message):
        read(text)


def test_an_unknown_operation_is_refused_when_checked() -> None:
    made = read("graph(%x : Tensor):\n  %1 : Tensor = aten::no_such(%x)\n  return (%1)\n")
    with pytest.raises(GraphError, match="there is no op behind aten::no_such"):
        check(made)
