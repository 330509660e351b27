"""Triangular systems, by BLAS where NumPy's library shows its routine; else in halves, so that matrix
products do the work."""

from __future__ import annotations

from typing import Any

from toytorch.backends import generic
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_grad
from toytorch.facts import warned
from toytorch.facts.composed import cast_to
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import broadcast_pair
from toytorch.ops.creation.create import put_out
from toytorch.ops.define import decomposition, in_own_type, public
from toytorch.ops.linalg.checks import BLOCK, named, need_fit, need_kernel


def substitute(xp: ArrayModule, a: Array, b: Array, upper: bool) -> Any:
    """X of AX = B row by row; a zero on the diagonal gives infinities, as BLAS does."""
    n = a.shape[-1]
    batch = xp.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    x = xp.broadcast_to(b, (*batch, *b.shape[-2:])).copy()
    for i in reversed(range(n)) if upper else range(n):
        x[..., i, :] /= a[..., i, i, None]
        rest = slice(0, i) if upper else slice(i + 1, n)
        x[..., rest, :] -= a[..., rest, i, None] * x[..., i, None, :]
    return x


def triangular(xp: ArrayModule, a: Array, b: Array, upper: bool, unit: bool = False) -> Any:
    """X of AX = B for the upper or lower triangle of A; `unit` takes its diagonal as ones."""
    if not (unit or xp.diagonal(a, 0, -2, -1).all()):
        return substitute(xp, a, b, upper)
    made = generic.attempt(xp, "triangular", a, b, upper, unit)
    if made is None and not b.size and b.shape[:-2] == a.shape[:-2]:
        made = xp.zeros(b.shape, b.dtype)
    if made is not None:
        return made
    n = a.shape[-1]
    if n > BLOCK:
        h = n // 2
        first, last = (slice(h, n), slice(0, h)) if upper else (slice(0, h), slice(h, n))
        x = triangular(xp, a[..., first, first], b[..., first, :], upper, unit)
        y = triangular(
            xp, a[..., last, last], b[..., last, :] - a[..., last, first] @ x, upper, unit
        )
        return xp.concatenate([y, x] if upper else [x, y], -2)
    t = (xp.triu if upper else xp.tril)(a, (1 if upper else -1) if unit else 0)
    if unit:
        t = t + xp.eye(n, dtype=a.dtype)
    try:
        return generic.solve(xp, t, b)
    except xp.linalg.LinAlgError:
        return substitute(xp, t, b, upper)


def _solve_triangular(
    xp: ArrayModule, a: Array, b: Array, upper: bool, left: bool, unit: bool
) -> Any:
    name = "linalg.solve_triangular"
    need_fit(name, a, b, left)
    need_kernel("triangular_solve_cpu", a)
    if b.dtype != a.dtype:
        b = b.real if b.dtype.kind == "c" and a.dtype.kind != "c" else b
        b = b.astype(a.dtype)  # as PyTorch does, whichever has more digits
    if left:
        return triangular(xp, a, b, upper, unit)
    transposed = triangular(xp, a.swapaxes(-1, -2), b.swapaxes(-1, -2), not upper, unit)
    return transposed.swapaxes(-1, -2)


def solve_with(a: Tensor, b: Tensor, upper: bool, left: bool = True, unit: bool = False) -> Tensor:
    """The differentiable `linalg.solve_triangular`."""
    return solve_triangular_op.function(a, b, upper=upper, left=left, unitriangular=unit)


def _triangular_gradient(
    g: Tensor, self: Tensor, upper: bool, left: bool, unitriangular: bool, result: Tensor
) -> Any:
    gb = solve_with(self.mH, g, not upper, left, unitriangular)
    ga = gb @ result.mH if left else result.mH @ gb
    skip = int(unitriangular)
    return -(ga.triu(skip) if upper else ga.tril(-skip))


solve_triangular_op: Op = decomposition(
    "linalg_solve_triangular(Tensor self, Tensor B, *, bool upper, bool left=True, "
    "bool unitriangular=False) -> Tensor",
    _solve_triangular,
    forms="function out",
    holomorphic=False,
    d_self=_triangular_gradient,
    d_B=lambda g, self, upper, left, unitriangular: solve_with(
        self.mH, g, not upper, left, unitriangular
    ),
    amp="",
    batch="",
    doc="X of AX = B (or XA = B), where only a triangle of A counts.",
)

copied_coefficient = in_own_type(
    "triangular_solve.coefficient(Tensor A, Tensor b) -> Tensor",
    lambda xp, a, b: xp.broadcast_to(
        a, (*broadcast_pair(a.shape[:-2], b.shape[:-2]), *a.shape[-2:])
    ).copy(),
    forms="",
    d_A=lambda g: g,
    d_b=lambda g, b_shape: g.new_zeros(b_shape),  # PyTorch has one node for both results
    memory="columns",
    doc="The second result of `triangular_solve`, A in memory of its own.",
)


@public("triangular_solve", method=True, returns="(Tensor solution, Tensor cloned_coefficient)")
@cast_to("float32")
def triangular_solve(
    input: Tensor,
    A: Tensor,
    upper: bool = True,
    transpose: bool = False,
    unitriangular: bool = False,
    *,
    out: tuple[Tensor, Tensor] | None = None,
) -> Any:
    """(X, A) with AX = B for a triangular A: the older form of `linalg.solve_triangular`."""
    warned.once(
        "torch.triangular_solve is deprecated in favor of torch.linalg.solve_triangularand will be "
        "removed in a future PyTorch release.\ntorch.linalg.solve_triangular has its arguments "
        "reversed and does not return a copy of one of the inputs.\nX = torch.triangular_solve(B, "
        "A).solution\nshould be replaced with\nX = torch.linalg.solve_triangular(A, B)."
    )
    if out is not None:
        refuse_grad("triangular_solve", (input, A), tuple(out))
    if input.dtype is not A.dtype:
        raise RuntimeError(
            "Expected b and A to have the same dtype, but found b of type "
            f"{input.dtype.legacy} and A of type {A.dtype.legacy} instead."
        )
    matrix = A.mT if transpose else A
    x = solve_with(matrix, input, upper != transpose, True, unitriangular)
    made: tuple[Tensor, ...] = (x, copied_coefficient.function(A, input))
    if out is not None:
        made = tuple(put_out(t, o, same=True) for t, o in zip(made, out, strict=True))
    name = "triangular_solve" if out is None else "triangular_solve_out"
    return named(name, "solution cloned_coefficient", made)
