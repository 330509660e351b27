"""NumPy's scalars where a function takes a number: they are read as Python's numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.outside.alike import alike_in_memory, alike_rounded

What = Callable[..., Any]
NUMBERS = (np.float64(2.0), np.float32(0.3), np.int64(2), np.int32(1))
TYPES = ("float32", "float64", "bfloat16", "int64", "bool")
OF_NUMBERS: dict[str, What] = {
    "add": lambda m, x, v: m.add(x, x, alpha=v),
    "add_": lambda m, x, v: x.add_(x, alpha=v),
    "addcdiv_": lambda m, x, v: x.addcdiv_(x, x, value=v),
    "addcmul": lambda m, x, v: m.addcmul(x, x, x, value=v),
    "baddbmm": lambda m, x, v: m.baddbmm(*[x.reshape(1, 1, 2)] * 2, m.ones(1, 2, 2).to(x), beta=v),
    "full": lambda m, x, v: m.full((2,), v),
    "hardtanh": lambda m, x, v: m.nn.functional.hardtanh(x, -v, v),
    "leaky_relu": lambda m, x, v: m.nn.functional.leaky_relu(-x, v),
    "lerp": lambda m, x, v: m.lerp(x, x * 3, v),
    "logit": lambda m, x, v: m.logit(x, v / 10),
    "mul": lambda m, x, v: x * v,
    "rsub": lambda m, x, v: v - x,
    "scatter": lambda m, x, v: x.scatter(0, m.tensor([0]), v),
    "set at": lambda m, x, v: (x.__setitem__(0, v), x)[1],
    "set behind": lambda m, x, v: (x.__setitem__((..., 0), v), x)[1],
    "set masked": lambda m, x, v: (x.__setitem__(x == x, v), x)[1],
    "set several": lambda m, x, v: (x.__setitem__(m.tensor([0, 1]), v), x)[1],
    "set sliced": lambda m, x, v: (x.__setitem__(slice(1), v), x)[1],
    "threshold": lambda m, x, v: m.nn.functional.threshold(x, v, v),
    "where": lambda m, x, v: m.where(x == x, v, x),
}


@pytest.mark.parametrize("name", OF_NUMBERS)
def test_numbers(name: str) -> None:
    for v, kind in itertools.product(NUMBERS, TYPES):
        alike_in_memory(lambda m, v=v, k=kind: OF_NUMBERS[name](m, m.ones(2).to(getattr(m, k)), v))


def test_truths_are_floats() -> None:
    for name, kind in itertools.product(("add", "mul", "eq"), TYPES):
        alike_in_memory(
            lambda m, n=name, k=kind: getattr(m, n)(m.ones(2).to(getattr(m, k)), np.bool_(True))
        )


def test_gradients_are_computed_in_the_type_of_the_tensor() -> None:
    def gradient(m: Any, what: What) -> Any:
        x = m.linspace(-1, 1, 7).requires_grad_()
        what(m, x).sum().backward()
        return x.grad

    for what in (
        lambda m, x: (x * np.float64(2.1)) ** np.float64(1.5),
        lambda m, x: m.add(x, x, alpha=np.float64(0.1)) / np.float32(0.3),
        lambda m, x: m.nn.functional.elu(x, np.float64(0.7)),
        lambda m, x: x.roll(np.int64(1)) * x.cumsum(np.int64(0)),
    ):
        alike_rounded(lambda m, what=what: gradient(m, what))


I1, I2 = np.int64(1), np.int32(2)
OF_INTS: dict[str, What] = {
    "all": lambda m, x: x.all(I1),
    "amax": lambda m, x: x.amax(I1),
    "avg_pool2d": lambda m, x: m.nn.functional.avg_pool2d(x, I2, I2, I1),
    "conv2d": lambda m, x: m.conv2d(x, m.ones(2, 3, 2, 2), None, I2, I1, I1, I1),
    "conv_transpose2d": lambda m, x: m.conv_transpose2d(x, m.ones(3, 2, 2, 2), None, I2, I1),
    "hann_window": lambda m, x: m.hann_window(np.int64(8)),
    "LayerNorm": lambda m, x: m.nn.LayerNorm(np.int64(4))(x),
    "logsumexp": lambda m, x: x.logsumexp(I1),
    "lp_pool2d": lambda m, x: m.nn.functional.lp_pool2d(x, I2, I2),
    "max": lambda m, x: m.max(x, I1),
    "max_pool2d": lambda m, x: m.nn.functional.max_pool2d(x, I2, I2, I1),
    "normalize": lambda m, x: m.nn.functional.normalize(x, np.float64(2), I1),
    "permuted": lambda m, x: x.permute(*np.array([1, 0, 3, 2])),
    "roll": lambda m, x: x.roll(I2),
    "squeeze": lambda m, x: x.squeeze(np.int64(0)),
    "std": lambda m, x: x.std(I1),
    "sum": lambda m, x: x.sum(I1),
    "sum by name": lambda m, x: x.sum(axis=I1),
    "tensor_split": lambda m, x: x.tensor_split(I2, I1),
    "unfold": lambda m, x: m.nn.functional.unfold(x, I2, stride=I2),
}


@pytest.mark.parametrize("name", OF_INTS)
def test_sizes_and_dimensions(name: str) -> None:
    alike_rounded(lambda m: OF_INTS[name](m, m.arange(48.0).reshape(1, 3, 4, 4)))


@pytest.mark.parametrize("name", ["abs", "exp", "isnan", "relu", "sigmoid", "logical_not"])
def test_arrays_are_no_operands_of_functions(name: str) -> None:
    alike_rounded(lambda m: getattr(m, name)(np.ones(2)))


@pytest.mark.parametrize("name", ["add", "atan2", "clamp", "eq", "fmod", "maximum", "pow", "sub"])
def test_nor_beside_tensors(name: str) -> None:
    for array in (np.ones(2), np.array(2.0)):
        alike_rounded(lambda m, a=array: getattr(m, name)(m.ones(2), a), words=False)
        alike_rounded(lambda m, a=array: getattr(m.ones(2), name)(a), words=False)


def test_operators_take_arrays() -> None:
    for array in (np.arange(1, 3), np.array([1.0, 2.0]), np.array(2.0)):
        for kind in ("float32", "bfloat16", "int64"):
            for what in (
                lambda x, a: x + a, lambda x, a: x - a, lambda x, a: x * a, lambda x, a: x / a,
                lambda x, a: a * x, lambda x, a: a - x, lambda x, a: x**a, lambda x, a: x < a,
            ):  # fmt: skip
                alike_rounded(
                    lambda m, w=what, a=array, k=kind: w(m.ones(2).to(getattr(m, k)), a),
                    words=False,
                )
