"""A compiled function does what the function does: nothing twice, and nothing is left out."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import toytorch as torch
from toytorch import nn


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.calls, self.log = 0, []  # type: ignore[var-annotated]
        self.hidden = torch.zeros(3)
        self.register_buffer("mean", torch.zeros(3))


class Counts(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return x * self.calls


class Remembers(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.hidden = torch.tanh(x + self.hidden)
        return self.hidden * 2


class Logs(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.log.append(x.detach())
        return x + len(self.log)


class Averages(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean.mul_(0.9).add_(x.detach(), alpha=0.1)
        return x - self.mean


class Looks(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.mean += x
        self.log.append(1)
        if self.mean.sum() > 1:  # a graph would end here
            self.mean -= 1
        return self.mean + len(self.log)


class Fills(Counter):
    table: Any = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.table is None:
            self.table = torch.arange(3.0)
        return x + self.table


class Draws(Counter):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        out = nn.functional.dropout(x, 0.5) + torch.rand(3)
        return out if random.random() < 0.5 else out * float(np.random.rand())


class Scales(Counter):
    def forward(self, x: torch.Tensor) -> Any:
        return {"x": x.mul(2), "size": x.shape, "none": None, "n": (x.size(0), True)}


CASES: list[type[Counter]] = [Counts, Remembers, Logs, Averages, Looks, Fills, Draws, Scales]


@pytest.mark.parametrize("case", CASES)
def test_modules_with_effects(case: Callable[[], Counter]) -> None:
    states = []
    for compiled in (True, False):
        torch.manual_seed(0)
        random.seed(0)
        np.random.seed(0)
        module = case()
        run = torch.compile(module) if compiled else module
        seen = [run(torch.full((3,), 0.2 * i)) for i in range(6)]
        states.append((seen, module.calls, module.log, module.hidden, module.mean))
    torch.testing.assert_close(*states)


def test_a_whole_graph_of_a_function_that_fills_a_cache() -> None:
    cache: dict[int, float] = {}

    @partial(torch.compile, fullgraph=True)
    def f(x: torch.Tensor) -> torch.Tensor:
        return x + cache.setdefault(x.dim(), 2.0)

    for x in (torch.ones(2), torch.ones(2), torch.ones(2, 2), torch.ones(2, 2)):
        assert torch.equal(f(x), x + 2)
    assert [g is not None for g in f.graphs.values()] == [True, True]


def test_writing_to_arguments_happens_once() -> None:
    f, x = torch.compile(lambda x: x.add_(1)), torch.zeros(2)
    for i in range(3):
        assert f(x) is x or torch.equal(f.function(x), x)
        x.fill_(i + 1)
    y = torch.zeros(2)
    f(y)
    assert y.tolist() == [1.0, 1.0]


def test_what_is_printed_is_printed_every_time(capsys: pytest.CaptureFixture[str]) -> None:
    @torch.compile
    def f(x: torch.Tensor) -> torch.Tensor:
        print("here")
        return x * 2

    for _ in range(3):
        f(torch.ones(2))
    assert capsys.readouterr().out == "here\n" * 3
    assert f.reason == "it prints"


def test_a_whole_step_of_training_inside() -> None:
    losses = []
    for compiled in (True, False):
        torch.manual_seed(0)
        net = nn.Linear(3, 1)
        rule = torch.optim.Adam(net.parameters(), lr=0.1)
        x = torch.randn(8, 3)

        def step(x: torch.Tensor, net: Any = net, rule: Any = rule) -> torch.Tensor:
            rule.zero_grad()
            loss = (net(x) - 1).square().mean()
            loss.backward()
            rule.step()
            return loss.detach()  # type: ignore[no-any-return]

        run = torch.compile(step) if compiled else step
        losses.append([run(x).item() for _ in range(5)])
    assert losses[0] == losses[1] and losses[0][-1] < losses[0][0]
    with pytest.raises(RuntimeError, match="gradients into leaves"):
        torch.compile(step, fullgraph=True)(x)


def test_arguments_over_the_same_memory() -> None:
    f, x, y = torch.compile(lambda a, b: a * b - b), torch.randn(3), torch.randn(3)
    x.requires_grad_()
    for pair in ((x, x), (x, y), (x, x.detach()), (x, y), (x, x)):
        x.grad = None
        f(*pair).sum().backward()
        got, x.grad = x.grad, None
        f.function(*pair).sum().backward()
        torch.testing.assert_close(got, x.grad)


def test_errors_of_the_function_are_its_own() -> None:
    calls = []

    def f(x: torch.Tensor) -> torch.Tensor:
        calls.append(1)
        return x @ torch.ones(3)

    with pytest.raises(RuntimeError, match="inconsistent tensor size"):
        torch.compile(f)(torch.ones(2))
    assert len(calls) == 1


WARNED = """
import warnings
import toytorch as torch

def f(x):
    warnings.warn("only once")
    return x.exp() * 2

g = torch.compile(f)
g(torch.ones(3)), g(torch.ones(3))
print(torch.jit.explain(g, torch.ones(3)))
"""


def test_a_warning_is_no_effect() -> None:
    """A function that is warned of something at its first call is compiled all the same."""
    ran = subprocess.run([sys.executable, "-c", WARNED], capture_output=True, text=True, check=True)
    assert ran.stderr.count("only once") >= 1
    assert "one generated function" in ran.stdout


def test_explain_wants_something_compiled() -> None:
    with pytest.raises(TypeError, match="compile it first"):
        torch.jit.explain(torch.exp, torch.ones(2))


@pytest.mark.filterwarnings("ignore:An output with one or more elements")
def test_arguments_with_another_layout_or_size_stay_the_same_objects() -> None:
    def squeezed(x: torch.Tensor) -> torch.Tensor:
        return x.squeeze_()

    def refilled(x: torch.Tensor) -> torch.Tensor:
        return torch.vstack([torch.ones(3), torch.ones(3)], out=x)

    for function in (squeezed, refilled):
        compiled, x = torch.compile(function), torch.ones(3)
        for _ in range(4):
            assert compiled(x) is x
    assert x.shape == (2, 3)


def test_out_without_derivative_in_compiled_and_traced_functions() -> None:
    def rounded(x: torch.Tensor) -> torch.Tensor:
        y = x * 1
        return torch.conj_physical(y, out=y)

    compiled, x = torch.compile(rounded), torch.ones(2, requires_grad=True)
    assert [compiled(x).requires_grad for _ in range(3)] == [True] * 3

    def over(x: torch.Tensor) -> torch.Tensor:
        return torch.alias_copy(x, out=x)

    with pytest.raises(RuntimeError, match="don't support automatic differentiation"):
        torch.jit.trace(over, (x,))
    with pytest.raises(TypeError, match="unexpected keyword argument 'out'"):
        torch.compile(lambda x: torch.zeros_like(x, out=x))(torch.ones(2))
