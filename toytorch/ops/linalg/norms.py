"""Norms of vectors and matrices, condition numbers, and distances between points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from toytorch.backends.generic import attempt
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.core.views import counted
from toytorch.facts import state
from toytorch.facts.dtype import no_kernel
from toytorch.facts.hints import Array, ArrayModule, DType, Ints, Sizes
from toytorch.facts.size import broadcast_pair, wrap_dim
from toytorch.ops.creation.create import need_type, put_out
from toytorch.ops.define import general, in_own_type, pointwise, public
from toytorch.ops.linalg.checks import need_square
from toytorch.ops.linalg.matmul import kinds, same_scalar_type
from toytorch.ops.linalg.solve import inv_op
from toytorch.ops.linalg.svd import svdvals
from toytorch.ops.reductions import exponentials

ORDERS = ("fro", "nuc")


def _convert(A: Any, dtype: DType | None, name: str) -> Any:
    """A in the type asked for, which must be as complex and as wide as A's own."""
    if dtype is None:
        return A
    exponentials.check_norm_type(name, A.dtype, dtype)
    return A.to(dtype)


def _two_dims(A: Tensor, dim: Sequence[int], name: str) -> tuple[int, int]:
    if A.ndim < 2:
        raise RuntimeError(f"{name}: The input tensor A must have at least 2 dimensions.")
    if dim is None or isinstance(dim, int) or len(dim) != 2:
        given = [] if dim is None else [dim] if isinstance(dim, int) else list(dim)
        raise RuntimeError(f"{name}: dim must be a 2-tuple. Got {' '.join(map(str, given))}")
    d0, d1 = wrap_dim(dim[0], A.ndim), wrap_dim(dim[1], A.ndim)
    if d0 == d1:
        raise RuntimeError(f"{name}: dims must be different. Got ({dim[0]}, {dim[1]})")
    return d0, d1


def _refuse_integers(A: Tensor, name: str) -> None:
    if not (A.dtype.is_floating_point or A.dtype.is_complex):
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {A.dtype.legacy}"
        )


@public("linalg.matrix_norm")
def matrix_norm(
    input: Tensor,
    ord: Any = "fro",
    dim: Sequence[int] = (-2, -1),
    keepdim: bool = False,
    *,
    dtype: Any = None,
    out: Tensor | Sequence[Tensor] | None = None,
) -> Tensor:
    """A norm of matrices: "fro" √Σ|a|², "nuc" ΣS, ±2 largest or smallest S, ±1, ±inf sums.

    >>> torch.linalg.matrix_norm(torch.tensor([[1., -2.], [3., 4.]]), 1)
    tensor(6.)
    """
    name = "linalg.matrix_norm"
    a: Any = input
    exponentials.check_order(name, ord)
    _refuse_integers(a, name)
    d0, d1 = _two_dims(a, dim, name)
    if isinstance(ord, str) and ord not in ORDERS:
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if not isinstance(ord, str) and abs(float(ord)) not in (1, 2, math.inf):
        raise RuntimeError(f"linalg.matrix_norm: Order {ord} not supported.")
    if ord == "fro":
        made = exponentials.vector_norm.function(_convert(a, dtype, name), 2, (d0, d1), keepdim)
        return put_out(made, out, same=True)
    a = _convert(a, dtype, name)
    if ord == "nuc" or abs(ord) == 2:
        rest = [d for d in range(a.ndim) if d not in (d0, d1)]
        s = svdvals(a.permute([*rest, d0, d1]))
        if ord == "nuc" or (ord > 0 and not s.shape[-1]):
            made = s.sum(-1, keepdim)
        else:
            made = s.amax(-1, keepdim) if ord > 0 else s.amin(-1, keepdim)
        if keepdim:
            there = [*rest, d0, d1]
            made = made.unsqueeze(-1).permute([there.index(d) for d in range(a.ndim)])
        return put_out(made, out, same=True)
    if abs(ord) == math.inf:
        d0, d1 = d1, d0
    if not keepdim and d1 > d0:
        d1 -= 1
    sums = exponentials.vector_norm.function(a, 1, d0, keepdim)
    if ord > 0 and not sums.shape[d1]:
        return put_out(sums.sum(d1, keepdim), out, same=True)  # the largest of nothing is 0
    return put_out(sums.amax(d1, keepdim) if ord > 0 else sums.amin(d1, keepdim), out, same=True)


