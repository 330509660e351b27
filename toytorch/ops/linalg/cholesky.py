"""Cholesky's factorisation of positive definite matrices, A = LLᴴ, and what uses it."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_grad
from toytorch.facts import state, warned
from toytorch.facts.composed import cast_to
from toytorch.facts.device import contiguous_format
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import broadcast_pair
from toytorch.ops.creation.create import need_type, put_out
from toytorch.ops.define import decomposition, in_own_type, public
from toytorch.ops.linalg import checks
from toytorch.ops.linalg.triangular import solve_with, triangular

NOT_POSITIVE = (
    "The factorization could not be completed because the input is not "
    "positive-definite (the leading minor of order {info} is not positive-definite)."
)


def _column_by_column(xp: ArrayModule, a: Array) -> tuple[Any, Any]:
    """(L, info) where LAPACK failed: info is the order of the first minor that is not positive, and
    from its column on L is what was there, as LAPACK leaves it."""
    x, n = xp.tril(a), a.shape[-1]
    info = xp.zeros(a.shape[:-2], np.int32)
    for j in range(n):
        d = x[..., j, j].real - (abs(x[..., j, :j]) ** 2).sum(-1)
        bad, going = ~(d > 0), info == 0
        info = xp.where(bad & going, np.int32(j + 1), info)
        root = xp.sqrt(xp.where(bad, 1, d))
        x[..., j, j] = xp.where(going, xp.where(bad, d, root), x[..., j, j])
        old = x[..., j + 1 :, j]
        rest = old - (x[..., j + 1 :, :j] @ x[..., j, :j, None].conj())[..., 0]
        x[..., j + 1 :, j] = xp.where((going & ~bad)[..., None], rest / root[..., None], old)
    return x, info


@checks.empty_of_any_type
def _cholesky(xp: ArrayModule, a: Array, upper: bool) -> Any:
    checks.need_square("linalg.cholesky", a)
    checks.need_float("linalg.cholesky", a, "cholesky_cpu", or_empty=True)
    a = checks.workable(a)
    lower = a.swapaxes(-1, -2).conj() if upper else a
    try:
        made, info = xp.linalg.cholesky(lower), xp.zeros(a.shape[:-2], np.int32)
        # OpenBLAS passes over NaN, which then is in the last element, too.
        failed = a.__class__ is np.ndarray and a.size and bool(xp.isnan(made[..., -1, -1]).any())
    except xp.linalg.LinAlgError:
        failed = True
    if failed:
        made, info = _column_by_column(xp, lower)
    return (made.swapaxes(-1, -2).conj() if upper else made), info


def _cholesky_gradient(gs: Any, upper: bool, result0: Any) -> Any:
    # gA = ½·L⁻ᴴ·(P + Qᴴ)·L⁻¹ with P the lower triangle of Lᴴ·gL, and Q what is below its diagonal.
    lower, g = (result0.mH, gs[0].mH) if upper else (result0, gs[0])
    p = (lower.mH @ g).tril()
    middle = (p + p.tril(-1).mH) * 0.5
    return solve_with(lower, solve_with(lower.mH, middle, True), False, False)


cholesky_op: Op = decomposition(
    "linalg_cholesky_ex(Tensor self, *, bool upper=False) -> (Tensor L, Tensor info)",
    _cholesky,
    d_self=_cholesky_gradient,
    doc="L of A = LLᴴ, and where a matrix is not positive definite.",
)


@public("linalg.cholesky_ex", returns="(Tensor L, Tensor info)")
def cholesky_ex(
    input: Tensor,
    *,
    upper: bool = False,
    check_errors: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Any:
    """(L, info): `linalg.cholesky` that reports failures instead of raising."""
    made = cholesky_op.function(input, upper=upper, out=out)
    if check_errors:
        checks.raise_first("linalg.cholesky_ex", made[1], NOT_POSITIVE)
    return checks.named("linalg_cholesky_ex", "L info", made, out=out)


@public("linalg.cholesky")
def linalg_cholesky(input: Tensor, *, upper: bool = False, out: Tensor | None = None) -> Tensor:
    """L of A = LLᴴ (or U of A = UᴴU) for positive definite matrices.

    >>> torch.linalg.cholesky(torch.tensor([[4., 2.], [2., 5.]]))
    tensor([[2., 0.],
            [1., 2.]])
    """
    if out is not None:
        refuse_grad("linalg_cholesky_ex", (input,), out)
    need_type(out, input.dtype)
    factor, info = cholesky_op.function(input, upper=upper)
    checks.raise_first("linalg.cholesky", info, NOT_POSITIVE)
    return put_out(factor, out, same=True)


@public("cholesky", method=True)
@cast_to("float32")
def cholesky(input: Tensor, upper: bool = False, *, out: Tensor | None = None) -> Tensor:
    """`linalg.cholesky` under its older name, which takes what has no elements as it is."""
    warned.once(
        "torch.cholesky is deprecated in favor of torch.linalg.cholesky and will be removed in a "
        "future PyTorch release.\nL = torch.cholesky(A)\nshould be replaced with\n"
        "L = torch.linalg.cholesky(A)\nand\nU = torch.cholesky(A, upper=True)\nshould be replaced "
        "with\nU = torch.linalg.cholesky(A).mH\nThis transform will produce equivalent results "
        "for all valid (symmetric positive definite) inputs."
    )
    if out is not None:
        refuse_grad("cholesky", (input,), out)
    if not input.numel():
        return put_out(input.clone(memory_format=contiguous_format), out)
    checks.need_square("cholesky", input._array)
    need_type(out, input.dtype, False)
    checks.need_kernel("cholesky_cpu", input._array)
    factor, info = cholesky_op.function(input, upper=upper)
    checks.raise_first("cholesky", info, NOT_POSITIVE)
    return put_out(factor, out)


def _cholesky_solve(xp: ArrayModule, b: Array, factor: Array, upper: bool) -> Any:
    for name, x in (("b", b), ("u", factor)):
        if x.ndim < 2:
            raise RuntimeError(
                f"{name} should have at least 2 dimensions, but has {x.ndim} dimensions instead"
            )
    n = factor.shape[-1]
    if factor.shape[-2] != n:
        raise RuntimeError(
            "cholesky_solve: A must be batches of square matrices, but they are "
            f"{factor.shape[-2]} by {n} matrices"
        )
    if b.shape[-2] != n:
        raise RuntimeError(
            f"Incompatible matrix sizes for cholesky_solve: each A matrix is {n} by "
            f"{n} but each b matrix is {b.shape[-2]} by {b.shape[-1]}"
        )
    if b.dtype != factor.dtype:
        kinds = [from_numpy_dtype(t.dtype).legacy for t in (b, factor)]
        raise RuntimeError(
            f"Expected b and A to have the same dtype, but found b of type {kinds[0]} and A of type {kinds[1]} "
            "instead."
        )
    broadcast_pair(b.shape[:-2], factor.shape[:-2])
    checks.need_kernel("cholesky_solve_cpu", b)
    h = factor.swapaxes(-1, -2).conj()
    lower, high = (h, factor) if upper else (factor, h)
    return triangular(xp, high, triangular(xp, lower, b, False), True)


def _factor_share(g: Tensor, input2: Tensor, result: Tensor, upper: bool) -> Any:
    both = cholesky_solve_op.function(g, input2, upper) @ result.mH
    both = both + both.mH
    return -(input2 @ both if upper else both @ input2)


cholesky_solve_op: Op = in_own_type(
    "cholesky_solve(Tensor self, Tensor input2, bool upper=False) -> Tensor",
    _cholesky_solve,
    holomorphic=False,
    d_self=lambda g, self, input2, upper: cholesky_solve_op.function(g, input2, upper),
    d_input2=_factor_share,
    amp="float32",
    memory="columns",
    out_rows=True,
    doc="X of LLᴴX = B (or UᴴUX = B).",
)


def _cholesky_inverse(xp: ArrayModule, factor: Array, upper: bool) -> Any:
    checks.need_square("cholesky_inverse", factor)
    checks.need_kernel("cholesky_inverse_out_cpu", factor)
    without_values = state.local.place is not None and state.local.place.type == "meta"
    if not without_values and not xp.diagonal(factor, 0, -2, -1).all():
        place = int(xp.argmax(xp.diagonal(factor, 0, -2, -1).reshape(-1) == 0)) + 1
        raise checks.LinAlgError(
            f"cholesky_inverse: The diagonal element {place} is zero, the inversion could not be "
            "completed because the input matrix is singular."
        )
    eye = xp.eye(factor.shape[-1], dtype=factor.dtype)
    return _cholesky_solve(xp, xp.broadcast_to(eye, factor.shape), factor, upper)


def _inverse_gradient(g: Tensor, self: Tensor, result: Tensor, upper: bool) -> Any:
    both = result @ (g + g.mH) @ result
    return -(self @ both) if upper else -(both @ self)


cholesky_inverse_op = in_own_type(
    "cholesky_inverse(Tensor self, bool upper=False) -> Tensor",
    _cholesky_inverse,
    holomorphic=False,
    d_self=_inverse_gradient,
    amp="float32",
    memory="columns",
    out_rows=True,
    doc="The inverse of LLᴴ (or of UᴴU).",
)
