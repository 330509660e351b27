"""Least squares: X that makes ‖AX - B‖ smallest."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.no_elements import lying
from toytorch.core.memory_order import row_major
from toytorch.core.tensor import Tensor
from toytorch.core.write import need_out, refuse_grad
from toytorch.facts.dtype import from_numpy_dtype, no_kernel
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import broadcast_pair, contiguous_strides
from toytorch.ops.creation.create import put_out
from toytorch.ops.define import in_own_type, public
from toytorch.ops.linalg.checks import LinAlgError, absent, named
from toytorch.ops.linalg.solve import is_vector
from toytorch.ops.linalg.svd import pinv_gradient, pinv_op
from toytorch.ops.linalg.triangular import triangular

NAMES = ("solution", "residuals", "rank", "singular_values")
DRIVERS = ("gels", "gelsy", "gelsd", "gelss")


def _check(a: Array, b: Array, rcond: float | None, driver: str | None) -> None:
    name = "torch.linalg.lstsq"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    if b.ndim < 1:
        raise RuntimeError(f"{name}: other must have at least 1 dimension.")
    if a.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected input and other to have the same dtype, but got "
            f"input's dtype {from_numpy_dtype(a.dtype).legacy} and other's dtype "
            f"{from_numpy_dtype(b.dtype).legacy}"
        )
    difference = a.ndim - b.ndim
    if not 0 <= difference <= 1:
        raise RuntimeError(
            f"{name}: input.dim() must be greater or equal to other.dim() and "
            "(input.dim() - other.dim()) <= 1"
        )
    vector = is_vector(a.shape, b.shape)
    rows = b.shape[-1] if vector else b.shape[-2]
    if rows != a.shape[-2]:
        side = "other.size(-1)" if vector else "other.size(-2)"
        raise RuntimeError(f"{name}: input.size(-2) should match {side}")
    if driver is not None and driver not in DRIVERS:
        raise RuntimeError(
            f"{name}: parameter `driver` should be one of (gels, gelsy, gelsd, gelss)"
        )
    if a.dtype.kind not in "fc" or a.dtype.itemsize == 2:
        if rcond is None:  # which is found first
            raise RuntimeError("This function doesn't handle types other than float and double")
        raise no_kernel("linalg_lstsq_cpu", a.dtype)


def full_rank(xp: ArrayModule, a: Array, b: Array) -> Any:
    """X by QR, as LAPACK's gels finds it: of a rank that is full, or else of zeros alone."""
    nothing = ~a.any(axis=(-2, -1), keepdims=True)
    if nothing.any():
        x = full_rank(xp, xp.where(nothing, xp.eye(*a.shape[-2:], dtype=a.dtype), a), b)
        return xp.where(nothing, x.dtype.type(0), x)
    tall = a.shape[-2] >= a.shape[-1]
    q, r = xp.linalg.qr(a if tall else a.swapaxes(-1, -2).conj())
    lost = xp.diagonal(r, axis1=-2, axis2=-1) == 0
    if lost.any():
        rows = lost.reshape(-1, lost.shape[-1])
        i = int(rows.any(-1).argmax())
        where = f"(Batch element {i}): " if a.ndim > 2 else ""
        raise LinAlgError(
            f"torch.linalg.lstsq: {where}The least squares solution could not be computed because "
            f"the input matrix does not have full rank (error code: {int(rows[i].argmax()) + 1})."
        )
    if tall:
        return triangular(xp, r, q.swapaxes(-1, -2).conj() @ b, True)
    return q @ triangular(xp, r.swapaxes(-1, -2).conj(), b, False)  # of all X the smallest, Q·R⁻ᴴB


