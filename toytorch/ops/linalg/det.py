"""Determinants, and their logarithms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.define import decomposition, public
from toytorch.ops.linalg import checks
from toytorch.ops.linalg.lu import lu_kernel
from toytorch.ops.linalg.solve import solve_op
from toytorch.ops.linalg.svd import svd

FEW = 4  # rows, up to which a determinant is a product of pivots


@checks.empty_of_any_type
def _det(xp: ArrayModule, a: Array) -> Any:
    checks.need_square("linalg.det", a)
    checks.need_float("linalg.det", a, "lu_cpu", or_empty=True)
    a = checks.workable(a)
    if a.__class__ is np.ndarray and 0 < a.shape[-1] <= FEW and a.size:
        # NumPy goes by logarithms; of whole numbers the product is whole, as it is in PyTorch.
        factors, pivots, _ = lu_kernel(xp, a)
        exchanges = (pivots != np.arange(1, a.shape[-1] + 1)).sum(-1)
        product = np.diagonal(factors, 0, -2, -1).prod(-1)
        return np.asarray(np.where(exchanges % 2, -product, product).astype(a.dtype))
    return xp.linalg.det(a)


def _det_gradient(g: Tensor, A: Tensor, result: Tensor) -> Any:
    if not A.numel():
        return A.new_zeros(A.shape)
    if not (result._array == 0).any():
        scaled = (g * result.conj())[..., None, None] * checks.identity(A, A.shape[-1])
        return solve_op.function(A.mH, scaled)[0]
    # The gradient is the matrix of cofactors, which a singular matrix has too: with A = USVᴴ it is
    # det(U)·det(Vᴴ)·U·diag(Π_{j≠i} Sⱼ)·Vᴴ.
    u, s, vh = svd(A, full_matrices=False)
    phase = (det_op.function(u) * det_op.function(vh)).conj()
    n = s.shape[-1]
    others = (
        s[..., None, :].expand((*s.shape, n)).masked_fill(checks.identity(s, n).bool(), 1).prod(-1)
    )
    return (u * ((g * phase)[..., None] * others)[..., None, :]) @ vh


det_op: Op = decomposition(
    "linalg_det(Tensor A) -> Tensor",
    _det,
    holomorphic=False,
    d_A=_det_gradient,
    memory="rows",
    amp="",
    doc="The determinant.",
)


@public("det", method=True)
def det(input: Tensor) -> Tensor:
    """The determinant of square matrices."""
    return det_op.function(input)


@public("linalg.det")
def linalg_det(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The determinant of square matrices.

    >>> torch.linalg.det(torch.tensor([[2., 1.], [0., 3.]]))
    tensor(6.)
    """
    return det_op.function(A, out=out)


def _slogdet(xp: ArrayModule, a: Array) -> Any:
    checks.need_square("linalg.slogdet", a)
    checks.need_float("linalg.slogdet", a)
    sign, size = map(xp.asarray, xp.linalg.slogdet(a))
    # NaN has no sign: where a pivot is NaN, PyTorch's product of their signs is 0.
    return sign if a.dtype.kind == "c" else xp.where(xp.isnan(size), 0, sign).astype(
        sign.dtype
    ), size


def _slogdet_gradient(gs: Sequence[Tensor], A: Tensor, result0: Tensor) -> Any:
    if not A.dtype.is_complex and getattr(gs, "given", gs)[1] is None:
        return None  # a real sign moves with nothing
    share = gs[1]
    if A.dtype.is_complex:
        share = share.to(A.dtype)
        if not checks.absent(gs[0]):  # sign = e^{iφ} turns by Im tr(A⁻¹dA)
            turn = (gs[0].conj() * result0).imag
            share = share - turn.to(A.dtype) * 1j
    if not A.numel():
        return A.new_zeros(A.shape)
    return solve_op.function(A.mH, share[..., None, None] * checks.identity(A, A.shape[-1]))[0]


slogdet_op = decomposition(
    "linalg_slogdet(Tensor A) -> (Tensor sign, Tensor logabsdet)",
    _slogdet,
    d_A=_slogdet_gradient,
    memory="rows",
    amp="",
    doc="The determinant's sign and log |det A|.",
)


@public("linalg.slogdet", returns="(Tensor sign, Tensor logabsdet)")
def linalg_slogdet(A: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """(sign, logabsdet): the determinant as sign·e^{logabsdet}, which does not overflow."""
    return checks.named(
        "linalg_slogdet", "sign logabsdet", slogdet_op.function(A, out=out), out=out
    )


@public("slogdet", method=True, returns="(Tensor sign, Tensor logabsdet)")
def slogdet(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """`linalg.slogdet`."""
    return checks.named("slogdet", "sign logabsdet", slogdet_op.function(input, out=out), out=out)


@public("logdet", method=True)
def logdet(input: Tensor) -> Tensor:
    """log det A; NaN where the determinant is negative."""
    checks.need_square("logdet", input._array)
    checks.need_float("logdet", input._array)
    sign, size = slogdet_op.function(input)
    if input.dtype.is_complex:
        return sign.log() + size
    return size.masked_fill(sign == -1, float("nan"))
