"""DLPack: handing memory to other libraries, and taking theirs, without a copy.

The protocol's capsules are made and read by the array libraries underneath (NumPy, CuPy); what is
done here is to ask the right one, and to refuse what a capsule cannot carry: history.
"""

from __future__ import annotations

import ctypes
import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from toytorch.backends import base
from toytorch.core.tensor import Tensor, wrap
from toytorch.facts.device import device as device_class
from toytorch.facts.dtype import bfloat16
from toytorch.facts.hints import Array, ArrayModule
from toytorch.ops.creation.from_data import held_elsewhere
from toytorch.ops.define import on_tensors

__all__ = ["DLDeviceType", "from_dlpack", "to_dlpack"]


class DLDeviceType(enum.IntEnum):
    """The protocol's numbers for kinds of devices."""

    kDLCPU = 1
    kDLCUDA = 2
    kDLCUDAHost = 3
    kDLCUDAManaged = 13


KINDS = {"cpu": DLDeviceType.kDLCPU, "cuda": DLDeviceType.kDLCUDA}
NAMES = {number: name for name, number in KINDS.items()}


def __dlpack_device__(self: Tensor) -> tuple[DLDeviceType, int]:
    """(kind of device, number): where the memory is, in the protocol's terms."""
    return KINDS[self.device.type], self.device.index or 0


def __dlpack__(
    self: Tensor,
    *,
    stream: int | str = -1,
    max_version: tuple[int, int] | None = None,
    dl_device: tuple[Any, int] | None = None,
    copy: bool | None = None,
) -> Any:
    """A capsule over the same memory, for another library's `from_dlpack`.

    >>> x = Tensor([1., 2.])
    >>> np.from_dlpack(x)[0] = 5
    >>> x
    tensor([5., 2.])
    """
    if self._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    if self.is_sparse:
        raise BufferError("Can't export tensors with layout other than torch.strided")
    if stream is not None and type(stream) is not int:
        raise TypeError("stream must be ``int`` or ``none``")
    if not self.is_cuda:
        if stream not in (None, -1):
            raise AssertionError("stream should be None on cpu.")
        return capsule_of(self, max_version, dl_device, copy)
    return self._array.__dlpack__(
        stream=None if stream == -1 else stream,
        max_version=max_version,
        dl_device=dl_device,
        copy=copy,
    )


def capsule_of(
    tensor: Tensor,
    max_version: Sequence[int] | None = None,
    dl_device: Any = None,
    copy: bool | None = None,
) -> Any:
    """NumPy's capsule for the memory of a CPU tensor."""
    if tensor.dtype.extended:
        raise BufferError(f"NumPy, which makes the capsules, cannot export {tensor.dtype.name}")
    tensor._memory()
    return tensor._array.__dlpack__(max_version=max_version, dl_device=dl_device, copy=copy)


def to_dlpack(tensor: Tensor) -> Any:
    """A capsule over the tensor's memory, which `from_dlpack` takes once."""
    if tensor.is_cuda:
        return tensor._array.__dlpack__()
    return capsule_of(tensor)


class Held:
    """A bare capsule in the form that array libraries ask for."""

    def __init__(self, capsule: object) -> None:
        self.capsule = capsule

    def __dlpack__(self, **how: Sequence[int] | None) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_in(self.capsule)


def device_in(capsule: object) -> tuple[int, int]:
    """Where the memory of a capsule is: the DLDevice in its DLTensor."""
    api = ctypes.pythonapi
    for name, skipped in ((b"dltensor", 0), (b"dltensor_versioned", 32)):
        if api.PyCapsule_IsValid(ctypes.py_object(capsule), name):
            api.PyCapsule_GetPointer.restype = ctypes.c_void_p
            api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
            start = api.PyCapsule_GetPointer(capsule, name) + skipped
            kind, number = (ctypes.c_int32 * 2).from_address(start + ctypes.sizeof(ctypes.c_void_p))
            return kind, number
    raise RuntimeError(
        "from_dlpack received an invalid capsule. Note that DLTensor capsules can be consumed only "
        "once, so you might have already constructed a tensor from it once."
    )


def from_dlpack(ext_tensor: Any, *, device: str | None = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of another library's array, or of a capsule.

    >>> theirs = np.zeros(2)
    >>> from_dlpack(theirs)[0] = 1
    >>> theirs
    array([1., 0.])
    """
    if not hasattr(ext_tensor, "__dlpack__"):
        if device is not None or copy is not None:
            raise AssertionError(
                "device and copy kwargs not supported when ext_tensor is already a DLPack capsule."
            )
        device_in(ext_tensor)  # refuses what is none
        ext_tensor = Held(ext_tensor)
    kind, number = ext_tensor.__dlpack_device__()
    if isinstance(ext_tensor, Tensor) and ext_tensor.dtype is bfloat16 and device is None:
        return _own(ext_tensor, bool(copy))
    if kind not in NAMES:
        raise RuntimeError(f"Unsupported device_type: {int(kind)}:{number}")
    xp = np if NAMES[kind] == "cpu" else base.of_device(device_class("cuda", number)).xp
    array = taken(xp, ext_tensor)
    made = held_elsewhere(wrap(array), array)
    target = made.device if device is None else device_class(device)
    if target.type != made.device.type:
        if copy is False:
            raise ValueError(
                f"cannot move DLPack tensor from device {(int(kind), number)} to "
                f"{(int(KINDS[target.type]), target.index or 0)} without copying. Set "
                "copy=None or copy=True."
            )
        return made.to(target)
    return made.clone() if copy else made


def taken(xp: ArrayModule, theirs: Any) -> Any:
    """An array over somebody's memory, writable: PyTorch's tensors know no other kind."""
    if isinstance(theirs, np.ndarray):
        if theirs.dtype.kind not in "biufc" or not theirs.dtype.isnative:
            theirs.__dlpack__()  # refuses it
        array = theirs.view(np.ndarray)
    else:
        array = xp.from_dlpack(theirs)
    read_only = isinstance(array, np.ndarray) and not array.flags.writeable
    return np.asarray(Writable(array)) if read_only else array


class Writable:
    """Memory that NumPy holds to be read-only, as it does what old capsules bring."""

    def __init__(self, array: Array) -> None:
        interface = array.__array_interface__
        self.array = array  # keeps the memory alive
        self.__array_interface__ = {**interface, "data": (interface["data"][0], False)}


on_tensors(__dlpack__=__dlpack__, __dlpack_device__=__dlpack_device__)


def _own(source: Tensor, copy: bool) -> Tensor:
    """A tensor over the memory of one of ours, whose type NumPy's capsules do not know."""
    if source._requires_grad:
        raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
    made = wrap(source._array[...], source.dtype)
    flat, start = source._memory().flat(), source.storage_offset()
    flat = flat if flat.dtype == source._array.dtype else flat.view(source._array.dtype)
    count = 1 + sum((n - 1) * s for n, s in zip(source.shape, source.stride()))
    held_elsewhere(made, made._array, flat[start : start + count * bool(source.numel())])
    return made.clone() if copy else made
