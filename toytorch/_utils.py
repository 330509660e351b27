"""What PyTorch's own programs ask of `torch._utils`."""

from __future__ import annotations

from toytorch.facts.dtype import dtype as dtype_class


def _element_size(dtype: dtype_class) -> int:
    """Bytes of an element of a type."""
    if not isinstance(dtype, dtype_class):
        raise RuntimeError(f"expected torch.dtype, but got {type(dtype)}")
    return dtype.itemsize
