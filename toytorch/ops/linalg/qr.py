"""QR factorisation, and products of Householder's reflections, in which it is stored."""

from __future__ import annotations

from typing import Any

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import warned
from toytorch.facts.hints import Array, ArrayModule, Sizes
from toytorch.ops.define import decomposition, on_tensors, public
from toytorch.ops.linalg import checks
from toytorch.ops.linalg.triangular import solve_with
from toytorch.ops.shaping.rearrange import cat

MODES = ("reduced", "complete", "r")


def _qr(xp: ArrayModule, a: Array, mode: str) -> Any:
    checks.need_matrix("linalg.qr", a)
    checks.need_float("linalg.qr", a, "geqrf_cpu")
    if mode not in MODES:
        raise RuntimeError(
            f"qr received unrecognized mode '{mode}' but expected one of 'reduced' "
            "(default), 'r', or 'complete'"
        )
    a = a + 0  # of a column that begins with -0 LAPACKs reflect to either side
    if mode == "r":
        return xp.empty(0, a.dtype), xp.linalg.qr(a, "r")
    q, r = xp.linalg.qr(a, mode)
    return q, r


def _tall_gradient(gq: Any, gr: Any, q: Any, r: Any) -> Any:
    """[gQ + Q·sym(triu(gR·Rᴴ - Qᴴ·gQ))]·R⁻ᴴ for at least as many rows as columns."""
    x = (gr @ r.mH - q.mH @ gq).triu()
    x = x + x.mH - checks.real_diagonal(x).diag_embed()
    return solve_with(r.mH, gq + q @ x, False, False)


def _qr_gradient(gs: Any, self_shape: Sizes, mode: str, result0: Any, result1: Any) -> Any:
    m, n = self_shape[-2:]
    if mode == "r":
        raise RuntimeError(
            "The derivative of linalg.qr depends on Q, which is not computed when mode='r'. Please "
            "use linalg.qr(A, mode='reduced') if you are going to require gradients."
        )
    if mode == "complete" and m > n:
        raise RuntimeError(
            "The QR decomposition is not differentiable when mode='complete' and "
            f"nrows > ncols, as in linalg.qr(A{list(self_shape)}, mode='complete')"
        )
    gq, gr = gs
    if m >= n:
        return _tall_gradient(gq, gr, result0, result1)
    # A = [A₁ A₂] with A₁ = QR₁ square and R₂ = QᴴA₂.
    right, g_right = result0 @ result1[..., m:], gr[..., m:]
    left = _tall_gradient(gq + right @ g_right.mH, gr[..., :m], result0, result1[..., :m])
    return cat.function([left, result0 @ g_right], -1)


qr_op = decomposition(
    "linalg_qr(Tensor self, str mode='reduced') -> (Tensor Q, Tensor R)",
    _qr,
    d_self=_qr_gradient,
    doc="A = QR with orthonormal columns and a triangle.",
)


