"""Activations on arrays large enough for compiled loops: as in PyTorch, gradients included."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import toytorch as tt
from toytorch.core.op import registry

torch = pytest.importorskip("torch")
CASES: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
    ("leaky_relu", (), {}),
    ("leaky_relu", (1.5,), {}),
    ("hardtanh", (), {}),
    ("relu6", (), {}),
    ("threshold", (0.1, 20.0), {}),
    ("hardshrink", (), {}),
    ("softshrink", (), {}),
    ("hardsigmoid", (), {}),
    ("hardswish", (), {}),
    ("elu", (0.7,), {}),
    ("selu", (), {}),
    ("celu", (0.6,), {}),
    ("softplus", (), {}),
    ("softplus", (2, 3), {}),
    ("logsigmoid", (), {}),
    ("silu", (), {}),
    ("mish", (), {}),
    ("gelu", (), {}),
    ("gelu", (), {"approximate": "tanh"}),
]
CLAMPS: list[dict[str, Any]] = [{"min": -1.0, "max": 2.0}, {"min": 0}, {"max": 0.5}]


def numbers(dtype: str) -> np.ndarray:
    """100 x 100 numbers, some on the corners of the functions."""
    x = np.random.default_rng(0).normal(0, 3, (100, 100)).astype(dtype)
    x[0, :6] = np.nan, 3, -3, 0, 0.5, -0.5
    x[1, :4] = 6, -1, 1, -0.0
    return x


def compared(f: Any, dtype: str) -> None:
    """The function and its gradient, on both sides."""
    x = numbers(dtype)
    g = np.random.default_rng(1).normal(size=x.shape).astype(dtype)
    found = []
    for m in (tt, torch):
        leaf = m.from_numpy(x.copy()).requires_grad_()
        y = f(m, leaf)
        y.backward(m.from_numpy(g.copy()))
        found.append((y.detach().numpy(), leaf.grad.numpy()))
    tolerance = 1e-5 if dtype == "float32" else 1e-6  # PyTorch has constants of float32 in some
    for ours, theirs in zip(*found):
        np.testing.assert_allclose(ours, theirs, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_activations(case: tuple[str, tuple[Any, ...], dict[str, Any]], dtype: str) -> None:
    name, args, more = case
    compared(lambda m, x: getattr(m.nn.functional, name)(x, *args, **more), dtype)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("limits", CLAMPS, ids=str)
def test_clamp(limits: dict[str, Any], dtype: str) -> None:
    compared(lambda m, x: x.clamp(**limits), dtype)


TWICE = [c for c in CASES if c[0] != "hardsigmoid"]  # PyTorch has no second derivative of it


@pytest.mark.parametrize("case", TWICE, ids=str)
def test_second_derivatives_take_the_rule_of_tensors(
    case: tuple[str, tuple[Any, ...], dict[str, Any]],
) -> None:
    name, args, more = case
    found = []
    for m in (tt, torch):
        x = m.from_numpy(np.linspace(-4, 4, 6000)).requires_grad_()
        y = getattr(m.nn.functional, name)(x, *args, **more)
        (first,) = m.autograd.grad(y.sum(), x, create_graph=True)
        if first.requires_grad:
            found.append(m.autograd.grad((first * first).sum(), x, allow_unused=True)[0])
    if len(found) == 2 and found[0] is not None:
        np.testing.assert_allclose(found[0].numpy(), found[1].numpy(), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ["logaddexp", "logaddexp2", "special.xlog1py", "xlogy", "hypot"])
@pytest.mark.parametrize("shape", [(5, 1), (1, 5, 1), (5, 5), (5,)])
def test_a_number_repeated_makes_the_result_larger(name: str, shape: tuple[int, ...]) -> None:
    """What has one place for all of its elements is a number to a loop, but not to the result's shape."""
    x = np.random.default_rng(0).random(shape)
    found = []
    for m in (tt, torch):
        f = m.special.xlog1py if "." in name else getattr(m, name)
        one = m.tensor([0.3], dtype=m.float64).expand(5)
        found.append([f(m.from_numpy(x), one), f(one, m.from_numpy(x))])
    for ours, theirs in zip(*found):
        assert ours.shape == theirs.shape
        np.testing.assert_allclose(ours.numpy(), theirs.numpy(), rtol=1e-12)


# Derivatives that are no loops: constants, one record each, and those whose records have to be
# differentiated again (truncdiv and these are no words of the language).
NO_LOOPS = {"relu", "relu_backward", "fmod", "xlogy", "special_xlog1py"}


def test_derivatives_by_formula_are_loops() -> None:
    """A word that loops do not know would leave a derivative to NumPy, at many times the cost."""
    for name, op in registry.items():
        for of, derivative in op.formulas.items():
            if op.kind == "pointwise" and name not in NO_LOOPS and derivative.text != "0":
                assert derivative.formula.known, (name, of, derivative.text)
