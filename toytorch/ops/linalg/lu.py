"""LU factorisation with row exchanges, and what is read off it: determinants, solutions.

NumPy has no LU. Where its library has LAPACK's, that is called. The one here works on all matrices of
a batch at once: within a block of columns one column after the other, and a matrix product brings the
rest up to date.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import generic
from toytorch.core.memory_order import columns
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import state, warned
from toytorch.facts.composed import cast_to
from toytorch.facts.dtype import bfloat16, float16, from_numpy_dtype, int32
from toytorch.facts.hints import Array, ArrayModule, Sizes
from toytorch.ops.define import decomposition, in_own_type, public
from toytorch.ops.linalg import checks
from toytorch.ops.linalg.triangular import solve_with, triangular
from toytorch.ops.shaping.rearrange import cat

FEW = 64  # matrices whose exchanges are sooner done one by one than for all at once


def lu_kernel(xp: ArrayModule, a: Array, pivot: bool = True) -> tuple[Any, Any, Any]:
    """(L and U in one matrix, the row each step exchanged with, the first zero of U's diagonal)."""
    made = generic.attempt(xp, "lu", a) if pivot else None
    if made is not None:
        return made
    m, n = a.shape[-2:]
    k, batch = min(m, n), a.shape[:-2]
    x = a.reshape(math.prod(batch), m, n).copy()
    every = xp.arange(x.shape[0])
    pivots = xp.broadcast_to(xp.arange(1, k + 1, dtype=np.int32), (x.shape[0], k)).copy()
    info = xp.zeros(x.shape[0], np.int32)
    for start in range(0, k, checks.BLOCK):
        end = min(start + checks.BLOCK, k)
        for j in range(start, end):
            if pivot and j + 1 < m:
                below = x[:, j:, j]
                size = abs(below.real) + abs(below.imag) if a.dtype.kind == "c" else abs(below)
                best = size.argmax(1) + j
                pivots[:, j] = best + 1
                row = x[every, best]
                x[every, best] = x[:, j]
                x[:, j] = row
            d = x[:, j, j]
            zero = d == 0
            info = xp.where(zero & (info == 0), np.int32(j + 1), info)
            x[:, j + 1 :, j] /= xp.where(zero, d.dtype.type(1), d)[:, None]
            if j + 1 < end:
                x[:, j + 1 :, j + 1 : end] -= x[:, j + 1 :, j, None] * x[:, j, None, j + 1 : end]
        if end < n:
            right = triangular(xp, x[:, start:end, start:end], x[:, start:end, end:], False, True)
            x[:, start:end, end:] = right
            if end < m:
                x[:, end:, end:] -= x[:, end:, start:end] @ right
    return x.reshape(a.shape), pivots.reshape(*batch, k), info.reshape(batch)


def exchanged(m: int, places: list[int]) -> list[int]:
    """The numbers below m after as many exchanges: of the j-th with that at its place.

    >>> exchanged(3, [2, 2])
    [2, 0, 1]
    """
    order = list(range(m))
    for j, there in enumerate(places):
        order[j], order[there] = order[there], order[j]
    return order


def order_of(xp: ArrayModule, pivots: Array, m: int) -> Any:
    """The rows in the order in which a series of exchanges leaves them."""
    flat = pivots.reshape(math.prod(pivots.shape[:-1]), pivots.shape[-1]) - 1
    if flat.__class__ is np.ndarray and len(flat) < FEW:
        orders = np.array([exchanged(m, one) for one in flat.tolist()], np.int64)
        return orders.reshape(*pivots.shape[:-1], m)
    rows = xp.broadcast_to(xp.arange(m), (flat.shape[0], m)).copy()
    every = xp.arange(flat.shape[0])
    for j in range(flat.shape[1]):
        there = flat[:, j]
        rows[every, there], rows[:, j] = rows[:, j].copy(), rows[every, there]
    return rows.reshape(*pivots.shape[:-1], m)


def in_order(xp: ArrayModule, b: Array, order: Array) -> Any:
    """The rows of matrices in an order, which may be another for each."""
    if order.ndim == 1:
        return b[..., order, :]
    batch = xp.broadcast_shapes(order.shape[:-1], b.shape[:-2])
    b = xp.broadcast_to(b, (*batch, *b.shape[-2:]))
    return xp.take_along_axis(b, xp.broadcast_to(order[..., None], b.shape), -2)


def permutation(xp: ArrayModule, pivots: Array, m: int, dtype: np.dtype[Any]) -> Any:
    """P of A = PLU."""
    return xp.eye(m, dtype=dtype)[order_of(xp, pivots, m)].swapaxes(-1, -2)


def _outside(pivots: Array, m: int) -> str:
    """What pivots that come from elsewhere must be and are not; on "meta" they are zeros."""
    if state.local.place is not None and state.local.place.type == "meta":
        return ""
    if pivots.size and pivots.min() < 1:
        return "greater or equal to 1"
    return "smaller or equal to LU.size(-2)" if pivots.size and pivots.max() > m else ""


def split_lu(xp: ArrayModule, lu: Array) -> tuple[Any, Any]:
    """L with ones on its diagonal, and U."""
    m, n = lu.shape[-2:]
    k = min(m, n)
    lower = xp.tril(lu[..., :k], -1)
    index = xp.arange(k)
    lower[..., index, index] = 1
    return lower, xp.triu(lu[..., :k, :])


def factor_gradient(gl: Tensor, gu: Tensor, p: Tensor, lower: Tensor, upper: Tensor) -> Any:
    """The gradient of A = PLU from those of L and U.

    For square matrices P·L⁻ᴴ·[tril(Lᴴ·gL, -1) + triu(gU·Uᴴ)]·U⁻ᴴ; what a wide (tall) matrix has
    beyond the square comes from U = L⁻¹PᵀA (from L = PᵀAU⁻¹).
    """
    m, n = lower.shape[-2], upper.shape[-1]
    k = min(m, n)
    l1, u1 = lower[..., :k, :], upper[..., :k]
    phi_l, phi_u = l1.mH @ gl[..., :k, :], gu[..., :k] @ u1.mH
    if n > k:
        phi_l = phi_l - gu[..., k:] @ upper[..., k:].mH
    if m > k:
        phi_u = phi_u - lower[..., k:, :].mH @ gl[..., k:, :]
    phi = phi_l.tril(-1) + phi_u.triu()
    if n > k:
        phi = cat.function([solve_with(u1.mH, phi, False, False), gu[..., k:]], -1)
        return p @ solve_with(l1.mH, phi, True, True, True)
    phi = solve_with(l1.mH, phi, True, True, True)
    if m > k:
        phi = cat.function([phi, gl[..., k:, :]], -2)
    return p @ solve_with(u1.mH, phi, False, False)


def _need_two_dims(name: str, a: Array) -> None:
    if a.ndim < 2:
        raise RuntimeError(
            f"{name}: Expected tensor with 2 or more dimensions. Got size: {list(a.shape)} instead"
        )


@checks.empty_of_any_type
def _lu(xp: ArrayModule, a: Array, pivot: bool) -> Any:
    _need_two_dims("linalg.lu", a)
    checks.need_kernel("lu_cpu", a, or_empty=True)
    a = checks.workable(a)
    lu, pivots, _ = lu_kernel(xp, a, pivot)
    p = permutation(xp, pivots, a.shape[-2], a.dtype) if pivot else xp.empty(0, a.dtype)
    return p, *split_lu(xp, lu)


def _lu_gradient(
    gs: Sequence[Tensor], pivot: bool, result0: Tensor, result1: Tensor, result2: Tensor
) -> Any:
    p = result0 if pivot else checks.identity(result1, result1.shape[-2])
    return factor_gradient(gs[1], gs[2], p, result1, result2)


lu_op = decomposition(
    "linalg_lu(Tensor self, *, bool pivot=True) -> (Tensor P, Tensor L, Tensor U)",
    _lu,
    d_self=_lu_gradient,
    memory="rows",
    amp="",
    batch="",
    doc="A = PLU.",
)


@public("linalg.lu", returns="(Tensor P, Tensor L, Tensor U)")
def lu(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, Tensor, Tensor] | None = None) -> Any:
    """(P, L, U) with A = PLU: row exchanges, a unit lower and an upper triangle."""
    return checks.named("linalg_lu", "P L U", lu_op.function(A, pivot=pivot, out=out), out=out)


