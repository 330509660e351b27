"""Functions made of several calls whose operands autocast casts once, for the function as a whole.

A record's operands are cast when it is called. `l1_loss` is a subtraction, an absolute value and a
mean, none of which is cast for itself: so it asks here first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar, cast

from toytorch.facts import state

F = TypeVar("F", bound=Callable[..., Any])


def operands(kind: str, *values: Any) -> tuple[Any, ...]:
    """The values as a mode with `on_operands` wants them: all "half", or all "float32"."""
    if state.shortcut is state.SLOW:
        for mode in reversed(state.local.modes):
            change = getattr(mode, "on_operands", None)
            if change is not None:
                values = change(kind, values)
    return values


def cast_to(kind: str) -> Callable[[F], F]:
    """Marks a function: all its tensors are operands of that kind."""

    def mark(function: F) -> F:
        @functools.wraps(function)
        def run(*args: Any, **kwargs: Any) -> Any:
            if state.shortcut is state.SLOW:
                args = operands(kind, *args)
                kwargs = dict(zip(kwargs, operands(kind, *kwargs.values())))
            return function(*args, **kwargs)

        return cast(F, run)

    return mark
