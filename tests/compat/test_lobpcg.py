"""A few eigenvalues of symmetric matrices, beside all of them from `eigh` and beside PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import attempt, torch, tt


def matrix(m: Any, rows: int, seed: int, kind: str = "float64", batch: tuple[int, ...] = ()) -> Any:
    """Symmetric, with eigenvalues from 1 up."""
    a = np.random.default_rng(seed).standard_normal((*batch, rows, rows))
    made = a @ a.swapaxes(-1, -2) / rows + np.eye(rows)
    return m.tensor(made, dtype=getattr(m, kind))


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("method", ["ortho", "basic", None])
@pytest.mark.parametrize("largest", [True, False, None])
@pytest.mark.parametrize("general", [False, True])
def test_eigenpairs(kind: str, method: str | None, largest: bool | None, general: bool) -> None:
    A, B = matrix(tt, 40, 0, kind), matrix(tt, 40, 1, kind) if general else None
    tt.manual_seed(3)
    E, X = tt.lobpcg(A, 3, B, largest=largest, method=method)
    plain = (
        A.double().numpy() if B is None else np.linalg.solve(B.double().numpy(), A.double().numpy())
    )
    all_values = np.sort(np.linalg.eigvals(plain).real)
    wanted = all_values[:3] if largest is False else all_values[::-1][:3]
    assert np.allclose(E.numpy(), wanted, rtol=1e-3 if kind == "float32" else 1e-6)
    size = 1e-2 if kind == "float32" else 1e-5
    assert float((A @ X - (X if B is None else B @ X) * E).abs().max()) < size


def test_like_pytorch_from_one_seed() -> None:
    found = []
    for m in (tt, torch):
        m.manual_seed(0)
        E, X = m.lobpcg(matrix(m, 30, 2, batch=(2,)), 2)
        found.append((E.numpy(), np.abs(X.numpy())))
    assert np.allclose(found[0][0], found[1][0], rtol=1e-6)
    assert np.allclose(found[0][1], found[1][1], atol=1e-4)


def test_gradients() -> None:
    grads = []
    for m in (tt, torch):
        m.manual_seed(0)
        A = matrix(m, 12, 4).requires_grad_()
        E, X = m.lobpcg(A, 2, tol=1e-12)
        (E.sum() + (X**2 * m.arange(12.0, dtype=m.float64)[:, None]).sum()).backward()
        grads.append(A.grad.numpy())
    assert np.allclose(*grads, atol=1e-4)


def test_sparse_started_and_preconditioned() -> None:
    lines = tt.arange(1.0, 41.0).double()
    A = lines.diag().to_sparse()
    steps = []
    for iK in (None, (1 / lines).diag()):
        seen: list[int] = []
        E, _ = tt.lobpcg(
            A, X=tt.arange(80.0).reshape(40, 2).double().sin(), iK=iK, largest=False,
            tracker=lambda w, seen=seen: seen.append(w.ivars["istep"]),
        )  # fmt: skip
        assert np.allclose(E.numpy(), [1, 2])
        steps.append(len(seen))
    assert steps[1] < steps[0]


CALLS = [
    "lobpcg(torch.ones(3, 4))", "lobpcg(torch.eye(9), B=torch.eye(8))", "lobpcg(torch.eye(8), 3)",
    "lobpcg(torch.eye(9), 2, X=torch.ones(8, 2))",
    "lobpcg(torch.eye(9).requires_grad_(), 2, B=torch.eye(9))[0].sum().backward()",
]  # fmt: skip


@pytest.mark.parametrize("call", CALLS)
def test_refusals(call: str) -> None:
    (_, ours), (_, theirs) = (attempt(eval, f"torch.{call}", {"torch": m}) for m in (tt, torch))
    assert theirs is not None
    assert (type(ours), str(ours)) == (type(theirs), str(theirs).replace("\n", " "))


def test_a_tracker_may_stop_it() -> None:
    def stop(worker: Any) -> None:
        worker.bvars["force_stop"] = worker.ivars["istep"] == 3
        seen.append(tuple(worker.S.shape))

    seen: list[Any] = []
    tt.lobpcg(matrix(tt, 60, 5), 2, tracker=stop, tol=1e-15)
    assert len(seen) == 3 and all(rows == 60 and columns <= 6 for rows, columns in seen)