@public("linalg.norm")
def norm(
    input: Tensor,
    ord: Any = None,
    dim: Ints | None = None,
    keepdim: bool = False,
    *,
    out: Tensor | None = None,
    dtype: DType | None = None,
) -> Tensor:
    """A norm of vectors (one dimension) or of matrices (two); without an order √Σ|a|².

    >>> torch.linalg.norm(torch.tensor([3., 4.]))
    tensor(5.)
    """
    a: Any = input
    dims = None if dim is None else [dim] if isinstance(dim, int) else list(dim)
    if dims is not None and len(dims) not in (1, 2):
        raise RuntimeError(
            f"linalg.norm: If dim is specified, it must be of length 1 or 2. Got {dims}"
        )
    if dims is None and ord is not None and a.ndim not in (1, 2):
        raise RuntimeError(
            "linalg.norm: If dim is not specified but ord is, the input must be 1D "
            f"or 2D. Got {a.ndim}D."
        )
    if ord is not None and (
        isinstance(ord, str) or (len(dims) == 2 if dims is not None else a.ndim == 2)
    ):
        return matrix_norm(a, ord, (0, 1) if dims is None else dims, keepdim, dtype=dtype, out=out)
    order = 2 if ord is None else ord
    if out is not None and state.local.grad and (a.requires_grad or out.requires_grad):
        return put_out(norm(a, ord, dim, keepdim, dtype=dtype), out, same=True)  # a copy in PyTorch
    return exponentials.vector_norm.function(a, order, dims, keepdim, dtype=dtype, out=out)


@public("linalg.cond")
def cond(input: Tensor, p: float | str | None = None, *, out: Tensor | None = None) -> Tensor:
    """The condition number ‖A‖·‖A⁻¹‖; S₀/Sₖ for p=None or 2.

    >>> torch.linalg.cond(torch.tensor([[4., 0.], [0., 2.]]))
    tensor(2.)
    """
    a: Any = input
    if a.ndim < 2:
        raise RuntimeError("linalg.cond: The input tensor A must have at least 2 dimensions.")
    if p is not None and not isinstance(p, (str, int, float)):
        raise TypeError(f"linalg.cond: p must be a number or a string, not {type(p).__name__}")
    if isinstance(p, str) and p not in ORDERS:
        raise RuntimeError(f"linalg.cond got an invalid norm type: {p}")
    if not a.numel() and isinstance(p, str):
        need_square(f"linalg.cond(ord={p})", a._array)
    if not a.numel():
        nothing = a.new_zeros(a.shape[:-2], dtype=a.dtype.to_real())
        return counted(nothing, 1) if out is None else put_out(nothing, out)
    need_type(out, a.dtype.to_real(), False)
    if p in (None, 2, -2):
        s = svdvals(a)
        first, last = s[..., :1], s[..., -1:]
        return put_out((last / first if p == -2 else first / last).squeeze(-1), out)
    need_square("linalg.cond", a._array)
    inverse, info = inv_op.function(a)
    size, other = matrix_norm(a, p), matrix_norm(inverse, p)
    made: Any = size * other
    singular = info != 0
    if bool(singular.any()):  # no inverse: the condition is infinite
        made = made.masked_fill(singular, math.inf)
    if p == "nuc":
        return put_out(made, out)
    made = made.nan_to_num(math.inf, math.inf, -math.inf)  # 0 times infinity, as NumPy has it
    return counted(made, 1) if out is None else put_out(made, out)


@public("dist", method=True)
def dist(input: Tensor, other: Tensor, p: float = 2) -> Tensor:
    """‖input - other‖ₚ over all elements."""
    difference = input - other
    return exponentials.vector_norm.function(difference, p)


# -- distances between all pairs of points --------------------------------------------------------

MODES = (
    "use_mm_for_euclid_dist_if_necessary",
    "use_mm_for_euclid_dist",
    "donot_use_mm_for_euclid_dist",
)
MANY_ROWS = 25  # from here on PyTorch computes Euclidean distances by a matrix product


