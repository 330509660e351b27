"""Approximations of low rank, by random projection."""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.ops.creation.random import randn
from toytorch.ops.define import public
from toytorch.ops.linalg.qr import linalg_qr
from toytorch.ops.linalg.svd import svd


def _range_finder(A: Any, q: int, niter: int, M: Any) -> Any:
    """Q whose columns nearly span those of A (Halko, Martinsson, Tropp 2009, algorithm 4.4)."""
    start = randn(A.shape[-1], q, dtype=A.dtype, device=A.device)

    def product(x: Any, adjoint: bool) -> Any:
        y = (A.mH if adjoint else A) @ x
        return y if M is None else y - (M.mH if adjoint else M) @ x

    basis = linalg_qr(product(start, False)).Q
    for _ in range(niter):
        basis = linalg_qr(product(basis, True)).Q
        basis = linalg_qr(product(basis, False)).Q
    return basis


@public("svd_lowrank", tensor_first=False)
def svd_lowrank(A: Tensor, q: int | None = 6, niter: int | None = 2, M: Any = None) -> Any:
    """(U, S, V) of rank q with A - M ≈ U·diag(S)·Vᴴ, by random projection."""
    q, niter = 6 if q is None else q, 2 if niter is None else niter
    a: Any = A
    if M is not None:
        M = M.broadcast_to(a.shape)
    wide = a.shape[-2] < a.shape[-1]
    if wide:
        a, M = a.mH, None if M is None else M.mH
    basis = _range_finder(a, q, niter, M)
    small = basis.mH @ (a if M is None else a - M)
    u, s, vh = svd(small, False)
    u, v = basis @ u, vh.mH
    return (v, s, u) if wide else (u, s, v)


@public("pca_lowrank", tensor_first=False)
def pca_lowrank(A: Tensor, q: int | None = None, center: bool = True, niter: int = 2) -> Any:
    """(U, S, V): the q principal directions V of the rows of A, which are centred first."""
    a: Any = A
    m, n = a.shape[-2:]
    if q is None:
        q = min(6, m, n)
    elif not 0 <= q <= min(m, n):
        raise ValueError(
            f"q(={q}) must be non-negative integer and not greater than min(m, n)={min(m, n)}"
        )
    if niter < 0:
        raise ValueError(f"niter(={niter}) must be non-negative integer")
    if not center:
        return svd_lowrank(a, q, niter)
    return svd_lowrank(a - a.mean(-2, True), q, niter)
