"""Linear systems and inverses of square matrices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import generic
from toytorch.core.memory_order import columns, row_major
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts.hints import Array, ArrayModule, Shape, Sizes
from toytorch.facts.size import broadcast_pair, wrap_dim
from toytorch.ops.creation.create import need_type, put_out
from toytorch.ops.define import decomposition, in_own_type, public
from toytorch.ops.linalg import checks
from toytorch.ops.linalg.lu import lu_kernel, order_of
from toytorch.ops.linalg.triangular import triangular

SINGULAR = "The solver failed because the input matrix is singular."
NO_INVERSE = (
    "The diagonal element {info} is zero, the inversion could not be completed because "
    "the input matrix is singular."
)


def is_vector(a: tuple[int, ...], b: Sequence[int]) -> bool:
    """Whether B of AX = B is a vector, or a batch of them, by the shapes of A and B."""
    return len(b) == 1 or (len(b) == len(a) - 1 and tuple(b) == tuple(a[:-1]))


def _system(xp: ArrayModule, a: Array, b: Array) -> tuple[Any, Any]:
    """(X, info) of AX = B by LAPACK; by our own LU where some matrix of the batch is singular."""
    batch = broadcast_pair(a.shape[:-2], b.shape[:-2])
    info = xp.zeros(a.shape[:-2], np.int32)
    try:
        return generic.solve(xp, a, b), info
    except xp.linalg.LinAlgError:
        lu, pivots, info = lu_kernel(xp, a)
        info = _at_least_one(xp, lu, info)
        b = xp.broadcast_to(b, (*batch, *b.shape[-2:]))
        order = order_of(xp, pivots, a.shape[-1])
        b = xp.take_along_axis(b, xp.broadcast_to(order[..., None], b.shape), -2)
        x = triangular(xp, lu, triangular(xp, lu, b, False, True), True)
        return x, info


def _at_least_one(xp: ArrayModule, lu: Array, info: Array) -> Any:
    """The info, where rounding hid from our LU the zero that LAPACK met: its smallest pivot."""
    if info.any() or not info.size:
        return info
    size = abs(xp.diagonal(lu, 0, -2, -1))
    worst = size == size.min()
    return xp.where(worst.any(-1), worst.argmax(-1) + 1, 0).astype(np.int32)


def _solve(xp: ArrayModule, a: Array, b: Array, left: bool) -> Any:
    name = "linalg.solve"
    checks.need_square(name, a)
    checks.need_same_dtype(name, a, b)
    vector = is_vector(a.shape, b.shape)
    if vector and not left:
        raise RuntimeError(
            "linalg.solve: Vector broadcasting of the left hand side is not supported for "
            "left=False. In this case linalg.solve is equivalent to B / A.squeeze(-1)"
        )
    b = b[..., None] if vector else b
    checks.need_fit(name, a, b, left)
    checks.need_float(name, a, "lu_cpu")
    if left:
        x, info = _system(xp, a, b)
    else:
        x, info = _system(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2))
        x = x.swapaxes(-1, -2)
    x = x[..., 0] if vector else x
    return columns(x) if left else row_major(x), info


def _right_share(gs: Any, A: Any, B_shape: Shape, left: bool) -> Any:
    if not gs[0].numel():
        return gs[0]
    g = gs[0].unsqueeze(-1) if is_vector(A.shape, B_shape) else gs[0]
    gb = solve_op.function(A.mH, g, left=left)[0]
    return gb.squeeze(-1) if g is not gs[0] else gb


def _matrix_share(
    gs: list[Tensor | None], A: Any, B_shape: Sizes, left: bool, result0: Tensor
) -> Any:
    gb = _right_share(gs, A, B_shape, left)
    if is_vector(A.shape, B_shape):
        return -(gb.unsqueeze(-1) @ result0.unsqueeze(-1).mH)
    return -(gb @ result0.mH) if left else -(result0.mH @ gb)


solve_op: Op = in_own_type(
    "linalg_solve_ex(Tensor A, Tensor B, *, bool left=True) -> (Tensor result, Tensor info)",
    _solve,
    forms="out",
    out_type="same",
    d_A=_matrix_share,
    d_B=_right_share,
    amp="float32",
    doc="X of AX = B (or XA = B), and where a matrix is singular.",
)


@public("linalg.solve_ex", returns="(Tensor result, Tensor info)")
def solve_ex(
    A: Tensor,
    B: Tensor,
    *,
    left: bool = True,
    check_errors: bool = False,
    out: tuple[Tensor, Tensor] | None = None,
) -> Any:
    """(result, info): `linalg.solve` that reports singular matrices instead of raising."""
    made = solve_op.function(A, B, left=left, out=out)
    if check_errors:
        checks.raise_first("torch.linalg.solve_ex", made[1], SINGULAR)
    return checks.named("linalg_solve_ex", "result info", made, out=out)


@public("linalg.solve")
def solve(A: Tensor, B: Tensor, *, left: bool = True, out: Tensor | None = None) -> Tensor:
    """X of AX = B, or of XA = B where left=False; LinAlgError where A is singular.

    >>> torch.linalg.solve(torch.tensor([[2., 0.], [0., 4.]]), torch.tensor([2., 2.]))
    tensor([1.0000, 0.5000])
    """
    x, info = solve_op.function(A, B, left=left)
    checks.raise_first("torch.linalg.solve", info, SINGULAR)
    return put_out(x, out, same=True)


# -- inverses -------------------------------------------------------------------------------------


def _inv(xp: ArrayModule, a: Array) -> Any:
    checks.need_square("linalg.inv", a)
    checks.need_float("linalg.inv", a)
    try:
        return xp.linalg.inv(a), xp.zeros(a.shape[:-2], np.int32)
    except xp.linalg.LinAlgError:
        return _system(xp, a, xp.eye(a.shape[-1], dtype=a.dtype))


inv_op = decomposition(
    "linalg_inv_ex(Tensor A) -> (Tensor inverse, Tensor info)",
    _inv,
    d_A=lambda gs, result0: -(result0.mH @ (gs[0] @ result0.mH)),
    doc="The inverse, and where a matrix has none.",
)


@public("linalg.inv_ex", returns="(Tensor inverse, Tensor info)")
def inv_ex(
    A: Tensor, *, check_errors: bool = False, out: tuple[Tensor, Tensor] | None = None
) -> Any:
    """(inverse, info): `linalg.inv` that reports singular matrices instead of raising."""
    made = inv_op.function(A, out=out)
    if check_errors:
        checks.raise_first("linalg.inv_ex", made[1], NO_INVERSE)
    return checks.named("linalg_inv_ex", "inverse info", made, out=out)


@public("inverse", method=True)
def inverse(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`linalg.inv`."""
    return inv(input, out=out)