ZERO = (
    "U[{info},{info}] is zero and using it on lu_solve would result in a division by zero. If "
    "you still want to perform the factorization, consider calling linalg.lu(A, pivot) or "
    "linalg.lu_factor_ex(A, pivot)"
)


@checks.empty_of_any_type
def _lu_factor(xp: ArrayModule, a: Array, pivot: bool) -> Any:
    _need_two_dims("torch.lu_factor", a)
    checks.need_kernel("lu_cpu", a, or_empty=True)
    return lu_kernel(xp, checks.workable(a), pivot)


def _lu_factor_gradient(gs: Any, pivot: bool, result0: Tensor, result1: Tensor) -> Any:
    p, lower, upper = lu_unpack(result0, result1, unpack_pivots=pivot)
    p = p if pivot else checks.identity(lower, lower.shape[-2])
    k = lower.shape[-1]
    return factor_gradient(gs[0][..., :k].tril(-1), gs[0][..., :k, :].triu(), p, lower, upper)


lu_factor_op = decomposition(
    "linalg_lu_factor_ex(Tensor self, *, bool pivot=True) "
    "-> (Tensor LU, Tensor pivots, Tensor info)",
    _lu_factor,
    d_self=_lu_factor_gradient,
    amp="",
    batch="",
    doc="L and U of A = PLU in one matrix, the row exchanges, and where U has a zero.",
)


