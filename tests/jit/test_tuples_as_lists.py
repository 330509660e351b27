"""Tuples where scripts want lists, names that stand for tensors, tables of objects."""

from __future__ import annotations

from typing import Any

import pytest

from tests.oracle import torch, tt

pytestmark = pytest.mark.filterwarnings("ignore")

SOURCE = """
def shape_of_path(x):
    return (x.shape[0],) + (1,) * (x.ndim - 1)

def repeated(n: int):
    return (1, 2) * n, [3] * n

def same(x):
    return (2, 3) == x.shape, [2, 3] == (2, 3), (2, 3) != x.shape

def assigned(size: List[int]):
    if len(size) == 1:
        size = (size[0], size[0])
    return size

def assigned_unless_given(size: Optional[List[int]] = None):
    if size is None:
        size = 2, 3
    return size[0] + size[1], size

def kinds_are_numbers(x):
    layout: Optional[int] = None
    if x.dim() > 0:
        layout = x.layout
    return 1 if layout is None else 2
"""
CALLS = {
    "shape_of_path": lambda t: (t.ones(4, 2, 3),),
    "repeated": lambda t: (2,),
    "same": lambda t: (t.ones(2, 3),),
    "assigned": lambda t: ([3],),
    "assigned_unless_given": lambda t: (),
    "kinds_are_numbers": lambda t: (t.ones(2),),
}


def scripted(root: Any, tmp_path: Any, name: str) -> Any:
    """A function of a file of its own, as scripts read it."""
    path = tmp_path / f"{root.__name__}_tuples.py"
    path.write_text(f"from typing import List, Optional\n{SOURCE}")
    space: dict[str, Any] = {"__name__": "tuples"}
    exec(compile(path.read_text(), str(path), "exec"), space)
    return root.jit.script(space[name])


@pytest.mark.parametrize("name", CALLS)
def test_a_tuple_of_one_type_is_a_list(name: str, tmp_path: Any) -> None:
    want, got = (scripted(r, tmp_path, name)(*CALLS[name](r)) for r in (torch, tt))
    assert got == want


class Silent(tuple[int, int]):
    """A tuple that tells no length."""

    def __len__(self) -> int:
        raise NotImplementedError  # what the test is about: e3nn's tuples refuse it so


def test_a_tuple_without_a_length() -> None:
    class Layer(tt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.pairs = [Silent((1, 2)), Silent((3, 4))]

        def forward(self, x: tt.Tensor) -> Any:
            for a, b in self.pairs:
                x = x * a + b
            return x

    assert tt.jit.script(Layer())(tt.tensor(1)).item() == 13


class Recipe:
    """What a layer looks up."""

    def __init__(self, sizes: list[int], names: dict[str, int]) -> None:
        self.sizes = sizes
        self.names = names


def test_a_table_of_objects() -> None:
    class Layer(tt.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.recipes = {2: Recipe([3, 2], {}), 1: Recipe([], {})}

        def forward(self, x: tt.Tensor) -> tt.Tensor:
            return x.reshape(self.recipes[x.ndim].sizes)

    assert tt.jit.script(Layer())(tt.ones(2, 3)).shape == (3, 2)
