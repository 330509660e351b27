"""Linear algebra beyond samples: errors, large matrices in blocks, writes through complex views."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import SELFTEST, attempt, torch, tt

SINGULAR = [[1.0, 2.0], [2.0, 4.0]]
WIDE = [[1.0, 2.0, 3.0], [2.0, 4.0, 3.0]]
FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "inv": lambda m, a: m.linalg.inv(a),
    "inverse": lambda m, a: m.inverse(a),
    "inv_ex": lambda m, a: m.linalg.inv_ex(a, check_errors=True),
    "solve": lambda m, a: m.linalg.solve(a, a),
    "solve_ex": lambda m, a: m.linalg.solve_ex(a, a, check_errors=True),
    "cholesky": lambda m, a: m.linalg.cholesky(a),
    "cholesky_ex": lambda m, a: m.linalg.cholesky_ex(a - 3, check_errors=True),
    "lu_factor": lambda m, a: m.linalg.lu_factor(a),
    "lu_factor_ex": lambda m, a: m.linalg.lu_factor_ex(a, check_errors=True),
    "det": lambda m, a: m.linalg.det(a),
    "slogdet": lambda m, a: m.linalg.slogdet(a),
    "logdet": lambda m, a: m.logdet(a),
    "eig": lambda m, a: m.linalg.eig(a),
    "eigvals": lambda m, a: m.linalg.eigvals(a),
    "eigh": lambda m, a: m.linalg.eigh(a),
    "eigvalsh": lambda m, a: m.linalg.eigvalsh(a),
    "qr": lambda m, a: m.linalg.qr(a),
    "svd": lambda m, a: m.linalg.svd(a),
    "lu": lambda m, a: m.linalg.lu(a),
    "matrix_exp": lambda m, a: m.matrix_exp(a),
    "matrix_power": lambda m, a: m.linalg.matrix_power(a, 2),
    "pinv": lambda m, a: m.linalg.pinv(a),
    "solve_triangular": lambda m, a: m.linalg.solve_triangular(a, a, upper=True),
    "matrix_norm": lambda m, a: m.linalg.matrix_norm(a),
    "geqrf": lambda m, a: m.geqrf(a),
    "cholesky_inverse": lambda m, a: m.cholesky_inverse(a),
}


def inputs(m: Any) -> list[Any]:
    """A singular matrix, a batch of one, and what has the wrong shape or type."""
    return [m.tensor(SINGULAR), m.tensor([SINGULAR]), m.tensor(WIDE), m.ones(3),
            m.tensor([[1, 2], [3, 5]]), m.ones(2, 2, dtype=m.float16)]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_errors_are_pytorchs(name: str) -> None:
    """The same calls fail, with the same class of error and nearly always the same words."""
    f, refused = FUNCTIONS[name], 0
    for mine, theirs in zip(inputs(tt), inputs(torch), strict=True):
        want, got = attempt(f, torch, theirs)[1], attempt(f, tt, mine)[1]
        assert (want is None) == (got is None), f"{got!r}, in PyTorch {want!r}"
        if want is None:
            continue
        refused += 1
        singular = isinstance(want, torch.linalg.LinAlgError)
        assert singular == isinstance(got, tt.linalg.LinAlgError), f"{got!r}, in PyTorch {want!r}"
        assert singular or type(got) is type(want), f"{got!r}, in PyTorch {want!r}"
        assert str(got).split(chr(10))[0] == str(want).split(chr(10))[0]
    assert refused


def test_linalg_error_is_a_runtime_error() -> None:
    assert issubclass(tt.linalg.LinAlgError, RuntimeError)
    with pytest.raises(tt.linalg.LinAlgError, match="diagonal element 2 is zero"):
        tt.linalg.inv(tt.tensor(SINGULAR))


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_types_stay(dtype: str) -> None:
    """No method works in, or answers, a wider type than its input's."""
    a = tt.eye(3, dtype=getattr(tt, dtype)) * 2
    real = a.real.dtype
    for result in (tt.linalg.inv(a), *tt.linalg.lu(a), tt.linalg.pinv(a), tt.matrix_exp(a),
                   tt.linalg.solve_triangular(a, a, upper=True), tt.linalg.lstsq(a, a).solution,
                   tt.linalg.householder_product(a, a[0]), tt.linalg.det(a)):  # fmt: skip
        assert result.dtype is a.dtype
    assert tt.linalg.svdvals(a).dtype is tt.linalg.eigvalsh(a).dtype is real
    assert tt.linalg.cond(a).dtype is tt.linalg.norm(a, "nuc").dtype is real


