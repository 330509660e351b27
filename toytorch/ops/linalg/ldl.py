"""LDLᵀ of symmetric (LDLᴴ of Hermitian) matrices, by the pivoting of Bunch and Kaufman.

Pivots are LAPACK's (sytrf): p > 0 exchanged rows k and p-1; two equal p < 0 mark a block of two.
J. Bunch and L. Kaufman, "Some stable methods for calculating inertia and solving symmetric linear
systems", Math. Comp. 31 (1977).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from toytorch.backends.base import on_host
from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_leaf
from toytorch.facts.dtype import int32
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import decomposition, public, underived, underived_parts
from toytorch.ops.linalg import checks

ALPHA = (1 + 17**0.5) / 8  # keeps the growth of elements smallest


def _size(x: Array) -> Any:
    """|re| + |im|, by which LAPACK compares complex numbers."""
    return abs(x.real) + abs(x.imag) if x.dtype.kind == "c" else abs(x)


def factor(a: Array, hermitian: bool) -> tuple[Any, Any, int]:
    """(LD, pivots, info) of one matrix, whose lower triangle is read and overwritten."""
    n, info = a.shape[0], 0
    pivots = np.zeros(n, np.int32)

    def conj(x: Array) -> Any:
        return x.conj() if hermitian else x

    k = 0
    while k < n:
        step, p = 1, k
        own = abs(a[k, k].real) if hermitian else float(_size(a[k, k]))
        below = _size(a[k + 1 :, k])
        worst = k + 1 + int(below.argmax()) if k + 1 < n else k
        largest = float(below.max()) if k + 1 < n else 0.0
        if max(own, largest) == 0 or own != own:
            info = info or k + 1
            if hermitian:
                a[k, k] = a[k, k].real
        else:
            if own < ALPHA * largest:
                row = max(
                    float(_size(a[worst, k:worst]).max()),
                    float(_size(a[worst + 1 :, worst]).max(initial=0.0)),
                )
                other = abs(a[worst, worst].real) if hermitian else float(_size(a[worst, worst]))
                if own >= ALPHA * largest * (largest / row):
                    p = k
                elif other >= ALPHA * row:
                    p = worst
                else:
                    p, step = worst, 2
            q = k + step - 1
            if p != q:  # exchange rows and columns p and q of what is left
                a[p + 1 :, [q, p]] = a[p + 1 :, [p, q]]
                middle = a[q + 1 : p, q].copy()
                a[q + 1 : p, q] = conj(a[p, q + 1 : p])
                a[p, q + 1 : p] = conj(middle)
                if hermitian:
                    a[p, q] = conj(a[p, q])
                a[q, q], a[p, p] = a[p, p], a[q, q]
                if step == 2:
                    a[k + 1, k], a[p, k] = a[p, k], a[k + 1, k]
            if hermitian:
                for i in {k, q, p}:
                    a[i, i] = a[i, i].real
            rest = slice(k + step, n)
            block = a[k : k + step, k : k + step].copy()
            if step == 2:
                block[0, 1] = conj(block[1, 0])
            if k + step < n:
                columns = a[rest, k : k + step].copy()
                lower = np.linalg.solve(block.T, columns.T).T if step == 2 else columns / block
                a[rest, rest] -= np.tril(lower @ conj(columns).T)
                a[rest, k : k + step] = lower
        pivots[k : k + step] = p + 1 if step == 1 else -(p + 1)
        k += step
    return a, pivots, info


ZERO = "The factorization could not be completed because D[{info},{info}] is exactly zero."


@checks.empty_of_any_type
def _ldl_factor(xp: ArrayModule, a: Array, hermitian: bool) -> Any:
    name = "torch.linalg.ldl_factor_ex"
    checks.need_square(name, a)
    checks.need_float(name, a, "ldl_factor_kernel_cpu", or_empty=True)
    n, batch = a.shape[-1], a.shape[:-2]
    matrices = np.tril(a).reshape(math.prod(batch), n, n)
    both = hermitian and a.dtype.kind == "c"
    made = [factor(m.copy(), both) for m in matrices]
    ld = np.array([m[0] for m in made], a.dtype).reshape(a.shape)
    pivots = np.array([m[1] for m in made], np.int32).reshape(a.shape[:-1])
    info = np.array([m[2] for m in made], np.int32).reshape(batch)
    return ld, pivots, info


ldl_factor_op = decomposition(
    "linalg_ldl_factor_ex(Tensor self, *, bool hermitian=False) "
    "-> (Tensor LD, Tensor pivots, Tensor info)",
    on_host(_ldl_factor, "one column after the other, each of which decides on the next"),
    node="NotImplemented",
    d_self=underived_parts("aten::linalg_ldl_factor_ex"),
    amp="",
    batch="",
    doc="A = LDLᵀ in one matrix, with its pivots.",
)


@public("linalg.ldl_factor_ex", returns="(Tensor LD, Tensor pivots, Tensor info)")
def ldl_factor_ex(
    input: Tensor,
    *,
    hermitian: bool = False,
    check_errors: bool = False,
    out: tuple[Tensor, Tensor, Tensor] | None = None,
) -> Any:
    """(LD, pivots, info) of A = LDLᵀ (LDLᴴ where hermitian); D has blocks of one or two."""
    made = ldl_factor_op.function(input, hermitian=hermitian, out=out)
    if check_errors:
        checks.raise_first("torch.linalg.ldl_factor_ex", made[2], ZERO)
    return checks.named("linalg_ldl_factor_ex", "LD pivots info", made, out=out)


@public("linalg.ldl_factor", returns="(Tensor LD, Tensor pivots)")
def ldl_factor(
    input: Tensor, *, hermitian: bool = False, out: tuple[Tensor, Tensor] | None = None
) -> Any:
    """(LD, pivots) of A = LDLᵀ (LDLᴴ where hermitian); LinAlgError where D has a zero."""
    for o in out or ():
        refuse_leaf("linalg_ldl_factor_ex", o)
    outs = None if out is None else (*out, input.new_empty(input.shape[:-2], dtype=int32))
    made = ldl_factor_op.function(input, hermitian=hermitian, out=outs)
    checks.raise_first("torch.linalg.ldl_factor", made[2], ZERO)
    return checks.named("linalg_ldl_factor", "LD pivots", made[:2], out=out)


def solve_one(ld: Array, pivots: Array, b: Array, hermitian: bool) -> Any:
    """X of LDLᵀX = B for one matrix; b is overwritten."""
    n, k, blocks = ld.shape[0], 0, []

    def conj(x: Array) -> Any:
        return x.conj() if hermitian else x

    while k < n:  # forwards through L, dividing by D
        step = 1 if pivots[k] > 0 else 2
        p, q = abs(int(pivots[k])) - 1, k + step - 1
        blocks.append((k, step, p))
        if p != q:
            b[[p, q]] = b[[q, p]]
        b[k + step :] -= ld[k + step :, k : k + step] @ b[k : k + step]
        d = ld[k : k + step, k : k + step].copy()
        if step == 2:
            d[0, 1] = conj(d[1, 0])
        if step == 2:
            b[k : k + step] = np.linalg.solve(d, b[k : k + step])
        else:
            b[k : k + step] = b[k] / (d[0, 0].real if hermitian else d[0, 0])
        k += step
    for k, step, p in reversed(blocks):  # back through Lᵀ
        b[k : k + step] -= conj(ld[k + step :, k : k + step]).T @ b[k + step :]
        q = k + step - 1
        if p != q:
            b[[p, q]] = b[[q, p]]
    return b


def _ldl_solve(xp: ArrayModule, ld: Array, pivots: Array, b: Array, hermitian: bool) -> Any:
    name = "torch.linalg.ldl_solve"
    checks.need_float(name, ld)
    checks.need_square(name, ld)
    wrap_dim(-2, b.ndim, False)  # whose size is looked up first
    checks.need_fit(name, ld, b)
    if ld.shape[:-1] != pivots.shape:
        raise RuntimeError(
            f"{name}: Expected LD.shape[:-1] and pivots.shape to be the same, but "
            f"got pivots with shape {list(pivots.shape)} instead"
        )
    if pivots.dtype.kind != "i":
        raise RuntimeError(f"{name}: Expected pivots to be integers. Got {pivots.dtype}")
    if ld.dtype != b.dtype:
        raise RuntimeError(
            f"{name}: Expected LD and B to have the same dtype, but found LD of "
            f"type {ld.dtype} and B of type {b.dtype} instead"
        )
    n, columns = b.shape[-2:]
    batch = np.broadcast_shapes(ld.shape[:-2], b.shape[:-2])
    both = hermitian and ld.dtype.kind == "c"
    count = math.prod(batch)
    left = np.broadcast_to(ld, (*batch, n, n)).reshape(count, n, n)
    order = np.broadcast_to(pivots, (*batch, n)).reshape(count, n)
    right = np.broadcast_to(b, (*batch, n, columns)).reshape(count, n, columns)
    made = np.array(
        [solve_one(m, p, x.copy(), both) for m, p, x in zip(left, order, right)], b.dtype
    )
    return made.reshape(*batch, n, columns)


ldl_solve = decomposition(
    "linalg_ldl_solve(Tensor LD, Tensor pivots, Tensor B, *, bool hermitian=False) -> Tensor",
    on_host(_ldl_solve, "one pivot after the other, of one or two columns"),
    forms="function out",
    node="NotImplemented",
    d_LD=underived("aten::linalg_ldl_solve"),
    d_B=underived("aten::linalg_ldl_solve"),
    amp="",
    batch="",
    doc="X of AX = B from A = LDLᵀ.",
)
