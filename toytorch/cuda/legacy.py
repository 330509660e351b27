"""The older classes of tensors on a device: `torch.cuda.FloatTensor` and its kin."""

from __future__ import annotations

from typing import Any

from toytorch.core.older_constructor import make_legacy
from toytorch.core.tensor import Tensor
from toytorch.cuda.devices import is_available
from toytorch.facts import dtype as types
from toytorch.facts.device import device as device_class
from toytorch.ops.creation.convert import to


class _Legacy(type):
    """What `isinstance` and calls of such a class do."""

    dtype: Any

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.is_cuda and value.dtype is cls.dtype

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if not is_available():
            raise TypeError(
                f"type torch.cuda.{cls.__name__} not available. Torch not compiled with CUDA "
                "enabled."
            )
        made = make_legacy(Tensor, *args, type=cls.dtype, **kwargs)
        return to(made, device=device_class("cuda"))


def legacy(kind: types.dtype) -> Any:
    """The older class of tensors of a type."""
    return _Legacy(f"{kind.legacy}Tensor", (), {"dtype": kind, "__module__": "torch.cuda"})


TENSORS = {f"{kind.legacy}Tensor": legacy(kind) for kind in types.ALL if not kind.is_complex}