@public("linalg.inv")
def inv(A: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The inverse of square matrices; LinAlgError where there is none.

    >>> torch.linalg.inv(torch.tensor([[2., 0.], [0., 4.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.2500]])
    """
    made, info = inv_op.function(A)
    need_type(out, made.dtype)
    checks.raise_first("linalg.inv", info, NO_INVERSE)
    return put_out(made, out, same=True)


# -- tensors taken as matrices --------------------------------------------------------------------


@public("linalg.tensorinv")
def tensorinv(input: Tensor, ind: int = 2, *, out: Tensor | None = None) -> Tensor:
    """The inverse for `tensordot`: the first `ind` dimensions are the rows of a matrix."""
    if ind <= 0:
        raise RuntimeError("Expected a strictly positive integer for 'ind'")
    if ind > input.ndim:
        raise RuntimeError(f"ArrayRef: invalid slice, N = {ind}; size = {input.ndim}")
    end, start = tuple(input.shape[ind:]), tuple(input.shape[:ind])
    if math.prod(end) != math.prod(start):
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[ind:]) == "
            f"prod(self.shape[:ind]), but got {math.prod(end)} != {math.prod(start)}"
        )
    square = input.reshape(math.prod(end), math.prod(end))
    inverse, info = inv_op.function(square)
    checks.raise_first("inv", info, NO_INVERSE)
    return put_out(inverse.reshape((*end, *start)), out)


@public("linalg.tensorsolve", words={"other": "B", "x2": "B"})
def tensorsolve(
    input: Tensor, B: Tensor, dims: tuple[int, ...] | None = None, *, out: Tensor | None = None
) -> Tensor:
    """X with tensordot(A, X, X.ndim) = B; `dims` of A go to its end first."""
    if dims is not None:
        moved = [wrap_dim(d, input.ndim) for d in dims]
        kept = [d for d in range(input.ndim) if d not in moved]
        input = input.permute(kept + moved) if input.ndim else input
    shape = tuple(input.shape[B.ndim :])
    n = math.prod(shape)
    if B.numel() != n:
        raise RuntimeError(
            "Expected self to satisfy the requirement prod(self.shape[other.ndim:]) == "
            f"prod(self.shape[:other.ndim]), but got {n} != {B.numel()}"
        )
    flat = input.reshape(n, n)
    made = solve(flat, B.reshape(-1)).reshape(shape)
    return put_out(made, out)
