"""What is known of functions made of several calls, which have no record to say it.

`composed` writes it beside the function, for the compiler; `operands` and `cast_to` are for
autocast. A record's operands are cast when it is called. `l1_loss` is a subtraction, an absolute
value and a mean, none of which is cast for itself: so it asks here first.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, TypeVar, cast

from toytorch.facts import state

if TYPE_CHECKING:
    from toytorch.core.op import Op


F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Composed:
    """Facts of a function.

    returns     what it gives, as in a record's signature, where its annotation does not tell:
                "(Tensor values, Tensor indices)", "Tensor[] if as_tuple else Tensor" (see
                `jit.script.results`)
    creates     it makes a new tensor, of no random numbers, and does nothing else
    shares      its result lies in the memory of its first argument
    reads       what it tells of a tensor: its "elements", its "shape" alone, or its "memory"; or
                the "generator" of random numbers
    idle        a flag without which it gives its first argument back
    layer       as in a record (see `core.op.Op`)
    """

    returns: str = ""
    creates: bool = False
    shares: bool = False
    reads: str = ""
    idle: str = ""
    layer: bool = False


NOTHING = Composed()


def composed(**facts: Any) -> Callable[[F], F]:
    """Writes facts beside a function; what wraps it with `functools.wraps` has them too."""

    def mark(function: F) -> F:
        if facts:
            function.__dict__["composed"] = replace(facts_of(function), **facts)
        return function

    return mark


def called(name: str, doc: str, function: F) -> F:
    """A function that another one has made, under a name and with a text of its own."""
    made: Any = function
    made.__name__ = made.__qualname__ = name
    made.__doc__ = doc
    return function


def facts_of(function: Op | Callable[..., Any] | None) -> Composed:
    """What is known of a function."""
    return getattr(function, "composed", NOTHING)


def operands(kind: str, *values: object) -> tuple[Any, ...]:
    """The values as a mode with `on_operands` wants them: all "half", or all "float32"."""
    if state.fast_path is state.SLOW:
        for mode in reversed(state.local.modes):
            change = getattr(mode, "on_operands", None)
            if change is not None:
                values = change(kind, values)
    return values


def cast_to(kind: str) -> Callable[[F], F]:
    """Marks a function: all its tensors are operands of that kind."""

    def mark(function: F) -> F:
        @functools.wraps(function)
        def run(*args: object, **kwargs: object) -> Any:
            if state.fast_path is state.SLOW:
                args = operands(kind, *args)
                kwargs = dict(zip(kwargs, operands(kind, *kwargs.values())))
            return function(*args, **kwargs)

        return cast(F, run)

    return mark