@public("linalg.lu_factor_ex", returns="(Tensor LU, Tensor pivots, Tensor info)")
def lu_factor_ex(
    A: Tensor,
    *,
    pivot: bool = True,
    check_errors: bool = False,
    out: tuple[Tensor, Tensor, Tensor] | None = None,
) -> Any:
    """(LU, pivots, info): `linalg.lu_factor` that reports a zero of U instead of raising."""
    made = lu_factor_op.function(A, pivot=pivot, out=out)
    if check_errors:
        checks.raise_first("torch.linalg.lu_factor_ex", made[2], ZERO, RuntimeError)
    return checks.named("linalg_lu_factor_ex", "LU pivots info", made, out=out)


@public("linalg.lu_factor", returns="(Tensor LU, Tensor pivots)")
def lu_factor(A: Tensor, *, pivot: bool = True, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """(LU, pivots): L and U of A = PLU in one matrix, and the exchanges for `linalg.lu_solve`."""
    outs = None if out is None else (*out, A.new_empty(A.shape[:-2], dtype=int32))
    made = lu_factor_op.function(A, pivot=pivot, out=outs)
    checks.raise_first("torch.linalg.lu_factor", made[2], ZERO, RuntimeError)
    return checks.named("linalg_lu_factor", "LU pivots", made[:2], out=out)


@public("lu", method="lu", returns="(Tensor LU, Tensor pivots, Tensor info if get_infos)")
def lu_legacy(A: Tensor, pivot: bool = True, get_infos: object = False, out: Any = None) -> Any:
    """(LU, pivots), and infos where asked for: the older form of `linalg.lu_factor_ex`."""
    warned.once(
        "torch.lu is deprecated in favor of torch.linalg.lu_factor / torch.linalg.lu_factor_ex and "
        "will be removed in a future PyTorch release.\nLU, pivots = torch.lu(A, compute_pivots)\n"
        "should be replaced with\nLU, pivots = torch.linalg.lu_factor(A, compute_pivots)\nand\n"
        "LU, pivots, info = torch.lu(A, compute_pivots, get_infos=True)\nshould be replaced with\n"
        "LU, pivots, info = torch.linalg.lu_factor_ex(A, compute_pivots)"
    )
    made = lu_factor_op.function(A, pivot=pivot)
    count = 3 if get_infos else 2
    if out is None:
        return tuple(made[:count])
    if len(out) != count:
        raise TypeError(f"expected tuple of {count} elements but got {len(out)}")
    if not isinstance(out, (tuple, list)):
        raise TypeError(f"argument 'out' must be tuple of Tensors, not {type(out).__name__}")
    for place, result in zip(out, made):
        place.resize_as_(result).copy_(result)
    return out


def _lu_unpack(xp: ArrayModule, lu: Array, pivots: Array, data: bool, order: bool) -> Any:
    if order and pivots.dtype != np.int32:
        raise RuntimeError(
            "torch.lu_unpack: LU_pivots is expected to be a contiguous tensor of "
            "torch.int32 dtype.\nNote: this function is intended to be used with "
            "the output produced by torch.linalg.lu_factor"
        )
    _need_two_dims("torch.lu_unpack", lu)
    if order and _outside(pivots, lu.shape[-2]):
        raise RuntimeError(
            "pivots passed to lu_unpack must be between 1 and LU.size(-2) inclusive."
            "Did you properly pass the result of lu_factor?"
        )
    p = permutation(xp, pivots, lu.shape[-2], lu.dtype) if order else xp.empty(0, lu.dtype)
    if not data:
        return p, xp.empty(0, lu.dtype), xp.empty(0, lu.dtype)
    return p, *split_lu(xp, lu)


def _lu_unpack_gradient(gs: Sequence[Tensor], LU_data_shape: Sizes, unpack_data: bool) -> Any:
    if not unpack_data:
        return None
    m, n = LU_data_shape[-2:]
    k = min(m, n)
    gl, gu = gs[1].tril(-1), gs[2].triu()
    if m > n:
        gu = cat.function([gu, gu.new_zeros((*gu.shape[:-2], m - k, n))], -2)
    elif n > m:
        gl = cat.function([gl, gl.new_zeros((*gl.shape[:-2], m, n - k))], -1)
    return gl + gu


lu_unpack_op = in_own_type(
    "lu_unpack(Tensor LU_data, Tensor LU_pivots, bool unpack_data=True, bool unpack_pivots=True) "
    "-> (Tensor P, Tensor L, Tensor U)",
    _lu_unpack,
    forms="out",
    out_type="same",
    d_LU_data=_lu_unpack_gradient,
    memory="rows",
    doc="P, L and U from a compact factorisation.",
)


@public("lu_unpack", returns="(Tensor P, Tensor L, Tensor U)")
def lu_unpack(
    LU_data: Tensor,
    LU_pivots: Tensor,
    unpack_data: bool = True,
    unpack_pivots: bool = True,
    *,
    out: tuple[Tensor, Tensor, Tensor] | None = None,
) -> Any:
    """(P, L, U) from what `linalg.lu_factor` gives."""
    made = lu_unpack_op.function(LU_data, LU_pivots, unpack_data, unpack_pivots, out=out)
    return checks.named("lu_unpack", "P L U", made, out=out)


def _lu_solve(
    xp: ArrayModule, lu: Array, pivots: Array, b: Array, left: bool, adjoint: bool
) -> Any:
    name = "torch.linalg.lu_solve"
    if from_numpy_dtype(lu.dtype) not in (float16, bfloat16):  # which are refused below
        checks.need_float(name, lu)
    checks.need_same_dtype("linalg.lu_solve", lu, b, "LU")
    if pivots.dtype != np.int32:
        raise RuntimeError("linalg.lu_solve: pivots should be a Tensor of scalar type torch.int32")
    checks.need_square(name, lu)
    checks.need_fit("linalg.lu_solve", lu, b, left)
    if lu.shape[-1] != pivots.shape[-1]:
        raise RuntimeError(
            "linalg.lu_solve: Number of pivots per batch should be same as the "
            "dimension of the matrix"
        )
    if lu.shape[:-1] != pivots.shape:
        raise RuntimeError(
            "linalg.lu_solve: Expected LU.shape[:-1] and pivots.shape to be the "
            f"same, but got pivots with shape {list(pivots.shape)} instead"
        )
    checks.need_kernel("linalg.lu_solve_cpu", lu)
    if not left:  # XA = B is AᴴXᴴ = Bᴴ
        b, adjoint = b.swapaxes(-1, -2).conj(), not adjoint
    if what := _outside(pivots, lu.shape[-2]):
        raise RuntimeError(
            f"Pivots given to lu_solve must all be {what}. "
            "Did you properly pass the result of lu_factor?"
        )
    order = order_of(xp, pivots, lu.shape[-1])
    if adjoint:
        h = lu.swapaxes(-1, -2).conj()
        x = triangular(xp, h, triangular(xp, h, b, False), True, True)
        x = in_order(xp, x, xp.argsort(order, -1))
    else:
        b = in_order(xp, b, order)
        x = triangular(xp, lu, triangular(xp, lu, b, False, True), True)
    return columns(x) if left else columns(x).swapaxes(-1, -2).conj()


def _lu_solve_gradient(
    g: Tensor, LU: Tensor, pivots: Tensor, left: bool, adjoint: bool, result: Tensor
) -> Any:
    # With A = PLU: gA = -gB·Xᴴ where gB solves the adjoint equation; then L and U share gA.
    p, lower, upper = lu_unpack(LU, pivots)
    gb = lu_solve_op.function(LU, pivots, g, left=left, adjoint=not adjoint)
    ga = -(gb @ result.mH) if left else -(result.mH @ gb)
    ga = p.mT @ (ga.mH if adjoint else ga)
    return (ga @ upper.mH).tril(-1) + (lower.mH @ ga).triu()


lu_solve_op: Op = in_own_type(
    "linalg_lu_solve(Tensor LU, Tensor pivots, Tensor B, *, bool left=True, bool adjoint=False) "
    "-> Tensor",
    _lu_solve,
    holomorphic=False,
    d_LU=_lu_solve_gradient,
    d_B=lambda g, LU, pivots, left, adjoint: lu_solve_op.function(
        LU, pivots, g, left=left, adjoint=not adjoint
    ),
    doc="X of AX = B (XA = B, AᴴX = B) from the factorisation of A.",
    out_type="same",
)


@public("lu_solve", method=True)
@cast_to("float32")
def lu_solve(
    input: Tensor, LU_data: Tensor, LU_pivots: Tensor, *, out: Tensor | None = None
) -> Tensor:
    """X of AX = B: the older form of `linalg.lu_solve`."""
    return lu_solve_op.function(LU_data, LU_pivots, input, out=out)