@public("linalg.qr", returns="(Tensor Q, Tensor R)")
def linalg_qr(A: Tensor, mode: str = "reduced", *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """(Q, R) with A = QR; mode "complete" makes Q square, "r" leaves it out.

    >>> abs(torch.linalg.qr(torch.tensor([[3.], [4.]])).R)
    tensor([[5.]])
    """
    return checks.named("linalg_qr", "Q R", qr_op.function(A, mode, out=out), out=out)


@public("qr", method=True, returns="(Tensor Q, Tensor R)")
def qr(input: Tensor, some: bool = True, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """(Q, R): `linalg.qr` under its older name."""
    warned.once(
        "torch.qr is deprecated in favor of torch.linalg.qr and will be removed in a future "
        "PyTorch release.\nThe boolean parameter 'some' has been replaced with a string parameter "
        "'mode'.\nQ, R = torch.qr(A, some)\nshould be replaced with\nQ, R = torch.linalg.qr(A, "
        "'reduced' if some else 'complete')"
    )
    return checks.named(
        "qr", "Q R", qr_op.function(input, "reduced" if some else "complete", out=out), out=out
    )


# -- reflections ----------------------------------------------------------------------------------


def _geqrf(xp: ArrayModule, a: Array) -> Any:
    if a.ndim < 2:
        raise RuntimeError("torch.geqrf: input must have at least 2 dimensions.")
    checks.need_kernel("geqrf_cpu", a)
    h, tau = xp.linalg.qr(a + 0, "raw")
    return h.swapaxes(-1, -2), tau


def _no_gradient(gs: Any) -> Any:
    raise NotImplementedError("the derivative for 'geqrf' is not implemented.")


geqrf_op = decomposition(
    "geqrf(Tensor self) -> (Tensor a, Tensor tau)",
    _geqrf,
    d_self=_no_gradient,
    of_reals="geqrf",
    batch="",
    out_type="",
    doc="R and the reflections of Q, as LAPACK stores them.",
)


@public("geqrf", method=True, returns="(Tensor a, Tensor tau)")
def geqrf(input: Tensor, *, out: tuple[Tensor, Tensor] | None = None) -> Any:
    """(a, tau): R in the upper triangle, below it the reflections whose product is Q."""
    return checks.named("geqrf", "a tau", geqrf_op.function(input, out=out), out=out)


def reflectors(xp: ArrayModule, a: Array, k: int) -> Any:
    """The vectors of k reflections: unit lower triangle of the first k columns."""
    v = xp.tril(a[..., :k], -1)
    index = xp.arange(k)
    v[..., index, index] = 1
    return v


def reflect(xp: ArrayModule, a: Array, tau: Array, c: Array, transpose: bool) -> Any:
    """H₁H₂…Hₖ·C (or the adjoint) with Hᵢ = I - τᵢvᵢvᵢᴴ, as I - V·T·Vᴴ with a triangular T."""
    k = tau.shape[-1]
    v = reflectors(xp, a, k)
    h = v.swapaxes(-1, -2).conj()
    gram = h @ v
    t = xp.zeros((*gram.shape[:-2], k, k), a.dtype)
    for j in range(k):
        t[..., j, j] = tau[..., j]
        if j:
            column = t[..., :j, :j] @ gram[..., :j, j, None]
            t[..., :j, j] = -tau[..., j, None] * column[..., 0]
    if transpose:
        t = t.swapaxes(-1, -2).conj()
    return c - v @ (t @ (h @ c))


def _need_one_less(name: str, a: Array, tau: Array) -> None:
    if a.ndim - tau.ndim != 1:
        raise RuntimeError(
            f"{name}: Expected tau to have one dimension less than input, but got tau.ndim equal to "
            f"{tau.ndim} and input.ndim is equal to {a.ndim}"
        )


def _need_batch(name: str, a: Array, what: str, batch: Sizes) -> None:
    if a.shape[:-2] != batch:
        raise RuntimeError(
            f"{name}: Expected batch dimensions of {what} to be equal to input.shape[:-2], "
            f"but got {list(batch)}"
        )


def _householder(xp: ArrayModule, a: Array, tau: Array) -> Any:
    name = "torch.linalg.householder_product"
    if a.ndim < 2:
        raise RuntimeError(f"{name}: input must have at least 2 dimensions.")
    m, n = a.shape[-2:]
    if m < n:
        raise RuntimeError(
            f"{name}: input.shape[-2] must be greater than or equal to input.shape[-1]"
        )
    if n < tau.shape[-1]:
        raise RuntimeError(
            f"{name}: input.shape[-1] must be greater than or equal to tau.shape[-1]"
        )
    _need_one_less(name, a, tau)
    _need_batch(name, a, "tau", tau.shape[:-1])
    if a.dtype != tau.dtype:
        raise RuntimeError(f"{name}: tau dtype {tau.dtype} does not match input dtype {a.dtype}")
    checks.need_kernel("orgqr_cpu", a)
    return reflect(xp, a, tau, xp.eye(m, n, dtype=a.dtype), False)


def chain_gradients(g: Any, a: Any, tau: Any, c: Any, transpose: bool) -> tuple[Any, Any, Any]:
    """The gradients of F₁F₂…Fₖ·C, Fᵢ = I - tᵢvᵢvᵢᴴ, for the stored vectors, τ and C.

    With Rᵢ = Fᵢ₊₁…Fₖ·C and Gᵢ = Fᵢ₋₁ᴴ…F₁ᴴ·g, p = Rᵢᴴvᵢ and q = Gᵢᴴvᵢ:
    gvᵢ = -t̄ᵢ·Gᵢp - tᵢ·Rᵢq and gtᵢ = -qᴴp.
    """
    k, m = tau.shape[-1], a.shape[-2]
    lower = a[..., :k].tril(-1)
    v = lower + checks.identity(lower, m, k)
    vectors = [v[..., i : i + 1] for i in range(k)]
    factors = [tau[..., i, None, None] for i in range(k)]
    order = list(reversed(range(k))) if transpose else list(range(k))
    t = {i: factors[i].conj() if transpose else factors[i] for i in order}
    rests = {}
    rest = c
    for i in reversed(order):
        rests[i] = rest
        rest = rest - t[i] * (vectors[i] @ (vectors[i].mH @ rest))
    gv: list[Any] = [None] * k
    gt: list[Any] = [None] * k
    for i in order:
        x, r = vectors[i], rests[i]
        p, q = r.mH @ x, g.mH @ x
        gv[i] = -(t[i].conj() * (g @ p)) - t[i] * (r @ q)
        share = -(q.mH @ p)[..., 0]
        gt[i] = share.conj() if transpose else share
        g = g - t[i].conj() * (x @ q.mH)
    n = a.shape[-1]
    made = cat.function(gv, -1).tril(-1) if k else lower
    if n > k:
        made = cat.function([made, made.new_zeros((*made.shape[:-1], n - k))], -1)
    return made, (cat.function(gt, -1) if k else tau * 0), g


def _start(a: Any) -> Any:
    """C = I, of which the product keeps the first columns."""
    return checks.identity(a, *a.shape[-2:]).expand(a.shape)


householder_op = decomposition(
    "linalg_householder_product(Tensor input, Tensor tau) -> Tensor",
    _householder,
    forms="function out",
    words={"input2": "tau"},
    holomorphic=False,
    d_input=lambda g, input, tau, result: (  # saves the result as PyTorch
        chain_gradients(g, input, tau, _start(input), False)[0]
    ),
    d_tau=lambda g, input, tau, result: chain_gradients(g, input, tau, _start(input), False)[1],
    batch="",
    out_type="",
    doc="The first columns of a product of reflections I - τᵢvᵢvᵢᴴ (LAPACK's orgqr).",
)
on_tensors(orgqr=householder_op.function)
public("orgqr")(householder_op.function)


def _ormqr(xp: ArrayModule, a: Array, tau: Array, c: Array, left: bool, transpose: bool) -> Any:
    if a.ndim < 2:
        raise RuntimeError("torch.ormqr: input must have at least 2 dimensions.")
    if c.ndim < 2:
        raise RuntimeError("torch.ormqr: other must have at least 2 dimensions.")
    side = -2 if left else -1
    name = f"other.shape[{side}]"
    if c.shape[side] < (tau.shape or (0,))[-1]:
        raise RuntimeError(f"torch.ormqr: {name} must be greater than or equal to tau.shape[-1]")
    if c.shape[side] != a.shape[-2]:
        raise RuntimeError(f"torch.ormqr: {name} must be equal to input.shape[-2]")
    if (tau.shape or (0,))[-1] > a.shape[-1]:
        raise RuntimeError(
            "torch.ormqr: tau.shape[-1] must be less than or equal to input.shape[-1]"
        )
    _need_one_less("torch.ormqr", a, tau)
    if a.ndim != c.ndim:
        raise RuntimeError(
            "torch.ormqr: Expected other to have the same number of dimensions as input, but got "
            f"other.ndim equal to {c.ndim} and input.ndim is equal to {a.ndim}"
        )
    _need_batch("torch.ormqr", a, "tau", tau.shape[:-1])
    _need_batch("torch.ormqr", a, "other", c.shape[:-2])
    for label, x in (("tau", tau), ("other", c)):
        if x.dtype != a.dtype:
            raise RuntimeError(
                "torch.ormqr: Expected input and " + label + " to have the same "
                f"dtype, but input has dtype {a.dtype} and {label} has dtype "
                f"{x.dtype}"
            )
    checks.need_kernel("ormqr_cpu", a)
    if left:
        return reflect(xp, a, tau, c, transpose)
    transposed = reflect(xp, a, tau, c.swapaxes(-1, -2).conj(), not transpose)  # CQ = (QᴴCᴴ)ᴴ
    return transposed.swapaxes(-1, -2).conj()


def _ormqr_gradients(g: Any, a: Any, tau: Any, c: Any, left: bool, transpose: bool) -> Any:
    if left:
        return chain_gradients(g, a, tau, c, transpose)
    ga, gt, gc = chain_gradients(g.mH, a, tau, c.mH, not transpose)
    return ga, gt, gc.mH


ormqr: Op = decomposition(
    "ormqr(Tensor self, Tensor input2, Tensor input3, bool left=True, bool transpose=False) "
    "-> Tensor",
    _ormqr,
    holomorphic=False,
    d_self=lambda g, self, input2, input3, left, transpose, result: _ormqr_gradients(
        g, self, input2, input3, left, transpose
    )[0],
    d_input2=lambda g, self, input2, input3, left, transpose, result: _ormqr_gradients(
        g, self, input2, input3, left, transpose
    )[1],
    d_input3=lambda g, self, input2, left, transpose: ormqr.function(
        self, input2, g, left, not transpose
    ),
    forms=None,
    batch="",
    doc="C multiplied by the Q of a QR factorisation that is stored as reflections.",
)
