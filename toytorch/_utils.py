"""What PyTorch's own programs ask of `torch._utils`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from toytorch.facts.dtype import dtype as dtype_class
from toytorch.facts.hints import Kwargs


def _element_size(dtype: dtype_class) -> int:
    """Bytes of an element of a type."""
    if not isinstance(dtype, dtype_class):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize


def _flatten_dense_tensors(tensors: Sequence[Any]) -> Any:
    """The elements of several tensors, one after the other."""
    from toytorch import cat  # a circle otherwise

    return cat([t.contiguous().view(-1) for t in tensors])


def _unflatten_dense_tensors(flat: Any, tensors: Sequence[Any]) -> tuple[Any, ...]:
    """Views of what `_flatten_dense_tensors` made, with the sizes of those tensors."""
    parts = flat.split([t.numel() for t in tensors])
    return tuple(part.view_as(t) for part, t in zip(parts, tensors, strict=True))


def render_call(fn: Any, args: Sequence[Any], kwargs: Kwargs) -> str:
    """A call as one line of source, tensors by their sizes: `torch.sum(tensor([...], size=(3,)))`."""
    resolved = torch_function_name(fn)
    printed = [_rendered(a) for a in args] + [f"{k}={_rendered(v)}" for k, v in kwargs.items()]
    return f"{resolved or fn}({', '.join(printed)})"


def _get_device_module(device_type: str) -> Any:
    """`torch.cuda` of "cuda"."""
    found = getattr(sys.modules[__package__], device_type, None)
    if found is None:
        raise RuntimeError(
            f"Device '{device_type}' does not have a corresponding module registered as "
            f"'torch.{device_type}'."
        )
    return found


def _get_available_device_type() -> str | None:
    """The kind of device there is besides the CPU."""
    kinds = ("cuda", "mps", "xpu")
    return next((k for k in kinds if _get_device_module(k).is_available()), None)


def torch_function_name(fn: Any) -> str | None:
    """The public name of a function."""
    from toytorch.overrides import resolve_name  # a circle otherwise

    return resolve_name(fn)


def _rendered(value: Any) -> str:
    """A tensor without its elements, if it has several; anything else as it prints."""
    from toytorch.core.tensor import Tensor  # a circle otherwise

    if isinstance(value, (list, tuple)):
        inner = ", ".join(map(_rendered, value))
        if isinstance(value, list):
            return f"[{inner}]"
        return f"({inner}{',' * (len(value) == 1)})"
    if not isinstance(value, Tensor):
        return repr(value)
    text = repr(value) if value.numel() == 1 and not value.ndim else "tensor([...])"
    return f"{text[:-1]}, size={tuple(value.shape)})"
