"""Sums and softmax of sparse tensors, as `torch.sparse` has them: zeros that are not stored do not
count, in values and in gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.backends.sparse import SparseArray, positions, sum_runs, unsupported, xp_of
from toytorch.core.dtype import from_numpy_dtype
from toytorch.core.op import Op
from toytorch.core.size import wrap_dim
from toytorch.ops.define import general
from toytorch.ops.sparse_kernels import kernel, look_up, spread_dims, sum_dims


def _refuse(name: str) -> Any:
    def run(xp: Any, *args: Any) -> Any:
        raise NotImplementedError(unsupported(name, "CPU"))
    return run


def _hidden(signature: str, name: str, **fields: Any) -> Any:
    """A record of torch.sparse, which dense tensors do not have."""
    return general(signature, _refuse(name), function=False, method=False, out=False, **fields)


dims_sum: Op = _hidden(
    "_sparse_sum(Tensor self, int[] dim) -> Tensor", "_sparse_sum",
    d_self=lambda g, self, dim: dims_spread.function(g, self.detach(), dim),
    node="SparseSumBackward0", doc="The sum over dimensions.")
kernel("_sparse_sum")(sum_dims)
dims_spread: Op = _hidden(
    "_sparse_sum_backward(Tensor grad, Tensor self, int[] dim) -> Tensor", "_sparse_sum_backward",
    d_grad=lambda g, dim: dims_sum.function(g, dim),
    doc="The gradient of a sum for each entry of self.")
kernel("_sparse_sum_backward")(spread_dims)

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

    def maxima(self, values: Any) -> Any:
        """For each entry the maximum of its row."""
        if self.axis:
            return values.max(self.axis, keepdims=True)
        if not len(values):
            return values
        if self.xp is np:
            tops = np.maximum.reduceat(values[self.order], np.flatnonzero(self.first), 0)
        else:
            tops = self.xp.full((int(self.first.sum()), *values.shape[1:]), -self.xp.inf,
                                values.dtype)
            self.xp.maximum.at(tops, self.back, values)
        return tops[self.back]

    def sums(self, values: Any) -> Any:
        """For each entry the sum of its row."""
        if self.axis:
            return values.sum(self.axis, keepdims=True)
        return sum_runs(self.xp, values[self.order], self.first)[self.back]


def _softmax(log: bool) -> Any:
    def run(a: SparseArray, dim: int) -> SparseArray:
        d = wrap_dim(dim, a.ndim)
        if a.dtype.kind != "f":
            raise NotImplementedError(
                f"\"softmax\" not implemented for '{from_numpy_dtype(a.dtype).legacy}'")
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
    backward = _hidden(f"_sparse_{name}_backward_data(Tensor grad, Tensor output, int dim) "
                       "-> Tensor", f"_sparse_{name}_backward_data",
                       doc=f"The gradient of {name} along the stored entries.")
    forward = _hidden(f"_sparse_{name}(Tensor self, int dim) -> Tensor", f"_sparse_{name}",
                      d_self=lambda g, result, dim: backward.function(g, result.detach(), dim),
                      doc=f"{name} along the stored entries of each row.")
    kernel(f"_sparse_{name}")(_softmax(log))
    kernel(f"_sparse_{name}_backward_data")(_softmax_backward(log))
    return forward


softmax, log_softmax = _pair("softmax", False), _pair("log_softmax", True)
