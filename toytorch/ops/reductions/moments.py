"""Norms and variances: the calls around the records of `reduce`."""

from __future__ import annotations

import builtins
from typing import Any

from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.core.write import refuse_grad
from toytorch.facts import warned
from toytorch.facts.hints import DType, Ints
from toytorch.ops.define import public
from toytorch.ops.linalg.norms import matrix_norm
from toytorch.ops.named_results import public_with_names
from toytorch.ops.reductions import exponentials, extremes, reduce


@public("norm", method=True, tensor_first=False, numpy=False)
def norm(
    input: Tensor,
    p: float | str | None = "fro",
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    out: Tensor | None = None,
    dtype: Any = None,
) -> Tensor:
    """The p-norm over dimensions; "fro" is the Euclidean one."""
    if not isinstance(input, Tensor):
        raise AttributeError(f"'{type(input).__name__}' object has no attribute 'layout'")
    if isinstance(p, str) and (p != "fro" or (isinstance(dim, (tuple, list)) and len(dim) > 2)):
        dims = range(input.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
        return matrix_norm(input, p, tuple(dims), keepdim, dtype=dtype, out=out)
    order = 2 if p in ("fro", None) else p if isinstance(p, complex) else builtins.float(p)
    return exponentials.vector_norm.function(input, order, dim, keepdim, dtype=dtype, out=out)


def _spread(
    name: str,
    op: Op,
    input: Tensor,
    dim: Ints | str | bool | None,
    unbiased: bool | None,
    keepdim: builtins.bool,
    correction: float | None,
    out: Tensor | None = None,
) -> Any:
    """A variance or its root; warns, as the function of a name, where too few numbers go into it."""
    if isinstance(dim, builtins.bool):
        dim, unbiased = None, dim
    if unbiased is not None:
        if correction is not None:
            raise TypeError(f"{name}() received an invalid combination of arguments")
        correction = 1 if unbiased else 0
    correction = 1 if correction is None else correction
    more = {} if out is None else {"out": out}
    made = op.function(input, dim, correction=correction, keepdim=keepdim, **more)
    count = input.numel() // numel if (numel := (made[0] if op.many else made).numel()) else 0
    if count <= correction:
        warned.at_call(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the "
            "reduction factor (input numel divided by output numel)."
        )
    return made


def _variance(name: str, op: Op) -> Any:
    def function(
        input: Tensor,
        dim: Ints | str | bool | None = None,
        unbiased: bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: float | None = None,
        out: Tensor | None = None,
    ) -> Tensor:
        return _spread(name, op, input, dim, unbiased, keepdim, correction, out)

    return public(name, method=name, doc=op.doc)(function)


var, std = _variance("var", reduce.var), _variance("std", reduce.std)


def _with_mean(name: str, op: Op, doc: str) -> Any:
    def function(
        input: Tensor,
        dim: Ints | bool | None = None,
        unbiased: bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: float | None = None,
    ) -> tuple[Tensor, Tensor]:
        return tuple(_spread(name, op, input, dim, unbiased, keepdim, correction))

    return public(name, doc=doc)(function)


var_mean = _with_mean("var_mean", reduce.var_mean, "Variance and mean.")
std_mean = _with_mean("std_mean", reduce.std_mean, "Standard deviation and mean.")


# -- without NaN ----------------------------------------------------------------------------------


@public("nanmean", method=True)
def nanmean(
    input: Tensor,
    dim: Ints | None = None,
    keepdim: builtins.bool = False,
    *,
    dtype: DType | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """The mean with NaN left out.

    >>> nanmean(torch.tensor([1., torch.nan, 3.]))
    tensor(2.)
    """
    if input.dtype.rank < 2:
        raise RuntimeError(
            "nanmean(): integral types and 'Bool' are not supported for nanmean, even for empty "
            "tensors."
        )
    if dtype is not None and dtype.rank < 2:
        raise RuntimeError(
            "nanmean(): could not infer output dtype. Optional dtype must be either a floating "
            f"point or complex dtype. Got: {dtype.legacy}"
        )
    count = (~input.isnan()).sum(dim, keepdim)
    if out is not None:
        refuse_grad("nansum", (input,), out)
        if out.dtype.rank != 2 == input.dtype.rank and dtype is None and input.numel():
            raise NotImplementedError(f"\"nansum_cpu\" not implemented for '{out.dtype.legacy}'")
    total: Any = reduce.nansum.function(input, dim, keepdim, dtype=dtype, out=out)
    return total / count if out is None else total.div_(count)


public_with_names(extremes.aminmax)