def pivoted(a: Array) -> tuple[Array, Array, list[int]]:
    """(Q, R, order) with A[:, order] = Q·R, by reflections, the largest column left first at each step:
    the first columns of the order span most of A."""
    m, n = a.shape
    q, r, order = np.eye(m, dtype=a.dtype), a.copy(), list(range(n))
    for k in range(min(m, n)):
        sizes = (np.abs(r[k:, k:]) ** 2).sum(0)
        best = k + int(sizes.argmax())
        if best != k:
            r[:, [k, best]] = r[:, [best, k]]
            order[k], order[best] = order[best], order[k]
        v = r[k:, k].copy()
        size = np.linalg.norm(v)
        if not size:
            break
        v[0] += (v[0] / abs(v[0]) if v[0] else 1) * size
        v /= np.linalg.norm(v)
        r[k:] -= 2 * np.outer(v, v.conj() @ r[k:])
        q[:, k:] -= 2 * np.outer(q[:, k:] @ v, v.conj())
    return q, r, order


def by_pivots(a: Array, b: Array, limit: float) -> tuple[Array, int]:
    """X and the rank of one matrix, as LAPACK's gelsy finds them: as many columns, the largest left
    first, as have a condition of at most 1/limit; of all X that fit these the smallest."""
    q, r, order = pivoted(a)
    rank = int(bool(r.size and r[0, 0]))
    while 0 < rank < min(a.shape):
        s = np.linalg.svd(r[: rank + 1, : rank + 1], compute_uv=False)
        if s[0] * limit > s[-1]:
            break
        rank += 1
    x = np.zeros((a.shape[1], b.shape[1]), a.dtype)
    if rank:
        wide, small = np.linalg.qr(r[:rank].conj().T)  # the rows of R, of which X is made
        x[order] = wide @ np.linalg.solve(small.conj().T, q[:, :rank].conj().T @ b)
    return x, rank


def _lstsq(xp: ArrayModule, a: Array, b: Array, rcond: float | None, driver: str | None) -> Any:
    _check(a, b, rcond, driver)
    driver = driver or "gelsy"
    vector = is_vector(a.shape, b.shape)
    b = b[..., None] if vector else b
    m, n = a.shape[-2:]
    # Of one matrix fewer dimensions are those before its columns, as PyTorch counts them.
    batch = broadcast_pair(a.shape[:-2], b.shape[: -1 if b.ndim < a.ndim else -2])
    real = a.real.dtype
    s = xp.zeros((*a.shape[:-2], min(m, n)), real)
    count = xp.zeros(a.shape[:-2], np.int64)
    if bool(xp.isnan(a).any()) or bool(xp.isnan(b).any()):
        raise RuntimeError("torch.linalg.lstsq: input tensors should not contain NaNs.")
    if not a.size:
        x = xp.zeros((*batch, n, b.shape[-1]), a.dtype)
    elif driver == "gels":
        x = full_rank(xp, a, b)
    else:
        u, s, vh = xp.linalg.svd(a, False)
        limit = np.finfo(real).eps * max(m, n) if rcond is None else rcond
        if driver == "gelsd" and not 0 < limit < 1:  # LAPACK's own choice
            limit = np.finfo(real).eps
        keep = s > limit * s.max(-1, keepdims=True)
        if driver == "gelsy":
            keep[..., :1] = s[..., :1] > 0  # the first is always counted
        inverse = xp.where(keep, 1 / xp.where(keep, s, 1), 0).astype(real)
        h = u.swapaxes(-1, -2).conj()
        x = vh.swapaxes(-1, -2).conj() @ (inverse[..., None] * (h @ b))
        count = keep.sum(-1)
        if (
            driver == "gelsy"
            and a.__class__ is np.ndarray
            and bool((s.min(-1) <= 2 * limit * s.max(-1)).any())
        ):
            left, right = (
                np.broadcast_to(v, (*batch, *v.shape[-2:])).reshape(-1, *v.shape[-2:])
                for v in (a, b)
            )
            found = [by_pivots(one, two, limit) for one, two in zip(left, right)]
            x = np.array([one for one, _ in found]).reshape(*batch, n, b.shape[-1])
            ranks = np.array([rank for _, rank in found]).reshape(batch)
            count = ranks[tuple(slice(n) for n in count.shape)]  # one matrix serves for several
    x = xp.broadcast_to(x, (*batch, *x.shape[-2:]))
    residuals = xp.empty(0, real)
    if m > n and driver != "gelsy" and (driver == "gels" or bool((count == n).all())):
        error = abs(a @ x - b)
        residuals = (error * error).sum(-2)
        if driver == "gels":  # of zeros alone LAPACK leaves nothing behind
            something: Any = a.any(axis=(-2, -1), keepdims=True)
            residuals = residuals * something[..., 0]
    rank = xp.empty(0, np.int64) if driver == "gels" else count
    values = s if driver in ("gelsd", "gelss") else xp.empty(0, real)
    wide = (*x.shape[:-2], x.shape[-1], max(m, n))  # as LAPACK leaves it
    if x.size:
        transposed = xp.empty(wide, x.dtype)
        transposed[..., :n] = x.swapaxes(-1, -2)
        x = transposed[..., :n].swapaxes(-1, -2)
    elif x.__class__ is np.ndarray:
        *steps, across, along = (s * x.itemsize for s in contiguous_strides(wide))
        x = lying(x, x.shape, (*steps, along, across))
    x = x[..., 0] if vector else x
    return x, row_major(residuals), row_major(rank), row_major(values)


