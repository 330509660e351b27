"""`torch._check` and its kin, with which libraries check their arguments."""

from __future__ import annotations

from collections.abc import Callable

from toytorch.core.storages import TypedStorage, UntypedStorage
from toytorch.core.tensor import Tensor
from toytorch.facts.composed import called

Message = Callable[[], object] | None
DEFAULT = (
    "Expected cond to be True, but got False. (Could this error message be improved? If so, please "
    "report an enhancement request to PyTorch.)"
)


def _check_with(error_type: type[Exception], cond: object, message: Message) -> None:
    """Raises an error of a class, with what `message()` says, unless a condition holds."""
    if not isinstance(cond, bool):
        raise TypeError(f"cond must be a bool, but got {type(cond)}")
    if not cond:
        if message is not None and not callable(message):
            raise TypeError("message must be a callable")
        raise error_type(DEFAULT if message is None else str(message()))


def _kind(error_type: type[Exception], name: str) -> Callable[..., None]:
    def check(cond: object, message: Message = None) -> None:
        _check_with(error_type, cond, message)

    return called(name, f"Raises {error_type.__name__} unless the condition holds.", check)


_check = _kind(RuntimeError, "_check")
_check_index = _kind(IndexError, "_check_index")
_check_value = _kind(ValueError, "_check_value")
_check_type = _kind(TypeError, "_check_type")
_check_not_implemented = _kind(NotImplementedError, "_check_not_implemented")


def _check_is_size(i: int, message: Message = None, *, max: int | None = None) -> None:
    """Raises RuntimeError for a negative size, or one above `max`."""
    _check(i >= 0, message)
    if max is not None:
        _check(i <= max, message)


def _check_tensor_all_with(
    error_type: type[Exception], cond: object, message: Message = None
) -> None:
    """Raises an error unless all elements of a tensor of bools are True."""
    if not isinstance(cond, Tensor):
        raise TypeError(f"cond must be a tensor, but got {type(cond)}")
    if cond.dtype.name != "bool":
        raise TypeError(f"cond tensor must have dtype torch.bool, but got {cond.dtype}")
    _check_with(error_type, bool(cond.all()), message)


def _check_tensor_all(cond: object, message: Message = None) -> None:
    """Raises RuntimeError unless all elements of a tensor of bools are True."""
    _check_tensor_all_with(RuntimeError, cond, message)


def is_storage(obj: object, /) -> bool:
    """Whether it is a storage: memory without a shape.

    >>> torch.is_storage(torch.ones(2).untyped_storage()), torch.is_storage(torch.ones(2))
    (True, False)
    """
    return isinstance(obj, (UntypedStorage, TypedStorage))


def _assert_async(input: Tensor, assert_msg: str = "") -> None:
    """Raises RuntimeError where a tensor's one element is zero; on a device, PyTorch does so later."""
    if input.numel() != 1:
        several = "more than one value" if input.numel() else "no values"
        raise RuntimeError(f"Boolean value of Tensor with {several} is ambiguous")
    if not input.item():
        raise RuntimeError(assert_msg or "Expected Tensor with single nonzero value, but got zero")
