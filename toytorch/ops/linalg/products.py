"""Products with a sum, products of several matrices, and products that are not a matrix's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.core import inplace as writing
from toytorch.core.compute import REDUCED, refuse_storage_only
from toytorch.core.op import Op
from toytorch.core.scalars import as_element
from toytorch.core.tensor import Tensor
from toytorch.core.write import refusal, refuse_grad
from toytorch.facts import warned
from toytorch.facts.composed import cast_to
from toytorch.facts.device import contiguous_format
from toytorch.facts.dtype import IN_C, cannot_cast, from_numpy_dtype, promote
from toytorch.facts.hints import Array, ArrayModule
from toytorch.facts.size import broadcast_pair, wrap_dim
from toytorch.ops.creation.create import put_out
from toytorch.ops.define import general, on_tensors, public
from toytorch.ops.linalg.checks import identity, need_square
from toytorch.ops.linalg.matmul import (
    _bmm,
    _dot,
    _mv,
    broadcast_or_none,
    plus,
    product_of,
    same_dtype,
    same_of_dot,
    same_of_vector,
    same_scalar_type,
    same_three,
    scaled,
    sum_with_product,
)
from toytorch.ops.linalg.solve import inv
from toytorch.ops.shaping.rearrange import _common
from toytorch.ops.shaping.reshape import need_tensors
from toytorch.ops.shaping.view import _expand, viewed


def added(xp: ArrayModule, a: Array, product: Array, beta: float, alpha: float) -> Any:
    """beta·a + alpha·product, for an `a` of the product's type."""
    if a.dtype != product.dtype:
        same_dtype(a, product)
    return plus(xp, a, product, beta, alpha)


def _addmv(xp: ArrayModule, a: Array, mat: Array, vec: Array, beta: int, alpha: float) -> Any:
    if mat.ndim != 2 or vec.ndim != 1:
        raise RuntimeError(
            f"vector + matrix @ vector expected, got {a.ndim}, {mat.ndim}, {vec.ndim}"
        )
    same_of_vector(a, mat, vec)
    if not a.ndim and mat.shape[1] != vec.shape[0]:  # its size is to be said
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    rows = a.shape[0] if a.ndim else mat.shape[0]
    if mat.shape[1] != vec.shape[0] or (rows != mat.shape[0] and rows != 1):
        raise RuntimeError(
            f"size mismatch, got input ({rows}), mat ({mat.shape[0]}x{mat.shape[1]}), "
            f"vec ({vec.shape[0]})"
        )
    return added(xp, a, _mv(xp, mat, vec), beta, alpha)


addmv = sum_with_product(
    "addmv(Tensor self, Tensor mat, Tensor vec, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmv,
    out_type="same",
    d_mat=lambda g, vec, alpha: scaled(g.unsqueeze(1) * vec.unsqueeze(0), alpha),
    d_vec=lambda g, mat, alpha: scaled(mat.t().mv(g), alpha),
    fresh=True,
    checks=lambda _, args: same_of_vector(*args[:3]),
    doc="beta·self + alpha·mat·vec.",
)


def same_of_batch(a: Any, b1: Any, b2: Any) -> None:
    """Refuses a sum and stacks of factors of several types, if there are any factors."""
    if b1.ndim == 3 and b2.ndim == 3 and len(b1):
        same_three(a, b1, b2)


def _addbmm(xp: ArrayModule, a: Array, b1: Array, b2: Array, beta: float, alpha: int) -> Any:
    for d, m in ((1, b1), (2, b2)):  # the sizes of the result are looked up first
        wrap_dim(d, m.ndim, False)
    same_of_batch(a, b1, b2)
    if b1.ndim == b2.ndim == 3 and not len(b1):  # nothing to add, of whatever type
        b1, b2 = b1.astype(a.dtype), b2.astype(a.dtype)
    if (
        b1.ndim == 3
        and b2.ndim == 3
        and b1.shape[0] == b2.shape[0]
        and b1.shape[2] == b2.shape[1]
        and b1.dtype == b2.dtype
    ):
        n, m, k = b1.shape  # the sum of products is one product of the batch side by side
        wide = b1.transpose(1, 0, 2).reshape(m, n * k)
        return added(xp, a, product_of(xp, wide, b2.reshape(n * k, b2.shape[2])), beta, alpha)
    return added(xp, a, _bmm(xp, b1, b2).sum(0), beta, alpha)


