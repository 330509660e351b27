"""What the compiler knows of ops from their records, and of composed functions from their facts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import toytorch as torch
from toytorch.jit import types
from toytorch.jit.fuser.lower import moved_axes
from toytorch.jit.ir import Graph, Node
from toytorch.loops import Unsupported

# A view of a tensor of some shape, its arguments, and for each dimension where it was (None: new).
MOVED = [
    ("permute", (2, 3, 4), ((2, 0, 1),), [2, 0, 1]),
    ("transpose", (2, 3, 4), (0, -1), [2, 1, 0]),
    ("t", (2, 3), (), [1, 0]),
    ("unsqueeze", (2, 3), (1,), [0, None, 1]),
    ("squeeze", (2, 1, 3), (None,), [0, 2]),
    ("squeeze", (2, 1, 3), (0,), [0, None, 2]),
    ("expand", (3, 1), ((2, 3, 4),), [None, 0, None]),
    ("view", (2, 3), ((2, 1, 3),), [0, None, 1]),
    ("alias", (2, 3), (), [0, 1]),
    ("slice", (2, 3), (1, 0, 3, 1), [0, 1]),
]
MORE = [  # views that do more than that
    ("view", (2, 3), ((3, 2),)),
    ("view", (2, 6), ((2, 2, 3),)),
    ("slice", (4, 3), (0, 1, 3, 1)),
    ("slice", (4, 1), (0, 0, 4, 4)),
    ("select", (2, 3), (0, 1)),
    ("diagonal", (3, 3), (0, 0, 1)),
    ("as_strided", (2, 3), ((2, 3), (3, 1), 0)),
    ("unfold", (4, 3), (0, 2, 1)),
]


def view_node(name: str, shape: tuple[int, ...], args: tuple[Any, ...]) -> Node:
    """The node of a view of ones."""
    graph, x = Graph(), torch.ones(shape)
    given = [a for a in args if a is not None]  # None stands for a dimension that was left out
    result = torch.ops.registry[name].function(x, *given)
    inputs = [graph.add_input(types.of(x)), *(graph.constant(a).output for a in args)]
    return graph.make(f"aten::{name}", inputs, [types.of(result)])


@pytest.mark.parametrize(("name", "shape", "args", "axes"), MOVED)
def test_where_the_dimensions_of_a_view_were(
    name: str, shape: tuple[int, ...], args: tuple[Any, ...], axes: list[int | None]
) -> None:
    found = moved_axes(view_node(name, shape, args))
    assert [d for d, n in zip(found, axes) if n is not None] == [
        None if shape[n] == 1 else n for n in axes if n is not None
    ]
    assert all(d is None for d, n in zip(found, axes) if n is None)


@pytest.mark.parametrize(("name", "shape", "args"), MORE)
def test_views_that_loops_do_not_follow(
    name: str, shape: tuple[int, ...], args: tuple[Any, ...]
) -> None:
    with pytest.raises(Unsupported):
        moved_axes(view_node(name, shape, args))


def equal(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if torch.equal(x, y):
        return x + 1
    return x - 1


def close(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if torch.allclose(x, y):
        return x + 1
    return x - 1


def is_nonzero(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    if (x * y).sum().is_nonzero():
        return x + 1
    return x - 1


def consecutive(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.unique_consecutive(x + y) * 2


@pytest.mark.parametrize("function", [equal, close, is_nonzero, consecutive])
def test_what_depends_on_elements_is_asked_in_every_run(function: Callable[..., Any]) -> None:
    scripted = torch.jit.script(function)
    ones, others = torch.ones(3), torch.tensor([1.0, 0.0, -2.0])
    for _ in range(3):
        for x, y in ((ones, ones), (ones, others), (ones, ones * 0)):
            assert scripted(x, y).tolist() == function(x, y).tolist()


def detached(x: torch.Tensor) -> torch.Tensor:
    y = x * 2
    z = y.detach()
    z.add_(1)
    return y * 3


def test_what_detach_gives_shares_memory() -> None:
    scripted, x = torch.jit.script(detached), torch.arange(3.0)
    for _ in range(3):
        assert scripted(x).tolist() == [3.0, 9.0, 15.0]


SOURCES = [
    "torch.max(x, 0)",
    "torch.max(x, x)",
    "torch.max(x)",
    "torch.std_mean(x)",
    "torch.linalg.lu(x)",
    "torch.unique(x, return_counts=True)",
    "torch.unique(x)",
    "torch.where(x > 0)",
    "torch.nonzero(x)",
    "torch.nonzero(x, as_tuple=True)",
    "torch.chunk(x, 2)",
    "torch.atleast_1d([x, x])",
    "torch.atleast_1d(x)",
]


@pytest.mark.parametrize("source", SOURCES)
def test_scripts_know_what_a_function_gives(source: str) -> None:
    """A tuple of tensors, a list of them, or one, as a call gives it."""
    x = torch.tensor([[2.0, 1.0], [0.0, 3.0]])
    unit = torch.jit.CompilationUnit(f"def f(x):\n    return {source}\n")
    made, expected = unit.f(x), eval(source, {"torch": torch, "x": x})
    kind = unit.f.graph.outputs[0].type
    if isinstance(expected, torch.Tensor):
        assert isinstance(kind, types.Tensor)
        assert made.tolist() == expected.tolist()
        return
    assert isinstance(kind, (types.Tuple, types.List))
    if isinstance(kind, types.Tuple):
        assert len(kind.elements) == len(expected)
    assert [t.tolist() for t in made] == [t.tolist() for t in expected]


class Normed(torch.nn.Module):
    """A convolution and `torch.batch_norm`, which takes weight and bias before the statistics."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = torch.nn.Conv1d(2, 3, 2)
        self.mean, self.variance = torch.arange(3.0), torch.arange(3.0) + 1
        self.scale, self.shift = torch.arange(3.0) - 1, torch.arange(3.0) + 2

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.batch_norm(
            self.conv(x),
            self.scale,
            self.shift,
            self.mean,
            self.variance,
            False,
            0.1,
            1e-5,
            False,
        )


def test_a_batch_norm_is_folded_by_the_names_of_its_arguments() -> None:
    torch.manual_seed(0)
    net, x = Normed().eval(), torch.randn(2, 2, 5)
    frozen = torch.jit.freeze(torch.jit.script(net))
    assert not any("batch_norm" in n.kind for n in frozen.graph.walk())
    assert torch.allclose(frozen(x), net(x), atol=1e-6)
