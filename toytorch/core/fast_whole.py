"""The fast path of whole numbers, truth values and half types.

The generated functions of `fast_path` are for float32 and float64. Where an operand has another plain
type they ask here before they take the general way: operands of one type, or a tensor of integers
beside a Python int, need no promotion, so the kernel's result is the result. Operands of one half type
go to the loop of the op's formula. Nothing is recorded.
"""

from __future__ import annotations

from _thread import get_ident
from typing import Any

from numpy import asarray, ndarray

from toytorch.core.compute import in_one_loop
from toytorch.core.memory_order import in_order
from toytorch.core.op import Op
from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import state
from toytorch.facts.hints import Fn

new = object.__new__
# What is wrong is said by the general way, which asks in PyTorch's order: shapes before types.
REFUSALS = (RuntimeError, TypeError, ValueError, ArithmeticError, MemoryError)


def condition(op: Op) -> str:
    """What else is asked of a type before one asks here for an op."""
    return "" if fits(op) else " and kind.reduced"


def fits(op: Op) -> bool:
    """Whether the result of an op's kernel on whole numbers is the op's result."""
    return op.promotion == "default" and (not op.spreads or bool(op.plain))


def unary(op: Op, kernel: Fn, input: Any) -> Any:
    """The result of an op of one tensor, or None where the general way is to be taken."""
    mode = state.fast_path
    a = input._array
    if (
        a.__class__ is not ndarray
        or input._requires_grad  # as some integers do: what is said of these is said elsewhere
        or not (mode is None or mode == get_ident())
    ):
        return None
    try:
        if op.checks is not None:
            op.checks(input._dtype, (input,))
        if input._dtype.reduced:
            made = in_one_loop(op, (input,), input._dtype, None)
            return None if made is None else wrapped(op, made, a)
        return wrapped(op, kernel(a), a)
    except REFUSALS:
        return None


def binary(op: Op, kernel: Fn, input: Any, other: Any) -> Any:
    """The same for an op of two."""
    mode, kind = state.fast_path, input._dtype
    a = input._array
    if (
        a.__class__ is not ndarray
        or input._requires_grad
        or not (mode is None or mode == get_ident())
    ):
        return None
    b: Any = None
    if kind.reduced and other.__class__ in (int, float):
        pass  # it is a number to the loop
    elif other.__class__ is int:
        if kind is types.bool:
            return None
        try:
            b = a.dtype.type(other)
        except OverflowError:
            return None
    elif other.__class__ is not Tensor or other._dtype is not kind:
        return None
    else:
        b = other._array
        if b.__class__ is not ndarray or other._requires_grad:
            return None
    try:
        if op.checks is not None:
            op.checks(kind, (input, other, 1))  # where there is an alpha, it is 1
        if kind.reduced:
            args = (input, other, 1) if op.spreads else (input, other)
            made = in_one_loop(op, args, kind, None)
            return None if made is None else wrapped(op, made, a, b)
        return wrapped(op, kernel(a, b), a, b)
    except REFUSALS:
        return None


def written(op: Op, ufunc: Fn, target: Any, other: Any) -> bool:
    """Whether an op of two was written into the first by NumPy's function; what is to be asked of the
    first was asked before. A number, or a tensor of its type and shape, needs no promotion."""
    a, kind = target._array, target._dtype
    b = other
    if other.__class__ is int:
        if kind is types.bool:
            return False
    elif (
        other.__class__ is not Tensor
        or other._dtype is not kind
        or (other._storage is target._storage is not None and other is not target)
        or other._requires_grad
    ):
        return False
    else:
        b = other._array
        if b.__class__ is not ndarray or b.shape != a.shape:
            return False
    try:
        if op.checks is not None:
            op.checks(kind, (target, other, 1))  # where there is an alpha, it is 1
        ufunc(a, b, a)
    except REFUSALS:
        return False
    return True


def wrapped(op: Op, made: Any, a: Any, *others: Any) -> Any:
    """The tensor of a kernel's result."""
    if made.__class__ is not ndarray:
        made = asarray(made)
    elif made.ndim > 1 and (
        op.memory or not a.flags.c_contiguous or a.shape != made.shape or 1 in a.shape
    ):
        made = in_order(op, made, [a, *others])
    result: Any = new(Tensor)
    result._array = made
    result._dtype = types.FROM_NUMPY[made.dtype]
    result._storage = result._grad_edge = None
    result._requires_grad = False
    return result
