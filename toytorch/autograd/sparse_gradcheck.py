"""Functions of sparse tensors as functions of dense ones, for `gradcheck`.

With `masked` what is varied are the entries that a tensor has, and elsewhere it stays without any;
otherwise all of its elements are.
"""

from __future__ import annotations

import functools
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts.device import strided
from toytorch.facts.dtype import float64
from toytorch.facts.hints import Fn
from toytorch.facts.pytree import tree_map
from toytorch.ops.creation.ranges import arange
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


def as_sparse_gradcheck(gradcheck: Fn) -> Fn:
    """A `gradcheck` of functions that take or give sparse tensors.

    Inputs are varied at the entries that they have (`masked=True`), or at all of them. Like
    `torch.sparse.as_sparse_gradcheck`.

    >>> x = torch.eye(2, dtype=torch.float64).to_sparse().requires_grad_()
    >>> as_sparse_gradcheck(torch.autograd.gradcheck)(lambda x: x * 2, x)
    True
    """

    @functools.wraps(gradcheck)
    def check(func: Fn, inputs: Any, masked: bool = False, **options: Any) -> Any:
        given = inputs if isinstance(inputs, (list, tuple)) else (inputs,)
        filled = [
            with_all_entries(x)
            if not masked and isinstance(x, Tensor) and x.layout is not strided
            else x
            for x in given
        ]
        of_values, values = densified(func, tuple(filled), True)

        def dense(*args: Any) -> Any:
            return tree_map(
                lambda v: (
                    v.to_dense(masked_grad=masked)
                    if isinstance(v, Tensor) and v.layout is not strided
                    else v
                ),
                of_values(*args),
            )

        return gradcheck(dense, values, **options)

    return check


def with_all_entries(x: Tensor) -> Tensor:
    """A sparse tensor that stores its zeros, too."""
    dense = x.detach().to_dense()
    places = arange(1, dense.numel() + 1, dtype=float64).reshape(dense.shape)
    full = as_layout(x, places)
    made = with_values(full, dense.reshape(-1)[_values(full).long() - 1])
    return made.requires_grad_(x.requires_grad)


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
