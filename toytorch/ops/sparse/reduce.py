"""Sums, norms and softmax of sparse tensors.

In what `torch.sparse` has, zeros that are not stored do not count: in softmax they are minus
infinity, and gradients are kept for stored entries only.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.generic import attempt
from toytorch.backends.sparse import SparseArray, positions, sum_runs, unsupported, xp_of
from toytorch.core.op import Op, registry
from toytorch.facts.dtype import from_numpy_dtype
from toytorch.facts.hints import Array, ArrayModule, DType, Ints, Sizes
from toytorch.facts.size import wrap_dim
from toytorch.ops.define import general
from toytorch.ops.reductions import reduce
from toytorch.ops.sparse.kernels import is_sparse, kernel, look_up, spread
from toytorch.ops.sparse.layout import unsqueeze


@kernel("any")
def _any(a: SparseArray, dim: Ints | None, keepdim: bool) -> Any:
    if dim is not None:
        raise NotImplementedError(unsupported("any.dim", "SparseCPU"))
    return xp_of(a).asarray(a.coalesce().values.any())


@kernel("sum")
def _sum(a: SparseArray, dim: Ints | None, keepdim: bool, dtype: DType | None) -> Any:
    kind = reduce.sum_type(a, dtype)
    if dim is None or a.ndim == 0:
        return xp_of(a).asarray(a.values.sum(dtype=kind))
    made = sum_dims(a, reduce.axes(dim, a.ndim), kind)
    if keepdim:
        for d in sorted(reduce.axes(dim, a.ndim)):
            made = unsqueeze(made, d) if is_sparse(made) else xp_of(made).expand_dims(made, d)
    return made


@kernel("linalg_vector_norm")
def _norm(a: SparseArray, order: Any, dim: Ints | None, keepdim: bool, dtype: DType | None) -> Any:
    if dim is not None and len(reduce.axes(dim, a.ndim)) < a.ndim:
        raise RuntimeError(
            "norm_sparse currently only supports full reductions, so 'dim' must "
            "either be empty or contain all dimensions of the input"
        )
    a = a.coalesce()
    return registry["linalg_vector_norm"].kernel_on(xp_of(a))(
        a.values.reshape(-1), order, None, False, dtype
    )


def sum_dims(a: SparseArray, dims: tuple[int, ...], kind: np.dtype[Any] | None = None) -> Any:
    """The sum over some dimensions; a dense array where no coordinates remain."""
    over = {wrap_dim(d, a.ndim) for d in dims}
    n = a.sparse_dim
    kept = [d for d in range(n) if d not in over]
    inner = tuple(d - n + 1 for d in sorted(over) if d >= n)
    values = a.values.sum(inner, dtype=kind) if inner or kind else a.values
    if not kept:
        return values.sum(0, dtype=kind or a.dtype)
    shape = [m for d, m in enumerate(a.shape) if d not in over]
    if len(kept) == n:
        return SparseArray(a.indices, values, shape, a.coalesced)
    return SparseArray(a.indices[kept], values, shape, None).coalesce()


def spread_dims(g: Any, a: SparseArray, dims: tuple[int, ...]) -> SparseArray:
    """The gradient of `sum_dims`: what g has at the place that each entry of `a` went to."""
    a = a.coalesce()
    over = {wrap_dim(d, a.ndim) for d in dims}
    n = a.sparse_dim
    blocks = look_up(g, a.indices[[d for d in range(n) if d not in over]])
    for d in sorted(d - n + 1 for d in over if d >= n):
        blocks = xp_of(a).expand_dims(blocks, d)
    values = xp_of(a).broadcast_to(blocks, (a.nnz, *a.shape[n:]))
    return SparseArray(a.indices, values.copy(), a.shape, True)


# -- records of torch.sparse -----------------------------------------------------------------------


def _refuse(name: str) -> Any:
    def run(xp: ArrayModule, *args: Array | int) -> Any:
        raise NotImplementedError(unsupported(name, "CPU"))

    return run


def _hidden(signature: str, name: str, **fields: Any) -> Any:
    """A record of torch.sparse, which dense tensors do not have."""
    return general(signature, _refuse(name), forms="", **fields)


dims_sum: Op = _hidden(
    "_sparse_sum(Tensor self, int[] dim) -> Tensor",
    "_sparse_sum",
    d_self=lambda g, self, dim: dims_spread.function(g, self.detach(), dim),
    doc="The sum over dimensions.",
)
kernel("_sparse_sum")(sum_dims)
dims_spread: Op = _hidden(
    "_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor",
    "_sparse_sum_backward",
    d_grad=lambda g, dim: dims_sum.function(g, dim),
    doc="The gradient of a sum for each entry of self.",
)
kernel("_sparse_sum_backward")(spread_dims)


def _spread(a: SparseArray, size: Sizes) -> SparseArray:
    for d in range(-1, -a.ndim - 1, -1):
        if -d > len(size) or a.shape[d] not in (1, size[d]):
            wanted = size[d] if -d <= len(size) else 0
            raise RuntimeError(
                f"The expanded size of the tensor ({wanted}) must match the existing size "
                f"({a.shape[d]}) at non-singleton dimension {d + a.ndim}"
            )
    return spread(a, tuple(size))


broadcast: Op = general(
    "_sparse_broadcast_to(Tensor self, int[] size) -> Tensor",
    _refuse("_sparse_broadcast_to"),
    forms="function",
    d_self=lambda g, self_shape: summed_to(g, tuple(self_shape)),
    doc="A sparse tensor broadcast to a shape: its entries repeated.",
)
kernel("_sparse_broadcast_to")(_spread)


def summed_to(g: Any, shape: Sizes) -> Any:
    """A gradient summed over the dimensions that were broadcast."""
    lead = g.ndim - len(shape)
    over = [d for d in range(g.ndim) if d < lead or shape[d - lead] != g.shape[d]]
    made = dims_sum.function(g, tuple(over)) if over else g
    for d, n in enumerate(shape):
        if made.ndim < len(shape) and d + lead in over and n == 1:
            made = made.unsqueeze(d)
    return made


# -- softmax --------------------------------------------------------------------------------------


class Rows:
    """The entries of a coalesced array as rows along one dimension, of which each is a softmax."""

    def __init__(self, a: SparseArray, dim: int) -> None:
        self.xp, n = xp_of(a), a.sparse_dim
        self.axis = dim - n + 1 if dim >= n else 0
        if self.axis:
            return
        others = [d for d in range(n) if d != dim]
        places = positions(a.indices[others], [a.shape[d] for d in others])
        self.order = self.xp.argsort(places, kind="stable")
        places = places[self.order]
        self.first = self.xp.ones(len(places), bool)
        self.first[1:] = places[1:] != places[:-1]
        self.back = self.xp.empty_like(self.order)
        self.back[self.order] = self.xp.cumsum(self.first) - 1

    def maxima(self, values: Array) -> Any:
        """For each entry the maximum of its row."""
        if self.axis:
            return values.max(self.axis, keepdims=True)
        if not len(values):
            return values
        starts = self.xp.flatnonzero(self.first)
        tops = attempt(self.xp, "max_runs", values[self.order], starts, 0)
        if tops is None:
            tops = self.xp.full(
                (int(self.first.sum()), *values.shape[1:]), -self.xp.inf, values.dtype
            )
            self.xp.maximum.at(tops, self.back, values)
        return tops[self.back]

    def sums(self, values: Array) -> Any:
        """For each entry the sum of its row."""
        if self.axis:
            return values.sum(self.axis, keepdims=True)
        return sum_runs(self.xp, values[self.order], self.first)[self.back]


def _softmax(log: bool) -> Any:
    def run(a: SparseArray, dim: int) -> SparseArray:
        d = wrap_dim(dim, a.ndim)
        if a.dtype.kind != "f":
            raise NotImplementedError(
                f"\"softmax\" not implemented for '{from_numpy_dtype(a.dtype).legacy}'"
            )
        a = a.coalesce()
        rows, xp = Rows(a, d), xp_of(a)
        shifted = a.values - rows.maxima(a.values)
        powers = xp.exp(shifted)
        total = rows.sums(powers)
        return a.with_values(shifted - xp.log(total) if log else powers / total)

    return run


def _softmax_backward(log: bool) -> Any:
    def run(g: Any, y: SparseArray, dim: int) -> SparseArray:
        rows = Rows(y, wrap_dim(dim, y.ndim))
        came = look_up(g, y.indices)
        if log:
            return y.with_values(came - xp_of(y).exp(y.values) * rows.sums(came))
        return y.with_values(y.values * (came - rows.sums(came * y.values)))

    return run


def _pair(name: str, log: bool) -> Any:
    backward = _hidden(
        f"_sparse_{name}_backward_data(Tensor grad, Tensor output, int dim) -> Tensor",
        f"_sparse_{name}_backward_data",
        doc=f"The gradient of {name} along the stored entries.",
    )
    forward = _hidden(
        f"_sparse_{name}(Tensor self, int dim) -> Tensor",
        f"_sparse_{name}",
        d_self=lambda g, result, dim: backward.function(g, result.detach(), dim),
        doc=f"{name} along the stored entries of each row.",
    )
    kernel(f"_sparse_{name}")(_softmax(log))
    kernel(f"_sparse_{name}_backward_data")(_softmax_backward(log))
    return forward


softmax, log_softmax = _pair("softmax", False), _pair("log_softmax", True)
