"""`asarray`: a tensor of whatever holds numbers, over the same memory where that can be."""

from __future__ import annotations

from typing import Any

import numpy as np

from toytorch.core.tensor import Tensor
from toytorch.facts import dtype as types
from toytorch.facts import warned
from toytorch.facts.device import device as device_class
from toytorch.facts.hints import Device, DType
from toytorch.ops.creation.dlpack import from_dlpack
from toytorch.ops.creation.from_data import from_numpy, frombuffer, tensor
from toytorch.ops.define import takes_words

UNSAID = (
    "torch.asarray: unspecified requires_grad now defaults to obj.requires_grad instead of False. "
    "Pass requires_grad=False explicitly to get the old behavior and silence this warning."
)


@takes_words(a="obj", x="obj")
def asarray(
    obj: Any,
    *,
    dtype: DType | None = None,
    device: Device = None,
    copy: bool | None = None,
    requires_grad: bool | None = None,
) -> Tensor:
    """A tensor of a tensor, an array of NumPy or of DLPack, a buffer, or nested lists of numbers.

    The memory is shared unless another type or place is asked for or `copy` is True; a list is
    always copied. A buffer is read as elements of `dtype`. Raises ValueError where `copy` is False
    and a copy is needed. Like `torch.asarray`.

    >>> a = np.zeros(2)
    >>> asarray(a)[0] = 1
    >>> a
    array([1., 0.])
    >>> asarray(bytearray([1, 0, 2, 0]), dtype=types.int16)
    tensor([1, 2], dtype=torch.int16)
    """
    made = sharing(obj, dtype, copy)
    if made is None:
        if copy is False:
            raise ValueError("can't alias arbitrary sequence into a tensor.")
        made = tensor(obj, dtype=dtype, device=device)
        return made.requires_grad_(bool(requires_grad))
    if requires_grad is None:
        requires_grad = isinstance(obj, Tensor) and obj.requires_grad
        if requires_grad:
            warned.at_call(UNSAID)
    where = made.device if device is None else device_class(device)
    kind = dtype or made.dtype
    if copy is False:
        if where != made.device:
            raise ValueError(f"can't alias tensor from device '{made.device}' to '{where}'.")
        if kind is not made.dtype:
            raise ValueError(
                f"can't alias tensor with dtype '{made.dtype.legacy}' into dtype '{kind.legacy}'."
            )
    made = made.to(device=where, dtype=kind, copy=bool(copy))
    if not requires_grad and not made.is_leaf:
        return made.detach()
    return made.requires_grad_(requires_grad) if made.is_leaf else made


def sharing(obj: Any, dtype: DType | None, copy: bool | None) -> Tensor | None:
    """A tensor over the memory of an object; None where it has none to share."""
    if isinstance(obj, Tensor):
        return obj
    if isinstance(obj, np.generic):
        if copy is False:
            raise RuntimeError(
                "can't alias NumPy scalars. Either remove copy=False or transform it in a ndarray. "
            )
        return None
    if isinstance(obj, np.ndarray):
        return from_numpy(obj)
    if hasattr(obj, "__dlpack__") or type(obj).__name__ == "PyCapsule":
        return from_dlpack(obj)
    if isinstance(obj, (str, list, tuple, range, int, float, complex)):
        return None
    try:
        size = memoryview(obj).nbytes
    except TypeError:
        return None
    return frombuffer(obj, dtype=dtype or types.get_default_dtype()) if size else None
