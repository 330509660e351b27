"""The fast paths of in-place forms: of those that are one of NumPy's functions of arrays (ufuncs), and
of other pointwise ones on few elements, whose result is made and copied."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core import inplace
from toytorch.core import write as writes
from toytorch.core.fast_path import ufunc_of
from toytorch.core.op import Op
from toytorch.facts import state

INPLACE = """\
    try:
        if {condition}quick(self) and self.dtype.plain:
            a, fits = self._array, True
{other}            if fits:
                ufunc({operands}, a)
                bump(self)
                return self
    except (AttributeError, TypeError, OverflowError):
        pass  # the general path says what is wrong
"""
INPLACE_OTHER = """\
            b = other
            if b.__class__ is not float and b.__class__ is not int:
                b = other._array
                fits = (b.shape == a.shape and b.__class__ is ndarray
                        and other.dtype is self.dtype
                        and not (other._requires_grad and state.fast_path is None)
                        and not (other._storage is self._storage is not None and other is not self))
"""


POINTWISE = """\
    try:
        if quick(self) and self.dtype.plain and self._array.size < {few}{numbers}:
            a0 = self._array
{operands}            c = kernel({values})
            if c.__class__ is ndarray and c.shape == a0.shape and c.dtype is a0.dtype:
                a0[...] = c
                bump(self)
                return self
    except (AttributeError, TypeError, ValueError, OverflowError, RuntimeError):
        pass  # the general path says what is wrong
"""
OPERAND = """\
            a{i} = {name}
{number}            {if_} a{i} is not None:
                if ({name}.dtype is not self.dtype
                        or ({name}._requires_grad and state.fast_path is None)
                        or ({name}._storage is self._storage is not None and {name} is not self)):
                    return inplace(op, {args})
                a{i} = a{i}._array
                if a{i}.__class__ is not ndarray:
                    return inplace(op, {args})
"""
NUMBER = """\
            if a{i}.__class__ is float or a{i}.__class__ is int:
                a{i} = a0.dtype.type(a{i})
"""
FEW = 4096  # elements; of more, the general path writes the result where it belongs as it is made


def write_inplace(op: Op) -> str:
    """The lines in front of an in-place form that do the usual call; "" where there are none."""
    return by_ufunc(op) + by_kernel(op) * (len(op.schema.args) > 1 or not by_ufunc(op))


def by_kernel(op: Op) -> str:
    """The lines for a pointwise op of tensors and numbers."""
    if (
        op.kind != "pointwise"
        or op.promotion not in ("default", "float", "tensors")
        or op.schema.returns != ("Tensor",)
        or op.many
        or op.random
        or op.kernel is None
    ):
        return ""
    args = f"({', '.join(a.name for a in op.schema.args)},)"
    operands, values, numbers = "", ["a0"], ""
    for i, a in list(enumerate(op.schema.args))[1:]:
        if a.is_tensor_list:
            return ""
        if a.is_tensor:
            number, if_ = (NUMBER.format(i=i), "elif") if a.takes_number else ("", "if")
            operands += OPERAND.format(i=i, name=a.name, args=args, number=number, if_=if_)
            values.append(f"a{i}")
        elif a.type in ("Scalar", "float"):
            numbers += f" and ({a.name}.__class__ is float or {a.name}.__class__ is int)"
            values.append(a.name)
        else:
            return ""
    if op.checks is not None:
        numbers += f" and check(self.dtype, {args}) is None"
    return POINTWISE.format(
        few=FEW, numbers=numbers, operands=operands, values=", ".join(values), args=args
    )


def by_ufunc(op: Op) -> str:
    """The lines that write by a ufunc, where the op is one; "" for others."""
    names = [a.name for a in op.schema.args]
    if (
        op.kind != "pointwise"
        or op.promotion == "none"
        or op.schema.returns[0] == "BoolTensor"
        or names not in (["self"], ["self", "other"], ["self", "other", "alpha"])
        or not isinstance(ufunc_of(op), np.ufunc)
        or (len(names) > 1 and not op.schema.args[1].takes_number)
    ):
        return ""
    return INPLACE.format(
        condition="alpha.__class__ is int and alpha == 1 and " if "alpha" in names else "",
        other=INPLACE_OTHER if len(names) > 1 else "",
        operands="a, b" if len(names) > 1 else "a",
    )


def names_in_place(op: Op) -> dict[str, Any]:
    """What the names in these lines stand for."""
    return {
        "quick": writes.quick,
        "bump": inplace.bump,
        "ufunc": ufunc_of(op),
        "kernel": op.on_cpu,
        "check": op.checks,
        "state": state,
        "ndarray": np.ndarray,
    }
