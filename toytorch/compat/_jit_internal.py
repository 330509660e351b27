"""Names of `torch._jit_internal` that libraries import: marks for the compiler, questions about types."""

from __future__ import annotations

import contextlib
import typing
from collections.abc import Callable, Iterator
from typing import Any

from toytorch.futures import Future
from toytorch.jit.annotations import BroadcastingList1, BroadcastingList2, BroadcastingList3
from toytorch.jit.script.markers import Final, export, ignore, is_scripting, unused

__all__ = [
    "BroadcastingList1", "BroadcastingList2", "BroadcastingList3", "Final", "Future", "export",
    "ignore", "is_scripting", "unused",
]  # fmt: skip


def is_optional(ann: object) -> bool:
    """Whether an annotation is a union with None.

    >>> is_optional(typing.Optional[int]), is_optional(int)
    (True, False)
    """
    return typing.get_origin(ann) is typing.Union and type(None) in typing.get_args(ann)


def is_tuple(ann: object) -> bool:
    """Whether an annotation is a tuple's."""
    return typing.get_origin(ann) is tuple


def is_list(ann: object) -> bool:
    """Whether an annotation is a list's."""
    return typing.get_origin(ann) is list


def is_dict(ann: object) -> bool:
    """Whether an annotation is a dictionary's."""
    return typing.get_origin(ann) is dict


def _overload(func: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a signature of a function that has several; the definition that comes last is called."""
    return func


_overload_method = _overload


def _copy_to_script_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Marks a method in Python that scripted modules have too; here all of them are."""
    return fn


@contextlib.contextmanager
def _disable_emit_hooks() -> Iterator[None]:
    """Compiles without the hooks that PyTorch's own tests set; here there are none."""
    yield


def boolean_dispatch(
    arg_name: str,
    arg_index: int,
    default: bool,
    if_true: Callable[..., Any],
    if_false: Callable[..., Any],
    module_name: str,
    func_name: str,
) -> Callable[..., Any]:
    """A function that calls one of two, as one of its arguments says."""

    def fn(*args: object, **kwargs: object) -> Any:
        given = args[arg_index] if arg_index < len(args) else kwargs.get(arg_name, default)
        return (if_true if given else if_false)(*args, **kwargs)

    fn.__doc__ = if_true.__doc__ or if_false.__doc__
    fn.__name__, fn.__module__ = func_name, module_name
    return fn
