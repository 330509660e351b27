"""`make_tensor`: random tensors of any type, for tests."""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import warned
from toytorch.facts.dtype import dtype as Dtype
from toytorch.facts.hints import Device
from toytorch.ops.creation.create import empty
from toytorch.ops.creation.random import randint


def bounds(kind: Dtype, low: Any, high: Any) -> tuple[Any, Any]:
    """The interval that values are drawn from, within what the type can hold."""
    exact = not (kind.is_floating_point or kind.is_complex)
    if kind is types.bool:
        least, most, usual = 0, 2, (0, 2)
    elif exact:
        limits: Any = types.iinfo(kind)
        least, most, usual = limits.min, limits.max + (kind is not types.int64), (-9, 10)
    else:
        limits = types.finfo(kind)
        least, most, usual = limits.min, limits.max, (-9, 9)
    low, high = usual[0] if low is None else low, usual[1] if high is None else high
    if low != low or high != high:
        raise ValueError(f"`low` and `high` cannot be NaN, but got {low=} and {high=}")
    if low == high and not exact:
        warned.at_call(
            "Passing `low==high` to `torch.testing.make_tensor` for floating or complex types is "
            "deprecated since 2.1 and will be removed in 2.3. Use `torch.full(...)` instead.",
            FutureWarning,
        )
    elif low >= high:
        raise ValueError(f"`low` must be less than `high`, but got {low} >= {high}")
    elif high < least or low >= most:
        raise ValueError(
            f"The value interval specified by `low` and `high` is [{low}, {high}), "
            f"but {kind} only supports [{least}, {most})"
        )
    low, high = min(max(low, least), most), min(max(high, least), most)
    return (math.ceil(low), math.ceil(high)) if exact else (low, high)


def make_tensor(
    *shape: Any,
    dtype: Dtype,
    device: Device,
    low: Any = None,
    high: Any = None,
    requires_grad: bool = False,
    noncontiguous: bool = False,
    exclude_zero: bool = False,
    memory_format: Any = None,
) -> Tensor:
    """A tensor of values drawn evenly from [low, high), by default about [-9, 9).

    Raises ValueError for an empty interval, or a gradient for whole numbers. Like
    `torch.testing.make_tensor`.

    >>> x = make_tensor(2, 3, dtype=torch.float32, device="cpu", low=0, high=1)
    >>> x.shape, bool((x >= 0).all() and (x < 1).all())
    (torch.Size([2, 3]), True)
    """
    given = shape[0] if len(shape) == 1 and isinstance(shape[0], Sequence) else shape
    sizes = tuple(operator.index(n) for n in given)
    exact = not (dtype.is_floating_point or dtype.is_complex)
    if noncontiguous and memory_format is not None:
        raise ValueError(
            "The parameters `noncontiguous` and `memory_format` are mutually "
            f"exclusive, but got {noncontiguous=} and {memory_format=}"
        )
    if requires_grad and exact:
        raise ValueError(
            "`requires_grad=True` is not supported for boolean and integral dtypes, "
            f"but got {dtype=}"
        )
    apart = noncontiguous and math.prod(sizes) > 1
    if apart:  # twice as many, every second of which is kept
        sizes = (*sizes[:-1], 2 * sizes[-1])
    low, high = bounds(dtype, low, high)
    if exact:
        result = randint(low, high, sizes, device=device, dtype=dtype)
    else:
        result = empty(sizes, device=device, dtype=dtype)
        parts = result.view(dtype.to_real()) if dtype.is_complex and result.ndim else result
        if dtype.is_complex and not result.ndim:
            result.real.uniform_(low, high)
            result.imag.uniform_(low, high)
        else:
            parts.uniform_(low, high)
    if apart:
        result = result[..., 1::2]
    elif memory_format is not None:
        result = result.clone(memory_format=memory_format)
    if exclude_zero:
        tiny: Any = 1 if exact else types.finfo(dtype).tiny
        result[result.eq(0)] = tiny
    if not exact:
        result.requires_grad = requires_grad
    return result
