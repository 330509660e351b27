"""What pickles name in which PyTorch wrote tensors, for programs that open them with `pickle`."""

from __future__ import annotations

import copyreg
import io
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import toytorch
from toytorch.core.storages import TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor, set_state, warn_of_hooks, wrap
from toytorch.facts import device as layouts
from toytorch.facts import dtype as types
from toytorch.facts.device import layout
from toytorch.facts.dtype import dtype
from toytorch.nn.parameter import Parameter

LAYOUTS = ("strided", "jagged", *(f"sparse_{kind}" for kind in ("coo", "csr", "csc", "bsr", "bsc")))


def as_pytorch(tensor: Any) -> Any:
    """How PyTorch pickles a tensor: a function that it has, too, and the arguments."""
    if type(tensor) is Parameter:
        state = tensor._state()
        given = tensor.detach(), tensor.requires_grad, OrderedDict[int, Any]()
        return (_rebuild_parameter_with_state, (*given, state)) if state else (
            _rebuild_parameter, given,
        )  # fmt: skip
    made, args = without_state(tensor)
    state = tensor._state()
    return (_rebuild_from_type_v2, (made, Tensor, args, state)) if state else (made, args)


def without_state(tensor: Any) -> tuple[Any, tuple[Any, ...]]:
    """The same without what the user gave the tensor."""
    warn_of_hooks(tensor)
    if tensor.is_sparse:
        parts = tensor._indices(), tensor._values(), tensor.size(), bool(tensor.is_coalesced())
        return _rebuild_sparse_tensor, (tensor.layout, parts)
    if tensor.layout is not layouts.strided:
        ends = (wrap(part) for _, part in tensor._array.parts())
        return _rebuild_sparse_tensor, (tensor.layout, (*ends, tensor.size()))
    place = tuple(tensor.size()), tensor.stride(), tensor.requires_grad
    if tensor.device.type == "meta":
        return _rebuild_meta_tensor_no_storage, (tensor.dtype, *place)
    at = tensor.storage_offset(), *place, OrderedDict[int, Any]()
    if tensor.dtype in types.OF_BYTES:
        return _rebuild_tensor_v3, (UntypedStorage.of(tensor._memory()), *at, tensor.dtype)
    return _rebuild_tensor_v2, (TypedStorage.of(tensor._memory(), tensor.dtype), *at)


def in_bytes(storage: TypedStorage | UntypedStorage) -> Any:
    """How PyTorch pickles a storage: as a file."""
    file = io.BytesIO()
    toytorch.save(storage, file, _use_new_zipfile_serialization=False)
    return _load_from_bytes, (file.getvalue(),)


def write_so() -> None:
    """Lets `pickle` write tensors so in this process; the functions are called by PyTorch's names."""
    for module, functions in PICKLED.items():
        for function in functions:
            function.__module__ = module
    copyreg.pickle(Tensor, as_pytorch)
    copyreg.pickle(Parameter, as_pytorch)
    copyreg.pickle(TypedStorage, in_bytes)
    copyreg.pickle(UntypedStorage, in_bytes)


def _load_from_bytes(b: bytes) -> Any:
    return toytorch.load(io.BytesIO(b), weights_only=False)


def _rebuild_tensor(
    storage: Any, storage_offset: int, size: Sequence[int], stride: Sequence[int]
) -> Tensor:
    made = toytorch.empty(0, dtype=storage.dtype, device=storage.device)
    return made.set_(storage, storage_offset, size, stride)


def _rebuild_tensor_v2(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: object,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    made: Any = _rebuild_tensor(storage, storage_offset, size, stride)
    if metadata and metadata.get("conj"):
        made = made.conj()
    if metadata and metadata.get("neg"):
        made = -made
    made.requires_grad_(requires_grad)
    made._backward_hooks = backward_hooks
    return made


def _rebuild_tensor_v3(
    storage: Any,
    storage_offset: int,
    size: Sequence[int],
    stride: Sequence[int],
    requires_grad: bool,
    backward_hooks: object,
    dtype: dtype,
    metadata: dict[str, bool] | None = None,
) -> Tensor:
    typed = TypedStorage.of(storage.untyped()._storage, dtype)
    return _rebuild_tensor_v2(
        typed, storage_offset, size, stride, requires_grad, backward_hooks, metadata
    )


def _rebuild_parameter(data: Tensor, requires_grad: bool, backward_hooks: object) -> Tensor:
    made = Parameter(data, requires_grad)
    made._backward_hooks = backward_hooks
    return made


def _rebuild_parameter_with_state(
    data: Tensor, requires_grad: bool, backward_hooks: object, state: Any
) -> Tensor:
    made = _rebuild_parameter(data, requires_grad, backward_hooks)
    set_state(made, state)
    return made


def _rebuild_from_type_v2(func: Any, new_type: Any, args: tuple[Any, ...], state: Any) -> Any:
    made = func(*args)
    if type(made) is not new_type:
        made = made.as_subclass(new_type)
    set_state(made, state)
    return made


def _rebuild_sparse_tensor(layout: layout, data: tuple[Any, ...]) -> Tensor:
    if layout is layouts.sparse_coo:
        indices, values, size, *known = data
        return toytorch.sparse_coo_tensor(
            indices, values, size, is_coalesced=known[0] if known else None
        )
    ends, places, values, size = data
    return toytorch.sparse_compressed_tensor(ends, places, values, size, layout=layout)


def _rebuild_meta_tensor_no_storage(
    dtype: dtype, size: Sequence[int], stride: Sequence[int], requires_grad: bool
) -> Tensor:
    return toytorch.empty_strided(
        size, stride, dtype=dtype, device="meta", requires_grad=requires_grad
    )


def _rebuild_nested_tensor(buffer: Tensor, sizes: Tensor, strides: Tensor, starts: Tensor) -> Any:
    from toytorch.nested.strided import from_buffer  # few programs have one

    return from_buffer(buffer, sizes, strides, starts)


def _get_layout(name: str) -> layout:
    return {str(kind): kind for kind in (getattr(layouts, n) for n in LAYOUTS)}[name]


PICKLED = {
    "torch.storage": (_load_from_bytes,),
    "torch._tensor": (_rebuild_from_type_v2,),
    "torch.serialization": (_get_layout,),
    "torch._utils": (
        _rebuild_tensor, _rebuild_tensor_v2, _rebuild_tensor_v3, _rebuild_parameter,
        _rebuild_parameter_with_state, _rebuild_sparse_tensor, _rebuild_meta_tensor_no_storage,
        _rebuild_nested_tensor,
    ),
}  # fmt: skip
