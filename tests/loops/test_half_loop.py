"""Formulas over half types in one loop: every pointwise op against its float32 result rounded once,
with numbers, with operands that broadcast, in place."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import toytorch as tt
from toytorch.core.op import Op, registry
from toytorch.core.tensor import Tensor
from toytorch.facts.schema import REQUIRED
from toytorch.loops.runtime import jit

pytestmark = pytest.mark.skipif(not jit.works(), reason="NumPy does it where there is no compiler")
HALVES = [tt.float16, tt.bfloat16]
ODD = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e4, -1e-7]
NUMBERS = {"Scalar": 2, "Scalar?": 2, "float": 0.5, "int": 1, "bool": True}


@pytest.fixture(autouse=True)
def loaded() -> None:
    """From here on small calls are compiled, too."""
    tt.randn(5000)


def numbers(*shape: int, seed: int = 0) -> Tensor:
    x = np.random.default_rng(seed).standard_normal(shape) * 3
    x.reshape(-1)[: len(ODD)] = np.roll(ODD, 4 * seed)[: x.size]
    return tt.from_numpy(x)


OPS = [op for op in registry.values() if op.kind == "pointwise" and op.half_loop is not None]
# A condition has another type than what is chosen; operands of the other have one shape.
OPS = [op for op in OPS if op.name not in ("where", "straight")]


def arguments(op: Op, shapes: tuple[tuple[int, ...], ...]) -> list[Any]:
    """Float64 tensors, and numbers for what has no default."""
    made: list[Any] = []
    for k, a in enumerate(op.schema.args):
        if a.is_tensor:
            made.append(numbers(*shapes[k % len(shapes)], seed=k))
        elif a.default is not REQUIRED:
            break
        else:
            made.append(NUMBERS[a.type])
    return made


def test_most_are_compared() -> None:
    """What `test_is_rounded_once` leaves out are special functions, which PyTorch refuses, too."""
    refused = []
    for op in OPS:
        given = [a.half() if isinstance(a, Tensor) else a for a in arguments(op, ((2, 3),))]
        try:
            op.function(*given)
        except RuntimeError as error:
            refused.append((op.name, str(error)))
    assert len(OPS) - len(refused) > 80
    assert all("not implemented for" in text for _, text in refused), refused


@pytest.mark.parametrize("op", OPS, ids=lambda op: op.name)
@pytest.mark.parametrize(
    "shapes", [((5000,),), ((6, 7), (7,)), ((3, 1), (1, 5)), ((2, 3),)], ids=str
)
def test_is_rounded_once(op: Op, shapes: tuple[tuple[int, ...], ...]) -> None:
    given = arguments(op, shapes)
    for half in HALVES:
        narrow = [a.to(half) if isinstance(a, Tensor) else a for a in given]
        wide = [a.float() if isinstance(a, Tensor) else a for a in narrow]
        try:
            expected, found = op.function(*wide), op.function(*narrow)
        except RuntimeError:  # of the types that `test_most_are_compared` counts
            return
        assert found.shape == expected.shape
        assert found.dtype is (expected.dtype if expected.dtype is tt.bool else half)
        # Functions may differ in float32's last bits.
        step = 2.0**-10 if half is tt.float16 else 2.0**-7
        a, b = found.double().numpy(), expected.to(half).double().numpy()
        same = (a == b) | (np.isnan(a) & np.isnan(b))
        assert same.mean() > 0.98
        np.testing.assert_allclose(a, b, rtol=2 * step, atol=1e-7)


@pytest.mark.parametrize("half", HALVES, ids=str)
def test_in_place(half: Any) -> None:
    x, y = numbers(40, 50).to(half), numbers(50, seed=1).to(half)
    for write, plain in ((Tensor.add_, Tensor.add), (Tensor.mul_, Tensor.mul)):
        for other, start in itertools.product((y, x, 0.5), (x, x.t().clone().t())):
            expected = plain(x, other).nan_to_num()
            assert tt.equal(write(start.clone(), other).nan_to_num(), expected)
    z = x.clone()
    assert tt.equal(z.add_(z).nan_to_num(), (x + x).nan_to_num())
    flat = x.reshape(-1).clone()
    expected = flat[1:] + flat[:-1]
    assert tt.equal(flat[1:].add_(flat[:-1].clone()).nan_to_num(), expected.nan_to_num())


@pytest.mark.parametrize("kind", [tt.float32, tt.float64], ids=str)
def test_remainders_are_exact(kind: Any) -> None:
    """Also of quotients that no vector computes, and beside them."""
    rng = np.random.default_rng(5)
    for scale in (1, 30):
        x, y = (np.exp(rng.standard_normal(999) * scale) * rng.choice([-1, 1], 999) for _ in "xy")
        x[:9], y[3:12] = ODD, ODD
        a, b = tt.from_numpy(x).to(kind), tt.from_numpy(y).to(kind)
        with np.errstate(all="ignore"):
            rest = np.fmod(a.numpy(), b.numpy())
        np.testing.assert_array_equal(tt.fmod(a, b).numpy(), rest)
        down = np.where((rest != 0) & ((rest < 0) != (b.numpy() < 0)), rest + b.numpy(), rest)
        np.testing.assert_array_equal((a % b).numpy(), down)
        c = a.clone()
        c %= b
        np.testing.assert_array_equal(c.numpy(), down)
