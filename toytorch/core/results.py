"""From a kernel's arrays back to tensors, and what may stand for one among the arguments."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from toytorch.backends.held import HeldArray
from toytorch.core.memory_order import placed, row_major
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor, new
from toytorch.facts.dtype import FROM_NUMPY, from_numpy_dtype
from toytorch.facts.hints import Array
from toytorch.facts.schema import Argument

NUMBERS = (bool, int, float, complex, np.number, np.bool_)


def fits(argument: Argument, value: object) -> bool:
    """Whether something that is no tensor may stand where the schema has one."""
    if value is None:
        return bool(argument.is_optional)
    return bool(argument.takes_number) and isinstance(value, NUMBERS)


def in_order(op: Op, result: Any, operands: list[Any]) -> Any:
    """A pointwise result in the order of memory that PyTorch gives it, for these operands."""
    if op.memory == "tensor first":
        if not isinstance(operands[0], ndarray):
            return row_major(result)
        return placed(result, *operands)
    if op.memory not in ("", "second"):
        return result
    return placed(result, *(operands[::-1] if op.memory else operands))


def wrap_result(array: Array) -> Tensor:
    """A tensor over a kernel's result, which may be a scalar where it should be a 0-d array."""
    if (
        array.__class__ is not ndarray
        and not isinstance(array, HeldArray)
        and (isinstance(array, np.generic) or not hasattr(array, "strides"))
    ):
        array = np.asarray(array)
    tensor: Tensor = new(Tensor)
    tensor._array = array
    tensor.dtype = FROM_NUMPY.get(array.dtype) or from_numpy_dtype(array.dtype)
    tensor._requires_grad = False
    tensor._grad_edge = tensor._storage = None
    return tensor