@pytest.mark.parametrize("shape", [(100, 100), (90, 70), (70, 90), (3, 65, 65)])
def test_lu_in_blocks(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(0)
    a = tt.from_numpy(rng.normal(size=shape))
    p, lower, upper = tt.linalg.lu(a)
    assert tt.allclose(p @ lower @ upper, a)
    assert bool((lower.abs() <= 1 + 1e-12).all())  # what the exchange of rows is for
    theirs = torch.linalg.lu_factor(torch.from_numpy(a.numpy()))
    assert tt.linalg.lu_factor(a).pivots.tolist() == theirs.pivots.tolist()


def test_ldl_of_many_pivots() -> None:
    rng = np.random.default_rng(1)
    for hermitian in (False, True):
        x = rng.normal(size=(2, 30, 30)) + 1j * rng.normal(size=(2, 30, 30))
        x = x + (x.conj() if hermitian else x).swapaxes(-1, -2)
        made = tt.linalg.ldl_factor(tt.from_numpy(x), hermitian=hermitian)
        want = torch.linalg.ldl_factor(torch.from_numpy(x), hermitian=hermitian)
        assert made.pivots.tolist() == want.pivots.tolist()
        assert bool((made.pivots < 0).any())  # blocks of two were needed
        b = tt.from_numpy(rng.normal(size=(2, 30, 3)) + 0j)
        solved = tt.linalg.ldl_solve(made.LD, made.pivots, b, hermitian=hermitian)
        assert tt.allclose(tt.from_numpy(x) @ solved, b)


def test_matrix_exp_of_large_and_small() -> None:
    """Each matrix of a batch is scaled by itself: a large one does not spoil a small one."""
    rng = np.random.default_rng(2)
    a = rng.normal(size=(4, 6, 6)) * np.array([1e-6, 1e-2, 1.0, 20.0])[:, None, None]
    want = torch.matrix_exp(torch.from_numpy(a)).numpy()
    assert np.allclose(tt.matrix_exp(tt.from_numpy(a)).numpy(), want, rtol=1e-9, atol=0)


def test_gradient_of_repeated_singular_values() -> None:
    """A loss of the values alone has a gradient where the vectors have none."""
    x = tt.eye(3, dtype=tt.float64, requires_grad=True)
    tt.linalg.svd(x).S.sum().backward()
    assert tt.allclose(x.grad, tt.eye(3, dtype=tt.float64))
    y = tt.eye(3, dtype=tt.float64, requires_grad=True)
    tt.linalg.eigh(y).eigenvalues.prod().backward()
    assert tt.allclose(y.grad, tt.eye(3, dtype=tt.float64))


@pytest.mark.parametrize("part", ["real", "imag", "pairs", "complex"])
def test_writes_through_complex_views(part: str) -> None:
    """A write into z.real, or into real memory seen as complex, is part of the history."""

    def run(m: Any) -> tuple[Any, Any]:
        if part == "complex":
            x = m.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=m.float64, requires_grad=True)
            y = x * 1
            m.view_as_complex(y)[0].mul_(2j)
        else:
            x = m.tensor([[1 + 2j, 3 - 1j], [0.5j, 2]], dtype=m.complex128, requires_grad=True)
            y = x * 1
            view = m.view_as_real(y)[..., 0] if part == "pairs" else getattr(y, part)
            view[0].mul_(3.0)
        (y * m.tensor([[1.0, 2.0], [3.0, 4.0]], dtype=m.float64)).sum().abs().backward()
        return y.tolist(), x.grad.tolist()

    want, got = run(torch), run(tt)
    assert np.allclose(want[0], got[0])
    assert np.allclose(want[1], got[1])


@pytest.mark.skipif(SELFTEST, reason="about our own text")
def test_named_results_are_shown() -> None:
    shown = repr(tt.linalg.slogdet(tt.eye(2)))
    assert shown.startswith("torch.return_types.linalg_slogdet(") and "logabsdet=" in shown


@pytest.mark.parametrize("place", [(0, 0), (1, 0), (2, 2), (2, 1)])
@pytest.mark.parametrize("kind", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("upper", [False, True])
def test_cholesky_of_nan(place: tuple[int, int], kind: str, upper: bool) -> None:
    found = []
    for m in (torch, tt):
        a = m.eye(3, dtype=getattr(m, kind)).repeat(2, 1, 1) * 2
        a[1][place] = a[1][place[::-1]] = float("nan")
        found.append(m.linalg.cholesky_ex(a, upper=upper)[1].tolist())
        with pytest.raises(m.linalg.LinAlgError, match=r"Batch element 1.*not positive-definite"):
            m.linalg.cholesky(a, upper=upper)
    assert found[0] == found[1]


@pytest.mark.parametrize("driver", ["gelsy", "gels", "gelsd", "gelss"])
def test_least_squares_of_nan(driver: str) -> None:
    for m in (torch, tt):
        for a, b in ((float("nan"), 1.0), (1.0, float("nan"))):
            with pytest.raises(RuntimeError, match=r"linalg\.lstsq"):
                m.linalg.lstsq(m.eye(3, 2) * a, m.ones(3, 1) * b, driver=driver)
