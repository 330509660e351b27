"""Python's operators: what `a + b`, `a @ b`, `a == b`, `x in a` and `for row in a` call."""

from __future__ import annotations

import builtins
from typing import Any

import numpy as np

from toytorch.core.function import make_operator
from toytorch.core.op import Op
from toytorch.core.scalars import NUMBERS, fits
from toytorch.core.tensor import Tensor
from toytorch.core.views import quick, several_views
from toytorch.facts import state
from toytorch.facts.hints import Scalar
from toytorch.ops.creation.from_data import from_numpy
from toytorch.ops.elementwise import arithmetic, compare
from toytorch.ops.linalg.matmul import mm
from toytorch.ops.linalg.matmul_calls import matmul_
from toytorch.ops.shaping import rearrange
from toytorch.ops.shaping.reshape import unbind
from toytorch.ops.shaping.several import unbind as unbind_op


def _serves(op: Op, other: Any) -> builtins.bool:
    """Whether an op takes this as its second operand; what it does not take may have an operator of
    its own (`__radd__`), which Python asks if ours says NotImplemented."""
    return isinstance(other, Tensor) or fits(op.schema.args[1], other)


def _check_own(name: str, self: object) -> None:
    """Refuses a method of tensors called on something else."""
    if not isinstance(self, Tensor):
        raise TypeError(
            f"descriptor '__{name}__' for 'torch._C.TensorBase' objects doesn't "
            f"apply to a '{type(self).__name__}' object"
        )


def _swapped(name: str, op: Op) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        _check_own(name, self)
        return op.function(self, other) if _serves(op, other) else NotImplemented

    return method


def _reflected(name: str, op: Op) -> Any:
    def method(self: Tensor, other: Any) -> Any:
        _check_own(name, self)
        return op.function(other, self) if _serves(op, other) else NotImplemented

    return method


def _rsub(self: Tensor, other: Any) -> Any:
    if not _serves(arithmetic.sub, other):
        return NotImplemented
    return arithmetic.rsub.function(self, other)


def _rtruediv(self: Tensor, other: Scalar) -> Any:
    try:
        return self.reciprocal() * other  # which may be other's `__rmul__`
    except TypeError:
        return NotImplemented


def _in_place(op: Op) -> Any:
    def method(self: Tensor, other: object) -> Any:
        return getattr(self, op.name + "_")(other) if _serves(op, other) else NotImplemented

    return method


def _matmul(self: Tensor, other: object) -> Any:
    if other.__class__ is Tensor and self._array.ndim == 2 == other._array.ndim:
        return mm.function(self, other)
    return matmul_(self, other) if isinstance(other, Tensor) else NotImplemented


def _rmatmul(self: Tensor, other: object) -> Any:
    return matmul_(other, self) if isinstance(other, Tensor) else NotImplemented


def _beside_array(op: Op, self: Tensor, other: Any) -> Any:
    """A comparison with an array of NumPy's, whose numbers PyTorch compares."""
    if isinstance(other, np.ndarray) and other.dtype.kind in "biufc":
        return op.function(self, from_numpy(other))
    return NotImplemented


def _equal(self: Tensor, other: Any) -> Any:
    if isinstance(other, (Tensor, *NUMBERS)):
        return compare.eq.function(self, other)
    return _beside_array(compare.eq, self, other)


def _not_equal(self: Tensor, other: object) -> Any:
    if isinstance(other, (Tensor, *NUMBERS)):
        return compare.ne.function(self, other)
    return _beside_array(compare.ne, self, other)


def _contains(self: Tensor, value: Any) -> builtins.bool:
    if isinstance(value, (Tensor, *NUMBERS)):
        return builtins.bool((self == value).any())
    raise RuntimeError(
        f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}."
    )


def _iterate(self: Tensor) -> Any:
    if self._array.ndim == 0:
        raise TypeError("iteration over a 0-d tensor")
    if state.fast_path is None and quick(self):
        array = self._array
        parts = [array[i, ...] for i in range(len(array))]
        return iter(several_views(unbind_op, (self, 0), parts))
    return iter(unbind(self, 0))


def _reversed(self: Tensor) -> Tensor:
    return rearrange.flip.function(self, 0) if self.ndim else self


OPERATORS = {
    "add": arithmetic.add, "sub": arithmetic.sub, "mul": arithmetic.mul, "truediv": arithmetic.div,
    "floordiv": arithmetic.floor_divide, "mod": arithmetic.remainder, "pow": arithmetic.pow,
    "and": compare.bitwise_and, "or": compare.bitwise_or, "xor": compare.bitwise_xor,
    "lshift": compare.bitwise_left_shift, "rshift": compare.bitwise_right_shift,
}  # fmt: skip
COMPARISONS = {"lt": compare.lt, "le": compare.le, "gt": compare.gt, "ge": compare.ge}
for _name, _op in {**OPERATORS, **COMPARISONS}.items():
    setattr(Tensor, f"__{_name}__", make_operator(_op))
for _name in ("add", "mul"):  # as PyTorch does: the number is what is multiplied by alpha
    setattr(Tensor, f"__r{_name}__", _swapped("r" + _name, OPERATORS[_name]))
for _name in ("floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(Tensor, f"__r{_name}__", _reflected("r" + _name, OPERATORS[_name]))
for _name, _op in OPERATORS.items():
    setattr(Tensor, f"__i{_name}__", _in_place(_op))


def _invert(self: Tensor) -> Any:
    """~a, of integers and masks."""
    if self.dtype.rank > 1:
        raise TypeError(
            "~ (operator.invert) is only implemented on integer and Boolean-type tensors"
        )
    return compare.bitwise_not.function(self)


SPECIAL = {
    "__rsub__": _rsub,
    "__rtruediv__": _rtruediv,
    "__rdiv__": _rtruediv,
    "__eq__": _equal,
    "__ne__": _not_equal,
    "__contains__": _contains,
    "__iter__": _iterate,
    "__abs__": arithmetic.abs.function,
    "__reversed__": _reversed,
    "__neg__": arithmetic.neg.function,
    "__pos__": Tensor.positive,  # type: ignore[attr-defined]  # of complex_numbers
    "__invert__": _invert,
    "__matmul__": _matmul,
    "__rmatmul__": _rmatmul,
}
for _name, _method in SPECIAL.items():
    setattr(Tensor, _name, _method)
for _older, _name in {  # as Python 2 called them
    "__div__": "__truediv__",
    "__idiv__": "__itruediv__",
    "__long__": "__int__",
    "__nonzero__": "__bool__",
}.items():
    setattr(Tensor, _older, getattr(Tensor, _name))
Tensor.__hash__ = object.__hash__  # type: ignore[method-assign, assignment]  # setting __eq__ removes it
