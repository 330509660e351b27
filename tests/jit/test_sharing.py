"""Inputs that share memory: one tensor twice, views, overlapping views; traced and compiled.

What a function was traced or compiled with must not matter for what it is called with. Results, the
memory of the inputs afterwards and the gradients are those of the function itself, and PyTorch's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import toytorch as tt
from tests.oracle import torch

KINDS = ("same", "detached", "view", "overlapping", "distinct")
FUNCTIONS: dict[str, Callable[..., Any]] = {}


def function(f: Callable[..., Any]) -> Callable[..., Any]:
    FUNCTIONS[f.__name__] = f
    return f


@function
def plain(x: Any, y: Any) -> Any:
    return x * 2 + y * 10


@function
def product(x: Any, y: Any) -> Any:
    a = x * y
    return a * x, a + y


@function
def returned(x: Any, y: Any) -> Any:
    return x, y * 2, y


@function
def first_written(x: Any, y: Any) -> Any:
    a = x * 2 + y
    x.add_(1)
    return a + x * 2 + y * 3


@function
def second_written(x: Any, y: Any) -> Any:
    a = x * 2
    y.mul_(3)
    return a + x * 2, y


@function
def both_written(x: Any, y: Any) -> Any:
    x += 1
    a = y * 2
    y *= 2
    return a + y * 2 + x, x


@function
def part_written(x: Any, y: Any) -> Any:
    a = y * 2
    x[0].add_(1)
    return a + y * 2 + x


@function
def set_by_other(x: Any, y: Any) -> Any:
    a = x + y
    x.copy_(a)
    return y * 2 + a * x


def given(m: Any, kind: str, layout: str, shape: tuple[int, ...], dtype: str, grad: bool) -> Any:
    """A leaf, the memory that both arguments may show, and the arguments."""
    rows, *rest = shape
    rows += kind == "overlapping"
    size = (rows, *rest)
    n = 1
    for k in size:
        n *= k
    made = [(m.arange(n) % 7 + 1 + i).to(getattr(m, dtype)).reshape(size) for i in range(2)]
    if layout == "transposed":
        made = [t.transpose(0, -1).contiguous().transpose(0, -1) for t in made]
    if layout == "expanded":
        made = [t[..., :1].contiguous() for t in made]
    leaves = [t.requires_grad_(grad) for t in made]
    x, other = (t * 1 if grad else t for t in leaves)  # what is no leaf may be written to
    if layout == "expanded":
        x, other = x.expand(size), other.expand(size)
    y = {
        "same": lambda: x,
        "detached": lambda: x.detach(),
        "view": lambda: x.view_as(x),
        "overlapping": lambda: x[1:],
        "distinct": lambda: other,
    }[kind]()
    return leaves, x, (x[:-1] if kind == "overlapping" else x, y)


def outcome(m: Any, f: Callable[..., Any], *how: Any) -> Any:
    """Everything that can be seen of a call: values, gradients, memory, which result is which."""
    leaves, memory, args = given(m, *how)
    try:
        out = f(*args)
        results = out if isinstance(out, tuple) else (out,)
        seen = [r.tolist() for r in results] + [memory.tolist(), args[1].tolist()]
        seen += [[r is a for a in args] for r in results]
        needs = [r.requires_grad for r in (*results, *args)]
        if any(needs[: len(results)]):
            sum((r * (i + 2)).sum() for i, r in enumerate(results)).backward()
    except RuntimeError as error:
        _, _, said = str(error).rpartition("\nRuntimeError: ")  # of a trace, below where it failed
        return "RuntimeError", said.split(":")[0][:40]
    return seen, needs, [None if t.grad is None else t.grad.tolist() for t in leaves]


LAYOUTS = (
    ("plain", (3, 2), "float32"),
    ("plain", (4,), "float64"),
    ("transposed", (3, 4), "float32"),
    ("expanded", (2, 3), "float32"),
    ("plain", (3,), "int64"),
)


@pytest.mark.parametrize("example", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("way", ["trace", "compile"])
def test_arguments(way: str, name: str, example: str) -> None:
    f = FUNCTIONS[name]
    made: Any = None
    if way == "trace":
        made = tt.jit.trace(f, given(tt, example, *LAYOUTS[0], False)[2], check_trace=False)
    for layout in LAYOUTS:
        if way == "compile":
            made = tt.compile(f)
            outcome(tt, made, example, *layout, False)
        for kind in KINDS:
            for grad in (False, True)[: 1 + (layout[2] != "int64")]:
                how = kind, *layout, grad
                wanted = outcome(torch, f, *how)
                assert outcome(tt, f, *how) == wanted, ("eager", *how)
                for turn in range(2):
                    assert outcome(tt, made, *how) == wanted, (turn, *how)


@pytest.mark.parametrize("example", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_examples_that_require_gradients(name: str, example: str) -> None:
    f, layout = FUNCTIONS[name], LAYOUTS[0]
    try:
        made = tt.jit.trace(f, given(tt, example, *layout, True)[2], check_trace=False)
    except RuntimeError:
        assert outcome(torch, f, example, *layout, True)[0] == "RuntimeError"
        return
    for kind in KINDS:
        for grad in (False, True):
            wanted = outcome(torch, f, kind, *layout, grad)
            assert outcome(tt, made, kind, *layout, grad) == wanted, (kind, grad)


def nested(pair: Any, more: Any) -> Any:
    """The same tensor inside containers, and written to."""
    a = pair[0] * 2
    more["k"].add_(1)
    return a + pair[0] + pair[1] + more["k"]


@pytest.mark.parametrize("way", ["trace", "compile"])
@pytest.mark.parametrize("example", [(0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)])
def test_containers(way: str, example: tuple[int, ...]) -> None:
    def arguments(m: Any, places: tuple[int, ...], size: int) -> Any:
        t = [m.arange(size) * (i + 1.0) for i in range(3)]
        a, b, c = (t[i] for i in places)
        return (a, b), {"k": c}

    made = (
        tt.jit.trace(nested, arguments(tt, example, 3), check_trace=False)
        if (way == "trace")
        else tt.compile(nested)
    )
    for size in (3, 4):
        made(*arguments(tt, example, size))
        for places in ((0, 0, 0), (0, 0, 1), (0, 1, 0), (0, 1, 1), (0, 1, 2)):
            wanted, args = nested(*arguments(torch, places, size)), arguments(tt, places, size)
            assert made(*args).tolist() == wanted.tolist()


class Tied(tt.nn.Module):
    """Two layers with one weight, a buffer that counts, and one that is returned."""

    steps: tt.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.first = tt.nn.Linear(3, 3)
        self.second = tt.nn.Linear(3, 3, bias=False)
        self.second.weight = self.first.weight
        self.register_buffer("steps", tt.zeros(3))

    def forward(self, x: tt.Tensor) -> tt.Tensor:
        self.steps.add_(1)
        return self.second(self.first(x).tanh()) * self.steps


@pytest.mark.parametrize("example", ["weight", "steps", "other"])
@pytest.mark.parametrize("way", ["trace", "compile"])
def test_parameters_and_buffers_as_arguments(way: str, example: str) -> None:
    def argument(net: Tied, what: str, rows: int) -> Any:
        return {
            "weight": net.first.weight,
            "steps": net.steps.expand(3, 3),
            "other": tt.arange(3.0 * rows).reshape(rows, 3).requires_grad_(),
        }[what]

    def seen(call: Any, net: Tied, what: str, rows: int) -> Any:
        net.zero_grad()
        x = argument(net, what, rows)
        out = call(x)
        out.square().sum().backward()
        return (
            out.detach(),
            net.steps.clone(),
            *(p.grad for p in net.parameters()),
            *([x.grad] if what == "other" else []),
        )

    tt.manual_seed(0)
    net = Tied()
    made: Any = (
        tt.jit.trace(net, argument(net, example, 3), check_trace=False)
        if (way == "trace")
        else tt.compile(net)
    )
    for what in (example, "other", "weight", "steps", example):
        for rows in (3, 5):
            before = net.steps.clone()
            wanted = [t.clone() for t in seen(net, net, what, rows)]
            net.steps.copy_(before)
            for a, b in zip(wanted, seen(made, net, what, rows), strict=True):
                assert tt.allclose(a, b, atol=1e-5), (what, rows)


W = tt.full((3,), 2.0)


def test_a_global_as_an_argument() -> None:
    def with_global(x: Any, y: Any) -> Any:
        return x * W + y

    x, y = tt.ones(3), tt.zeros(3)
    for first in ((W, y), (x, W), (W, W), (x, y)):
        for made in (tt.compile(with_global), tt.jit.trace(with_global, first, check_trace=False)):
            for args in (first, (x, y), (W, y), (x, W), (W, W), (3 * x, 4 * x), first):
                assert made(*args).tolist() == with_global(*args).tolist()


def test_a_global_and_what_detach_gave_of_it() -> None:
    w = tt.full((3,), 2.0, requires_grad=True)
    held, data = w.detach(), w.data
    for f in (
        lambda x: (x * w * held).sum(),
        lambda x: (held * w * x * data).sum(),
        lambda x: (x * w).sum() + (x * held).sum(),
    ):
        made, grads = tt.compile(f), []
        for call in (f, made, made, made):
            w.grad = None
            call(tt.ones(3)).backward()
            grads.append(w.grad.tolist())
            assert held._array is w._array
        assert grads == [grads[0]] * 4
    made = tt.compile(lambda x: (x * w).sum())
    for x, wanted in ((w, 4), (held, 2), (tt.ones(3), 1), (w, 4), (held, 2)):
        w.grad = None
        made(x).backward()
        assert w.grad.tolist() == [wanted] * 3


@pytest.mark.filterwarnings("ignore::toytorch.jit.TracerWarning")
def test_a_trace_for_a_new_shape_does_nothing_twice() -> None:
    """It runs the function on copies; the call itself comes after it."""

    def drawn(x: Any) -> Any:
        return x.add_(1) + tt.rand_like(x)

    made = tt.jit.trace(drawn, tt.zeros(2), check_trace=False)
    for size in (2, 3, 4):
        x, y = tt.zeros(size), tt.zeros(size)
        tt.manual_seed(size)
        wanted = drawn(x)
        tt.manual_seed(size)
        assert made(y).tolist() == wanted.tolist() and y.tolist() == x.tolist() == [1] * size
    norm = tt.nn.BatchNorm1d(2)
    made = tt.jit.trace(norm, tt.rand(4, 2))
    for rows in (4, 5, 6):
        before = [b.clone() for b in norm.buffers()]
        x = tt.rand(rows, 2)
        norm(x)
        wanted = [b.clone() for b in norm.buffers()]
        for b, value in zip(norm.buffers(), before):
            b.copy_(value)
        made(x)
        assert all(map(tt.allclose, norm.buffers(), wanted))
