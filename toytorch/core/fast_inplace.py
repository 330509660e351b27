"""The fast path of in-place forms that are one of NumPy's functions of arrays (ufuncs)."""

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
            a = self._array
{other}            ufunc({operands}, a)
            bump(self)
            return self
    except (AttributeError, TypeError, OverflowError):
        pass  # the general path says what is wrong
"""
INPLACE_OTHER = """\
            b = other
            if b.__class__ is not float and b.__class__ is not int:
                b = other._array
                if (b.shape != a.shape or b.__class__ is not ndarray
                        or other.dtype is not self.dtype
                        or (other._requires_grad and state.fast_path is None)
                        or (other._storage is self._storage is not None and other is not self)):
                    return inplace(op, {args})
"""


def write_inplace(op: Op) -> str:
    """The lines of an in-place form that write by a ufunc, where the op is one; "" for others."""
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
    args = f"({', '.join(names)},)"
    return INPLACE.format(
        condition="alpha.__class__ is int and alpha == 1 and " if "alpha" in names else "",
        other=INPLACE_OTHER.format(args=args) if len(names) > 1 else "",
        operands="a, b" if len(names) > 1 else "a",
    )


def names_in_place(op: Op) -> dict[str, Any]:
    """What the names in these lines stand for."""
    return {
        "quick": writes.quick,
        "bump": inplace.bump,
        "ufunc": ufunc_of(op),
        "state": state,
        "ndarray": np.ndarray,
    }
