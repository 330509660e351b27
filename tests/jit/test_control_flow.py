"""Branches and loops in compiled functions: decided for a kind of inputs, or run as written."""

from __future__ import annotations

from typing import Any, List, Tuple  # noqa: UP035  # scripts are written with these names

import pytest

import toytorch as torch
from toytorch.jit import executor, explain, specialise


def by_numbers(x: torch.Tensor, n: int, scale: float) -> Tuple[List[torch.Tensor], int]:  # noqa: UP006
    """Loops and branches on numbers, results in a list and a tuple."""
    kept: List[torch.Tensor] = []  # noqa: UP006
    for i in range(n):
        if i % 2 == 0:
            x = x * scale + 1
        else:
            x = x.tanh()
        kept.append(x.sum())
    while x.dim() > 1:
        x = x.sum(0)
    kept.append(x)
    return kept, n * 2


def by_elements(x: torch.Tensor) -> torch.Tensor:
    """A branch on what the tensor holds."""
    if bool(x.sum() > 0):
        return x * 2
    return x - 1


def writes(x: torch.Tensor, n: int) -> torch.Tensor:
    """A loop that writes into a new tensor."""
    y = torch.zeros(n, 3)
    for i in range(n):
        y[i] = x * i
    return y


@pytest.mark.parametrize("n", [0, 1, 4])
def test_decided_for_numbers_and_shapes(n: int) -> None:
    scripted = torch.jit.script(by_numbers)
    for shape in ((3,), (2, 3)):
        x, y = (
            torch.linspace(-1, 1, 6)[: n_of(shape)].reshape(shape).requires_grad_()
            for _ in range(2)
        )
        wanted, twice = by_numbers(x, n, 0.5)
        found, number = scripted(y, n, 0.5)
        assert isinstance(found, list) and number == twice == 2 * n
        assert len(found) == len(wanted) == n + 1
        for a, b in zip(wanted, found):
            assert torch.allclose(a, b)
        sum(t.sum() for t in wanted).backward()
        sum(t.sum() for t in found).backward()
        assert torch.allclose(x.grad, y.grad)
        assert "one generated function" in explain(scripted, y, n, 0.5)
        assert scripted(y, n, 0.5)[0] is not found  # a new list at every call


def n_of(shape: tuple[int, ...]) -> int:
    """How many elements a shape holds."""
    return shape[0] * (shape[1] if len(shape) > 1 else 1)


def test_second_derivatives_of_nested_results() -> None:
    scripted = torch.jit.script(by_numbers)
    x = torch.tensor([0.3, -0.2], dtype=torch.float64, requires_grad=True)

    def first(f: Any) -> Any:
        (grad,) = torch.autograd.grad(f(x, 2, 0.5)[0][1], x, create_graph=True)
        return torch.autograd.grad(grad.sum(), x)[0]

    assert torch.allclose(first(scripted), first(by_numbers))


def test_branches_on_elements_run_as_written() -> None:
    scripted = torch.jit.script(by_elements)
    assert scripted(torch.ones(2)).tolist() == [2, 2]
    assert scripted(-torch.ones(2)).tolist() == [-2, -2]
    assert "aten::Bool.Tensor makes the result depend on values" in explain(scripted, torch.ones(2))


def test_writes_in_a_loop() -> None:
    scripted = torch.jit.script(writes)
    x = torch.arange(3.0)
    assert torch.equal(scripted(x, 4), writes(x, 4))
    assert torch.equal(scripted(x, 2), writes(x, 2))


def test_long_loops_and_many_numbers_run_as_written(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(specialise, "LONGEST", 50)
    monkeypatch.setattr(executor, "MOST", 8)

    @torch.jit.script
    def long(x: torch.Tensor, n: int) -> torch.Tensor:
        for _ in range(n):
            x = x.sin()
        return x

    x = torch.ones(2)
    assert "loops of more than 50 operations" in explain(long, x, 60)
    assert torch.equal(long(x, 51), long(long(x, 50), 1))
    for n in range(8):
        assert long(x, -n).tolist() == [1, 1]
    assert "more than 8 kinds of inputs" in explain(long, x, -1000)