addbmm = sum_with_product(
    "addbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addbmm,
    d_batch1=lambda g, batch2, alpha: scaled(
        g.expand((batch2.shape[0], *g.shape)).bmm(batch2.transpose(1, 2)), alpha
    ),
    d_batch2=lambda g, batch1, alpha: scaled(
        batch1.transpose(1, 2).bmm(g.expand((batch1.shape[0], *g.shape))), alpha
    ),
    amp="half",
    out_type="same",
    checks=lambda _, args: same_of_batch(*args[:3]),
    doc="beta·self + alpha·Σ of the matrix products of a batch.",
)


_addbmm_inplace = Tensor.addbmm_  # type: ignore[attr-defined]  # attached by the record


@public(method=True)
def addbmm_(
    self: Tensor, batch1: Tensor, batch2: Tensor, *, beta: float = 1, alpha: float = 1
) -> Tensor:
    """In-place form of `addbmm`; as in PyTorch, a tensor that broadcasts grows."""
    made = (batch1.shape[1], batch2.shape[2]) if batch1.ndim == batch2.ndim == 3 else self.shape
    if self.shape != made and broadcast_or_none(self.shape, made) == made:
        writing.check(self, self._requires_grad)
        grown = addbmm.function(self, batch1, batch2, beta=beta, alpha=alpha)
        self._array, self._storage = grown._array, grown._storage
        self._grad_edge, self._requires_grad = grown._grad_edge, grown._requires_grad
        writing.bump(self)
        return self
    return _addbmm_inplace(self, batch1, batch2, beta=beta, alpha=alpha)


def _addr(xp: ArrayModule, a: Array, v: Array, w: Array, beta: float, alpha: float) -> Any:
    for i, x in ((1, v), (2, w)):
        if x.ndim != 1:
            raise RuntimeError(f"addr: Expected 1-D argument vec{i}, but got {x.ndim}-D")
    a, v, w = _common(xp, [a.reshape(a.shape or (1,)), v, w])  # a number's type counts, too
    refuse_storage_only(addr, from_numpy_dtype(a.dtype))
    kind = a.dtype.kind
    for name, value in (("beta", beta), ("alpha", alpha)):
        if isinstance(value, bool) and kind != "b":
            raise RuntimeError(f"Boolean {name} only supported for Boolean results.")
        if isinstance(value, float) and kind in "biu":
            raise RuntimeError(
                f"For integral input tensors, argument {name} must not be a floating point number."
            )
    shape = v.shape + w.shape
    if broadcast_or_none(a.shape, shape) != shape:
        _expand(xp, a, shape)  # raises PyTorch's error
    if kind == "b":
        product = v[:, None] & w & bool(alpha)
        return a | product if beta else product
    half = a.dtype if from_numpy_dtype(a.dtype) in REDUCED else None

    def step(x: Array) -> Any:  # half types round each time
        return x if half is None else x.astype(half).astype(np.float32)

    first, second = (step(as_element(np, n, a.dtype)[()]) for n in (beta, alpha))
    if half is not None:
        a, v, w = (x.astype(np.float32) for x in (a, v, w))
    exact = kind != "c"  # 1 times a complex number with an infinity or NaN is another
    product = step(step(v if alpha == 1 and exact else v * second)[:, None] * w)
    if beta:
        product += a if beta == 1 and exact else step(a * first)
    return product if half is None else product.astype(half)


addr: Op = sum_with_product(
    "addr(Tensor self, Tensor vec1, Tensor vec2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addr,
    upcast=False,
    apart="partly",
    memory="like",
    d_vec1=lambda g, vec2, alpha: scaled(g.mv(vec2.to(g.dtype)), alpha),
    d_vec2=lambda g, vec1, alpha: scaled(g.t().mv(vec1.to(g.dtype)), alpha),
    doc="beta·self + alpha·vec1·vec2ᵀ.",
)


_addr_inplace = Tensor.addr_  # type: ignore[attr-defined]  # attached by the record


def addr_(self: Tensor, *args: Any, **kwargs: Any) -> Any:
    """In-place form of `addr`, of which the result's type must fit into the tensor's own."""
    made = [t.dtype for t in (self, *args, *kwargs.values()) if isinstance(t, Tensor)]
    if any(kind.rank > self.dtype.rank for kind in made):
        raise cannot_cast(promote(tuple(made), (), ()), self.dtype)
    return _addr_inplace(self, *args, **kwargs)


