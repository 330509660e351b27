"""Calls that choose between records: `max` of a tensor, along a dimension, or of two tensors."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from toytorch.core import write
from toytorch.core.arguments import TAKES
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts import dtype as types
from toytorch.facts import state, warned
from toytorch.facts.hints import DType, Ints, Scalar
from toytorch.facts.schema import NOT_GIVEN, wrong_argument
from toytorch.ops.creation import create, from_data
from toytorch.ops.define import public
from toytorch.ops.elementwise import arithmetic, limits
from toytorch.ops.indexing import by_index
from toytorch.ops.named_results import public_with_names, return_type
from toytorch.ops.queries import result_type
from toytorch.ops.reductions import exponentials, extremes, scan, sort

ALONG = "(Tensor values, Tensor indices)"
EXTREME = (
    f"Tensor if dim_or_other is Tensor else {ALONG} if dim_or_other else {ALONG} if dim else Tensor"
)


@public("div", "divide", "true_divide", method=True, tensor_first=False)
def div(
    input: Tensor,
    other: Scalar | Tensor,
    *,
    rounding_mode: str | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Quotient; rounding_mode "trunc" or "floor" rounds it.

    >>> div(torch.tensor([7., -7.]), 2, rounding_mode="floor")
    tensor([ 3., -4.])
    """
    if rounding_mode is None and out is None:
        return arithmetic.div.function(input, other)
    if rounding_mode is None:
        return arithmetic.div.function(input, other, out=out)
    if rounding_mode not in ("trunc", "floor"):
        raise RuntimeError(
            "div expected rounding_mode to be one of None, 'trunc', or 'floor' but "
            f"found '{rounding_mode}'"
        )
    op = arithmetic.div_floor if rounding_mode == "floor" else arithmetic.div_trunc
    return op.function(input, other, out=out)