def pairs(xp: ArrayModule, a: Array, b: Array, p: float) -> Any:
    """‖aᵢ - bⱼ‖ₚ for rows aᵢ and bⱼ, a block of rows at a time."""
    rows, n = b.shape[-2:]
    made = xp.empty((*a.shape[:-1], rows), a.dtype)
    step = max(1, (1 << 18) // max(1, rows * n * max(1, math.prod(a.shape[:-2]))))
    for i in range(0, a.shape[-2], step):
        size = abs(a[..., i : i + step, None, :] - b[..., None, :, :])
        part = made[..., i : i + step, :]
        if p == 0:
            xp.minimum(xp.ceil(size), 1).sum(-1, out=part)  # and NaN is no number of them
        elif p == 1:
            size.sum(-1, out=part)
        elif p == 2:
            size *= size
            xp.sqrt(size.sum(-1), out=part)
        elif math.isinf(p):
            part[...] = size.max(-1) if n else 0
        else:
            part[...] = (size**p).sum(-1) ** (1 / p)
    return made


def _euclidean(xp: ArrayModule, a: Array, b: Array) -> Any:
    """√(|a|² - 2ab + |b|²), by a matrix product. With two bytes what goes into the product rounds."""
    if a.dtype.itemsize == 2:
        kind, wide = a.dtype, xp.float32

        def rounded(x: Array) -> Any:
            return x.astype(kind).astype(wide)

        a, b = a.astype(wide), b.astype(wide)
        lengths = [rounded(rounded(x * x).sum(-1)) for x in (a, b)]
        square = rounded(a * -2) @ b.swapaxes(-1, -2)
        square = rounded(square + lengths[0][..., :, None] + lengths[1][..., None, :])
        return xp.sqrt(xp.maximum(square, 0)).astype(kind)
    square = (a * -2) @ b.swapaxes(-1, -2)
    square += (a * a).sum(-1)[..., :, None]
    square += (b * b).sum(-1)[..., None, :]
    return xp.sqrt(xp.maximum(square, 0, out=square), out=square)


def _cdist(xp: ArrayModule, a: Array, b: Array, p: float, mode: int) -> Any:
    for label, kind in zip(("X1", "X2"), kinds(a, b), strict=True):
        if not kind.is_floating_point:
            raise RuntimeError(
                f"cdist only supports floating-point dtypes, {label} got: {kind.legacy}"
            )
    for label, x in (("X1", a), ("X2", b)):
        if x.ndim < 2:
            raise RuntimeError(f"cdist only supports at least 2D tensors, {label} got: {x.ndim}D")
    if a.shape[-1] != b.shape[-1]:
        raise RuntimeError(
            f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}"
        )
    if not p >= 0:
        raise RuntimeError("cdist only supports non-negative p values")
    batch = broadcast_pair(a.shape[:-2], b.shape[:-2])
    a, b = (xp.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    if p == 2 and (mode == 1 or (mode == 0 and max(a.shape[-2], b.shape[-2]) > MANY_ROWS)):
        same_scalar_type(a, b)
        return _euclidean(xp, a, b)
    if not math.prod((*batch, a.shape[-2], *b.shape[-2:])):
        return xp.zeros((*batch, a.shape[-2], b.shape[-2]), a.dtype)
    if a.dtype.itemsize == 2:
        raise no_kernel("cdist", a.dtype)
    same_scalar_type(a, b)
    made = attempt(xp, "distances", a, b, p) if a.ndim == 2 else None
    return pairs(xp, a, b, p) if made is None else made


share_or_zero = pointwise(
    "_share_or_zero(Tensor self, Tensor other) -> Tensor",
    formula="0 if other == 0 else self / other",
    d_self="0 if other == 0 else g / other",
    d_other="0 if other == 0 else -g * self / (other * other)",
    doc="self / other, and 0 where other is 0.",
)


def row_shares(g: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor) -> Any:
    """The gradient of the rows of x1; that of x2 is the same with everything turned round."""
    if p == 0:
        return x1 * 0
    if p == 2:
        return by_weights(share_or_zero.function(g, result), x1, x2)
    d = x1.unsqueeze(-2) - x2.unsqueeze(-3)
    norm, weight = result.unsqueeze(-1), g.unsqueeze(-1)
    if p == 1:
        return (d.sgn() * weight).sum(-2)
    if math.isinf(p):
        return (d.sgn() * (d.abs() == norm) * weight).sum(-2)
    safe = norm.masked_fill(norm == 0, 1)
    size = d.abs()
    share = d.sgn() * size.masked_fill(size == 0, 1) ** (p - 1) * safe ** (1 - p)
    return (share.masked_fill((norm == 0) | (size == 0), 0) * weight).sum(-2)


def by_weights(w: Tensor, x1: Tensor, x2: Tensor) -> Any:
    """Σⱼ wᵢⱼ·(x1ᵢ - x2ⱼ)."""
    return x1 * w.sum(-1, True) - w @ x2


def _first_shares(
    g: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor, work: dict[str, Tensor]
) -> Any:
    """The gradient of x1."""
    if p != 2:
        return row_shares(g, x1, x2, p, result)
    work["weights"] = share_or_zero.function(g, result)
    return by_weights(work["weights"], x1, x2)


def _second_shares(
    g: Tensor, x1: Tensor, x2: Tensor, p: float, result: Tensor, work: dict[str, Tensor]
) -> Any:
    """The gradient of x2, by the weights that that of x1 left."""
    if p != 2:
        return row_shares(g.mT, x2, x1, p, result.mT)
    w = work.get("weights")
    w = share_or_zero.function(g, result) if w is None else w
    return x2 * w.sum(-2).unsqueeze(-1) - w.mT @ x1


cdist_op: Op = in_own_type(
    "cdist(Tensor x1, Tensor x2, float p, int compute_mode) -> Tensor",
    _cdist,
    forms="",
    d_x1=_first_shares,
    d_x2=_second_shares,
    memory="rows",
    amp="float32",
    fresh=True,
    doc="Distances between all pairs of rows.",
)


@public("cdist", tensor_first=False)
def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: object = MODES[0]) -> Tensor:
    """‖x1[i] - x2[j]‖ₚ for all pairs of rows.

    >>> torch.cdist(torch.tensor([[0., 0.]]), torch.tensor([[3., 4.], [0., 1.]]))
    tensor([[5., 1.]])
    """
    if compute_mode not in MODES:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    return cdist_op.function(x1, x2, p, MODES.index(compute_mode))


