"""Warnings at the user's line, and those given once a process, however often there is reason."""

from __future__ import annotations

import sys
import warnings

from toytorch.facts.package import is_ours

always = False  # what `set_warn_always` was told
given: set[str] = set()  # by their texts

SCALAR = (
    "Converting a tensor with requires_grad=True to a scalar may lead to unexpected behavior.\n"
    "Consider using tensor.detach() first."
)
CYCLE = (
    "Using backward() with create_graph=True will create a reference cycle between the parameter "
    "and its gradient which can cause a memory leak. We recommend using autograd.grad when "
    "creating the graph to avoid this. If you have to use this function, make sure to reset the "
    ".grad fields of your parameters to None after use to break the cycle and avoid the leak."
)
TYPED_STORAGE = (
    "TypedStorage is deprecated. It will be removed in the future and UntypedStorage will be the "
    "only storage class. This should only matter to you if you are using storages directly.  To "
    "access UntypedStorage directly, use tensor.untyped_storage() instead of tensor.storage()"
)
MESHGRID = (
    "torch.meshgrid: in an upcoming release, it will be required to pass the indexing argument."
)


def users_level() -> int:
    """Which level of the stack, counted from the caller, is the first that is not this package's."""
    level, frame = 1, sys._getframe(1)
    # Functions that were generated have no name of a module.
    while frame.f_back is not None and is_ours(frame.f_globals.get("__name__", "toytorch")):
        level, frame = level + 1, frame.f_back
    return level


def at_call(text: str, kind: type[Warning] = UserWarning) -> None:
    """Warns at the line outside of this package that called it."""
    warnings.warn(text, kind, stacklevel=users_level())


def once(text: str, key: str = "") -> None:
    """Warns the first time, or each time after `set_warn_always(True)`; of several texts with one
    key, only the first is given.

    >>> with warnings.catch_warnings(record=True) as seen:
    ...     warnings.simplefilter("always")
    ...     once("twice is too much"); once("twice is too much")
    >>> len(seen)
    1
    """
    if always or (key or text) not in given:
        given.add(key or text)
        at_call(text)
