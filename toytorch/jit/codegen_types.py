"""What the writer of plans and the fuser ask about values: constants and element types."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core import compute
from toytorch.core.tensor import wrap
from toytorch.facts import dtype as dtypes
from toytorch.jit import types
from toytorch.jit.ir import Node, Value


def numpy_type(v: Value) -> Any:
    """NumPy's type of a tensor value."""
    assert isinstance(v.type, types.Tensor) and v.type.dtype is not None
    return v.type.dtype.numpy


def work_type(node: Node) -> Any:
    """The type in which the operands of a pointwise op meet; None where they are left alone."""
    op: Any = node.record
    if op.promotion == "none":
        return None
    samples = []
    for i, v in enumerate(node.inputs):
        if i in op.tensor_at and isinstance(v.type, types.Tensor):
            assert v.type.shape is not None
            samples.append(wrap(np.empty((0,) * bool(v.type.shape), numpy_type(v)), v.type.dtype))
        else:
            samples.append(v.constant)
    common = compute.common_dtype(op, tuple(samples))
    if op.promotion == "float" and common.rank < 2:
        common = dtypes.get_default_dtype()
    return common.numpy
