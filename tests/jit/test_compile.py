"""`toytorch.compile`: one graph for every kind of call, used again and again."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import Any

import pytest

import toytorch as torch
from toytorch.facts.pytree import tree_flatten


def pair(x: torch.Tensor, scale: float = 1.0, *, others: Any = ()) -> Any:
    out = x * scale
    for other in others:
        out = out + other
    return {"out": out, "twice": (out * 2,)}


def test_equal_calls_share_a_graph() -> None:
    f, x = torch.compile(pair), torch.randn(4)
    for _ in range(5):
        f(x)
        f(x, 2.0)
        f(x, others=[x, x])
    assert len(f.graphs) == 3


@pytest.mark.parametrize(
    "other",
    [
        (torch.randn(5),),
        (torch.randn(4).double(),),
        (torch.randn(4, requires_grad=True),),
        (torch.randn(4), 3.0),
    ],
    ids=["shape", "type", "gradient", "number"],
)
def test_other_kinds_of_calls_have_their_own(other: Any) -> None:
    f = torch.compile(pair)
    f(torch.randn(4))
    got, expected = f(*other), pair(*other)
    assert len(f.graphs) == 2
    torch.testing.assert_close(got, expected)


def test_a_module_has_one_graph_for_training_and_one_for_evaluation() -> None:
    module = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Dropout(0.5))
    compiled, x = torch.compile(module), torch.randn(2, 4)
    for _ in range(3):
        compiled.train()
        compiled(x)
        compiled.eval()
        torch.testing.assert_close(compiled(x), module(x))
    assert len(compiled.forward.graphs) == 2


def test_updated_parameters_are_seen() -> None:
    module = torch.nn.Linear(3, 1)
    compiled, x = torch.compile(module), torch.randn(2, 3)
    rule = torch.optim.SGD(compiled.parameters(), lr=0.1)
    losses = []
    for _ in range(4):
        rule.zero_grad()
        loss = compiled(x).square().mean()
        loss.backward()
        rule.step()
        losses.append(loss.item())
    assert sorted(losses, reverse=True) == losses and len(set(losses)) == 4
    assert len(compiled.forward.graphs) == 1


@pytest.mark.parametrize(
    "tree", [(1, [2, {"a": 3}]), {}, ((), {}), defaultdict(list, a=1)], ids=str
)
def test_structures_of_the_same_shape_are_equal_and_hash_alike(tree: Any) -> None:
    one, two = tree_flatten(tree)[1], tree_flatten(tree)[1]
    assert one == two and hash(one) == hash(two)
    assert one != tree_flatten([tree])[1]


def test_calls_of_ever_new_kinds_run_as_they_are_in_the_end() -> None:
    f = torch.compile(lambda x: x * 2 + 1)
    for n in range(40):
        torch.testing.assert_close(f(torch.ones(n)), torch.full((n,), 3.0))
    assert len(f.graphs) == sys.modules["toytorch.jit.compile"].LIMIT and "more than" in f.reason
