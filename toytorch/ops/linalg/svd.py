"""Singular values: the decomposition A = USVᴴ, and functions of the matrix that use it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.core.views import counted
from toytorch.core.write import take
from toytorch.facts import state
from toytorch.facts.composed import cast_to
from toytorch.facts.dtype import from_numpy_dtype, no_kernel
from toytorch.facts.hints import Array, ArrayModule, Fn, Sizes
from toytorch.ops.creation.create import need_type, put_out
from toytorch.ops.define import decomposition, in_own_type, public
from toytorch.ops.linalg import checks

NO_END = (
    "{}: The algorithm failed to converge because the input matrix is ill-conditioned or has "
    "too many repeated singular values."
)


def _refuse_driver(driver: str | None) -> None:
    if driver is not None:
        raise RuntimeError(
            "torch.linalg.svd: keyword argument `driver=` is only supported on CUDA "
            "inputs with cuSOLVER backend."
        )


@checks.empty_of_any_type
def _svd(xp: ArrayModule, a: Array, full_matrices: bool) -> Any:
    checks.need_matrix("linalg.svd", a)
    checks.need_float("linalg.svd", a, "linalg_svd_cpu", or_empty=True)
    try:
        return tuple(xp.linalg.svd(checks.workable(a), full_matrices))
    except xp.linalg.LinAlgError:
        raise no_end("linalg.svd", a) from None


def no_end(name: str, a: Array) -> checks.LinAlgError:
    """What to raise for matrices whose singular values LAPACK does not find."""
    finite = np.isfinite(np.asarray(a)).all((-2, -1))
    if finite.all():
        return checks.LinAlgError(NO_END.format(name))
    batch = f"(Batch element {int(np.argmin(finite.reshape(-1)))}): " if finite.ndim else ""
    return checks.LinAlgError(
        f"linalg.svd: {batch}The algorithm failed to converge because the input matrix contained "
        "non-finite values."
    )


def _of_hermitian(xp: ArrayModule, find: Fn, a: Array) -> Any:
    try:
        return find(a)
    except xp.linalg.LinAlgError:
        words = NO_END.replace("singular values", "eigenvalues")
        raise checks.LinAlgError(words.format("linalg.eigh")) from None


def skew(x: Tensor) -> Any:
    """X - Xᴴ."""
    return x - x.mH


def differences(values: Tensor) -> Any:
    """E[i, j] = vⱼ - vᵢ, with ones on the diagonal."""
    made = values.unsqueeze(-2) - values.unsqueeze(-1)
    return made + checks.identity(values, values.shape[-1])


def need_free_phase(product: Tensor, name: str, what: str) -> None:
    """Refuses a loss that depends on the phase of the vectors, which nothing determines."""
    if not product.dtype.is_complex:
        return
    turn = abs(product._array.imag)
    array = abs(product._array)
    size = max(float(array.max()) if array.size else 0.0, 1.0)
    if turn.size and float(turn.max()) > 1e-2 * size:
        raise RuntimeError(
            f"{name}: The {what} in the complex case are specified up to multiplication by e^{{i "
            "phi}. The specified loss function depends on this quantity, so it is ill-defined."
        )


def svd_gradient(gu: Tensor, gs: Tensor, gvh: Tensor, u: Tensor, s: Tensor, vh: Tensor) -> Any:
    """The gradient of A = USVᴴ.

    U·[(skew(UᴴgU)/E)·S + S·(skew(VᴴgV)/E) + gS]·Vᴴ with E[i, j] = Sⱼ² - Sᵢ², and beside it
    what of gU (gV) lies outside the space of U (V). (Townsend 2016; complex numbers: Wan and
    Zhang 2019.)
    """
    no_u, no_v = checks.absent(gu), checks.absent(gvh)
    if no_u and no_v:
        return (u * gs.unsqueeze(-2)) @ vh
    m, n, k = u.shape[-2], vh.shape[-1], s.shape[-1]
    e = differences(s * s)
    middle = gs.to(u.dtype).diag_embed()
    turned_u = None if no_u else skew(u.mH @ gu)
    turned_v = None if no_v else skew(vh @ gvh.mH)
    if u.dtype.is_complex:
        both = [t.diagonal(0, -2, -1) for t in (turned_u, turned_v) if t is not None]
        need_free_phase(
            both[0] if len(both) == 1 else both[0] + both[1], "svd_backward", "singular vectors"
        )
        if turned_u is not None and turned_v is not None:
            middle = middle + (turned_u.diagonal(0, -2, -1) / (2 * s)).diag_embed()
    if turned_u is not None:
        middle = middle + (turned_u / e) * s.unsqueeze(-2)
    if turned_v is not None:
        middle = middle + s.unsqueeze(-1) * (turned_v / e)
    total = u @ middle @ vh
    if m > k and not no_u:
        outside = gu / s.unsqueeze(-2)
        total = total + (outside - u @ (u.mH @ outside)) @ vh
    if n > k and not no_v:
        outside = gvh / s.unsqueeze(-1)
        total = total + u @ (outside - (outside @ vh.mH) @ vh)
    return total


def _svd_gradient(
    gs: Sequence[Tensor], full_matrices: bool, result0: Tensor, result1: Tensor, result2: Tensor
) -> Any:
    k = result1.shape[-1]
    u, vh = result0[..., :k], result2[..., :k, :]
    return svd_gradient(gs[0][..., :k], gs[1], gs[2][..., :k, :], u, result1, vh)


svd_op: Op = decomposition(
    "linalg_svd(Tensor A, bool full_matrices=True) -> (Tensor U, Tensor S, Tensor Vh)",
    _svd,
    d_A=_svd_gradient,
    doc="A = USVᴴ with unitary U and V and S ≥ 0 in falling order.",
)


@public("linalg.svd", returns="(Tensor U, Tensor S, Tensor Vh)")
def svd(
    A: Tensor,
    full_matrices: bool = True,
    *,
    driver: str | None = None,
    out: tuple[Tensor, Tensor, Tensor] | None = None,
) -> Any:
    """(U, S, Vh) with A = U·diag(S)·Vh.

    >>> torch.linalg.svd(torch.tensor([[3., 0.], [0., -2.]])).S
    tensor([3., 2.])
    """
    _refuse_driver(driver)
    return checks.named("linalg_svd", "U S Vh", svd_op.function(A, full_matrices, out=out), out=out)


@checks.empty_of_any_type
def _svdvals(xp: ArrayModule, a: Array) -> Any:
    checks.need_matrix("linalg.svd", a)
    checks.need_float("linalg.svd", a, "linalg_svd_cpu", or_empty=True)
    try:
        return xp.linalg.svd(checks.workable(a), compute_uv=False)
    except xp.linalg.LinAlgError:
        raise no_end("linalg.svdvals", a) from None


def _svdvals_gradient(g: Tensor, A: Tensor) -> Any:
    u, _, vh = svd_op.function(A, False)
    return (u * g.unsqueeze(-2)) @ vh


svdvals_op: Op = decomposition(
    "linalg_svdvals(Tensor A) -> Tensor",
    _svdvals,
    holomorphic=False,
    d_A=_svdvals_gradient,
    node="LinalgSvdBackward0",
    memory="rows",
    doc="The singular values in falling order.",
)


@public("linalg.svdvals")
def svdvals(A: Tensor, *, driver: str | None = None, out: Tensor | None = None) -> Tensor:
    """The singular values in falling order."""
    _refuse_driver(driver)
    if out is None and state.local.grad and A.requires_grad:
        return svd_op.function(A, False)[1]  # whose node saves what PyTorch's saves
    return svdvals_op.function(A, out=out)


@public("svd", method="svd", returns="(Tensor U, Tensor S, Tensor V)")
def svd_legacy(
    input: Tensor,
    some: bool = True,
    compute_uv: bool = True,
    *,
    out: tuple[Tensor, Tensor, Tensor] | None = None,
) -> Any:
    """(U, S, V) with A = U·diag(S)·Vᴴ: the older form of `linalg.svd`."""
    if input.ndim < 2:
        raise RuntimeError(
            "linalg.svd: input should have at least 2 dimensions, but has "
            f"{input.ndim} dimensions instead"
        )
    for i, t in enumerate(out or ()):
        need_type(t, input.dtype if i != 1 else input.dtype.to_real())
    made: tuple[Any, ...]
    if not compute_uv:
        m, n = input.shape[-2:]
        batch = tuple(input.shape[:-2])
        left, right = (counted(input.new_zeros((*batch, k, k)), 1) for k in (m, n))
        made = (left, svdvals(input), right.mH)
    else:
        u, s, vh = svd_op.function(input, not some)
        made = (u, s, vh.mH)
    if out is not None:
        made = tuple(put_out(t, o, same=True) for t, o in zip(made, out, strict=True))
    return checks.named("svd", "U S V", made, out=out)


# -- the pseudo-inverse and the rank --------------------------------------------------------------


def tolerance(
    xp: ArrayModule, s: Array, shape: Sizes, atol: float | None, rtol: float | None
) -> Any:
    """The size below which singular values count as 0, for each matrix: max(atol, rtol·S₀)."""
    if rtol is None:
        given = atol is not None and xp.asarray(atol) > 0
        default = xp.finfo(s.dtype).eps * max(shape[-2:])
        rtol = xp.where(given, 0.0, default) if atol is not None else default
    top = s.max(-1) if s.shape[-1] else xp.zeros(s.shape[:-1], s.dtype)
    bound = xp.asarray(rtol) * top
    return (bound if atol is None else xp.maximum(xp.asarray(atol), bound)).astype(s.dtype)


def _pinv(
    xp: ArrayModule, a: Array, atol: float | None, rtol: float | None, hermitian: bool
) -> Any:
    if a.ndim < 2 or a.dtype.kind not in "fc" or a.dtype.itemsize == 2:
        raise RuntimeError(
            f"linalg.pinv({from_numpy_dtype(a.dtype).legacy}{{{list(a.shape)}}}): expected a "
            "tensor with 2 or more dimensions of float, double, cfloat or cdouble types"
        )
    if not a.size:
        return xp.zeros((*a.shape[:-2], a.shape[-1], a.shape[-2]), a.dtype)
    if hermitian:
        checks.need_square("linalg.pinv", a)
    if hermitian:
        s, u = _of_hermitian(xp, xp.linalg.eigh, a)
        vh, size = u.swapaxes(-1, -2).conj(), abs(s)
    else:
        try:
            u, s, vh = xp.linalg.svd(a, False)
        except xp.linalg.LinAlgError:
            raise no_end("linalg.svd", a) from None
        size = s
    keep = size > tolerance(xp, size, a.shape, atol, rtol)[..., None]
    inverse = xp.where(keep, 1 / xp.where(keep, s, 1), 0).astype(s.dtype)
    h = u.swapaxes(-1, -2).conj()
    return xp.ascontiguousarray((vh.swapaxes(-1, -2).conj() * inverse[..., None, :]) @ h)


def pinv_gradient(g: Tensor, a: Tensor, p: Tensor) -> Any:
    """The gradient of P = A⁺, for matrices of constant rank (Golub and Pereyra 1973).

    -(P·gᴴ·P)ᴴ + (I - AP)·gᴴ·P·Pᴴ + Pᴴ·P·gᴴ·(I - PA), multiplied out in an order whose middle
    products are no larger than A.
    """
    m, n = a.shape[-2:]
    ph, gh = p.mH, g.mH
    if m <= n:
        k = gh @ p
        kp = k @ ph
        return -(p @ k).mH + kp - (a @ p) @ kp + (ph @ p) @ (gh - k @ a)
    k = p @ gh
    pk = ph @ k
    return -(k @ p).mH + (gh - a @ k) @ p @ ph + pk - (pk @ p) @ a


pinv_op = in_own_type(
    "linalg_pinv(Tensor self, Operand? atol=None, Operand? rtol=None, bool hermitian=False) "
    "-> Tensor",
    _pinv,
    forms="out",
    holomorphic=False,
    d_self=lambda g, self, result: pinv_gradient(g, self, result),
    batch="leading",
    doc="The pseudo-inverse.",
)


@public("linalg.pinv")
def pinv(
    input: Tensor,
    rcond: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The pseudo-inverse: singular values up to max(atol, rtol·S₀) count as 0.

    >>> torch.linalg.pinv(torch.tensor([[2., 0.], [0., 0.]]))
    tensor([[0.5000, 0.0000],
            [0.0000, 0.0000]])
    """
    copied = rcond is not None or isinstance(atol, float) or isinstance(rtol, float)
    rtol = rcond if rtol is None else rtol
    for word, bound in (("atol", atol), ("rtol", rtol)):
        if isinstance(bound, Tensor) and bound.dtype.is_complex:
            raise RuntimeError(
                f"torch.linalg.pinv: {word} tensor of complex type is not supported. Got "
                f"{bound.dtype.legacy}"
            )
    if (
        copied
        and out is not None
        and state.local.grad
        and (input.requires_grad or out.requires_grad)
    ):
        return put_out(pinv_op.function(input, atol, rtol, hermitian), out)
    return pinv_op.function(input, atol, rtol, hermitian, out=out)


