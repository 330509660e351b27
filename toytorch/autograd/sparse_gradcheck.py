"""Functions of sparse tensors as functions of dense ones, for `gradcheck`.

With `masked` what is varied are the entries that a tensor has, and elsewhere it stays without any;
otherwise all of its elements are.
"""

from __future__ import annotations

from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.device import strided
from toytorch.facts.hints import Fn
from toytorch.ops.sparse import coo


def densified(func: Fn, inputs: tuple[Any, ...], masked: bool) -> tuple[Fn, tuple[Any, ...]]:
    """A function of dense tensors that calls `func` with sparse ones, and its inputs."""
    sparse = {
        i: x for i, x in enumerate(inputs) if isinstance(x, Tensor) and x.layout is not strided
    }
    dense = list(inputs)
    for i, x in sparse.items():
        made = _values(x) if masked else x.detach().to_dense()
        dense[i] = made.requires_grad_(x.requires_grad)

    def of_dense(*values: Any) -> Any:
        args = list(values)
        for i, x in sparse.items():
            args[i] = with_values(x, values[i]) if masked else as_layout(x, values[i])
        return func(*args)

    return of_dense, tuple(dense)


def _values(x: Tensor) -> Tensor:
    """A copy of the values of a tensor's entries."""
    held: Tensor = x.detach()._values() if x.is_sparse else x.detach().values()
    return held.clone()


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """A tensor with other values at the same places."""
    if x.is_sparse:
        a = x._array
        return coo.construct.function(x._indices(), values, tuple(a.shape), a.coalesced)
    from toytorch.ops.sparse import compressed  # few programs need these layouts

    return compressed.with_values(x, values)


def as_layout(x: Tensor, dense: Tensor) -> Tensor:
    """A dense tensor in the layout of a sparse one."""
    a = x._array
    if x.is_sparse:
        return dense.to_sparse(a.sparse_dim)
    return dense.to_sparse(
        layout=x.layout, blocksize=a.blocksize or None, dense_dim=a.dense_dim or None
    )
