"""What kernels do for several NumPy calls: values, types and layouts are PyTorch's, on random arrays of
few and of many elements."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import torch, tt

FLOATS = ("float32", "float64")
TYPES = (*FLOATS, "int64", "int32", "uint8")


def numbers(seed: int, shape: tuple[int, ...], kind: str) -> Any:
    """Numbers of which several are equal, with one NaN and one infinity among floats."""
    random = np.random.default_rng(seed)
    made = np.round(random.standard_normal(shape) * 3).clip(-7 if kind != "uint8" else 0)
    if kind in FLOATS and made.size > 2:
        flat = made.reshape(-1)
        flat[random.integers(0, made.size)] = np.nan
        flat[random.integers(0, made.size)] = -np.inf
    return made.astype(kind)


def alike(want: Any, got: Any, tolerance: float = 1e-5) -> None:
    """Asks for equal shapes, types, strides and values."""
    assert str(want.dtype) == str(got.dtype)
    assert want.stride() == got.stride()
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(
            got.detach().numpy(), want.detach().numpy(), rtol=tolerance, atol=tolerance
        )


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("how", ["sum", "prod", "mean", "amax", "amin"])
@pytest.mark.parametrize("shape", [(5, 3), (300, 7), (2, 40, 30)])
def test_scattered_reductions(shape: tuple[int, ...], how: str, kind: str) -> None:
    a, source = (
        numbers(0, shape, kind),
        numbers(1, shape, kind).clip(-2 if kind != "uint8" else 0, 2),
    )
    random = np.random.default_rng(2)
    for dim in range(len(shape)):
        index = random.integers(0, shape[dim] // 2 + 1, shape)
        rows = random.integers(0, shape[dim], shape[dim])
        for include in (True, False):
            want, got = (
                m.from_numpy(a.copy()).scatter_reduce(
                    dim, m.from_numpy(index), m.from_numpy(source), how, include_self=include
                )
                for m in (torch, tt)
            )
            alike(want, got)
            if how != "sum":
                want, got = (
                    m.from_numpy(a.copy()).index_reduce(
                        dim, m.from_numpy(rows), m.from_numpy(source), how, include_self=include
                    )
                    for m in (torch, tt)
                )
                alike(want, got)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("name", ["cummax", "cummin"])
@pytest.mark.parametrize("shape", [(5,), (64, 65), (9, 70, 5), (2, 3, 200)])
def test_running_extremes(shape: tuple[int, ...], name: str, kind: str) -> None:
    a = numbers(3, shape, kind)
    for dim in range(len(shape)):
        want, got = (getattr(m, name)(m.from_numpy(a), dim) for m in (torch, tt))
        for one, other in zip(want, got):
            alike(one, other, 0)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (3, 5, 7), (40, 300, 9)])
def test_places_in_rows(shape: tuple[int, int, int], kind: str) -> None:
    rows, length, count = shape
    held = np.sort(numbers(4, (rows, length), "int64").astype(kind), 1)
    wanted = numbers(5, (rows, count), kind)
    for right in (True, False):
        want, got = (
            m.searchsorted(m.from_numpy(held), m.from_numpy(wanted), right=right)
            for m in (torch, tt)
        )
        alike(want, got, 0)


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("shape", [(5, 3), (300, 7), (2, 3, 4), (4, 5, 8, 16)])
def test_likelihoods_of_classes(shape: tuple[int, ...], reduction: str) -> None:
    random = np.random.default_rng(6)
    x = random.standard_normal(shape).astype("float32")
    weight = random.random(shape[1]).astype("float32")
    for ignore in (-100, 1):
        target = random.integers(0, shape[1], (shape[0], *shape[2:]))
        target.reshape(-1)[::3] = ignore
        for all_ignored in (False, True):
            if all_ignored:
                target[...] = ignore
            for w in (None, weight):
                made = []
                for m in (torch, tt):
                    leaf = m.from_numpy(x.copy()).requires_grad_()
                    loss = m.nn.functional.cross_entropy(
                        leaf,
                        m.from_numpy(target),
                        None if w is None else m.from_numpy(w),
                        ignore_index=ignore,
                        reduction=reduction,
                    )
                    loss.sum().backward()
                    made.append((loss, leaf.grad))
                for one, other in zip(*made):
                    alike(one, other)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (2, 3, 5, 5), (70, 50), (3, 33, 64)])
def test_factors_with_exchanges(shape: tuple[int, ...], kind: str) -> None:
    random = np.random.default_rng(7)
    a = random.standard_normal(shape) + (1j * random.standard_normal(shape) if "c" in kind else 0)
    tolerance = 2e-3 if kind in ("float32", "complex64") else 1e-9
    for in_columns in (False, True):
        made = []
        for m in (torch, tt):
            x = m.from_numpy(a.astype(kind))
            x = x.mT.contiguous().mT if in_columns else x
            made.append((*m.linalg.lu_factor(x), *m.linalg.lu(x)))
        for one, other in zip(*made):
            alike(one, other, tolerance)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128"])
@pytest.mark.parametrize(
    "shapes", [((3, 3), (3, 2)), ((2, 5, 5), (5, 1)), ((3, 1, 70, 70), (2, 70, 3))]
)
def test_triangular_systems(shapes: tuple[tuple[int, ...], ...], kind: str) -> None:
    random = np.random.default_rng(8)
    a = (random.standard_normal(shapes[0]) + 10 * np.eye(shapes[0][-1])).astype(kind)
    b = random.standard_normal(shapes[1]).astype(kind)
    tolerance = 2e-3 if kind in ("float32", "complex64") else 1e-9
    for choice in range(16):
        upper, unit, turned, left = (bool(choice >> k & 1) for k in range(4))
        made = []
        for m in (torch, tt):
            x, y = m.from_numpy(a), m.from_numpy(b)
            x, y = x.mT if turned else x, y if left else y.mT
            made.append(m.linalg.solve_triangular(x, y, upper=upper, left=left, unitriangular=unit))
        alike(*made, tolerance * max(1.0, float(made[0].abs().max())))


@pytest.mark.parametrize("name", ["tril_indices", "triu_indices"])
def test_places_of_triangles(name: str) -> None:
    for rows in (0, 1, 3, 5):
        for columns in (0, 1, 4, 7):
            for offset in (-6, -2, 0, 1, 3, 9):
                want, got = (getattr(m, name)(rows, columns, offset) for m in (torch, tt))
                alike(want, got, 0)


FORMULAS = (
    *("lerp", "addcmul", "addcdiv", "clamp", "where"),
    *("remainder", "fmod", "floor_divide", "maximum", "minimum", "fmax", "hypot", "logaddexp"),
    *("atan2", "xlogy", "pow", "copysign", "heaviside", "add", "mul"),
)


@pytest.mark.parametrize("name", FORMULAS)
def test_formulas_of_several_shapes(name: str) -> None:
    count = 3 if name in FORMULAS[:5] else 2
    for seed in range(30):
        random = np.random.default_rng(seed)
        whole = random.integers(2, 30, random.integers(1, 5)).tolist()
        arrays = []
        for _ in range(count):
            shape = [n if random.random() < 0.6 else 1 for n in whole]
            if random.random() < 0.4:
                shape = shape[int(random.integers(0, len(shape))) :]
            arrays.append(random.standard_normal(shape).astype("float32"))
        made = []
        for m in (torch, tt):
            given = [m.from_numpy(a) for a in arrays]
            given[0] = given[0] > 0 if name == "where" else given[0]
            made.append(getattr(m, name)(*given))
        alike(*made, 2e-5)


@pytest.mark.parametrize("kind", ["float32", "float64", "int64", "bool", "float16"])
def test_creation_on_a_device_in_a_type(kind: str) -> None:
    for device in ("cpu", torch.device("cpu")):
        made = []
        for m in (torch, tt):
            where = device if isinstance(device, str) else m.device("cpu")
            words = {"dtype": getattr(m, kind), "device": where}
            like = m.ones(2, 3)
            made.append(
                [
                    *(m.zeros(2, 3, **words), m.ones((2, 3), **words), m.full((2,), 1, **words)),
                    *(m.zeros_like(like, **words), m.ones_like(like, **words)),
                    *(m.full_like(like, 1, **words), m.tensor([1, 0, 3], **words)),
                    *(m.tensor(1.0, **words), m.tensor([1.0, 2.5], **words)),
                    m.empty(0, 3, **words),
                ]
            )
        for one, other in zip(*made):
            alike(one, other, 0)


def test_creation_that_asks_for_gradients() -> None:
    for m in (torch, tt):
        made = m.zeros(2, device="cpu", requires_grad=True), m.randn(3, requires_grad=True)
        made += m.full((2,), 1.5, requires_grad=True), m.ones_like(m.ones(2), requires_grad=True)
        made += (m.tensor([1.0], requires_grad=True),)
        assert all(x.requires_grad and x.is_leaf for x in made)
        for refused in (m.zeros, m.ones):
            with pytest.raises(RuntimeError, match="floating point"):
                refused(2, dtype=m.int64, requires_grad=True)
        with pytest.raises((RuntimeError, ValueError), match="Overflow"):
            m.tensor([2**70], dtype=m.int64)