@public("pinverse", method=True)
@cast_to("float32")
def pinverse(input: Tensor, rcond: float = 1e-15) -> Tensor:
    """`linalg.pinv` with a smaller tolerance."""
    return pinv(input, rcond)


def _matrix_rank(xp: Any, a: Any, atol: Any, rtol: Any, hermitian: bool) -> Any:
    name = "torch.linalg.matrix_rank"
    checks.need_matrix(name, a, "input")
    # The type's own tolerance is asked for where one of the two is not given.
    both = atol is not None and rtol is not None
    if a.size and both and a.dtype.itemsize == 2 and from_numpy_dtype(a.dtype).rank == 2:
        if hermitian:
            checks.need_square("linalg.eigh", a)
        raise no_kernel("linalg_eigh_cpu" if hermitian else "linalg_svd_cpu", a.dtype)
    if (a.size or rtol is None) and (a.dtype.kind not in "fc" or a.dtype.itemsize == 2):
        raise RuntimeError("This function doesn't handle types other than float and double")
    for label, t in (("atol", atol), ("rtol", rtol)):
        if getattr(t, "dtype", None) is not None and t.dtype.kind == "c":
            raise RuntimeError(f"{name}: {label} tensor of complex type is not supported.")
    if not a.size:
        return xp.zeros(a.shape[:-2], "int64")
    if hermitian:
        checks.need_square("linalg.eigh", a)
        s = abs(_of_hermitian(xp, xp.linalg.eigvalsh, a))
    else:
        try:
            s = xp.linalg.svd(a, compute_uv=False)
        except xp.linalg.LinAlgError:
            raise no_end("linalg.svd", a) from None
    return (s > tolerance(xp, s, a.shape, atol, rtol)[..., None]).sum(-1)


matrix_rank_op = decomposition(
    "linalg_matrix_rank(Tensor self, Operand? atol=None, Operand? rtol=None, bool hermitian=False)"
    " -> Tensor",
    _matrix_rank,
    memory="rows",
    batch="",
    out_type="",
    doc="How many singular values are not 0.",
)


@public("linalg.matrix_rank")
def matrix_rank(
    input: Tensor,
    tol: float | Tensor | None = None,
    hermitian: bool = False,
    *,
    atol: float | Tensor | None = None,
    rtol: float | Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """How many singular values are above max(atol, rtol·S₀)."""
    if tol is not None:
        atol, rtol = tol, 0.0
    made = matrix_rank_op.function(input, atol, rtol, hermitian)
    if out is not None and not input.numel():
        if out.shape != made.shape:
            take(out, made._array)
        return out.fill_(0)  # as PyTorch, which records that
    return counted(made, 1) if out is None else put_out(made, out)
