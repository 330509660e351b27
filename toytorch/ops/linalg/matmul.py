"""Products of matrices and vectors."""

from __future__ import annotations

import functools
from _thread import get_ident
from collections.abc import Callable
from typing import Any

import numpy as np

from toytorch.backends.generic import attempt, worthwhile
from toytorch.core.op import Op
from toytorch.core.scalars import as_element
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import state
from toytorch.facts.dtype import IN_C, dtype, from_numpy_dtype, no_kernel
from toytorch.facts.hints import Array, ArrayModule, Fn, Sizes
from toytorch.facts.size import broadcast_pair, wrap_dim
from toytorch.kernels.blas_product import matmul
from toytorch.kernels.matmul import LEAST, SYMMETRIC, is_symmetric, is_transpose
from toytorch.kernels.tiled_product import FEWEST_OF_STACKS, fewest, product_of_rows, tiles
from toytorch.ops import batching, flops, named_dims
from toytorch.ops.define import general, in_own_type, internal
from toytorch.ops.shaping.rearrange import _common
from toytorch.ops.shaping.view import _expand


def kinds(*operands: Any) -> list[dtype]:
    """The types of arrays, or of tensors."""
    return [a.dtype if isinstance(a.dtype, dtype) else from_numpy_dtype(a.dtype) for a in operands]


def same_dtype(a: Any, b: Any) -> None:
    """Refuses operands of two types: products do not promote."""
    if a.dtype != b.dtype:
        x, y = (IN_C[kind.name] for kind in kinds(a, b))
        raise RuntimeError(f"expected m1 and m2 to have the same dtype, but got: {x} != {y}")


def same_scalar_type(a: Any, b: Any) -> None:
    """Refuses operands of two types, as kernels do that are compiled for one."""
    if a.dtype != b.dtype:
        x, y = kinds(a, b)
        raise RuntimeError(f"expected scalar type {x.legacy} but found {y.legacy}")


def same_three(a: Any, m1: Any, m2: Any) -> None:
    """Refuses a sum and factors of several types."""
    for name, m in (("self", a), ("mat1", m1)):
        if m.dtype != m2.dtype:
            x, y = kinds(m, m2)
            raise RuntimeError(
                f"{name} and mat2 must have the same dtype, but got {x.legacy} and {y.legacy}"
            )


def same_of_two_stacks(a: Any, b: Any) -> None:
    """Refuses stacks of factors of two types, or of truth values, if there is anything to add."""
    if 0 not in a.shape and 0 not in b.shape:
        if a.dtype.kind == "b":
            raise no_kernel("bmm", np.dtype(bool))
        same_scalar_type(a, b)


def same_of_stacks(a: Any, b1: Any, b2: Any) -> None:
    """Refuses a sum and stacks of factors of several types; of nothing to add, the last may differ."""
    nothing = 0 in b1.shape or 0 in b2.shape
    if not nothing and a.dtype.kind == "b" == b1.dtype.kind:
        raise no_kernel("baddbmm", np.dtype(bool))
    if a.dtype != b1.dtype or not (nothing or b1.dtype == b2.dtype):
        x, y, z = (IN_C[kind.name] for kind in kinds(a, b1, b2))
        raise RuntimeError(
            f"Input dtypes must be the same, got: input {x}, batch1: {y}, batch2: {z}"
        )


def same_of_vector(a: Any, mat: Any, vec: Any) -> None:
    """Refuses a matrix and vectors of several types."""
    if not a.dtype == mat.dtype == vec.dtype:
        x, y, z = (kind.legacy for kind in kinds(a, mat, vec))
        raise RuntimeError(
            f"addmv input tensors must have the same dtype, but got {x}, {y}, and {z}"
        )


def same_of_dot(a: Any, b: Any) -> None:
    """Refuses two vectors of two types."""
    if a.dtype != b.dtype:
        x, y = kinds(a, b)
        raise RuntimeError(
            f"dot : expected both vectors to have same dtype, but found {x.legacy} and {y.legacy}"
        )