on_tensors(addr_=addr_)


vdot = general(
    "vdot(Tensor self, Tensor other) -> Tensor",
    lambda xp, a, b: _dot(xp, a.conj() if a.dtype.kind == "c" else a, b),
    holomorphic=False,
    d_self=lambda g, other: g.conj() * other,
    d_other=lambda g, self: g * self,
    out_type="same",
    checks=lambda _, args: same_of_dot(*args),
    doc="Inner product Σ āᵢbᵢ.",
)


def _cross(xp: ArrayModule, a: Array, b: Array, dim: int) -> Any:
    if a.ndim != b.ndim:
        raise RuntimeError("linalg.cross: inputs must have the same number of dimensions.")
    d = wrap_dim(dim, a.ndim)
    if a.shape[d] != 3 or b.shape[d] != 3:
        raise RuntimeError(
            f"linalg.cross: inputs dimension {dim} must have length 3. Got "
            f"{a.shape[d]} and {b.shape[d]}"
        )
    shape = broadcast_pair(a.shape, b.shape)
    if a.dtype == bool:
        raise NotImplementedError("\"cross\" not implemented for 'Bool'")
    same_scalar_type(a, b)
    a, b = _common(xp, [a, b])
    made = xp.empty(shape, a.dtype)
    before: tuple[Any, ...] = (slice(None),) * d
    x, y, z = ([t[(*before, i, ...)] for i in range(3)] for t in (a, b, made))
    for i in range(3):
        j, k = (i + 1) % 3, (i + 2) % 3
        z[i][...] = x[j] * y[k] - x[k] * y[j]
    return made


linalg_cross: Op = general(
    "linalg_cross(Tensor self, Tensor other, *, int dim=-1) -> Tensor",
    _cross,
    d_self=lambda g, other, dim: linalg_cross.function(other, g, dim=dim),
    d_other=lambda g, self, dim: linalg_cross.function(g, self, dim=dim),
    checks=lambda _, args: same_scalar_type(*args[:2]),
    doc="The vector product in three dimensions.",
    apart=True,
    out_type="same",
)


