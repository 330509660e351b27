"""The functions that have to become one kernel: they do, and give what eager gives."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import toytorch as torch

F = torch.nn.functional


def iou(x1: Any, y1: Any, w1: Any, h1: Any, x2: Any, y2: Any, w2: Any, h2: Any) -> Any:
    left, top = torch.max(x1, x2), torch.max(y1, y2)
    width = torch.clamp(torch.min(x1 + w1, x2 + w2) - left, min=0)
    height = torch.clamp(torch.min(y1 + h1, y2 + h2) - top, min=0)
    common = width * height
    return common / torch.clamp(w1 * h1 + w2 * h2 - common, min=1e-5)


def squares(x: Any) -> Any:
    for _ in range(5):
        x = x * x
    return x


def lstm(gates: Any, c: Any) -> Any:
    i, f, g, o = gates.chunk(4, 1)
    c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
    return torch.sigmoid(o) * torch.tanh(c), c


def gelu(x: Any, bias: Any, residual: Any) -> Any:
    return F.gelu(x + bias) + residual


def layer_norm(x: Any, weight: Any, bias: Any) -> Any:
    mean = x.mean(-1, keepdim=True)
    variance = ((x - mean) ** 2).mean(-1, keepdim=True)
    return (x - mean) / torch.sqrt(variance + 1e-5) * weight + bias


def softmax(x: Any) -> Any:
    e = torch.exp(x - x.amax(1, keepdim=True))
    return e / e.sum(1, keepdim=True)


def adam(p: Any, g: Any, m: Any, v: Any) -> Any:
    m = 0.9 * m + 0.1 * g
    v = 0.999 * v + 0.001 * g * g
    return p - 1e-3 * (m / 0.19) / (torch.sqrt(v / 0.002) + 1e-8), m, v


MATRIX = (6, 40)
CASES: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "iou": (iou, [MATRIX] * 8),
    "squares": (squares, [MATRIX]),
    "lstm": (lstm, [(6, 40), (6, 10)]),
    "gelu": (gelu, [MATRIX, (40,), MATRIX]),
    "layer_norm": (layer_norm, [MATRIX, (40,), (40,)]),
    "softmax": (softmax, [MATRIX]),
    "adam": (adam, [MATRIX] * 4),
}


def values(shape: tuple[int, ...], seed: int, dtype: str = "float32") -> Any:
    rng = np.random.default_rng(seed)
    return torch.from_numpy(np.asarray(rng.random(shape) + 0.1, dtype))


def layouts(shape: tuple[int, ...], seed: int) -> dict[str, Any]:
    """The same kind of tensor lying in memory in several ways."""
    found = {"plain": values(shape, seed), "double": values(shape, seed, "float64")}
    if len(shape) == 2:
        found["transposed"] = values(shape[::-1], seed).t()
        found["sliced"] = values((2 * shape[0], shape[1] + 3), seed)[::2, 1 : shape[1] + 1]
        found["broadcast"] = values((1, shape[1]), seed).expand(shape)
    return found


def tuple_of(result: Any) -> tuple[Any, ...]:
    return result if isinstance(result, tuple) else (result,)


def close(want: Any, got: Any) -> None:
    for w, g in zip(tuple_of(want), tuple_of(got), strict=True):
        assert w.dtype == g.dtype
        assert w.shape == g.shape
        np.testing.assert_allclose(g.detach().numpy(), w.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", CASES)
def test_one_kernel(name: str) -> None:
    function, shapes = CASES[name]
    inputs = [values(s, i) for i, s in enumerate(shapes)]
    graph = torch.jit.trace(function, tuple(inputs)).graph_for(*inputs)
    groups = [n for n in graph.nodes if n.kind == "prim::FusionGroup"]
    assert len(groups) == 1
    left = {n.kind for n in graph.nodes} - {
        "prim::Constant",
        "prim::FusionGroup",
        "prim::ListUnpack",
        "aten::split",
    }
    assert not left, "everything else is in the kernel"


@pytest.mark.parametrize("how", ["plain", "double", "transposed", "sliced", "broadcast"])
@pytest.mark.parametrize("name", CASES)
def test_layouts(name: str, how: str) -> None:
    function, shapes = CASES[name]
    inputs = [layouts(s, i).get(how, values(s, i)) for i, s in enumerate(shapes)]
    traced = torch.jit.trace(function, tuple(inputs), check_trace=False)
    close(function(*inputs), traced(*inputs))


@pytest.mark.parametrize("name", CASES)
def test_mixed_types(name: str) -> None:
    function, shapes = CASES[name]
    inputs = [values(s, i, "float64" if i == 0 else "float32") for i, s in enumerate(shapes)]
    traced = torch.jit.trace(function, tuple(inputs), check_trace=False)
    close(function(*inputs), traced(*inputs))


@pytest.mark.parametrize("name", ["iou", "squares", "adam"])
@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (1, 1)])
def test_small_shapes(name: str, shape: tuple[int, ...]) -> None:
    function, shapes = CASES[name]
    inputs = [values(shape, i) for i in range(len(shapes))]
    traced = torch.jit.trace(function, tuple(inputs), check_trace=False)
    close(function(*inputs), traced(*inputs))


@pytest.mark.parametrize("name", CASES)
def test_not_a_number(name: str) -> None:
    function, shapes = CASES[name]
    inputs = [values(s, i) for i, s in enumerate(shapes)]
    first = inputs[0]
    first[0, 1], first[1, 2], first[2, 3] = math.nan, math.inf, -math.inf
    traced = torch.jit.trace(function, tuple(inputs), check_trace=False)
    close(function(*inputs), traced(*inputs))


@pytest.mark.parametrize("name", CASES)
def test_gradients(name: str) -> None:
    function, shapes = CASES[name]
    sides = [
        [values(s, i, "float64").requires_grad_() for i, s in enumerate(shapes)] for _ in range(2)
    ]
    traced = torch.jit.trace(function, tuple(sides[1]), check_trace=False)
    for f, inputs in zip((function, traced), sides):
        loss = sum((k + 1) * (r * r).sum() for k, r in enumerate(tuple_of(f(*inputs))))
        loss.backward()
    for a, b in zip(*sides):
        np.testing.assert_allclose(b.grad.numpy(), a.grad.numpy(), rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", ["squares", "softmax"])
def test_second_gradients(name: str) -> None:
    function, shapes = CASES[name]
    found = []
    for compiled in (False, True):
        x = values(shapes[0], 0, "float64").requires_grad_()
        f = torch.jit.trace(function, x, check_trace=False) if compiled else function
        (first,) = torch.autograd.grad((f(x) ** 2).sum(), x, create_graph=True)
        found.append(torch.autograd.grad((first * first).sum(), x)[0].numpy())
    np.testing.assert_allclose(found[1], found[0], rtol=1e-9)


def test_a_new_shape_is_specialised() -> None:
    f = torch.jit.trace(lambda x: (x.view(x.size(0), -1) * 2).exp().sum(1), torch.ones(2, 3))
    for shape in ((2, 3), (5, 2, 2), (1, 7)):
        x = values(shape, 1)
        close((x.view(x.size(0), -1) * 2).exp().sum(1), f(x))


def test_saved_results_know_of_writes() -> None:
    f = torch.jit.trace(lambda x: (x * 2).tanh(), torch.ones(3), check_trace=False)
    x = torch.ones(3, requires_grad=True)
    y = f(x)
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_backward_twice() -> None:
    f = torch.jit.trace(lambda x: (x * 2).tanh(), torch.ones(3), check_trace=False)
    y = f(torch.ones(3, requires_grad=True)).sum()
    y.backward(retain_graph=True)
    y.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        y.backward()