# -- norms held below a bound ---------------------------------------------------------------------

EPSILON = 1e-7  # PyTorch's, beside the norm that renorm divides by


def _renorm_dims(shape: Sizes, dim: int) -> list[int]:
    d = wrap_dim(dim, len(shape))
    return [i for i in range(len(shape)) if i != d]


def _renorm(xp: ArrayModule, a: Array, p: float, dim: int, maxnorm: float) -> Any:
    for name, value in (("p", p), ("maxnorm", maxnorm)):
        if isinstance(value, complex):
            raise RuntimeError(f"renorm: {name} must be real-valued")
        if name == "p" and not value > 0:
            raise RuntimeError("renorm: non-positive norm not supported")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    if a.ndim < 2:
        raise RuntimeError(f"renorm: input needs at least 2 dimensions, got {a.ndim} dimensions")
    size = exponentials._vector_norm(xp, a, p, _renorm_dims(a.shape, dim), True, None)
    scale = xp.where(size > maxnorm, maxnorm / (size + EPSILON), 1)
    return a * scale.astype(size.dtype)


def _renorm_gradient(g: Tensor, self: Tensor, p: float, dim: int, maxnorm: float) -> Any:
    dims = _renorm_dims(self.shape, dim)
    size = exponentials.vector_norm.function(self, p, dims, True)
    over = size > maxnorm
    inner = (self.conj() * g).sum(dims, True)
    inner = inner.real if inner.dtype.is_complex else inner
    along = exponentials._norm_gradient(inner, self, p, dims, True, size)
    moved = (g - along / (size + EPSILON)) * (maxnorm / (size + EPSILON))
    return g * ~over + moved.masked_fill(~over, 0)  # which may be NaN at 0


renorm = general(
    "renorm(Tensor self, Scalar p, int dim, Scalar maxnorm) -> Tensor",
    _renorm,
    forms="function method inplace out",
    holomorphic=False,
    d_self=_renorm_gradient,
    memory="rows",
    names="same",
    apart="partly",
    doc="Slices of a dimension scaled down to a p-norm of at most maxnorm.",
    out_type="same",
)