@public("cross", method=True)
def cross(
    input: Tensor, other: Tensor, dim: int | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`linalg.cross` along the first dimension of size 3, unless another is named."""
    if dim is None:
        warned.once(
            "Using torch.cross without specifying the dim arg is deprecated.\nPlease either pass "
            "the dim explicitly or simply use torch.linalg.cross.\nThe default value of dim will "
            "change to agree with that of linalg.cross in a future release."
        )
        if input.ndim == other.ndim:
            shape = broadcast_pair(input.shape, other.shape)
        else:
            shape = tuple(input.shape)
        dim = next((d for d, n in enumerate(shape) if n == 3), None)
        if dim is None:
            raise RuntimeError("no dimension of size 3 in input")
    return linalg_cross.function(input, other, dim=dim, out=out)


@public("linalg.vecdot")
@cast_to("half")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Σ x̄·y along a dimension."""
    if out is not None:
        refuse_grad("vdot" if x.ndim == y.ndim == 1 else "sum", (x, y), out)
    for t in (x, y):
        if not (t.dtype.is_floating_point or t.dtype.is_complex):
            raise RuntimeError(
                "linalg.vecdot: Expected a floating point or complex tensor as "
                f"input. Got {t.dtype.legacy}"
            )
    if x.dtype is not y.dtype:
        raise RuntimeError(
            "linalg.vecdot: Expected x and y to have the same dtype, but found x of type "
            f"{x.dtype.legacy} and y of type {y.dtype.legacy} instead"
        )
    if out is not None and out.dtype is not x.dtype:
        raise RuntimeError(
            f"linalg.vecdot: Expected out of dtype{x.dtype.legacy} but found {out.dtype.legacy}"
        )
    if x.ndim == 1 == y.ndim:  # whatever the dimension is said to be
        return vdot.function(x, y, out=out)
    return put_out((x.conj() * y).sum(dim), out)


# -- several matrices -----------------------------------------------------------------------------


def cheapest(sizes: list[int]) -> Any:
    """Where to split a product of matrices (sizes[i], sizes[i+1]): the classic dynamic program."""
    n = len(sizes) - 1
    cost = [[0] * n for _ in range(n)]
    cut = [[0] * n for _ in range(n)]
    for span in range(1, n):
        for i in range(n - span):
            j = i + span
            cost[i][j], cut[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return cut


def chain(parts: Sequence[Any], cut: Sequence[Sequence[int]], i: int, j: int) -> Any:
    """The product of matrices i to j, in two halves by a table of where to cut."""
    if i == j:
        return parts[i]
    k = cut[i][j]
    return chain(parts, cut, i, k).mm(chain(parts, cut, k + 1, j))


@public("linalg.multi_dot", tensor_first=False)
def multi_dot(tensors: Any, *, out: Tensor | None = None) -> Tensor:
    """The product of several matrices, in the order that costs least.

    The first and the last may be vectors. Cormen and others 2009, chapter 15.2.
    """
    parts: list[Any] = list(tensors)
    name = "multi_dot(): "
    if len(parts) < 2:
        raise RuntimeError(f"{name}expected at least 2 tensors but got {len(parts)}")
    for i, t in ((0, parts[0]), (len(parts) - 1, parts[-1])):
        if t.ndim not in (1, 2):
            which = "the first" if i == 0 else "the last"
            raise RuntimeError(f"{name}{which} tensor must be 1D or 2D but got {t.ndim}D")
    for i, t in enumerate(parts[1:-1], 1):
        if t.ndim != 2:
            raise RuntimeError(f"{name}tensor {i} must be 2D but got {t.ndim}D")
    for i, t in enumerate(parts):
        if t.dtype is not parts[0].dtype:
            raise RuntimeError(
                f"{name}all tensors must have be the same dtype but tensor 0 is "
                f"{IN_C[parts[0].dtype.name]} and tensor {i} {IN_C[t.dtype.name]}"
            )
    row, column = parts[0].ndim == 1, parts[-1].ndim == 1
    parts[0] = parts[0].unsqueeze(0) if row else parts[0]
    parts[-1] = parts[-1].unsqueeze(-1) if column else parts[-1]
    for i, (a, b) in enumerate(zip(parts, parts[1:])):
        if a.shape[1] != b.shape[0]:
            raise RuntimeError(
                f"{name}tensors {i} and {i + 1} with shapes {list(a.shape)} and "
                f"{list(b.shape)} cannot be multiplied"
            )
    cut = cheapest([t.shape[0] for t in parts] + [parts[-1].shape[1]])
    made = chain(parts, cut, 0, len(parts) - 1)
    shape = parts[0].shape[:1] * (not row) + parts[-1].shape[1:] * (not column)
    return put_out(viewed(made, tuple(shape)), out, same=True)


@public("chain_matmul", tensor_first=False)
def chain_matmul(*matrices: Any, out: Tensor | None = None) -> Tensor:
    """`linalg.multi_dot` of matrices given one by one."""
    warned.at_call(
        "torch.chain_matmul is deprecated and will be removed in a future PyTorch "
        "release. Use torch.linalg.multi_dot instead, which accepts a list of two or "
        "more tensors rather than multiple parameters."
    )
    need_tensors(matrices)
    if not matrices:
        raise RuntimeError("chain_matmul(): Expected one or more matrices")
    for t in matrices:
        if t.ndim != 2:
            raise RuntimeError(f"Tensor dimension is {t.ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0].clone()
    return multi_dot(matrices, out=out)


@public("linalg.matrix_power", "matrix_power", method=True)
def matrix_power(input: Tensor, n: int, *, out: Tensor | None = None) -> Tensor:
    """Aⁿ by repeated squaring; a negative n takes the inverse first.

    >>> torch.linalg.matrix_power(torch.tensor([[1., 1.], [0., 1.]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    a: Any = input
    need_square("linalg.matrix_power", a._array)
    if out is not None and a.dtype.rank > out.dtype.rank:
        raise RuntimeError(
            f"matrix_power: Expected result to be safely castable from {a.dtype.legacy} dtype, but "
            f"got result with dtype {out.dtype.legacy}"
        )
    if out is not None and n not in (0, 1) and out.dtype is not a.dtype:
        raise RuntimeError(refusal("same", "matrix_power", a.dtype, out.dtype))
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        one = identity(a, a.shape[-1])
        a = a.clone(memory_format=contiguous_format).copy_(one)  # A is in its history
        return put_out(a, out)
    made: Any = None
    while True:
        if n & 1:
            made = a if made is None else made @ a
        n >>= 1
        if not n:
            made = made.clone(memory_format=contiguous_format) if made is input else made
            return put_out(made, out)
        a = a @ a