def product_of(xp: ArrayModule, a: Array, b: Array) -> Any:
    """A·B of two matrices or stacks of them, by the kernels of a device or by its array module."""
    kind, here = a.dtype.char, a.__class__ is np.ndarray
    if a.ndim != 2 or b.ndim > 2:
        return stacked(xp, a, b) if a.ndim > 2 and a.ndim == b.ndim else xp.matmul(a, b)
    if kind == "?" and a.size and b.size:
        raise NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'Bool'")
    if b.ndim == 2 and (not here or len(a) >= LEAST or a.size * b.shape[1] >= fewest()):
        made = attempt(xp, "product", a, b)
        if made is not None:
            return made
    return matmul(a, b) if here and kind in "fd" else xp.matmul(a, b)


def stacked(xp: ArrayModule, a: Array, b: Array) -> Any:
    """Products of two stacks of matrices."""
    least = -(-FEWEST_OF_STACKS // max(b.shape[-1], 1))
    made = attempt(xp, "products", a, b) if worthwhile(a, least) else None
    if made is not None:
        return made
    return matmul(a, b) if a.__class__ is np.ndarray and a.dtype.char in "fd" else xp.matmul(a, b)


def check_factors(a: Array, b: Array) -> None:
    """Refuses matrices whose inner sizes differ."""
    if a.shape[1] != b.shape[0]:
        raise RuntimeError(
            f"mat1 and mat2 shapes cannot be multiplied ({a.shape[0]}x{a.shape[1]} "
            f"and {b.shape[0]}x{b.shape[1]})"
        )


def check_stacks(a: Array, b: Array) -> None:
    """Refuses stacks of matrices whose inner sizes differ, or of different lengths."""
    if a.shape[0] != b.shape[0] or a.shape[2] != b.shape[1]:
        raise RuntimeError(
            "Expected size for first two dimensions of batch2 tensor to be: "
            f"[{a.shape[0]}, {a.shape[2]}] but got: [{b.shape[0]}, {b.shape[1]}]."
        )


@functools.lru_cache(1024)
def way_of(
    kind: np.dtype, x: Sizes, y: Sizes
) -> tuple[Callable[[Array, Array], Array], bool] | None:
    """What multiplies NumPy's matrices of a real type and such shapes, so small or so plain that further
    questions would be felt, and whether it asks for rows without gaps; None where arrays are looked at."""
    if not (len(x) == 2 == len(y) and x[1] == y[0] and kind.char in "fd"):
        return None
    few = x[0] * x[1] * y[1] < fewest()
    if few and x[0] < LEAST:
        return np.ndarray.dot, False
    return (product_of_rows(kind, x, y) or matmul, True) if few or not tiles() else None


def _mm(xp: ArrayModule, a: Array, b: Array) -> Any:
    kind = a.dtype
    if kind is b.dtype and a.__class__ is np.ndarray:
        way = way_of(kind, a.shape, b.shape)
        if way and not (way[1] and not (a.flags.c_contiguous and b.flags.c_contiguous)):
            return way[0](a, b)
    for name, m in (("self", a), ("mat2", b)):
        if m.ndim != 2:
            raise RuntimeError(f"{name} must be a matrix")
    check_factors(a, b)
    same_dtype(a, b)
    return product_of(xp, a, b)


def left_share(
    g: Tensor, mat2: Tensor, column_major: bool, work: dict[Any, Any] | None = None
) -> Any:
    """The gradient of the left factor, g·mat2ᵀ, in that factor's own order of memory."""
    if column_major:
        return mat2.mm(g.t()).t()
    made = g.mm(mat2.t())
    if work is not None and made.numel() >= SYMMETRIC:
        work["left"] = made, mat2
    return made


def right_share(
    g: Tensor, mat1: Tensor, column_major: bool, work: dict[str, tuple[Tensor, ...]] | None = None
) -> Any:
    """The gradient of the right factor, mat1ᵀ·g, in that factor's own order of memory.

    The weight of a linear layer comes in transposed; its gradient then lies as the weight does.
    Of x·xᵀ with a symmetric g (similarities of pairs have one) it is the left factor's, transposed.
    """
    if work and not state.local.grad:
        made, mat2 = work["left"]
        arrays = [t._array for t in (g, mat1, mat2)]
        if (
            all(a.__class__ is np.ndarray for a in arrays)
            and is_transpose(*arrays[1:])
            and (is_symmetric(arrays[0]))
        ):
            return made.t()
    return g.t().mm(mat1).t() if column_major else mat1.t().mm(g)


mm = general(
    "mm(Tensor self, Tensor mat2) -> Tensor",
    _mm,
    out_type="same",
    elsewhere="out_dtype",
    d_self=lambda g, mat2, self_order, work: left_share(g, mat2, self_order, work),
    d_mat2=lambda g, self, mat2_order, work: right_share(g, self, mat2_order, work),
    amp="half",
    halves="halves product",
    batch=batching.matrices,
    names=named_dims.product("self", "mat2"),
    fresh=True,
    flops=flops.matrices,
    checks=lambda _, args: same_dtype(*args),
    doc="Matrix product.",
)


def _bmm(xp: ArrayModule, a: Array, b: Array) -> Any:
    if not a.ndim == b.ndim == 3:
        raise RuntimeError(f"batch{2 if a.ndim == 3 else 1} must be a 3D tensor")
    check_stacks(a, b)
    same_of_two_stacks(a, b)
    if not (a.size and b.size):
        return xp.zeros((*a.shape[:2], b.shape[2]), b.dtype)
    return product_of(xp, a, b)


bmm = general(
    "bmm(Tensor self, Tensor mat2) -> Tensor",
    _bmm,
    out_type="same",
    elsewhere="out_dtype",
    d_self="bmm(g, transpose(mat2, 1, 2))",
    d_mat2="bmm(transpose(self, 1, 2), g)",
    amp="half",
    halves="halves product",
    batch=batching.matrices,
    names=named_dims.product("self", "mat2"),
    fresh=True,
    flops=flops.matrices,
    checks=lambda _, args: same_of_two_stacks(*args),
    doc="Matrix products of a batch.",
)


def check_vector(a: Array, v: Array) -> None:
    """Refuses a vector that has not an element for each column of a matrix."""
    if a.shape[1] != v.shape[0]:
        raise RuntimeError(
            f"size mismatch, got input ({a.shape[0]}), mat ({a.shape[0]}x{a.shape[1]}), "
            f"vec ({v.shape[0]})"
        )


def _mv(xp: ArrayModule, a: Array, v: Array) -> Any:
    if not a.ndim:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    if a.ndim != 2 or v.ndim != 1:
        raise RuntimeError(f"vector + matrix @ vector expected, got 1, {a.ndim}, {v.ndim}")
    check_vector(a, v)
    same_of_vector(v, a, v)
    return product_of(xp, a, v)


mv = general(
    "mv(Tensor self, Tensor vec) -> Tensor",
    _mv,
    out_type="same",
    d_self="unsqueeze(g, 1) * unsqueeze(vec, 0)",
    d_vec="mv(t(self), g)",
    batch=batching.matrix_vector,
    names=named_dims.product("self", "vec"),
    fresh=True,
    checks=lambda _, args: same_of_vector(args[1], *args),
    doc="Matrix times vector.",
)


LONG = 1 << 18  # elements of vectors that are waited for: a sum by parts then is as fast as BLAS's
# plain one, and a third of its error


def _dot(xp: ArrayModule, a: Array, b: Array) -> Any:
    if a.ndim != 1 or b.ndim != 1:
        raise RuntimeError(f"1D tensors expected, but got {a.ndim}D and {b.ndim}D tensors")
    same_of_dot(a, b)
    if a.shape != b.shape:
        raise RuntimeError(
            "inconsistent tensor size, expected tensor "
            f"[{a.shape[0]}] and src [{b.shape[0]}] to have the same number of "
            f"elements, but got {a.shape[0]} and {b.shape[0]} elements respectively"
        )
    if a.dtype.kind == "b":
        raise NotImplementedError("\"dot\" not implemented for 'Bool'")
    if a.size >= LONG:
        made = attempt(xp, "folded", "sum(self * tensor)", {"self": a, "tensor": b}, {})
        if made is not None:
            return made
    return product_of(xp, a, b)


dot = general(
    "dot(Tensor self, Tensor tensor) -> Tensor",
    _dot,
    out_type="same",
    d_self=lambda g, tensor: g * tensor,
    d_tensor=lambda g, self: g * self,
    batch=batching.vectors,
    names=named_dims.product("self", "tensor"),
    fresh=True,
    checks=lambda _, args: same_of_dot(*args),
    doc="Inner product, Σ aᵢbᵢ.",
)


def _outer(xp: ArrayModule, a: Array, b: Array) -> Any:
    for name, v in (("self", a), ("vec2", b)):
        if v.ndim != 1:
            raise RuntimeError(f"outer: Expected 1-D argument {name}, but got {v.ndim}-D")
    a, b = _common(xp, [a, b])
    made = attempt(xp, "outer", a, b)
    return xp.multiply(a[:, None], b[None, :]) if made is None else made


outer = in_own_type(
    "outer(Tensor self, Tensor vec2) -> Tensor",
    _outer,
    d_self=lambda g, vec2: g.mv(vec2.to(g.dtype)),
    d_vec2=lambda g, self: g.t().mv(self.to(g.dtype)),
    node="MulBackward0",
    fresh=True,
    apart=lambda self, vec2: (self.unsqueeze(-1), vec2),  # a product of a column and a row
    doc="Outer product, out[i, j] = a[i]·b[j].",
)


LAYER = 1 << 10  # elements that a layer is given; of fewer, a call of NumPy's is soon done


def plus(xp: ArrayModule, a: Array, product: Array, beta: float, alpha: float) -> Any:
    """beta·a + alpha·product, in the product's memory."""
    if broadcast_or_none(a.shape, product.shape) != product.shape:
        _expand(xp, a, product.shape)  # raises PyTorch's error
    product = xp.asarray(product)
    if alpha != 1:
        product *= as_element(np, alpha, product.dtype)[()]
    if beta == 1:
        product += a
    elif beta != 0:
        product += a * as_element(np, beta, a.dtype)[()]
    return product


def _addmm(xp: ArrayModule, a: Array, m1: Array, m2: Array, beta: float, alpha: int) -> Any:
    fits = m1.ndim == 2 == m2.ndim and m1.shape[1] == m2.shape[0] and a.dtype is m1.dtype
    if not fits or m1.dtype is not m2.dtype:  # or, rarely, equal types that are two objects
        for name, m in (("mat1", m1), ("mat2", m2)):
            if m.ndim != 2:
                raise RuntimeError(f"{name} must be a matrix, got {m.ndim}-D tensor")
        check_factors(m1, m2)
        same_three(a, m1, m2)
    if beta == 1 == alpha and a.shape == m2.shape[1:]:  # a layer, which adds its bias as it goes
        made = attempt(xp, "linear", m1, m2.T, a) if worthwhile(m1, LAYER) else None
        if made is None:
            made = product_of(xp, m1, m2)
            made += a
        return made
    # A product of no terms is not multiplied by alpha, which may be infinite.
    return plus(xp, a, product_of(xp, m1, m2), beta, alpha if m1.shape[1] else 1)


def broadcast_or_none(a: tuple[int, ...], b: tuple[int, ...]) -> Any:
    """The common shape, or None where there is none."""
    try:
        return broadcast_pair(a, b)
    except RuntimeError:
        return None


def scaled(g: Tensor, factor: float) -> Any:
    """g·factor, without work for 1."""
    return g if factor == 1 else g * factor


def sum_with_product(signature: str, kernel: Fn, **fields: Any) -> Op:
    """An op that gives beta·self + alpha times some product."""
    fields |= {"forms": "function method inplace out", "older": True}
    return general(signature, kernel, d_self=lambda g, beta: scaled(g, beta), **fields)


addmm = sum_with_product(
    "addmm(Tensor self, Tensor mat1, Tensor mat2, *, Scalar beta=1, Scalar alpha=1) -> Tensor",
    _addmm,
    out_type="same",
    elsewhere="out_dtype",
    d_mat1=lambda g, mat2, mat1_order, alpha: scaled(left_share(g, mat2, mat1_order), alpha),
    d_mat2=lambda g, mat1, mat2_order, alpha: scaled(right_share(g, mat1, mat2_order), alpha),
    amp="half",
    batch=batching.added_matrices,
    names=named_dims.added_product,
    fresh=True,
    flops=flops.added_matrices,
    checks=lambda _, args: same_three(*args[:3]),
    apart="partly",
    doc="beta·self + alpha·mat1·mat2.",
)


def _baddbmm(xp: ArrayModule, a: Array, b1: Array, b2: Array, beta: float, alpha: int) -> Any:
    for d, m in ((0, b1), (1, b1), (2, b2)):  # the sizes of the result are looked up first
        wrap_dim(d, m.ndim, False)
    shape = (b1.shape[0], b1.shape[1], b2.shape[2])
    if broadcast_or_none(a.shape, shape) != shape:
        _expand(xp, a, shape)
    same_of_stacks(a, b1, b2)
    product = _bmm(xp, b1, b2)
    if a.dtype != product.dtype:  # only of nothing
        a = a.astype(product.dtype)
    if alpha != 1 and b1.shape[2]:
        product *= as_element(np, alpha, product.dtype)[()]
    if beta == 0:
        return product
    product += a if beta == 1 else a * as_element(np, beta, a.dtype)[()]
    return product


baddbmm = sum_with_product(
    "baddbmm(Tensor self, Tensor batch1, Tensor batch2, *, Scalar beta=1, Scalar alpha=1) "
    "-> Tensor",
    _baddbmm,
    out_type="same",
    elsewhere="out_dtype",
    d_batch1=lambda g, batch2, alpha: scaled(g.bmm(batch2.transpose(1, 2)), alpha),
    d_batch2=lambda g, batch1, alpha: scaled(batch1.transpose(1, 2).bmm(g), alpha),
    amp="half",
    fresh=True,
    flops=flops.added_matrices,
    checks=lambda _, args: same_of_stacks(*args[:3]),
    doc="beta·self + alpha·batch1·batch2, for each matrix of a batch.",
)


def unrecorded(
    a: Tensor, b: Tensor, bias: Tensor | None = None, transposed: bool = False
) -> Tensor | None:
    """a·b + bias of a stack of matrices with another, or with one matrix, which may be `transposed`
    first, where nobody records the steps it is made of (views, a product, a view) or watches; None
    for what takes more."""
    mode = state.fast_path
    wanted = a._requires_grad or b._requires_grad or (bias is not None and bias._requires_grad)
    if wanted if mode is None else mode != get_ident():
        return None
    x, y = a._array, b._array
    if x.__class__ is not np.ndarray or y.__class__ is not np.ndarray:
        return None
    if transposed:
        y = y.T
    if (
        x.dtype is not y.dtype
        or x.dtype.char not in "fd"
        or not x.size
        or not y.size
        or x.shape[-1] != y.shape[-2]
    ):
        return None
    if y.ndim > 2:
        if bias is not None or x.shape[:-2] != y.shape[:-2]:
            return None
        made = stacked(np, x, y)
        return wrap(made if made.flags.c_contiguous else made.copy(), a.dtype)
    if not x.flags.c_contiguous:
        return None
    rows = x.reshape(-1, x.shape[-1])
    if bias is None:
        made = product_of(np, rows, y)
    else:
        z = bias._array
        if z.__class__ is not np.ndarray or z.dtype is not x.dtype or z.shape != y.shape[1:]:
            return None
        made = _addmm(np, z, rows, y, 1, 1)
        return wrap(np.ascontiguousarray(made), a.dtype)  # in two dimensions
    return wrap(np.ascontiguousarray(made).reshape(*x.shape[:-1], y.shape[1]), a.dtype)


def _linear(xp: ArrayModule, bias: Array, x: Array, weight: Array) -> Any:
    if x.shape[1] != weight.shape[1]:
        check_factors(x, weight.T)
    if not bias.dtype is x.dtype is weight.dtype:
        same_three(bias, x, weight)
    if worthwhile(x, LAYER):
        made = attempt(xp, "linear", x, weight, bias)
        if made is not None:
            return made
    if 16 <= x.shape[0] <= weight.shape[0]:
        # OpenBLAS is a sixth slower at x @ Wᵀ than at W @ xᵀ (64x784 by 256x784: 338 µs to 280);
        # adding the bias turns the result round.
        transposed = product_of(xp, weight, x.T).T
        return xp.add(transposed, bias, out=xp.empty(transposed.shape, transposed.dtype))
    product = product_of(xp, x, weight.T)
    product += bias
    return product


linear = internal(
    "linear(Tensor bias, Tensor self, Tensor weight) -> Tensor",
    _linear,
    node="AddmmBackward0",
    on_card="addmm self mat1 mat2",
    d_self="mm(g, weight)",
    d_weight="mm(g.T, self)",
    d_bias="sum(g, 0)",
    amp="half",
    halves="halves linear",
    batch=batching.linear,
    names=named_dims.layer,
    fresh=True,
    flops=flops.layer,
    layer=True,
    transposed="weight",
    checks=lambda _, args: same_three(*args),
    doc="x·Wᵀ + b for a matrix x.",
    out_type="same",
)