@public(method=True)
def div_(self: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """In-place quotient."""
    op = {None: arithmetic.div, "floor": arithmetic.div_floor, "trunc": arithmetic.div_trunc}.get(
        rounding_mode
    )
    if op is None:
        return div(self, other, rounding_mode=rounding_mode)
    return op.written(self, other)  # the op's in-place form


def _extreme(name: str, smallest: bool, of_all: Op, along: Op, of_two: Op, doc: str) -> Any:
    def function(
        input: Tensor,
        dim_or_other: int | Tensor = NOT_GIVEN,
        keepdim: builtins.bool = NOT_GIVEN,
        *,
        dim: int = NOT_GIVEN,
        other: Tensor = NOT_GIVEN,
        out: Any = None,
    ) -> Any:
        if dim_or_other is NOT_GIVEN is dim and other is NOT_GIVEN is keepdim and out is None:
            return of_all.function(input)
        # By position; what was given by name says itself what it is.
        if dim_or_other is not NOT_GIVEN:
            if not (dim is NOT_GIVEN is other):
                raise TypeError(f"{name}() received an invalid combination of arguments")
            if isinstance(dim_or_other, Tensor) and keepdim is NOT_GIVEN:
                return of_two.function(input, dim_or_other, out=out)
            dim = dim_or_other
        if dim is not NOT_GIVEN and other is NOT_GIVEN:
            keep = keepdim is not NOT_GIVEN and keepdim
            return return_type(name, along.function(input, dim, keep, out=out), out=out)
        if not (dim is NOT_GIVEN is keepdim):
            raise TypeError(f"{name}() received an invalid combination of arguments")
        if other is not NOT_GIVEN:
            return of_two.function(input, other, out=out)
        if out is not None and not input.numel():
            return create.put_out(extremes.edge_of_nothing(input, smallest), out)
        return of_all.function(input, out=out)

    return public(name, method=name, returns=EXTREME, doc=doc)(function)


max = _extreme(
    "max",
    False,
    extremes.max_all,
    extremes.max_dim,
    limits.maximum,
    """The largest element; with a dimension (values, indices); with a tensor `maximum`.

    >>> max(torch.tensor([3., 5.]), 0).indices
    tensor(1)
    """,
)
min = _extreme(
    "min",
    True,
    extremes.min_all,
    extremes.min_dim,
    limits.minimum,
    "The smallest element; with a dimension (values, indices); with a tensor `minimum`.",
)


@public("median", method=True, returns="(Tensor values, Tensor indices) if dim else Tensor")
def median(
    input: Tensor, dim: int = NOT_GIVEN, keepdim: builtins.bool = False, *, out: Any = None
) -> Any:
    """The middle element (the lower of two); with a dimension (values, indices)."""
    if dim is NOT_GIVEN:
        if out is not None or keepdim:
            raise TypeError('median() missing 1 required positional arguments: "dim"')
        return sort.median.function(input)
    return return_type("median", sort.median_dim.function(input, dim, keepdim, out=out), out=out)


for _op in (sort.sort, sort.topk, sort.kthvalue, scan.cummax, scan.cummin):
    public_with_names(_op)


@public("argsort", method=True)
def argsort(
    input: Tensor,
    dim: int = -1,
    descending: builtins.bool = False,
    stable: builtins.bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """Indices that put a dimension in order.

    >>> argsort(torch.tensor([3, 1, 2]))
    tensor([1, 2, 0])
    """
    if out is not None:
        write.refuse_grad("sort", (input,), out)
    return create.put_out(sort.sort.function(input, dim, descending, stable)[1], out, same=True)


@public("where", numbers={"input": "self"}, returns="Tensor if other else Tensor[]")
def where(
    condition: Tensor, input: Any = NOT_GIVEN, other: Any = NOT_GIVEN, *, out: Tensor | None = None
) -> Any:
    """input where the condition holds, other elsewhere; alone: the places where it holds.

    >>> where(torch.tensor([True, False]), 1, 2)
    tensor([1, 2])
    """
    if (
        condition.__class__ is input.__class__ is other.__class__ is Tensor
        and condition._dtype is types.bool
        and input._dtype is other._dtype
    ):
        return by_index.where.function(condition, input, other, out=out)
    if not isinstance(condition, Tensor):
        raise wrong_argument("where", "condition", 1, "Tensor", condition)
    if input is other is NOT_GIVEN and out is None:
        return nonzero(condition, as_tuple=True)
    if not (TAKES["Operand"](input) and TAKES["Operand"](other)):
        raise TypeError("where() received an invalid combination of arguments")
    if out is not None and not isinstance(input, Tensor):
        raise wrong_argument("where", "input", 2, "Tensor", input)
    if condition.dtype is not types.bool:
        if condition.dtype is not types.uint8:
            raise RuntimeError(
                "where expected condition to be a boolean tensor, but got a tensor "
                f"with dtype {condition.dtype.legacy}"
            )
        warned.once(
            "where received a uint8 condition tensor. This behavior is deprecated and will be "
            "removed in a future version of PyTorch. Use a boolean condition instead."
        )
        condition = condition.to(types.bool)
    for tensor, number in ((input, other), (other, input)):
        plain = tensor.__class__ is Tensor and tensor.dtype.plain and not state.local.modes
        if plain and number.__class__ is float:
            beside = wrap(np.asarray(number, tensor.dtype.numpy))
            if tensor._array.__class__ is np.ndarray is condition._array.__class__:
                pair = (tensor, beside) if tensor is input else (beside, tensor)
                return by_index.where.function(condition, *pair, out=out)
    common = result_type(input, other)
    operands = [
        v.to(common)
        if isinstance(v, Tensor)
        else from_data.tensor(v, dtype=common, device=condition.device)
        for v in (input, other)
    ]
    return by_index.where.function(condition, *operands, out=out)


@public(method="where")
def _where_method(self: Tensor, condition: Tensor, other: Any) -> Tensor:
    """This tensor where the condition holds, other elsewhere."""
    return where(condition, self, other)


@public("nonzero", method=True, returns="Tensor[] if as_tuple else Tensor")
def nonzero(input: Tensor, *, as_tuple: builtins.bool = False, out: Tensor | None = None) -> Any:
    """The places of non-zero elements: one a row, or one tensor a dimension.

    >>> nonzero(torch.tensor([0, 5, 7]))
    tensor([[1],
            [2]])
    """
    if not isinstance(as_tuple, builtins.bool):
        kind = type(as_tuple).__name__
        raise TypeError(f"nonzero(): argument 'as_tuple' must be bool, not {kind}")
    if as_tuple and out is not None:
        raise RuntimeError("nonzero does not support the out kwarg when as_tuple is True")
    if as_tuple:
        rows = nonzero(input.reshape(1) if input.ndim == 0 else input)
        return tuple(rows.unbind(1))
    return by_index.nonzero.function(input, out=out)


@public("clip", method=True)
def clip(
    input: Tensor,
    min: Tensor | float | None = None,
    max: Tensor | float | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`clamp` under NumPy's name."""
    return limits.clamp.function(input, min, max, out=out)


@public("logsumexp")
def logsumexp(
    input: Tensor, dim: Ints, keepdim: builtins.bool = False, *, out: Tensor | None = None
) -> Tensor:
    """log Σ eˣ over dimensions, without overflow."""
    if out is not None and not out.dtype.is_complex:
        if not out.dtype.is_floating_point:
            raise RuntimeError(
                "logsumexp(): Expected floating point type for result tensor, but got: "
                + out.dtype.legacy
            )
        if input.dtype.is_complex:  # of the sum, out= takes the real part
            write.refuse_grad("logsumexp", (input,), out)
            return create.put_out(exponentials.of_real_part(input, dim, keepdim), out)
    return exponentials.logsumexp.function(input, dim, keepdim, out=out)


@public(method=True)
def abs_(self: Tensor) -> Tensor:
    """In-place absolute value."""
    if self.dtype.is_complex:
        raise RuntimeError("In-place abs is not supported for complex tensors.")
    return arithmetic.abs.written(self)  # the op's in-place form


def _running_inplace(name: str, op: Op) -> Any:
    def method(self: Tensor, dim: int, *, dtype: DType | None = None) -> Tensor:
        if dtype is not None and dtype is not self.dtype:
            raise RuntimeError(
                f"Bad in-place call: input tensor dtype {types.IN_C[self.dtype.name]} and "
                f"output tensor dtype {types.IN_C[dtype.name]} should match"
            )
        if self.dtype is types.bool and self.numel() and self.ndim:
            raise NotImplementedError(f"\"{name}_out_cpu\" not implemented for 'Bool'")
        return op.written(self, dim, dtype=dtype)  # the op's in-place form

    method.__name__ = name + "_"
    method.__doc__ = f"In-place form of `{name}`."
    return public(method=name + "_")(method)


for _name, _op in {"cumsum": scan.cumsum, "cumprod": scan.cumprod}.items():
    _running_inplace(_name, _op)