def _gradients(gs: Any, a: Any, b: Any) -> tuple[Any, Any]:
    vector = is_vector(a.shape, b.shape)
    p = pinv_op.function(a)
    g, right = (gs[0].unsqueeze(-1), b.unsqueeze(-1)) if vector else (gs[0], b)
    ga = pinv_gradient(g @ right.mH, a, p)
    gb = p.mH @ g
    if gs[1].numel() and not absent(gs[1]):  # ‖AX - B‖² moves with A and B alone: X is its minimum
        error = (a @ (p @ right) - right) * (2 * gs[1].unsqueeze(-2))
        ga, gb = ga + error @ (p @ right).mH, gb - error
    return ga, gb.squeeze(-1) if vector else gb


lstsq_op = in_own_type(
    "linalg_lstsq(Tensor self, Tensor b, Scalar? rcond=None, *, str? driver=None) -> (Tensor "
    "solution, Tensor residuals, Tensor rank, Tensor singular_values)",
    _lstsq,
    forms="",
    results=(True, True, False, False),
    d_self=lambda gs, self, b, result0: _gradients(gs, self, b)[0],  # saves what PyTorch saves
    d_b=lambda gs, self, b, result0: _gradients(gs, self, b)[1],
    amp="float32",
    doc="The X with the smallest ‖AX - B‖, and of these the smallest X.",
)


@public(
    "linalg.lstsq",
    words={"b": "B"},
    returns="(Tensor solution, Tensor residuals, Tensor rank, Tensor singular_values)",
)
def lstsq(
    input: Tensor,
    B: Tensor,
    rcond: float | None = None,
    *,
    driver: str | None = None,
    out: tuple[Tensor, Tensor, Tensor, Tensor] | None = None,
) -> Any:
    """(solution, residuals, rank, singular_values) of min ‖AX - B‖."""
    if out is not None:
        need_out("linalg_lstsq", out, len(NAMES))
        refuse_grad("linalg_lstsq", (input, B), out[:2])
    made: Any = lstsq_op.function(input, B, rcond, driver=driver)
    if out is not None:
        for name, source, target in zip(NAMES, made, out):
            if source.dtype.rank > target.dtype.rank:
                raise RuntimeError(
                    f"torch.linalg.lstsq: Expected {name} to be safely castable from "
                    f"{source.dtype.legacy} dtype, but got {name} with dtype {target.dtype.legacy}"
                )
        made = tuple(put_out(source, target) for source, target in zip(made, out))
    return named("linalg_lstsq", " ".join(NAMES), made, out=out)
