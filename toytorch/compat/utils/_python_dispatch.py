"""Modes and subclasses of Tensor that are asked below autograd, like `torch.utils._python_dispatch`.

`__torch_function__` hears which public function is called. `__torch_dispatch__` hears which op runs:
after autograd has looked at the call, and once for every op that a function is composed of.

>>> class Loud(TorchDispatchMode):
...     def __torch_dispatch__(self, func, types, args=(), kwargs=None):
...         print(func)
...         return func(*args, **(kwargs or {}))
>>> with Loud():
...     x = (torch.ones(2) * 3).sum()
aten.ones.default
aten.mul.Tensor
aten.sum.default
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from toytorch.core.subclasses import DISPATCH
from toytorch.core.tensor import Tensor
from toytorch.facts import state
from toytorch.ops.aten import OpOverload
from toytorch.utils import dispatched

__all__ = [
    "BaseTorchDispatchMode", "TorchDispatchMode", "is_in_torch_dispatch_mode",
    "is_traceable_wrapper_subclass", "is_traceable_wrapper_subclass_type",
    "return_and_correct_aliasing", "transform_subclass",
]  # fmt: skip


class TorchDispatchMode:
    """A context whose `__torch_dispatch__` is asked about every op that runs within it.

    Ops that the method calls itself go to the next mode outside of it.
    """

    supports_higher_order_operators = False

    def __init__(self, _dispatch_key: object = None) -> None:
        self._watches: list[Any] = []

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        raise NotImplementedError  # what a mode does is its subclass's part

    def __enter__(self) -> TorchDispatchMode:
        watch = state.watching(dispatched.Asked(self.__torch_dispatch__, self))
        watch.__enter__()
        vars(self).setdefault("_watches", []).append(watch)  # subclasses may forget `super()`
        return self

    def __exit__(self, *error: object) -> None:
        self._watches.pop().__exit__(None, None, None)

    @classmethod
    def push(cls, *args: object, **kwargs: object) -> TorchDispatchMode:
        """The older way to make one."""
        return cls(*args, **kwargs)

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether it belongs to the framework: none does."""
        return False


class BaseTorchDispatchMode(TorchDispatchMode):
    """A mode that lets every op through."""

    def __torch_dispatch__(
        self,
        func: Callable[..., Any],
        types: Sequence[type],
        args: Sequence[object] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        return func(*args, **(kwargs or {}))


# -- which modes are in force ----------------------------------------------------------------------


def _get_current_dispatch_mode_stack() -> list[Any]:
    """The modes in force, the innermost last."""
    return [m.mode for m in state.local.modes if isinstance(m, dispatched.Asked)]


def _get_current_dispatch_mode() -> Any:
    """The innermost mode, or None."""
    return next(reversed(_get_current_dispatch_mode_stack()), None)


def is_in_torch_dispatch_mode(include_infra_modes: bool = True) -> bool:
    """Whether any mode is in force."""
    return bool(_get_current_dispatch_mode_stack())


@contextlib.contextmanager
def _disable_current_modes() -> Iterator[list[Any]]:
    """A context in which no mode is asked."""
    modes = state.local.modes
    state.local.modes = tuple(m for m in modes if not isinstance(m, dispatched.Asked))
    try:
        yield [m.mode for m in modes if isinstance(m, dispatched.Asked)]
    finally:
        state.local.modes = modes


# -- subclasses that hold tensors ------------------------------------------------------------------


def is_traceable_wrapper_subclass_type(t: type) -> bool:
    """Whether objects of a class say which tensors they hold, and can be made anew from such."""
    return t is not Tensor and all(
        hasattr(t, name) for name in ("__tensor_flatten__", "__tensor_unflatten__")
    )


def is_traceable_wrapper_subclass(t: object) -> bool:
    """Whether an object says which tensors it holds, and can be made anew from such."""
    return isinstance(t, Tensor) and is_traceable_wrapper_subclass_type(type(t))


def transform_subclass(
    t: Any,
    callback: Callable[[str, Tensor], Tensor],
    outer_size: Sequence[int] | None = None,
    outer_stride: Sequence[int] | None = None,
) -> Any:
    """A wrapper anew, with `callback(name, tensor)` in the place of each tensor that it holds."""
    names, context = t.__tensor_flatten__()
    inner = {name: callback(name, getattr(t, name)) for name in names}
    size = t.size() if outer_size is None else outer_size
    stride = t.stride() if outer_stride is None else outer_stride
    return type(t).__tensor_unflatten__(inner, context, size, stride)


def return_and_correct_aliasing(
    func: OpOverload, args: Sequence[Any], kwargs: dict[str, Any] | None, out: object
) -> Any:
    """What an op returns: the argument that it writes to, where it writes to one, or `out`."""
    given = (kwargs or {}).get("out")
    if given is not None:
        return given
    return args[0] if func._schema.is_mutable and getattr(type(args[0]), DISPATCH, None) else out
