"""Eigenvalues and eigenvectors, of Hermitian matrices and of general ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import decomposition, in_own_type, public
from toytorch.ops.linalg import checks
from toytorch.ops.linalg.solve import solve_op
from toytorch.ops.linalg.svd import differences, need_free_phase

NO_END = (
    "{}: The algorithm failed to converge because the input matrix is ill-conditioned or has "
    "too many repeated eigenvalues."
)


def _need_triangle(UPLO: str) -> None:
    if UPLO.upper() not in ("L", "U"):
        raise RuntimeError("Expected UPLO argument to be 'L' or 'U', but got " + UPLO)


@checks.empty_of_any_type
def _eigh(xp: ArrayModule, a: Array, UPLO: str) -> Any:
    checks.need_square("linalg.eigh", a)
    checks.need_kernel("linalg_eigh_cpu", a, or_empty=True)
    _need_triangle(UPLO)
    try:
        return tuple(xp.linalg.eigh(checks.workable(a), UPLO.upper()))
    except xp.linalg.LinAlgError:
        raise checks.LinAlgError(NO_END.format("linalg.eigh")) from None


def _eigh_gradient(gs: Sequence[Tensor], result0: Tensor, result1: Tensor) -> Any:
    # V·[(VᴴgV)/E + gL]·Vᴴ with E[i, j] = λⱼ - λᵢ.
    g, v = gs[1], result1
    if checks.absent(g):
        return (v * gs[0].unsqueeze(-2)) @ v.mH
    in_basis = v.mH @ g
    need_free_phase(in_basis.diagonal(0, -2, -1), "linalg_eigh_backward", "eigenvectors")
    off = in_basis / differences(result0)
    off = off - off.diagonal(0, -2, -1).diag_embed() + gs[0].to(v.dtype).diag_embed()
    return v @ off @ v.mH


eigh_op: Op = decomposition(
    "linalg_eigh(Tensor A, str UPLO='L') -> (Tensor eigenvalues, Tensor eigenvectors)",
    _eigh,
    d_A=_eigh_gradient,
    doc="Eigenvalues in rising order, and vectors, of a Hermitian matrix.",
)


@public("linalg.eigh", returns="(Tensor eigenvalues, Tensor eigenvectors)")
def eigh(input: Tensor, UPLO: str = "L", *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """(eigenvalues, eigenvectors) of Hermitian matrices, of which one triangle is read.

    >>> torch.linalg.eigh(torch.tensor([[2., 0.], [0., 1.]])).eigenvalues
    tensor([1., 2.])
    """
    return checks.named(
        "linalg_eigh", "eigenvalues eigenvectors", eigh_op.function(input, UPLO, out=out), out=out
    )


@checks.empty_of_any_type
def _eigvalsh(xp: ArrayModule, a: Array, UPLO: str) -> Any:
    checks.need_square("linalg.eigh", a)
    checks.need_kernel("linalg_eigh_cpu", a, or_empty=True)
    _need_triangle(UPLO)
    try:
        return xp.linalg.eigvalsh(checks.workable(a), UPLO.upper())
    except xp.linalg.LinAlgError:
        raise checks.LinAlgError(NO_END.format("linalg.eigvalsh")) from None


def _eigvalsh_gradient(g: Tensor, self: Tensor, UPLO: str) -> Any:
    v = eigh_op.function(self, UPLO)[1]
    return (v * g.unsqueeze(-2)) @ v.mH


eigvalsh = decomposition(
    "linalg_eigvalsh(Tensor self, str UPLO='L') -> Tensor",
    _eigvalsh,
    forms="function out",
    holomorphic=False,
    d_self=_eigvalsh_gradient,
    node="LinalgEighBackward0",
    memory="rows",
    doc="Eigenvalues of Hermitian matrices, in rising order.",
)


def _complex(dtype: np.dtype[Any]) -> Any:
    return np.result_type(dtype, np.complex64)


def _need_general(name: str, a: Array) -> None:
    checks.need_square(name, a)
    if a.dtype.kind in "biu":
        raise RuntimeError(f"Unknown Complex ScalarType for {from_numpy_dtype(a.dtype).legacy}")
    checks.need_kernel("linalg_eig_out_cpu", a)


def _eig(xp: ArrayModule, a: Array) -> Any:
    _need_general("linalg.eig", a)
    _need_finite("torch.linalg.eig", xp, a)
    try:
        values, vectors = xp.linalg.eig(a)
    except xp.linalg.LinAlgError:
        raise checks.LinAlgError(NO_END.format("linalg.eig")) from None
    return values.astype(_complex(a.dtype)), vectors.astype(_complex(a.dtype))


def _need_finite(name: str, xp: ArrayModule, a: Array) -> None:
    if not xp.isfinite(a).all():
        raise RuntimeError(f"{name}: input tensor should not contain infs or NaNs.")


def _eig_gradient(gs: Sequence[Tensor], result0: Tensor, result1: Tensor) -> Any:
    # V⁻ᴴ·[(VᴴgV - VᴴV·Re diag(VᴴgV))/Ē + gL]·Vᴴ: vectors stay on the unit sphere.
    values, v, g = result0, result1, gs[1]
    middle = gs[0].diag_embed()
    if not checks.absent(g):
        in_basis = v.mH @ g
        d = in_basis.diagonal(0, -2, -1)
        need_free_phase(d, "linalg_eig_backward", "eigenvectors")
        in_basis = (in_basis - v.mH @ (v * d.real.unsqueeze(-2))) / differences(values).conj()
        middle = middle + in_basis - in_basis.diagonal(0, -2, -1).diag_embed()
    return solve_op.function(v.mH, middle @ v.mH)[0]


eig_op = decomposition(
    "linalg_eig(Tensor self) -> (Tensor eigenvalues, Tensor eigenvectors)",
    _eig,
    d_self=_eig_gradient,
    batch="",
    out_type="",
    doc="Eigenvalues and vectors, always complex.",
)


@public("linalg.eig", returns="(Tensor eigenvalues, Tensor eigenvectors)")
def eig(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """(eigenvalues, eigenvectors) of square matrices, as complex numbers."""
    return checks.named(
        "linalg_eig", "eigenvalues eigenvectors", eig_op.function(input, out=out), out=out
    )


def _eigvals(xp: ArrayModule, a: Array) -> Any:
    _need_general("linalg.eigvals", a)
    _need_finite("torch.linalg.eigvals", xp, a)
    try:
        return xp.linalg.eigvals(a).astype(_complex(a.dtype))
    except xp.linalg.LinAlgError:
        raise checks.LinAlgError(NO_END.format("linalg.eigvals")) from None


def _eigvals_gradient(g: Tensor, self: Tensor) -> Any:
    v = eig_op.function(self)[1]
    return solve_op.function(v.mH, g.diag_embed() @ v.mH)[0]


eigvals = in_own_type(
    "linalg_eigvals(Tensor self) -> Tensor",
    _eigvals,
    holomorphic=False,
    d_self=_eigvals_gradient,
    memory="rows",
    node="LinalgEigBackward0",
    amp="float32",
    doc="Eigenvalues of square matrices, as complex numbers.",
)
